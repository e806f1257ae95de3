/*
 * Opens and closes the workers of a switch: a shell for each, with an engine and a view of each
 * port, and the rings between them. Ports are dealt to the workers in turn. Main worker, while no
 * other thread runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "dataplane/eal.h"
#include "dataplane/port_steer.h"
#include "dataplane/say.h"
#include "dataplane/state.h"
#include "offload/base/errors.h"

/* Places in a ring of returned references (count): the segments of a worker's pool, and those that
 * it can send in one round beside them. */
#define RETURNED 16384u

/* A ring in ordinary memory: EAL's own are limited in number. Each has one producer, so that a
 * worker that loses its core stops no other one. */
static struct rte_ring *ring_make(unsigned count)
{
    ssize_t bytes = rte_ring_get_memsize(count);
    struct rte_ring *ring = NULL;

    if (bytes < 0 || posix_memalign((void **)&ring, RTE_CACHE_LINE_SIZE, (size_t)bytes) != 0)
        return NULL;
    if (rte_ring_init(ring, "hand", count, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0)
        return ring;
    free(ring);
    return NULL;
}

static void drain(struct rte_ring *ring)
{
    void *frame;

    while (ring && rte_ring_sc_dequeue(ring, &frame) == 0)
        rte_pktmbuf_free(frame);
    free(ring);
}

static int make_rings(struct by_workers *workers)
{
    const struct by_shell *lead = workers->worker[0].shell;
    unsigned ports = (workers->port_count + workers->count - 1) / workers->count; /* of a worker */

    for (unsigned i = 0; i < workers->port_count; i++)
        for (unsigned w = 0; w < workers->count && lead->ports[i].tx_queues == 1; w++)
            if (!(workers->out[i][w] = ring_make(BY_HAND_FRAMES)))
                return BY_ENOMEM;
    for (unsigned w = 0; w < workers->count; w++) {
        struct by_worker *worker = &workers->worker[w];

        for (unsigned from = 0; from < workers->count; from++)
            if (!(worker->handed[from] = ring_make(BY_HAND_FRAMES * rte_align32pow2(ports))))
                return BY_ENOMEM;
        for (unsigned from = 0; from <= workers->count; from++)
            if (!(worker->returned[from] = ring_make(RETURNED)))
                return BY_ENOMEM;
    }
    return 0;
}

/* Makes the shell of another worker, without ports. */
static int make_shell(struct by_workers *workers, unsigned index, const struct by_shell_config *config)
{
    const struct by_shell *lead = workers->worker[0].shell;
    struct by_shell *shell = NULL;

    if (posix_memalign((void **)&shell, RTE_CACHE_LINE_SIZE, sizeof *shell) != 0)
        return BY_ENOMEM;
    memset(shell, 0, sizeof *shell);
    workers->worker[index].shell = shell;
    shell->workers = workers;
    shell->worker = index;
    shell->payload_fd = shell->control_fd = shell->handoff.event = -1;
    shell->has_device = lead->has_device;
    shell->has_late = lead->has_late;
    shell->lends = lead->lends;
    shell->payload_max = lead->payload_max;
    shell->frame_pool = lead->frame_pool;
    shell->header_pool = lead->header_pool;
    shell->ports = calloc(lead->port_count, sizeof *shell->ports);
    if (!shell->ports)
        return BY_ENOMEM;
    shell->port_count = lead->port_count;
    return by_shell_equip(shell, config);
}

/* Gives the ports to their owners; all others get views. */
static void deal_ports(struct by_workers *workers)
{
    struct by_port *lead = workers->worker[0].shell->ports;

    for (unsigned i = 0; i < workers->port_count; i++) {
        unsigned number = by_steer_owner(i, workers->count);
        struct by_worker *owner = &workers->worker[number];

        workers->owner[i] = (uint8_t)number;
        if (owner->shell->ports != lead)
            owner->shell->ports[i] = lead[i];
        for (unsigned w = 0; w < workers->count; w++) {
            struct by_worker *worker = &workers->worker[w];

            struct by_port *view = &worker->shell->ports[i];

            if (w == number)
                continue;
            if (owner->shell->ports[i].tx_queues > 1) {
                by_port_dpdk_view(view, &owner->shell->ports[i], by_steer_queue(i, w, workers->count));
                continue;
            }
            by_port_hand_open(view, &owner->shell->ports[i], workers->out[i][w]);
            view->touched = &worker->touched;
            view->owner = UINT64_C(1) << number;
        }
    }
}

int by_workers_open(struct by_shell *shell, const struct by_shell_config *config)
{
    struct by_workers *workers = NULL;
    int result;

    if (posix_memalign((void **)&workers, RTE_CACHE_LINE_SIZE, sizeof *workers) != 0)
        return BY_ENOMEM;
    memset(workers, 0, sizeof *workers);
    shell->workers = workers;
    workers->count = config->worker_count;
    workers->port_count = shell->port_count;
    workers->worker[0].shell = shell;
    for (unsigned w = 0; w < workers->count; w++) {
        workers->worker[w].cpu = config->cpus ? config->cpus[w] : -1;
        by_gate_rest(&workers->gate[w]);
    }
    if ((result = make_rings(workers)) != 0) {
        by_say("no memory for the rings of %u workers: use fewer --cores", workers->count);
        return result;
    }
    for (unsigned w = 1; w < workers->count; w++)
        if ((result = make_shell(workers, w, config)) != 0)
            return result;
    deal_ports(workers);
    for (unsigned w = 1; w < workers->count; w++)
        if ((result = by_shell_ready(workers->worker[w].shell, config)) != 0)
            return result;
    return 0;
}

void by_workers_close(struct by_workers *workers)
{
    if (!workers)
        return;
    for (unsigned w = 1; w < workers->count; w++) {
        struct by_shell *shell = workers->worker[w].shell;

        if (!shell)
            continue;
        by_batch_close(&shell->batch);
        for (unsigned i = 0; i < shell->port_count; i++)
            by_port_close(&shell->ports[i]);
    }
    for (unsigned i = 0; i < workers->port_count; i++) {
        for (unsigned w = 0; w < workers->count; w++) {
            drain(workers->out[i][w]);
        }
    }
    for (unsigned w = 0; w < workers->count; w++) {
        struct by_shell *shell = workers->worker[w].shell;

        for (unsigned from = 0; from < workers->count; from++)
            drain(workers->worker[w].handed[from]);
        for (unsigned from = 0; from <= workers->count; from++)
            free(workers->worker[w].returned[from]);
        if (w == 0 || !shell)
            continue;
        if (shell->handoff.event >= 0)
            by_handoff_close(&shell->handoff);
        by_shell_strip(shell);
        free(shell->ports);
        free(shell);
    }
    free(workers);
}
