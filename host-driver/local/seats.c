/* The layout of a job's ranks; see seats.h. */
#include "host-driver/local/seats.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"

/* Fills `order` and `first` from `host_of` (a counting sort). */
static void sort(struct by_seats *seats)
{
    uint32_t place = 0;

    for (uint32_t host = 0; host < seats->host_count; host++) {
        seats->first[host] = place;
        for (uint32_t rank = 0; rank < seats->rank_count; rank++)
            if (seats->host_of[rank] == host)
                seats->order[place++] = (uint16_t)rank;
    }
    seats->first[seats->host_count] = place;
}

int by_seats_make(struct by_seats *seats, const uint16_t *host_of, uint32_t rank_count, uint32_t host_count,
                  uint32_t rank)
{
    memset(seats, 0, sizeof(*seats));
    for (uint32_t r = 0; r < rank_count; r++)
        if (host_of[r] >= host_count)
            return by_fail(BY_EINVAL, "rank %u runs on host %u of the tables, which have %u hosts", r,
                           host_of[r], host_count);
    seats->host_of = calloc(rank_count, sizeof(*seats->host_of));
    seats->order = calloc(rank_count, sizeof(*seats->order));
    seats->first = calloc((size_t)host_count + 1, sizeof(*seats->first));
    if (seats->host_of == NULL || seats->order == NULL || seats->first == NULL) {
        by_seats_free(seats);
        return by_fail(BY_ENOMEM, "no memory for the places of %u ranks", rank_count);
    }
    memcpy(seats->host_of, host_of, rank_count * sizeof(*host_of));
    seats->rank_count = rank_count;
    seats->host_count = host_count;
    seats->rank = rank;
    seats->host = host_of[rank];
    sort(seats);
    for (uint32_t host = 0; host < host_count; host++)
        if (seats->first[host] == seats->first[host + 1]) {
            by_seats_free(seats);
            return by_fail(
                BY_ENOENT,
                "none of the %u ranks runs on host %u of the %u hosts in the tables; start at least "
                "one rank on each",
                rank_count, host, host_count);
        }
    seats->mates = seats->first[seats->host + 1] - seats->first[seats->host];
    while (by_seats_mate(seats, seats->index) != rank)
        seats->index++;
    return 0;
}

void by_seats_free(struct by_seats *seats)
{
    free(seats->host_of);
    free(seats->order);
    free(seats->first);
    memset(seats, 0, sizeof(*seats));
}
