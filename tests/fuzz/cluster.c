/*
 * A complete small cluster controlled by the input: three engines and four endpoints, whose packets
 * are delivered, repeated, lost, damaged and delayed according to the fuzzer's bytes, and bits of
 * slots are flipped. Then the network is reliable, and every call must end: with the correct
 * elements unless memory was damaged, and never with wrong ones.
 */
#include "offload/base/bytes.h"
#include "offload/endpoint/endpoint.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "tests/fuzz/input.h"
#include "tests/sim/flip.h"

#define RANKS      4
#define NODES      7
#define CALLS      3
#define COUNT      40u /* elements of a call: three chunks of 64 bytes */
#define PACKETS    96
#define BURST      16
#define ROUNDS_MAX 400
#define ROUNDS_FEW 10 /* for a cluster that may never end: a rank informed of damage has left */

struct packet {
    uint8_t data[BY_WIRE_HEADER_BYTES + FUZZ_PAYLOAD + 8];
    uint16_t bytes, port;
    int node; /* destination */
    uint32_t src_ip, dst_ip;
};

struct cluster_rank {
    struct by_endpoint *endpoint;
    uint8_t *memory;
    uint32_t id[CALLS];
    int running[CALLS], error[CALLS];
    uint32_t send[CALLS][COUNT], recv[CALLS][COUNT];
    uint64_t scratch[CALLS][64];
};

struct cluster {
    struct by_engine *engine[NODES]; /* engines of the switches */
    struct cluster_rank rank[RANKS];
    struct packet packet[PACKETS];
    unsigned count;
    uint64_t now_ns;
    int damaged; /* the memory of a node */
};

static struct fabric fabric;
static uint8_t *images[NODES];
static size_t image_bytes[NODES];
static int rank_of[NODES];

static void build(void)
{
    struct fabric_tree *tree;

    fabric_leafspine(&fabric, 1, 2, 2, 1000, 1000, 0);
    fabric.cover = fuzz_cover();
    FUZZ_CHECK(fabric.node_count == NODES && fabric_job_add(&fabric, 1, 7) == 0);
    tree = fabric_tree_add(&fabric, 0, 0, 0, NULL);
    FUZZ_CHECK(tree != NULL);
    tree->window = 2;
    tree->payload_max = FUZZ_PAYLOAD;
    for (int n = 0; n < NODES; n++) {
        images[n] = fabric_image(&fabric, n, &image_bytes[n]);
        rank_of[n] = -1;
    }
    for (int r = 0; r < RANKS; r++)
        rank_of[fabric.jobs[0].rank_node[r]] = r;
}

static struct by_engine *open_engine(int node)
{
    struct by_engine_config config = {.slot_count_max = fabric_slots(&fabric, node),
                                      .payload_max = FUZZ_PAYLOAD,
                                      .image_bytes_max = (uint32_t)image_bytes[node],
                                      .entry_count_max = 1,
                                      .repair_interval_ns = 1000,
                                      .isa = BY_ISA_SCALAR};
    size_t bytes = by_engine_size(&config);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    struct by_image_fault fault;
    struct by_engine *engine;

    FUZZ_CHECK(bytes > 0 && memory != NULL && by_engine_init(&engine, memory, bytes, &config) == 0);
    FUZZ_CHECK(by_engine_stage(engine, images[node], image_bytes[node], &fault) == 0 &&
               by_engine_commit(engine) == 0);
    return engine;
}

static void open_rank(struct cluster_rank *rank, int r)
{
    int node = fabric.jobs[0].rank_node[r];
    struct by_endpoint_config config = {.image = images[node],
                                        .image_bytes = image_bytes[node],
                                        .job = 1,
                                        .rto_min_ns = 100000,
                                        .rto_max_ns = 1000000,
                                        .stall_ns = UINT64_C(1000000000000),
                                        .isa = BY_ISA_SCALAR,
                                        .nonce = 1000u + (uint32_t)r};
    size_t bytes = by_endpoint_size(&config);

    rank->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    FUZZ_CHECK(bytes > 0 && rank->memory != NULL &&
               by_endpoint_init(&rank->endpoint, rank->memory, bytes, &config) == 0);
}

