/* The progress core of a node; see progress.h. One thread per node. */
#include "host-driver/progress.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "host-driver/error.h"
#include "host-driver/float_env.h"
#include "host-driver/image_file.h"
#include "host-driver/isa.h"
#include "offload/base/bytes.h"
#include "offload/endpoint/resume.h"

#define HUGE_BYTES ((size_t)2 << 20)
/* minimum interval between two repairs of one bank: below the minimal retransmission timeout */
#define REPAIR_NS 1000000u
/* A tree of rounds does not end for lack of progress: it waits for ranks that are late (ns). */
#define FOREVER_NS UINT64_C(1000000000000000)

/* Allocates memory without page faults at use: touched, and in huge pages if available. */
static void *aligned(size_t bytes)
{
    size_t page = bytes >= HUGE_BYTES ? HUGE_BYTES : 64;
    size_t whole = (bytes + page - 1) / page * page;
    void *memory = aligned_alloc(page, whole);

    if (memory == NULL)
        return NULL;
    if (page == HUGE_BYTES)
        madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, whole);
    return memory;
}

/* Creates the engine; *memory belongs to it and is freed after it. */
static int open_engine(const struct by_progress_config *config, const struct by_image_header *header,
                       struct by_engine **made, void **memory)
{
    struct by_engine_config engine = {
        .slot_count_max = header->slot_count > 0 ? header->slot_count : 1,
        .payload_max = header->payload_max > 0 ? header->payload_max : BY_PAYLOAD_DEFAULT,
        .image_bytes_max = (uint32_t)config->image_bytes,
        .entry_count_max = header->count[BY_SECTION_ENTRY] > 0 ? header->count[BY_SECTION_ENTRY] : 1,
        .relay_count_max = header->count[BY_SECTION_RELAY] > 0 ? header->count[BY_SECTION_RELAY] : 1,
        .repair_interval_ns = REPAIR_NS,
        .isa = by_host_isa(),
        .tx_max = BY_TX_BATCH,
    };
    struct by_image_fault fault = {0};
    size_t bytes = by_engine_size(&engine);
    int error;

