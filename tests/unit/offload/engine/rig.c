/* Implements rig.h. */
#include "tests/unit/offload/engine/rig.h"

static uint8_t image[1 << 20];

uint8_t rig_alike;
uint32_t rig_spares;
uint16_t rig_worker, rig_workers;

void rig_open(struct engine_rig *rig)
{
    const struct by_engine_config config = {.slot_count_max = 1024,
                                            .payload_max = RIG_PAYLOAD,
                                            .image_bytes_max = sizeof(image),
                                            .entry_count_max = 64,
                                            .relay_count_max = 16,
                                            .repair_interval_ns = RIG_INTERVAL_NS,
                                            .isa = by_isa_best(),
                                            .alike = rig_alike,
                                            .meter_count_max = by_engine_meters(RIG_PORTS, 2),
                                            .spare_count = rig_spares,
                                            .tx_max = RIG_TX,
                                            .worker = rig_worker,
                                            .worker_count = rig_workers};
    size_t bytes = by_engine_size(&config);

    memset(rig, 0, sizeof(*rig));
    assert_true(bytes > 0);
    rig->memory = aligned_alloc(64, bytes);
    memset(rig->memory, 0xa5, bytes);
    assert_int_equal(by_engine_init(&rig->engine, rig->memory, bytes, &config), 0);
    by_engine_allow(rig->engine, UINT32_MAX);
    rig->now_ns = 1000 * RIG_INTERVAL_NS;
}

static void put_entry(const struct rig_entry *entry, uint32_t index, uint32_t first_child)
{
    struct by_image_entry record = {.job = entry->job,
                                    .tree = entry->tree,
                                    .parent_port = RIG_PARENT_PORT,
                                    .parent_node = entry->root ? BY_NODE_NONE : 50,
                                    .parent_ip = RIG_PARENT_IP,
                                    .parent_udp_port = 5000,
                                    .parent_child = RIG_PARENT_CHILD,
                                    .child_count = entry->children,
                                    .first_child = first_child,
                                    .window = entry->window,
                                    .payload_max = entry->payload_max ? entry->payload_max : RIG_PAYLOAD,
                                    .slot_base = entry->slot_base,
                                    .nleaf = entry->nleaf ? entry->nleaf : entry->children,
                                    .depth = entry->depth,
                                    .sets = (uint8_t)by_image_sets(entry->joined ? 0 : entry->children),
                                    .joined = entry->joined};

    by_image_put_entry(image, index, &record);
    for (unsigned c = 0; c < entry->children; c++) {
        struct by_image_child child = {.port = (uint16_t)(c % RIG_CHILD_PORTS),
                                       .node = (uint16_t)(100 + c),
                                       .ip = RIG_CHILD_IP + c,
                                       .udp_port = (uint16_t)(6000 + c),
                                       .rank = entry->ranks >> c % 64 & 1 ? (uint16_t)c : BY_RANK_NONE};

        by_image_put_child(image, first_child + c, &child);
    }
}

