/* Queue and progress of calls between hosts; see fallback.h. */
#include "host-driver/fallback/fallback.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/fallback/measure.h"
#include "host-driver/fallback/memory.h"
#include "host-driver/fallback/reason.h"
#include "host-driver/fallback/team.h"
#include "host-driver/fallback/work.h"
#include "host-driver/float_env.h"
#include "host-driver/local/single.h"

/* to a silent peer within the time limit, the first after half of it; later as many in each
 * doubling of the time */
#define QUESTIONS    16u
#define GRACE_MAX_NS 500000000u           /* time to wait for the notice of a rank that has found the cause */
#define LISTEN_NS    10000000u            /* between looks at notices while calls wait in memory */
#define HOLD_MAX_NS  UINT64_C(1000000000) /* the same, where notices reach this rank through others */

/* Set in the ids of calls that a schedule executes. */
#define SCHEDULED UINT32_C(0x80000000)
/* Set in the ids of calls through the memory of the host. */
#define SINGLE UINT32_C(0x40000000)
/* The other bits: the number of a call, modulo. */
#define NUMBER (SINGLE - 1u)

struct slot {
    struct by_host_work work;
    bool used;
    int result; /* BY_EAGAIN until it ends */
};

struct by_fallback {
    struct by_team team;
    struct by_peers peers;
    struct by_host_mesh mesh;
    struct by_schedule *schedule; /* or NULL */
    struct by_single *single;     /* or NULL */
    uint64_t stall_ns, absent_ns;
    struct slot slots[BY_CALLS_MAX];
    uint32_t posted, done; /* numbers of calls; call i uses slot i % BY_CALLS_MAX */
    bool running;          /* call `done` has started */
    uint32_t phase, index; /* current phase and round of the running call */
    uint32_t round_number; /* counted over all its phases */
    struct by_round round;
    bool in_round;
    struct iovec *moving; /* pieces of the round; the mesh advances them */
    struct iovec incoming, outgoing;
    uint32_t sent_index; /* of a phase with independent rounds: the next to send; `index`: to receive */
    uint8_t *scratch;    /* received data that will be added */
    size_t scratch_bytes;
    uint64_t moved_ns;           /* last progress */
    uint64_t begun_ns, asked_ns; /* first and last question to the silent peer */
    uint64_t heard_ns;           /* its last answer */
    uint64_t listened_ns;        /* last look at the notices while calls wait in memory */
    uint32_t answered;           /* value of mesh.answered at the last check */
    struct by_mesh_fault held;   /* a fault whose cause may be another one */
    uint64_t held_until_ns;
    int error;
    char text[256];
    struct by_fallback_counters counters;
};

/* ---- opening */

static int meet(struct by_fallback *fallback, const struct by_fallback_config *config)
{
    uint64_t deadline_ns = by_clock_ns() + config->stall_ns;
    uint64_t numbers[2];
    bool all;
    int error = by_peers_meet(&fallback->peers, config->meeting, config->key, deadline_ns);

    if (error == 0)
        error = by_mesh_open(&fallback->mesh, &fallback->team.circulant, &fallback->peers, config->reach,
                             config->key, config->shares, deadline_ns);
    if (error == 0)
        error = by_measure(&fallback->mesh, fallback->peers.partner, &fallback->team, deadline_ns);
    numbers[0] = fallback->team.latency_ns;
    numbers[1] = fallback->team.gap_ps;
    all = error == 0 && by_files_allow(by_mesh_files(&fallback->mesh));
    if (error == 0)
        error = by_peers_agree(&fallback->peers, numbers, 2, &all, deadline_ns);
    if (error == 0)
        error = by_memory_meet(&fallback->peers, config->single, deadline_ns, fallback->stall_ns,
                               &fallback->single);
    fallback->team.few_files = !all;
    fallback->team.latency_ns = numbers[0];
    fallback->team.gap_ps = numbers[1];
    if (error == 0 && config->schedules != NULL)
        error = by_schedule_open(config->schedules, &fallback->team, &fallback->peers, config->key,
                                 by_clock_ns() + config->stall_ns, &fallback->schedule);
    by_peers_part(&fallback->peers);
    return error;
}

