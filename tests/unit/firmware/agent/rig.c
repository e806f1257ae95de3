/* Implements rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/firmware/agent/rig.h"

#include "offload/base/errors.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"

const struct star small = {.hosts = 2, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500, .cookie = 11};
const struct star wide = {
    .hosts = 4, .trees = 200, .window = 4, .payload_max = 64, .mtu = 1500, .cookie = 12};

static int op_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    return by_engine_stage(((struct rig_bench *)node)->engine, image, bytes, fault);
}

static int op_commit(void *node)
{
    struct rig_bench *bench = node;

    bench->commits++;
    return by_engine_commit(bench->engine);
}

static void op_abort(void *node)
{
    by_engine_abort(((struct rig_bench *)node)->engine);
}

static const uint8_t *op_image(void *node, size_t *bytes)
{
    return by_engine_image(((struct rig_bench *)node)->engine, bytes);
}

static int op_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    if (index > 0)
        return BY_ENOENT;
    *out = (struct by_agent_counter){.name = "rx",
                                     .value = by_engine_counters(((struct rig_bench *)node)->engine)->rx};
    return 0;
}

static int op_port(void *node, uint32_t index, struct by_agent_port *out)
{
    static const char *const names[] = {"p0", "p1"};

    (void)node;
    if (index >= 2)
        return BY_ENOENT;
    *out =
        (struct by_agent_port){.name = names[index], .rx_packets = index + 1, .rx_bytes = 100 * (index + 1u)};
    return 0;
}

static int op_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    return by_engine_oldest(((struct rig_bench *)node)->engine, index, out);
}

static void op_keep(void *node, const uint8_t *image, size_t bytes)
{
    struct rig_bench *bench = node;

    assert_true(bytes <= sizeof bench->kept);
    memcpy(bench->kept, image, bytes);
    bench->kept_bytes = bytes;
}

static void op_clock(void *node, uint64_t *now_ns, uint64_t *unix_ns)
{
    struct rig_bench *bench = node;

    *now_ns = bench->now_ns;
    *unix_ns = bench->now_ns ? bench->now_ns + UNIX_NS : 0;
}

/* Each port with another number. */
static int op_way(void *node, uint32_t index, struct by_agent_way *out)
{
    (void)node;
    *out = (struct by_agent_way){.name = "p",
                                 .driver = "net_test",
                                 .why = "",
                                 .offloads = "tx MULTI_SEGS",
                                 .steer = "",
                                 .mtu = 1500 + index,
                                 .rx_queues = 1,
                                 .tx_queues = 2,
                                 .rx_descriptors = 3,
                                 .tx_descriptors = 4,
                                 .mbps = 10000,
                                 .by_reference = 1,
                                 .late = 1,
                                 .down = 1};
    return 0;
}

static int op_interface(void *node, uint32_t index, struct by_agent_interface *out)
{
    static const struct by_lldp heard = {
        .source = {2, 0, 0, 0, 0, 9}, .node = "host1", .port = "eth3", .description = "d", .forwards = true};

    (void)node;
    if (index >= INTERFACES)
        return BY_ENOENT;
    snprintf(out->name, sizeof out->name, "p%u", index);
    out->mtu = 1500 + index;
    out->mac[5] = (uint8_t)index;
    out->numa = 1;
    if (index == 1)
        out->neighbour = &heard;
    return 0;
}

static void op_announce(void *node)
{
    ((struct rig_bench *)node)->announcements++;
}

static const struct by_agent_ops ops = {
    .stage = op_stage,
    .commit = op_commit,
    .abort = op_abort,
    .image = op_image,
    .counter = op_counter,
    .port = op_port,
    .waiting = op_waiting,
    .keep = op_keep,
    .clock = op_clock,
    .interface = op_interface,
    .announce = op_announce,
    .share = NULL,
    .way = op_way,
};

void start_agent(struct rig_bench *bench)
{
    assert_int_equal(
        by_agent_init(&bench->agent, bench->agent_memory, by_agent_size(&bench->config), &bench->config), 0);
    by_channel_init(&bench->channel, NULL);
}