const uint8_t *rig_image(const struct rig_entry *entries, uint32_t count, const struct by_image_relay *relays,
                         uint32_t relay_count, size_t *bytes)
{
    struct by_image_header header = {
        .node = RIG_NODE, .kind = BY_NODE_SWITCH, .payload_max = RIG_PAYLOAD, .name = "rig"};
    struct by_image_job job[64] = {{0}};
    uint32_t jobs = 0, children = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool same = jobs > 0 && job[jobs - 1].job == entries[i].job;

        if (same && entries[i].gen != 0 && entries[i].gen != job[jobs - 1].gen) {
            job[jobs - 1].tree_count = entries[i].tree;
            same = false;
        }
        if (!same)
            job[jobs++] =
                (struct by_image_job){entries[i].job, entries[i].gen, 1000, BY_RANK_NONE, 100, 7000, 0};
        if (entries[i].joined)
            job[jobs - 1].rank_count = entries[i].nleaf;
        children += entries[i].children;
        uint32_t slots = entries[i].window *
                         ((entries[i].depth ? entries[i].depth : 1u) + by_image_sets(entries[i].children));

        if (header.slot_count < entries[i].slot_base + slots)
            header.slot_count = entries[i].slot_base + slots;
    }
    if (count == 0)
        job[jobs++] = (struct by_image_job){1, 1, 1000, BY_RANK_NONE, 100, 7000, 0};
    header.count[BY_SECTION_PORT] = RIG_PORTS;
    header.count[BY_SECTION_JOB] = jobs;
    header.count[BY_SECTION_ENTRY] = count;
    header.count[BY_SECTION_CHILD] = children;
    header.count[BY_SECTION_RELAY] = relay_count;
    *bytes = by_image_bytes(header.count);
    assert_true(*bytes <= sizeof(image));
    by_image_put_header(image, &header);
    for (uint32_t i = 0; i < RIG_PORTS; i++) {
        struct by_image_port port = {
            .own_ip = RIG_OWN_IP + i, .peer_ip = RIG_CHILD_IP + i, .peer_node = 3, .mtu = 9000};

        port.name[0] = 'p';
        port.name[1] = (char)('0' + i);
        by_image_put_port(image, i, &port);
    }
    for (uint32_t i = 0; i < jobs; i++)
        by_image_put_job(image, i, &job[i]);
    children = 0;
    for (uint32_t i = 0; i < count; children += entries[i++].children)
        put_entry(&entries[i], i, children);
    for (uint32_t i = 0; i < relay_count; i++)
        by_image_put_relay(image, i, &relays[i]);
    by_image_seal(image);
    return image;
}

void rig_start(struct engine_rig *rig, const struct rig_entry *entries, uint32_t count)
{
    struct by_image_fault fault = {0};
    const uint8_t *bytes;
    size_t size;

    rig_open(rig);
    bytes = rig_image(entries, count, NULL, 0, &size);
    if (by_engine_stage(rig->engine, bytes, size, &fault) != 0)
        fail_msg("%s %u: %s %llu", fault.section, fault.index, fault.what, (unsigned long long)fault.value);
    assert_int_equal(by_engine_commit(rig->engine), 0);
}

void rig_close(struct engine_rig *rig)
{
    free(rig->memory);
}

static struct by_header base(const struct rig_entry *entry, unsigned type, uint32_t seq)
{
    struct by_header header = {.type = (uint8_t)type,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_F32,
                               .mode = BY_MODE_FAST,
                               .job = entry->job,
                               .tree = entry->tree,
                               .gen = entry->gen,
                               .seq = seq,
                               .optag = 0x1234};
    return header;
}

struct rig_packet rig_contrib(const struct rig_entry *entry, unsigned child, uint32_t seq,
                              const float *values, uint16_t count)
{
    struct rig_packet packet = {.header = base(entry, BY_TYPE_CONTRIB, seq),
                                .payload = values,
                                .bytes = (uint16_t)(4 * count),
                                .port = (uint16_t)(child % RIG_CHILD_PORTS),
                                .src_ip = RIG_CHILD_IP + child,
                                .dst_ip = RIG_OWN_IP + child % RIG_CHILD_PORTS};

    packet.header.child = (uint8_t)(child % BY_CHILDREN_MAX);
    packet.header.count = count;
    packet.header.nleaf = 1;
    packet.header.witness = by_leaf_tag(entry->job, (uint16_t)child);
    return packet;
}

struct rig_packet rig_credit(const struct rig_entry *entry, unsigned child, uint32_t seq, uint16_t count,
                             uint8_t flags)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, NULL, count);

    packet.header.flags = flags | BY_FLAG_NODATA;
    packet.bytes = 0;
    return packet;
}

