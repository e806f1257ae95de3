/* The stages of slices; see local.h. */
#include "host-driver/local/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "host-driver/local/calls.h"
#include "host-driver/local/sum.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"
#include "offload/wire/wire.h"

#define HEAR_NS 10000000u /* interval between looks at the sockets while nothing sleeps */
#define NAMED   3u        /* ranks that a text names */

/* Leader: a slice between the hosts. */
struct local_flight {
    uint32_t id;
    struct by_call call;
};

struct by_local {
    struct by_seats seats;
    struct by_mates mates;
    struct by_local_config config;
    struct by_sliced_calls calls;
    struct by_slice_cursor pack, take;
    struct by_slice_cursor sum, done; /* leader only */
    struct local_flight flight[BY_MATES_SLOTS];
    uint64_t *offsets;   /* leader: of the calls in flight, host_count + 1 for each */
    const void **inputs; /* leader */
    uint64_t moved_ns, heard_ns, seen;
    bool fresh;  /* a call has been posted since the last step */
    bool dozing; /* it has slept, or may have */
    int error;
    char text[BY_MATES_TEXT];
};

static struct by_mates_rank *own(struct by_local *local)
{
    return &local->mates.head->rank[local->mates.index];
}

static bool is_alone(const struct by_local *local, const struct by_slices *slices)
{
    return local->mates.count == 1 && !slices->sharded;
}

/* ---- the end of calls */

static void end_all(struct by_local *local, int error, const char *text)
{
    if (local->error != 0)
        return;
    local->error = error;
    snprintf(local->text, sizeof(local->text), "%s", text);
    if (local->mates.index == 0)
        local->config.net.abort(local->config.net.context);
    by_sliced_end(&local->calls, error);
}

/* Ends all calls on all ranks of the host, unless another rank has done so first. */
static void fail(struct by_local *local, int error, uint32_t culprit, const char *text)
{
    by_mates_fail(&local->mates, error, culprit, text);
    end_all(local, error, text);
}

void by_local_abort(struct by_local *local, int error, const char *text)
{
    if (local->error == 0)
        fail(local, error, local->seats.rank, text);
}

/* ---- stages of every rank */

/* Gives this rank's input of the next slices, as far as their slots are free. */
static uint32_t pack(struct by_local *local)
{
    struct by_mates *mates = &local->mates;
    uint64_t freed = atomic_load(&mates->head->freed);
    uint32_t moved = 0;

    for (; local->pack.slice < local->calls.end && local->pack.slice < freed + BY_MATES_SLOTS; moved++) {
        const struct by_slices *slices = by_sliced_at(&local->calls, &local->pack);
        uint64_t slice = local->pack.slice, index = by_sliced_index(&local->calls, &local->pack);
        bool reduces = by_collective_reduces(slices->call.collective);

        /* the leader reads its own input where it is */
        if (!is_alone(local, slices) &&
            !(reduces && mates->index == 0 && by_slices_input(slices, index) != NULL))
            by_slices_pack(slices, index,
                           reduces ? by_mates_input(mates, mates->index, slice)
                                   : by_mates_result(mates, slice));
        by_sliced_describe(&local->calls, &local->pack, &own(local)->slice[slice % BY_MATES_SLOTS]);
        by_sliced_next(&local->calls, &local->pack);
        atomic_store(&own(local)->packed, local->pack.slice);
        if (mates->index != 0)
            by_mates_wake(mates, 0);
    }
    return moved;
}

/* Takes this rank's results. */
static uint32_t take(struct by_local *local)
{
    struct by_mates *mates = &local->mates;
    uint64_t done = atomic_load(&mates->head->done);
    uint32_t moved = 0;

    for (; local->take.slice < done && local->take.slice < local->calls.end; moved++) {
        const struct by_slices *slices = by_sliced_at(&local->calls, &local->take);

        if (!is_alone(local, slices))
            by_slices_unpack(slices, by_sliced_index(&local->calls, &local->take),
                             by_mates_result(mates, local->take.slice));
        by_sliced_take(&local->calls, &local->take);
        atomic_store(&own(local)->taken, local->take.slice);
    }
    /* the leader waits for free slots */
    if (moved > 0 && mates->index != 0 &&
        atomic_load(&mates->head->rank[0].packed) >= atomic_load(&mates->head->freed) + BY_MATES_SLOTS)
        by_mates_wake(mates, 0);
    return moved;
}

/* ---- stages of the leader */