    if (bytes == 0)
        return by_fail(BY_ELIMIT, "the engine of %s does not support %u slots of %u bytes", header->name,
                       engine.slot_count_max, engine.payload_max);
    *memory = aligned(bytes);
    if (*memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for the engine of %s: %zu bytes", header->name, bytes);
    error = by_engine_init(made, *memory, bytes, &engine);
    if (error == 0)
        error = by_engine_stage(*made, config->image, config->image_bytes, &fault);
    if (error == 0)
        error = by_engine_commit(*made);
    if (error == 0)
        return 0;
    free(*memory);
    *memory = *made = NULL;
    return by_fail(error, "the engine of %s refuses its table: %s %u: %s (%llu)", header->name,
                   fault.section != NULL ? fault.section : "image", fault.index,
                   fault.what != NULL ? fault.what : by_error_text(error), (unsigned long long)fault.value);
}

/* Whether this node has work in trees besides its own leaf, or is a switch. */
static bool has_engine(const struct by_progress_config *config, const struct by_image_header *header)
{
    return header->count[BY_SECTION_ENTRY] > 0 || header->count[BY_SECTION_RELAY] > 0 || config->job == 0;
}

static struct by_endpoint_config endpoint_config(const struct by_progress_config *config)
{
    return (struct by_endpoint_config){
        .image = config->image,
        .image_bytes = config->image_bytes,
        .job = (uint16_t)config->job,
        .inflight_max = config->inflight_max,
        .batch = config->batch,
        .stall_ns = config->stall_ns,
        .absent_ns = config->absent_ns,
        .isa = by_host_isa(),
        .resume = config->resume,
        .shared = config->shared,
        .marked = config->marked,
    };
}

/* Creates an endpoint; *memory belongs to it, also after an error. */
static int open_endpoint(struct by_endpoint_config *config, const char *name, struct by_endpoint **endpoint,
                         void **memory)
{
    size_t bytes = by_endpoint_size(config);
    int error;

    if (getrandom(&config->nonce, sizeof(config->nonce), 0) != (ssize_t)sizeof(config->nonce))
        return by_fail(BY_EIO, "no random number for the session of job %u: %s", config->job,
                       strerror(errno));
    if (bytes == 0)
        return by_fail(BY_ENOENT, "according to its table, %s is in no tree of job %u%s", name, config->job,
                       config->rounds ? " by which ranks level" : "");
    *memory = aligned(bytes);
    if (*memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for the endpoint of %s: %zu bytes", name, bytes);
    error = by_endpoint_init(endpoint, *memory, bytes, config);
    return error == 0 ? 0 : by_fail(error, "the endpoint of %s cannot start: %s", name, by_error_text(error));
}

/* Marks the trees of the job whose received packets go to the engine: this host's leaf is a child
 * of its own entry there. */
static int mark_inner(uint16_t job, const uint8_t *image, const struct by_image_header *header,
                      uint8_t **inner)
{
    *inner = calloc(1, BY_TREES_MAX / 8 + 1);
    if (*inner == NULL)
        return by_fail(BY_ENOMEM, "no memory for %s", header->name);
    for (uint32_t i = 0; i < header->count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;

        by_image_entry(image, i, &entry);
        if (entry.job == job)
            (*inner)[entry.tree / 8] |= (uint8_t)(1u << entry.tree % 8);
    }
    return 0;
}

static int open_lane(struct by_host_lane *lane, uint32_t packet_bytes)
{
    lane->packet_bytes = packet_bytes;
    lane->memory = aligned((size_t)packet_bytes * BY_LANE_MAX);
    return lane->memory != NULL
               ? 0
               : by_fail(BY_ENOMEM, "no memory for local packets: %u of %u bytes", BY_LANE_MAX, packet_bytes);
}

static uint32_t packet_bytes_of(const struct by_image_header *header)
{
    return BY_WIRE_HEADER_BYTES + (header->payload_max > BY_ERR_BYTES ? header->payload_max : BY_ERR_BYTES);
}

/* Allocates the lanes between endpoint and engine; once. */
static int open_lanes(struct by_progress *node, const struct by_image_header *header)
{
    uint32_t packet_bytes = (packet_bytes_of(header) + 63u) / 64u * 64u;
    int error = node->to_engine.memory != NULL ? 0 : open_lane(&node->to_engine, packet_bytes);

    if (error == 0 && node->to_endpoint.memory == NULL)
        error = open_lane(&node->to_endpoint, packet_bytes);
    return error;
}

int by_progress_open(struct by_progress *node, const struct by_progress_config *config,
                     struct by_transport *transport)
{
    struct by_image_header header;
    int error;

    memset(node, 0, sizeof(*node));
    by_image_header(config->image, &header);
    node->transport = transport;
    node->job = (uint16_t)config->job;
    node->datagram_room = transport->arena != NULL ? 1 : by_datagram_room(header.payload_max);
    error = by_faults_init(&node->faults, &config->fault, packet_bytes_of(&header));
    if (error != 0)
        by_fail(error, "no memory for injected faults");
    if (error == 0 && config->job != 0) {
        struct by_endpoint_config endpoint = endpoint_config(config);

        error = open_endpoint(&endpoint, header.name, &node->endpoint, &node->endpoint_memory);
    }
    if (error == 0 && has_engine(config, &header)) {
        error = open_engine(config, &header, &node->engine, &node->engine_memory);
        if (error == 0 && node->endpoint != NULL)
            error = mark_inner(node->job, config->image, &header, &node->inner);
        if (error == 0 && node->endpoint != NULL)
            error = open_lanes(node, &header);
    }
    if (error != 0)
        by_progress_close(node);
    return error;
}

void by_progress_prepare(struct by_progress *node, const struct by_progress_config *config,
                         const struct by_resume *resume)
{
    struct by_endpoint_config endpoint = endpoint_config(config);
    size_t bytes = by_resume_copy_size(resume, &endpoint);

    if (bytes <= node->next_bytes)
        return;
    free(node->next_memory);
    node->next_memory = aligned(bytes);
    node->next_bytes = node->next_memory != NULL ? bytes : 0;
}

/* Returns memory for the next endpoint, the prepared one if it suffices. */
static void *take_next(struct by_progress *node, size_t bytes)
{
    void *memory = node->next_memory;

    if (bytes > node->next_bytes) {
        free(memory);
        memory = aligned(bytes);
    }
    node->next_memory = NULL;
    node->next_bytes = 0;
    return memory;
}

int by_progress_carry(struct by_progress *node, const struct by_progress_config *config,
                      struct by_resume *resume)
{
    struct by_endpoint_config endpoint = endpoint_config(config);
    size_t bytes = by_resume_copy_size(resume, &endpoint);
    struct by_endpoint *next = NULL;
    struct by_engine *engine = NULL;
    struct by_image_header header;
    void *memory, *engine_memory = NULL;
    uint8_t *inner = NULL;
    int error = 0;

    by_image_header(config->image, &header);
    memory = bytes > 0 ? take_next(node, bytes) : NULL;
    if (memory == NULL)
        return bytes == 0
                   ? by_fail(BY_ENOENT, "according to its table, %s is in no tree of job %u", header.name,
                             config->job)
                   : by_fail(BY_ENOMEM, "no memory for the endpoint of %s: %zu bytes", header.name, bytes);
    if (has_engine(config, &header)) {
        error = open_engine(config, &header, &engine, &engine_memory);
        if (error == 0)
            error = mark_inner(node->job, config->image, &header, &inner);
        if (error == 0)
            error = open_lanes(node, &header);
    }
    if (error == 0) {
        error = by_resume_copy(resume, &next, memory, bytes, &endpoint);
        if (error != 0)
            by_fail(error, "the calls of job %u cannot continue in the trees of the next generation: %s",
                    config->job, by_error_text(error));
    }
    if (error != 0) {
        free(inner);
        free(engine_memory);
        free(memory);
        return error;
    }
    if (engine != NULL && node->engine != NULL)
        by_engine_inherit(engine, node->engine);
    free(node->inner);
    free(node->engine_memory);
    free(node->endpoint_memory);
    node->inner = inner;
    node->engine = engine;
    node->engine_memory = engine_memory;
    node->endpoint = next;
    node->endpoint_memory = memory;
    return 0;
}

int by_progress_side_open(struct by_progress *node, const struct by_progress_config *config,
                          struct by_progress_side **result)
{
    struct by_endpoint_config endpoint = endpoint_config(config);
    struct by_progress_side *side = calloc(1, sizeof(*side));
    struct by_image_header header;
    struct by_image_leaf leaf;
    struct by_image_job job;
    int error;

    by_image_header(config->image, &header);
    if (side == NULL || node->side_count == BY_STANDBYS_MAX) {
        free(side);
        return by_fail(BY_ENOMEM, "no room for another standby generation of %s", header.name);
    }
    endpoint.rounds = 1;
    endpoint.resume = 0;
    endpoint.stall_ns = FOREVER_NS;
    error = open_endpoint(&endpoint, header.name, &side->endpoint, &side->memory);
    if (error == 0)
        error = by_image_job_find(config->image, config->job, &job);
    if (error != 0) {
        by_progress_side_close(node, side);
        return error;
    }
    by_image_leaf(config->image, header.count[BY_SECTION_LEAF] - 1, &leaf);
    side->gen = job.gen;
    side->tree = leaf.tree;
    node->sides[node->side_count++] = side;
    *result = side;
    return 0;
}

void by_progress_side_close(struct by_progress *node, struct by_progress_side *side)
{
    if (side == NULL)
        return;
    for (unsigned i = 0; i < node->side_count; i++)
        if (node->sides[i] == side)
            node->sides[i--] = node->sides[--node->side_count];
    free(side->memory);
    free(side);
}

void by_progress_close(struct by_progress *node)
{
    by_faults_free(&node->faults);
    free(node->to_endpoint.memory);
    free(node->to_engine.memory);
    free(node->inner);
    free(node->endpoint_memory);
    free(node->engine_memory);
    free(node->next_memory);
    memset(node, 0, sizeof(*node));
}

/* Selects the receiver of a packet: the engine if this node is inner in its tree, else the
 * endpoint, which also counts foreign packets. */
static int is_for_engine(const struct by_progress *node, const struct by_rx *rx)
{
    uint16_t tree;

    if (node->endpoint == NULL || node->engine == NULL)
        return node->engine != NULL;
    if (rx->bytes < BY_WIRE_HEADER_BYTES || rx->data[BY_HEADER_AT_TYPE] == 0)
        return 0;
    if (by_get16(rx->data + BY_HEADER_AT_JOB) != node->job)
        return 1;
    tree = by_get16(rx->data + BY_HEADER_AT_TREE);
    return tree < BY_TREES_MAX && (node->inner[tree / 8] >> tree % 8 & 1);
}

/* Returns the side whose packet this is; NULL: another endpoint's. */
static struct by_progress_side *side_of(const struct by_progress *node, const struct by_rx *rx)
{
    if (rx->bytes < BY_WIRE_HEADER_BYTES)
        return NULL;
    for (unsigned i = 0; i < node->side_count; i++)
        if (by_get16(rx->data + BY_HEADER_AT_TREE) == node->sides[i]->tree &&
            by_get16(rx->data + BY_HEADER_AT_GEN) == node->sides[i]->gen &&
            by_get16(rx->data + BY_HEADER_AT_JOB) == node->job)
            return node->sides[i];
    return NULL;
}

static struct by_host_lane *lane_of(struct by_progress *node, const struct by_rx *rx)
{
    struct by_progress_side *side = node->side_count > 0 ? side_of(node, rx) : NULL;

    return side != NULL ? &side->lane : is_for_engine(node, rx) ? &node->to_engine : &node->to_endpoint;
}

static void lane_push(struct by_host_lane *lane, const struct by_rx *rx)
{
    if (lane->first + lane->count == BY_LANE_MAX) {
        memmove(lane->rx, lane->rx + lane->first, lane->count * sizeof(lane->rx[0]));
        lane->first = 0;
    }
    lane->rx[lane->first + lane->count++] = *rx;
}

static void lane_pop(struct by_host_lane *lane, uint32_t count)
{
    lane->first += count;
    lane->count -= count;
    if (lane->count == 0)
        lane->first = 0;
}

static void lane_push_local(struct by_host_lane *lane, const struct by_tx *tx)
{
    uint8_t *copy = lane->memory + (size_t)(lane->slot++ % BY_LANE_MAX) * lane->packet_bytes;
    struct by_rx rx = {.data = copy,
                       .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes),
                       .port = BY_PORT_LOCAL,
                       .ecn = tx->ecn,
                       .direct = tx->direct};

    memcpy(copy, tx->header, BY_WIRE_HEADER_BYTES);
    if (tx->payload_bytes > 0)
        memcpy(copy + BY_WIRE_HEADER_BYTES, by_tx_payload(tx), tx->payload_bytes);
    lane_push(lane, &rx);
}

/* Whether both packets go to one receiver, on one tree. */
static bool go_together(const struct by_tx *a, const struct by_tx *b)
{
    return a->port == b->port && a->dst_ip == b->dst_ip && a->udp_port == b->udp_port && a->ecn == b->ecn &&
           memcmp(a->header + BY_HEADER_AT_JOB, b->header + BY_HEADER_AT_JOB, 4) == 0;
}

/*
 * Puts a packet without a payload into a datagram with others of its tree. This costs the cable and
 * both kernels only a header instead of a frame. The remaining packets of the step have payloads
 * and form one batch of equal frames.
 */
static bool gather(struct by_progress *node, struct by_tx *tx)
{
    struct by_gathered *gathered = NULL;

    if (tx->kind != BY_TX_SEND || tx->payload_bytes > 0 || !by_datagram_joins(tx->header))
        return false;
    for (unsigned i = node->gathered_count; i > 0 && gathered == NULL; i--)
        if (go_together(node->gathered[i - 1].first, tx))
            gathered = &node->gathered[i - 1];
    if (gathered != NULL && gathered->count < node->datagram_room) {
        memcpy(gathered->others + gathered->first->payload_bytes, tx->header, BY_WIRE_HEADER_BYTES);
        gathered->first->payload = gathered->others;
        gathered->first->payload_bytes += BY_WIRE_HEADER_BYTES;
        gathered->count++;
        return true;
    }
    if (node->gathered_count == BY_GATHERED_MAX || node->datagram_room == 1)
        return false;
    node->gathered[node->gathered_count++] = (struct by_gathered){.first = tx, .count = 1};
    return true;
}

/* Passes the packets of one step to the cables and to the other half. */
static void send_all(struct by_progress *node, uint32_t tx_count, const struct by_rx *rx,
                     struct by_host_lane *other)
{
    uint32_t count = 0;

