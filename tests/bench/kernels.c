/*
 * bench-kernels: the throughput of the reduction kernels and psum beside a plain read of the same
 * memory, which is the upper limit, and beside the sum of f32. In each round a kernel, the read and
 * the sum of f32 run one after another, so that a change of clock or other load affects all; the
 * best round of each counts. GB/s counts payload bytes (on the wire). "of read" is the time of
 * reading all bytes that the kernel touches (payload and slot) divided by the kernel's time: 1.00
 * is as fast as only reading the data. Single-threaded.
 *
 *   cached   payloads and slots of 1408 B in the first-level cache
 *   stream   payloads one after another from a buffer larger than every cache, slots cached; as in
 *            the engine, each payload is prefetched while the previous one is added or read
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/limits.h"
#include "offload/reduce/reduce.h"

#define PAYLOAD     BY_PAYLOAD_DEFAULT
#define SLOTS       4u          /* with their payloads at most 17 KB: in a first-level cache of 32 KB */
#define ROUNDS      31u         /* the first is warm-up and does not count */
#define CALLS       4000u       /* in a round, cached: about an eighth of a millisecond */
#define STREAM_STEP (4ul << 20) /* bytes in a round, from memory */
#define STREAM_MIN  (128ul << 20)
#define STREAM_MAX  (512ul << 20)

enum kernels_kind { LOAD = 1, ACCUMULATE, STORE, PSUM, PSUM_COPY };

struct kernels_job {
    const char *label;
    enum kernels_kind kind;
    unsigned op, dtype; /* not for PSUM, PSUM_COPY */
};

static const struct kernels_job jobs[] = {
    {"sum f32", ACCUMULATE, BY_OP_SUM, BY_DTYPE_F32},
    {"min f32", ACCUMULATE, BY_OP_MIN, BY_DTYPE_F32},
    {"prod f32", ACCUMULATE, BY_OP_PROD, BY_DTYPE_F32},
    {"sum f64", ACCUMULATE, BY_OP_SUM, BY_DTYPE_F64},
    {"max f64", ACCUMULATE, BY_OP_MAX, BY_DTYPE_F64},
    {"sum f16", ACCUMULATE, BY_OP_SUM, BY_DTYPE_F16},
    {"max f16", ACCUMULATE, BY_OP_MAX, BY_DTYPE_F16},
    {"sum bf16", ACCUMULATE, BY_OP_SUM, BY_DTYPE_BF16},
    {"max bf16", ACCUMULATE, BY_OP_MAX, BY_DTYPE_BF16},
    {"sum i8", ACCUMULATE, BY_OP_SUM, BY_DTYPE_I8},
    {"prod i8", ACCUMULATE, BY_OP_PROD, BY_DTYPE_I8},
    {"max u8", ACCUMULATE, BY_OP_MAX, BY_DTYPE_U8},
    {"sum i32", ACCUMULATE, BY_OP_SUM, BY_DTYPE_I32},
    {"prod i32", ACCUMULATE, BY_OP_PROD, BY_DTYPE_I32},
    {"max u32", ACCUMULATE, BY_OP_MAX, BY_DTYPE_U32},
    {"sum i64", ACCUMULATE, BY_OP_SUM, BY_DTYPE_I64},
    {"prod u64", ACCUMULATE, BY_OP_PROD, BY_DTYPE_U64},
    {"max u64", ACCUMULATE, BY_OP_MAX, BY_DTYPE_U64},
    {"bxor u32", ACCUMULATE, BY_OP_BXOR, BY_DTYPE_U32},
    {"load f32", LOAD, BY_OP_SUM, BY_DTYPE_F32},
    {"load f16", LOAD, BY_OP_SUM, BY_DTYPE_F16},
    {"load bf16", LOAD, BY_OP_SUM, BY_DTYPE_BF16},
    {"store f32", STORE, BY_OP_SUM, BY_DTYPE_F32},
    {"store f16", STORE, BY_OP_SUM, BY_DTYPE_F16},
    {"store bf16", STORE, BY_OP_SUM, BY_DTYPE_BF16},
    {"psum", PSUM, 0, 0},
    {"psum_copy", PSUM_COPY, 0, 0},
};

static uint8_t slots[SLOTS][2 * PAYLOAD] __attribute__((aligned(64)));
static uint8_t payloads[SLOTS][PAYLOAD] __attribute__((aligned(64)));
static uint8_t *stream;
static size_t stream_bytes, stream_at;
static volatile uint64_t sink;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef uint64_t quad __attribute__((vector_size(32), aligned(1), may_alias));

/* The plain read: an xor over all bytes, in the widest vectors of most machines, with four parallel
 * chains. */