static void name_call(char *text, size_t bytes, const struct by_mates_slice *slice)
{
    by_append(text, bytes, "%s", by_collective_name(slice->collective));
    if (by_collective_is_rooted(slice->collective))
        by_append(text, bytes, " %s rank %u", slice->collective == BY_COLLECTIVE_REDUCE ? "to" : "from",
                  slice->root);
    if (by_collective_reduces(slice->collective))
        by_append(text, bytes, ", %s of %llu %s, mode %s", by_op_name(slice->op),
                  (unsigned long long)slice->count, by_dtype_name(slice->dtype), by_mode_name(slice->mode));
    else if (slice->collective != BY_COLLECTIVE_BARRIER)
        by_append(text, bytes, " of %llu %s", (unsigned long long)slice->count, by_dtype_name(slice->dtype));
    by_append(text, bytes, ", as call number %llu", (unsigned long long)slice->call);
}

/* Compares what all ranks of the host have put into a slice. */
static bool agrees(struct by_local *local, uint64_t slice)
{
    const struct by_mates_head *head = local->mates.head;
    const struct by_mates_slice *mine = &head->rank[0].slice[slice % BY_MATES_SLOTS];

    for (uint32_t index = 1; index < local->mates.count; index++) {
        const struct by_mates_slice *other = &head->rank[index].slice[slice % BY_MATES_SLOTS];
        char text[BY_MATES_TEXT] = "";

        if (memcmp(mine, other, sizeof(*mine)) == 0)
            continue;
        by_append(text, sizeof(text), "the ranks of %s disagree: rank %u: ", local->config.host,
                  head->rank[0].rank);
        name_call(text, sizeof(text), mine);
        by_append(text, sizeof(text), "; but rank %u: ", head->rank[index].rank);
        name_call(text, sizeof(text), other);
        fail(local, BY_EMISMATCH, head->rank[index].rank, text);
        return false;
    }
    return true;
}

/* Whether all ranks of the host have given their input of a slice. */
static bool is_packed(const struct by_local *local, uint64_t slice)
{
    for (uint32_t index = 0; index < local->mates.count; index++)
        if (atomic_load(&local->mates.head->rank[index].packed) <= slice)
            return false;
    return true;
}

/* Sums the inputs of the next slice. */
static void sum_up(struct by_local *local, const struct by_slices *slices, uint64_t slice, uint64_t index)
{
    struct by_mates *mates = &local->mates;
    const void *direct = by_slices_input(slices, index);

    local->inputs[0] = direct != NULL ? direct : by_mates_input(mates, 0, slice);
    for (uint32_t i = 1; i < mates->count; i++)
        local->inputs[i] = by_mates_input(mates, i, slice);
    by_mates_sum(slices->call.op, slices->call.dtype, by_mates_result(mates, slice), local->inputs,
                 mates->count, by_slices_bytes(slices, index) / slices->element_bytes);
}

/* Sums slices that all ranks have packed, and passes them to the network. */
static uint32_t send(struct by_local *local)
{
    uint32_t moved = 0;

    while (local->sum.slice < local->pack.slice && is_packed(local, local->sum.slice)) {
        const struct by_slices *slices = by_sliced_at(&local->calls, &local->sum);
        uint64_t slice = local->sum.slice, index = by_sliced_index(&local->calls, &local->sum);
        struct local_flight *flight = &local->flight[slice % BY_MATES_SLOTS];
        int error;

        if (!agrees(local, slice))
            return 0;
        if (by_collective_reduces(slices->call.collective) && !is_alone(local, slices))
            sum_up(local, slices, slice, index);
        by_slices_outer(slices, index, by_mates_result(&local->mates, slice), &flight->call,
                        local->offsets + slice % BY_MATES_SLOTS * (local->seats.host_count + 1));
        if (is_alone(local, slices))
            by_slices_direct(slices, index, &flight->call);
        error = local->config.net.post(local->config.net.context, &flight->call, &flight->id);
        /* trees that have failed: collect() has the reason, from a slice that is on its way */
        if (error == BY_EAGAIN || (error == BY_ESTATE && local->done.slice < local->sum.slice))
            break;
        if (error != 0) {
            char text[BY_MATES_TEXT];

            snprintf(text, sizeof(text), "%s between the hosts cannot start: %s",
                     by_collective_name(flight->call.collective), by_error_text(error));
            fail(local, error, local->seats.rank, text);
            return 0;
        }
        by_sliced_next(&local->calls, &local->sum);
        moved++;
    }
    return moved;
}