struct rig_packet rig_result(const struct rig_entry *entry, uint32_t seq, const float *values, uint16_t count)
{
    struct rig_packet packet = {.header = base(entry, BY_TYPE_RESULT, seq),
                                .payload = values,
                                .bytes = (uint16_t)(values ? 4 * count : 0),
                                .port = RIG_PARENT_PORT,
                                .src_ip = RIG_PARENT_IP,
                                .dst_ip = RIG_OWN_IP + RIG_PARENT_PORT};

    packet.header.child = RIG_PARENT_CHILD;
    packet.header.flags = values ? 0 : BY_FLAG_NODATA;
    packet.header.count = count;
    packet.header.nleaf = 77;
    packet.header.witness = 0xabcd;
    return packet;
}

struct rig_packet rig_wait(const struct rig_entry *entry, uint32_t seq, const uint8_t payload[BY_WAIT_BYTES])
{
    struct rig_packet packet = rig_result(entry, seq, NULL, 0);

    packet.header.type = BY_TYPE_WAIT;
    packet.header.flags = 0;
    packet.payload = payload;
    packet.bytes = BY_WAIT_BYTES;
    return packet;
}

static uint64_t drops(const struct by_engine_counters *c)
{
    return c->drop_format + c->drop_version + c->drop_tag + c->drop_entry + c->drop_gen + c->drop_child +
           c->drop_ingress + c->drop_count + c->drop_leaves + c->drop_psum + c->drop_key + c->drop_stale +
           c->drop_window + c->drop_busy + c->drop_state + c->drop_poison + c->alarm_lost_state;
}

static struct by_engine_counters before;

static void step(struct engine_rig *rig, const struct by_rx *rx)
{
    uint32_t done;

    before = *by_engine_counters(rig->engine);
    rig->dropped = drops(&before);
    done = by_engine_step(rig->engine, rig->now_ns, rx, 1, rig->tx, RIG_TX, &rig->tx_count);
    assert_int_equal(done, 1);
}

void rig_send_bytes(struct engine_rig *rig, const uint8_t *data, size_t bytes, uint16_t port, uint32_t src_ip,
                    uint32_t dst_ip)
{
    struct by_rx rx = {
        .data = data, .bytes = (uint16_t)bytes, .port = port, .src_ip = src_ip, .dst_ip = dst_ip};

    step(rig, &rx);
}

void rig_send(struct engine_rig *rig, const struct rig_packet *packet)
{
    size_t bytes = BY_WIRE_HEADER_BYTES + packet->bytes;
    uint8_t *data = malloc(bytes); /* exact size and misaligned: the sanitizer checks accesses */
    struct by_header header = packet->header;
    struct by_rx rx = {.data = data,
                       .payload = packet->apart ? packet->payload : NULL,
                       .bytes = (uint16_t)bytes,
                       .port = packet->port,
                       .src_ip = packet->src_ip,
                       .dst_ip = packet->dst_ip,
                       .ecn = packet->ecn,
                       .direct = packet->direct};

    if (!packet->psum_as_given)
        header.psum = by_psum(packet->payload, packet->bytes);
    by_header_encode(&header, data);
    if (packet->bytes > 0)
        memcpy(data + BY_WIRE_HEADER_BYTES, packet->payload, packet->bytes);
    step(rig, &rx);
    free(data);
}

