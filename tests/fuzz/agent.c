/* Arbitrary bytes on a switch's control channel, in pieces of any size: every request gets an
 * answer, and no table is lost. */
#include "firmware/agent/agent.h"
#include "offload/base/errors.h"
#include "offload/reduce/reduce.h"
#include "tests/fuzz/input.h"

static int node_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    return by_engine_stage(node, image, bytes, fault);
}

static int node_commit(void *node)
{
    return by_engine_commit(node);
}

static void node_abort(void *node)
{
    by_engine_abort(node);
}

static const uint8_t *node_image(void *node, size_t *bytes)
{
    return by_engine_image(node, bytes);
}

static int node_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    (void)node;
    *out = (struct by_agent_counter){"rx", index};
    return index < 3 ? 0 : BY_ENOENT;
}

static int node_port(void *node, uint32_t index, struct by_agent_port *out)
{
    (void)node;
    memset(out, 0, sizeof(*out));
    out->name = "p0";
    return index < 2 ? 0 : BY_ENOENT;
}

static int node_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    return by_engine_oldest(node, index, out);
}

static int node_share(void *node, uint32_t index, struct by_engine_share *out)
{
    return by_engine_share(node, index, out);
}

static int node_way(void *node, uint32_t index, struct by_agent_way *out)
{
    (void)node;
    *out = (struct by_agent_way){
        .name = "p0", .driver = "d", .why = "", .offloads = "", .steer = "", .mtu = index};
    return index < 2 ? 0 : BY_ENOENT;
}

static const struct by_agent_ops ops = {
    .stage = node_stage,
    .commit = node_commit,
    .abort = node_abort,
    .image = node_image,
    .counter = node_counter,
    .port = node_port,
    .waiting = node_waiting,
    .share = node_share,
    .keep = NULL,
    .clock = NULL,
    .interface = NULL,
    .announce = NULL,
    .way = node_way,
};

/* First bytes from this value on select a channel with a key. */
#define GUARDED_FROM 240u

/* The first byte determines the size of the pieces, and whether the channel has a key. */
static void converse(struct by_agent *agent, struct input *input)
{
    static const struct by_siphash_key key = {1, 2};
    struct by_guard guard;
    static uint8_t out[BY_CHANNEL_OUT_MIN];
    struct by_channel channel;
    uint32_t first = input_bytes(input, 1), piece_max = first % GUARDED_FROM + 1;

    by_guard_open(&guard, &key, 1, 1);
    by_channel_init(&channel, first >= GUARDED_FROM ? &guard : NULL);
    while (input->size > 0) {
        size_t piece = input->size < piece_max ? input->size : piece_max, used = 0;
        int32_t bytes = by_channel_step(&channel, agent, input->data, piece, &used, out, sizeof(out));

        fuzz_count(bytes > 0); /* the message was complete and got its answer */
        FUZZ_CHECK(used <= piece && bytes <= (int32_t)sizeof(out));
        if (bytes < 0)
            return;
        FUZZ_CHECK(used > 0 || bytes > 0);
        input->data += used;
        input->size -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct by_engine_config engine_config = {.slot_count_max = 64,
                                                   .payload_max = 1408,
                                                   .image_bytes_max = 8192,
                                                   .entry_count_max = 16,
                                                   .relay_count_max = 16,
                                                   .repair_interval_ns = 1000,
                                                   .isa = BY_ISA_SCALAR};
    struct by_agent_config config = {.name = "fuzzed",
                                     .software = "banyan",
                                     .boot_nonce = 1,
                                     .port_count = 2,
                                     .slot_count = 64,
                                     .payload_max = 1408,
                                     .entry_max = 16,
                                     .image_bytes_max = 8192,
                                     .ops = &ops};
    size_t engine_bytes = by_engine_size(&engine_config), agent_bytes;
    void *engine_memory = aligned_alloc(64, (engine_bytes + 63) / 64 * 64), *agent_memory;
    struct by_engine *engine;
    struct by_agent *agent;
    struct input input = {data, size};
    static uint8_t answer[BY_RESPONSE_BYTES_MAX];

    FUZZ_CHECK(engine_memory != NULL &&
               by_engine_init(&engine, engine_memory, engine_bytes, &engine_config) == 0);
    config.node = engine;
    agent_bytes = by_agent_size(&config);
    agent_memory = aligned_alloc(64, (agent_bytes + 63) / 64 * 64);
    FUZZ_CHECK(agent_memory != NULL && by_agent_init(&agent, agent_memory, agent_bytes, &config) == 0);
    if (size <= BY_REQUEST_BYTES_MAX) { /* one message, without its length */
        fuzz_count(1);
        FUZZ_CHECK(by_agent_answer(agent, data, size, answer, sizeof(answer)) > 0);
    }
    converse(agent, &input);
    free(agent_memory);
    free(engine_memory);
    return 0;
}
