/* Measures latency and time per byte between two hosts; see measure.h. */
#include "host-driver/fallback/measure.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"

#define SMALL_BYTES  64u
#define LARGE_BYTES  (256u << 10)
#define SMALL_ROUNDS 16u
#define LARGE_ROUNDS 4u

/* Sends or receives one message of `bytes`. */
static int move_one(struct by_host_mesh *mesh, uint32_t peer, bool sends, uint32_t number, uint8_t *buffer,
                    size_t bytes, uint64_t deadline_ns)
{
    const struct by_host_message message = {.call = UINT32_MAX, .round = number, .bytes = bytes};
    const struct by_host_transfer *transfer = sends ? &mesh->send : &mesh->receive;
    struct iovec piece = {buffer, bytes};
    struct by_mesh_fault fault = {0};

    if (sends)
        by_mesh_send(mesh, peer, &message, &piece, 1);
    else
        by_mesh_receive(mesh, peer, &message, &piece, 1);
    while (transfer->active && fault.error == 0 && by_clock_ns() < deadline_ns)
        if (by_mesh_step(mesh, &fault) == 0 && fault.error == 0)
            by_mesh_sleep(mesh, deadline_ns);
    return fault.error != 0 ? fault.error : transfer->active ? BY_ETIMEDOUT : 0;
}

/* Measures the fastest of `rounds` round trips of `bytes` to `peer` and back; rank 0 starts. */
static int go_there_and_back(struct by_host_mesh *mesh, uint32_t peer, uint8_t *buffer, size_t bytes,
                             uint32_t rounds, uint64_t deadline_ns, uint64_t *best_ns)
{
    *best_ns = UINT64_MAX;
    for (uint32_t i = 0; i < 2 * rounds; i += 2) {
        uint64_t begin_ns = by_clock_ns(), took_ns;
        int error = move_one(mesh, peer, mesh->rank == 0, i, buffer, bytes, deadline_ns);

        if (error == 0)
            error = move_one(mesh, peer, mesh->rank != 0, i + 1, buffer, bytes, deadline_ns);
        if (error != 0)
            return by_fail(error, "ranks %u and %u cannot exchange %zu bytes", mesh->rank, peer, bytes);
        took_ns = by_clock_ns() - begin_ns;
        if (took_ns < *best_ns)
            *best_ns = took_ns;
    }
    return 0;
}

int by_measure(struct by_host_mesh *mesh, uint32_t partner, struct by_team *team, uint64_t deadline_ns)
{
    uint64_t small_ns, large_ns, both_ns;
    uint32_t peer = mesh->rank == 0 ? partner : 0;
    uint8_t *buffer;
    int error;

    team->latency_ns = team->gap_ps = 1;
    if (mesh->rank_count == 1 || (mesh->rank != 0 && mesh->rank != partner))
        return 0;
    buffer = calloc(1, LARGE_BYTES);
    if (buffer == NULL)
        return by_fail(BY_ENOMEM, "no memory for a measurement of %u bytes", LARGE_BYTES);
    error = go_there_and_back(mesh, peer, buffer, SMALL_BYTES, SMALL_ROUNDS, deadline_ns, &small_ns);
    if (error == 0)
        error = go_there_and_back(mesh, peer, buffer, LARGE_BYTES, LARGE_ROUNDS, deadline_ns, &large_ns);
    /* No call has run yet. */
    mesh->messages = mesh->tx_bytes = mesh->rx_bytes = mesh->shared_bytes = 0;
    mesh->send.active = mesh->receive.active = false;
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