#define READ_BODY(p, bytes)                                                                                  \
    const quad *v = (p);                                                                                     \
    quad a = {0}, b = {0}, c = {0}, d = {0};                                                                 \
    size_t n = (bytes) / sizeof(quad);                                                                       \
    for (; n >= 4; n -= 4, v += 4) {                                                                         \
        a ^= v[0];                                                                                           \
        b ^= v[1];                                                                                           \
        c ^= v[2];                                                                                           \
        d ^= v[3];                                                                                           \
    }                                                                                                        \
    for (; n > 0; n--)                                                                                       \
        a ^= *v++;                                                                                           \
    a ^= b ^ c ^ d;                                                                                          \
    return a[0] ^ a[1] ^ a[2] ^ a[3]

#if defined(__x86_64__)
__attribute__((target("avx2"), noinline)) static uint64_t read_avx2(const void *p, size_t bytes)
{
    READ_BODY(p, bytes);
}
#endif

__attribute__((noinline)) static uint64_t read_baseline(const void *p, size_t bytes)
{
    READ_BODY(p, bytes);
}

static uint64_t (*read_plain)(const void *p, size_t bytes) = read_baseline;

/* ---- one call of a kernel, and a read of what it touches ---- */

static uint32_t elements(const struct kernels_job *job)
{
    return job->dtype ? PAYLOAD / by_dtype_bytes(job->dtype) : 0;
}

static size_t slot_bytes(const struct kernels_job *job, const struct by_reducer *reducer)
{
    if (job->kind == PSUM)
        return 0;
    return job->kind == PSUM_COPY ? PAYLOAD : (size_t)elements(job) * reducer->acc_bytes;
}

static inline uint32_t call(const struct kernels_job *job, const struct by_reducer *reducer, uint32_t count,
                            void *slot, const void *payload)
{
    uint32_t guard = 0;

    switch (job->kind) {
    case LOAD:
        return reducer->load(slot, payload, count);
    case ACCUMULATE:
        reducer->accumulate(slot, payload, count, &guard);
        return guard;
    case STORE:
        reducer->store(slot, count, &guard);
        return guard;
    case PSUM:
        return by_psum(payload, PAYLOAD);
    case PSUM_COPY:
    default:
        return by_psum_copy(slot, payload, PAYLOAD);
    }
}

/* The place of the next STREAM_STEP in the stream. It rotates, so that it was last read a whole
 * buffer ago. */
static const uint8_t *stream_next(void)
{
    const uint8_t *p = stream + stream_at;

    stream_at = stream_at + 2 * STREAM_STEP > stream_bytes ? 0 : stream_at + STREAM_STEP;
    return p;
}

static inline void ask_for(const uint8_t *payload)
{
    for (unsigned at = 0; at < PAYLOAD; at += 64)
        __builtin_prefetch(payload + at);
}

/* Nanoseconds for one payload. */
static double kernel_time(const struct kernels_job *job, const struct by_reducer *reducer, int streaming)
{
    const uint8_t *from = streaming ? stream_next() : NULL;
    uint32_t calls = streaming ? (uint32_t)(STREAM_STEP / PAYLOAD) : CALLS, count = elements(job), sum = 0;
    double start = now_ns();

    for (uint32_t i = 0; i < calls; i++) {
        if (from)
            ask_for(from + (size_t)(i + 1) * PAYLOAD);
        sum += call(job, reducer, count, slots[i % SLOTS],
                    from ? from + (size_t)i * PAYLOAD : payloads[i % SLOTS]);
    }
    sink = sum;
    return (now_ns() - start) / calls;
}

static double read_time(const struct kernels_job *job, const struct by_reducer *reducer, int streaming)
{
    const uint8_t *from = streaming ? stream_next() : NULL;
    uint32_t calls = streaming ? (uint32_t)(STREAM_STEP / PAYLOAD) : CALLS;
    size_t slot = slot_bytes(job, reducer);
    uint64_t sum = 0;
    double start = now_ns();

    for (uint32_t i = 0; i < calls; i++) {
        if (from)
            ask_for(from + (size_t)(i + 1) * PAYLOAD);
        if (job->kind != STORE)
            sum ^= read_plain(from ? from + (size_t)i * PAYLOAD : payloads[i % SLOTS], PAYLOAD);
        if (slot)
            sum ^= read_plain(slots[i % SLOTS], slot);
    }
    sink = sum;
    return (now_ns() - start) / calls;
}

/* ---- the table ---- */

