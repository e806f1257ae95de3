/*
 * The cost of a rank's schedules: libbanyan's construction in O(log p) beside the simple
 * construction in O(log^3 p), for the same ranks of each count. Processor time of one thread, so
 * that the ratio holds on a machine with other load.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/host-driver/circulant/naive.h"

#define FAST_RANKS 200000u
#define SLOW_RANKS 20000u

static double processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Ranks spread over all: multiples of an odd number near the golden section. */
static uint32_t rank_of(const struct by_circulant *circulant, uint32_t index)
{
    return (uint32_t)((uint64_t)index * 2654435769u % circulant->rank_count);
}

static double time_fast(const struct by_circulant *circulant, unsigned *sum)
{
    double begin = processor_ns();

    for (uint32_t i = 0; i < FAST_RANKS; i++) {
        struct by_circulant_schedule schedule = {0};

        by_circulant_schedule(circulant, rank_of(circulant, i), &schedule);
        *sum += (uint8_t)schedule.receive[circulant->phase - 1] + (uint8_t)schedule.send[0];
    }
    return (processor_ns() - begin) / FAST_RANKS;
}

static double time_slow(const struct by_circulant *circulant, unsigned *sum)
{
    double begin = processor_ns();

    for (uint32_t i = 0; i < SLOW_RANKS; i++) {
        struct by_circulant_schedule schedule = {0};

        if (!by_naive_receive(circulant, rank_of(circulant, i), circulant->phase, schedule.receive) ||
            !by_naive_send(circulant, rank_of(circulant, i), schedule.send))
            exit(1);
        *sum += (uint8_t)schedule.receive[circulant->phase - 1] + (uint8_t)schedule.send[0];
    }
    return (processor_ns() - begin) / SLOW_RANKS;
}

int main(void)
{
    static const uint32_t counts[] = {1u << 10,       (1u << 10) + 1, 1u << 15, 1u << 20,
                                      (1u << 20) - 1, (1u << 20) + 1, 1u << 25, (1u << 30) - 1};
    unsigned sum = 0;

    printf("%11s %6s %12s %18s %7s\n", "ranks", "rounds", "banyan, ns", "O(log^3 p), ns", "ratio");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct by_circulant circulant;
        double fast, slow;

        if (!by_circulant_init(&circulant, counts[i]))
            return 1;
        fast = time_fast(&circulant, &sum);
        slow = time_slow(&circulant, &sum);
        printf("%11u %6u %12.0f %18.0f %6.1fx\n", counts[i], circulant.phase, fast, slow, slow / fast);
    }
    printf("# both schedules of a rank; check sum %08x\n", sum);
    return 0;
}