    node->gathered_count = 0;
    for (uint32_t i = 0; i < tx_count; i++) {
        if (node->tx[i].port != BY_PORT_LOCAL) {
            if (!gather(node, &node->tx[i]))
                node->out[count++] = &node->tx[i];
        } else if (node->tx[i].kind == BY_TX_SEND && other->memory != NULL) {
            lane_push_local(other, &node->tx[i]);
        }
    }
    for (unsigned i = 0; i < node->gathered_count; i++)
        node->out[count++] = node->gathered[i].first;
    if (count > 0)
        node->transport->ops->tx(node->transport, node->out, count, rx);
    if (node->engine == NULL)
        return;
    for (uint32_t i = 0; i < tx_count; i++)
        if (node->tx[i].ref != BY_REF_NONE)
            by_engine_release(node->engine, node->tx[i].ref);
}

static uint32_t run_engine(struct by_progress *node, uint64_t now_ns)
{
    uint32_t moved = 0;

    while (node->to_engine.count > 0) {
        const struct by_rx *rx = node->to_engine.rx + node->to_engine.first;
        uint32_t capacity = BY_TX_BATCH;
        uint32_t tx_count = 0;
        uint32_t taken;

        if (node->endpoint != NULL && BY_LANE_MAX - node->to_endpoint.count < capacity)
            capacity = BY_LANE_MAX - node->to_endpoint.count;
        if (capacity < by_engine_tx_least(node->engine))
            break;
        taken =
            by_engine_step(node->engine, now_ns, rx, node->to_engine.count, node->tx, capacity, &tx_count);
        send_all(node, tx_count, rx, &node->to_endpoint);
        lane_pop(&node->to_engine, taken);
        moved += tx_count;
        if (taken == 0 && tx_count == 0)
            break;
    }
    return moved;
}

static uint32_t run_endpoint(struct by_progress *node, uint64_t now_ns)
{
    const struct by_rx *rx = node->to_endpoint.rx + node->to_endpoint.first;
    uint32_t capacity = BY_TX_BATCH;
    uint32_t tx_count = 0;
    uint32_t taken;

    if (node->engine != NULL && BY_LANE_MAX - node->to_engine.count < capacity)
        capacity = BY_LANE_MAX - node->to_engine.count;
    if (capacity < 4)
        return 0;
    taken =
        by_endpoint_step(node->endpoint, now_ns, rx, node->to_endpoint.count, node->tx, capacity, &tx_count);
    send_all(node, tx_count, rx, &node->to_engine);
    lane_pop(&node->to_endpoint, taken);
    return tx_count;
}

/* Steps the sides that have something to do. Returns the number of packets sent. */
static uint32_t run_sides(struct by_progress *node, uint64_t now_ns)
{
    uint32_t moved = 0;

    for (unsigned i = 0; i < node->side_count; i++) {
        struct by_progress_side *side = node->sides[i];
        struct by_host_lane *lane = &side->lane;
        uint32_t tx_count = 0;

        if (lane->count == 0 && !side->busy && by_endpoint_deadline(side->endpoint) > now_ns)
            continue;
        do {
            const struct by_rx *rx = lane->rx + lane->first;
            uint32_t taken =
                by_endpoint_step(side->endpoint, now_ns, rx, lane->count, node->tx, BY_TX_BATCH, &tx_count);

            send_all(node, tx_count, rx, &node->to_engine);
            lane_pop(lane, taken);
            moved += tx_count;
        } while (tx_count == BY_TX_BATCH);
    }
    return moved;
}

/* Moves one batch from the cables into the lanes. Both lanes are empty then, so each has room for
 * the whole batch. */
static uint32_t receive(struct by_progress *node, uint64_t now_ns)
{
    const struct by_rx *rx = node->batch;
    uint32_t got = node->transport->ops->rx(node->transport, node->batch);
    uint32_t count = got;

    if (by_fault_enabled(&node->faults.fault)) {
        count = by_faults_apply(&node->faults, now_ns, node->batch, got, node->faulty);
        rx = node->faulty;
    }
    for (uint32_t i = 0; i < count; i++)
        lane_push(lane_of(node, &rx[i]), &rx[i]);
    return got > count ? got : count;
}

uint32_t by_progress_step(struct by_progress *node, uint64_t now_ns)
{
    uint32_t moved = receive(node, now_ns);
    uint64_t float_env = by_float_env_enter();
    uint32_t sent, before;

    /* Repeat until both lanes are empty, because received data are valid only until rx_done. Each
     * packet is consumed once, and the endpoint's new packets are bounded by its windows, so the
     * loop ends. A round that moves nothing would mean that the core accepts nothing more; the
     * remaining packets are then dropped, as a full queue would do. */
    do {
        before = node->to_engine.count + node->to_endpoint.count;
        sent = node->engine != NULL ? run_engine(node, now_ns) : 0;
        sent += node->endpoint != NULL ? run_endpoint(node, now_ns) : 0;
        moved += sent;
        if (sent == 0 && before == node->to_engine.count + node->to_endpoint.count)
            node->to_engine.count = node->to_endpoint.count = 0;
    } while (node->to_engine.count + node->to_endpoint.count > 0);
    if (node->side_count > 0)
        moved += run_sides(node, now_ns);
    by_float_env_leave(float_env);
    node->transport->ops->rx_done(node->transport);
    return moved;
}

uint64_t by_progress_deadline(const struct by_progress *node)
{
    uint64_t held = by_faults_deadline(&node->faults);
    uint64_t first = node->endpoint != NULL ? by_endpoint_deadline(node->endpoint) : UINT64_MAX;

    for (unsigned i = 0; i < node->side_count; i++) {
        uint64_t side = by_endpoint_deadline(node->sides[i]->endpoint);

        first = side < first ? side : first;
    }
    return held < first ? held : first;
}