/* Publishes results of the network, in order. */
static uint32_t collect(struct by_local *local)
{
    struct by_mates_head *head = local->mates.head;
    uint32_t moved = 0;

    while (local->done.slice < local->sum.slice) {
        const struct local_flight *flight = &local->flight[local->done.slice % BY_MATES_SLOTS];
        char text[BY_MATES_TEXT] = "";
        int result =
            local->config.net.test(local->config.net.context, flight->id, &flight->call, text, sizeof(text));

        if (result == BY_EAGAIN)
            break;
        if (result != 0) {
            fail(local, result, local->seats.rank, text);
            return 0;
        }
        by_sliced_next(&local->calls, &local->done);
        moved++;
        atomic_store(&head->done, local->done.slice);
        for (uint32_t index = 1; index < local->mates.count; index++)
            by_mates_wake(&local->mates, index);
    }
    return moved;
}

/* Frees the slots that all ranks have left. */
static uint32_t release(struct by_local *local)
{
    struct by_mates_head *head = local->mates.head;
    uint64_t was = atomic_load(&head->freed), least = UINT64_MAX;

    for (uint32_t index = 0; index < local->mates.count; index++) {
        uint64_t taken = atomic_load(&head->rank[index].taken);

        least = taken < least ? taken : least;
    }
    if (least <= was)
        return 0;
    atomic_store(&head->freed, least);
    for (uint32_t index = 1; index < local->mates.count; index++)
        if (atomic_load(&head->rank[index].packed) >= was + BY_MATES_SLOTS)
            by_mates_wake(&local->mates, index);
    return 1;
}

/* ---- ranks that are missing */

/* Names the ranks that have not given their input of a slice; returns their number. */
static uint32_t missing(const struct by_local *local, uint64_t slice, char *text, size_t bytes,
                        uint32_t *first)
{
    const struct by_mates_head *head = local->mates.head;
    uint32_t count = 0;

    for (uint32_t index = 0; index < local->mates.count; index++) {
        if (atomic_load(&head->rank[index].packed) > slice)
            continue;
        if (count == 0)
            *first = index;
        if (count++ < NAMED)
            by_append(text, bytes, count > 1 ? ", %u" : "rank %u", head->rank[index].rank);
    }
    if (count > NAMED)
        by_append(text, bytes, " and %u more", count - NAMED);
    return count;
}

/* The leader reports the lost rank to the other hosts. */
static void tell(const struct by_local *local, uint32_t index, enum by_err_fate fate)
{
    if (local->mates.index == 0)
        local->config.net.tell(local->config.net.context, local->mates.head->rank[index].rank, (uint8_t)fate);
}

static void say_gone(struct by_local *local, uint32_t index)
{
    const struct by_mates_rank *rank = &local->mates.head->rank[index];
    int has_left = atomic_load(&rank->left) != 0;
    char text[BY_MATES_TEXT];

    tell(local, index, has_left ? BY_FATE_LEFT : BY_FATE_ENDED);
    snprintf(text, sizeof(text), "rank %u on %s (process %d) has %s", rank->rank, local->config.host,
             rank->pid, has_left ? "left the job" : "ended");
    fail(local, BY_EIO, rank->rank, text);
}

static void say_late(struct by_local *local, uint64_t slice)
{
    uint8_t collective = by_sliced_at(&local->calls, &local->take)->call.collective;
    char text[BY_MATES_TEXT] = "";
    uint32_t first = 0;

    if (missing(local, slice, text, sizeof(text), &first) == 0)
        by_append(text, sizeof(text),
                  "rank %u, which leads %s, has made no progress with %s for %g s; does its process run?",
                  local->mates.head->rank[0].rank, local->config.host, by_collective_name(collective),
                  2 * (double)local->config.stall_ns / 1e9);
    else
        by_append(text, sizeof(text), " on %s %s not contributed to %s for %g s; does its process still run?",
                  local->config.host, "has", by_collective_name(collective),
                  (double)local->config.stall_ns / 1e9);
    tell(local, first, BY_FATE_SILENT);
    fail(local, BY_ETIMEDOUT, local->mates.head->rank[first].rank, text);
}

/* Ends all calls when a rank of the host has ended, or has not contributed in time. The network
 * does the same for other hosts. */
static void watch(struct by_local *local, uint64_t now_ns)
{
    const struct by_mates *mates = &local->mates;
    uint64_t waited_ns = now_ns - local->moved_ns, stall_ns = local->config.stall_ns;

    if (local->take.slice == local->calls.end)
        return;
    if (mates->index != 0) {
        if (mates->gone[0] && local->take.slice >= atomic_load(&mates->head->done))
            say_gone(local, 0);
        else if (waited_ns >= stall_ns + BY_LOCAL_GRACE_NS &&
                 (!is_packed(local, local->take.slice) || waited_ns >= 2 * stall_ns + BY_LOCAL_GRACE_NS))
            say_late(local, local->take.slice);
        return;
    }
    for (uint32_t index = 1; index < mates->count; index++)
        if (mates->gone[index] && atomic_load(&mates->head->rank[index].packed) < local->calls.end) {
            say_gone(local, index);
            return;
        }
    if (local->sum.slice == local->done.slice && waited_ns >= stall_ns && !is_packed(local, local->sum.slice))
        say_late(local, local->sum.slice);
}