/* The smaller of two times; 0: no time yet. */
static double least(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

struct figures {
    double time_ns; /* of one payload */
    double of_read; /* the read's time / time_ns */
    double of_f32;  /* the time of the sum of f32 / time_ns */
};

static struct figures measure(const struct kernels_job *job, unsigned isa, int streaming)
{
    static const struct kernels_job sum_f32 = {"sum f32", ACCUMULATE, BY_OP_SUM, BY_DTYPE_F32};
    const struct by_reducer *reducer = job->dtype ? by_reducer_get(isa, job->op, job->dtype) : NULL;
    const struct by_reducer *f32 = by_reducer_get(isa, BY_OP_SUM, BY_DTYPE_F32);
    double kernel = 0, read = 0, reference = 0;

    memset(slots, 0, sizeof(slots));
    for (unsigned round = 0; round < ROUNDS; round++) {
        double times[3] = {kernel_time(job, reducer, streaming), read_time(job, reducer, streaming),
                           kernel_time(&sum_f32, f32, streaming)};

        kernel = round ? least(kernel, times[0]) : 0;
        read = round ? least(read, times[1]) : 0;
        reference = round ? least(reference, times[2]) : 0;
    }
    return (struct figures){kernel, read / kernel, reference / kernel};
}

static void row_print(const struct kernels_job *job, unsigned isa)
{
    struct figures figures = measure(job, isa, 0);

    printf("%-11s %8.1f %8.1f %8.2f %8.2f", job->label, figures.time_ns, PAYLOAD / figures.time_ns,
           figures.of_read, figures.of_f32);
    if (job->dtype)
        printf(" %9.1f", PAYLOAD / measure(job, BY_ISA_SCALAR, 0).time_ns);
    else
        printf(" %9s", "-"); /* psum has one form */
    if (job->kind != STORE) {
        figures = measure(job, isa, 1);
        printf(" %8.1f %8.2f %8.2f\n", PAYLOAD / figures.time_ns, figures.of_read, figures.of_f32);
    } else {
        printf(" %8s %8s %8s\n", "-", "-", "-"); /* only slots: no access to memory */
    }
    fflush(stdout);
}

static unsigned isa_choose(int argc, char **argv)
{
    if (argc < 2)
        return by_isa_best();
    for (unsigned isa = BY_ISA_SCALAR; isa < BY_ISA_COUNT; isa++)
        if (argc == 2 && by_isa_usable(isa) && strcmp(by_isa_name(isa), argv[1]) == 0)
            return isa;
    fprintf(stderr, "bench-kernels: '%s' is not an instruction set of this machine; give one of:", argv[1]);
    for (unsigned isa = BY_ISA_SCALAR; isa < BY_ISA_COUNT; isa++)
        if (by_isa_usable(isa))
            fprintf(stderr, " %s", by_isa_name(isa));
    fprintf(stderr, "\n");
    exit(2);
}

/* Four times the last-level cache, within bounds; steps of STREAM_STEP. */
static size_t stream_size(void)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = cache > 0 ? 4 * (size_t)cache : STREAM_MIN;

    bytes = bytes < STREAM_MIN ? STREAM_MIN : bytes > STREAM_MAX ? STREAM_MAX : bytes;
    return bytes / STREAM_STEP * STREAM_STEP;
}

int main(int argc, char **argv)
{
    unsigned isa = isa_choose(argc, argv);

#if defined(__x86_64__)
    if (by_isa_usable(BY_ISA_AVX2))
        read_plain = read_avx2;
#endif
    stream_bytes = stream_size();
    stream = malloc(stream_bytes);
    if (!stream) {
        fprintf(stderr, "bench-kernels: no memory for a buffer of %zu MiB\n", stream_bytes >> 20);
        return 1;
    }
    /* 1 in bf16, near 1 in f16 and f32: sums and products avoid subnormals, which some
     * processors compute slowly. */
    for (size_t i = 0; i < stream_bytes; i += 2)
        memcpy(stream + i, &(const uint16_t){0x3f80}, 2);
    memcpy(payloads, stream, sizeof(payloads));

    printf("reduction kernels, %s, payloads of %u B; GB/s of payload; 'of read': share of a plain read's "
           "speed\n\n",
           by_isa_name(isa), PAYLOAD);
    printf("%-11s %35s %9s %26s\n", "", "---- cached ----", "", "---- stream ----");
    printf("%-11s %8s %8s %8s %8s %9s %8s %8s %8s\n", "kernel", "ns", "GB/s", "of read", "of f32", "baseline",
           "GB/s", "of read", "of f32");
    printf("%-11s %8s %8s %8s %8s %9s %8s %8s %8s\n", "goal f32", "", "", "", "", "", "", ">= 0.90", "");
    printf("%-11s %8s %8s %8s %8s %9s %8s %8s %8s\n", "goal halves", "", "", "", ">= 0.50", "", "", "",
           ">= 0.50");
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        row_print(&jobs[i], isa);
    free(stream);
    return 0;
}
