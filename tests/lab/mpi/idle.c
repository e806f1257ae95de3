/* For LD_PRELOAD under MPICH, where a lab has more ranks than processors: a rank whose UCX has
 * nothing to do gives up the processor, as Open MPI does with mpi_yield_when_idle. Without it a
 * rank polls for its whole time slice while the one that it waits for does not run. */
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*original)(void *);
    unsigned done;

    /* By name: Python loads MPICH, and UCX with it, in a scope of its own. */
    if (original == NULL)
        *(void **)&original = dlsym(dlopen("libucp.so.0", RTLD_NOW), "ucp_worker_progress");
    done = original(worker);
    if (done == 0)
        sched_yield();
    return done;
}
