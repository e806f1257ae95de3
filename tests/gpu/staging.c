/*
 * Collectives on buffers of a GPU, by two processes on one GPU that are connected by TCP on the
 * loopback interface: every collective, sizes, alignments, device and pinned memory at either end,
 * f16 and bf16; then rates beside those of the driver's own copies and of buffers of the host.
 *   gpu_staging_test          the driver library without a GPU (fake_cuda.h); part of `make test`
 *   gpu_staging_test gpu      CUDA's driver library, and the rates; `make gpu` runs it
 * Exit status: 0; 1 a result is wrong; 77 there is no GPU.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <banyan/banyan.h>

#include "tests/unit/host-driver/gpu/fake_cuda.h"

#define RANKS       2u
#define SHIFT_MAX   3u         /* elements before a buffer that is not aligned */
#define BYTES_MAX   (9u << 20) /* of a checked operation; more than two chunks */
#define FAKE_BYTES  200000u    /* the same without a GPU, with smaller chunks */
#define FAKE_CHUNK  "65536"
#define RATE_BYTES  (64u << 20)
#define RATE_ROUNDS 10
#define SKIPPED     77

static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDriverGetVersion)(int *version);
    int (*cuDeviceGet)(int *device, int number);
    int (*cuDeviceGetName)(char *name, int bytes, int device);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuCtxPopCurrent_v2)(void **context);
    int (*cuMemAlloc_v2)(uint64_t *memory, size_t bytes);
    int (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags);
    int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t bytes);
    int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t bytes);
    /* instead of CUDA's */
    fake_take_fn *take;
    fake_write_fn *write;
    fake_read_fn *read;
    void *context;
    char name[100];
    int version;
} gpu;

enum memory { DEVICE, PINNED, PAGEABLE, MEMORIES };
static const char *const memory_names[] = {"device", "pinned", "pageable"};

struct area {
    char *at;
    enum memory memory;
};

static unsigned rank, checked, wrong;
static size_t bytes_max;
static struct banyan_comm *comm;
static char *mine, *theirs; /* BYTES_MAX and more of ordinary memory */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "gpu_staging_test: rank %u: %s: %s\n", rank, what, why);
    exit(1);
}

static void must(int status, const char *what)
{
    char text[32];

    snprintf(text, sizeof(text), "CUDA's error %d", status);
    if (status != 0)
        die(what, text);
}

static void right(banyan_status_t status, const char *what)
{
    if (status != BANYAN_OK)
        die(what, banyan_last_error());
}

/* ---- the driver */

#define TAKE(name) (*(void **)&gpu.name = dlsym(library, #name))

static const char *no_gpu(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    int device;

    if (library == NULL)
        return dlerror();
    TAKE(cuInit);
    TAKE(cuDriverGetVersion);
    TAKE(cuDeviceGet);
    TAKE(cuDeviceGetName);
    TAKE(cuDevicePrimaryCtxRetain);
    TAKE(cuCtxPushCurrent_v2);
    TAKE(cuCtxPopCurrent_v2);
    TAKE(cuMemAlloc_v2);
    TAKE(cuMemHostAlloc);
    TAKE(cuMemcpyHtoD_v2);
    TAKE(cuMemcpyDtoH_v2);
    *(void **)&gpu.take = dlsym(library, "fake_take");
    *(void **)&gpu.write = dlsym(library, "fake_write");
    *(void **)&gpu.read = dlsym(library, "fake_read");
    if (gpu.take != NULL) {
        snprintf(gpu.name, sizeof(gpu.name), "no GPU, but a driver library of the tests");
        return NULL;
    }
    if (gpu.cuInit == NULL || gpu.cuDevicePrimaryCtxRetain == NULL || gpu.cuMemAlloc_v2 == NULL)
        return "the driver library lacks functions";
    if (gpu.cuInit(0) != 0 || gpu.cuDeviceGet(&device, 0) != 0)
        return "the driver finds no GPU";
    must(gpu.cuDriverGetVersion(&gpu.version), "cuDriverGetVersion");
    must(gpu.cuDeviceGetName(gpu.name, sizeof(gpu.name), device), "cuDeviceGetName");
    must(gpu.cuDevicePrimaryCtxRetain(&gpu.context, device), "cuDevicePrimaryCtxRetain");
    return NULL;
}

/* The driver's calls run with the GPU's context, which libbanyan pushes for its own. */
static void enter(void)
{
    if (gpu.context != NULL)
        must(gpu.cuCtxPushCurrent_v2(gpu.context), "cuCtxPushCurrent");
}

