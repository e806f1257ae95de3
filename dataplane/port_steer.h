/*
 * How the frames that a device of DPDK receives reach the workers that have their chunks: through a
 * queue for each worker, if the device has enough of them, and they can be steered; else one worker
 * receives all of them, and hands those of others over in bursts. Steering saves work only: each
 * worker checks whose a frame is. A device with enough transmit queues has one for each worker.
 * Main thread, before the port starts.
 */
#ifndef BY_DATAPLANE_PORT_STEER_H
#define BY_DATAPLANE_PORT_STEER_H

#include <stdint.h>

#include <rte_ethdev.h>

#include "dataplane/port.h"

/* Bytes of the longest key of RSS that a driver asks for. */
#define BY_STEER_KEY_BYTES 64u

/* Decides how many queues the probed port gets, for `workers` workers, and what its rings hold:
 * port->rx_queues, tx_queues, steer and steer_why. `one_queue`: no more than one queue. */
void by_port_steer_choose(struct by_port *port, unsigned workers, bool one_queue);
/* Gives the port one receive queue, because of `why`. */
void by_port_steer_give_up(struct by_port *port, const char *why);
/* Adds what RSS needs to the device's configuration. `key` must live as long as it. */
void by_port_steer_configure(const struct by_port *port, const struct rte_eth_dev_info *info,
                             uint8_t key[BY_STEER_KEY_BYTES], struct rte_eth_conf *config);
/* Assigns the lanes to the queues of a started device. 0, or an error of DPDK. */
int by_port_steer_start(const struct by_port *port);

/* Returns the worker that owns port `index`. */
static inline unsigned by_steer_owner(unsigned index, unsigned workers)
{
    return index % workers;
}

/* Returns the queue of a worker at port `index`: frames that no rule steers arrive in the first
 * one, which is the owner's. */
static inline uint16_t by_steer_queue(unsigned index, unsigned worker, unsigned workers)
{
    return (uint16_t)((worker + workers - by_steer_owner(index, workers)) % workers);
}

/* Returns the queue for a value of RSS's hash, in a port with a queue for each of `workers`. */
uint16_t by_steer_of_hash(unsigned index, uint32_t hash, unsigned workers);

#endif
