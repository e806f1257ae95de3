/*
 * Parcels in batches through one UDP socket: those of one size to one peer are one datagram for the
 * kernel, and what came as one is taken as one. Whoever holds the carrier's lock.
 */
#ifndef BY_HOST_FALLBACK_BATCH_H
#define BY_HOST_FALLBACK_BATCH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/parcel.h"
#include "host-driver/segments.h"
#include "host-driver/transport.h"

#define BY_BATCH_TX 128u
#define BY_BATCH_RX 32u

struct by_batch_io; /* the messages of the system calls */

struct by_batch {
    int fd;
    uint32_t buffer_bytes; /* of the socket, for what has come */
    bool segments;         /* several parcels may be one datagram */
    struct by_batch_io *io;
    uint32_t count; /* parcels that wait, all to `to` */
    struct sockaddr_in to;
    uint32_t got_at, got_count, got_offset; /* of what has come and is not given away yet */
};

/* A socket of any port. The socket, or an error with its text; by_batch_close also after that. */
int by_batch_open(struct by_batch *batch);
void by_batch_close(struct by_batch *batch);
/* Adds a parcel, whose payload stays in place until by_batch_flush has sent it. What the system
 * refuses is lost. */
void by_batch_add(struct by_batch *batch, const struct sockaddr_in *to, const struct by_parcel *parcel);
void by_batch_flush(struct by_batch *batch);
/* Up to BY_RX_BATCH packets, whose data stay in place until the next call; `port` is that of the
 * sender. */
uint32_t by_batch_receive(struct by_batch *batch, struct by_rx *rx);
/* What has come lies here: the socket does not tell of it any more. */
bool by_batch_holds(const struct by_batch *batch);

#endif
