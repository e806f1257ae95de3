/* The packet loop of a switch without its platform; see batch.h. */
#include "offload/shell/batch.h"

#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/shell/batch_inline.h"

#define ETHERTYPE_ARP 0x0806u
#define SECOND_NS     UINT64_C(1000000000)
#define CLASS_NONE    UINT8_MAX  /* not a contribution: of a class */
#define NONE          UINT16_MAX /* no packet: of an index */

BY_STATIC_ASSERT(BY_BATCH_BURST_ONE <= BY_BATCH_BURST && BY_BATCH_ROUND <= BY_BATCH_MAX,
                 "a usual round fits a batch, and a usual burst the platforms' arrays");

void by_batch_open(struct by_batch *batch, const struct by_batch_ops *ops, void *context,
                   struct by_engine *engine, uint32_t port_count)
{
    BY_ASSERT(port_count <= BY_PORTS_MAX);
    by_zero(batch, sizeof *batch);
    batch->ops = ops;
    batch->context = context;
    batch->engine = engine;
    batch->port_count = batch->source_count = port_count;
    batch->step_packets = BY_BATCH_STEP;
    batch->burst = port_count > 0 ? BY_BATCH_ROUND / port_count : BY_BATCH_BURST_ONE;
    if (batch->burst > BY_BATCH_BURST_ONE)
        batch->burst = BY_BATCH_BURST_ONE;
    if (batch->burst < BY_BATCH_BURST_MIN)
        batch->burst = BY_BATCH_BURST_MIN;
    batch->neighbours.due_ns = UINT64_MAX;
}

void by_batch_close(struct by_batch *batch)
{
    for (uint32_t i = 0; i < batch->hold.count; i++)
        batch->ops->drop(batch->context, &batch->hold.held[i].frame, 1);
    for (uint32_t i = 0; i < batch->park.count; i++)
        batch->ops->drop(batch->context, &batch->park.at[i].frame, 1);
    batch->hold.count = batch->park.count = 0;
}

static bool is_zero(const uint8_t mac[BY_MAC_BYTES])
{
    return (by_get32(mac) | by_get16(mac + 4)) == 0;
}

/* Sets where the packets of a port go. */
static void aim(struct by_batch *batch, uint16_t index, const struct by_image_port *record)
{
    struct by_batch_port *port = &batch->port[index];
    const struct by_shell_neighbour *neighbour;

    by_copy(port->peer_mac, record->peer_mac, BY_MAC_BYTES);
    port->reach = BY_REACH_PEER;
    if (port->is_memory || !is_zero(record->peer_mac))
        return;
    port->reach = BY_REACH_BRIDGE;
    if (record->peer_ip == 0)
        return;
    neighbour = by_neighbours_find(&batch->neighbours, index, record->peer_ip);
    port->reach = neighbour != NULL && neighbour->known ? BY_REACH_PEER : BY_REACH_WAITS;
    if (port->reach == BY_REACH_PEER)
        by_copy(port->peer_mac, neighbour->mac, BY_MAC_BYTES);
}

void by_batch_address(struct by_batch *batch)
{
    struct by_image_header header;
    size_t bytes;
    const uint8_t *image = by_engine_image(batch->engine, &bytes);
    uint64_t exempt = 0;

    for (uint32_t i = 0; i < batch->port_count; i++)
        exempt |= (uint64_t)batch->port[i].is_memory << i;
    by_neighbours_load(&batch->neighbours, image, exempt, batch->late, batch->now_ns);

    by_image_header(image, &header);
    for (uint32_t i = 0; i < batch->port_count; i++) {
        struct by_batch_port *port = &batch->port[i];
        struct by_image_port record;

        port->addressed = i < header.count[BY_SECTION_PORT];
        port->reach = BY_REACH_NONE;
        port->last.rx.bytes = 0;
        if (!port->addressed)
            continue;
        by_image_port(image, i, &record);
        port->ip = record.own_ip;
        port->vlan = port->is_memory || port->is_untagged ? 0 : record.vlan;
        by_copy(port->mac, is_zero(record.own_mac) ? port->hardware_mac : record.own_mac, BY_MAC_BYTES);
        aim(batch, (uint16_t)i, &record);
    }
}

