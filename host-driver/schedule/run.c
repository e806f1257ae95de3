/* Executes the operations of schedules: which step follows which, and what moves when. See
 * schedule.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "host-driver/fallback/exchange.h"
#include "host-driver/fallback/mesh.h"
#include "host-driver/schedule/combine.h"
#include "host-driver/schedule/state.h"
#include "offload/wire/types.h"

#define EVENTS_MAX 64

/* ---- sizes and places */

/* The first element of part `part` of `parts`. */
static uint64_t split(uint64_t elements, uint32_t part, uint32_t parts)
{
    return (uint64_t)((unsigned __int128)elements * part / parts);
}

static const struct by_program *program_of(const struct by_schedule *schedule,
                                           const struct by_schedule_operation *operation)
{
    return schedule->program[operation->call->program];
}

/* Elements of an item in the whole call; BY_SCHEDULE_UNKNOWN if this rank has only the
 * announcements of others. */
static uint64_t elements_of(const struct by_schedule *schedule, const struct by_call *call,
                            const struct by_item *item)
{
    if (item->ranks != 0 || call->offsets == NULL)
        return call->count;
    if (item->source == schedule->rank)
        return by_exchange_number(call, schedule->rank_count, BY_SEND_COUNT, item->target);
    if (item->target == schedule->rank)
        return by_exchange_number(call, schedule->rank_count, BY_RECV_COUNT, item->source);
    return BY_SCHEDULE_UNKNOWN;
}

/* Elements of an item in one operation of its call; BY_SCHEDULE_UNKNOWN until they have been
 * announced. */
static uint64_t piece_of(const struct by_schedule *schedule, const struct by_schedule_operation *operation,
                         uint32_t item)
{
    const struct by_scheduled_call *call = operation->call;
    uint64_t all = elements_of(schedule, &call->call, &program_of(schedule, operation)->items[item]);

    if (all == BY_SCHEDULE_UNKNOWN)
        return operation->items[item].elements;
    return split(all, operation->piece + 1, call->pieces) - split(all, operation->piece, call->pieces);
}

/* Where an item of an operation is: in the user's buffers, or in memory of the operation, which is
 * made if necessary. NULL: no memory. */
static uint8_t *place_of(const struct by_schedule *schedule, struct by_schedule_operation *operation,
                         uint32_t item)
{
    const struct by_program *program = program_of(schedule, operation);
    const struct by_scheduled_call *call = operation->call;
    const struct by_item *what = &program->items[item];
    struct by_schedule_memory *memory = &operation->items[item];
    uint64_t size = by_dtype_bytes(call->call.dtype), bytes;
    bool exchanges = what->ranks == 0;
    uint64_t before = split(elements_of(schedule, &call->call, what), operation->piece, call->pieces), at = 0;

    if (by_program_is_own(program, what)) {
        if (exchanges)
            at = by_exchange_number(&call->call, schedule->rank_count, BY_SEND_AT, what->target);
        return (uint8_t *)(uintptr_t)call->send + (at + before) * size;
    }
    if (by_program_is_result(program, what)) {
        if (exchanges)
            at = by_exchange_number(&call->call, schedule->rank_count, BY_RECV_AT, what->source);
        return (uint8_t *)call->call.recv + (at + before) * size;
    }
    bytes = piece_of(schedule, operation, item) * size;
    if (memory->room < bytes + 1) {
        free(memory->bytes);
        memory->room = (size_t)(bytes + bytes / 4 + 64) / 64 * 64 + 64;
        memory->bytes = aligned_alloc(64, memory->room);
        if (memory->bytes == NULL)
            memory->room = 0;
    }
    return memory->bytes;
}

/* The part of an item that a step moves: its first byte, or NULL without memory. */
static uint8_t *part_of(const struct by_schedule *schedule, struct by_schedule_operation *operation,
                        const struct by_program_step *step, uint32_t item, uint64_t *elements)
{
    uint64_t all = piece_of(schedule, operation, item);
    uint32_t chunks = program_of(schedule, operation)->chunk_count;
    uint64_t first = split(all, step->first, chunks), end = split(all, step->first + step->count, chunks);
    uint8_t *place = place_of(schedule, operation, item);

    *elements = end - first;
    return place != NULL ? place + first * by_dtype_bytes(operation->call->call.dtype) : NULL;
}

/* ---- steps */

