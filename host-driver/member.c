/* A communicator's link to the controller; see member.h. Thread: the communicator's. */
#include "host-driver/member.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/line.h"
#include "host-driver/standby.h"
#include "host-driver/survive.h"
#include "host-driver/transport.h"
#include "offload/base/bytes.h"
#include "offload/wire/latency.h"

/* interval between reads of the connection, unless poll reports input */
#define LOOK_NS  500000u
#define ALIVE_NS 100000000u /* interval between two ALIVE */
/*
 * A chunk that waits longer than the patience is reported, at intervals that grow by half. The
 * patience begins at its minimum. A wait that ended by itself doubles it, up to the maximum, or a
 * quarter of a shorter time limit; then it declines by a sixteenth with each ALIVE. So a busy
 * machine, on which chunks often wait, reports few of them (ns).
 */
#define PATIENCE_MIN_NS 6000000u
#define PATIENCE_MAX_NS 150000000u
#define PAUSE_MIN_NS    6000000u
#define PAUSE_MAX_NS    100000000u
/* a wait is checked for this many times within the patience (count) */
#define PATIENCE_LOOKS 4u
/*
 * A rank moves to a standby after so many times the patience (count): a move costs more than a
 * report. At first, and after a move, it waits for longer (ns): how long chunks wait on a busy
 * machine is not known yet. This declines to the least as the patience does.
 */
#define MOVE_LEAST    2u
#define MOVE_FIRST_NS 50000000u

struct by_member {
    struct by_host_line line;
    struct by_survive survive;
    struct by_standbys standbys;
    uint64_t nonce, looked_ns, alive_ns;
    uint64_t patience_ns, pause_ns; /* `pause_ns` of 0: no wait has been reported */
    uint64_t move_ns;               /* patience before a move to a standby */
    uint64_t suspect_ns;            /* time of the next check of the chunks in flight */
    uint16_t suspect_gen;           /* generation in which a wait was reported */
    bool waits;                     /* chunks are in flight */
    uint16_t job, rank;
    bool ready, welcome;
    bool measured; /* an operation has ended since the last report */
    struct by_latency latency[BY_COLLECTIVE_COUNT];
};

int by_member_wanted(const struct banyan_context *context)
{
    return context->settings.value[BY_SETTING_CONTROLLER][0] != 0 &&
           strcmp(context->settings.value[BY_SETTING_OFFLOAD], "off") != 0;
}

static void put(struct by_member *member, struct by_member_frame frame, uint64_t now_ns)
{
    frame.job = member->job;
    frame.rank = member->rank;
    by_host_line_put(&member->line, &frame, now_ns);
}

/* Requests a job for the hosts of the group; the reply is its table. */
static void say_group(struct banyan_comm *comm, uint64_t now_ns)
{
    const struct by_group *group = comm->group;
    uint8_t data[BY_NAME_MAX + 1 + BY_MEMBER_GROUP_BYTES];
    size_t bytes = strnlen(comm->header.name, BY_NAME_MAX);

    memcpy(data, comm->header.name, bytes);
    data[bytes++] = 0;
    memcpy(data + bytes, group->hosts, group->host_bytes);
    by_host_line_put(&comm->member->line,
                     &(struct by_member_frame){.type = BY_MEMBER_GROUP,
                                               .job = group->parent,
                                               .rank = BY_RANK_NONE,
                                               .number = comm->member->nonce,
                                               .data = data,
                                               .bytes = (uint32_t)bytes + group->host_bytes},
                     now_ns);
}

static void say_hello(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    const char *name = comm->header.name;

    if (comm->group != NULL && member->job == 0) {
        say_group(comm, now_ns);
        return;
    }
    by_host_line_put(&member->line,
                     &(struct by_member_frame){.type = BY_MEMBER_HELLO,
                                               .job = member->job,
                                               .rank = BY_MEMBER_RANK_STANDBY,
                                               .gen = comm->job.gen,
                                               .number = member->nonce,
                                               .data = (const uint8_t *)name,
                                               .bytes = (uint32_t)strnlen(name, BY_NAME_MAX)},
                     now_ns);
    by_host_line_ask(&member->line, now_ns);
}

