/* Sequences of packets against the table of a leaf switch: for any packets, the actions satisfy the
 * guarantees of the interface; payloads stay unchanged until their references are released. */
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "tests/fuzz/input.h"

#define HELD_MAX 256

/* A reference that is not released yet. */
struct held {
    uint32_t ref, psum;
    const uint8_t *payload;
    uint16_t bytes;
};

struct node {
    struct by_engine *engine;
    const uint8_t *image;
    uint32_t port_count;
    struct held held[HELD_MAX];
    uint32_t held_count;
    uint64_t now_ns;
};

static void give_back(struct node *node, uint32_t count)
{
    while (count-- > 0 && node->held_count > 0) {
        const struct held *held = &node->held[--node->held_count];

        FUZZ_CHECK(by_psum(held->payload, held->bytes) == held->psum);
        by_engine_release(node->engine, held->ref);
    }
}

static void step(struct node *node, const struct by_rx *rx)
{
    struct by_tx tx[BY_CHILDREN_MAX + 2];
    uint32_t tx_count = 0, used, sum = 0;

    fuzz_count(1);
    used = by_engine_step(node->engine, node->now_ns, rx, 1, tx, BY_CHILDREN_MAX + 2, &tx_count);
    FUZZ_CHECK((used == 1 || (used == 0 && tx_count > 0)) && tx_count <= BY_CHILDREN_MAX + 2);
    for (uint32_t i = 0; i < tx_count; i++) {
        FUZZ_CHECK(tx[i].port < node->port_count || tx[i].port == BY_PORT_LOCAL);
        if (tx[i].kind == BY_TX_RELAY) {
            FUZZ_CHECK(tx[i].rx_index == 0);
            continue;
        }
        struct by_header header;
        const uint8_t *payload;

        FUZZ_CHECK(tx[i].kind == BY_TX_SEND && tx[i].payload_bytes <= FUZZ_PAYLOAD);
        FUZZ_CHECK(by_header_decode(tx[i].header, BY_WIRE_HEADER_BYTES, &header, &payload) == 0);
        payload = tx[i].payload ? tx[i].payload : tx[i].small;
        if (tx[i].payload_bytes > 0 && (header.type == BY_TYPE_CONTRIB || header.type == BY_TYPE_RESULT))
            FUZZ_CHECK(by_psum(payload, tx[i].payload_bytes) == header.psum);
        for (uint32_t b = 0; b < tx[i].payload_bytes; b++)
            sum += payload[b];
        if (tx[i].ref != BY_REF_NONE) {
            if (node->held_count == HELD_MAX)
                give_back(node, HELD_MAX);
            node->held[node->held_count++] =
                (struct held){tx[i].ref, by_psum(payload, tx[i].payload_bytes), payload, tx[i].payload_bytes};
        }
    }
    static volatile uint32_t sink; /* so that the payloads are read */
    sink = sum;
    (void)sink;
}

/* Sets the address and tag of a child or of the parent in the table, so that the packet is
 * accepted. */
static void come_from_neighbour(const struct node *node, struct by_header *header, uint8_t *packet,
                                struct by_rx *rx)
{
    uint32_t bytes = rx->bytes - BY_WIRE_HEADER_BYTES;
    struct by_image_header image;

    by_image_header(node->image, &image);
    for (uint32_t e = 0; e < image.count[BY_SECTION_ENTRY]; e++) {
        struct by_image_entry entry;
        struct by_image_child child;

        by_image_entry(node->image, e, &entry);
        if (entry.job != header->job || entry.tree != header->tree)
            continue;
        if (header->type == BY_TYPE_CONTRIB && header->child < entry.child_count) {
            by_image_child(node->image, entry.first_child + header->child, &child);
            rx->port = child.port;
            rx->src_ip = child.ip;
            fuzz_encode(node->image, header, packet, bytes, child.node, 0);
        } else if (header->type != BY_TYPE_CONTRIB && entry.parent_node != BY_NODE_NONE) {
            rx->port = entry.parent_port;
            rx->src_ip = entry.parent_ip;
            fuzz_encode(node->image, header, packet, bytes, entry.parent_node, 1);
        }
    }
}

static void play(struct node *node, struct input *input)
{
    uint32_t base_seq = input_bytes(input, 1) & 0x80 ? 0xfffffff8u : 0;

    while (input->size > 0) {
        uint32_t choice = input_bytes(input, 2), bytes;
        uint8_t packet[BY_WIRE_HEADER_BYTES + FUZZ_PAYLOAD + 8] = {0};
        struct by_header header;
        struct by_rx rx = {
            .data = packet, .port = (uint16_t)(choice & 3), .src_ip = FABRIC_IP_BASE + (choice >> 2 & 15)};

        fuzz_header(input, &header, base_seq);
        bytes = header.flags & BY_FLAG_NODATA ? 0 : header.count * by_dtype_bytes(header.dtype);
        if ((choice >> 6 & 15) == 15)
            bytes = choice >> 8 & 63;
        if (bytes > FUZZ_PAYLOAD + 8)
            bytes = FUZZ_PAYLOAD + 8;
        for (uint32_t i = 0; i < bytes; i++)
            packet[BY_WIRE_HEADER_BYTES + i] = (uint8_t)(choice * 7 + i);
        header.psum = by_psum(packet + BY_WIRE_HEADER_BYTES, bytes) + ((choice >> 10 & 31) == 31);
        by_header_encode(&header, packet);
        rx.bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes);
        if (!(choice & 0x8000))
            come_from_neighbour(node, &header, packet, &rx);
        step(node, &rx);
        node->now_ns += choice >> 11 & 1 ? 2000000 : 10;
        give_back(node, choice >> 12 & 3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t *image; /* the same for every input */
    static size_t image_bytes;
    struct input input = {data, size};
    struct node node = {.now_ns = 1000000000};
    struct by_engine_config config = {.payload_max = FUZZ_PAYLOAD,
                                      .entry_count_max = 8,
                                      .relay_count_max = 8,
                                      .repair_interval_ns = 1000000,
                                      .isa = by_isa_best()};
    struct by_image_header header;
    struct by_image_fault fault;
    void *memory;
    size_t need;

    if (image == NULL) {
        static struct fabric fabric;
        int leaf = -1;

        fuzz_fabric(&fabric);
        for (int n = 0; n < fabric.node_count; n++)
            if (strcmp(fabric.nodes[n].name, FUZZ_LEAF) == 0)
                leaf = n;
        FUZZ_CHECK(leaf >= 0);
        image = fabric_image(&fabric, leaf, &image_bytes);
    }
    by_image_header(image, &header);
    config.slot_count_max = header.slot_count;
    config.spare_count = size > 0 && data[0] & 1 ? HELD_MAX : 0;
    config.image_bytes_max = (uint32_t)image_bytes;
    need = by_engine_size(&config);
    memory = aligned_alloc(64, (need + 63) / 64 * 64);
    FUZZ_CHECK(need > 0 && memory != NULL && by_engine_init(&node.engine, memory, need, &config) == 0);
    FUZZ_CHECK(by_engine_stage(node.engine, image, image_bytes, &fault) == 0 &&
               by_engine_commit(node.engine) == 0);
    node.image = image;
    node.port_count = header.count[BY_SECTION_PORT];
    play(&node, &input);
    FUZZ_CHECK(config.spare_count == 0 || by_engine_counters(node.engine)->drop_busy == 0);
    give_back(&node, HELD_MAX);
    free(memory);
    return 0;
}
