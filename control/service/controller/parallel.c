/* Threads that each take the next index. See parallel.h. */
#include "control/service/controller/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "control/base/alloc.h"

struct crew {
    uint32_t count;
    _Atomic uint32_t next;
    by_parallel_fn *work;
    void *context;
};

static void *run(void *argument)
{
    struct crew *crew = argument;
    uint32_t index;

    while ((index = atomic_fetch_add(&crew->next, 1)) < crew->count)
        crew->work(crew->context, index);
    return NULL;
}

void by_parallel(uint32_t count, uint32_t most, by_parallel_fn *work, void *context)
{
    struct crew crew = {.count = count, .work = work, .context = context};
    uint32_t wanted = count < most ? count : most, started = 0;
    pthread_t *threads = by_alloc(wanted, sizeof(*threads));
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, run, &crew) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run(&crew);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}