/* Makes a bench whose node saved `saved` before its restart; NULL: nothing. */
static int make_bench_after(void **state, const struct star *saved)
{
    struct by_engine_config engine = {.slot_count_max = 1024,
                                      .payload_max = 1408,
                                      .image_bytes_max = IMAGE_BYTES_MAX,
                                      .entry_count_max = 512,
                                      .relay_count_max = 16,
                                      .repair_interval_ns = 1000,
                                      .isa = by_isa_best()};
    struct by_agent_config config = {.name = "leaf0",
                                     .software = "banyan test",
                                     .boot_nonce = 99,
                                     .port_count = PORTS,
                                     .slot_count = 1024,
                                     .payload_max = 1408,
                                     .entry_max = 512,
                                     .relay_max = 16,
                                     .share_max = 8,
                                     .able = by_Able_ABLE_REPLICATE,
                                     .board = "toaster",
                                     .image_bytes_max = IMAGE_BYTES_MAX};
    struct rig_bench *bench = calloc(1, sizeof *bench);
    size_t bytes = by_engine_size(&engine);

    assert_non_null(bench);
    config.node = bench;
    assert_int_equal(posix_memalign(&bench->engine_memory, 64, bytes), 0);
    assert_int_equal(by_engine_init(&bench->engine, bench->engine_memory, bytes, &engine), 0);
    if (saved) {
        bench->saved = star_image(saved, &bytes);
        config.saved = bench->saved;
        config.saved_bytes = (uint32_t)bytes;
    }
    assert_int_equal(posix_memalign(&bench->agent_memory, 64, by_agent_size(&config)), 0);
    bench->ops = ops;
    config.ops = &bench->ops;
    bench->config = config;
    start_agent(bench);
    *state = bench;
    return 0;
}

int make_bench(void **state)
{
    return make_bench_after(state, NULL);
}

int make_bench_restarted(void **state)
{
    return make_bench_after(state, &small);
}

int free_bench(void **state)
{
    struct rig_bench *bench = *state;

    free(bench->saved);
    free(bench->agent_memory);
    free(bench->engine_memory);
    free(bench);
    return 0;
}

int ask(struct rig_bench *bench)
{
    uint8_t frame[CLIENT_FRAME_MAX];
    size_t bytes = client_frame(&bench->request, frame), used = 0;
    int32_t made =
        by_channel_step(&bench->channel, bench->agent, frame, bytes, &used, bench->out, sizeof bench->out);

    assert_int_equal(used, bytes);
    assert_true(made > 0);
    client_decode(bench->out, (size_t)made, &bench->response);
    assert_int_equal(bench->response.version, BY_CONTROL_VERSION);
    assert_int_equal(bench->response.id, bench->request.id);
    assert_int_equal(bench->response.error == 0, bench->response.text[0] == 0);
    return bench->response.error;
}

int stage_all(struct rig_bench *bench, const uint8_t *image, size_t bytes)
{
    for (size_t offset = 0; offset < bytes; offset += bench->response.body.stage.received - offset) {
        size_t count = bytes - offset < 1000 ? bytes - offset : 1000;

        client_stage(&bench->request, image, bytes, (uint32_t)offset, (uint32_t)count);
        if (ask(bench) != 0)
            return bench->response.error;
        assert_int_equal(bench->response.body.stage.received, offset + count);
        if (offset + count == bytes)
            break;
    }
    return 0;
}

int validate(struct rig_bench *bench, uint64_t hash)
{
    client_request(&bench->request, by_Request_validate_tag);
    bench->request.body.validate.hash = hash;
    return ask(bench);
}

int commit(struct rig_bench *bench, uint64_t hash)
{
    client_request(&bench->request, by_Request_commit_tag);
    bench->request.body.commit.hash = hash;
    return ask(bench);
}

uint64_t active_hash(struct rig_bench *bench)
{
    size_t bytes;
    const uint8_t *image = by_engine_image(bench->engine, &bytes);

    return by_image_hash(image, bytes);
}

uint64_t push(struct rig_bench *bench, const struct star *star)
{
    size_t bytes;
    uint8_t *image = star_image(star, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, hash), 0);
    assert_int_equal(commit(bench, hash), 0);
    assert_int_equal(bench->response.body.commit.hash, hash);
    free(image);
    return hash;
}
