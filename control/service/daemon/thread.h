/* Threads of banyand other than the loop's, which alone handles signals. Any thread. */
#ifndef BY_SERVICE_DAEMON_THREAD_H
#define BY_SERVICE_DAEMON_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Starts a thread with all signals blocked. On failure it prints a message and ends the program. */
static inline void by_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        fprintf(stderr, "banyand: cannot start a thread: %s\n", strerror(error));
        exit(3);
    }
}

#endif