const uint8_t *by_batch_mac(struct by_batch *batch, uint16_t port, uint32_t ip)
{
    const struct by_shell_neighbour *neighbour;

    if (batch->port[port].reach == BY_REACH_PEER)
        return batch->port[port].peer_mac;
    if (batch->port[port].reach != BY_REACH_BRIDGE)
        return NULL;
    neighbour = by_neighbours_find(&batch->neighbours, port, ip);
    return neighbour != NULL && neighbour->known ? neighbour->mac : NULL;
}

const struct by_shell_neighbour *by_batch_silent(const struct by_batch *batch, uint16_t port)
{
    for (uint32_t i = 0; i < batch->neighbours.count; i++)
        if (batch->neighbours.at[i].port == port && batch->neighbours.at[i].silent)
            return &batch->neighbours.at[i];
    return NULL;
}

/* Returns whether `ip` is the address of one of the own ports. */
static bool is_own_ip(const struct by_batch *batch, uint32_t ip)
{
    for (uint32_t i = 0; i < batch->port_count; i++)
        if (batch->port[i].addressed && batch->port[i].ip == ip)
            return true;
    return false;
}

/* Notes the MAC address of the sender of an ARP packet, if it is a neighbour whose address is
 * learned. */
static void learn(struct by_batch *batch, uint16_t index, const uint8_t *data, uint32_t bytes)
{
    struct by_batch_port *port = &batch->port[index];
    struct by_shell_neighbour *neighbour;
    struct by_arp arp;
    bool was_silent;

    if (batch->neighbours.count == 0 || by_arp_parse(data, bytes, &arp) != 0)
        return;
    neighbour = by_neighbours_find(&batch->neighbours, index, arp.src_ip);
    if (neighbour == NULL)
        return;
    was_silent = neighbour->silent;
    if (!neighbour->known || !by_equal(neighbour->mac, arp.src_mac, BY_MAC_BYTES)) {
        batch->counters.arp_learned++;
        batch->moves++;
        if (port->reach != BY_REACH_BRIDGE) {
            by_copy(port->peer_mac, arp.src_mac, BY_MAC_BYTES);
            port->reach = BY_REACH_PEER;
        }
    }
    by_neighbours_hear(&batch->neighbours, neighbour, arp.src_mac, batch->now_ns);
    if (was_silent && batch->ops->neighbour != NULL)
        batch->ops->neighbour(batch->context, neighbour);
}

/* Whether the switch has the port, and the table names it. The table may name more ports. */
static bool is_addressed(const struct by_batch *batch, uint16_t port)
{
    return port < batch->port_count && batch->port[port].addressed;
}

/* Asks the neighbours whose requests are due. One that is known is asked alone, unless it has not
 * answered. */
static __attribute__((noinline)) void ask(struct by_batch *batch)
{
    struct by_shell_neighbour *neighbour;
    uint32_t from = 0;

    for (uint32_t i = 0; i < BY_NEIGHBOUR_BURST; i++) {
        neighbour = by_neighbours_ask(&batch->neighbours, &from, batch->now_ns);
        if (neighbour == NULL)
            break;
        if (is_addressed(batch, neighbour->port)) {
            const struct by_batch_port *port = &batch->port[neighbour->port];
            uint8_t request[BY_FRAME_HEADER_BYTES];

            by_arp_request(port->mac, port->ip,
                           neighbour->known && neighbour->tries < 3 ? neighbour->mac : NULL, neighbour->ip,
                           request);
            if (batch->ops->reply(batch->context, neighbour->port, request, sizeof request))
                batch->counters.arp_requests++;
            else
                batch->counters.tx_no_memory++;
        }
        if (neighbour->tries < BY_NEIGHBOUR_TRIES || neighbour->silent || neighbour->elsewhere)
            continue;
        neighbour->silent = true;
        batch->counters.arp_silent++;
        if (batch->ops->neighbour != NULL)
            batch->ops->neighbour(batch->context, neighbour);
    }
    by_neighbours_settle(&batch->neighbours);
}

/* Answers an ARP request for the port's own address, so that hosts and routers with an ordinary
 * stack can reach the switch; and behind a bridge for the receivers of relays. Returns true if the
 * frame is ARP, answered or not. */
