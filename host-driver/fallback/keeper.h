/*
 * A thread that keeps a carrier going while its owner does not: acknowledgements and repetitions
 * must not wait for a program that computes. The owner has a lease, renewed whenever it calls;
 * while it lasts the thread naps, so that who sends and receives all the time is not disturbed. A
 * lock keeps the two apart. An owner that comes while the thread sleeps for longer wakes it: what
 * the owner does may be due sooner than what the thread knows of.
 */
#ifndef BY_HOST_FALLBACK_KEEPER_H
#define BY_HOST_FALLBACK_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BY_KEEPER_LEASE_NS UINT64_C(10000000)

/* One step of what is kept, with the lock held. True: its owner may want to know. *deadline_ns:
 * when the next one is due, though nothing comes. */
typedef bool by_keeper_fn(void *kept, uint64_t now_ns, uint64_t *deadline_ns);

struct by_keeper {
    pthread_mutex_t lock;
    pthread_t thread;
    bool started;
    by_keeper_fn *step;
    void *kept;
    int fd;           /* of what is kept: readable when something comes */
    int wake;         /* of the thread: it is to end, or to see what its owner has done */
    int tell;         /* of the owner: readable when a step of the thread is news */
    bool dozes, told; /* with the lock: `wake` was not raised since the last step; `tell` was,
                         and was not heard */
    atomic_bool ends;
    atomic_uint_least64_t until_ns; /* of the lease */
};

/* The owner's thread; the lock is there from then on, and the thread with by_keeper_start. 0, or an
 * error with its text. */
int by_keeper_open(struct by_keeper *keeper);
int by_keeper_start(struct by_keeper *keeper, by_keeper_fn *step, void *kept, int fd);
/* Also after an error; not before by_keeper_open. */
void by_keeper_close(struct by_keeper *keeper);

/* The owner's calls: takes the lock, and a lease until `until_ns`; gives the lock back. */
void by_keeper_enter(struct by_keeper *keeper, uint64_t until_ns);
void by_keeper_leave(struct by_keeper *keeper);
/* Between these two: the owner is about to look at all that is news. */
void by_keeper_hear(struct by_keeper *keeper);

#endif
