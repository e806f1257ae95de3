/*
 * Shares of links: a job that exceeds its share of a port waits there as long as others need the
 * rest. Each port has, in each direction, a meter of its own and one for each job with a share. A
 * meter models a queue on a cable slightly slower than the real one (phantom queues: Alizadeh et
 * al., Less is More, NSDI 2012).
 *
 * - A packet that fits the job's own meter is handled at once, whatever others send.
 * - So is a packet that fits the port's meter, because that bandwidth is unused.
 * - Other packets are held until the job's meter has drained far enough, and marked, so that the
 *   senders slow down. A packet that would wait too long is dropped.
 *
 * Output packets are charged alike. Input from a port waits until output to that port has drained,
 * because input causes further output (docs/decisions/0215).
 *
 * In a node with several workers each has meters of its own, with the part of each rate that its
 * lanes are of the job's lanes (docs/decisions/0587). Neighbours: engine.c calls this; load.c
 * builds the meters; worker.c computes the parts. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* Bytes of a packet on a cable besides its UDP payload: Ethernet, IP and UDP headers, preamble,
 * check sequence and gap. */
#define FRAME_BYTES 66u
/* Units of a meter's level in a byte. */
#define BYTE UINT64_C(1000000000)
/* A meter drains at this part of its cable's rate, so that a full cable exceeds it and is
 * detected. */
#define PART_NUM 31u
#define PART_DEN 32u
/* Burst that a job's meter accepts: all that a window holds, or the arrivals while a neighbouring
 * host sleeps (ns at the meter's rate; least and most bytes). */
#define BURST_NS  2000000u
#define BURST_MIN 65536u
#define BURST_MAX (4u << 20)
/* Burst that a port's meter accepts (bytes): a few windows that have just opened. */
#define PORT_BURST 32768u
/* Amount waiting at a port from which packets are marked (bytes). */
#define MARK 32768u
/* Limits of a job's waiting packets at a port: amount (bytes) and time (ns). Packets beyond are
 * dropped. */
#define HELD_MAX    262144u
#define HELD_NS_MAX 100000000u
/* How far jobs within their shares may overfill a port's meter (bytes): all their bursts at once.
 * The meter remains at this level where the shares exceed the cable; then no bandwidth is left for
 * jobs without a share. */
#define BEYOND_MAX (64u << 20)

/* ---- meters ---- */

/* Returns a port's meters in one direction: its own, followed by one for each job with a share. */
static struct by_meter *meters_at(const struct by_table *table, uint32_t port, enum by_direction direction)
{
    return table->meter + ((size_t)2 * port + direction) * table->share_count;
}

static void drain(struct by_meter *meter, uint64_t now_ns)
{
    uint64_t drained;

    if (now_ns <= meter->last_ns)
        return;
    if (__builtin_mul_overflow(now_ns - meter->last_ns, meter->rate, &drained) || drained >= meter->level)
        meter->level = 0;
    else
        meter->level -= drained;
    meter->last_ns = now_ns;
}

/* Adds to a meter, up to `most` beyond its depth. */
static void add(struct by_meter *meter, uint64_t amount, uint64_t most)
{
    uint64_t end = meter->depth + most;

    meter->level = meter->level + amount < end ? meter->level + amount : end;
}

/* Returns the time until a meter with `amount` more is within its depth (ns). */
static uint64_t wait_of(const struct by_meter *meter, uint64_t amount)
{
    uint64_t level = meter->level + amount;

    return level > meter->depth ? (level - meter->depth + meter->rate - 1) / meter->rate : 0;
}

/* Returns 1 when `amount` more would exceed the amount that may wait for this meter. */
static int is_over(const struct by_table *table, const struct by_meter *meter, uint64_t amount)
{
    return meter->level + amount > meter->depth + table->meter_held;
}

/* The cost of a packet: its waiting time, and whether the job's account is charged too, or the
 * port's alone. */
struct cost {
    uint64_t wait;
    int is_own;
};

