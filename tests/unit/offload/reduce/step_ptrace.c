/*
 * Steps a child process with ptrace. The child waits in SIGSTOP between two runs. Single-threaded.
 */
#include "tests/unit/offload/reduce/step.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void *shared;
static size_t shared_bytes;
static pid_t child;

static _Noreturn void live(void (*run)(void *))
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    for (;;) {
        raise(SIGSTOP);
        run(shared);
    }
}

/* Returns the signal that stopped the child; 0 if the child has ended. */
static int await_stop(void)
{
    int status;

    return waitpid(child, &status, 0) == child && WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

void *step_begin(size_t bytes, void (*run)(void *memory))
{
    shared_bytes = bytes;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return NULL;
    child = fork();
    if (child == 0)
        live(run);
    return child > 0 && await_stop() == SIGSTOP ? shared : NULL;
}

unsigned step_run(void (*change)(void *memory))
{
    unsigned steps = 0;

    for (;;) {
        int stop;

        change(shared);
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || ++steps == STEP_LIMIT)
            return 0;
        stop = await_stop();
        if (stop == SIGSTOP)
            return steps;
        if (stop != SIGTRAP)
            return 0;
    }
}

void step_end(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(shared, shared_bytes);
}