static void leave(void)
{
    void *was;

    if (gpu.context != NULL)
        must(gpu.cuCtxPopCurrent_v2(&was), "cuCtxPopCurrent");
}

static struct area area_take(enum memory memory, size_t bytes)
{
    struct area area = {.memory = memory};
    uint64_t device = 0;
    void *pinned = NULL;

    enter();
    if (memory == PAGEABLE || (memory == PINNED && gpu.take != NULL)) {
        area.at = malloc(bytes);
    } else if (memory == PINNED) {
        must(gpu.cuMemHostAlloc(&pinned, bytes, 0), "cuMemHostAlloc");
        area.at = pinned;
    } else if (gpu.take != NULL) {
        area.at = gpu.take(bytes);
    } else {
        must(gpu.cuMemAlloc_v2(&device, bytes), "cuMemAlloc");
        area.at = (char *)(uintptr_t)device;
    }
    leave();
    if (area.at == NULL)
        die("memory", "insufficient");
    return area;
}

static void area_write(const struct area *area, size_t at, const void *from, size_t bytes)
{
    if (area->memory != DEVICE) {
        memcpy(area->at + at, from, bytes);
    } else if (gpu.write != NULL) {
        gpu.write(area->at + at, from, bytes);
    } else if (bytes > 0) {
        enter();
        must(gpu.cuMemcpyHtoD_v2((uintptr_t)area->at + at, from, bytes), "cuMemcpyHtoD");
        leave();
    }
}

static void area_read(void *to, const struct area *area, size_t at, size_t bytes)
{
    if (area->memory != DEVICE) {
        memcpy(to, area->at + at, bytes);
    } else if (gpu.read != NULL) {
        gpu.read(to, area->at + at, bytes);
    } else if (bytes > 0) {
        enter();
        must(gpu.cuMemcpyDtoH_v2(to, (uintptr_t)area->at + at, bytes), "cuMemcpyDtoH");
        leave();
    }
}

/* ---- results */

static int32_t value_of(unsigned of, size_t at)
{
    return (int32_t)((at * 2654435761u >> 7 & 0xffff) + of * 7u);
}

/* Elements of the send and receive buffers, and what the receive buffer must hold. */
struct shape {
    banyan_collective_t collective;
    size_t send, recv;
    int32_t (*result)(size_t at, size_t count);
};

static int32_t summed(size_t at, size_t count)
{
    (void)count;
    return value_of(0, at) + value_of(1, at);
}

static int32_t of_root(size_t at, size_t count)
{
    (void)count;
    return value_of(1, at);
}

static int32_t gathered(size_t at, size_t count)
{
    return value_of((unsigned)(at / count), at % count);
}

static int32_t scattered(size_t at, size_t count)
{
    return summed(rank * count + at, count);
}

static banyan_status_t run(banyan_collective_t collective, void *send, void *recv, size_t count)
{
    if (collective == BANYAN_ALLREDUCE)
        return banyan_allreduce(comm, send, recv, count, BANYAN_I32, BANYAN_SUM);
    if (collective == BANYAN_REDUCE)
        return banyan_reduce(comm, send, rank == 1 ? recv : NULL, count, BANYAN_I32, BANYAN_SUM, 1);
    if (collective == BANYAN_BROADCAST)
        return banyan_broadcast(comm, rank == 1 ? send : recv, count, BANYAN_I32, 1);
    if (collective == BANYAN_ALLGATHER)
        return banyan_allgather(comm, send, recv, count, BANYAN_I32);
    return banyan_reduce_scatter(comm, send, recv, count, BANYAN_I32, BANYAN_SUM);
}

