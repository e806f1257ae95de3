/*
 * bench-modes: whole allreduces in the three modes over a fabric in this process, through the
 * interface of programs: libbanyan, the hosts' endpoints and the switch's engine, all on one core.
 * In each round the modes run one after another, so that other load affects all; the best round of
 * each counts. Single-threaded.
 *
 *   bench-modes FOLDER BYTES ROUNDS     FOLDER: tables with slots for mode det
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <banyan/banyan.h>

#define RANKS_MAX 64

static struct banyan_fabric *fabric;
static struct banyan_context *context[RANKS_MAX];
static struct banyan_comm *comm[RANKS_MAX];
static uint8_t *in[RANKS_MAX], *out[RANKS_MAX];
static uint32_t ranks;

static const banyan_mode_t modes[] = {BANYAN_FAST, BANYAN_DET, BANYAN_EXACT};
#define MODES 3u

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(banyan_status_t status)
{
    if (status == BANYAN_OK)
        return;
    fprintf(stderr, "bench-modes: %s\n", banyan_last_error());
    exit(1);
}

static void open_ranks(const char *folder, size_t bytes)
{
    const char *host;

    check(banyan_fabric_open(folder, &fabric));
    for (; ranks < RANKS_MAX && (host = banyan_fabric_host(fabric, ranks)) != NULL; ranks++) {
        struct banyan_config config;

        banyan_config_init(&config);
        config.fabric = fabric;
        config.host = host;
        check(banyan_init(&config, &context[ranks]));
        check(banyan_comm_create(context[ranks], 0, &comm[ranks]));
        in[ranks] = aligned_alloc(64, bytes);
        out[ranks] = aligned_alloc(64, bytes);
        if (in[ranks] == NULL || out[ranks] == NULL)
            exit(1);
        /* 1.0 in f32 and bf16; positive and normal in f64 and f16 as well. */
        for (size_t i = 0; i < bytes; i += 2)
            memcpy(in[ranks] + i, &(const uint16_t){0x3f80}, 2);
        memset(out[ranks], 0, bytes);
    }
}

/* Runs one allreduce in every rank's `request`; returns the time. */
static double run(struct banyan_request **request)
{
    double start = now_s();

    for (uint32_t r = 0; r < ranks; r++)
        check(banyan_post(request[r]));
    for (uint32_t r = 0; r < ranks; r++)
        check(banyan_wait(request[r]));
    return now_s() - start;
}

static void measure(banyan_dtype_t dtype, size_t bytes, unsigned rounds)
{
    struct banyan_request *request[MODES][RANKS_MAX];
    double best[MODES] = {0};

    for (unsigned m = 0; m < MODES; m++)
        for (uint32_t r = 0; r < ranks; r++) {
            check(banyan_allreduce_init(comm[r], in[r], out[r], bytes / banyan_dtype_size(dtype), dtype,
                                        BANYAN_SUM, &request[m][r]));
            check(banyan_request_mode(request[m][r], modes[m]));
        }
    for (unsigned round = 0; round <= rounds; round++) /* the first is warm-up */
        for (unsigned m = 0; m < MODES; m++) {
            double took = run(request[m]);

            if (round > 0 && (best[m] == 0 || took < best[m]))
                best[m] = took;
        }
    printf("%-5s %10.3f %10.3f %10.3f %12.2f %13.2f\n", banyan_dtype_name(dtype),
           (double)bytes / best[0] * 1e-9, (double)bytes / best[1] * 1e-9, (double)bytes / best[2] * 1e-9,
           best[0] / best[1], best[0] / best[2]);
    fflush(stdout);
    for (unsigned m = 0; m < MODES; m++)
        for (uint32_t r = 0; r < ranks; r++)
            check(banyan_free(request[m][r]));
}

int main(int argc, char **argv)
{
    static const banyan_dtype_t dtypes[] = {BANYAN_F32, BANYAN_BF16, BANYAN_F16, BANYAN_F64};
    size_t bytes = argc == 4 ? strtoul(argv[2], NULL, 10) / 64 * 64 : 0;
    unsigned rounds = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;

    if (bytes == 0 || rounds == 0) {
        fprintf(stderr, "usage: bench-modes FOLDER BYTES ROUNDS\n");
        return 2;
    }
    setenv("BANYAN_LOG", "0", 1);
    open_ranks(argv[1], bytes);
    printf("allreduce of %zu bytes, %u hosts and their switches in one process on one core, algbw in GB/s\n",
           bytes, ranks);
    printf("type        fast        det      exact   det / fast  exact / fast\n");
    printf(" goal                                       >= 0.80       >= 0.40\n");
    for (unsigned d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
        measure(dtypes[d], bytes, rounds);
    for (uint32_t r = 0; r < ranks; r++) {
        check(banyan_comm_destroy(comm[r]));
        check(banyan_finalize(context[r]));
        free(in[r]);
        free(out[r]);
    }
    check(banyan_fabric_close(fabric));
    return 0;
}
