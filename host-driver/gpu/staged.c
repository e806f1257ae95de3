/* Operations on GPU buffers, slice by slice; see staged.h. */
#include "host-driver/gpu/staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/gpu/driver.h"
#include "offload/wire/types.h"

#define DEPTH 3u /* slices in flight: one copied in, one on the wire, one copied out */

enum staged_step { STEP_FREE, STEP_IN, STEP_READY, STEP_WIRE, STEP_OUT };

/* One side of an operation: a buffer, divided into shards; each slice takes a part of every
 * shard. */
struct staged_side {
    uint8_t *user; /* NULL: this rank has no such buffer */
    void *context; /* of the device memory, or NULL */
    bool staged;   /* slices have their own memory */
    bool strided;  /* shards of all ranks, else one piece */
    struct by_gpu_lane lane;
};

struct staged_slice {
    enum staged_step step;
    uint64_t index;
    struct banyan_request *child;
    void *event[2];     /* of the copies in and out */
    uint8_t *memory[2]; /* of the staged sides */
};

struct by_staged {
    struct banyan_request *request, *next; /* in the order of posts */
    struct staged_side side[2];            /* send, recv */
    uint64_t slice_count, first_free;      /* number of slices, and the next to start */
    uint64_t posted, ended;
    size_t bytes[2]; /* size of a slice's memory */
    struct staged_slice slice[DEPTH];
    bool leaving; /* failed: no more slices start */
};

enum { SEND, RECV };

int by_staging_open(struct banyan_comm *comm)
{
    const struct by_settings *settings = &comm->context->settings;
    const char *gpu = settings->value[BY_SETTING_GPU];
    uint64_t chunk;
    int error = by_settings_number(settings, BY_SETTING_GPU_CHUNK, UINT64_C(1) << 40, &chunk);

    if (error != 0)
        return error;
    if (strcmp(gpu, "off") == 0)
        return 0;
    if (strcmp(gpu, "auto") != 0 && strcmp(gpu, "on") != 0)
        return by_fail(BY_EINVAL, "BANYAN_GPU is '%s' (%s); use auto, on or off", gpu,
                       settings->origin[BY_SETTING_GPU]);
    comm->staging.on = true;
    comm->staging.chunk = strcmp(gpu, "on") == 0 ? chunk : 0;
    comm->staging.library = settings->value[BY_SETTING_CUDA_LIBRARY];
    return by_gpu_find(comm->staging.library);
}

/* ---- slices */

static uint32_t shards_of(const struct by_staged *staged, unsigned which)
{
    return staged->side[which].strided ? staged->request->comm->rank_count : 1;
}

/* Returns the elements [first, end) of shard `shard` on a side. */
static void shard_of(const struct by_staged *staged, unsigned which, uint32_t shard, uint64_t *first,
                     uint64_t *end)
{
    const struct by_call *call = &staged->request->call;
    uint32_t rank = staged->request->comm->rank;

    if (call->offsets == NULL) {
        *first = shard * call->count;
        *end = *first + call->count;
    } else if (staged->side[which].strided) {
        *first = call->offsets[shard];
        *end = call->offsets[shard + 1];
    } else {
        *first = 0;
        *end = call->offsets[rank + 1] - call->offsets[rank];
    }
}

/* Returns the part of `count` elements before slice `index`. */
static uint64_t part(const struct by_staged *staged, uint64_t count, uint64_t index)
{
    return (uint64_t)((unsigned __int128)count * index / staged->slice_count);
}

/* Returns the elements of slice `index` on a side. */
static uint64_t slice_elements(const struct by_staged *staged, unsigned which, uint64_t index)
{
    uint64_t sum = 0;

    for (uint32_t shard = 0; shard < shards_of(staged, which); shard++) {
        uint64_t first, end;

        shard_of(staged, which, shard, &first, &end);
        sum += part(staged, end - first, index + 1) - part(staged, end - first, index);
    }
    return sum;
}