int by_fallback_open(const struct by_fallback_config *config, struct by_fallback **out)
{
    struct by_fallback *fallback = calloc(1, sizeof(*fallback));
    uint32_t pieces;
    int error;

    if (fallback == NULL)
        return by_fail(BY_ENOMEM, "no memory for collectives between hosts: %zu bytes", sizeof(*fallback));
    fallback->peers.listener = fallback->mesh.watch = -1;
    fallback->stall_ns = config->stall_ns;
    fallback->absent_ns = config->absent_ns;
    error = by_team_open(&fallback->team, config->meeting->rank, config->meeting->rank_count, config->way);
    pieces = by_team_pieces(&fallback->team);
    if (error == 0) {
        fallback->round.send = calloc(pieces, sizeof(struct iovec));
        fallback->round.receive = calloc(pieces, sizeof(struct iovec));
        fallback->moving = calloc(pieces, sizeof(struct iovec));
        if (fallback->round.send == NULL || fallback->round.receive == NULL || fallback->moving == NULL)
            error = by_fail(BY_ENOMEM, "no memory for the pieces of %u ranks", pieces);
    }
    if (error == 0)
        error = meet(fallback, config);
    if (error != 0) {
        by_fallback_close(fallback);
        return error;
    }
    *out = fallback;
    return 0;
}

int by_fallback_open_single(struct by_fallback **out, struct by_single *single, uint32_t rank,
                            uint32_t rank_count, uint64_t stall_ns, uint64_t absent_ns)
{
    struct by_fallback *fallback = calloc(1, sizeof(*fallback));
    int error;

    if (fallback == NULL) {
        by_single_close(single);
        return by_fail(BY_ENOMEM, "no memory for the calls of one host: %zu bytes", sizeof(*fallback));
    }
    fallback->peers.listener = fallback->mesh.watch = -1;
    fallback->single = single;
    fallback->stall_ns = stall_ns;
    fallback->absent_ns = absent_ns;
    error = by_team_plan(&fallback->team, rank, rank_count, BY_WAY_CIRCULANT);
    if (error == 0)
        *out = fallback;
    else
        by_fallback_close(fallback);
    return error;
}

void by_fallback_close(struct by_fallback *fallback)
{
    if (fallback == NULL)
        return;
    for (; fallback->done < fallback->posted; fallback->done++)
        by_work_end(&fallback->slots[fallback->done % BY_CALLS_MAX].work);
    by_schedule_close(fallback->schedule);
    by_single_close(fallback->single);
    by_mesh_close(&fallback->mesh);
    by_peers_close(&fallback->peers);
    free(fallback->team.schedules);
    free(fallback->round.send);
    free(fallback->round.receive);
    free(fallback->moving);
    free(fallback->scratch);
    free(fallback);
}

bool by_fallback_is_single(const struct by_fallback *fallback, const struct by_call *call)
{
    return fallback->single != NULL && !by_fallback_is_scheduled(fallback, call) && by_single_serves(call);
}

bool by_fallback_connects(const struct by_fallback *fallback)
{
    return fallback->mesh.gone != NULL;
}

bool by_fallback_is_scheduled(const struct by_fallback *fallback, const struct by_call *call)
{
    return by_schedule_serves(fallback->schedule, call);
}

void by_fallback_describe_schedules(const struct by_fallback *fallback, char *text, size_t bytes)
{
    text[0] = 0;
    if (fallback->schedule != NULL)
        by_schedule_describe(fallback->schedule, text, bytes);
}

static bool is_scheduling(const struct by_fallback *fallback)
{
    return fallback->schedule != NULL && by_schedule_is_busy(fallback->schedule);
}

static bool is_in_memory(const struct by_fallback *fallback)
{
    return fallback->single != NULL && by_single_is_busy(fallback->single);
}

static bool is_busy(const struct by_fallback *fallback)
{
    return fallback->done < fallback->posted || is_scheduling(fallback) || is_in_memory(fallback);
}

/* ---- ends */

/* Ends the running call with `result`; an error also ends all waiting calls. */
static void end_call(struct by_fallback *fallback, int result)
{
    fallback->mesh.send.active = fallback->mesh.receive.active = false;
    fallback->running = fallback->in_round = false;
    for (; fallback->done < fallback->posted; fallback->done++) {
        struct slot *slot = &fallback->slots[fallback->done % BY_CALLS_MAX];

        by_work_end(&slot->work);
        slot->result = result;
        if (result == 0) {
            fallback->done++;
            return;
        }
        fallback->error = fallback->error != 0 ? fallback->error : result;
        result = BY_EABORTED;
    }
}

