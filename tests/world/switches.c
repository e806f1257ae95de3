/* Switches of the world: the real agent and the real engine, and the cables between all nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/errors.h"
#include "offload/reduce/reduce.h"
#include "tests/world/world.h"

#define IMAGE_MAX   32768u
#define ENTRY_MAX   64u
#define RELAY_MAX   64u
#define PAYLOAD_MAX 512u
#define TX_MAX      (BY_CHILDREN_MAX + 2u)

/* ---- no key twice, no table mix ---- */

/* Of each job and generation that any node ever had in use: the key, which is drawn for each set of
 * tables, so that it names them. */
struct table_claim {
    uint16_t job, gen;
    uint8_t key[16];
    char where[48];
};

static struct table_claim *claims;
static uint32_t claim_count, claim_room;

void world_claims_reset(void)
{
    claim_count = 0;
}

static void claim(uint16_t job, uint16_t gen, const uint8_t key[16], const char *where)
{
    for (uint32_t i = 0; i < claim_count; i++) {
        const struct table_claim *other = &claims[i];
        bool same = other->job == job && other->gen == gen, key_same = memcmp(other->key, key, 16) == 0;

        if (same && key_same)
            return;
        if (same)
            vm_violate("two tables of job %u in generation %u: at %s, and at %s", job, gen, other->where,
                       where);
        else if (key_same)
            vm_violate("one key twice: job %u in generation %u at %s, job %u in generation %u at %s",
                       other->job, other->gen, other->where, job, gen, where);
    }
    if (claim_count == claim_room) {
        claim_room = 2 * claim_room + 64;
        claims = realloc(claims, claim_room * sizeof(*claims));
        if (claims == NULL)
            abort();
    }
    claims[claim_count] = (struct table_claim){.job = job, .gen = gen};
    memcpy(claims[claim_count].key, key, 16);
    snprintf(claims[claim_count++].where, sizeof(claims[0].where), "%s", where);
}

void world_claim(const uint8_t *image, const char *where)
{
    struct by_image_header header;
    uint32_t place = 0;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        struct by_image_job job;
        struct by_image_key key;

        place = by_image_job_is_standby(image, i) ? place + 1 : 0;
        by_image_job(image, i, &job);
        if (by_image_key_at(image, job.job, place, &key))
            claim(job.job, job.gen, key.key, where);
    }
}

/* ---- cables ---- */

static void step(struct world_switch *device, const struct world_packet *packet);

static void on_packet(void *context, uint64_t number)
{
    struct world_packet *packet = context;

    (void)number;
    if (world.switch_of[packet->to] >= 0) {
        struct world_switch *device = &world.switches[world.switch_of[packet->to]];

        if (device->up) {
            device->ports[packet->port].rx_packets++;
            device->ports[packet->port].rx_bytes += packet->bytes;
            step(device, packet);
        }
    } else {
        struct world_packet *copy = malloc(sizeof(*copy) + packet->bytes);

        if (copy == NULL)
            abort();
        memcpy(copy, packet, sizeof(*copy) + packet->bytes);
        world_host_arrive(&world.hosts[world.host_of[packet->to]], copy);
    }
}

static void send_from(uint32_t node, uint32_t port, uint32_t src_ip, const uint8_t *header,
                      const uint8_t *payload, size_t bytes, uint32_t dst_ip, uint8_t ecn)
{
    uint32_t link = by_address_link(&world.map, node, port);
    const struct by_link *ends = &world.topology->links[link];
    const struct world_cable *cable = &world.cables[link];
    uint32_t to = ends->a == node ? ends->b : ends->a;
    size_t head = header != NULL ? BY_WIRE_HEADER_BYTES : 0;
    struct world_packet *packet;

    world.counts.packets++;
    if (world.switch_of[node] >= 0) {
        world.switches[world.switch_of[node]].ports[port].tx_packets++;
        world.switches[world.switch_of[node]].ports[port].tx_bytes += bytes + head;
    }
    if (cable->down || (cable->loss > 0 && vm_draw(1000) < cable->loss))
        return;
    packet = malloc(sizeof(*packet) + head + bytes);
    if (packet == NULL)
        abort();
    *packet =
        (struct world_packet){.to = to,
                              .port = (uint16_t)by_address_port(&world.map, link, to),
                              .src_ip = src_ip != 0 ? src_ip : by_address_ip(world.topology, link, node),
                              .dst_ip = dst_ip,
                              .ecn = ecn,
                              .bytes = (uint16_t)(head + bytes)};
    if (head > 0)
        memcpy(packet->data, header, head);
    if (bytes > 0)
        memcpy(packet->data + head, payload, bytes);
    vm_at_with(vm.now_ns + 2000 + vm_draw(3000), on_packet, packet);
}

