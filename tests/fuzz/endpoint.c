/* Calls and sequences of packets at one host, and messages of other ranks about resumed calls:
 * nothing is written outside the call's buffers, and every call ends. */
#include "offload/endpoint/resume.h"
#include "offload/reduce/reduce.h"
#include "tests/fuzz/input.h"

#define TX_MAX    32
#define BYTES_MAX 2048 /* size of each buffer */

struct host {
    struct by_endpoint *endpoint;
    const uint8_t *image;
    uint64_t now_ns;
    void *memory; /* of the endpoint */
    struct by_resume *resume;
    void *resume_memory;
    struct by_header sent[TX_MAX]; /* in the last step */
    uint32_t sent_count;
};

static uint8_t *images[2]; /* two generations, the same for every input */
static size_t image_bytes[2];

static struct by_endpoint_config config_of(unsigned generation)
{
    return (struct by_endpoint_config){.image = images[generation],
                                       .image_bytes = image_bytes[generation],
                                       .job = 1,
                                       .isa = by_isa_best(),
                                       .resume = 1};
}

static void step(struct host *host, const struct by_rx *rx, uint32_t rx_count)
{
    struct by_tx tx[TX_MAX];
    uint32_t tx_count = 0;

    fuzz_count(rx_count);
    FUZZ_CHECK(by_endpoint_step(host->endpoint, host->now_ns, rx, rx_count, tx, TX_MAX, &tx_count) <=
               rx_count);
    FUZZ_CHECK(tx_count <= TX_MAX);
    for (uint32_t i = 0; i < tx_count; i++) {
        struct by_header header;
        const uint8_t *payload;

        FUZZ_CHECK(tx[i].kind == BY_TX_SEND && tx[i].payload_bytes <= FUZZ_PAYLOAD);
        FUZZ_CHECK(by_header_decode(tx[i].header, BY_WIRE_HEADER_BYTES, &header, &payload) == 0);
        FUZZ_CHECK(header.type == BY_TYPE_CONTRIB || header.type == BY_TYPE_PROBE ||
                   header.type == BY_TYPE_GAP);
        if (tx[i].payload_bytes > 0) /* reads the whole payload */
            FUZZ_CHECK(by_psum(tx[i].payload ? tx[i].payload : tx[i].small, tx[i].payload_bytes) ==
                       header.psum);
        host->sent[i] = header;
    }
    host->sent_count = tx_count;
}

static void give(struct host *host, struct input *input, uint32_t choice)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + FUZZ_PAYLOAD + 8] = {0};
    struct by_header header;
    struct by_rx rx = {.data = packet, .src_ip = FABRIC_IP_BASE + (choice >> 4 & 15)};
    struct by_image_header image;
    uint32_t bytes;

    fuzz_header(input, &header, 0);
    header.optag = by_optag(choice >> 8 & 1, 1 + (choice >> 9 & 7) % 6, 0, choice >> 12 & 1 ? 40 : 16);
    header.optag ^= by_session_salt((const uint32_t[4]){0}, 4);
    header.nleaf = 4;
    if (choice & 2) { /* a correct witness */
        header.witness = 0;
        for (uint16_t rank = 0; rank < 4; rank++)
            header.witness += by_leaf_tag(header.job, rank);
    }
    bytes = header.flags & BY_FLAG_NODATA ? 0 : header.count * by_dtype_bytes(header.dtype);
    if (bytes > FUZZ_PAYLOAD + 8)
        bytes = FUZZ_PAYLOAD + 8;
    for (uint32_t i = 0; i < bytes; i++)
        packet[BY_WIRE_HEADER_BYTES + i] = (uint8_t)(choice + i);
    header.psum = by_psum(packet + BY_WIRE_HEADER_BYTES, bytes);
    by_header_encode(&header, packet);
    rx.bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes);
    by_image_header(host->image, &image);
    for (uint32_t l = 0; l < image.count[BY_SECTION_LEAF] && !(choice & 4); l++) {
        struct by_image_leaf leaf;

        by_image_leaf(host->image, l, &leaf);
        if (leaf.job == header.job && leaf.tree == header.tree) {
            rx.port = leaf.parent_port;
            rx.src_ip = leaf.parent_ip;
            fuzz_encode(host->image, &header, packet, bytes, leaf.parent_node, 1);
        }
    }
    step(host, &rx, 1);
}

/* Answers a chunk of the session that the host has sent: all nonces are 0, like this rank's own. */
static void answer(struct host *host, struct by_header header)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + 16] = {0};
    struct by_rx rx = {.data = packet};
    struct by_image_header image;
    uint32_t bytes = header.count;

    FUZZ_CHECK(bytes <= 16);
    header.type = BY_TYPE_RESULT;
    header.flags &= (uint8_t)~BY_FLAG_KEYED;
    header.nleaf = 4;
    header.witness = 0;
    for (uint16_t rank = 0; rank < 4; rank++)
        header.witness += by_leaf_tag(header.job, rank);
    by_image_header(host->image, &image);
    for (uint32_t l = 0; l < image.count[BY_SECTION_LEAF]; l++) {
        struct by_image_leaf leaf;

        by_image_leaf(host->image, l, &leaf);
        if (leaf.job != header.job || leaf.tree != header.tree)
            continue;
        header.child = leaf.parent_child;
        rx.port = leaf.parent_port;
        rx.src_ip = leaf.parent_ip;
        rx.bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes);
        fuzz_encode(host->image, &header, packet, bytes, leaf.parent_node, 1);
    }
    step(host, &rx, 1);
}

