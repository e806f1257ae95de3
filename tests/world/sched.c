/* Virtual time, fibers and processes. See vm.h. Fibers switch by setjmp, which unlike swapcontext
 * needs no call of the system. */
#include "tests/world/vm.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)1 << 20)
/* Calls after which a zombie that has not ended is reported. */
#define PATIENCE 2000000u
/* Calls at one time after which a program is reported to spin. */
#define SPIN 100000u
/* Time at which the virtual clocks begin: 2026, and a machine that has been up for a day. */
#define EPOCH_S UINT64_C(1780000000)
#define BOOT_S  UINT64_C(86400)

struct vm vm;

struct vm_fiber {
    struct vm_fiber *next; /* of the process */
    struct vm_fiber *spare;
    struct vm_process *process;
    jmp_buf at;
    ucontext_t first;
    void *stack;
    void *(*run)(void *);
    void *argument;
    const void *waits_on; /* a condition, a semaphore, a fiber */
    uint64_t block;       /* number of the present block */
    bool started, ready, done;
    int number; /* errno */
};

struct vm_event {
    uint64_t at_ns, order;
    vm_event_fn *call;
    void *context;
    uint64_t number;
    bool owned; /* the context is freed with the event */
};

static struct vm_event *heap;
static uint32_t heap_count, heap_room;
static uint64_t orders;
static struct vm_fiber *running, *spares;
static struct vm_fiber **ready;
static uint32_t ready_count, ready_room;
static jmp_buf scheduler;
static uint64_t calls_ns;
static uint32_t calls_now; /* at that time */

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- trace ---- */

uint32_t vm_draw(uint32_t below)
{
    return (uint32_t)by_prng_below(&vm.prng, below);
}