static void add_ready(struct by_schedule *schedule, uint32_t slot, uint32_t s)
{
    const struct by_schedule_operation *operation = &schedule->operations[slot];
    const struct by_program_step *step = &program_of(schedule, operation)->steps[s];
    struct by_schedule_channel *channel =
        &schedule->channels[schedule->first[operation->call->program] + step->way];

    channel->ready[channel->ready_count++] =
        (struct by_schedule_ready){.slot = slot, .step = s, .time = operation->base + step->round};
}

static void end_operation(struct by_schedule *schedule, struct by_schedule_operation *operation)
{
    struct by_scheduled_call *call = operation->call;

    operation->active = false;
    if (++call->ended == call->pieces)
        by_schedule_end_call(call, 0);
    while (schedule->oldest != schedule->begun &&
           !schedule->operations[schedule->oldest % schedule->window].active)
        schedule->oldest++;
    while (schedule->ended != schedule->posted &&
           schedule->calls[schedule->ended % BY_CALLS_MAX].result != BY_EAGAIN)
        schedule->ended++;
}

static int combine(struct by_schedule *schedule, struct by_schedule_operation *operation,
                   const struct by_program_step *step)
{
    const struct by_call *call = &operation->call->call;
    uint64_t count;
    uint8_t *to = part_of(schedule, operation, step, step->item, &count);
    const uint8_t *left = part_of(schedule, operation, step, step->left, &count);
    const uint8_t *right = part_of(schedule, operation, step, step->right, &count);

    if (to == NULL || left == NULL || right == NULL)
        return BY_ENOMEM;
    by_combine(call->op, call->dtype, to, left, right, count, schedule->scratch);
    return 0;
}

/* Ends a step, and all combinations that it makes possible. 0 or BY_ENOMEM. */
static int end_step(struct by_schedule *schedule, uint32_t slot, uint32_t first)
{
    struct by_schedule_operation *operation = &schedule->operations[slot];
    const struct by_program *program = program_of(schedule, operation);
    uint32_t queue = first; /* steps to end, linked through `needs` */

    operation->needs[first] = BY_SCHEDULE_DONE;
    while (queue != BY_SCHEDULE_DONE) {
        const struct by_program_step *step = &program->steps[queue];
        int error = step->kind == BY_STEP_COMBINE ? combine(schedule, operation, step) : 0;

        if (error != 0)
            return error;
        queue = operation->needs[queue];
        operation->needs[step - program->steps] = BY_SCHEDULE_DONE;
        operation->left--;
        for (uint32_t i = 0; i < step->after_count; i++) {
            uint32_t next = program->after[step->after + i];

            if (--operation->needs[next] > 0)
                continue;
            if (program->steps[next].kind == BY_STEP_SEND) {
                add_ready(schedule, slot, next);
            } else {
                operation->needs[next] = queue;
                queue = next;
            }
        }
    }
    if (operation->left == 0)
        end_operation(schedule, operation);
    return 0;
}

/* ---- admission */

/* Changes what the epoll descriptor waits for at a connection. */
static void watch(struct by_schedule *schedule, struct by_schedule_channel *channel)
{
    bool room = by_connection_is_full(&channel->connection);
    struct epoll_event event = {.events = EPOLLIN | (room ? (uint32_t)EPOLLOUT : 0),
                                .data.u32 = (uint32_t)(channel - schedule->channels)};

    if (channel->is_watched && channel->watches_room == room)
        return;
    epoll_ctl(schedule->watch, channel->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, channel->connection.fd,
              &event);
    channel->is_watched = true;
    channel->watches_room = room;
}

/* Finds the first message of a connection that has neither arrived nor been admitted. Its place in
 * the order of operations and rounds; UINT64_MAX: there is none. */
static uint64_t next_message(const struct by_schedule *schedule, const struct by_schedule_channel *channel)
{
    uint64_t skipped = channel->connection.ready.messages - channel->received;

    for (uint32_t number = schedule->oldest; number != schedule->begun; number++) {
        const struct by_schedule_operation *operation = &schedule->operations[number % schedule->window];
        const struct by_program *program = program_of(schedule, operation);

        for (uint32_t i = 0; operation->active && operation->call->program == channel->program &&
                             i < channel->end->step_count;
             i++)
            if (operation->needs[channel->end->steps[i]] != BY_SCHEDULE_DONE && skipped-- == 0)
                return (uint64_t)(number - schedule->oldest) << 32 |
                       program->steps[channel->end->steps[i]].round;
    }
    return UINT64_MAX;
}