/* Answers the roll call and then the openings, so that the calls can begin. */
static void agree(struct host *host)
{
    step(host, NULL, 0);
    for (unsigned part = 0; part < 2; part++) {
        struct by_header sent[TX_MAX];
        uint32_t count = host->sent_count;

        memcpy(sent, host->sent, sizeof(sent));
        for (uint32_t i = 0; i < count; i++)
            answer(host, sent[i]);
    }
    FUZZ_CHECK(by_endpoint_counters(host->endpoint)->session == 1);
}

static void post(struct host *host, uint32_t choice, uint8_t *send, uint8_t *recv, uint32_t *open)
{
    static uint64_t scratch[4][BYTES_MAX / 4]; /* 4 shards of 40 elements of 16 bytes, and their scales */
    struct by_call call = {.collective = (uint8_t)(1 + (choice >> 4 & 7)),
                           .op = (uint8_t)(1 + (choice >> 7 & 7)),
                           .dtype = (uint8_t)(1 + (choice >> 10 & 7)),
                           .mode = choice & 8 ? 1 + (choice >> 7 & 3) : BY_MODE_FAST,
                           .root = (uint16_t)(choice >> 13 & 3),
                           .count = choice & 4 ? 16 : 40,
                           .send = send,
                           .recv = recv,
                           .scratch = scratch[*open]};
    const char *field = NULL;
    uint32_t id;

    if (by_endpoint_post(host->endpoint, &call, &id, &field) != 0)
        return;
    if ((*open)++ == 0 && !(choice & 2) && call.collective != 0)
        agree(host);
}

static uint16_t gen_of(const uint8_t *image)
{
    struct by_image_job job;

    by_image_job(image, 0, &job);
    return job.gen;
}

/* The calls continue in the second generation. */
static void carry(struct host *host)
{
    struct by_endpoint_config config = config_of(1);
    size_t bytes = by_resume_copy_size(host->resume, &config);
    void *memory = aligned_alloc(64, bytes);

    FUZZ_CHECK(bytes > 0 && memory != NULL);
    FUZZ_CHECK(by_resume_copy(host->resume, &host->endpoint, memory, bytes, &config) == 0);
    host->image = images[1];
    free(host->memory);
    host->memory = memory;
}

/* Gives a message of another rank that is almost valid. */
static void level(struct host *host, struct input *input)
{
    uint8_t data[128] = {1, (uint8_t)(1 + (input_bytes(input, 1) & 3))}, said[1024];
    uint32_t more = input_bytes(input, 1), bytes = 8 + (more & 63);
    uint16_t to;
    int over = host->image == images[1];

    if (host->resume == NULL) {
        host->resume_memory = aligned_alloc(64, by_resume_size(host->endpoint));
        FUZZ_CHECK(host->resume_memory != NULL && by_resume_message_max(host->endpoint) <= sizeof(said));
        if (by_resume_begin(&host->resume, host->resume_memory, host->endpoint, gen_of(images[1])) != 0) {
            free(host->resume_memory);
            return;
        }
    }
    data[3] = 1;
    data[4] = (uint8_t)(gen_of(images[1]) >> 8);
    data[5] = (uint8_t)gen_of(images[1]);
    data[7] = more >> 6 & 3;
    for (uint32_t i = 8; i < bytes; i++)
        data[i] = (uint8_t)input_bytes(input, 1);
    if (bytes >= 10 && data[1] != 4) {
        data[8] = (uint8_t)(gen_of(images[0]) >> 8);
        data[9] = (uint8_t)gen_of(images[0]);
    }
    if (data[1] == 3 && bytes > 20) {
        uint32_t psum = by_psum(data + 20, bytes - 20);

        for (unsigned i = 0; i < 4; i++)
            data[16 + i] = (uint8_t)(psum >> 8 * (3 - i));
    }
    if (by_resume_take(host->resume, data, bytes) == 0)
        while (by_resume_say(host->resume, said, &to) > 0)
            FUZZ_CHECK(to < 4);
    if (!over && by_resume_is_level(host->resume) && host->image == images[0])
        carry(host);
}

static void play(struct host *host, struct input *input)
{
    uint8_t *send = calloc(1, BYTES_MAX),
            *recv = calloc(1, BYTES_MAX); /* fits 4 ranks x 40 elements of 8 bytes */
    uint32_t open = 0;

    FUZZ_CHECK(send != NULL && recv != NULL);
    while (input->size > 0) {
        uint32_t choice = input_bytes(input, 2);

        if ((choice & 1) && open < 4)
            post(host, choice, send, recv, &open);
        else if ((choice >> 13 & 3) == 3 && open > 0)
            level(host, input);
        else
            give(host, input, choice);
        host->now_ns += choice >> 15 ? 50000000 : 1000;
        step(host, NULL, 0);
    }
    by_endpoint_abort(host->endpoint);
    step(host, NULL, 0);
    FUZZ_CHECK(by_endpoint_inflight(host->endpoint) == 0);
    free(recv);
    free(send);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct host host = {.now_ns = 1000000000};
    struct by_endpoint_config config;
    size_t need;

    for (unsigned g = 0; g < 2 && images[g] == NULL; g++) {
        static struct fabric fabric;

        memset(&fabric, 0, sizeof(fabric));
        fuzz_fabric(&fabric);
        fabric.jobs[0].gen = (uint16_t)(fabric.jobs[0].gen + g);
        images[g] = fabric_image(&fabric, fabric.jobs[0].rank_node[0], &image_bytes[g]);
    }
    config = config_of(0);
    host.image = images[0];
    need = by_endpoint_size(&config);
    host.memory = aligned_alloc(64, (need + 63) / 64 * 64);
    FUZZ_CHECK(need > 0 && host.memory != NULL &&
               by_endpoint_init(&host.endpoint, host.memory, need, &config) == 0);
    play(&host, &input);
    if (host.resume != NULL)
        free(host.resume_memory);
    free(host.memory);
    return 0;
}