static void fail(struct by_fallback *fallback, const struct by_mesh_fault *fault)
{
    const char *why = fallback->schedule != NULL ? by_schedule_text(fallback->schedule) : "";

    by_reason(&fallback->mesh, fault, by_clock_ns() - fallback->moved_ns, why, fallback->text,
              sizeof(fallback->text));
    by_mesh_warn(&fallback->mesh, fault);
    end_call(fallback, fault->error);
    fallback->error = fallback->error != 0 ? fallback->error : fault->error;
    if (fallback->schedule != NULL)
        by_schedule_end(fallback->schedule, fault->error);
    if (fallback->single != NULL)
        by_single_end(fallback->single, fault->error, fault->rank);
}

static void fail_here(struct by_fallback *fallback, int error)
{
    struct by_mesh_fault fault = {.error = error, .rank = fallback->team.rank};

    fail(fallback, &fault);
}

void by_fallback_abort(struct by_fallback *fallback)
{
    if (is_busy(fallback))
        fail_here(fallback, BY_EABORTED);
}

/* ---- calls */

int by_fallback_post(struct by_fallback *fallback, const struct by_call *call, uint32_t *id)
{
    struct slot *slot = &fallback->slots[fallback->posted % BY_CALLS_MAX];
    uint64_t float_env;
    int error;

    if (fallback->error != 0)
        return BY_ESTATE;
    if (!is_busy(fallback))
        fallback->moved_ns = by_clock_ns();
    if (by_fallback_is_scheduled(fallback, call)) {
        error = by_schedule_post(fallback->schedule, call, id);
        *id |= SCHEDULED;
        return error;
    }
    if (by_fallback_is_single(fallback, call)) {
        error = by_single_post(fallback->single, call, id);
        *id = (*id & NUMBER) | SINGLE;
        fallback->counters.single += error == 0;
        return error;
    }
    if (!by_fallback_connects(fallback))
        return BY_EUNSUPPORTED;
    if (slot->used)
        return BY_EAGAIN;
    float_env = by_float_env_enter();
    error = by_work_begin(&fallback->team, call, &slot->work);
    by_float_env_leave(float_env);
    if (error != 0) {
        by_work_end(&slot->work);
        return error;
    }
    slot->used = true;
    slot->result = BY_EAGAIN;
    *id = fallback->posted++ & NUMBER;
    fallback->counters.calls++;
    return 0;
}

int by_fallback_test(struct by_fallback *fallback, uint32_t id)
{
    struct slot *slot = &fallback->slots[id % BY_CALLS_MAX];

    if (id & SCHEDULED)
        return by_schedule_test(fallback->schedule, id & ~SCHEDULED);
    if (id & SINGLE)
        return by_single_test(fallback->single, id & NUMBER);
    if (slot->result != BY_EAGAIN)
        slot->used = false;
    return slot->result;
}

const char *by_fallback_text(const struct by_fallback *fallback)
{
    return fallback->text;
}

/* ---- progress */

/* Allocates room for received data until they are added. */
static int make_room(struct by_fallback *fallback, uint64_t bytes)
{
    if (bytes <= fallback->scratch_bytes)
        return 0;
    free(fallback->scratch);
    fallback->scratch_bytes = (size_t)(bytes + bytes / 2 + 63) / 64 * 64;
    fallback->scratch = aligned_alloc(64, fallback->scratch_bytes);
    if (fallback->scratch == NULL)
        fallback->scratch_bytes = 0;
    return fallback->scratch != NULL ? 0 : BY_ENOMEM;
}

static int begin_round(struct by_fallback *fallback, struct by_host_work *work)
{
    struct by_round *round = &fallback->round;
    struct by_host_message message = {
        .call = fallback->done, .round = fallback->round_number, .tag = work->tag};

    by_work_prepare(&fallback->team, work, fallback->phase, fallback->index);
    by_phase_round(&fallback->team, &work->phase[fallback->phase], fallback->index, round);
    if (round->fold && make_room(fallback, round->receive_bytes) != 0)
        return BY_ENOMEM;
    if (round->sends) {
        message.bytes = round->send_bytes;
        by_mesh_send(&fallback->mesh, round->to, &message, round->send, round->send_count);
    }
    if (round->receives) {
        message.bytes = round->receive_bytes;
        if (round->fold) {
            fallback->incoming = (struct iovec){fallback->scratch, (size_t)round->receive_bytes};
            by_mesh_receive(&fallback->mesh, round->from, &message, &fallback->incoming, 1);
        } else {
            memcpy(fallback->moving, round->receive, round->receive_count * sizeof(*fallback->moving));
            by_mesh_receive(&fallback->mesh, round->from, &message, fallback->moving, round->receive_count);
        }
    }
    fallback->in_round = true;
    fallback->counters.rounds++;
    return 0;
}

