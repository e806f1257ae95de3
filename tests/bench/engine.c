/*
 * bench-engine: contributions per second on one core, in memory: parse, checks, sums, replies. One
 * switch is the root of a tree, and its children's packets for two windows are ready. A round
 * passes them to by_engine_step in bursts and releases the replies at once, as a shell would after
 * sending them. Between rounds the packets get their next sequence numbers, which is not timed.
 *
 * A row compares on the same tree:
 *   - FAST;
 *   - DET, which adds pairs of children in their order, with the packets of a chunk in that order,
 *     and in any order ("mixed");
 *   - EXACT, whose packets hold integers of 64 bits, half as many elements;
 *   - keyed jobs in FAST, whose tags cover headers, or payloads as well, with the time of a
 *     header's tag for a contribution and its reply (ns);
 *   - a job with a share of its ports, of which no packet waits, with the time of its meters.
 * In each round every mode and a plain read of the payloads run one after another, so that a change
 * of clock or other load affects all; the best round of each counts. "of read" is the time of
 * reading the payloads divided by that of the step; its upper limit, 1.00, is as fast as only
 * reading the data. Single-threaded.
 *
 *   bench-engine [ROUNDS [CHILDREN PAYLOAD]]   only that case
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offload/base/prng.h"
#include "offload/engine/state.h"
#include "offload/reduce/reduce.h"

#define WINDOW       64u
#define BURST        32u
#define TX           (BURST * 9u + BY_CHILDREN_MAX + 2u)
#define CHILDREN_MAX 8u
#define CHUNKS       (2u * WINDOW)
#define PACKET_BYTES 1536u /* from the start of a packet to that of the next */
#define HEADROOM     24u   /* so that payloads begin on a cache line */

/* The columns. */
struct engine_column {
    unsigned mode;
    int mixed;
    unsigned cover;
    int shared; /* the job has a share of its ports, and no packet waits */
};
static const struct engine_column columns[] = {
    {BY_MODE_FAST, 0, BY_COVER_NONE, 0},    {BY_MODE_FAST, 0, BY_COVER_HEADER, 0},
    {BY_MODE_FAST, 0, BY_COVER_PAYLOAD, 0}, {BY_MODE_FAST, 0, BY_COVER_NONE, 1},
    {BY_MODE_DET, 0, BY_COVER_NONE, 0},     {BY_MODE_DET, 1, BY_COVER_NONE, 0},
    {BY_MODE_EXACT, 0, BY_COVER_NONE, 0},   {BY_MODE_FAST, 1, BY_COVER_NONE, 0},
};
#define COLUMNS 8u

struct engine_bench {
    unsigned mode;  /* enum by_mode */
    unsigned cover; /* enum by_cover */
    int shared;
    struct by_engine *engine;
    void *memory;
    uint8_t *packets;
    struct by_rx *rx;
    unsigned children;
    uint16_t payload;
    uint32_t seq; /* of the first packet */
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "bench-engine: %s\n", what);
    exit(1);
}