void vm_trace(const char *format, ...)
{
    char text[900];
    va_list arguments;
    int used = snprintf(text, sizeof(text), "%8.3f ", (double)vm.now_ns / 1e9);

    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
    va_end(arguments);
    for (const char *at = text; *at != 0; at++)
        vm.hash = (vm.hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    if (vm.verbose) {
        fputs(text, stdout);
        fputc('\n', stdout);
    }
}

void vm_violate(const char *format, ...)
{
    va_list arguments;

    vm.failures++;
    if (vm.failed || vm.trial)
        return;
    vm.failed = true;
    va_start(arguments, format);
    vsnprintf(vm.violation, sizeof(vm.violation), format, arguments);
    va_end(arguments);
    vm_trace("VIOLATION: %s", vm.violation);
}

/* ---- events ---- */

static bool before(const struct vm_event *a, const struct vm_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void add_event(uint64_t at_ns, vm_event_fn *call, void *context, uint64_t number, bool owned)
{
    struct vm_event event = {.owned = owned,
                             .at_ns = at_ns > vm.now_ns ? at_ns : vm.now_ns,
                             .order = ++orders,
                             .call = call,
                             .context = context,
                             .number = number};
    uint32_t at = heap_count++;

    if (heap_count > heap_room) {
        heap_room = 2 * heap_room + 256;
        heap = must(realloc(heap, heap_room * sizeof(*heap)));
    }
    while (at > 0 && before(&event, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = event;
}

void vm_at(uint64_t at_ns, vm_event_fn *call, void *context, uint64_t number)
{
    add_event(at_ns, call, context, number, false);
}

void vm_at_with(uint64_t at_ns, vm_event_fn *call, void *memory)
{
    add_event(at_ns, call, memory, 0, true);
}

static struct vm_event pop(void)
{
    struct vm_event first = heap[0], last = heap[--heap_count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= heap_count)
            break;
        if (child + 1 < heap_count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* ---- fibers ---- */

struct vm_fiber *vm_fiber(void)
{
    return running;
}

struct vm_process *vm_self(void)
{
    return running != NULL ? running->process : NULL;
}

void vm_wake(struct vm_fiber *fiber)
{
    if (fiber == NULL || fiber->ready || fiber->done || fiber == running)
        return;
    fiber->ready = true;
    if (ready_count == ready_room) {
        ready_room = 2 * ready_room + 64;
        ready = must(realloc(ready, ready_room * sizeof(struct vm_fiber *)));
    }
    ready[ready_count++] = fiber;
}

static void on_time(void *context, uint64_t number)
{
    struct vm_fiber *fiber = context;

    if (fiber->block == number)
        vm_wake(fiber);
}

static void leave(void)
{
    running->number = errno;
    if (_setjmp(running->at) == 0)
        _longjmp(scheduler, 1);
    errno = running->number;
}

void vm_block(uint64_t until_ns)
{
    struct vm_process *process = running->process;

    running->block++;
    if (process->zombie) {
        if (until_ns != VM_NEVER && until_ns > vm_time())
            process->skew_ns += until_ns - vm_time();
        vm_call();
        running->ready = true;
        if (ready_count == ready_room) {
            ready_room = 2 * ready_room + 64;
            ready = must(realloc(ready, ready_room * sizeof(struct vm_fiber *)));
        }
        ready[ready_count++] = running;
    } else if (until_ns != VM_NEVER) {
        vm_at(until_ns, on_time, running, running->block);
    }
    leave();
    running->block++;
    running->waits_on = NULL;
}

static _Noreturn void end_fiber(void)
{
    struct vm_fiber *self = running;

    self->done = true;
    for (struct vm_fiber *other = self->process->fibers; other != NULL; other = other->next)
        if (other->waits_on == self)
            vm_wake(other);
    _longjmp(scheduler, 1);
}

static void begin_fiber(void)
{
    running->run(running->argument);
    end_fiber();
}

static struct vm_fiber *start_fiber(struct vm_process *process, void *(*run)(void *), void *argument)
{
    struct vm_fiber *fiber = spares;
    void *stack;

    if (fiber != NULL)
        spares = fiber->spare;
    else
        fiber = must(calloc(1, sizeof(*fiber)));
    stack = fiber->stack;
    if (stack == NULL) {
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1, 0);
        if (stack == MAP_FAILED)
            abort();
    }
    {
        uint64_t block = fiber->block + 1; /* timers of its former life do not count */

        memset(fiber, 0, sizeof(*fiber));
        fiber->block = block;
    }
    fiber->stack = stack;
    fiber->process = process;
    fiber->run = run;
    fiber->argument = argument;
    fiber->next = process->fibers;
    process->fibers = fiber;
    vm_wake(fiber);
    return fiber;
}

static void free_fiber(struct vm_fiber *fiber)
{
    for (struct vm_fiber **at = &fiber->process->fibers; *at != NULL; at = &(*at)->next)
        if (*at == fiber) {
            *at = fiber->next;
            break;
        }
    fiber->done = true;
    fiber->spare = spares;
    spares = fiber;
}

static void resume(struct vm_fiber *fiber)
{
    struct vm_process *process = fiber->process;

    fiber->ready = false;
    if (fiber->done)
        return;
    running = fiber;
    if (_setjmp(scheduler) == 0) {
        if (fiber->started)
            _longjmp(fiber->at, 1);
        fiber->started = true;
        getcontext(&fiber->first);
        fiber->first.uc_stack.ss_sp = fiber->stack;
        fiber->first.uc_stack.ss_size = STACK_BYTES;
        fiber->first.uc_link = NULL;
        makecontext(&fiber->first, begin_fiber, 0);
        setcontext(&fiber->first);
        abort();
    }
    running = NULL;
    (void)process;
}

/* ---- processes ---- */

static void *run_process(void *argument)
{
    struct vm_process *process = argument;

    process->main(process->context);
    process->done = true;
    return NULL;
}

void vm_process_start(struct vm_process *process, const char *name, void (*main)(void *), void *context)
{
    process->name = name;
    process->main = main;
    process->context = context;
    process->signal_fd = -1;
    start_fiber(process, run_process, process);
}

/* Frees the fibers of a process that has ended. */
static void reap(struct vm_process *process)
{
    while (process->fibers != NULL) {
        struct vm_fiber *fiber = process->fibers;

        for (uint32_t i = 0; i < ready_count;)
            if (ready[i] == fiber)
                ready[i] = ready[--ready_count];
            else
                i++;
        free_fiber(fiber);
    }
}

void vm_process_kill(struct vm_process *process)
{
    if (process->zombie || process->done)
        return;
    vm_trace("%s is killed", process->name);
    process->zombie = true;
    process->kill_in = 0;
    vm_net_killed(process);
    vm_disk_killed(process);
    if (process->killed != NULL)
        process->killed(process->context);
    for (struct vm_fiber *fiber = process->fibers; fiber != NULL; fiber = fiber->next)
        vm_wake(fiber);
}

bool vm_call(void)
{
    struct vm_process *process = vm_self();

    if (process == NULL)
        return false;
    vm.calls++;
    if (vm.now_ns != calls_ns) {
        calls_ns = vm.now_ns;
        calls_now = 0;
    } else if (++calls_now == SPIN && !process->zombie) {
        vm_violate("%s spins: it makes calls that do not wait, without end", process->name);
    }
    if (process->kill_in > 0 && --process->kill_in == 0)
        vm_process_kill(process);
    if (process->zombie && ++process->patience > PATIENCE) {
        fprintf(stderr, "world: %s does not end after it was killed\n", process->name);
        abort();
    }
    return process->zombie;
}

uint64_t vm_time(void)
{
    const struct vm_process *process = vm_self();

    return vm.now_ns + (process != NULL ? process->skew_ns : 0);
}

/* ---- the run ---- */

void vm_open(uint64_t seed, int verbose)
{
    vm = (struct vm){.prng.state = by_prng_mix(seed), /* so that streams of neighbours do not overlap */
                     .verbose = verbose,
                     .wall_ns = (int64_t)(EPOCH_S * VM_S),
                     .hash = UINT64_C(0xcbf29ce484222325)};
    heap_count = ready_count = 0;
    calls_ns = calls_now = 0;
    orders = 0;
    vm_net_open();
    vm_disk_open();
}

void vm_close(void)
{
    for (uint32_t i = 0; i < heap_count; i++)
        if (heap[i].owned)
            free(heap[i].context);
    vm_net_close();
    vm_disk_close();
}

static void run_fibers(void)
{
    while (ready_count > 0) {
        uint32_t at = ready_count > 1 ? vm_draw(ready_count) : 0;
        struct vm_fiber *fiber = ready[at];
        struct vm_process *process = fiber->process;

        memmove(&ready[at], &ready[at + 1], (--ready_count - at) * sizeof(struct vm_fiber *));
        resume(fiber);
        if (process->done)
            reap(process);
    }
}

void vm_run(uint64_t until_ns)
{
    run_fibers();
    while (!vm.failed && heap_count > 0 && heap[0].at_ns <= until_ns) {
        struct vm_event event = pop();

        vm.now_ns = event.at_ns;
        event.call(event.context, event.number);
        if (event.owned)
            free(event.context);
        run_fibers();
    }
    if (!vm.failed && vm.now_ns < until_ns)
        vm.now_ns = until_ns;
}

/* ---- the calls of threads and clocks ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_sigmask(int how, const void *set, void *old);
int __wrap_sigprocmask(int how, const void *set, void *old);
void *__wrap_signal(int number, void *handler);
int __wrap_sem_init(sem_t *semaphore, int shared, unsigned value);
int __wrap_sem_post(sem_t *semaphore);
int __wrap_sem_destroy(sem_t *semaphore);
int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned flags);
_Noreturn void __wrap__exit(int status);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    (void)attributes;
    vm_call();
    *thread = (pthread_t)start_fiber(vm_self(), run, argument);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct vm_fiber *fiber = (struct vm_fiber *)thread;

    (void)result;
    while (!fiber->done) {
        running->waits_on = fiber;
        vm_block(VM_NEVER);
    }
    free_fiber(fiber);
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex; /* fibers change at blocking calls only, which are not made under a lock */
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    (void)mutex;
    running->waits_on = condition;
    vm_block(VM_NEVER);
    return 0;
}

static void wake_all(const void *object)
{
    for (struct vm_fiber *fiber = vm_self()->fibers; fiber != NULL; fiber = fiber->next)
        if (fiber->waits_on == object)
            vm_wake(fiber);
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    wake_all(condition);
    return 0;
}

int __wrap_pthread_sigmask(int how, const void *set, void *old)
{
    (void)how;
    (void)set;
    (void)old;
    return 0;
}

int __wrap_sigprocmask(int how, const void *set, void *old)
{
    return __wrap_pthread_sigmask(how, set, old);
}

void *__wrap_signal(int number, void *handler)
{
    (void)number;
    (void)handler;
    return NULL;
}

int __wrap_sem_init(sem_t *semaphore, int shared, unsigned value)
{
    (void)shared;
    *(unsigned *)semaphore = value;
    return 0;
}

int __wrap_sem_post(sem_t *semaphore)
{
    ++*(unsigned *)semaphore;
    wake_all(semaphore);
    return 0;
}

int __wrap_sem_destroy(sem_t *semaphore)
{
    (void)semaphore;
    return 0;
}

int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    uint64_t until_ns = (uint64_t)until->tv_sec * VM_S + (uint64_t)until->tv_nsec;

    (void)clock;
    while (*(unsigned *)semaphore == 0) {
        if (!vm_self()->zombie && BOOT_S * VM_S + vm_time() >= until_ns) {
            errno = ETIMEDOUT;
            return -1;
        }
        running->waits_on = semaphore;
        vm_block(vm_self()->zombie ? VM_NEVER : until_ns - BOOT_S * VM_S);
    }
    --*(unsigned *)semaphore;
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t ns = BOOT_S * VM_S + vm_time();

    if (clock == CLOCK_REALTIME)
        ns = (uint64_t)((int64_t)vm_time() + vm.wall_ns);
    time->tv_sec = (time_t)(ns / VM_S);
    time->tv_nsec = (long)(ns % VM_S);
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    vm_call();
    vm_block(vm_time() + (uint64_t)time->tv_sec * VM_S + (uint64_t)time->tv_nsec);
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)by_prng_next(&vm.prng);
    return (ssize_t)count;
}

_Noreturn void __wrap__exit(int status)
{
    if (running == NULL)
        __real__exit(status);
    vm_process_kill(vm_self());
    end_fiber();
}