void world_send(uint32_t node, const struct by_tx *tx)
{
    send_from(node, tx->port, 0, tx->header, tx->payload != NULL ? tx->payload : tx->small, tx->payload_bytes,
              tx->dst_ip, tx->ecn);
}

void world_relay(uint32_t node, const struct by_tx *tx, const struct by_rx *rx)
{
    send_from(node, tx->port, rx->src_ip, NULL, rx->data, rx->bytes, rx->dst_ip, rx->ecn);
}

static void on_held(void *context, uint64_t number)
{
    struct world_packet *packet = context;
    struct world_switch *device = &world.switches[world.switch_of[packet->to]];

    (void)number;
    if (device->up)
        step(device, packet);
}

static void step(struct world_switch *device, const struct world_packet *packet)
{
    struct by_rx rx = {.data = packet->data,
                       .bytes = packet->bytes,
                       .port = packet->port,
                       .src_ip = packet->src_ip,
                       .dst_ip = packet->dst_ip,
                       .ecn = packet->ecn,
                       .held = packet->held};
    struct by_tx tx[TX_MAX];
    uint32_t taken = 0, count = 0;

    while (taken == 0) {
        by_engine_allow(device->engine, UINT32_MAX);
        taken = by_engine_step(device->engine, vm.now_ns, &rx, 1, tx, TX_MAX, &count);
        for (uint32_t i = 0; i < count; i++) {
            if (tx[i].kind == BY_TX_RELAY) {
                world_relay(device->node, &tx[i], &rx);
            } else if (tx[i].kind == BY_TX_HOLD) {
                struct world_packet *copy = malloc(sizeof(*copy) + packet->bytes);

                if (copy == NULL)
                    abort();
                memcpy(copy, packet, sizeof(*copy) + packet->bytes);
                copy->held = 1;
                vm_at_with(vm.now_ns + tx[i].wait_ns, on_held, copy);
            } else {
                world_send(device->node, &tx[i]);
            }
            if (tx[i].ref != BY_REF_NONE)
                by_engine_release(device->engine, tx[i].ref);
        }
        if (taken == 0 && count == 0)
            return;
    }
}

/* ---- the agent's node ---- */

static int node_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    return by_engine_stage(((struct world_switch *)node)->engine, image, bytes, fault);
}

static int node_commit(void *node)
{
    struct world_switch *device = node;
    int error = by_engine_commit(device->engine);
    const uint8_t *image;
    size_t bytes;

    if (error != 0)
        return error;
    image = by_engine_image(device->engine, &bytes);
    world.counts.commits++;
    vm_trace("%s commits table %016llx", device->name, (unsigned long long)by_image_hash(image, bytes));
    world_claim(image, device->name);
    return 0;
}

static void node_abort(void *node)
{
    by_engine_abort(((struct world_switch *)node)->engine);
}

static const uint8_t *node_image(void *node, size_t *bytes)
{
    return by_engine_image(((struct world_switch *)node)->engine, bytes);
}

/* Those that banyand reads: the encoding of all of them would take most of the test's time. */
static int node_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    const struct by_engine_counters *counters = by_engine_counters(((struct world_switch *)node)->engine);
    const struct by_agent_counter known[] = {{"rx", counters->rx},
                                             {"complete", counters->complete},
                                             {"up", counters->up},
                                             {"relay", counters->relay}};

    if (index >= sizeof(known) / sizeof(known[0]))
        return BY_ENOENT;
    *out = known[index];
    return 0;
}

static int node_port(void *node, uint32_t index, struct by_agent_port *out)
{
    struct world_switch *device = node;

    if (index >= device->port_count)
        return BY_ENOENT;
    *out = device->ports[index];
    out->name = "p";
    out->down = world.cables[by_address_link(&world.map, device->node, index)].down;
    return 0;
}

static int node_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    struct world_switch *device = node;
    struct by_image_header header;
    size_t bytes;
    const uint8_t *image = by_engine_image(device->engine, &bytes);
    int error;

    if (image == NULL)
        return BY_ENOENT;
    by_image_header(image, &header);
    if (index >= header.count[BY_SECTION_ENTRY])
        return BY_ENOENT;
    error = by_engine_oldest(device->engine, index, out);
    return error == BY_ENOENT ? BY_EAGAIN : error;
}

static void node_clock(void *node, uint64_t *now_ns, uint64_t *unix_ns)
{
    (void)node;
    *now_ns = vm.now_ns + 1;
    *unix_ns = (uint64_t)((int64_t)vm.now_ns + vm.wall_ns);
}

