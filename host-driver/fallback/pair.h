/*
 * Bytes between two ranks in order and without loss, over datagrams that may be lost, doubled or
 * overtaken: one end of it, as a function of its state, what has come, and the time. What is
 * written is cut into parcels that stay in a ring of slots until the other end has acknowledged
 * them; what comes lies in a ring until it is read. A parcel counts as lost when transmissions that
 * left three numbers later have arrived (RFC 6675's threshold over numbers of transmissions, as in
 * RFC 9002, so that a repeated one can be lost as well), or when the time is out. No I/O, clock or
 * memory of its own; one thread at a time.
 */
#ifndef BY_HOST_FALLBACK_PAIR_H
#define BY_HOST_FALLBACK_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/fallback/parcel.h"
#include "host-driver/fallback/tempo.h"

#define BY_PAIR_SLOTS_MAX 512u /* 8 BY_PARCEL_MAP_BYTES */
/* Numbers begin shortly before they wrap, so that they do in every job. */
#define BY_PAIR_FIRST UINT32_C(0xffffff00)

struct by_pair_config {
    uint32_t slot_count; /* a power of two, at most BY_PAIR_SLOTS_MAX */
    uint32_t slot_bytes; /* of a parcel that comes */
    uint32_t window;     /* of parcels that may come; at most slot_count */
    uint32_t peer_bytes; /* of a parcel that is sent; at most slot_bytes */
    uint32_t peer_window;
    uint32_t peer_nonce;
    uint16_t rank; /* ours */
};

struct by_pair_slot {
    uint64_t sent_ns;
    uint32_t order;
    uint16_t bytes;
    uint8_t state; /* of enum slot_state, in pair.c */
};

struct by_pair_counters {
    uint64_t sent, repeated, acks, timeouts; /* parcels sent; those sent again; acknowledgements; time-outs */
    uint64_t come, doubled;                  /* data that came; that had come before, or had no room */
};

struct by_host_pair {
    struct by_pair_config config;
    struct by_tempo tempo;
    struct {
        uint8_t *memory;
        uint32_t first, next, end; /* numbers before `first` have arrived, those before `next` were sent,
                                      those before `end` wait; `end` itself is being filled, so far with */
        uint32_t filled;           /* bytes */
        uint32_t limit;            /* the first that the other end does not take yet */
        uint32_t order;            /* of the next transmission */
        uint32_t flight, lost;     /* parcels on their way, and known to be lost */
        uint64_t timer_ns;         /* UINT64_MAX: nothing waits */
        bool probe;                /* one parcel goes whatever the limit is */
        struct by_pair_slot slot[BY_PAIR_SLOTS_MAX];
    } out;
    struct {
        uint8_t *memory;
        uint32_t first, come; /* numbers before `first` were read, those before `come` have come */
        uint32_t read;        /* bytes of number `first` that were read */
        uint32_t beyond;      /* parcels that have come behind a gap */
        uint32_t newest;      /* transmission */
        uint32_t told;        /* the limit that the other end knows */
        uint32_t silent;      /* parcels since the last acknowledgement */
        bool answer;          /* an acknowledgement is due */
        uint16_t bytes[BY_PAIR_SLOTS_MAX]; /* 0: has not come */
        uint8_t map[BY_PARCEL_MAP_BYTES];  /* of the last acknowledgement */
    } in;
    struct by_pair_counters counters;
};

/* Bytes of memory that a pair wants, besides itself. */
size_t by_pair_bytes(const struct by_pair_config *config);
/* `memory` stays the caller's, to be freed after the pair. */
void by_pair_open(struct by_host_pair *pair, const struct by_pair_config *config, void *memory);

/* Takes as many bytes as there is room for; returns how many. They go when a parcel is full, or
 * with by_pair_flush. */
size_t by_pair_write(struct by_host_pair *pair, const void *bytes, size_t size);
void by_pair_flush(struct by_host_pair *pair);
/* Everything that was written has arrived. */
bool by_pair_settled(const struct by_host_pair *pair);
/* The other end has gone: what was written is given up. */
void by_pair_abandon(struct by_host_pair *pair);
/* Bytes that have come, in order; returns how many. */
size_t by_pair_read(struct by_host_pair *pair, void *bytes, size_t size);

/* Takes a parcel that has this pair's nonce and rank; one that makes no sense changes nothing. */
void by_pair_take(struct by_host_pair *pair, const struct by_parcel *parcel, uint64_t now_ns);
/* The next parcel to send now; its payload stays in place until the pair is called again to take or
 * write. False: none. */
bool by_pair_next(struct by_host_pair *pair, uint64_t now_ns, struct by_parcel *parcel);
/* When by_pair_next has something at the latest; UINT64_MAX: not before something comes or is
 * written. */
uint64_t by_pair_deadline(const struct by_host_pair *pair);

#endif