static void check(banyan_collective_t collective, size_t count, size_t shift, const struct area *send,
                  const struct area *recv)
{
    static const struct shape shapes[] = {
        {BANYAN_ALLREDUCE, 1, 1, summed},
        {BANYAN_REDUCE, 1, 1, summed},
        {BANYAN_BROADCAST, 1, 1, of_root},
        {BANYAN_ALLGATHER, 1, RANKS, gathered},
        {BANYAN_REDUCE_SCATTER, RANKS, 1, scattered},
    };
    const struct shape *shape = shapes;
    int32_t *in = (int32_t *)(void *)mine, *out = (int32_t *)(void *)theirs;
    size_t faults = 0;

    while (shape->collective != collective)
        shape++;
    for (size_t i = 0; i < count * shape->send; i++)
        in[i] = value_of(rank, i);
    memset(out, 0xff, count * shape->recv * 4);
    area_write(send, shift * 4, in, count * shape->send * 4);
    area_write(recv, shift * 4, out, count * shape->recv * 4);
    right(run(collective, send->at + shift * 4, recv->at + shift * 4, count), "a collective");
    /* the root of a broadcast has no result, and only the root of a reduction has one */
    if ((collective != BANYAN_BROADCAST || rank != 1) && (collective != BANYAN_REDUCE || rank == 1)) {
        area_read(out, recv, shift * 4, count * shape->recv * 4);
        for (size_t i = 0; i < count * shape->recv; i++)
            faults += out[i] != shape->result(i, count);
    }
    checked++;
    if (faults == 0)
        return;
    wrong++;
    printf(
        "WRONG: rank %u, collective %d of %zu elements, %zu elements after a boundary, %s to %s: %zu wrong\n",
        rank, (int)collective, count, shift, memory_names[send->memory], memory_names[recv->memory], faults);
}

/* Sums of 16-bit floats: small integers, whose sums are exact. */
static void check_half(banyan_dtype_t dtype, uint16_t one, uint16_t two, uint16_t three, size_t count,
                       const struct area *area)
{
    uint16_t *in = (uint16_t *)(void *)mine;
    size_t faults = 0;

    for (size_t i = 0; i < count; i++)
        in[i] = rank == 0 ? one : i % 2 == 0 ? one : two;
    area_write(area, 0, in, count * 2);
    right(banyan_allreduce(comm, area->at, area->at, count, dtype, BANYAN_SUM), "a sum of 16-bit floats");
    area_read(in, area, 0, count * 2);
    for (size_t i = 0; i < count; i++)
        faults += in[i] != (i % 2 == 0 ? two : three);
    checked++;
    wrong += faults > 0;
    if (faults > 0)
        printf("WRONG: rank %u, allreduce of %zu elements of type %s: %zu wrong\n", rank, count,
               banyan_dtype_name(dtype), faults);
}

static void check_all(void)
{
    const size_t counts[] = {0, 1, 1023, bytes_max / 16 + 3, bytes_max / 4 / RANKS};
    struct area areas[MEMORIES][2];

    for (int memory = 0; memory < MEMORIES; memory++)
        for (int side = 0; side < 2; side++)
            areas[memory][side] = area_take((enum memory)memory, bytes_max + SHIFT_MAX * 4);
    for (unsigned collective = BANYAN_ALLREDUCE; collective <= BANYAN_REDUCE; collective++)
        for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            for (size_t shift = 0; shift <= SHIFT_MAX; shift += SHIFT_MAX)
                for (int pair = 0; pair < MEMORIES; pair++) {
                    /* device to device, then from and to each other memory; the ranks differ */
                    int other = (pair + (int)rank) % MEMORIES;

                    check((banyan_collective_t)collective, counts[i], shift, &areas[DEVICE][0],
                          &areas[other][1]);
                    check((banyan_collective_t)collective, counts[i], shift, &areas[other][0],
                          &areas[DEVICE][1]);
                }
    check_half(BANYAN_F16, 0x3c00, 0x4000, 0x4200, bytes_max / 4 + 1, &areas[DEVICE][0]);
    check_half(BANYAN_BF16, 0x3f80, 0x4000, 0x4040, bytes_max / 4 + 1, &areas[DEVICE][0]);
}

/* ---- rates */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* GB/s of an allreduce in place; the median of the rounds would hide a slow start, so the best. */
static double rate_of_sum(const struct area *area, size_t bytes)
{
    double best = 1e9;

    for (int i = 0; i < RATE_ROUNDS; i++) {
        double begin;

        right(banyan_barrier(comm), "a barrier");
        begin = now();
        right(banyan_allreduce(comm, area->at, area->at, bytes / 4, BANYAN_F32, BANYAN_SUM), "an allreduce");
        if (now() - begin < best)
            best = now() - begin;
    }
    return (double)bytes / best / 1e9;
}

static double rate_of_copy(const struct area *host, const struct area *device, size_t bytes, bool out)
{
    double best = 1e9;

    for (int i = 0; i < RATE_ROUNDS; i++) {
        double begin = now();

        if (out)
            area_write(device, 0, host->at, bytes);
        else
            area_read(host->at, device, 0, bytes);
        if (now() - begin < best)
            best = now() - begin;
    }
    return (double)bytes / best / 1e9;
}