/* Starts the copies of a slice between the user's buffer and the slice's memory. */
static int move(struct by_staged *staged, unsigned which, struct staged_slice *slice)
{
    const struct staged_side *side = &staged->side[which];
    size_t element = by_dtype_bytes(staged->request->call.dtype);
    uint8_t *memory = slice->memory[which];
    int error = 0;

    for (uint32_t shard = 0; error == 0 && shard < shards_of(staged, which); shard++) {
        uint64_t first, end, from, to;
        uint8_t *user;
        size_t bytes;

        shard_of(staged, which, shard, &first, &end);
        from = part(staged, end - first, slice->index);
        to = part(staged, end - first, slice->index + 1);
        user = side->user + (first + from) * element;
        bytes = (size_t)(to - from) * element;
        if (bytes == 0)
            continue;
        if (side->context == NULL)
            memcpy(which == SEND ? memory : user, which == SEND ? user : memory, bytes);
        else
            error = which == SEND ? by_gpu_copy_in(&side->lane, memory, user, bytes)
                                  : by_gpu_copy_out(&side->lane, user, memory, bytes);
        memory += bytes;
    }
    if (error == 0 && side->context != NULL)
        error = by_gpu_mark(&side->lane, slice->event[which]);
    return error;
}

/* Returns the address that a slice's operation reads or writes. */
static uint8_t *place(const struct by_staged *staged, unsigned which, const struct staged_slice *slice)
{
    const struct staged_side *side = &staged->side[which];
    uint64_t first, end;

    if (side->user == NULL || side->staged)
        return slice->memory[which];
    shard_of(staged, which, 0, &first, &end);
    return side->user + part(staged, end - first, slice->index) * by_dtype_bytes(staged->request->call.dtype);
}

