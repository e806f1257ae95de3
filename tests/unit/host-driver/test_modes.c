/*
 * Modes in use: by setting, by config, for each request. Mode exact gives the same bits on
 * different fabrics. Unsupported modes are reported. The caller's floating-point environment has no
 * effect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/prng.h"
#include "offload/table/image.h"
#include "tests/unit/host-driver/rig.h"

#define RANKS 4
#define COUNT 1501 /* elements: not a multiple of the block */

static struct fabric fabric;
static struct host_driver_rig rig;
static uint8_t in[RANKS][RANKS * COUNT * 8] __attribute__((aligned(64)));
static uint8_t out[RANKS][COUNT * 8] __attribute__((aligned(64)));
static uint8_t first[RANKS][COUNT * 8];

static void add_tree(int root, int through_hosts)
{
    int job = fabric.job_count > 0 ? 0 : fabric_job_add(&fabric, 1, 1);
    struct fabric_tree *tree = fabric_tree_add(&fabric, job, root, through_hosts, NULL);

    assert_non_null(tree);
    tree->window = 8;
    tree->payload_max = 256;
}

static int node_of(uint8_t kind)
{
    int n = 0;

    while (fabric.nodes[n].kind != kind)
        n++;
    return n;
}

/* Four hosts around a switch; below two levels; in a ring, on two trees through hosts. */
#define SHAPES 3
static void build(int shape)
{
    memset(&fabric, 0, sizeof(fabric));
    if (shape == 0) {
        rig_star(&fabric, RANKS, 8);
    } else if (shape == 1) {
        fabric_leafspine(&fabric, 1, 2, 2, 10000, 1000, 0);
        fabric.job_count = 0;
        add_tree(node_of(BY_NODE_SWITCH), 0);
    } else {
        fabric_ring(&fabric, RANKS, 10000, 1000);
        fabric.job_count = 0;
        add_tree(0, 1);
        add_tree(2, 1);
    }
}

static const struct {
    banyan_dtype_t dtype;
    unsigned mantissa, bias, spread;
} kinds[] = {{BANYAN_F32, 23, 127, 20},
             {BANYAN_F16, 10, 15, 6},
             {BANYAN_BF16, 7, 127, 12},
             {BANYAN_F64, 52, 1023, 20}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Floats of both signs whose exponents differ, so that the result depends on the order of
 * additions. */
static void fill(size_t kind)
{
    size_t bytes = banyan_dtype_size(kinds[kind].dtype);

    for (uint64_t r = 0; r < RANKS; r++) {
        struct by_prng prng = {r + 1};

        for (size_t i = 0; i < RANKS * COUNT; i++) {
            uint64_t bits = by_prng_next(&prng) & (((uint64_t)1 << kinds[kind].mantissa) - 1);

            bits |= (kinds[kind].bias - by_prng_below(&prng, kinds[kind].spread)) << kinds[kind].mantissa;
            bits |= by_prng_below(&prng, 2) << (8 * bytes - 1);
            memcpy(in[r] + i * bytes, &bits, bytes);
        }
    }
}

/* Initializes `collective` at every rank. */
static void describe(unsigned collective, banyan_dtype_t dtype, struct banyan_request **request)
{
    memset(out, 0xa5, sizeof(out));
    for (uint32_t r = 0; r < RANKS; r++) {
        banyan_status_t status =
            collective == 0
                ? banyan_allreduce_init(rig.comm[r], in[r], out[r], COUNT, dtype, BANYAN_SUM, &request[r])
            : collective == 1
                ? banyan_reduce_scatter_init(rig.comm[r], in[r], out[r], COUNT, dtype, BANYAN_SUM,
                                             &request[r])
                : banyan_reduce_init(rig.comm[r], in[r], out[r], COUNT, dtype, BANYAN_SUM, 3, &request[r]);

        assert_int_equal(status, BANYAN_OK);
    }
}

static void set_mode(struct banyan_request **request, banyan_mode_t mode)
{
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(banyan_request_mode(request[r], mode), BANYAN_OK);
}

static void mode_exact_gives_the_same_bits_on_every_fabric(void **state)
{
    struct banyan_request *request[RIG_RANKS_MAX];
    unsigned fast_differs = 0;

    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        fill(kind);
        for (unsigned collective = 0; collective < 3; collective++)
            for (int shape = 0; shape < SHAPES; shape++) {
                build(shape);
                rig_open(&rig, &fabric, 0);
                describe(collective, kinds[kind].dtype, request);
                set_mode(request, BANYAN_EXACT);
                rig_finish(&rig, request);
                if (shape == 0)
                    memcpy(first, out, sizeof(out));
                if (memcmp(first, out, sizeof(out)) != 0)
                    fail_msg("%s, collective %u: the bits on fabric %d are others than on 0",
                             banyan_dtype_name(kinds[kind].dtype), collective, shape);
                describe(collective, kinds[kind].dtype, request);
                rig_finish(&rig, request);
                fast_differs += memcmp(first, out, sizeof(out)) != 0;
                rig_close(&rig);
            }
    }
    assert_true(fast_differs > KINDS * 3); /* the result depends on the order */
}