/* ---- received frames ---- */

/* Installs the first table. */
static int take_welcome(struct banyan_comm *comm, const struct by_member_frame *frame)
{
    struct by_member *member = comm->member;
    uint8_t *image;

    if (comm->image != NULL) {
        if (!member->ready || frame->gen == comm->job.gen || frame->bytes == 0)
            return 0;
        return by_fail(BY_ESTATE,
                       "the controller at %s has job %u in generation %u, but the table of %s is of "
                       "generation %u; unset BANYAN_TABLE, so that the controller supplies it",
                       member->line.where, comm->job.job, frame->gen, comm->header.name, comm->job.gen);
    }
    if (frame->bytes == 0)
        return by_fail(BY_ENOENT, "the controller at %s has no table for %s", member->line.where,
                       comm->context->header.name);
    image = malloc(frame->bytes);
    if (image == NULL)
        return by_fail(BY_ENOMEM, "no memory for a table of %u bytes", frame->bytes);
    memcpy(image, frame->data, frame->bytes);
    if (by_survive_check(image, frame->bytes, member->line.where) != 0) {
        free(image);
        return BY_EFORMAT;
    }
    member->job = frame->job;
    by_survive_own(&member->survive, image);
    by_comm_image(comm, image, frame->bytes);
    member->welcome = true;
    return 0;
}

static void say_carried(struct banyan_comm *comm, uint64_t now_ns)
{
    put(comm->member, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .gen = comm->job.gen}, now_ns);
}

/* Sends the attempt's messages to other ranks, and continues the calls when possible. 0 or an
 * error. */
static int run_attempt(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    struct by_survive *survive = &member->survive;
    const uint8_t *message;
    uint16_t to;
    int error = 0;

    for (unsigned turn = 0; turn < 2; turn++) {
        size_t bytes;

        while ((bytes = by_survive_say(survive, &message, &to)) > 0)
            put(member,
                (struct by_member_frame){.type = BY_MEMBER_SAY,
                                         .gen = survive->attempt,
                                         .peer = to,
                                         .data = message,
                                         .bytes = (uint32_t)bytes},
                now_ns);
        if (turn > 0 || !by_survive_may_carry(survive, by_comm_now(comm))) {
            by_survive_prepare(comm, survive);
            break;
        }
        error = by_survive_carry(comm, survive);
        if (error != 0)
            break;
        by_standby_clear(comm, &member->standbys);
        say_carried(comm, now_ns);
    }
    return error;
}

static int take_freeze(struct banyan_comm *comm, const struct by_member_frame *frame, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    struct by_survive *survive = &member->survive;

    if (!member->ready)
        return 0;
    if (frame->gen == comm->job.gen) {
        by_survive_repeat(survive);
        say_carried(comm, now_ns);
        return 0;
    }
    if (survive->frozen && survive->attempt == frame->gen) {
        by_survive_repeat(survive);
        return 0;
    }
    /* the attempt's table did not arrive: a new connection brings it */
    if (frame->bytes == 0) {
        by_host_line_drop(&member->line, now_ns, "it has not sent a table");
        return 0;
    }
    by_standby_end(comm, &member->standbys);
    return by_survive_freeze(comm, survive, frame, by_comm_now(comm));
}

static int take(struct banyan_comm *comm, const struct by_member_frame *frame, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    struct by_survive *survive = &member->survive;

    if (member->ready && frame->job != member->job)
        return 0;
    switch (frame->type) {
    case BY_MEMBER_WELCOME:
        return take_welcome(comm, frame);
    case BY_MEMBER_FREEZE:
        return take_freeze(comm, frame, now_ns);
    case BY_MEMBER_HEARD:
        if (survive->resume == NULL || frame->gen != survive->attempt)
            return 0;
        return by_survive_hear(comm, survive, frame);
    case BY_MEMBER_STANDBY:
        by_standby_take(comm, &member->standbys, frame);
        return 0;
    case BY_MEMBER_GO:
        by_survive_allow(survive, frame->gen, by_comm_now(comm));
        return 0;
    case BY_MEMBER_FAIL:
        return by_fail(frame->code < 0 ? frame->code : BY_EABORTED, "%.*s", (int)frame->bytes,
                       (const char *)frame->data);
    default:
        return 0;
    }
}