static bool answer_arp(struct by_batch *batch, uint16_t index, const uint8_t *data, uint32_t bytes)
{
    const struct by_batch_port *port = &batch->port[index];
    uint8_t reply[BY_FRAME_HEADER_BYTES];
    size_t reply_bytes = 0;
    uint32_t ip = port->ip;
    struct by_arp arp;

    if (bytes < BY_FRAME_HEADER_BYTES || by_get16(data + BY_FRAME_AT_TYPE) != ETHERTYPE_ARP)
        return false;
    learn(batch, index, data, bytes);
    if (batch->late >> index & 1)
        return true; /* the port's worker answers */
    if (port->reach == BY_REACH_BRIDGE && by_arp_parse(data, bytes, &arp) == 0 &&
        by_neighbours_proxy(&batch->neighbours, index, arp.dst_ip))
        ip = arp.dst_ip;
    if (port->addressed)
        reply_bytes = by_arp_reply(data, bytes, ip, port->mac, reply);
    if (reply_bytes == 0)
        return true;
    if (batch->ops->reply(batch->context, index, reply, (uint32_t)reply_bytes))
        batch->counters.arp_replies++;
    else
        batch->counters.tx_no_memory++;
    return true;
}

/* Notes what a neighbour states (LLDP). Returns true if the frame is valid LLDP. */
static bool hear(struct by_batch *batch, uint16_t index, const uint8_t *data, uint32_t bytes)
{
    struct by_batch_neighbour *neighbour = &batch->neighbour[index];
    struct by_lldp lldp;

    if (!by_lldp_parse(data, bytes, &lldp))
        return false;
    neighbour->until_ns = batch->now_ns + lldp.ttl_s * SECOND_NS; /* at once, if it leaves */
    by_copy(&neighbour->lldp, &lldp, sizeof(lldp));
    return true;
}

bool by_batch_announce(struct by_batch *batch, uint16_t port, const struct by_lldp *own)
{
    uint8_t frame[BY_LLDP_BYTES_MAX];
    size_t bytes = by_lldp_encode(own, frame);

    return batch->ops->reply(batch->context, port, frame, (uint32_t)bytes);
}

const struct by_lldp *by_batch_neighbour(const struct by_batch *batch, uint16_t port)
{
    const struct by_batch_neighbour *neighbour = &batch->neighbour[port];

    return neighbour->until_ns > batch->now_ns ? &neighbour->lldp : NULL;
}

/*
 * Notes a frame as the port's last one if it is a banyan packet for this port; else counts it.
 * Packets to an own address must have the switch's UDP port. Packets to other addresses are relayed
 * by the engine, and carry the port of their receiver.
 */
static __attribute__((noinline)) bool parse(struct by_batch *batch, uint16_t index, const uint8_t *data,
                                            uint32_t bytes)
{
    struct by_batch_port *port = &batch->port[index];
    struct by_frame fields;

    if (by_frame_parse(data, bytes, &fields) != 0) {
        if (!answer_arp(batch, index, data, bytes) && !hear(batch, index, data, bytes))
            batch->counters.rx_other++;
    } else if (!port->addressed) {
        batch->counters.rx_unaddressed++;
    } else if (!by_equal(fields.dst_mac, port->mac, BY_MAC_BYTES) ||
               (fields.dst_port != BY_UDP_PORT && is_own_ip(batch, fields.dst_ip))) {
        batch->counters.rx_not_ours++;
    } else {
        by_copy(port->last.headers, data, sizeof port->last.headers);
        port->last.rx.bytes = fields.bytes;
        port->last.rx.port = index;
        port->last.rx.src_ip = fields.src_ip;
        port->last.rx.dst_ip = fields.dst_ip;
        port->last.rx.ecn = fields.ecn;
        return true;
    }
    return false;
}

/* Adds a frame to the batch if it is a banyan packet for this port; else frees it. `held`: the
 * frame has waited for its job's share. */
static inline void take(struct by_batch *batch, uint16_t index, void *frame, const uint8_t *data,
                        uint32_t bytes, bool held)
{
    const struct by_batch_last *last = &batch->port[index].last;

    if (__builtin_expect(!by_batch_is_alike(last, data, bytes), 0) && !parse(batch, index, data, bytes))
        batch->ops->drop(batch->context, &frame, 1);
    else
        by_batch_add(batch, &last->rx, frame, data)->held = held;
}