static void mode_det_gives_the_same_bits_with_and_without_faults(void **state)
{
    struct banyan_request *request[RIG_RANKS_MAX];

    (void)state;
    rig_set("BANYAN_MODE", "det");
    fill(0);
    for (int shape = 0; shape < SHAPES; shape++)
        for (int seed = 0; seed < 5; seed++) {
            char text[8];

            snprintf(text, sizeof(text), "%d", seed);
            rig_set("BANYAN_REORDER", seed > 0 ? "0.2" : "0");
            rig_set("BANYAN_LOSS", seed > 0 ? "0.02" : "0");
            rig_set("BANYAN_SEED", text);
            build(shape);
            rig_open(&rig, &fabric, 0);
            assert_int_equal(banyan_comm_mode(rig.comm[0]), BANYAN_DET);
            describe(0, BANYAN_F32, request);
            rig_finish(&rig, request);
            rig_close(&rig);
            if (seed == 0)
                memcpy(first, out, sizeof(out));
            if (memcmp(first, out, sizeof(out)) != 0)
                fail_msg("fabric %d: the bits with seed %d are others than without faults", shape, seed);
        }
    rig_set("BANYAN_MODE", NULL);
    rig_set("BANYAN_REORDER", NULL);
    rig_set("BANYAN_LOSS", NULL);
    rig_set("BANYAN_SEED", NULL);
}

static void requests_in_mode_exact_are_posted_again_and_mixed_with_others(void **state)
{
    struct banyan_request *request[3][RANKS];

    (void)state;
    fill(0);
    rig_star(&fabric, RANKS, 8);
    rig_open(&rig, &fabric, 0);
    for (int q = 0; q < 3; q++)
        describe(0, BANYAN_F32, request[q]);
    set_mode(request[0], BANYAN_EXACT);
    set_mode(request[1], BANYAN_DET);
    for (int round = 0; round < 6; round++) {
        int q = round % 3;

        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(banyan_post(request[q][r]), BANYAN_OK);
        if (q == 0)
            expect(banyan_request_mode(request[q][0], BANYAN_FAST), BANYAN_EBUSY, "still runs");
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(banyan_wait(request[q][r]), BANYAN_OK);
        if (round == 0)
            memcpy(first, out, sizeof(out));
        if (q == 0)
            assert_memory_equal(first, out, sizeof(out));
    }
    for (int q = 0; q < 3; q++)
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(banyan_free(request[q][r]), BANYAN_OK);
    for (int round = 0; round < 3; round++) { /* later requests reuse the scratch memory of freed ones */
        describe(0, BANYAN_F32, request[0]);
        set_mode(request[0], BANYAN_EXACT);
        rig_finish(&rig, request[0]);
        assert_memory_equal(first, out, sizeof(out));
    }
    rig_close(&rig);
}