/* ---- packets ---- */

static void put(struct cluster *c, int node, const struct by_tx *tx)
{
    int peer = fabric_peer(&fabric, node, tx->port);
    struct packet *p;

    FUZZ_CHECK(tx->kind == BY_TX_SEND && tx->payload_bytes <= FUZZ_PAYLOAD);
    if (c->count == PACKETS)
        memmove(&c->packet[0], &c->packet[1], --c->count * sizeof(struct packet)); /* the oldest is lost */
    p = &c->packet[c->count++];
    memcpy(p->data, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(p->data + BY_WIRE_HEADER_BYTES, tx->payload != NULL ? tx->payload : tx->small, tx->payload_bytes);
    p->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    p->node = peer;
    p->port = (uint16_t)fabric_port_to(&fabric, peer, node);
    p->src_ip = fabric_ip(&fabric, fabric.nodes[node].port_link[tx->port], node);
    p->dst_ip = tx->dst_ip;
}

static void step_rank(struct cluster *c, int r, const struct by_rx *rx)
{
    struct cluster_rank *rank = &c->rank[r];
    struct by_tx tx[BURST];
    uint32_t count;

    do {
        by_endpoint_step(rank->endpoint, c->now_ns, rx, rx != NULL, tx, BURST, &count);
        for (uint32_t i = 0; i < count; i++)
            put(c, fabric.jobs[0].rank_node[r], &tx[i]);
        rx = NULL;
    } while (count == BURST);
    for (int k = 0; k < CALLS; k++) {
        int error = rank->running[k] ? by_endpoint_test(rank->endpoint, rank->id[k], NULL) : BY_EAGAIN;

        if (error == BY_EAGAIN)
            continue;
        rank->running[k] = 0;
        rank->error[k] = error;
    }
}

static void deliver(struct cluster *c, const struct packet *p)
{
    struct by_rx rx = {.data = p->data,
                       .bytes = p->bytes,
                       .port = p->port,
                       .src_ip = p->src_ip,
                       .dst_ip = p->dst_ip,
                       .ecn = 2};
    struct by_tx tx[BY_CHILDREN_MAX + 2];
    uint32_t count = 0;

    fuzz_count(1);
    if (rank_of[p->node] >= 0) {
        step_rank(c, rank_of[p->node], &rx);
        return;
    }
    FUZZ_CHECK(by_engine_step(c->engine[p->node], c->now_ns, &rx, 1, tx, BY_CHILDREN_MAX + 2, &count) == 1);
    for (uint32_t i = 0; i < count; i++) {
        put(c, p->node, &tx[i]);
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(c->engine[p->node], tx[i].ref);
    }
}

static void take_out(struct cluster *c, unsigned at, struct packet *p)
{
    *p = c->packet[at];
    memmove(&c->packet[at], &c->packet[at + 1], (--c->count - at) * sizeof(struct packet));
}

/* ---- calls ---- */

static const uint8_t modes[CALLS] = {BY_MODE_FAST, BY_MODE_DET, BY_MODE_EXACT};

static uint32_t element(int call, uint32_t value)
{
    float real = (float)value;
    uint32_t bits;

    memcpy(&bits, &real, 4);
    return call == 0 ? value : bits;
}

static void post_all(struct cluster *c, uint32_t choice)
{
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < CALLS; k++) {
            struct cluster_rank *rank = &c->rank[r];
            struct by_call call = {.collective =
                                       choice >> k & 1 ? BY_COLLECTIVE_REDUCE : BY_COLLECTIVE_ALLREDUCE,
                                   .op = BY_OP_SUM,
                                   .dtype = k == 0 ? BY_DTYPE_I32 : BY_DTYPE_F32,
                                   .mode = modes[k],
                                   .root = 1,
                                   .count = COUNT,
                                   .send = rank->send[k],
                                   .recv = rank->recv[k],
                                   .scratch = rank->scratch[k]};

            for (uint32_t i = 0; i < COUNT; i++)
                rank->send[k][i] = element(k, ((uint32_t)r + 1) * 100 + i);
            FUZZ_CHECK(by_endpoint_scratch(rank->endpoint, &call) <= sizeof(rank->scratch[k]));
            FUZZ_CHECK(by_endpoint_post(rank->endpoint, &call, &rank->id[k], NULL) == 0);
            rank->running[k] = 1;
        }
}