struct by_header rig_action(struct engine_rig *rig, const struct rig_entry *entry, uint32_t index,
                            const uint8_t **payload)
{
    const struct by_tx *tx = &rig->tx[index];
    uint8_t bytes[BY_WIRE_HEADER_BYTES + 8192];
    const uint8_t *body = tx->payload ? tx->payload : tx->small, *unused;
    struct by_header header;

    assert_true(index < rig->tx_count);
    assert_int_equal(tx->kind, BY_TX_SEND);
    memcpy(bytes, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(bytes + BY_WIRE_HEADER_BYTES, body, tx->payload_bytes);
    assert_int_equal(by_header_decode(bytes, BY_WIRE_HEADER_BYTES + tx->payload_bytes, &header, &unused),
                     tx->payload_bytes);
    assert_int_equal(header.psum, by_psum(body, tx->payload_bytes));
    assert_int_equal(header.job, entry->job);
    assert_int_equal(header.tree, entry->tree);
    assert_int_equal(header.gen, entry->gen);
    assert_true((tx->ref != BY_REF_NONE) == (tx->payload != NULL));
    if (header.type != BY_TYPE_CONTRIB && header.type != BY_TYPE_RESULT) {
        assert_int_equal(header.nleaf, 0); /* they hold no value */
        assert_int_equal(header.witness, 0);
    }
    if (tx->port == RIG_PARENT_PORT) {
        assert_int_equal(tx->dst_ip, RIG_PARENT_IP);
        assert_int_equal(tx->udp_port, 5000);
        assert_int_equal(header.child, RIG_PARENT_CHILD);
    } else {
        unsigned child = tx->dst_ip - RIG_CHILD_IP;

        assert_true(child < entry->children);
        assert_true(header.child == BY_WIRE_CHILD_ALL || header.child == child % BY_CHILDREN_MAX);
        assert_int_equal(tx->port, child % RIG_CHILD_PORTS);
        assert_int_equal(tx->udp_port, 6000 + child);
    }
    if (payload)
        *payload = body;
    return header;
}

void rig_expect_results(struct engine_rig *rig, const struct rig_entry *entry, uint32_t seq,
                        const float *values, uint16_t count)
{
    assert_int_equal(rig->tx_count, entry->children);
    for (unsigned i = 0; i < entry->children; i++) {
        const uint8_t *payload;
        struct by_header header = rig_action(rig, entry, i, &payload);

        assert_int_equal(header.type, BY_TYPE_RESULT);
        assert_int_equal(header.child, i);
        assert_int_equal(header.seq, seq);
        assert_int_equal(header.count, count);
        assert_int_equal(header.flags & BY_FLAG_NODATA, values ? 0 : BY_FLAG_NODATA);
        assert_int_equal(rig->tx[i].payload_bytes, values ? 4 * count : 0);
        if (values)
            assert_memory_equal(payload, values, 4u * count);
    }
}

void rig_expect_up(struct engine_rig *rig, const struct rig_entry *entry, uint32_t seq, uint8_t flags,
                   const float *values, uint16_t count)
{
    const uint8_t *payload;
    struct by_header header = rig_action(rig, entry, 0, &payload);

    assert_int_equal(rig->tx_count, 1);
    assert_int_equal(rig->tx[0].port, RIG_PARENT_PORT);
    assert_int_equal(header.type, BY_TYPE_CONTRIB);
    assert_int_equal(header.seq, seq);
    assert_int_equal(header.count, count);
    assert_int_equal(header.flags, flags | (values ? 0 : BY_FLAG_NODATA));
    assert_int_equal(rig->tx[0].payload_bytes, values ? 4 * count : 0);
    if (values)
        assert_memory_equal(payload, values, 4u * count);
}

void rig_release(struct engine_rig *rig)
{
    for (uint32_t i = 0; i < rig->tx_count; i++)
        if (rig->tx[i].kind == BY_TX_SEND && rig->tx[i].ref != BY_REF_NONE)
            by_engine_release(rig->engine, rig->tx[i].ref);
    rig->tx_count = 0;
}

struct by_bank_view rig_bank(struct engine_rig *rig, uint32_t entry, uint32_t slot, unsigned bank)
{
    struct by_bank_view view = {0};

    assert_int_equal(by_engine_bank(rig->engine, entry, slot, bank, &view), 0);
    return view;
}

void rig_expect_drop(struct engine_rig *rig, size_t offset)
{
    const struct by_engine_counters *now = by_engine_counters(rig->engine);

    assert_int_equal(*(const uint64_t *)((const uint8_t *)now + offset),
                     *(const uint64_t *)((const uint8_t *)&before + offset) + 1);
    assert_int_equal(drops(now), rig->dropped + 1);
}
