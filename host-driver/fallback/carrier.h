/*
 * Messages between ranks over UDP: one socket for all peers of a rank, a pair (pair.h) for each.
 * What was written arrives also while its writer computes, since a thread of the carrier (keeper.h)
 * acknowledges and repeats for who is away. Parcels of one size to one peer cross the kernel as one
 * datagram, which the link cuts, where the kernel does that (udp(7): UDP_SEGMENT, UDP_GRO). Packets
 * of strangers, of other jobs and of earlier runs are refused by a nonce that ranks tell each other
 * when they meet. One thread, besides the keeper's; nothing blocks.
 */
#ifndef BY_HOST_FALLBACK_CARRIER_H
#define BY_HOST_FALLBACK_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "offload/base/fault.h"

struct by_carrier;
struct pollfd;

#define BY_CARRIER_CARD_BYTES 16u
#define BY_CARRIER_FDS        2u

/* X(name, "help") */
#define BY_CARRIER_COUNTER_LIST(X)                                                                           \
    X(udp_sent, "udp: packets with data sent")                                                               \
    X(udp_repeated, "udp: those of them that were sent again")                                               \
    X(udp_timeouts, "udp: times that no answer came in time")                                                \
    X(udp_come, "udp: packets with data received, each once")                                                \
    X(udp_doubled, "udp: packets with data received again, or without room")                                 \
    X(udp_refused, "udp: packets received that are of no peer, or damaged")                                  \
    X(udp_dropped, "udp: packets dropped by BANYAN_LOSS")                                                    \
    X(udp_kept, "udp: times that the thread moved something while the program was away")

struct by_carrier_counters {
#define X(name, help) uint64_t name;
    BY_CARRIER_COUNTER_LIST(X)
#undef X
};

/* A socket for ranks of a job. 0, or an error with its text. */
int by_carrier_open(uint32_t rank, uint32_t rank_count, const struct by_fault *fault,
                    struct by_carrier **carrier);
/* What this rank's peer at `ip` wants to know of it, BY_CARRIER_CARD_BYTES: it holds from then on.
 * And after that, what the peer has said. 0, or an error with its text. */
void by_carrier_card(struct by_carrier *carrier, uint32_t peer, uint32_t ip, uint8_t *card);
int by_carrier_meet(struct by_carrier *carrier, uint32_t peer, uint32_t ip, const uint8_t *card);
/* After all have met. 0, or an error with its text. */
int by_carrier_start(struct by_carrier *carrier);
void by_carrier_close(struct by_carrier *carrier);

/* Pieces for a peer, and of it: moves some of their bytes, from the first on; returns how many.
 * `end`: with them a message ends, which goes now. */
size_t by_carrier_write(struct by_carrier *carrier, uint32_t peer, const struct iovec *piece, uint32_t count,
                        bool end);
size_t by_carrier_read(struct by_carrier *carrier, uint32_t peer, const struct iovec *piece, uint32_t count);
/* Takes what has come, and sends what is due. */
void by_carrier_step(struct by_carrier *carrier, uint64_t now_ns);
/* The peer has ended: it needs nothing more. What has come of it can still be read. */
void by_carrier_forget(struct by_carrier *carrier, uint32_t peer);
/* All that was written has arrived. */
bool by_carrier_settled(struct by_carrier *carrier);
/* When a step is due, though nothing comes. */
uint64_t by_carrier_deadline(struct by_carrier *carrier);
/* What poll() may sleep on, for as long as the time says at most; BY_CARRIER_FDS. */
void by_carrier_fds(struct by_carrier *carrier, uint64_t sleep_ns, struct pollfd *fds);
void by_carrier_count(struct by_carrier *carrier, struct by_carrier_counters *counters);

#endif