/* ---- the interface */

int by_local_open(struct by_local **out, struct by_seats *seats, struct by_mates *mates,
                  const struct by_local_config *config)
{
    struct by_local *local = calloc(1, sizeof(*local));

    if (local != NULL && mates->index == 0) {
        local->offsets = calloc(BY_MATES_SLOTS * ((size_t)seats->host_count + 1), sizeof(*local->offsets));
        local->inputs = calloc(seats->mates, sizeof(*local->inputs));
    }
    if (local == NULL || (mates->index == 0 && (local->offsets == NULL || local->inputs == NULL))) {
        if (local != NULL) {
            free(local->offsets);
            free(local->inputs);
        }
        free(local);
        by_mates_close(mates);
        by_seats_free(seats);
        return by_fail(BY_ENOMEM, "no memory for the calls of the ranks of %s", config->host);
    }
    local->seats = *seats;
    local->mates = *mates;
    local->config = *config;
    memset(seats, 0, sizeof(*seats));
    by_mates_init(mates);
    *out = local;
    return 0;
}

void by_local_close(struct by_local *local)
{
    if (local == NULL)
        return;
    by_mates_close(&local->mates);
    by_seats_free(&local->seats);
    free(local->offsets);
    free(local->inputs);
    free(local);
}

const struct by_seats *by_local_seats(const struct by_local *local)
{
    return &local->seats;
}

bool by_local_leads(const struct by_local *local)
{
    return local->mates.index == 0;
}

bool by_local_refuses(const struct by_call *call)
{
    return by_collective_reduces(call->collective) &&
           by_reduction_dtype(call->mode, call->op, call->dtype) != call->dtype;
}

int by_local_post(struct by_local *local, const struct by_call *call, uint32_t *id)
{
    int error;

    if (local->error != 0)
        return BY_ESTATE;
    if (by_local_refuses(call))
        return BY_EUNSUPPORTED;
    error = by_sliced_post(&local->calls, call, &local->seats, local->mates.head->slot_bytes, id);
    local->fresh |= error == 0;
    return error;
}

int by_local_test(struct by_local *local, uint32_t id)
{
    return by_sliced_test(&local->calls, id);
}

const char *by_local_text(const struct by_local *local)
{
    return local->text;
}

/* A number that changes when other ranks publish something. */
static uint64_t look(const struct by_local *local)
{
    const struct by_mates_head *head = local->mates.head;
    uint64_t sum = atomic_load(&head->error_state);

    if (local->mates.index != 0)
        return sum + atomic_load(&head->done) + atomic_load(&head->freed);
    for (uint32_t index = 1; index < local->mates.count; index++)
        sum += atomic_load(&head->rank[index].packed) + atomic_load(&head->rank[index].taken);
    return sum;
}

uint32_t by_local_step(struct by_local *local, uint64_t now_ns)
{
    struct by_mates *mates = &local->mates;
    bool leads = mates->index == 0;
    uint32_t moved;

    if (local->error != 0)
        return 0;
    if (local->fresh || local->moved_ns == 0)
        local->moved_ns = now_ns;
    local->fresh = false;
    if (local->dozing || now_ns - local->heard_ns >= HEAR_NS) {
        by_mates_hear(mates);
        local->dozing = false;
        local->heard_ns = now_ns;
    }
    local->seen = look(local);
    if (by_mates_error(mates) != 0) {
        end_all(local, by_mates_error(mates), mates->head->text);
        if (leads)
            by_mates_wake_all(mates);
        return 1;
    }
    moved = leads ? release(local) : 0;
    moved += pack(local);
    if (leads) {
        moved += send(local);
        moved += collect(local);
    }
    moved += take(local);
    if (moved > 0)
        local->moved_ns = now_ns;
    else
        watch(local, now_ns);
    return moved;
}

uint64_t by_local_deadline(const struct by_local *local)
{
    if (local->error != 0 || local->take.slice == local->calls.end)
        return UINT64_MAX;
    return local->moved_ns + local->config.stall_ns;
}

uint32_t by_local_fds(struct by_local *local, struct pollfd *fds)
{
    local->dozing = true;
    by_mates_doze(&local->mates);
    return by_mates_fds(&local->mates, look(local) != local->seen, fds);
}