/* ---- sent frames ---- */

/* Counters of the ports. Compared with the counters of the switches at the other ends they show the
 * state of the cables. */
static uint32_t put_ports(const struct by_transport *transport,
                          uint8_t bytes[BY_MEMBER_PORT_BYTES * BY_PORTS_MAX])
{
    uint32_t count = transport->port_count < BY_PORTS_MAX ? transport->port_count : BY_PORTS_MAX;

    for (uint32_t i = 0; i < count; i++) {
        by_put64(bytes + (size_t)i * BY_MEMBER_PORT_BYTES, transport->ports[i].tx_packets);
        by_put64(bytes + (size_t)i * BY_MEMBER_PORT_BYTES + 8, transport->ports[i].rx_packets);
    }
    return count * BY_MEMBER_PORT_BYTES;
}

bool by_member_measures(const struct banyan_comm *comm)
{
    return comm->member != NULL;
}

void by_member_measure(struct banyan_comm *comm, const struct by_call *call, uint64_t duration_ns)
{
    bool shards = call->offsets == NULL && by_collective_is_sharded(call->collective);

    if (comm->member == NULL || call->collective >= BY_COLLECTIVE_COUNT)
        return; /* exchanges are not reported */
    by_latency_add(&comm->member->latency[call->collective],
                   call->count * by_dtype_bytes(call->dtype) * (shards ? comm->job.rank_count : 1u),
                   duration_ns);
    comm->member->measured = true;
}

static void say_measured(struct by_member *member, uint64_t now_ns)
{
    uint8_t bytes[BY_LATENCY_ALL_BYTES];

    if (!member->measured)
        return;
    member->measured = false;
    for (uint32_t i = 1; i < BY_COLLECTIVE_COUNT; i++)
        by_latency_put(&member->latency[i], bytes + (size_t)(i - 1) * BY_LATENCY_BYTES);
    put(member,
        (struct by_member_frame){
            .type = BY_MEMBER_MEASURED, .number = member->nonce, .data = bytes, .bytes = sizeof(bytes)},
        now_ns);
}

static void say_counted(struct banyan_comm *comm, uint64_t now_ns)
{
    uint8_t ports[BY_MEMBER_PORT_BYTES * BY_PORTS_MAX];

    put(comm->member,
        (struct by_member_frame){.type = BY_MEMBER_ALIVE,
                                 .gen = comm->job.gen,
                                 .number = by_endpoint_counters(comm->progress.endpoint)->result,
                                 .data = ports,
                                 .bytes = put_ports(comm->transport, ports)},
        now_ns);
}

static void say_alive(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;

    member->alive_ns = now_ns;
    member->patience_ns -= (member->patience_ns - PATIENCE_MIN_NS) / 16;
    member->move_ns -= (member->move_ns - MOVE_LEAST * member->patience_ns) / 16;
    say_measured(member, now_ns);
    say_counted(comm, now_ns);
}

/* The reported wait is over. If no other generation ended it, nothing has failed. */
static void end_wait(struct by_member *member, uint16_t gen)
{
    if (member->pause_ns > 0 && gen == member->suspect_gen)
        member->patience_ns =
            2 * member->patience_ns < PATIENCE_MAX_NS ? 2 * member->patience_ns : PATIENCE_MAX_NS;
    if (member->move_ns < MOVE_LEAST * member->patience_ns)
        member->move_ns = MOVE_LEAST * member->patience_ns;
    member->pause_ns = 0;
}

/* Reports that calls do not continue without the controller: no standby serves. */
static void look_at_move(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;

    member->suspect_ns = now_ns + PAUSE_MAX_NS;
    if (!by_standby_is_stuck(comm, &member->standbys, member->move_ns))
        return;
    put(member,
        (struct by_member_frame){
            .type = BY_MEMBER_SUSPECT, .gen = comm->job.gen, .peer = BY_NODE_NONE, .code = BY_ESTATE},
        now_ns);
    by_host_line_ask(&member->line, now_ns);
}