/* Called after a round's messages: adds the received data, and advances to the next round, phase or
 * call. */
static void end_round(struct by_fallback *fallback, struct by_host_work *work)
{
    if (fallback->round.fold)
        by_work_fold(work, fallback->round.receive, fallback->round.receive_count, fallback->scratch);
    fallback->in_round = false;
    fallback->index++;
    fallback->round_number++;
}

/* Begins the next message to send and to receive of a phase whose rounds are independent: a rank
 * need not wait for what it receives to send more. All ranks send and receive in one order of
 * distances, so the pair at the least distance of those that wait can always go on. True if
 * anything began. */
static bool begin_messages(struct by_fallback *fallback, const struct by_host_work *work)
{
    const struct by_phase *phase = &work->phase[fallback->phase];
    struct by_host_message message = {.call = fallback->done, .tag = work->tag};
    struct by_round *round = &fallback->round;
    bool began = false;

    while (fallback->sent_index < phase->round_count && !fallback->mesh.send.active) {
        by_phase_round(&fallback->team, phase, fallback->sent_index, round);
        message.round = fallback->sent_index++;
        message.bytes = round->send_bytes;
        if (!round->sends)
            continue;
        fallback->outgoing = round->send[0];
        by_mesh_send(&fallback->mesh, round->to, &message, &fallback->outgoing, round->send_count);
        began = true;
    }
    while (fallback->index < phase->round_count && !fallback->mesh.receive.active) {
        by_phase_round(&fallback->team, phase, fallback->index, round);
        message.round = fallback->index++;
        message.bytes = round->receive_bytes;
        fallback->counters.rounds++;
        if (!round->receives)
            continue;
        fallback->incoming = round->receive[0];
        by_mesh_receive(&fallback->mesh, round->from, &message, &fallback->incoming, round->receive_count);
        began = true;
    }
    return began;
}

/* Finishes phases that have no rounds left. True if the call has ended. */
static bool end_phases(struct by_fallback *fallback, struct by_host_work *work)
{
    while (fallback->phase < work->phase_count &&
           fallback->index == work->phase[fallback->phase].round_count) {
        by_work_finish(&fallback->team, work, fallback->phase++);
        fallback->index = 0;
    }
    return fallback->phase == work->phase_count;
}

/* Starts a round, or starts or ends a call. False if nothing more can be done now. */
static bool go_on(struct by_fallback *fallback)
{
    struct by_host_work *work = &fallback->slots[fallback->done % BY_CALLS_MAX].work;

    if (!fallback->running) {
        fallback->running = true;
        fallback->phase = fallback->index = fallback->round_number = fallback->sent_index = 0;
    }
    if (fallback->phase < work->phase_count && work->phase[fallback->phase].kind == BY_PHASE_DIRECT) {
        if (begin_messages(fallback, work))
            return true;
        if (fallback->mesh.send.active || fallback->mesh.receive.active)
            return false;
    }
    if (!fallback->in_round) {
        int error;

        if (end_phases(fallback, work)) {
            end_call(fallback, 0);
            return fallback->done < fallback->posted;
        }
        error = begin_round(fallback, work);
        if (error != 0) {
            fail_here(fallback, error);
            return false;
        }
    }
    if (fallback->mesh.send.active || fallback->mesh.receive.active)
        return false;
    end_round(fallback, work);
    return true;
}

/* Returns the time that has passed without progress. */
static uint64_t silence(const struct by_fallback *fallback, uint64_t now_ns)
{
    return now_ns > fallback->moved_ns ? now_ns - fallback->moved_ns : 0;
}

/* The same, or the time limit if that is longer. */
static uint64_t patience(const struct by_fallback *fallback, uint64_t now_ns)
{
    uint64_t silent_ns = silence(fallback, now_ns);

    return silent_ns > fallback->stall_ns ? silent_ns : fallback->stall_ns;
}