static const struct by_agent_ops ops = {.stage = node_stage,
                                        .commit = node_commit,
                                        .abort = node_abort,
                                        .image = node_image,
                                        .counter = node_counter,
                                        .port = node_port,
                                        .waiting = node_waiting,
                                        .clock = node_clock,
                                        .keep = NULL,
                                        .share = NULL,
                                        .interface = NULL,
                                        .announce = NULL,
                                        .way = NULL};

/* ---- its server ---- */

/* A connection to a switch. */
struct world_client {
    struct by_channel channel;
    struct vm_stream *stream;
    struct world_switch *device;
    struct world_client *next;
};

static struct world_client *clients;

static void on_opened(void *context, struct vm_stream *stream)
{
    struct world_client *client = malloc(sizeof(*client));

    if (client == NULL)
        abort();
    client->stream = stream;
    client->device = context;
    client->next = clients;
    clients = client;
    by_channel_init(&client->channel, NULL);
    *vm_stream_data(stream) = client;
}

static void on_input(void *context, struct vm_stream *stream, const uint8_t *bytes, size_t count)
{
    static uint8_t out[BY_CHANNEL_OUT_MIN];
    struct world_switch *device = context;
    struct world_client *client = *vm_stream_data(stream);

    while (count > 0 && device->up && client != NULL) {
        size_t used = 0;
        int32_t written =
            by_channel_step(&client->channel, device->agent, bytes, count, &used, out, sizeof(out));

        if (written > 0)
            vm_stream_send(stream, out, (size_t)written);
        if (written < 0 || used == 0)
            break;
        bytes += used;
        count -= used;
    }
}

static void on_closed(void *context, struct vm_stream *stream)
{
    struct world_client *client = *vm_stream_data(stream), **at = &clients;

    (void)context;
    while (*at != NULL && *at != client)
        at = &(*at)->next;
    if (*at != NULL)
        *at = client->next;
    free(client);
    *vm_stream_data(stream) = NULL;
}

void world_carrier_changed(uint32_t link)
{
    static uint8_t out[BY_CHANNEL_OUT_MIN];
    const struct by_link *ends = &world.topology->links[link];

    for (struct world_client *client = clients; client != NULL; client = client->next) {
        size_t bytes = 0;

        if (client->device->up && (client->device->node == ends->a || client->device->node == ends->b))
            bytes = by_channel_notice(&client->channel, client->device->agent, out, sizeof(out));
        if (bytes > 0)
            vm_stream_send(client->stream, out, bytes);
    }
}

void world_switch_open(struct world_switch *device)
{
    device->port_count = world.map.port_count[device->node];
    device->link = (struct vm_link){.latency_ns = 50000};
    device->server = (struct vm_server){.link = &device->link,
                                        .opened = on_opened,
                                        .input = on_input,
                                        .closed = on_closed,
                                        .context = device};
    snprintf(device->server.path, sizeof(device->server.path), "/w/%s.sock", device->name);
    vm_server_add(&device->server);
}

void world_switch_start(struct world_switch *device)
{
    static unsigned isa;
    struct by_engine_config engine = {.slot_count_max = world.slot_count,
                                      .payload_max = PAYLOAD_MAX,
                                      .image_bytes_max = IMAGE_MAX,
                                      .entry_count_max = ENTRY_MAX,
                                      .relay_count_max = RELAY_MAX,
                                      .repair_interval_ns = 100000,
                                      .tx_max = TX_MAX};
    struct by_agent_config agent = {.name = device->name,
                                    .able = by_Able_ABLE_STANDBY,
                                    .software = "world",
                                    .boot_nonce = by_prng_next(&vm.prng) | 1,
                                    .port_count = device->port_count,
                                    .slot_count = world.slot_count,
                                    .payload_max = PAYLOAD_MAX,
                                    .entry_max = ENTRY_MAX,
                                    .relay_max = RELAY_MAX,
                                    .image_bytes_max = IMAGE_MAX,
                                    .ops = &ops,
                                    .node = device};
    size_t bytes;
    void *memory;

    if (device->up)
        return;
    if (isa == 0)
        isa = by_isa_best();
    engine.isa = isa;
    bytes = by_engine_size(&engine);
    memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (bytes == 0 || memory == NULL || by_engine_init(&device->engine, memory, bytes, &engine) != 0)
        abort();
    bytes = by_agent_size(&agent);
    device->agent_memory = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
    if (device->agent_memory == NULL ||
        by_agent_init(&device->agent, device->agent_memory, bytes, &agent) != 0)
        abort();
    memset(device->ports, 0, sizeof(device->ports));
    device->up = device->server.listens = true;
    vm_trace("%s starts", device->name);
}

void world_switch_die(struct world_switch *device)
{
    if (!device->up)
        return;
    vm_trace("%s dies", device->name);
    device->up = device->server.listens = false;
    vm_server_reset(&device->server);
    free(device->engine);
    free(device->agent_memory);
    device->engine = NULL;
}