/* Reports a chunk that has waited for long, with the counters of the ports as they are now. */
static void look_at_waits(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    const struct by_endpoint *endpoint = comm->progress.endpoint;
    uint64_t most_ns = comm->context->stall_ns / 4;
    uint64_t wait_ns = member->patience_ns < most_ns ? member->patience_ns : most_ns;
    struct by_call_status status;

    member->suspect_ns = now_ns + wait_ns / PATIENCE_LOOKS;
    if (member->survive.frozen) { /* something has failed; the next generation starts afresh */
        member->pause_ns = 0;
        member->waits = false;
        look_at_move(comm, now_ns);
        return;
    }
    member->waits = by_endpoint_suspects(endpoint, by_comm_now(comm), 0, &status);
    if (!member->waits || !by_endpoint_suspects(endpoint, by_comm_now(comm), wait_ns, &status)) {
        end_wait(member, comm->job.gen);
        return;
    }
    member->pause_ns = member->pause_ns == 0 ? PAUSE_MIN_NS : member->pause_ns + member->pause_ns / 2;
    if (member->pause_ns > PAUSE_MAX_NS)
        member->pause_ns = PAUSE_MAX_NS;
    member->suspect_ns = now_ns + member->pause_ns;
    member->suspect_gen = comm->job.gen;
    say_counted(comm, now_ns);
    put(member,
        (struct by_member_frame){.type = BY_MEMBER_SUSPECT,
                                 .gen = comm->job.gen,
                                 .peer =
                                     status.missing_node != BY_NODE_NONE ? status.missing_node : status.node,
                                 .code = status.err.reason == BY_ERR_NO_ENTRY ? BY_ENOENT : BY_ETIMEDOUT},
        now_ns);
    by_host_line_ask(&member->line, now_ns);
}

/* Moves to a standby if trees have stopped. Returns whether something has changed. */
static bool step_standbys(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    int moved = by_standby_step(comm, &member->standbys, &member->survive, member->move_ns,
                                comm->context->fabric != NULL ? by_comm_now(comm) : now_ns);

    if (moved < 0)
        by_comm_end(comm, moved, by_fail_text());
    if (moved == 2) {
        say_carried(comm, now_ns);
        if (member->move_ns < MOVE_FIRST_NS)
            member->move_ns = MOVE_FIRST_NS;
    }
    return moved != 0;
}

uint32_t by_member_step(struct banyan_comm *comm, uint64_t now_ns)
{
    struct by_member *member = comm->member;
    struct by_member_frame frame;
    uint32_t moved = 0;
    int error = 0;

    if (member == NULL || comm->verdict.error != 0)
        return 0;
    if (member->ready && step_standbys(comm, now_ns))
        return 1;
    if (now_ns - member->looked_ns < LOOK_NS)
        return 0;
    member->looked_ns = now_ns;
    if (by_host_line_step(&member->line, now_ns) == BY_LINE_UP)
        say_hello(comm, now_ns);
    while (error == 0 && by_host_line_get(&member->line, &frame, now_ns) == 0) {
        error = take(comm, &frame, now_ns);
        /* A rank sends its messages before it processes the next one. */
        if (error == 0 && member->ready)
            error = run_attempt(comm, now_ns);
        moved = 1;
    }
    if (error == 0 && member->ready && now_ns - member->alive_ns >= ALIVE_NS)
        say_alive(comm, now_ns);
    if (error == 0 && member->ready && now_ns >= member->suspect_ns)
        look_at_waits(comm, now_ns);
    if (error == 0 && member->ready)
        error = by_survive_watch(comm, &member->survive, &member->line, by_comm_now(comm));
    if (error != 0 && member->ready)
        by_comm_end(comm, error, by_fail_text());
    return error != 0 && !member->ready ? UINT32_MAX : moved;
}

