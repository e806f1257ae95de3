/*
 * Where the ranks of a job run, when several share a host of the table: rank -> (host, number
 * there), for any layout. The order of hosts is that of the table; the ranks of a host are in
 * ascending order, and the first leads the host. Pure.
 */
#ifndef BY_HOST_LOCAL_SEATS_H
#define BY_HOST_LOCAL_SEATS_H

#include <stdint.h>

struct by_seats {
    uint32_t rank_count, host_count;
    uint32_t rank, host, index; /* this rank, its host, and its number there */
    uint32_t mates;             /* ranks of its host, itself included */
    uint16_t *host_of;          /* by rank */
    uint16_t *order;            /* ranks, host by host */
    uint32_t *first;            /* by host: place of its first rank in `order`; host_count + 1 */
};

/* `host_of` has the host of each rank. 0, or an error with its text: BY_ENOENT if a host has no
 * rank, BY_EINVAL if a host is beyond `host_count`, BY_ENOMEM. */
int by_seats_make(struct by_seats *seats, const uint16_t *host_of, uint32_t rank_count, uint32_t host_count,
                  uint32_t rank);
void by_seats_free(struct by_seats *seats);

/* Returns rank number `index` of this rank's host. */
static inline uint32_t by_seats_mate(const struct by_seats *seats, uint32_t index)
{
    return seats->order[seats->first[seats->host] + index];
}

#endif
