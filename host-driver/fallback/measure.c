/* Latency and time for each byte between two hosts; see measure.h. */
#include "host-driver/fallback/measure.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"

#define SMALL_BYTES  64u
#define LARGE_BYTES  (256u << 10)
#define SMALL_ROUNDS 16u
#define LARGE_ROUNDS 4u

/* The quickest of `rounds` ways there and back of `bytes`; 0 at the rank that answers. */
static int go_there_and_back(int fd, bool asks, uint8_t *buffer, size_t bytes, uint32_t rounds,
                             uint64_t deadline_ns, uint64_t *best_ns)
{
    *best_ns = UINT64_MAX;
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t begin_ns = by_clock_ns(), took_ns;
        int error = asks ? by_peer_write(fd, buffer, bytes, deadline_ns)
                         : by_peer_read(fd, buffer, bytes, deadline_ns);

        if (error == 0)
            error = asks ? by_peer_read(fd, buffer, bytes, deadline_ns)
                         : by_peer_write(fd, buffer, bytes, deadline_ns);
        if (error != 0)
            return by_fail(error, "the connection between ranks 0 and 1 does not carry %zu bytes", bytes);
        took_ns = by_clock_ns() - begin_ns;
        if (took_ns < *best_ns)
            *best_ns = took_ns;
    }
    return 0;
}

int by_measure(struct by_mesh *mesh, struct by_team *team, uint64_t deadline_ns)
{
    uint64_t small_ns, large_ns, both_ns;
    uint8_t *buffer;
    int fd, error;

    team->latency_ns = team->gap_ps = 1;
    if (mesh->rank > 1 || mesh->rank_count == 1)
        return 0;
    buffer = calloc(1, LARGE_BYTES);
    if (buffer == NULL)
        return by_fail(BY_ENOMEM, "no memory for a measurement of %u bytes", LARGE_BYTES);
    fd = mesh->data[1 - mesh->rank];
    error = go_there_and_back(fd, mesh->rank == 0, buffer, SMALL_BYTES, SMALL_ROUNDS, deadline_ns, &small_ns);
    if (error == 0)
        error =
            go_there_and_back(fd, mesh->rank == 0, buffer, LARGE_BYTES, LARGE_ROUNDS, deadline_ns, &large_ns);
    free(buffer);
    if (error != 0)
        return error;
    both_ns = large_ns > small_ns ? large_ns - small_ns : 1;
    team->latency_ns = small_ns / 2 > 0 ? small_ns / 2 : 1;
    team->gap_ps = both_ns * 1000u / 2 / (LARGE_BYTES - SMALL_BYTES);
    if (team->gap_ps == 0)
        team->gap_ps = 1;
    return 0;
}
