/* Opens schedules, takes calls and ends them; see schedule.h. run.c executes them. */
#include "host-driver/schedule/schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <banyan/banyan.h>

#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/fallback/work.h"
#include "host-driver/schedule/combine.h"
#include "host-driver/schedule/connect.h"
#include "host-driver/schedule/state.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"

/*
 * A call is divided into operations, so that they follow one another in the pipeline of the
 * schedule: as many as make chunks of CHUNK_BYTES; or more, where the pipeline has more stages,
 * with chunks of at least CHUNK_BYTES_MIN, or where a rank passes on so many messages that it would
 * need more than RELAYED_BYTES for an operation; at most PIECES_MAX. In calls with unequal shares a
 * rank has the sizes of its own messages only; they have UNEQUAL_PIECES operations.
 */
#define CHUNK_BYTES     65536u
#define CHUNK_BYTES_MIN 4096u
#define RELAYED_BYTES   ((uint64_t)8 << 20)
#define PIECES_MAX      64u
#define UNEQUAL_PIECES  8u
/* Messages that a rank receives at once where its links share a port. */
#define ADMITTED_MIN 16u
#define ADMITTED_MAX 256u

/* ---- opening */

/* Enough that each port has something to send or to receive although ranks are not in step, and so
 * few that no sender gets far ahead of the others; more where much is on its way. */
static uint32_t admitted_max(const struct by_team *team)
{
    uint64_t on_the_way = team->gap_ps > 0 ? team->latency_ns * 1000u / team->gap_ps : 0;
    uint64_t most = ADMITTED_MIN + on_the_way / CHUNK_BYTES;

    return most < ADMITTED_MAX ? (uint32_t)most : ADMITTED_MAX;
}

static bool has_pair(const struct by_program *program, uint32_t source, uint32_t target)
{
    return program->pairs[(size_t)source * program->rank_count + target];
}

/* Finds out which calls a program executes. */
static enum by_schedule_kind kind_of(const struct by_program *program, uint32_t *root)
{
    uint32_t n = program->rank_count, pairs = 0, source = 0, target = 0, from_source = 0, to_target = 0;

    *root = program->target;
    if (program->reduces)
        return BY_SCHEDULE_REDUCE;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t t = 0; t < n; t++)
            if (has_pair(program, s, t)) {
                pairs++;
                source = s;
                target = t;
            }
    for (uint32_t r = 0; r < n; r++) {
        from_source += has_pair(program, source, r);
        to_target += has_pair(program, r, target);
    }
    *root = source;
    if (pairs == n * (n - 1))
        return BY_SCHEDULE_ALLTOALL;
    if (pairs == n - 1 && from_source == pairs)
        return BY_SCHEDULE_SCATTER;
    *root = target;
    return pairs == n - 1 && to_target == pairs ? BY_SCHEDULE_GATHER : BY_SCHEDULE_PAIRS;
}

/* Reads the files, up to the first that cannot be used. */
static int read_programs(struct by_schedule *schedule, const char *paths)
{
    char *list = strdup(paths), *left = NULL;
    int error = list == NULL ? by_fail(BY_ENOMEM, "no memory for BANYAN_SCHEDULE") : 0;

    for (char *path = list != NULL ? strtok_r(list, ",", &left) : NULL; path != NULL && error == 0;
         path = strtok_r(NULL, ",", &left)) {
        uint32_t p = schedule->program_count;

        if (p == BY_SCHEDULE_FILES_MAX)
            error = by_fail(BY_ELIMIT, "BANYAN_SCHEDULE names more than %u files", BY_SCHEDULE_FILES_MAX);
        else
            error =
                by_schedule_program_read(path, schedule->rank, schedule->rank_count, &schedule->program[p]);
        if (error != 0)
            break;
        schedule->kind[p] = kind_of(schedule->program[p], &schedule->root[p]);
        schedule->first[p + 1] = schedule->first[p] + schedule->program[p]->way_count;
        schedule->program_count++;
    }
    free(list);
    return error;
}