static void load_table(struct engine_bench *bench)
{
    struct by_image_header header = {.kind = BY_NODE_SWITCH,
                                     .slot_count = WINDOW * by_image_det_depth(CHILDREN_MAX),
                                     .payload_max = BY_PAYLOAD_DEFAULT,
                                     .name = "bench",
                                     .count = {CHILDREN_MAX, 1, 1, bench->children, 0, 0, 0, 0}};
    struct by_image_job job = {1, 1,           (uint16_t)bench->children,       BY_RANK_NONE,
                               1, BY_UDP_PORT, bench->shared ? BY_SHARE_ONE : 0};
    struct by_image_entry entry = {.job = 1,
                                   .parent_node = BY_NODE_NONE,
                                   .child_count = (uint8_t)bench->children,
                                   .window = WINDOW,
                                   .payload_max = BY_PAYLOAD_DEFAULT,
                                   .nleaf = (uint16_t)bench->children,
                                   .depth = (uint8_t)by_image_det_depth(bench->children)};
    size_t bytes = by_image_bytes(header.count);
    uint8_t *image = malloc(bytes);
    struct by_image_key key = {.key = {1}, .job = 1, .cover = (uint8_t)bench->cover};

    by_image_put_header(image, &header);
    by_image_put_job(image, 0, &job);
    by_image_put_entry(image, 0, &entry);
    for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
        struct by_image_port port = {.own_ip = 0x0a000100 + i, .mtu = 1500};

        if (bench->shared)
            port.rate_in = port.rate_out = UINT32_MAX;

        snprintf(port.name, sizeof(port.name), "p%u", (unsigned)i);
        by_image_put_port(image, i, &port);
    }
    for (uint32_t i = 0; i < bench->children; i++) {
        struct by_image_child child = {(uint16_t)i, (uint16_t)(1 + i), 0x0a000001 + i, BY_UDP_PORT,
                                       (uint16_t)i};

        by_image_put_child(image, i, &child);
    }
    by_image_seal(image);
    if (bench->cover) {
        uint8_t *plain = image;

        image = malloc(by_image_keyed_bytes(plain, 1));
        bytes = by_image_put_keys(plain, &key, 1, image);
        free(plain);
    }
    if (by_engine_stage(bench->engine, image, bytes, NULL) != 0 || by_engine_commit(bench->engine) != 0)
        die("the table was refused");
    free(image);
}

/* Shuffles the packets of each chunk. */
static void mix_packets(struct engine_bench *bench)
{
    struct by_prng prng = {1};

    for (uint32_t first = 0; first < CHUNKS * bench->children; first += bench->children)
        for (uint32_t i = bench->children; i > 1; i--) {
            struct by_rx *a = &bench->rx[first + i - 1], *b = &bench->rx[first + by_prng_below(&prng, i)];
            struct by_rx swap = *a;

            *a = *b;
            *b = swap;
        }
}

static void open_bench(struct engine_bench *bench, const struct engine_column *column, unsigned children,
                       uint16_t payload)
{
    const struct by_engine_config config = {.slot_count_max = WINDOW * by_image_det_depth(CHILDREN_MAX),
                                            .payload_max = BY_PAYLOAD_DEFAULT,
                                            .image_bytes_max = 1 << 16,
                                            .entry_count_max = 16,
                                            .relay_count_max = 16,
                                            .repair_interval_ns = 1000000,
                                            .isa = by_isa_best(),
                                            .meter_count_max = by_engine_meters(CHILDREN_MAX, 1)};
    size_t bytes = by_engine_size(&config);

    bench->mode = column->mode;
    bench->cover = column->cover;
    bench->shared = column->shared;
    bench->children = children;
    bench->payload = payload;
    bench->seq = 0;
    bench->memory = aligned_alloc(64, bytes);
    bench->packets = aligned_alloc(64, (size_t)CHUNKS * children * PACKET_BYTES);
    bench->rx = calloc((size_t)CHUNKS * children, sizeof(*bench->rx));
    if (!bench->memory || !bench->packets || !bench->rx)
        die("out of memory");
    memset(bench->memory, 0, bytes);
    if (by_engine_init(&bench->engine, bench->memory, bytes, &config) != 0)
        die("the engine was refused");
    load_table(bench);
    for (uint32_t i = 0; i < CHUNKS * children; i++) {
        uint8_t *data = bench->packets + (size_t)i * PACKET_BYTES + HEADROOM;
        float *values = (float *)(data + BY_WIRE_HEADER_BYTES);

        for (unsigned v = 0; v < payload / 4u; v++)
            values[v] = (float)(i + v) * 0.5f;
        bench->rx[i].data = data;
        bench->rx[i].bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + payload);
        bench->rx[i].port = (uint16_t)(i % children);
        bench->rx[i].src_ip = 0x0a000001 + i % children;
        bench->rx[i].dst_ip = 0x0a000100 + i % children;
    }
}

