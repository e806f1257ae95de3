/*
 * What the ranks of a host share: one range of memory, and a socket between the first rank, which
 * leads, and each other one. The memory has no name, so nothing is left behind when ranks are
 * killed. A socket carries doorbells (a byte wakes the other end), and shows when the process at
 * the other end has ended. Only ranks of the same user connect. Neighbour: local.c moves data
 * through the memory. Blocking only while it opens; one thread in each rank.
 */
#ifndef BY_HOST_LOCAL_MATES_H
#define BY_HOST_LOCAL_MATES_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/local/seats.h"

struct pollfd;

#define BY_MATES_SLOTS 8u /* slices that the ranks of a host have in memory at once */
#define BY_MATES_TEXT  400u
#define BY_MATES_FDS   1u /* descriptors to sleep on */

/* What a rank put into a slice, which the leader compares. */
struct by_mates_slice {
    uint64_t call;  /* number of the call, from 0 */
    uint64_t whole; /* by_call.whole */
    uint64_t count;
    uint32_t root;
    uint8_t collective, op, dtype, mode;
};

/* One rank's part of the memory. Only this rank writes it, except `asleep`. */
struct by_mates_rank {
    alignas(64) atomic_uint_fast64_t packed; /* slices to which it has given its input */
    atomic_uint_fast64_t taken;              /* slices of which it has its result */
    atomic_uint_fast64_t summed;             /* slices of which it has added its part (single.c) */
    atomic_uint asleep;                      /* requests a byte when something changes */
    atomic_uint left;                        /* has closed its communicator */
    uint32_t rank;
    int32_t pid;
    struct by_mates_slice slice[BY_MATES_SLOTS]; /* slice s is at s % BY_MATES_SLOTS */
};

/* Start of the memory. The leader writes it; any rank may write the error, once. */
struct by_mates_head {
    uint32_t magic, version, mates, slot_bytes;
    uint64_t image_at, image_bytes, slots_at, bytes;
    alignas(64) atomic_uint_fast64_t done; /* slices whose result is in the slot */
    atomic_uint_fast64_t freed;            /* slices whose slot all ranks have left */
    alignas(64) atomic_uint error_state;   /* 0: none, 1: being written, 2: written */
    int32_t error;
    uint32_t culprit; /* rank to which the error belongs */
    char text[BY_MATES_TEXT];
    alignas(64) struct by_mates_rank rank[];
};

struct by_mates {
    uint32_t index, count; /* 0 leads */
    struct by_mates_head *head;
    uint64_t bytes;
    int listener;
    int *socket; /* leader: by number of the rank; others: [0] is the leader's; -1: none */
    bool *gone;  /* the process at the other end has ended or left */
    int watch;   /* leader: epoll descriptor of all sockets */
    int always;  /* an eventfd that is always readable */
};

/* Bytes of a slot for `mates` ranks of a host in a job of `rank_count`. */
uint32_t by_mates_slot_bytes(uint32_t mates, uint32_t rank_count);

void by_mates_init(struct by_mates *mates);
/* Leader: listens under `key`, a random number that the other ranks of the host receive. 0, or an
 * error with its text. */
int by_mates_listen(struct by_mates *mates, uint64_t key);
/* Leader: creates the memory, with `image` in it, and waits for the other ranks. */
int by_mates_admit(struct by_mates *mates, const struct by_seats *seats, uint64_t key, const void *image,
                   size_t image_bytes, uint64_t deadline_ns);
/* Others: connect to the leader and map the memory. */
int by_mates_join(struct by_mates *mates, const struct by_seats *seats, uint64_t key, uint64_t deadline_ns);
void by_mates_close(struct by_mates *mates);

/* Returns slot `slice` % BY_MATES_SLOTS: of one rank's inputs, or of results. */
uint8_t *by_mates_input(const struct by_mates *mates, uint32_t index, uint64_t slice);
uint8_t *by_mates_result(const struct by_mates *mates, uint64_t slice);
const uint8_t *by_mates_image(const struct by_mates *mates);

/* Wakes rank `index` if it sleeps; the caller has published what changed. Only the leader wakes
 * others than the leader. */
void by_mates_wake(struct by_mates *mates, uint32_t index);
/* Wakes all that this rank has a socket to. */
void by_mates_wake_all(struct by_mates *mates);
/* Reads the doorbells; afterwards `gone` is current. */
void by_mates_hear(struct by_mates *mates);
/* Announces that this rank sleeps; it must look for work once more afterwards. */
void by_mates_doze(struct by_mates *mates);
/* Fills the descriptors to sleep on, at most BY_MATES_FDS; with `work` they are readable at once.
 * Returns their number. */
uint32_t by_mates_fds(const struct by_mates *mates, bool work, struct pollfd *fds);

/* Closes the sockets and descriptors; the memory stays. Afterwards the ranks have other ways to
 * wake each other, and to see which has ended. */
void by_mates_part(struct by_mates *mates);

/* Records an error for all ranks of the host. Returns whether it is the first. */
bool by_mates_record(struct by_mates *mates, int error, uint32_t culprit, const char *text);
/* Records an error for all ranks of the host if it is the first, and wakes them; the leader passes
 * on what another rank has recorded. */
void by_mates_fail(struct by_mates *mates, int error, uint32_t culprit, const char *text);
/* Returns the recorded error, 0 if there is none. */
int by_mates_error(const struct by_mates *mates);

#endif