/* Describes a slice's operation: the user's, on a part of each shard. */
static int describe(struct by_staged *staged, struct staged_slice *slice)
{
    const struct banyan_request *request = staged->request;
    struct banyan_request *child = slice->child;
    uint32_t count = request->comm->rank_count;

    child->call = request->call;
    child->call.scratch = NULL;
    child->call.send = place(staged, SEND, slice);
    child->call.recv = place(staged, RECV, slice);
    child->call.offsets = NULL;
    free(child->offsets);
    child->offsets = NULL;
    child->state = BY_REQUEST_READY;
    child->result = 0;
    if (request->call.offsets == NULL) {
        child->call.count = part(staged, request->call.count, slice->index + 1) -
                            part(staged, request->call.count, slice->index);
        return 0;
    }
    child->offsets = calloc(count + 1u, sizeof(*child->offsets));
    if (child->offsets == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u offsets", count + 1);
    for (uint32_t shard = 0; shard < count; shard++) {
        uint64_t elements = request->call.offsets[shard + 1] - request->call.offsets[shard];

        child->offsets[shard + 1] = child->offsets[shard] + part(staged, elements, slice->index + 1) -
                                    part(staged, elements, slice->index);
    }
    child->call.offsets = child->offsets;
    child->call.count = child->offsets[count];
    return 0;
}

/* ---- create and free */

static void read_sides(struct by_staged *staged, const struct banyan_request *request)
{
    const struct by_call *call = &request->call;
    struct staged_side *send = &staged->side[SEND], *recv = &staged->side[RECV];

    send->user = (uint8_t *)(uintptr_t)call->send;
    recv->user = call->recv;
    send->strided = call->collective == BY_COLLECTIVE_REDUCE_SCATTER;
    recv->strided = call->collective == BY_COLLECTIVE_ALLGATHER;
    for (unsigned which = SEND; which <= RECV; which++) {
        struct staged_side *side = &staged->side[which];

        side->context = by_gpu_context_of(side->user);
        side->staged =
            side->user != NULL && (side->context != NULL || (side->strided && staged->slice_count > 1));
    }
}

static uint64_t slices_of(const struct banyan_request *request)
{
    const struct by_call *call = &request->call;
    uint64_t chunk = request->comm->staging.chunk, elements = call->count, bytes;

    if (call->offsets == NULL && (by_collective_is_sharded(call->collective)))
        elements *= request->comm->rank_count;
    bytes = elements * by_dtype_bytes(call->dtype);
    if (chunk == 0 || bytes <= chunk)
        return 1;
    bytes = (bytes + chunk - 1) / chunk;
    return bytes < call->count ? bytes : call->count;
}

static int open_side(struct by_staged *staged, unsigned which)
{
    struct staged_side *side = &staged->side[which];
    uint32_t depth = staged->slice_count < DEPTH ? (uint32_t)staged->slice_count : DEPTH;
    int error = 0;

    /* Parts differ by at most one element per shard. */
    staged->bytes[which] = (size_t)(slice_elements(staged, which, 0) + shards_of(staged, which)) *
                           by_dtype_bytes(staged->request->call.dtype);
    if (side->context != NULL)
        error = by_gpu_lane_open(&side->lane, side->context);
    for (uint32_t i = 0; error == 0 && i < depth && side->staged; i++) {
        void *memory = NULL;

        if (side->context != NULL)
            error = by_gpu_pinned_take(side->context, staged->bytes[which], &memory);
        else if ((memory = aligned_alloc(64, (staged->bytes[which] + 63) / 64 * 64)) == NULL)
            error = by_fail(BY_ENOMEM, "no memory for a slice: %zu bytes", staged->bytes[which]);
        staged->slice[i].memory[which] = memory;
        if (error == 0 && side->context != NULL)
            error = by_gpu_event_open(side->context, &staged->slice[i].event[which]);
    }
    return error;
}

void by_staged_free(struct by_staged *staged)
{
    if (staged == NULL)
        return;
    for (unsigned which = SEND; which <= RECV; which++) {
        struct staged_side *side = &staged->side[which];

        by_gpu_lane_close(&side->lane);
        for (uint32_t i = 0; i < DEPTH; i++) {
            if (side->context != NULL) {
                by_gpu_pinned_give(side->context, staged->slice[i].memory[which]);
                by_gpu_event_close(side->context, staged->slice[i].event[which]);
            } else {
                free(staged->slice[i].memory[which]);
            }
        }
    }
    free(staged);
}

static void give_children(struct by_staged *staged)
{
    for (uint32_t i = 0; i < DEPTH; i++) {
        if (staged->slice[i].child != NULL)
            by_request_give(staged->slice[i].child);
        staged->slice[i].child = NULL;
        staged->slice[i].step = STEP_FREE;
    }
}

bool by_staging_is_gpu(const struct banyan_request *request)
{
    return by_gpu_context_of(request->call.send) != NULL || by_gpu_context_of(request->call.recv) != NULL;
}

bool by_staging_wanted(struct banyan_request *request)
{
    struct by_staging *staging = &request->comm->staging;

    if (!staging->on)
        return false;
    by_gpu_find(staging->library);
    return staging->first != NULL || slices_of(request) > 1 || by_staging_is_gpu(request);
}

int by_staging_post(struct banyan_request *request)
{
    struct banyan_comm *comm = request->comm;
    struct by_staged *staged = calloc(1, sizeof(*staged));
    uint32_t depth;
    int error = 0;

    if (staged == NULL)
        return by_fail(BY_ENOMEM, "no memory for an operation on a GPU");
    staged->request = request;
    staged->slice_count = slices_of(request);
    read_sides(staged, request);
    depth = staged->slice_count < DEPTH ? (uint32_t)staged->slice_count : DEPTH;
    for (unsigned which = SEND; error == 0 && which <= RECV; which++)
        error = open_side(staged, which);
    for (uint32_t i = 0; error == 0 && i < depth; i++) {
        staged->slice[i].child = by_request_take(comm);
        if (staged->slice[i].child == NULL)
            error = by_fail(BY_ENOMEM, "no memory for the slices of an operation");
        else
            staged->slice[i].child->state = BY_REQUEST_READY;
    }
    if (error != 0) {
        give_children(staged);
        by_staged_free(staged);
        return error;
    }
    request->staged = staged;
    request->state = BY_REQUEST_RUNNING;
    if (comm->staging.last != NULL)
        comm->staging.last->staged->next = request;
    else
        comm->staging.first = request;
    comm->staging.last = request;
    by_staging_step(comm);
    return 0;
}

/* ---- progress */

/* Ends the request: frees its children and buffers, and removes it from the list. */
static void end(struct banyan_comm *comm, struct banyan_request *before, struct banyan_request *request,
                int result)
{
    struct by_staged *staged = request->staged;

    if (before != NULL)
        before->staged->next = staged->next;
    else
        comm->staging.first = staged->next;
    if (comm->staging.last == request)
        comm->staging.last = before;
    give_children(staged);
    by_staged_free(staged);
    request->staged = NULL;
    request->state = BY_REQUEST_ENDED;
    request->result = result;
    if (result != 0)
        by_comm_fail(comm, result);
}

static int start_slice(struct by_staged *staged, struct staged_slice *slice)
{
    const struct staged_side *send = &staged->side[SEND];

    slice->index = staged->first_free++;
    slice->step = send->staged ? STEP_IN : STEP_READY;
    return send->staged ? move(staged, SEND, slice) : 0;
}

static int out(struct by_staged *staged, struct staged_slice *slice)
{
    if (slice->child->result != 0)
        return by_fail(slice->child->result, "%s", slice->child->text);
    if (!staged->side[RECV].staged) {
        slice->step = STEP_FREE;
        staged->ended++;
        return 0;
    }
    slice->step = STEP_OUT;
    return move(staged, RECV, slice);
}

/* 0 or an error with its text; *moved is set if something was done. `in_turn`: all earlier posts
 * have started. */
static int advance(struct by_staged *staged, struct staged_slice *slice, bool in_turn, bool *moved)
{
    unsigned which = slice->step == STEP_IN ? SEND : RECV;
    enum staged_step step = slice->step;
    int error = 0;

    switch (step) {
    case STEP_FREE:
        if (staged->first_free < staged->slice_count && slice->child != NULL)
            error = start_slice(staged, slice);
        break;
    case STEP_IN:
    case STEP_OUT:
        if (staged->side[which].context != NULL)
            error = by_gpu_happened(staged->side[which].context, slice->event[which]);
        if (error == BY_EAGAIN)
            return 0;
        slice->step = step == STEP_IN ? STEP_READY : STEP_FREE;
        staged->ended += step == STEP_OUT;
        break;
    case STEP_READY:
        if (!in_turn || slice->index != staged->posted)
            return 0;
        error = describe(staged, slice);
        if (error == 0)
            error = by_request_start(slice->child);
        if (error == BY_EAGAIN)
            return 0; /* too many are running */
        slice->step = STEP_WIRE;
        staged->posted++;
        break;
    case STEP_WIRE:
        by_request_collect(slice->child);
        if (slice->child->state != BY_REQUEST_ENDED)
            return 0;
        error = out(staged, slice);
        break;
    }
    *moved = *moved || error != 0 || slice->step != step;
    return error;
}

static int step_request(struct by_staged *staged, bool in_turn)
{
    bool moved = true;
    int error = 0;

    while (moved && error == 0) {
        moved = false;
        for (uint32_t i = 0; error == 0 && i < DEPTH; i++)
            error = advance(staged, &staged->slice[i], in_turn, &moved);
    }
    return error;
}

void by_staging_step(struct banyan_comm *comm)
{
    struct banyan_request *before = NULL, *request = comm->staging.first;
    bool in_turn = true;

    while (request != NULL) {
        struct by_staged *staged = request->staged;
        struct banyan_request *next = staged->next;
        int error = step_request(staged, in_turn);

        if (error != 0) {
            snprintf(request->text, sizeof(request->text), "%s", banyan_last_error());
            by_staging_abort(comm, error);
            return;
        }
        in_turn = in_turn && staged->posted == staged->slice_count;
        if (staged->ended == staged->slice_count)
            end(comm, before, request, 0);
        else
            before = request;
        request = next;
    }
}

bool by_staging_busy(const struct banyan_comm *comm)
{
    for (const struct banyan_request *request = comm->staging.first; request != NULL;
         request = request->staged->next)
        for (uint32_t i = 0; i < DEPTH; i++)
            if (request->staged->slice[i].step == STEP_IN || request->staged->slice[i].step == STEP_OUT)
                return true;
    return false;
}

void by_staging_abort(struct banyan_comm *comm, int error)
{
    if (comm->staging.first == NULL)
        return;
    by_comm_fail(comm, error);
    /* Operations on the wire use memory that is freed next. */
    if (comm->progress.endpoint != NULL)
        by_endpoint_abort(comm->progress.endpoint);
    if (comm->hosts.fallback != NULL)
        by_fallback_abort(comm->hosts.fallback);
    for (bool first = true; comm->staging.first != NULL; first = false) {
        struct banyan_request *request = comm->staging.first;

        for (uint32_t i = 0; i < DEPTH; i++)
            if (request->staged->slice[i].step == STEP_WIRE)
                by_request_collect(request->staged->slice[i].child);
        if (!first || request->text[0] == 0)
            snprintf(request->text, sizeof(request->text), "%s: %s",
                     by_collective_name(request->call.collective),
                     by_error_text(first ? error : BY_EABORTED));
        end(comm, NULL, request, first ? error : BY_EABORTED);
    }
}