/* Allocates what operations need. */
static int make_room(struct by_schedule *schedule)
{
    uint32_t steps = 1, items = 1, all = schedule->first[schedule->program_count];
    bool failed = false;

    schedule->window = BY_SCHEDULE_WINDOW_MIN;
    for (uint32_t p = 0; p < schedule->program_count; p++) {
        const struct by_program *program = schedule->program[p];
        uint32_t deep = program->round_count / program->interval + 3;

        schedule->window = deep > schedule->window ? deep : schedule->window;
        steps = program->step_count > steps ? program->step_count : steps;
        items = program->item_count > items ? program->item_count : items;
    }
    schedule->window = schedule->window < BY_SCHEDULE_WINDOW_MAX ? schedule->window : BY_SCHEDULE_WINDOW_MAX;
    for (uint32_t slot = 0; slot < schedule->window; slot++) {
        schedule->operations[slot].needs = calloc(steps, sizeof(uint32_t));
        schedule->operations[slot].items = calloc(items, sizeof(struct by_schedule_memory));
        failed |= schedule->operations[slot].needs == NULL || schedule->operations[slot].items == NULL;
        schedule->item_count = items;
    }
    schedule->scratch = aligned_alloc(64, BY_COMBINE_BYTES);
    schedule->channels = calloc(all + 1, sizeof(*schedule->channels));
    for (uint32_t c = 0; schedule->channels != NULL && c < all; c++)
        schedule->channels[c].connection.fd = -1;
    for (uint32_t p = 0; p < schedule->program_count && schedule->channels != NULL; p++)
        for (uint32_t w = 0; w < schedule->program[p]->way_count; w++) {
            struct by_schedule_channel *channel = &schedule->channels[schedule->first[p] + w];

            channel->program = p;
            channel->end = &schedule->program[p]->ways[w];
            channel->ready =
                calloc((size_t)channel->end->step_count * schedule->window, sizeof(*channel->ready));
            failed |= channel->ready == NULL;
        }
    schedule->watch = epoll_create1(EPOLL_CLOEXEC);
    return failed || schedule->scratch == NULL || schedule->channels == NULL
               ? by_fail(BY_ENOMEM, "no memory for schedules of %u steps", steps)
           : schedule->watch < 0 ? by_fail(BY_EIO, "cannot watch connections: %s", strerror(errno))
                                 : 0;
}

/* Takes the sockets of the connections. */
static int take_ways(struct by_schedule *schedule, const int *fds, int error)
{
    for (uint32_t c = 0; c < schedule->first[schedule->program_count]; c++) {
        struct by_schedule_channel *channel = &schedule->channels[c];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = c};

        by_connection_open(&channel->connection, fds[c], channel->end->peer, channel->end->sends);
        if (error == 0 && epoll_ctl(schedule->watch, EPOLL_CTL_ADD, fds[c], &event) != 0)
            error = by_fail(BY_EIO, "cannot watch a connection: %s", strerror(errno));
        channel->is_watched = error == 0;
    }
    return error;
}

int by_schedule_open(const char *paths, const struct by_team *team, struct by_peers *peers, uint32_t key,
                     uint64_t deadline_ns, struct by_schedule **out)
{
    struct by_schedule *schedule = calloc(1, sizeof(*schedule));
    uint32_t all;
    int *fds, error;

    if (schedule == NULL)
        return by_fail(BY_ENOMEM, "no memory for schedules");
    schedule->watch = -1;
    schedule->team = team;
    schedule->rank = team->rank;
    schedule->rank_count = team->circulant.rank_count;
    schedule->admitted_max = admitted_max(team);
    error = read_programs(schedule, paths);
    if (error == 0)
        error = make_room(schedule);
    all = schedule->first[schedule->program_count];
    fds = malloc((all + 1) * sizeof(*fds));
    if (fds == NULL) {
        by_schedule_close(schedule);
        return by_fail(BY_ENOMEM, "no memory for %u connections", all);
    }
    memset(fds, 0xff, (all + 1) * sizeof(*fds));
    error = by_connect_ways(schedule->program, schedule->program_count, error, peers, key, deadline_ns, fds);
    if (schedule->channels != NULL)
        error = take_ways(schedule, fds, error);
    free(fds);
    if (error != 0) {
        by_schedule_close(schedule);
        return error;
    }
    *out = schedule;
    return 0;
}

