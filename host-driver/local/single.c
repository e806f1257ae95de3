/* The stages of slices; see single.h. */
#include "host-driver/local/single.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <banyan/banyan.h>

#include "host-driver/error.h"
#include "host-driver/local/calls.h"
#include "host-driver/local/mates.h"
#include "host-driver/local/sum.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"
#include "offload/wire/wire.h"

/* Up to so many bytes every rank adds all inputs for itself: a second exchange takes longer. */
#define DIRECT_BYTES 2048u
/* Bytes of a slice: the slots of a few ranks fit a second-level cache. */
#define SLICE_BYTES (64u << 10)
/* Datagrams read in a step: any user of the machine may send more. */
#define RINGS_MAX 64u
/* Parts of a slice begin at multiples of this, so that ranks write different cache lines. */
#define LINE_BYTES 64u

struct by_single {
    struct by_seats seats;
    struct by_mates mates;
    uint64_t key;
    int bell; /* a datagram wakes this rank */
    int error;
    struct by_sliced_calls calls;
    struct by_slice_cursor pack, sum, take;
    uint64_t freed; /* slices whose slot all ranks have left, as of this rank's last look */
    bool dozing;    /* it has slept, or may have */
    uint64_t seen;
    const void *inputs[BY_SINGLE_RANKS_MAX];
};

/* ---- opening */