uint64_t by_member_deadline(const struct banyan_comm *comm)
{
    const struct by_member *member = comm->member;
    uint64_t line_ns, alive_ns, move_ns;

    if (member == NULL || comm->verdict.error != 0)
        return UINT64_MAX;
    line_ns = by_host_line_deadline(&member->line);
    alive_ns = member->alive_ns + ALIVE_NS;
    if (member->waits && member->suspect_ns < alive_ns)
        alive_ns = member->suspect_ns;
    move_ns = member->ready ? by_standby_deadline(comm, &member->standbys, member->move_ns) : UINT64_MAX;
    alive_ns = move_ns < alive_ns ? move_ns : alive_ns;
    return line_ns < alive_ns ? line_ns : alive_ns;
}

uint32_t by_member_fds(const struct banyan_comm *comm, struct pollfd *fds)
{
    /* After the end of its calls the connection is not read, and poll would return at once. */
    return comm->member != NULL && comm->verdict.error == 0 ? by_host_line_fds(&comm->member->line, fds) : 0;
}

void by_member_woken(struct banyan_comm *comm)
{
    if (comm->member != NULL)
        comm->member->looked_ns = 0;
}

/* ---- open and close ---- */

/* Waits until the controller has sent a table or the time is over. */
static int await_table(struct banyan_comm *comm)
{
    struct by_member *member = comm->member;
    /* the other ranks of a group wait as well, in a call that has the whole time limit */
    uint64_t limit_ns = comm->context->stall_ns / (comm->group != NULL ? 2 : 1);
    uint64_t end_ns = by_clock_ns() + limit_ns;

    for (;;) {
        struct pollfd fds[BY_MEMBER_FDS + 1];
        uint32_t count;

        by_member_woken(comm);
        if (by_member_step(comm, by_clock_ns()) == UINT32_MAX)
            return BY_ESTATE; /* its text is set */
        if (member->welcome)
            return 0;
        if (by_clock_ns() >= end_ns)
            return by_fail(BY_ETIMEDOUT,
                           "no table for %s from the controller at %s within %g s%s%s; is banyand running "
                           "there, with this host in its topology?",
                           comm->context->header.name, member->line.where, (double)limit_ns / 1e9,
                           member->line.why[0] != 0 ? ": " : "", member->line.why);
        count = by_member_fds(comm, fds);
        fds[count] = (struct pollfd){.fd = comm->wake_fd, .events = POLLIN};
        poll(fds, count + 1, 10);
    }
}

int by_member_open(struct banyan_comm *comm, uint32_t job)
{
    struct banyan_context *context = comm->context;
    struct by_member *member;
    int error;

    if (!by_member_wanted(context))
        return 0;
    member = calloc(1, sizeof(*member));
    if (member == NULL)
        return by_fail(BY_ENOMEM, "no memory for the connection to the controller: %zu bytes",
                       sizeof(*member));
    comm->member = member;
    member->job = (uint16_t)job;
    member->rank = BY_RANK_NONE;
    member->patience_ns = PATIENCE_MIN_NS;
    member->move_ns = MOVE_FIRST_NS;
    if (getrandom(&member->nonce, sizeof(member->nonce), 0) != (ssize_t)sizeof(member->nonce))
        return by_fail(BY_EIO, "no random number for the controller: %s", strerror(errno));
    error = by_host_line_open(&member->line, context->settings.value[BY_SETTING_CONTROLLER],
                              context->settings.value[BY_SETTING_KEYS]);
    if (error == 0 && comm->image == NULL)
        error = await_table(comm);
    return error;
}

void by_member_ready(struct banyan_comm *comm)
{
    struct by_member *member = comm->member;

    if (member == NULL)
        return;
    member->job = comm->job.job;
    member->rank = comm->job.rank;
    member->ready = true;
}

void by_member_close(struct banyan_comm *comm)
{
    struct by_member *member = comm->member;

    if (member == NULL)
        return;
    if (member->ready && comm->verdict.error == 0 && atomic_load(&comm->error) == 0) {
        uint64_t now_ns = by_clock_ns();

        say_measured(member, now_ns);
        put(member, (struct by_member_frame){.type = BY_MEMBER_BYE, .gen = comm->job.gen}, now_ns);
    }
    by_host_line_close(&member->line);
    by_standby_clear(comm, &member->standbys);
    by_survive_free(&member->survive);
    free(member);
    comm->member = NULL;
}