static int all_ended(const struct cluster *c)
{
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < CALLS; k++)
            if (c->rank[r].running[k])
                return 0;
    return 1;
}

static void check(const struct cluster *c, uint32_t choice)
{
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < CALLS; k++) {
            FUZZ_CHECK(c->damaged || c->rank[r].error[k] == 0);
            if (c->rank[r].running[k] || c->rank[r].error[k] != 0 || (choice >> k & 1 && r != 1))
                continue;
            for (uint32_t i = 0; i < COUNT; i++)
                FUZZ_CHECK(c->rank[r].recv[k][i] == element(k, 1000 + RANKS * i));
        }
}

/* ---- the adversary ---- */

static void act(struct cluster *c, struct input *input)
{
    uint32_t what = input_bytes(input, 1), which = input_bytes(input, 1), word;
    struct packet p;
    struct by_prng prng = {which};

    if ((what & 7) < 6 && c->count == 0)
        return;
    switch (what & 7) {
    case 0:
    case 1:
    case 2: /* mostly the oldest, so that calls progress */
        take_out(c, what & 16 ? which % c->count : 0, &p);
        deliver(c, &p);
        break;
    case 3:
        p = c->packet[which % c->count];
        deliver(c, &p);
        break;
    case 4:
        take_out(c, which % c->count, &p);
        break;
    case 5:
        take_out(c, which % c->count, &p);
        word = input_bytes(input, 1) % (p.bytes / 4u);
        p.data[4 * word + (what >> 3 & 3)] ^= (uint8_t)(1u << (what >> 5));
        deliver(c, &p);
        break;
    case 6:
        c->now_ns += UINT64_C(1) << (10 + what / 8 % 12);
        step_rank(c, (int)(which % RANKS), NULL);
        break;
    default:
        if (what >> 3 == 31) /* one in 32 of these */
            c->damaged |= flip_slot(c->engine[which % 3], &prng);
        break;
    }
}

/* No more losses: delivers packets in FIFO order, and advances the time. */
static void be_kind(struct cluster *c)
{
    for (unsigned round = 0; round < (c->damaged ? ROUNDS_FEW : ROUNDS_MAX) && !all_ended(c); round++) {
        struct packet p;

        for (unsigned i = 0; i < 4 * PACKETS && c->count > 0; i++) {
            take_out(c, 0, &p);
            deliver(c, &p);
        }
        c->now_ns += 1100000;
        for (int r = 0; r < RANKS; r++)
            step_rank(c, r, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cluster c;
    struct input input = {data, size};
    uint32_t choice = input_bytes(&input, 1);

    if (fabric.node_count == 0)
        build();
    memset(&c, 0, sizeof(c));
    c.now_ns = 1000000000;
    for (int n = 0; n < NODES; n++)
        if (rank_of[n] < 0)
            c.engine[n] = open_engine(n);
    for (int r = 0; r < RANKS; r++)
        open_rank(&c.rank[r], r);
    post_all(&c, choice);
    for (int r = 0; r < RANKS; r++)
        step_rank(&c, r, NULL);
    while (input.size > 0)
        act(&c, &input);
    be_kind(&c);
    FUZZ_CHECK(c.damaged || all_ended(&c));
    check(&c, choice);
    for (int n = 0; n < NODES; n++)
        free(c.engine[n]);
    for (int r = 0; r < RANKS; r++)
        free(c.rank[r].memory);
    return 0;
}