/* During the second half of the time limit this rank sends questions. A peer that answers is itself
 * blocked and names the rank that it waits for. A rank whose peer is the culprit gets no answer and
 * fails at the time limit; its notice reaches the ranks that wait for others within the grace
 * period. Ranks without such a notice report the rank that their peer has named. The limit is
 * absent_ns while the peer's machine acknowledges the questions: then the peer has not called, or
 * waits for a rank that another one judges. */
static void find_silence(struct by_fallback *fallback, uint64_t now_ns)
{
    struct by_host_mesh *mesh = &fallback->mesh;
    uint64_t limit_ns = fallback->stall_ns;
    uint64_t silent_ns = silence(fallback, now_ns);
    uint64_t grace_ns = limit_ns / 4 < GRACE_MAX_NS ? limit_ns / 4 : GRACE_MAX_NS;
    uint64_t recent_ns = patience(fallback, now_ns) / 4;
    struct by_mesh_fault fault = {.error = BY_ETIMEDOUT};
    bool heard;

    if (silent_ns < limit_ns / 2)
        return;
    if (fallback->answered != mesh->answered)
        fallback->heard_ns = now_ns;
    fallback->answered = mesh->answered;
    if (now_ns >= fallback->asked_ns + patience(fallback, fallback->asked_ns) / QUESTIONS) {
        uint32_t stranger = by_mesh_stranger(mesh);

        if (stranger != mesh->rank) {
            fault = (struct by_mesh_fault){.error = BY_EMISMATCH, .rank = stranger};
            fail(fallback, &fault);
            return;
        }
        by_mesh_ask(mesh);
        fallback->asked_ns = now_ns;
        if (fallback->begun_ns <= fallback->moved_ns)
            fallback->begun_ns = now_ns;
    }
    heard = fallback->heard_ns > fallback->moved_ns && now_ns - fallback->heard_ns < recent_ns;
    if (fallback->absent_ns > limit_ns && by_mesh_lives(mesh, by_mesh_peer(mesh), recent_ns))
        limit_ns = fallback->absent_ns;
    /* Second condition: this process has not run for a while, so no peer could answer yet. */
    if (silent_ns < limit_ns + (heard ? grace_ns : 0) || now_ns - fallback->begun_ns < grace_ns)
        return;
    fault.rank = heard ? by_mesh_suspect(mesh) : by_mesh_peer(mesh);
    fail(fallback, &fault);
}

static void count_mesh(struct by_fallback *fallback)
{
    struct by_fallback_counters *counters = &fallback->counters;

    counters->messages = fallback->mesh.messages;
    counters->tx_bytes = fallback->mesh.tx_bytes;
    counters->shared_bytes = fallback->mesh.shared_bytes;
    counters->rx_bytes = fallback->mesh.rx_bytes;
}

/* A rank to which only a connection on demand exists sends no notice before it ends. So its end may
 * be the consequence of a failure that other ranks report, a little later. */
static bool may_have_cause(const struct by_fallback *fallback, const struct by_mesh_fault *fault)
{
    return fault->error == BY_EIO && !fault->noticed && fallback->mesh.links != NULL &&
           fallback->mesh.control[fault->rank] < 0;
}

static void hold(struct by_fallback *fallback, const struct by_mesh_fault *fault)
{
    uint64_t quarter_ns = fallback->stall_ns / 4;

    fallback->held = *fault;
    fallback->held_until_ns = by_clock_ns() + (quarter_ns < HOLD_MAX_NS ? quarter_ns : HOLD_MAX_NS);
    fallback->mesh.send.active = fallback->mesh.receive.active = false;
}

/* Waits for a notice, and fails with it or without. */
static void wait_for_cause(struct by_fallback *fallback, uint64_t now_ns)
{
    struct by_mesh_fault fault = {0};

    by_mesh_listen(&fallback->mesh, &fault);
    if (fault.noticed)
        fail(fallback, &fault);
    else if (now_ns >= fallback->held_until_ns)
        fail(fallback, &fallback->held);
}

/* Executes rounds and messages until nothing moves. */
static uint64_t move_all(struct by_fallback *fallback)
{
    uint64_t moved = 0, part;

    while (fallback->done < fallback->posted) {
        struct by_mesh_fault fault;

        if (go_on(fallback))
            moved++;
        if (fallback->done == fallback->posted)
            break;
        part = by_mesh_step(&fallback->mesh, &fault);
        moved += part;
        if (fault.error != 0) {
            if (may_have_cause(fallback, &fault))
                hold(fallback, &fault);
            else
                fail(fallback, &fault);
            break;
        }
        if (part == 0 && (fallback->mesh.send.active || fallback->mesh.receive.active))
            break;
    }
    return moved;
}

