/*
 * A kernel reads its input once. So if the owner writes to the input meanwhile, the result is one
 * of the two values and the guard holds. The kernels run one instruction at a time (step.h), and
 * between instructions the test overwrites their input with either of two values.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"
#include "tests/unit/offload/reduce/step.h"

#define COUNT       37u /* elements: vectors and a remainder of each size */
#define BYTES       (8 * COUNT)
#define SHIFT_BYTES 1u  /* of the input: users' buffers may have any alignment */
#define CHANGES_MIN 16u /* in one run; fewer mean that stepping does not work */
#define PAIR_RUNS   4u  /* of each kernel */
#define GATHER_RUNS 1u
#define PAIR_ODDS   16u /* one step in so many writes the second value: some runs never read it */

enum what { LOAD = 1, ACCUMULATE, COPY, PAIR, GATHER };

/* Memory shared with the stepped kernel. */
struct shared {
    enum what what;
    unsigned isa, op, dtype;
    uint32_t count, guard, psum, psums[2];
    int holds;
    volatile int inside; /* the kernel is running */
    uint8_t in[BYTES + SHIFT_BYTES], second[BYTES + SHIFT_BYTES], acc[BYTES];
};

static struct shared *shared;
static unsigned changes;  /* of the input while the kernel ran */
static unsigned odds = 2; /* one in so many writes the second value */
static uint8_t values[2][BYTES], before[BYTES];
static struct by_prng prng;

/* Adds both inputs, as a pair, to the slot. */
static void add_pair(const struct by_reducer *reducer, const uint8_t *in, struct shared *with)
{
    struct by_terms terms = {.in = {in, with->second + SHIFT_BYTES}, .inputs = 2, .pairs = 1, .begun = 1};
    uint32_t guard = reducer->add_terms(with->acc, &terms, with->count);

    with->holds = terms.before == with->guard && terms.psum[0] == with->psum && terms.psum[1] == with->psum;
    with->guard = guard;
}

static void call_kernel(void *memory)
{
    struct shared *with = memory;
    const struct by_reducer *reducer = by_reducer_get(with->isa, with->op, with->dtype);
    const uint8_t *in = with->in + SHIFT_BYTES;

    with->inside = 1;
    if (with->what == LOAD)
        with->guard = reducer->load(with->acc, in, with->count);
    else if (with->what == COPY)
        with->guard = reducer->psum_copy(with->acc, in, with->count);
    else if (with->what == GATHER)
        with->guard = reducer->gather(with->acc, (const void *[]){in, with->second + SHIFT_BYTES}, 2,
                                      with->count, with->psums);
    else if (with->what == PAIR)
        add_pair(reducer, in, with);
    else
        with->holds = reducer->accumulate(with->acc, in, with->count, &with->guard);
    with->inside = 0;
}

static void change_input(void *memory)
{
    struct shared *with = memory;

    if (!with->inside)
        return;
    memcpy(with->in + SHIFT_BYTES, values[by_prng_below(&prng, odds) == 0], BYTES);
    if (with->what == PAIR || with->what == GATHER)
        memcpy(with->second + SHIFT_BYTES, values[by_prng_below(&prng, odds) == 0], BYTES);
    changes++;
}

/* Runs the kernel that `shared` describes. Between instructions the input changes to either
 * value. */
static void run_kernel(void)
{
    changes = 0;
    memcpy(shared->in + SHIFT_BYTES, values[0], BYTES);
    assert_true(step_run(change_input) > 0);
    assert_true(changes >= CHANGES_MIN);
}

static int is_either(uint64_t found, uint64_t a, uint64_t b)
{
    return found == a || found == b;
}

/* Copies are in words of at least 32 bits. */
static int is_either_by_words(uint64_t found, uint64_t a, uint64_t b)
{
    return is_either(found >> 32, a >> 32, b >> 32) && is_either((uint32_t)found, (uint32_t)a, (uint32_t)b);
}

/* Returns the number of elements of the slot that have neither value, plus one if its guard is
 * wrong. */
static unsigned count_wrong(unsigned op, unsigned dtype)
{
    const struct by_reducer *reducer = by_reducer_get(shared->isa, op, dtype);
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

/* Tests loads, and then accumulation onto loaded values, of one operator and type. */
static void check_pair(unsigned isa, unsigned op, unsigned dtype, uint64_t seed)
{
    shared->isa = isa;
    shared->op = op;
    shared->dtype = dtype;
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
    skip(); /* sanitized kernels are not those of a release, and take ten times the steps */
#endif
    prng = (struct by_prng){seed};
    FOR_EACH_ISA(isa)
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
            if (oracle_defined(op, dtype))
                check_pair(isa, op, dtype, seed);
}

/* Returns the number of elements of the slot without a pair of the first value, plus one if its
 * guard is wrong. */
static unsigned count_wrong_pairs(unsigned op, unsigned dtype)
{
    const struct by_reducer *reducer = by_reducer_get(shared->isa, op, dtype);
    unsigned wrong = shared->guard != oracle_psum(shared->acc, (size_t)COUNT * reducer->acc_bytes);
    unsigned slot_dtype = dtype == BY_DTYPE_F64 ? BY_DTYPE_F64 : BY_DTYPE_F32;

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t place = slot_place(dtype, i, COUNT);
        uint64_t found = element_get(shared->acc, reducer->acc_bytes, place);
        uint64_t in = element_get(values[0], reducer->element_bytes, i);
        uint64_t pair = oracle_apply(op, dtype, oracle_load(dtype, in), in);

        wrong += found != oracle_apply(op, slot_dtype, element_get(before, reducer->acc_bytes, place), pair);
    }
    return wrong;
}