/*
 * Where the links of a host share a port, it admits few messages at once, in the order of
 * operations and rounds: senders that are not in step would otherwise fill the queue before its
 * link, and lose packets. The earliest message that any rank lacks has all that it needs, and is
 * among those that its receiver has admitted, so something can always go on.
 */
static void admit(struct by_schedule *schedule, uint32_t program)
{
    while (!schedule->program[program]->ports_many && schedule->admitted[program] < schedule->admitted_max) {
        struct by_schedule_channel *first = NULL;
        uint64_t least = UINT64_MAX;

        for (uint32_t c = schedule->first[program]; c < schedule->first[program + 1]; c++) {
            uint64_t place = schedule->channels[c].connection.sends
                                 ? UINT64_MAX
                                 : next_message(schedule, &schedule->channels[c]);

            if (place < least) {
                least = place;
                first = &schedule->channels[c];
            }
        }
        if (first == NULL)
            return;
        schedule->admitted[program]++;
        first->connection.ready.messages++;
        by_connection_push(&first->connection);
        if (first->connection.fd >= 0)
            watch(schedule, first);
    }
}

/* Grants the sender of a connection what it may send in the operations that have begun. */
static void grant(const struct by_schedule *schedule, struct by_schedule_channel *channel)
{
    channel->connection.ready.operation = schedule->begun;
    if (schedule->program[channel->program]->ports_many)
        channel->connection.ready.messages += channel->end->step_count;
}

/* ---- operations */

static void begin_operation(struct by_schedule *schedule, struct by_scheduled_call *call)
{
    uint32_t slot = schedule->begun % schedule->window;
    struct by_schedule_operation *operation = &schedule->operations[slot];
    const struct by_program *program = schedule->program[call->program];

    operation->active = true;
    operation->number = schedule->begun++;
    operation->piece = call->begun++;
    operation->call = call;
    operation->base = schedule->time;
    operation->left = program->step_count;
    schedule->time += program->interval;
    schedule->counters.operations++;
    for (uint32_t i = 0; i < program->item_count; i++)
        operation->items[i].elements = BY_SCHEDULE_UNKNOWN;
    for (uint32_t s = 0; s < program->step_count; s++) {
        operation->needs[s] = program->steps[s].needs;
        if (program->steps[s].kind == BY_STEP_SEND && operation->needs[s] == 0)
            add_ready(schedule, slot, s);
    }
    for (uint32_t c = schedule->first[call->program]; c < schedule->first[call->program + 1]; c++)
        if (!schedule->channels[c].connection.sends)
            grant(schedule, &schedule->channels[c]);
    admit(schedule, call->program);
    if (operation->left == 0)
        end_operation(schedule, operation);
}

/* Begins the operations for which there is room. True if any has begun. */
static bool begin_operations(struct by_schedule *schedule, struct by_mesh_fault *fault)
{
    bool any = false;

    for (uint32_t number = schedule->ended; number != schedule->posted; number++) {
        struct by_scheduled_call *call = &schedule->calls[number % BY_CALLS_MAX];

        if (call->begun == 0 && by_schedule_lacks(schedule, &call->call, call->program)) {
            *fault = (struct by_mesh_fault){.error = BY_EUNSUPPORTED, .rank = schedule->rank};
            return any;
        }
        for (; call->begun < call->pieces; any = true) {
            if (schedule->begun - schedule->oldest >= schedule->window ||
                schedule->operations[schedule->begun % schedule->window].active)
                return any;
            begin_operation(schedule, call);
        }
    }
    return any;
}

/* ---- sending */

/* Pushes what a connection has to send. True if a message has ended. */
static bool push(struct by_schedule *schedule, struct by_schedule_channel *channel,
                 struct by_mesh_fault *fault)
{
    bool ended = by_connection_push(&channel->connection);

    if (channel->connection.fd >= 0)
        watch(schedule, channel);
    if (!ended)
        return false;
    fault->error = end_step(schedule, channel->sending.slot, channel->sending.step);
    fault->rank = schedule->rank;
    return true;
}

/* Returns the place among the ready sends of a channel of the earliest one that the receiver can
 * take; UINT32_MAX: none. */