static void close_bench(struct engine_bench *bench)
{
    free(bench->memory);
    free(bench->packets);
    free(bench->rx);
}

/* The tag that the packet's child would write. */
static void seal(const struct engine_bench *bench, const struct by_header *header, uint8_t *data)
{
    const struct by_siphash_key job = {1, 0};
    struct by_siphash_key payload;
    struct by_hop_keys keys;

    by_payload_key_make(&job, &payload);
    by_hop_keys_make(&job, (uint16_t)(1 + header->child), 0, 1, &keys);
    by_header_seal(
        data, &keys.out,
        by_payload_digest(&payload, bench->cover, header->type, data + BY_WIRE_HEADER_BYTES, bench->payload));
}

/* Writes the headers of the next two windows: one chunk after another, each from all children. */
static void number_packets(struct engine_bench *bench)
{
    for (uint32_t i = 0; i < CHUNKS * bench->children; i++) {
        uint8_t *data = bench->packets + (size_t)i * PACKET_BYTES + HEADROOM;
        struct by_header header = {.type = BY_TYPE_CONTRIB,
                                   .flags = bench->payload ? 0 : BY_FLAG_NODATA | BY_FLAG_ACKONLY,
                                   .child = (uint8_t)(i % bench->children),
                                   .op = BY_OP_SUM,
                                   .dtype = BY_DTYPE_F32,
                                   .mode = (uint8_t)bench->mode,
                                   .job = 1,
                                   .gen = 1,
                                   .count =
                                       (uint16_t)(bench->payload / (bench->mode == BY_MODE_EXACT ? 8 : 4)),
                                   .nleaf = 1,
                                   .seq = bench->seq + i / bench->children,
                                   .witness = i,
                                   .psum = by_psum(data + BY_WIRE_HEADER_BYTES, bench->payload),
                                   .optag = 1};

        if (bench->cover)
            header.flags |= BY_FLAG_KEYED;
        by_header_encode(&header, data);
        if (bench->cover)
            seal(bench, &header, data);
    }
    bench->seq += CHUNKS;
}

/* Passes all packets through the engine; returns the time. */
static double run_step(struct engine_bench *bench)
{
    static struct by_tx tx[TX];
    uint32_t count = CHUNKS * bench->children, done = 0, replies = 0, tx_count;
    double start = now_ns(), end;

    while (done < count) {
        uint32_t burst = count - done < BURST ? count - done : BURST;

        done += by_engine_step(bench->engine, (uint64_t)start, bench->rx + done, burst, tx, TX, &tx_count);
        for (uint32_t i = 0; i < tx_count; i++)
            if (tx[i].ref != BY_REF_NONE)
                by_engine_release(bench->engine, tx[i].ref);
        replies += tx_count;
    }
    end = now_ns();
    if (replies != count)
        die("replies are missing");
    return end - start;
}

/* Reads the same payloads, eight words at a time; returns the time. */
static double run_read(struct engine_bench *bench)
{
    static volatile uint64_t sink;
    uint64_t sum[8] = {0};
    double start = now_ns(), end;

    for (uint32_t i = 0; i < CHUNKS * bench->children; i++) {
        const uint64_t *words = (const uint64_t *)(bench->rx[i].data + BY_WIRE_HEADER_BYTES);

        for (unsigned w = 0; w + 8 <= bench->payload / 8u; w += 8)
            for (unsigned k = 0; k < 8; k++)
                sum[k] += words[w + k];
    }
    end = now_ns();
    for (unsigned k = 0; k < 8; k++)
        sink += sum[k];
    return end - start;
}