static void what_a_mode_does_not_have_is_refused(void **state)
{
    struct banyan_request *request;
    struct banyan_context *context;
    struct banyan_config config;
    float a[8] = {0}, b[8];

    (void)state;
    assert_int_equal(banyan_supports_mode(BANYAN_EXACT, BANYAN_PROD, BANYAN_F32), 0);
    assert_int_equal(banyan_supports_mode(BANYAN_EXACT, BANYAN_SUM, BANYAN_F16), 1);
    assert_int_equal(banyan_supports_mode(BANYAN_EXACT, BANYAN_PROD, BANYAN_I32), 1);
    assert_int_equal(banyan_supports_mode(BANYAN_EXACT, BANYAN_MAX, BANYAN_F64), 1);
    assert_int_equal(banyan_supports_mode(BANYAN_DET, BANYAN_PROD, BANYAN_F32), 1);
    assert_int_equal(banyan_supports_mode(BANYAN_DET, BANYAN_BXOR, BANYAN_F32), 0);
    assert_int_equal(banyan_supports_mode((banyan_mode_t)0, BANYAN_SUM, BANYAN_F32), 0);
    assert_int_equal(banyan_supports_mode((banyan_mode_t)77, BANYAN_SUM, BANYAN_F32), 0);
    assert_string_equal(banyan_mode_name(BANYAN_EXACT), "exact");
    assert_string_equal(banyan_mode_name((banyan_mode_t)77), "?");
    assert_int_equal(banyan_comm_mode(NULL), BANYAN_FAST);
    rig_star(&fabric, 2, 8);
    rig_set("BANYAN_MODE", "exact");
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_comm_mode(rig.comm[1]), BANYAN_EXACT);
    assert_int_equal(banyan_allreduce_init(rig.comm[0], a, b, 8, BANYAN_F32, BANYAN_PROD, &request),
                     BANYAN_OK);
    expect(banyan_post(request), BANYAN_EUNSUPPORTED, "mode exact does not support prod of f32");
    assert_int_equal(banyan_request_mode(request, BANYAN_FAST), BANYAN_OK);
    expect(banyan_request_mode(request, BANYAN_EXACT), BANYAN_EUNSUPPORTED,
           "mode exact does not support prod of f32");
    expect(banyan_request_mode(request, (banyan_mode_t)9), BANYAN_EINVAL, "mode 9 is unknown");
    expect(banyan_request_mode(NULL, BANYAN_FAST), BANYAN_EINVAL, "request is NULL");
    assert_int_equal(banyan_post(request), BANYAN_OK); /* the mode is still fast */
    rig_set("BANYAN_MODE", "quick");
    expect(banyan_init(NULL, &context), BANYAN_EINVAL,
           "'quick' is unknown; set BANYAN_MODE to fast, det or exact");
    banyan_config_init(&config);
    config.mode = "slow";
    expect(banyan_init(&config, &context), BANYAN_EINVAL, "'slow' is unknown");
    rig_set("BANYAN_MODE", NULL);
    rig_close(&rig);
}

static void ranks_in_different_modes_are_told(void **state)
{
    struct banyan_request *request[2];
    float a[2][8] = {{0}}, b[2][8];

    (void)state;
    rig_star(&fabric, 2, 8);
    rig_open(&rig, &fabric, 0);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(
            banyan_allreduce_init(rig.comm[r], a[r], b[r], 8, BANYAN_F32, BANYAN_SUM, &request[r]), 0);
        assert_int_equal(banyan_request_mode(request[r], r ? BANYAN_FAST : BANYAN_DET), BANYAN_OK);
    }
    for (int r = 0; r < 2; r++)
        assert_int_equal(banyan_post(request[r]), BANYAN_OK);
    for (int r = 0; r < 2; r++) {
        expect(banyan_wait(request[r]), BANYAN_EMISMATCH, "mode det");
        expect(banyan_wait(request[r]), BANYAN_EMISMATCH, "mode fast");
    }
    rig_close(&rig);
}