/* Adds pairs of one operator and type. Returns how many had the psum of the first value. */
static unsigned check_two(unsigned isa, unsigned op, unsigned dtype, uint64_t seed)
{
    const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
    unsigned held = 0;

    shared->isa = isa;
    shared->op = op;
    shared->dtype = dtype;
    shared->count = COUNT;
    for (unsigned run = 0; run < PAIR_RUNS; run++) {
        draw();
        memcpy(before, shared->acc, BYTES);
        memcpy(shared->second + SHIFT_BYTES, values[0], BYTES);
        shared->guard = oracle_psum(before, (size_t)COUNT * reducer->acc_bytes);
        shared->psum = oracle_psum(values[0], (size_t)COUNT * reducer->element_bytes);
        run_kernel();
        if (!shared->holds)
            continue; /* the slot is invalid */
        held++;
        if (count_wrong_pairs(op, dtype) > 0) {
            seed_print("reduce-once", seed);
            fail_msg("%s %s %s: a pair whose psum holds has other values, or the guard is wrong",
                     by_isa_name(isa), by_op_name(op), by_dtype_name(dtype));
        }
    }
    return held;
}

static void a_pair_whose_psum_holds_is_of_the_values_of_that_psum(void **state)
{
    uint64_t seed = seed_get();
    unsigned held = 0;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    prng = (struct by_prng){seed};
    odds = PAIR_ODDS;
    shared->what = PAIR;
    FOR_EACH_ISA(isa)
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
            if (oracle_defined(op, dtype) && by_reducer_get(isa, op, dtype)->add_terms)
                held += check_two(isa, op, dtype, seed);
    odds = 2;
    printf("pairs whose psum held: %u\n", held);
    assert_true(held > 0);
}

/* Returns the number of elements of the slot that are not of two inputs with the first value, plus
 * one if its guard is wrong. */
static unsigned count_wrong_gathered(unsigned op, unsigned dtype)
{
    const struct by_reducer *reducer = by_reducer_get(shared->isa, op, dtype);
    unsigned wrong = shared->guard != oracle_psum(shared->acc, (size_t)COUNT * reducer->acc_bytes);

    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t in = element_get(values[0], reducer->element_bytes, i);

        wrong += element_get(shared->acc, reducer->acc_bytes, slot_place(dtype, i, COUNT)) !=
                 oracle_apply(op, dtype, oracle_load(dtype, in), in);
    }
    return wrong;
}

/* Gathers two inputs with one operator and type. Returns how often both had the psum of the first
 * value. */
static unsigned check_gather(unsigned isa, unsigned op, unsigned dtype, uint64_t seed)
{
    unsigned held = 0;

    shared->isa = isa;
    shared->op = op;
    shared->dtype = dtype;
    shared->count = COUNT;
    for (unsigned run = 0; run < GATHER_RUNS; run++) {
        uint32_t psum;

        draw();
        memcpy(shared->second + SHIFT_BYTES, values[0], BYTES);
        psum = oracle_psum(values[0], (size_t)COUNT * oracle_element_bytes(dtype));
        run_kernel();
        if (shared->psums[0] != psum || shared->psums[1] != psum)
            continue; /* the slot is invalid */
        held++;
        if (count_wrong_gathered(op, dtype) > 0) {
            seed_print("reduce-once", seed);
            fail_msg("%s %s %s: gathered inputs whose psums hold have other values, or the guard is wrong",
                     by_isa_name(isa), by_op_name(op), by_dtype_name(dtype));
        }
    }
    return held;
}

static void gathered_inputs_whose_psums_hold_are_of_the_values_of_those_psums(void **state)
{
    uint64_t seed = seed_get();
    unsigned held = 0;

    (void)state;
    if (!BY_GATHERS)
        skip();
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    prng = (struct by_prng){seed};
    odds = PAIR_ODDS;
    shared->what = GATHER;
    FOR_EACH_ISA(isa)
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
            if (oracle_defined(op, dtype))
                held += check_gather(isa, op, dtype, seed);
    odds = 2;
    printf("gathers whose psums held: %u\n", held);
    assert_true(held > 0);
}

static void what_is_copied_is_what_is_summed(void **state)
{
    uint64_t seed = seed_get();

    (void)state;
    prng = (struct by_prng){seed};
    shared->what = COPY;
    FOR_EACH_ISA(isa)
    for (uint32_t bytes = BYTES - 8; bytes <= BYTES; bytes++) {
        shared->isa = isa;
        shared->op = BY_OP_SUM;
        shared->dtype = BY_DTYPE_F32;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_copied_is_what_is_summed),
        cmocka_unit_test(what_changes_under_a_kernel_is_one_of_both_values),
        cmocka_unit_test(a_pair_whose_psum_holds_is_of_the_values_of_that_psum),
        cmocka_unit_test(gathered_inputs_whose_psums_hold_are_of_the_values_of_those_psums),
    };
    int failed;

    shared = step_begin(sizeof(*shared), call_kernel);
    if (!shared) {
        printf("1..0 # SKIP a process cannot be run step by step: %s\n", strerror(errno));
        return 0;
    }
    isa_print();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    step_end();
    return failed;
}