/* Computes the cost of a packet. It may pass as soon as it is within its job's share or there is
 * unused bandwidth, whichever is first, and that account is charged. For jobs without a share both
 * meters are the port's. */
static struct cost weigh(const struct by_table *table, struct by_meter *port, struct by_meter *job,
                         uint64_t now_ns, uint64_t amount)
{
    uint64_t own, rest;

    drain(port, now_ns);
    if (job != port)
        drain(job, now_ns);
    own = wait_of(job, amount);
    if (own == 0)
        return (struct cost){0, 1};
    rest = is_over(table, port, amount) ? UINT64_MAX : wait_of(port, amount);
    return own <= rest ? (struct cost){own, 1} : (struct cost){rest, 0};
}

/* Charges a packet that is within its job's share, which needs no weighing, and returns 1. Returns
 * 0 and charges nothing otherwise. */
static inline int fits(struct by_meter *port, struct by_meter *job, uint64_t now_ns, uint64_t amount)
{
    drain(port, now_ns);
    if (job != port)
        drain(job, now_ns);
    if (__builtin_expect(job->level + amount > job->depth, 0))
        return 0;
    if (job != port)
        job->level += amount;
    add(port, amount, BEYOND_MAX * BYTE);
    return 1;
}

static void charge(const struct by_table *table, struct by_meter *port, struct by_meter *job, uint64_t amount,
                   int is_own)
{
    if (is_own && job != port)
        add(job, amount, table->meter_held);
    add(port, amount, BEYOND_MAX * BYTE);
}

/* ---- packets ---- */

int by_meter_marks(struct by_step *step, uint32_t port)
{
    struct by_meter *meter;

    if (!step->table->metered || port >= step->table->port_count)
        return 0;
    meter = meters_at(step->table, port, BY_DIRECTION_IN);
    drain(meter, step->now_ns);
    return meter->level > meter->depth + step->table->meter_mark;
}

/* Returns how long output by a port delays input that requests more of it. */
static uint64_t wait_back(struct by_meter *port, struct by_meter *job, uint64_t now_ns)
{
    uint64_t own, rest;

    if (job->level <= job->depth)
        return 0; /* and it has drained since it was charged */
    drain(port, now_ns);
    if (job != port)
        drain(job, now_ns);
    own = wait_of(job, 0);
    rest = wait_of(port, 0);
    return own < rest ? own : rest;
}

static void hold(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint64_t wait)
{
    struct by_tx *tx = &step->tx[step->tx_count++];

    tx->kind = BY_TX_HOLD;
    tx->ecn = rx->ecn;
    tx->direct = 0;
    tx->port = rx->port;
    tx->udp_port = 0;
    tx->payload_bytes = 0;
    tx->rx_index = (uint16_t)rx_index;
    tx->dst_ip = rx->dst_ip;
    tx->ref = BY_REF_NONE;
    tx->wait_ns = (uint32_t)wait;
    tx->payload = NULL;
    step->engine->held_most--;
    step->engine->counters.hold++;
}

/* Weighs a packet that exceeds its share or whose job has exceeded its share of output: it waits,
 * is dropped, or uses idle bandwidth. Returns 1 in the last case. */
static int weigh_in(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t bytes,
                    uint32_t index, struct by_meter *in, struct by_meter *back)
{
    const uint64_t amount = bytes * BYTE;
    struct by_engine_share *share = &step->table->share[index];
    struct cost cost = {0, 0};
    uint64_t wait;

    if (in->rate > 0)
        cost = weigh(step->table, in, in + index, step->now_ns, amount);
    wait = back->rate > 0 ? wait_back(back, back + index, step->now_ns) : 0;
    wait = cost.wait > wait ? cost.wait : wait;
    if (wait > HELD_NS_MAX || (cost.wait > 0 && cost.is_own && is_over(step->table, in + index, amount))) {
        step->engine->counters.drop_share++;
        share->dropped++;
        return 0;
    }
    if (wait > 0 && step->engine->held_most == 0) {
        step->engine->counters.drop_room++;
        share->dropped++;
        return 0;
    }
    if (in->rate > 0) { /* dropped packets are charged to no account */
        charge(step->table, in, in + index, amount, cost.is_own);
        share->rx_bytes += bytes;
    }
    if (wait == 0)
        return 1;
    share->held++;
    hold(step, rx, rx_index, wait);
    return 0;
}