/* The smaller of two times; 0: no time yet. */
static double least(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

static void measure(unsigned children, uint16_t payload, unsigned rounds)
{
    double step[COLUMNS] = {0}, read = 0, packets = CHUNKS * children;
    struct engine_bench bench[COLUMNS] = {{0}};
    unsigned count = payload ? COLUMNS : 4; /* without data there is no order */

    for (unsigned c = 0; c < count; c++) {
        open_bench(&bench[c], &columns[c], children, payload);
        if (columns[c].mixed)
            mix_packets(&bench[c]);
    }
    for (unsigned r = 0; r <= rounds; r++) { /* the first is warm-up */
        for (unsigned c = 0; c < count; c++) {
            double took;

            number_packets(&bench[c]);
            took = run_step(&bench[c]);
            step[c] = r ? least(step[c], took) : 0;
        }
        read = r ? least(read, run_read(&bench[0])) : 0;
    }
    printf("%8u  %7u  %9.2f  %7.1f  %6.2f", children, payload, packets * 1e3 / step[0], step[0] / packets,
           packets * payload / step[0]);
    if (payload) /* EXACT: elements per second; a packet holds half as many */
        printf("  %7.2f  %10.2f  %5.2f  %12.2f", read / step[0], step[0] / step[4], step[7] / step[5],
               step[0] / step[6] / 2);
    else
        printf("        -           -      -             -");
    printf("  %6.2f  %7.2f  %+8.1f  %6.2f  %+8.1f\n", step[0] / step[1], step[0] / step[2],
           (step[1] - step[0]) / packets, step[0] / step[3], (step[3] - step[0]) / packets);
    fflush(stdout);
    for (unsigned c = 0; c < count; c++)
        close_bench(&bench[c]);
}

/* Nanoseconds for the seal of a bank's header: checked and renewed, as for each contribution. */
static double seal_time(void)
{
    static struct by_bank banks[64];
    double best = 0;
    unsigned broken = 0;

    for (unsigned i = 0; i < 64; i++) {
        banks[i].seq = i * 77;
        by_bank_seal(&banks[i]);
    }
    for (unsigned round = 0; round < 50; round++) {
        double start = now_ns();

        for (unsigned i = 0; i < 64 * 100; i++) {
            struct by_bank *bank = &banks[i % 64];

            broken += !by_bank_is_sealed(bank);
            bank->witness += i;
            by_bank_seal(bank);
        }
        best = least(best, now_ns() - start);
    }
    if (broken)
        die("a seal does not hold");
    return best / (64 * 100);
}

int main(int argc, char **argv)
{
    static const uint16_t payloads[] = {0, 1024, BY_PAYLOAD_DEFAULT};
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 301;

    if (rounds == 0 || argc == 3 || argc > 4)
        die("usage: bench-engine [ROUNDS [CHILDREN PAYLOAD]]");
    printf("engine step, one core, f32 sum, kernels %s, window %u, bursts of %u, replies released\n",
           by_isa_name(by_isa_best()), WINDOW, BURST);
    printf("                     mode fast                            det / fast   exact / fast   keyed / "
           "fast                share /\n");
    printf("children  payload  M contrib/s  ns each    GB/s  of read    in order  mixed    elements/s  "
           "header  payload   ns each    fast   ns each\n");
    printf("    goal     1024      >= 10                                 >= 0.80              >= 0.40\n");
    if (argc == 4) {
        unsigned children = (unsigned)strtoul(argv[2], NULL, 10),
                 payload = (unsigned)strtoul(argv[3], NULL, 10);

        if (children == 0 || children > CHILDREN_MAX || payload > BY_PAYLOAD_DEFAULT || payload % 8 != 0)
            die("children are 1 to 8, payloads multiples of 8 up to 1408");
        measure(children, (uint16_t)payload, rounds);
        return 0;
    }
    for (unsigned p = 0; p < sizeof(payloads) / sizeof(payloads[0]); p++)
        for (unsigned children = 2; children <= CHILDREN_MAX; children *= 2)
            measure(children, payloads[p], rounds);
    printf("seal of a bank's header, checked and renewed: %.1f ns of these\n", seal_time());
    return 0;
}