/* The abstract address of a rank's bell. */
static socklen_t bell_of(const struct by_single *single, uint32_t rank, struct sockaddr_un *address)
{
    int length;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "banyan/bell/%016llx/%u",
                      (unsigned long long)single->key, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int open_bell(struct by_single *single)
{
    struct sockaddr_un address;
    socklen_t bytes = bell_of(single, single->seats.rank, &address);

    single->bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (single->bell >= 0 && bind(single->bell, (struct sockaddr *)&address, bytes) == 0)
        return 0;
    return by_fail(BY_EIO, "cannot create the bell of rank %u: %s", single->seats.rank, strerror(errno));
}

int by_single_open(struct by_single **out, struct by_mates *mates, uint64_t key, uint32_t rank,
                   uint32_t rank_count, uint64_t deadline_ns)
{
    static const uint16_t host_of[BY_SINGLE_RANKS_MAX];
    struct by_single *single = calloc(1, sizeof(*single));
    int error;

    if (single == NULL) {
        by_mates_close(mates);
        return by_fail(BY_ENOMEM, "no memory for the calls of the ranks of this host");
    }
    single->mates = *mates;
    by_mates_init(mates);
    single->key = key;
    single->bell = -1;
    error = by_seats_make(&single->seats, host_of, rank_count, 1, rank);
    if (error == 0)
        error = open_bell(single); /* before it joins: the others may then ring it */
    if (error == 0)
        error = rank == 0 ? by_mates_admit(&single->mates, &single->seats, key, "", 1, deadline_ns)
                          : by_mates_join(&single->mates, &single->seats, key, deadline_ns);
    if (error != 0) {
        by_single_close(single);
        return error;
    }
    by_mates_part(&single->mates); /* from now on they ring the bells */
    *out = single;
    return 0;
}

void by_single_close(struct by_single *single)
{
    if (single == NULL)
        return;
    by_mates_close(&single->mates);
    by_seats_free(&single->seats);
    if (single->bell >= 0)
        close(single->bell);
    free(single);
}

/* ---- calls and their slices */

static struct by_mates_rank *rank_at(const struct by_single *single, uint32_t rank)
{
    return &single->mates.head->rank[rank];
}

static struct by_mates_rank *own(const struct by_single *single)
{
    return rank_at(single, single->seats.rank);
}

/* Whether each rank adds a part of the slice, for all. */
static bool is_divided(const struct by_slices *slices, uint64_t index)
{
    uint8_t collective = slices->call.collective;

    return (collective == BY_COLLECTIVE_ALLREDUCE || collective == BY_COLLECTIVE_REDUCE) &&
           by_slices_bytes(slices, index) > DIRECT_BYTES;
}

/* The bytes [*from, *from + result) of a divided slice that `rank` adds. */
static uint64_t part_of(const struct by_single *single, const struct by_slices *slices, uint64_t index,
                        uint32_t rank, uint64_t *from)
{
    uint64_t bytes = by_slices_bytes(slices, index), lines = (bytes + LINE_BYTES - 1) / LINE_BYTES;
    uint64_t to = lines * (rank + 1) / single->seats.rank_count * LINE_BYTES;

    *from = lines * rank / single->seats.rank_count * LINE_BYTES;
    return (to < bytes ? to : bytes) - *from;
}

bool by_single_serves(const struct by_call *call)
{
    switch (call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return by_reduction_dtype(call->mode, call->op, call->dtype) == call->dtype;
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_BARRIER:
        return true;
    case BANYAN_ALLTOALL:
    case BANYAN_SCATTER:
    case BANYAN_GATHER:
        return call->offsets == NULL; /* shares of unequal size are not known to all ranks */
    default:
        return false;
    }
}

int by_single_post(struct by_single *single, const struct by_call *call, uint32_t *id)
{
    uint32_t slot_bytes = single->mates.head->slot_bytes;

    return single->error != 0 ? BY_ESTATE
                              : by_sliced_post(&single->calls, call, &single->seats,
                                               slot_bytes < SLICE_BYTES ? slot_bytes : SLICE_BYTES, id);
}

int by_single_test(struct by_single *single, uint32_t id)
{
    return by_sliced_test(&single->calls, id);
}

bool by_single_is_busy(const struct by_single *single)
{
    return single->error == 0 && single->take.slice < single->calls.end;
}

/* ---- stages */

/* Whether each rank has a slot of its own for the inputs; else all share one. */
static bool has_inputs(const struct by_slices *slices)
{
    return slices->call.collective == BANYAN_ALLTOALL || by_collective_reduces(slices->call.collective);
}

/* Copies this rank's input of a slice to where other ranks read it. */
static void give(const struct by_single *single, const struct by_slices *slices, uint64_t index,
                 uint64_t slice)
{
    const struct by_mates *mates = &single->mates;
    uint8_t *slot =
        has_inputs(slices) ? by_mates_input(mates, single->seats.rank, slice) : by_mates_result(mates, slice);
    const uint8_t *input;
    uint64_t from, part, bytes;

    if (!is_divided(slices, index)) {
        by_slices_pack(slices, index, slot);
        return;
    }
    /* this rank adds its part from where it is */
    input = by_slices_input(slices, index);
    bytes = by_slices_bytes(slices, index);
    part = part_of(single, slices, index, single->seats.rank, &from);
    memcpy(slot, input, from);
    memcpy(slot + from + part, input + from + part, bytes - from - part);
}

/* Whether a slot is free: all ranks have taken what was in it. */
static bool has_room(struct by_single *single)
{
    if (single->pack.slice < single->freed + BY_MATES_SLOTS)
        return true;
    single->freed = UINT64_MAX;
    for (uint32_t rank = 0; rank < single->seats.rank_count; rank++) {
        uint64_t taken = atomic_load_explicit(&rank_at(single, rank)->taken, memory_order_acquire);

        single->freed = taken < single->freed ? taken : single->freed;
    }
    return single->pack.slice < single->freed + BY_MATES_SLOTS;
}

static uint32_t pack(struct by_single *single)
{
    uint32_t moved = 0;

    for (; single->pack.slice < single->calls.end && has_room(single); moved++) {
        uint64_t slice = single->pack.slice;

        give(single, by_sliced_at(&single->calls, &single->pack),
             by_sliced_index(&single->calls, &single->pack), slice);
        by_sliced_describe(&single->calls, &single->pack, &own(single)->slice[slice % BY_MATES_SLOTS]);
        by_sliced_next(&single->calls, &single->pack);
        atomic_store(&own(single)->packed, single->pack.slice);
    }
    return moved;
}

/* Whether this rank needs what `rank` gives to a call, before it can add or take. */
static bool needs(const struct by_single *single, const struct by_slices *slices, uint64_t index,
                  uint32_t rank)
{
    const struct by_call *call = &slices->call;

    if (call->collective == BY_COLLECTIVE_BROADCAST || call->collective == BANYAN_SCATTER)
        return rank == call->root;
    if (call->collective == BY_COLLECTIVE_REDUCE || call->collective == BANYAN_GATHER)
        return call->root == single->seats.rank || is_divided(slices, index);
    return true;
}

/* Finds the first rank, from `from` on, whose input of the next slice is missing. */
static uint32_t first_missing(const struct by_single *single, uint32_t from)
{
    const struct by_slices *slices = by_sliced_at(&single->calls, &single->sum);
    uint64_t index = by_sliced_index(&single->calls, &single->sum);

    while (from < single->seats.rank_count &&
           (!needs(single, slices, index, from) ||
            atomic_load_explicit(&rank_at(single, from)->packed, memory_order_acquire) > single->sum.slice))
        from++;
    return from;
}

/* Compares this rank's call with those of the ranks that it needs. */
static bool agrees(struct by_single *single, uint32_t *culprit)
{
    uint64_t index = by_sliced_index(&single->calls, &single->sum), at = single->sum.slice % BY_MATES_SLOTS;
    const struct by_slices *slices = by_sliced_at(&single->calls, &single->sum);

    for (uint32_t rank = 0; rank < single->seats.rank_count; rank++)
        if (needs(single, slices, index, rank) &&
            memcmp(&own(single)->slice[at], &rank_at(single, rank)->slice[at],
                   sizeof(struct by_mates_slice)) != 0) {
            *culprit = rank;
            return false;
        }
    return true;
}

/* Adds the inputs of all ranks, from byte `from` of their slots on. `direct` replaces this rank's
 * slot; or NULL. */
static void add(struct by_single *single, const struct by_slices *slices, uint64_t slice, uint64_t from,
                uint64_t bytes, const void *direct, void *out)
{
    if (bytes == 0)
        return;
    for (uint32_t rank = 0; rank < single->seats.rank_count; rank++)
        single->inputs[rank] = by_mates_input(&single->mates, rank, slice) + from;
    if (direct != NULL)
        single->inputs[single->seats.rank] = direct;
    by_mates_sum(slices->call.op, slices->call.dtype, out, single->inputs, single->seats.rank_count,
                 bytes / slices->element_bytes);
}

/* Adds this rank's part of the slices that all have given. */
static uint32_t sum_up(struct by_single *single, int *error, uint32_t *culprit)
{
    uint32_t moved = 0;

    for (; single->sum.slice < single->pack.slice && first_missing(single, 0) == single->seats.rank_count;
         moved++) {
        const struct by_slices *slices = by_sliced_at(&single->calls, &single->sum);
        uint64_t slice = single->sum.slice, index = by_sliced_index(&single->calls, &single->sum), from, part;

        if (!agrees(single, culprit)) {
            *error = BY_EMISMATCH;
            return moved;
        }
        if (is_divided(slices, index)) {
            part = part_of(single, slices, index, single->seats.rank, &from);
            add(single, slices, slice, from, part, (const uint8_t *)by_slices_input(slices, index) + from,
                by_mates_result(&single->mates, slice) + from);
        }
        by_sliced_next(&single->calls, &single->sum);
        atomic_store(&own(single)->summed, single->sum.slice);
    }
    return moved;
}

/* Finds the first rank, from `from` on, whose part of the next slice is missing. */
static uint32_t first_unsummed(const struct by_single *single, uint32_t from)
{
    const struct by_slices *slices = by_sliced_at(&single->calls, &single->take);

    if (!is_divided(slices, by_sliced_index(&single->calls, &single->take)))
        return single->seats.rank_count;
    while (from < single->seats.rank_count &&
           atomic_load_explicit(&rank_at(single, from)->summed, memory_order_acquire) > single->take.slice)
        from++;
    return from;
}

/* Takes this rank's result of a slice. */
static void receive(struct by_single *single, const struct by_slices *slices, uint64_t slice, uint64_t index)
{
    uint8_t *result = by_mates_result(&single->mates, slice);
    void *out;
    uint64_t at, bytes;

    if (slices->call.collective == BANYAN_ALLTOALL) {
        for (uint32_t rank = 0; rank < single->seats.rank_count; rank++)
            by_slices_unpack_from(slices, index, rank, by_mates_input(&single->mates, rank, slice));
        return;
    }
    if (!has_inputs(slices) || is_divided(slices, index)) {
        by_slices_unpack(slices, index, result);
        return;
    }
    out = by_slices_output(slices, index, &at, &bytes);
    if (out != NULL)
        add(single, slices, slice, at, bytes, NULL, out);
}

static uint32_t take(struct by_single *single)
{
    uint32_t moved = 0;

    for (; single->take.slice < single->sum.slice && first_unsummed(single, 0) == single->seats.rank_count;
         moved++) {
        receive(single, by_sliced_at(&single->calls, &single->take), single->take.slice,
                by_sliced_index(&single->calls, &single->take));
        by_sliced_take(&single->calls, &single->take);
        atomic_store(&own(single)->taken, single->take.slice);
    }
    return moved;
}

/* ---- sleeping */

/* Wakes a rank if it sleeps. What has changed was published before. */
static void wake(const struct by_single *single, uint32_t rank)
{
    struct sockaddr_un address;
    const uint8_t ring = 1;
    socklen_t bytes;

    if (atomic_load(&rank_at(single, rank)->asleep) == 0 ||
        atomic_exchange(&rank_at(single, rank)->asleep, 0) == 0)
        return;
    bytes = bell_of(single, rank, &address);
    /* if this fails, the other one has been rung often enough, or has ended */
    (void)!sendto(single->bell, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&address,
                  bytes);
}

bool by_single_has_left(const struct by_single *single, uint32_t rank)
{
    struct sockaddr_un address;
    socklen_t bytes = bell_of(single, rank, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool left = false;

    if (fd < 0)
        return false;
    left = connect(fd, (const struct sockaddr *)&address, bytes) != 0 && errno == ECONNREFUSED;
    close(fd);
    return left;
}

uint32_t by_single_rank_count(const struct by_single *single)
{
    return single->seats.rank_count;
}

void by_single_end(struct by_single *single, int error, uint32_t culprit)
{
    single->error = error;
    by_sliced_end(&single->calls, error);
    if (!by_mates_record(&single->mates, error, culprit, ""))
        return;
    for (uint32_t rank = 0; rank < single->seats.rank_count; rank++)
        wake(single, rank);
}

/* A number that changes when another rank publishes something. */
static uint64_t look(const struct by_single *single)
{
    uint64_t sum = atomic_load(&single->mates.head->error_state);

    for (uint32_t rank = 0; rank < single->seats.rank_count; rank++)
        if (rank != single->seats.rank)
            sum += atomic_load(&rank_at(single, rank)->packed) + atomic_load(&rank_at(single, rank)->summed) +
                   atomic_load(&rank_at(single, rank)->taken);
    return sum;
}

uint32_t by_single_step(struct by_single *single, int *error, uint32_t *culprit)
{
    uint8_t rings[8];
    uint32_t moved;

    if (single->dozing) {
        atomic_store(&own(single)->asleep, 0);
        for (unsigned i = 0; i < RINGS_MAX && recv(single->bell, rings, sizeof(rings), MSG_DONTWAIT) > 0; i++)
            ;
        single->dozing = false;
    }
    single->seen = look(single);
    *error = by_mates_error(&single->mates);
    if (*error != 0) {
        *culprit = single->mates.head->culprit;
        return 0;
    }
    moved = pack(single);
    moved += sum_up(single, error, culprit);
    if (*error == 0)
        moved += take(single);
    for (uint32_t rank = 0; rank < single->seats.rank_count && moved > 0; rank++)
        wake(single, rank);
    return moved;
}

uint32_t by_single_awaits(const struct by_single *single, uint32_t from)
{
    if (!by_single_is_busy(single))
        return single->seats.rank_count;
    if (single->sum.slice < single->pack.slice)
        return first_missing(single, from);
    if (single->take.slice < single->sum.slice)
        return first_unsummed(single, from);
    while (from < single->seats.rank_count &&
           atomic_load(&rank_at(single, from)->taken) + BY_MATES_SLOTS > single->pack.slice)
        from++;
    return from;
}

int by_single_fd(struct by_single *single)
{
    single->dozing = true;
    atomic_store(&own(single)->asleep, 1);
    if (look(single) != single->seen)
        wake(single, single->seats.rank);
    return single->bell;
}