void by_schedule_close(struct by_schedule *schedule)
{
    if (schedule == NULL)
        return;
    by_schedule_end(schedule, BY_EABORTED);
    for (uint32_t c = 0; schedule->channels != NULL && c < schedule->first[schedule->program_count]; c++) {
        by_connection_close(&schedule->channels[c].connection);
        free(schedule->channels[c].ready);
    }
    for (uint32_t slot = 0; slot < schedule->window; slot++) {
        for (uint32_t i = 0; schedule->operations[slot].items != NULL && i < schedule->item_count; i++)
            free(schedule->operations[slot].items[i].bytes);
        free(schedule->operations[slot].items);
        free(schedule->operations[slot].needs);
    }
    for (uint32_t p = 0; p < schedule->program_count; p++)
        by_schedule_program_free(schedule->program[p]);
    if (schedule->watch >= 0)
        close(schedule->watch);
    free(schedule->channels);
    free(schedule->scratch);
    free(schedule);
}

/* ---- calls */

static int serving(const struct by_schedule *schedule, const struct by_call *call)
{
    for (uint32_t p = 0; p < schedule->program_count; p++) {
        uint32_t root = schedule->root[p];

        switch (schedule->kind[p]) {
        case BY_SCHEDULE_ALLTOALL:
        case BY_SCHEDULE_PAIRS:
            if (call->collective == BANYAN_ALLTOALL &&
                (schedule->kind[p] == BY_SCHEDULE_ALLTOALL || call->offsets != NULL))
                return (int)p;
            break;
        case BY_SCHEDULE_SCATTER:
        case BY_SCHEDULE_GATHER:
            if (call->root == root &&
                call->collective ==
                    (schedule->kind[p] == BY_SCHEDULE_SCATTER ? BANYAN_SCATTER : BANYAN_GATHER))
                return (int)p;
            break;
        case BY_SCHEDULE_REDUCE:
        default:
            if (call->collective == BY_COLLECTIVE_REDUCE && call->root == root &&
                by_reduction_dtype(call->mode, call->op, call->dtype) == call->dtype)
                return (int)p;
            break;
        }
    }
    return -1;
}

bool by_schedule_serves(const struct by_schedule *schedule, const struct by_call *call)
{
    return schedule != NULL && serving(schedule, call) >= 0;
}

static uint32_t pieces_of(const struct by_schedule *schedule, const struct by_call *call, uint32_t index)
{
    const struct by_program *program = schedule->program[index];
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);
    uint64_t pieces = bytes / ((uint64_t)program->chunk_count * CHUNK_BYTES);
    uint64_t deep = program->round_count / program->interval;
    uint64_t most = bytes / ((uint64_t)program->chunk_count * CHUNK_BYTES_MIN);

    if (call->offsets != NULL)
        return UNEQUAL_PIECES;
    if (program->relayed * bytes / RELAYED_BYTES > pieces)
        pieces = program->relayed * bytes / RELAYED_BYTES;
    deep = deep < most ? deep : most;
    pieces = pieces < deep ? deep : pieces;
    return pieces < 1 ? 1 : pieces > PIECES_MAX ? PIECES_MAX : (uint32_t)pieces;
}

/* Whether this rank has data for a rank to which the schedule has no message. */
bool by_schedule_lacks(struct by_schedule *schedule, const struct by_call *call, uint32_t program)
{
    uint32_t n = schedule->rank_count;

    for (uint32_t peer = 0; peer < n && schedule->kind[program] == BY_SCHEDULE_PAIRS; peer++) {
        uint64_t count = by_exchange_number(call, n, BY_SEND_COUNT, peer);

        if (peer == schedule->rank || count == 0 ||
            schedule->program[program]->pairs[(size_t)schedule->rank * n + peer])
            continue;
        snprintf(schedule->text, sizeof(schedule->text),
                 "rank %u sends %llu elements to rank %u, for which the schedule of BANYAN_SCHEDULE has no "
                 "message",
                 schedule->rank, (unsigned long long)count, peer);
        return true;
    }
    return false;
}