static uint32_t earliest(const struct by_schedule *schedule, const struct by_schedule_channel *channel)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t r = 0; r < channel->ready_count && channel->sent < channel->credit.messages; r++) {
        uint32_t number = schedule->operations[channel->ready[r].slot].number;

        if ((int32_t)(channel->credit.operation - number) > 0 &&
            (best == UINT32_MAX || channel->ready[r].time < channel->ready[best].time ||
             (channel->ready[r].time == channel->ready[best].time &&
              channel->ready[r].step < channel->ready[best].step)))
            best = r;
    }
    return best;
}

static int begin_send(struct by_schedule *schedule, struct by_schedule_channel *channel, uint32_t at)
{
    struct by_schedule_ready send = channel->ready[at];
    struct by_schedule_operation *operation = &schedule->operations[send.slot];
    const struct by_program_step *step = &program_of(schedule, operation)->steps[send.step];
    uint64_t count;
    const uint8_t *body = part_of(schedule, operation, step, step->item, &count);
    struct by_connection_head head = {.kind = BY_CONNECTION_DATA,
                                      .operation = operation->number,
                                      .index = step->index,
                                      .tag = operation->call->tag,
                                      .elements = piece_of(schedule, operation, step->item)};

    if (body == NULL)
        return BY_ENOMEM;
    channel->ready[at] = channel->ready[--channel->ready_count];
    channel->sending = send;
    channel->sent++;
    schedule->counters.messages++;
    by_connection_send(&channel->connection, &head, body,
                       (size_t)(count * by_dtype_bytes(operation->call->call.dtype)));
    return 0;
}

/* Begins the earliest send at each connection that has none under way. One message at a time, as in
 * a schedule for one port, would leave the port idle while a connection waits for acknowledgements;
 * connections that share a link share its rate. True if any has begun. */
static bool begin_sends(struct by_schedule *schedule, struct by_mesh_fault *fault)
{
    bool any = false;

    for (uint32_t c = 0; c < schedule->first[schedule->program_count]; c++) {
        struct by_schedule_channel *channel = &schedule->channels[c];

        while (channel->ready_count > 0 && !channel->connection.out.active && !channel->connection.gone) {
            uint32_t at = earliest(schedule, channel);

            if (at == UINT32_MAX)
                break;
            fault->error = begin_send(schedule, channel, at);
            fault->rank = schedule->rank;
            if (fault->error == 0)
                push(schedule, channel, fault);
            if (fault->error != 0)
                return true;
            any = true;
        }
    }
    return any;
}

/* ---- receiving */

static void mismatch(const struct by_schedule_channel *channel, struct by_mesh_fault *fault)
{
    *fault = (struct by_mesh_fault){.error = BY_EMISMATCH, .rank = channel->connection.peer};
}

/* Prepares to receive what a head announces. */
static void announce(struct by_schedule *schedule, struct by_schedule_channel *channel,
                     const struct by_connection_head *head, struct by_mesh_fault *fault)
{
    uint32_t slot = head->operation % schedule->window;
    struct by_schedule_operation *operation = &schedule->operations[slot];
    const struct by_program_step *step;
    uint64_t own, count;
    uint8_t *to;

    if (channel->connection.sends || !operation->active || operation->number != head->operation ||
        operation->call->tag != head->tag || operation->call->program != channel->program ||
        head->index >= channel->end->step_count) {
        mismatch(channel, fault);
        return;
    }
    channel->receiving = (struct by_schedule_ready){.slot = slot, .step = channel->end->steps[head->index]};
    step = &program_of(schedule, operation)->steps[channel->receiving.step];
    own = piece_of(schedule, operation, step->item);
    if (own == BY_SCHEDULE_UNKNOWN)
        operation->items[step->item].elements = head->elements;
    if (operation->needs[channel->receiving.step] == BY_SCHEDULE_DONE ||
        (own != BY_SCHEDULE_UNKNOWN && own != head->elements)) {
        mismatch(channel, fault);
        return;
    }
    to = part_of(schedule, operation, step, step->item, &count);
    if (to == NULL)
        *fault = (struct by_mesh_fault){.error = BY_ENOMEM, .rank = schedule->rank};
    else
        by_connection_take(&channel->connection, to,
                           (size_t)(count * by_dtype_bytes(operation->call->call.dtype)));
}

/* Whether an operation under way has a step on this connection that has not ended. */
static bool is_needed(const struct by_schedule *schedule, const struct by_schedule_channel *channel)
{
    for (uint32_t slot = 0; slot < schedule->window; slot++) {
        const struct by_schedule_operation *operation = &schedule->operations[slot];

        for (uint32_t i = 0; operation->active && operation->call->program == channel->program &&
                             i < channel->end->step_count;
             i++)
            if (operation->needs[channel->end->steps[i]] != BY_SCHEDULE_DONE)
                return true;
    }
    return false;
}