/* Removes the slots for mode det from every entry in the folder's switch. */
static void forget_det(const char *folder, const char *name)
{
    struct by_image_entry entry;
    static uint8_t image[1 << 16];
    char path[160];
    size_t bytes;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.table", folder, name);
    file = fopen(path, "r+b");
    assert_non_null(file);
    bytes = fread(image, 1, sizeof(image), file);
    by_image_entry(image, 0, &entry);
    entry.depth = 1;
    by_image_put_entry(image, 0, &entry);
    by_image_seal(image);
    rewind(file);
    assert_int_equal(fwrite(image, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void a_table_without_slots_for_mode_det_is_named(void **state)
{
    struct banyan_config config;
    struct banyan_context *context[RANKS];
    struct banyan_comm *comm[RANKS];
    struct banyan_fabric *opened;
    struct banyan_request *request[RANKS];
    char folder[64];

    (void)state;
    rig_star(&fabric, RANKS, 8);
    rig_write(&fabric, folder);
    forget_det(folder, fabric.nodes[node_of(BY_NODE_SWITCH)].name);
    assert_int_equal(banyan_fabric_open(folder, &opened), BANYAN_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        banyan_config_init(&config);
        config.fabric = opened;
        config.host = banyan_fabric_host(opened, r);
        config.mode = "det";
        assert_int_equal(banyan_init(&config, &context[r]), BANYAN_OK);
        assert_int_equal(banyan_comm_create(context[r], 0, &comm[r]), BANYAN_OK);
        assert_int_equal(
            banyan_allreduce_init(comm[r], in[r], out[r], COUNT, BANYAN_F32, BANYAN_SUM, &request[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(banyan_post(request[r]), BANYAN_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        expect(banyan_wait(request[r]), BANYAN_EUNSUPPORTED, "cannot compute sum of f32 in mode det");
        expect(banyan_wait(request[r]), BANYAN_EUNSUPPORTED, "banyan tables --det");
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(banyan_comm_destroy(comm[r]), BANYAN_OK);
        assert_int_equal(banyan_finalize(context[r]), BANYAN_OK);
    }
    assert_int_equal(banyan_fabric_close(opened), BANYAN_OK);
    rig_remove(folder);
}

#if defined(__x86_64__)
/* Flush to zero, treat subnormals as zero, round upwards. */
#define ENVIRONMENT (0x1f80u | 0x8000u | 0x0040u | 0x4000u)

static void the_callers_float_environment_does_not_show(void **state)
{
    static const banyan_mode_t modes[] = {BANYAN_FAST, BANYAN_DET, BANYAN_EXACT};
    struct banyan_request *request[RIG_RANKS_MAX];
    uint32_t before = __builtin_ia32_stmxcsr();

    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t m = 0; m < 3; m++)
            for (int odd = 0; odd < 2; odd++) {
                size_t bytes = banyan_dtype_size(kinds[kind].dtype);

                fill(kind);
                for (uint64_t r = 0; r < RANKS; r++)
                    for (uint64_t i = 0; i < COUNT; i += 3) {
                        uint64_t subnormal = 1 + r + i % 17;

                        memcpy(in[r] + i * bytes, &subnormal, bytes);
                    }
                build(2); /* a fixed order of additions: host by host */
                rig_open(&rig, &fabric, 0);
                describe(0, kinds[kind].dtype, request);
                set_mode(request, modes[m]);
                __builtin_ia32_ldmxcsr(odd ? ENVIRONMENT : before);
                rig_finish(&rig, request);
                assert_int_equal(__builtin_ia32_stmxcsr() & 0xffc0u, (odd ? ENVIRONMENT : before) & 0xffc0u);
                __builtin_ia32_ldmxcsr(before);
                rig_close(&rig);
                if (!odd)
                    memcpy(first, out, sizeof(out));
                assert_memory_equal(first, out, sizeof(out));
            }
}
#endif

static int quiet(void **state)
{
    (void)state;
    rig_set("BANYAN_LOG", "0");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mode_exact_gives_the_same_bits_on_every_fabric),
        cmocka_unit_test(mode_det_gives_the_same_bits_with_and_without_faults),
        cmocka_unit_test(requests_in_mode_exact_are_posted_again_and_mixed_with_others),
        cmocka_unit_test(what_a_mode_does_not_have_is_refused),
        cmocka_unit_test(ranks_in_different_modes_are_told),
        cmocka_unit_test(a_table_without_slots_for_mode_det_is_named),
#if defined(__x86_64__)
        cmocka_unit_test(the_callers_float_environment_does_not_show),
#endif
    };

    return cmocka_run_group_tests(tests, quiet, NULL);
}
