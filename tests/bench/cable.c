/*
 * bench-cable: the time of one packet, one way, over a cable of memory (offload/wire/shm.h) between
 * two processes: half of a round trip, sleeping (each packet rings a bell) and polling. Prints both
 * in microseconds, the medians of some batches. Needs no root.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "offload/wire/shm.h"

#define BATCHES 21
#define TRIPS   500

struct cable_side {
    struct by_shm_sender sender;
    struct by_shm_receiver receiver;
    int bell, other_bell;
};

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void give(struct cable_side *side)
{
    const uint64_t one = 1;

    by_shm_slot(&side->sender)->payload_bytes = 8;
    by_shm_put(&side->sender);
    if (by_shm_publish(&side->sender) && write(side->other_bell, &one, sizeof one) < 0)
        exit(3);
}

static void take(struct cable_side *side, int sleeps)
{
    while (by_shm_take(&side->receiver) == NULL) {
        struct pollfd bell = {.fd = side->bell, .events = POLLIN};
        uint64_t rings;

        if (!sleeps || !by_shm_doze(&side->receiver))
            continue;
        poll(&bell, 1, 1000);
        by_shm_wake(&side->receiver);
        if (read(side->bell, &rings, sizeof rings) < 0)
            continue;
    }
    by_shm_done(&side->receiver);
}

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double measure(struct cable_side *side, int sleeps)
{
    double batch[BATCHES];

    for (int i = 0; i < BATCHES; i++) {
        double begin = now_us();

        for (int trip = 0; trip < TRIPS; trip++) {
            give(side);
            take(side, sleeps);
        }
        batch[i] = (now_us() - begin) / TRIPS / 2;
    }
    qsort(batch, BATCHES, sizeof batch[0], compare);
    return batch[BATCHES / 2];
}

int main(void)
{
    struct by_shm_cable *cable =
        mmap(NULL, sizeof *cable, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bells[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
    struct cable_side side;
    double asleep, awake;
    pid_t pid;

    if (cable == MAP_FAILED || bells[0] < 0 || bells[1] < 0)
        return 3;
    pid = fork();
    if (pid < 0)
        return 3;
    side = (struct cable_side){.sender.queue = pid ? &cable->up : &cable->down,
                               .receiver.queue = pid ? &cable->down : &cable->up,
                               .bell = bells[pid != 0],
                               .other_bell = bells[pid == 0]};
    for (int i = 0; pid == 0 && i < 2 * BATCHES * TRIPS; i++) {
        take(&side, i < BATCHES * TRIPS);
        give(&side);
    }
    if (pid == 0)
        _exit(0);
    asleep = measure(&side, 1);
    awake = measure(&side, 0);
    waitpid(pid, NULL, 0);
    printf("%.2f %.2f\n", asleep, awake);
    return 0;
}
