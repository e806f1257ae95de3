/*
 * A progress bar for work that takes longer than a second: a thread looks at the stage every tenth
 * of a second and draws on standard error, where that is a terminal; elsewhere, when asked for, it
 * prints a line now and then. The bar is gone before anything else is printed: stop first, then
 * print. One thread for each bar, besides its own.
 */
#ifndef BY_CLI_PROGRESS_H
#define BY_CLI_PROGRESS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "control/base/stage.h"

struct by_cli_progress {
    struct by_stage stage; /* to be given to the work */
    const char *what;      /* before the stage's name: "allgather, multitree"; NULL for nothing */
    bool running, terminal;
    sem_t ends; /* posted when the work is done */
    pthread_t thread;
};

/* Starts looking; `asked`: also where standard error is no terminal. Without either nothing is
 * started. */
void by_cli_progress_start(struct by_cli_progress *progress, const char *what, bool asked);
/* Erases the bar. Does nothing for a progress that was never started (all zero), or stopped before.
 */
void by_cli_progress_stop(struct by_cli_progress *progress);

/* --time-limit: seconds above 0, up to a year. -1, or an exit status after an error was printed. */
int by_cli_time_limit(const char *text, double *seconds);
/* The most memory that this process has had (bytes). */
long long by_cli_memory(void);

#endif