/* Reads what has arrived at a connection. True if anything has. */
static bool pull(struct by_schedule *schedule, struct by_schedule_channel *channel,
                 struct by_mesh_fault *fault)
{
    bool any = false;

    while (fault->error == 0) {
        struct by_connection_head head;
        enum by_connection_news news = by_connection_pull(&channel->connection, &head);

        if (news == BY_CONNECTION_NOTHING)
            return any;
        any = true;
        if (news == BY_CONNECTION_HEAD && head.kind == BY_CONNECTION_READY) {
            channel->credit =
                (struct by_connection_credit){.operation = head.operation, .messages = head.elements};
        } else if (news == BY_CONNECTION_HEAD) {
            announce(schedule, channel, &head, fault);
        } else if (news == BY_CONNECTION_BODY) {
            channel->received++;
            schedule->admitted[channel->program] -= schedule->admitted[channel->program] > 0;
            fault->error = end_step(schedule, channel->receiving.slot, channel->receiving.step);
            fault->rank = schedule->rank;
            admit(schedule, channel->program);
        } else {
            if (channel->is_watched)
                epoll_ctl(schedule->watch, EPOLL_CTL_DEL, channel->connection.fd, NULL);
            channel->is_watched = false;
            by_connection_close(&channel->connection);
            return any;
        }
    }
    return any;
}

/* Finds a connection that has been closed while an operation needs it. */
static void find_gone(const struct by_schedule *schedule, struct by_mesh_fault *fault)
{
    for (uint32_t c = 0; c < schedule->first[schedule->program_count] && fault->error == 0; c++)
        if (schedule->channels[c].connection.gone && is_needed(schedule, &schedule->channels[c]))
            *fault = (struct by_mesh_fault){.error = BY_EIO, .rank = schedule->channels[c].connection.peer};
}

static void count_bytes(struct by_schedule *schedule)
{
    schedule->counters.tx_bytes = schedule->counters.rx_bytes = 0;
    for (uint32_t c = 0; c < schedule->first[schedule->program_count]; c++) {
        schedule->counters.tx_bytes += schedule->channels[c].connection.tx_bytes;
        schedule->counters.rx_bytes += schedule->channels[c].connection.rx_bytes;
    }
}

uint64_t by_schedule_step(struct by_schedule *schedule, struct by_mesh_fault *fault)
{
    uint32_t all = schedule->first[schedule->program_count];
    uint64_t moved = 0;
    bool again = by_schedule_is_busy(schedule);

    while (again && fault->error == 0) {
        struct epoll_event events[EVENTS_MAX];
        int count;

        again = begin_operations(schedule, fault);
        for (uint32_t c = 0; again && c < all && fault->error == 0; c++)
            if (!schedule->channels[c].connection.sends)
                push(schedule, &schedule->channels[c], fault);
        count = epoll_wait(schedule->watch, events, EVENTS_MAX, 0);
        for (int i = 0; i < count && fault->error == 0; i++) {
            struct by_schedule_channel *channel = &schedule->channels[events[i].data.u32];

            again |= pull(schedule, channel, fault);
            if (fault->error == 0)
                again |= push(schedule, channel, fault);
        }
        if (fault->error == 0)
            again |= begin_sends(schedule, fault);
        moved += again;
        again &= by_schedule_is_busy(schedule);
    }
    if (moved > 0 && fault->error == 0)
        find_gone(schedule, fault);
    if (moved > 0)
        count_bytes(schedule);
    return moved;
}

uint32_t by_schedule_waits_for(const struct by_schedule *schedule)
{
    const struct by_schedule_operation *operation;
    const struct by_program *program;

    if (schedule->oldest == schedule->begun)
        return schedule->rank;
    operation = &schedule->operations[schedule->oldest % schedule->window];
    program = program_of(schedule, operation);
    for (uint32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == BY_STEP_RECEIVE && operation->needs[s] != BY_SCHEDULE_DONE)
            return program->ways[program->steps[s].way].peer;
    for (uint32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].kind == BY_STEP_SEND && operation->needs[s] != BY_SCHEDULE_DONE)
            return program->ways[program->steps[s].way].peer;
    return schedule->rank;
}