int by_meter_admits(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t bytes,
                    uint16_t job, uint16_t out)
{
    const struct by_table *table = step->table;
    const uint32_t index = table->share_of[job], on_cable = bytes + FRAME_BYTES;
    struct by_meter *in, *back;

    if (rx->held || step->now_ns == 0 || rx->port >= table->port_count || out >= table->port_count)
        return 1;
    in = meters_at(table, rx->port, BY_DIRECTION_IN);
    back = meters_at(table, out, BY_DIRECTION_OUT);
    if (in->rate > 0 && back[index].level <= back[index].depth &&
        fits(in, in + index, step->now_ns, on_cable * BYTE)) {
        table->share[index].rx_bytes += on_cable;
        return 1;
    }
    return weigh_in(step, rx, rx_index, on_cable, index, in, back);
}

/* Charges a packet that leaves by port `out` to share `index`. */
static inline void charge_out(const struct by_table *table, uint64_t now_ns, uint32_t index, uint32_t out,
                              uint32_t bytes)
{
    const uint64_t amount = (bytes + FRAME_BYTES) * BYTE;
    struct by_meter *port;

    if (out >= table->port_count)
        return;
    port = meters_at(table, out, BY_DIRECTION_OUT);
    if (port->rate == 0)
        return;
    if (!fits(port, port + index, now_ns, amount))
        charge(table, port, port + index, amount, weigh(table, port, port + index, now_ns, amount).is_own);
    table->share[index].tx_bytes += bytes + FRAME_BYTES;
}

void by_meter_sent(struct by_step *step, uint16_t job, uint16_t out, uint32_t bytes)
{
    if (step->now_ns != 0)
        charge_out(step->table, step->now_ns, step->table->share_of[job], out, bytes);
}