static void print_rates(const char *how)
{
    struct area areas[MEMORIES];
    double sum[MEMORIES], in, out;

    for (int memory = 0; memory < MEMORIES; memory++) {
        areas[memory] = area_take((enum memory)memory, RATE_BYTES);
        memset(mine, 0, BYTES_MAX);
        for (size_t at = 0; at < RATE_BYTES; at += BYTES_MAX)
            area_write(&areas[memory], at, mine, RATE_BYTES - at < BYTES_MAX ? RATE_BYTES - at : BYTES_MAX);
        sum[memory] = rate_of_sum(&areas[memory], RATE_BYTES);
    }
    in = rate_of_copy(&areas[PINNED], &areas[DEVICE], RATE_BYTES, false);
    out = rate_of_copy(&areas[PINNED], &areas[DEVICE], RATE_BYTES, true);
    if (rank == 0)
        printf(
            "BANYAN_GPU=%-4s  64 MiB allreduce, GB/s: device %.2f, pinned %.2f, pageable %.2f; copies with "
            "pinned memory: from the GPU %.2f, to it %.2f\n",
            how, sum[DEVICE], sum[PINNED], sum[PAGEABLE], in, out);
}

/* ---- processes */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int file = socket(AF_INET, SOCK_STREAM, 0);

    if (file < 0 || bind(file, (struct sockaddr *)&address, bytes) != 0 ||
        getsockname(file, (struct sockaddr *)&address, &bytes) != 0)
        die("a free port", strerror(errno));
    close(file);
    return ntohs(address.sin_port);
}

static int be_rank(const char *library, const char *how, bool measures)
{
    struct banyan_context *context;
    const char *why = no_gpu(library);
    char number[8];

    if (why != NULL) {
        if (rank == 0)
            printf("gpu_staging_test: skipped: %s\n", why);
        return SKIPPED;
    }
    snprintf(number, sizeof(number), "%u", rank);
    setenv("RANK", number, 1);
    mine = malloc(BYTES_MAX + 64);
    theirs = malloc(BYTES_MAX + 64);
    if (mine == NULL || theirs == NULL)
        die("memory", "insufficient");
    right(banyan_init(NULL, &context), "banyan_init");
    right(banyan_comm_create(context, 0, &comm), "banyan_comm_create");
    check_all();
    if (measures)
        print_rates(how);
    right(banyan_comm_destroy(comm), "banyan_comm_destroy");
    right(banyan_finalize(context), "banyan_finalize");
    if (rank == 0)
        printf("BANYAN_GPU=%-4s  %s, driver %d.%d: %u operations, %u wrong\n", how, gpu.name,
               gpu.version / 1000, gpu.version % 1000 / 10, checked, wrong);
    return wrong > 0;
}

/* One run of all ranks with these settings; the worst exit status. */
static int run_ranks(const char *library, const char *how, bool measures)
{
    int result = 0, status;
    char port[8];
    pid_t ranks[RANKS];

    snprintf(port, sizeof(port), "%d", free_port());
    setenv("MASTER_PORT", port, 1);
    setenv("BANYAN_GPU", how, 1);
    fflush(stdout);
    for (unsigned i = 0; i < RANKS; i++) {
        ranks[i] = fork();
        rank = i;
        if (ranks[i] == 0)
            exit(be_rank(library, how, measures)); /* the GPU is opened after the fork */
    }
    for (unsigned i = 0; i < RANKS; i++) {
        waitpid(ranks[i], &status, 0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (status > result)
            result = status;
    }
    return result;
}

int main(int argc, char **argv)
{
    bool real = argc > 1;
    char program[400], fake[512];
    const char *library = "libcuda.so.1";
    int result;

    if (argc > 2 || (argc == 2 && strcmp(argv[1], "gpu") != 0)) {
        fprintf(stderr, "usage: gpu_staging_test [gpu]\n");
        return 2;
    }
    snprintf(program, sizeof(program), "%s", argv[0]);
    snprintf(fake, sizeof(fake), "%s/../lib/libfake-cuda.so", dirname(program));
    bytes_max = real ? BYTES_MAX : FAKE_BYTES;
    if (!real) {
        library = fake;
        setenv("BANYAN_GPU_CHUNK", FAKE_CHUNK, 1);
    }
    setenv("BANYAN_CUDA_LIBRARY", library, 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("BANYAN_BOOTSTRAP", "env", 1);
    setenv("BANYAN_OFFLOAD", "off", 1);
    setenv("BANYAN_LOG", "0", 1);
    result = run_ranks(library, "auto", real);
    if (result == 0)
        result = run_ranks(library, "on", real);
    return result;
}