/* Executes the schedules, and reads the notices of failures. */
static uint64_t move_schedule(struct by_fallback *fallback)
{
    struct by_mesh_fault fault = {0};
    uint64_t moved = 0;

    by_mesh_listen(&fallback->mesh, &fault);
    if (fault.error == 0)
        moved = by_schedule_step(fallback->schedule, &fault);
    if (fault.error == BY_EIO && !fault.noticed)
        hold(fallback, &fault);
    else if (fault.error != 0)
        fail(fallback, &fault);
    fallback->mesh.waits_for = by_schedule_waits_for(fallback->schedule);
    return moved;
}

/* Finds ranks that have failed while calls wait in memory. */
static void find_end(struct by_fallback *fallback, uint64_t now_ns)
{
    struct by_mesh_fault fault = {0};

    fallback->listened_ns = now_ns;
    by_memory_watch(fallback->single, &fallback->mesh, silence(fallback, now_ns) >= fallback->absent_ns,
                    &fault);
    if (fault.error != 0)
        fail(fallback, &fault);
}

/* Executes the calls through memory. */
static uint64_t move_in_memory(struct by_fallback *fallback, uint64_t now_ns)
{
    struct by_mesh_fault fault = {0};
    uint64_t moved = by_single_step(fallback->single, &fault.error, &fault.rank);

    if (fault.error != 0)
        fail(fallback, &fault);
    else if (moved == 0 && now_ns - fallback->listened_ns >= LISTEN_NS)
        find_end(fallback, now_ns);
    return moved;
}

uint64_t by_fallback_step(struct by_fallback *fallback, uint64_t now_ns)
{
    uint64_t float_env, moved = 0;

    if (!is_busy(fallback))
        return 0;
    if (is_in_memory(fallback))
        moved = move_in_memory(fallback, now_ns);
    if (fallback->done == fallback->posted && !is_scheduling(fallback)) {
        if (moved > 0)
            fallback->moved_ns = now_ns;
        return moved;
    }
    if (fallback->held.error != 0) {
        wait_for_cause(fallback, now_ns);
        return 0;
    }
    float_env = by_float_env_enter();
    moved += move_all(fallback);
    if (is_scheduling(fallback) && fallback->held.error == 0)
        moved += move_schedule(fallback);
    by_float_env_leave(float_env);
    count_mesh(fallback);
    if (moved > 0) {
        fallback->moved_ns = now_ns;
        fallback->mesh.suspect = fallback->mesh.rank;
    } else if (is_busy(fallback) && fallback->held.error == 0) {
        find_silence(fallback, now_ns);
    }
    return moved;
}

uint64_t by_fallback_deadline(const struct by_fallback *fallback)
{
    uint64_t first_ns = fallback->moved_ns + fallback->stall_ns / 2;
    uint64_t next_ns = fallback->asked_ns + patience(fallback, fallback->asked_ns) / QUESTIONS;

    if (!is_busy(fallback))
        return UINT64_MAX;
    if (fallback->held.error != 0)
        return fallback->held_until_ns;
    return next_ns > first_ns ? next_ns : first_ns;
}

uint32_t by_fallback_fds(const struct by_fallback *fallback, struct pollfd *fds)
{
    uint32_t count = is_busy(fallback) ? by_mesh_fds(&fallback->mesh, fds) : 0;

    if (is_in_memory(fallback))
        fds[count++] = (struct pollfd){.fd = by_single_fd(fallback->single), .events = POLLIN};
    if (is_scheduling(fallback))
        fds[count++] = (struct pollfd){.fd = by_schedule_fd(fallback->schedule), .events = POLLIN};
    return count;
}

const struct by_team *by_fallback_team(const struct by_fallback *fallback)
{
    return &fallback->team;
}

const struct by_fallback_counters *by_fallback_counters(const struct by_fallback *fallback)
{
    return &fallback->counters;
}

const struct by_schedule_counters *by_fallback_schedule_counters(const struct by_fallback *fallback)
{
    static const struct by_schedule_counters none;

    return fallback->schedule != NULL ? by_schedule_counters(fallback->schedule) : &none;
}
