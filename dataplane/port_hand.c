/* A worker's view of a port that another worker owns and that has no transmit queue for it: frames
 * go to the owner through a ring. See port.h and workers.h; the worker's thread. */
#include "dataplane/state.h"

/* Frames come by by_workers_take. */
static uint16_t receive_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    (void)port;
    (void)frames;
    (void)count;
    return 0;
}

static uint16_t send_frames(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    *port->touched |= port->owner;
    return (uint16_t)rte_ring_sp_enqueue_burst(port->to_owner, (void **)frames, count, NULL);
}

static bool settle(struct by_port *port)
{
    (void)port;
    return true;
}

static void count(struct by_port *port, struct by_dp_port_counters *counters)
{
    (void)port;
    (void)counters;
}

static bool is_down(const struct by_port *port)
{
    (void)port;
    return false;
}

static void close_view(struct by_port *port)
{
    (void)port;
}

static const struct by_port_ops hand_ops = {.start = NULL,
                                            .receive = receive_frames,
                                            .send = send_frames,
                                            .flush = NULL,
                                            .is_crowded = NULL,
                                            .settle = settle,
                                            .count = count,
                                            .is_down = is_down,
                                            .close = close_view};

void by_port_hand_open(struct by_port *port, const struct by_port *from, struct rte_ring *out)
{
    by_port_view(port, from);
    port->ops = &hand_ops;
    port->to_owner = out;
}