/* Like take, for a frame that was received earlier. */
static __attribute__((noinline)) void take_late(struct by_batch *batch, uint16_t port, void *frame, bool held)
{
    uint32_t bytes;
    const uint8_t *data = batch->ops->data(batch->context, frame, &bytes);

    take(batch, port, frame, data, bytes, held);
}

/* Like take, after the injected faults. */
static __attribute__((noinline)) void take_faulty(struct by_batch *batch, uint16_t port, void *frame)
{
    struct by_held out[3];
    enum by_fault_verdict verdict;
    uint32_t count = by_hold_pass(&batch->hold, batch->now_ns, frame, port, out, &verdict);

    batch->counters.fault_dropped += verdict == BY_FAULT_DROP;
    batch->counters.fault_duplicated += verdict == BY_FAULT_DUPLICATE;
    batch->counters.fault_held += verdict == BY_FAULT_HOLD;
    if (verdict == BY_FAULT_DROP)
        batch->ops->drop(batch->context, &frame, 1);
    else if (verdict == BY_FAULT_DUPLICATE)
        batch->ops->share(batch->context, frame);
    for (uint32_t i = 0; i < count; i++)
        take_late(batch, out[i].port, out[i].frame, false);
}

void by_batch_receive(struct by_batch *batch, uint16_t port, void *frame, const uint8_t *data, uint32_t bytes)
{
    if (__builtin_expect(by_fault_enabled(&batch->hold.fault), 0))
        take_faulty(batch, port, frame);
    else
        take(batch, port, frame, data, bytes, false);
}

/* Takes ownership of a received frame; `port` is the port through which it leaves, or arrived.
 * NULL, and counted, if there is none, for example because it is relayed twice. */
static void *take_frame(struct by_batch *batch, uint16_t port, uint32_t index)
{
    void *frame = batch->frame[index];

    if (frame == NULL)
        frame = batch->ops->make(batch->context, &batch->rx[index], port);
    if (frame == NULL)
        batch->counters.tx_no_memory++;
    batch->frame[index] = NULL;
    return frame;
}

/* Forwards the received frame unchanged, except for its MAC addresses and marks. */
static void relay(struct by_batch *batch, const struct by_tx *tx, uint32_t index)
{
    const struct by_batch_port *port = &batch->port[tx->port];
    void *frame = take_frame(batch, tx->port, index);
    uint32_t bytes;
    uint8_t *data;

    if (frame == NULL)
        return;
    data = batch->ops->data(batch->context, frame, &bytes);
    by_copy(data, by_batch_mac(batch, tx->port, batch->rx[index].dst_ip), BY_MAC_BYTES);
    by_copy(data + BY_MAC_BYTES, port->mac, BY_MAC_BYTES);
    /* A checksum that the sender left to its link is invalid. Zero, for no checksum, is legal (RFC
     * 768). */
    by_put16(data + BY_FRAME_AT_UDP_CHECKSUM, 0);
    if (tx->ecn != batch->rx[index].ecn)
        by_frame_mark(data, tx->ecn);
    batch->counters.tx_relayed++;
    batch->ops->forward(batch->context, tx->port, frame);
}

/* Holds the received frame until it is due. */
static void park(struct by_batch *batch, const struct by_tx *tx, uint32_t index)
{
    void *frame = take_frame(batch, tx->port, index);

    if (frame != NULL && !by_park_put(&batch->park, batch->now_ns + tx->wait_ns, frame, tx->port)) {
        /* by_engine_allow limits these outputs to the room; dropping a frame is safer than an
         * assertion */
        batch->counters.tx_no_memory++;
        batch->ops->drop(batch->context, &frame, 1);
    }
}

/* Whether the output's port has an address, and the next node on its way is known. */
static bool can_reach(struct by_batch *batch, const struct by_tx *tx, uint32_t rx_first)
{
    uint32_t ip;

    if (!is_addressed(batch, tx->port))
        return false;
    if (batch->port[tx->port].reach == BY_REACH_PEER || tx->kind == BY_TX_HOLD)
        return true;
    ip = tx->kind == BY_TX_SEND ? tx->dst_ip : batch->rx[rx_first + tx->rx_index].dst_ip;
    return by_batch_mac(batch, tx->port, ip) != NULL;
}