int by_schedule_post(struct by_schedule *schedule, const struct by_call *call, uint32_t *id)
{
    struct by_scheduled_call *slot = &schedule->calls[schedule->posted % BY_CALLS_MAX];
    uint64_t extent;

    if (slot->used)
        return BY_EAGAIN;
    *slot = (struct by_scheduled_call){.call = *call,
                                       .tag = by_work_tag(schedule->rank_count, call),
                                       .program = (uint32_t)serving(schedule, call),
                                       .send = call->send,
                                       .result = BY_EAGAIN};
    slot->pieces = pieces_of(schedule, call, slot->program);
    if (call->collective == BANYAN_ALLTOALL && call->send == call->recv) {
        extent = by_exchange_extent(schedule->team, call) * by_dtype_bytes(call->dtype);
        slot->copy = malloc((size_t)extent + 1);
        if (slot->copy == NULL)
            return BY_ENOMEM;
        slot->send = memcpy(slot->copy, call->send, (size_t)extent);
    }
    if (by_exchange_is(call->collective))
        by_exchange_keep(schedule->team, call, slot->send);
    slot->used = true;
    *id = schedule->posted++;
    schedule->counters.calls++;
    return 0;
}

int by_schedule_test(struct by_schedule *schedule, uint32_t id)
{
    struct by_scheduled_call *slot = &schedule->calls[id % BY_CALLS_MAX];

    if (slot->result != BY_EAGAIN)
        slot->used = false;
    return slot->result;
}

bool by_schedule_is_busy(const struct by_schedule *schedule)
{
    return schedule->ended != schedule->posted;
}

void by_schedule_end_call(struct by_scheduled_call *call, int result)
{
    free(call->copy);
    call->copy = NULL;
    call->result = result;
}

void by_schedule_end(struct by_schedule *schedule, int error)
{
    for (; schedule->ended != schedule->posted; schedule->ended++) {
        struct by_scheduled_call *call = &schedule->calls[schedule->ended % BY_CALLS_MAX];

        if (call->result == BY_EAGAIN)
            by_schedule_end_call(call, error);
    }
    for (uint32_t slot = 0; slot < schedule->window; slot++)
        schedule->operations[slot].active = false;
    for (uint32_t c = 0; schedule->channels != NULL && c < schedule->first[schedule->program_count]; c++)
        by_connection_close(&schedule->channels[c].connection);
}

int by_schedule_fd(const struct by_schedule *schedule)
{
    return schedule->watch;
}

const char *by_schedule_text(const struct by_schedule *schedule)
{
    return schedule->text;
}

const struct by_schedule_counters *by_schedule_counters(const struct by_schedule *schedule)
{
    return &schedule->counters;
}

void by_schedule_describe(const struct by_schedule *schedule, char *text, size_t bytes)
{
    static const char *const names[] = {[BY_SCHEDULE_ALLTOALL] = "all-to-all",
                                        [BY_SCHEDULE_SCATTER] = "scatter from rank",
                                        [BY_SCHEDULE_GATHER] = "gather to rank",
                                        [BY_SCHEDULE_PAIRS] = "all-to-all with v",
                                        [BY_SCHEDULE_REDUCE] = "reduce to rank"};

    text[0] = 0;
    for (uint32_t p = 0; p < schedule->program_count; p++) {
        bool rooted = schedule->kind[p] != BY_SCHEDULE_ALLTOALL && schedule->kind[p] != BY_SCHEDULE_PAIRS;

        by_append(text, bytes, ", and %s", names[schedule->kind[p]]);
        if (rooted)
            by_append(text, bytes, " %u", schedule->root[p]);
        by_append(text, bytes, " by the schedule %s", schedule->program[p]->path);
    }
}
