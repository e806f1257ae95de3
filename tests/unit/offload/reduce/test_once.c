/*
 * A kernel looks at its input once, so that what its owner writes meanwhile gives one of the two values and a
 * guard that holds. A child runs the kernels one instruction at a time, and in between its input is written
 * anew, with either of two values.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"

#define COUNT       37u /* elements: vectors and all that is left behind them */
#define BYTES       (8 * COUNT)
#define STEPS_MAX   (1u << 20) /* of one kernel: far more than it takes */
#define SHIFT_BYTES 1u         /* of the input: users' buffers lie anywhere */

enum once_what { LOAD = 1, ACCUMULATE, COPY };

/* What both processes see. */
struct once_shared {
    const struct by_reducer *reducer;
    enum once_what what;
    uint32_t count, guard;
    int holds;
    volatile int inside; /* the kernel runs */
    uint8_t in[BYTES + SHIFT_BYTES], acc[BYTES];
};

static struct once_shared *shared;
static pid_t child;
static uint8_t values[2][BYTES], before[BYTES];
static struct by_prng prng;

static _Noreturn void live(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    for (;;) {
        const uint8_t *in = shared->in + SHIFT_BYTES;

        raise(SIGSTOP);
        shared->inside = 1;
        if (shared->what == LOAD)
            shared->guard = shared->reducer->load(shared->acc, in, shared->count);
        else if (shared->what == COPY)
            shared->guard = shared->reducer->psum_copy(shared->acc, in, shared->count);
        else
            shared->holds = shared->reducer->accumulate(shared->acc, in, shared->count, &shared->guard);
        shared->inside = 0;
    }
}

static int await_stop(void)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    return WSTOPSIG(status);
}

/* Runs the kernel that `shared` describes; between two instructions the input is of either value. */
static void run_kernel(void)
{
    unsigned steps = 0;

    memcpy(shared->in + SHIFT_BYTES, values[0], BYTES);
    do {
        if (shared->inside)
            memcpy(shared->in + SHIFT_BYTES, values[by_prng_below(&prng, 2)], BYTES);
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_true(steps++ < STEPS_MAX);
    } while (await_stop() != SIGSTOP);
}

static int is_either(uint64_t found, uint64_t a, uint64_t b)
{
    return found == a || found == b;
}

/* What is copied is so in words of 32 bits at least. */
static int is_either_by_words(uint64_t found, uint64_t a, uint64_t b)
{
    return is_either(found >> 32, a >> 32, b >> 32) && is_either((uint32_t)found, (uint32_t)a, (uint32_t)b);
}

/* Elements of the slot that are of neither value, and one more if its guard is wrong. */
static unsigned count_wrong(unsigned op, unsigned dtype)
{
    const struct by_reducer *reducer = shared->reducer;
    unsigned wrong = shared->guard != oracle_psum(shared->acc, (size_t)COUNT * reducer->acc_bytes);

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t place = slot_place(dtype, i, COUNT);
        uint64_t new[2], found;

        for (unsigned v = 0; v < 2; v++) {
            uint64_t in = element_get(values[v], reducer->element_bytes, i);

            new[v] = shared->what == LOAD
                         ? oracle_load(dtype, in)
                         : oracle_apply(op, dtype, element_get(before, reducer->acc_bytes, place), in);
        }
        found = element_get(shared->acc, reducer->acc_bytes, place);
        wrong += shared->what == LOAD ? !is_either_by_words(found, new[0], new[1])
                                      : !is_either(found, new[0], new[1]);
    }
    return wrong;
}

static void draw(void)
{
    for (size_t i = 0; i < BYTES; i++) {
        values[0][i] = (uint8_t)by_prng_next(&prng);
        values[1][i] = (uint8_t)by_prng_next(&prng);
    }
}

/* Loads, and then accumulates to what was loaded, of one operator and type. */
static void check_pair(unsigned isa, unsigned op, unsigned dtype, uint64_t seed)
{
    shared->reducer = by_reducer_get(isa, op, dtype);
    shared->count = COUNT;
    for (shared->what = LOAD; shared->what <= ACCUMULATE; shared->what++) {
        unsigned wrong;

        draw();
        shared->holds = 1;
        run_kernel();
        wrong = count_wrong(op, dtype);
        if (wrong > 0 || !shared->holds) {
            seed_print("reduce-once", seed);
            fail_msg("%s %s %s, %s: %u of %u elements have neither value, or the guard is wrong",
                     by_isa_name(isa), by_op_name(op), by_dtype_name(dtype),
                     shared->what == LOAD ? "load" : "accumulate", wrong, COUNT);
        }
        memcpy(before, shared->acc, BYTES);
    }
}

static void what_changes_under_a_kernel_is_one_of_both_values(void **state)
{
    uint64_t seed = seed_get();

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* these kernels are not those that anybody runs, and take ten times the steps */
#endif
    prng = (struct by_prng){seed};
    FOR_EACH_ISA(isa)
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
            if (oracle_defined(op, dtype))
                check_pair(isa, op, dtype, seed);
}

static void what_is_copied_is_what_is_summed(void **state)
{
    uint64_t seed = seed_get();

    (void)state;
    prng = (struct by_prng){seed};
    shared->what = COPY;
    FOR_EACH_ISA(isa)
    for (uint32_t bytes = BYTES - 8; bytes <= BYTES; bytes++) {
        shared->reducer = by_reducer_get(isa, BY_OP_SUM, BY_DTYPE_F32);
        shared->count = bytes;
        draw();
        run_kernel();
        if (shared->guard != oracle_psum(shared->acc, bytes)) {
            seed_print("reduce-once", seed);
            fail_msg("%s: of %u bytes others were copied than summed", by_isa_name(isa), bytes);
        }
        for (uint32_t i = 0; i < bytes; i++)
            assert_true(is_either(shared->acc[i], values[0][i], values[1][i]));
    }
}

/* False: nobody may be run step by step here. */
static int begin(void)
{
    int status = 0;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 0;
    child = fork();
    if (child == 0)
        live();
    return child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

static int end(void **state)
{
    (void)state;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(shared, sizeof(*shared));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_copied_is_what_is_summed),
        cmocka_unit_test(what_changes_under_a_kernel_is_one_of_both_values),
    };

    if (!begin()) {
        printf("1..0 # SKIP a process cannot be run step by step: %s\n", strerror(errno));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, end);
}