/* Carries out `tx_count` outputs; `rx_first` is the index of their step's first packet. */
static void transmit(struct by_batch *batch, uint32_t tx_count, uint32_t rx_first)
{
    const struct by_tx *tx = batch->tx, *end = tx + tx_count;
    uint32_t run;

    for (; tx < end; tx += run) {
        run = 0;
        while (tx + run < end && tx[run].kind == BY_TX_SEND && can_reach(batch, &tx[run], rx_first))
            run++;
        if (run > 0) {
            batch->ops->send(batch->context, tx, run);
            continue;
        }
        run = 1;
        if (!can_reach(batch, tx, rx_first)) {
            if (is_addressed(batch, tx->port))
                batch->counters.tx_no_neighbour++;
            else
                batch->counters.tx_no_port++;
            if (tx->kind == BY_TX_SEND && tx->ref != BY_REF_NONE)
                by_engine_release(batch->engine, tx->ref);
        } else if (tx->kind == BY_TX_RELAY) {
            relay(batch, tx, rx_first + tx->rx_index);
        } else {
            park(batch, tx, rx_first + tx->rx_index);
        }
    }
}

static bool is_contribution(const struct by_rx *rx)
{
    return rx->bytes >= BY_WIRE_HEADER_BYTES && rx->data[BY_HEADER_AT_TYPE] == BY_TYPE_CONTRIB;
}

/* Orders contributions by tree, then by sequence number. 0: they are of the same chunk. */
static int32_t compare_chunks(const struct by_batch_sorted *a, const struct by_batch_sorted *b)
{
    if (a->tree != b->tree)
        return a->tree < b->tree ? -1 : 1;
    return (int32_t)(a->seq - b->seq);
}

/* Adds contribution `i` to the packets of the chunk whose first one is `first`. */
static inline void join_chunk(struct by_batch_sorted *sorted, uint16_t first, uint16_t i)
{
    sorted[i].with = NONE;
    sorted[sorted[first].last].with = i;
    sorted[first].last = i;
    sorted[first].count++;
}

/*
 * Enters contribution `i` to a chunk in the list of its class: the first packet of each chunk, in
 * order, and behind it the others. `from` is the chunk that was entered last. Returns the first
 * packet of this chunk, which is also the list's first where *first changes.
 */
static uint16_t enter_chunk(struct by_batch_sorted *sorted, uint16_t i, uint16_t from, uint16_t *first)
{
    uint16_t *link = first;

    if (from != NONE && compare_chunks(&sorted[from], &sorted[i]) < 0)
        link = &sorted[from].next;
    for (; *link != NONE; link = &sorted[*link].next) {
        int32_t order = compare_chunks(&sorted[*link], &sorted[i]);

        if (order == 0) {
            join_chunk(sorted, *link, i);
            return *link;
        }
        if (order > 0)
            break;
    }
    sorted[i].next = *link;
    sorted[i].with = NONE;
    sorted[i].last = i;
    sorted[i].count = 1;
    *link = i;
    return i;
}

/* Enters all contributions in the lists of their classes. Most packets of a tree follow the one
 * before, also in chunks that another port has begun; a build for size has no separate path for
 * these. */
static void enter_all(struct by_batch *batch)
{
    struct by_batch_sorted *sorted = batch->sorted;

    for (uint32_t i = 0; i < batch->count; i++) {
        const uint8_t *header = batch->arrived[i].data;
        uint16_t from, at = NONE;
        uint32_t tree, seq, class;

        batch->class[i] = CLASS_NONE;
        if (!is_contribution(&batch->arrived[i]))
            continue;
        tree = by_get32(header + BY_HEADER_AT_JOB);
        seq = by_get32(header + BY_HEADER_AT_SEQ);
        class = (tree + (tree >> 16) * 7) % BY_BATCH_CLASSES;
        batch->class[i] = (uint8_t) class;
        from = batch->latest[class];
#ifndef __OPTIMIZE_SIZE__
        at = from == NONE ? NONE : sorted[from].next;
#endif
        if (at != NONE && sorted[at].seq == seq && sorted[at].tree == tree) {
            join_chunk(sorted, at, (uint16_t)i);
        } else {
            sorted[i].tree = tree;
            sorted[i].seq = seq;
            at = enter_chunk(sorted, (uint16_t)i, from, &batch->first[class]);
        }
        batch->latest[class] = at;
    }
}