void by_meter_step(struct by_step *step)
{
    for (uint32_t i = 0; i < step->tx_count && step->now_ns != 0; i++) {
        const struct by_tx *tx = &step->tx[i];

        if (tx->kind == BY_TX_SEND)
            charge_out(step->table, step->now_ns, step->table->share_of[by_get16(tx->header + 4)], tx->port,
                       BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    }
}

/* ---- tables ---- */

/* Returns the bytes per second of a share of a rate in 1000 bytes per second, exact to less than 32
 * bytes. */
static uint64_t rate_of(uint32_t rate, uint32_t share)
{
    return (uint64_t)rate * share / (BY_SHARE_ONE / 1000) / PART_DEN * PART_NUM;
}

/* Returns this worker's part of `value`; the parts of all workers add up to it. */
static uint64_t part_of(uint64_t value, const struct by_lane_part *part)
{
    uint64_t each = value / part->whole, rest = value % part->whole;

    return each * (part->end - part->first) + rest * part->end / part->whole -
           rest * part->first / part->whole;
}

/* Returns what a worker's meters accept beyond their part (bytes): the chunks of lanes that come in
 * a row, which are two where the number of workers does not divide that of the lanes. 0 where there
 * is one worker. */
static uint64_t row_of(const struct by_engine_config *config)
{
    uint64_t lane = (uint64_t)BY_LANE_CHUNKS * (config->payload_max + BY_WIRE_HEADER_BYTES + FRAME_BYTES);

    return config->worker_count < 2 ? 0 : BY_LANES % config->worker_count == 0 ? lane : 2 * lane;
}

static void set_meter(struct by_meter *meter, uint64_t rate, uint64_t depth_bytes)
{
    *meter = (struct by_meter){.rate = rate, .depth = depth_bytes * BYTE};
}

static void build_port(struct by_table *table, const struct by_lane_part *parts, uint64_t row,
                       enum by_direction direction, uint32_t port, uint32_t rate)
{
    struct by_meter *meter = meters_at(table, port, direction);

    set_meter(&meter[0], part_of(rate_of(rate, BY_SHARE_ONE), &parts[0]),
              part_of(PORT_BURST, &parts[0]) + row);
    for (uint32_t i = 1; i < table->share_count; i++) {
        uint64_t whole = rate_of(rate, table->share[i].share), own = part_of(whole, &parts[i]);
        uint64_t burst = whole / 1000 * BURST_NS / 1000000;

        burst = burst < BURST_MIN ? BURST_MIN : burst > BURST_MAX ? BURST_MAX : burst;
        set_meter(&meter[i], own > 0 ? own : 1, part_of(burst, &parts[i]) + row);
    }
}

int by_meters_build(const struct by_engine *engine, struct by_table *table, struct by_image_fault *fault)
{
    const struct by_engine_config *config = &engine->config;
    const uint64_t row = row_of(config);
    struct by_lane_part parts[BY_SHARES_MAX + 1];
    struct by_image_header header;
    struct by_image_port port;
    struct by_image_job job;
    uint32_t rates = 0;

    table->metered = 0;
    table->share_count = 1;
    if (config->meter_count_max == 0)
        return 0;
    by_zero(table->share_of, BY_JOBS_MAX);
    by_zero(table->share, (BY_SHARES_MAX + 1) * sizeof(*table->share));
    by_image_header(table->image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        by_image_job(table->image, i, &job);
        if (job.share == 0)
            continue;
        table->share_of[job.job] = (uint8_t)table->share_count;
        table->share[table->share_count].job = job.job;
        table->share[table->share_count++].share = job.share;
    }
    for (uint32_t i = 0; i < table->port_count; i++) {
        by_image_port(table->image, i, &port);
        rates |= port.rate_in | port.rate_out;
    }
    if (table->share_count == 1 || rates == 0)
        return 0;
    if (by_engine_meters(table->port_count, table->share_count - 1) > config->meter_count_max) {
        if (fault) {
            fault->section = "job";
            fault->index = 0;
            fault->what =
                "more shares of ports (2 x ports x jobs with a share) than this node can keep, which is";
            fault->value = config->meter_count_max;
        }
        return BY_ELIMIT;
    }
    by_lanes_part(engine, table, parts);
    for (uint32_t i = 0; i < table->port_count; i++) {
        by_image_port(table->image, i, &port);
        build_port(table, parts, row, BY_DIRECTION_IN, i, port.rate_in);
        build_port(table, parts, row, BY_DIRECTION_OUT, i, port.rate_out);
    }
    table->meter_mark = part_of(MARK, &parts[0]) * BYTE;
    table->meter_held = (part_of(HELD_MAX, &parts[0]) + row) * BYTE;
    table->metered = 1;
    return 0;
}

void by_meters_inherit(struct by_table *table, const struct by_table *before)
{
    if (!table->metered || !before->metered)
        return;
    for (uint32_t i = 0; i < table->share_count; i++) {
        uint32_t old =
            i > 0 ? before->share_of[table->share[i].job] : 0; /* the first is for jobs without a share */

        if (i > 0 && old == 0)
            continue;
        table->share[i].rx_bytes = before->share[old].rx_bytes;
        table->share[i].tx_bytes = before->share[old].tx_bytes;
        table->share[i].held = before->share[old].held;
        table->share[i].dropped = before->share[old].dropped;
        for (uint32_t p = 0; p < table->port_count && p < before->port_count; p++)
            for (enum by_direction d = BY_DIRECTION_IN; d <= BY_DIRECTION_OUT; d++) {
                struct by_meter *meter = meters_at(table, p, d) + i;
                const struct by_meter *from = meters_at(before, p, d) + old;

                meter->last_ns = from->last_ns;
                meter->level = from->level < meter->depth ? from->level : meter->depth;
            }
    }
}

int by_engine_share(const struct by_engine *engine, uint32_t index, struct by_engine_share *out)
{
    const struct by_table *table = engine->active;

    if (!table->metered || index >= table->share_count)
        return BY_ENOENT;
    *out = table->share[index];
    return 0;
}