/*
 * Brings together the contributions to a chunk, which have arrived by several ports: the engine
 * takes them as one run if they follow one another. The contributions of a tree are in the order of
 * their sequence numbers, and a run takes the place of the last of as many contributions of the
 * tree as it and those before it have; other packets keep their places. So chunks complete in
 * order, and the packets of each port stay in order: a receiver takes a sequence number that is
 * missing as evidence of a loss. Trees that share a class share their places.
 */
static void sort(struct by_batch *batch)
{
    struct by_rx *rx = batch->rx;
    void **frame = batch->frame;

    for (uint32_t i = 0; i < BY_BATCH_CLASSES; i++) {
        batch->first[i] = batch->latest[i] = NONE;
        batch->due[i] = 0;
    }
    enter_all(batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t class = batch->class[i], run = i;

        if (class != CLASS_NONE) {
            run = batch->first[class];
            if (++batch->due[class] < batch->sorted[run].count)
                continue;
            batch->due[class] = 0;
            batch->first[class] = batch->sorted[run].next;
        }
        do {
            *rx++ = batch->arrived[run];
            *frame++ = batch->arrived_frame[run];
            run = class == CLASS_NONE ? NONE : batch->sorted[run].with;
        } while (run != NONE);
    }
}

/* Steps the engine until it has consumed the batch. Frees the frames that no relay has taken. Each
 * step consumes packets or has outputs, because BY_TX_MAX is room for those of any packet. */
static void step(struct by_batch *batch)
{
    uint32_t done = 0;

    sort(batch);
    while (done < batch->count) {
        uint32_t count = batch->count - done, used, tx_count;

        if (count > batch->step_packets)
            count = batch->step_packets;
        by_engine_allow(batch->engine, batch->park.most - batch->park.count);
        used = by_engine_step(batch->engine, batch->timeless ? 0 : batch->now_ns, batch->rx + done, count,
                              batch->tx, BY_TX_MAX, &tx_count);
        batch->counters.steps++;
        transmit(batch, tx_count, done);
        batch->ops->drop(batch->context, batch->frame + done, used);
        done += used;
    }
    batch->count = 0;
    if (batch->ops->done != NULL)
        batch->ops->done(batch->context);
}

/* Polls the ports, and then the other sources. */
static uint32_t poll(struct by_batch *batch)
{
    uint32_t received = 0;

    for (uint32_t i = 0; i < batch->source_count; i++) {
        uint32_t source = i < batch->port_count ? (batch->first_port + i) % batch->port_count : i;

        received += batch->ops->receive(batch->context, (uint16_t)source);
        if (batch->count >= BY_BATCH_MAX)
            step(batch);
    }
    return received;
}

/* Takes the frames whose delay is over. Inlined, its frames would be on the stack below the
 * engine's. */
static __attribute__((noinline)) void take_waiting(struct by_batch *batch)
{
    while (batch->hold.count > 0 && batch->count < BY_BATCH_MAX) {
        struct by_held held;

        if (!by_hold_due(&batch->hold, batch->now_ns, &held))
            break;
        take_late(batch, held.port, held.frame, false);
    }
    while (batch->count < BY_BATCH_MAX) {
        struct by_parked parked;

        if (!by_park_take(&batch->park, batch->now_ns, &parked))
            break;
        take_late(batch, parked.port, parked.frame, true);
    }
}

uint32_t by_batch_round(struct by_batch *batch)
{
    uint32_t received;

    if (batch->now_ns >= batch->neighbours.due_ns)
        ask(batch);
    received = poll(batch);
    batch->first_port = (batch->first_port + 1) % batch->port_count;
    take_waiting(batch);
    if (batch->count > 0)
        step(batch);
    batch->counters.loops++;
    return received;
}

uint64_t by_batch_idle_ns(const struct by_batch *batch, uint64_t most_ns)
{
    uint64_t due_ns = by_park_due(&batch->park);

    if (batch->hold.count > 0 && most_ns > BY_HOLD_NS)
        most_ns = BY_HOLD_NS;
    if (due_ns > batch->neighbours.due_ns)
        due_ns = batch->neighbours.due_ns;
    if (due_ns <= batch->now_ns)
        return 0;
    return due_ns - batch->now_ns < most_ns ? due_ns - batch->now_ns : most_ns;
}
