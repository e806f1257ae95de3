/* The server of hosts. See members.h. The loop's thread. */
#include "control/service/daemon/members_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/jobs.h"
#include "offload/base/errors.h"

#define READ_BYTES ((size_t)64 << 10)
#define SILENT_MS  3000

/* ---- log lines ---- */

void by_members_say_stranger(struct by_daemon *daemon, const char *format, ...)
{
    char text[BY_ACCEPTOR_TEXT_MAX + 64], more[BY_STRANGERS_MORE_MAX];
    va_list arguments;

    if (!by_strangers_come(&daemon->members->strangers, daemon->now_ms * 1000000, more))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    by_daemon_say("%s%s", text, more);
}

/* ---- end of connections ---- */

static void drop(struct by_daemon *daemon, struct members_peer *peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Posts an event of the connection's rank. `gen` and `number`: see recover.h. */
static void tell_rank(struct by_daemon *daemon, const struct members_peer *peer, enum by_recover_type type,
                      uint16_t gen, uint64_t number)
{
    by_daemon_tell(daemon, &(struct by_daemon_event){.kind = BY_EVENT_RANK,
                                                     .rank_event = type,
                                                     .job = peer->job,
                                                     .rank = peer->rank,
                                                     .gen = gen,
                                                     .number = number});
}

/* Closes a connection, and logs the reason if there is one. */
static void drop(struct by_daemon *daemon, struct members_peer *peer, const char *format, ...)
{
    const char *name = peer->name[0] != 0 ? peer->name : "(unknown)";
    char text[300];
    va_list arguments;

    if (peer->dead)
        return;
    if (format != NULL) {
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        if (peer->member || peer->tls != NULL)
            by_daemon_say("host %s: %s; its connection is closed", name, text);
        else
            by_members_say_stranger(daemon, "host %s: %s; its connection is closed", name, text);
    }
    by_daemon_unwatch(daemon, &peer->watcher);
    by_tls_close(peer->tls);
    peer->tls = NULL;
    close(peer->watcher.fd);
    peer->watcher.fd = -1;
    peer->dead = true;
    daemon->members->waiting -= peer->out.used - peer->out.at;
    peer->out.at = peer->out.used;
    if (peer->member) {
        peer->member = false;
        tell_rank(daemon, peer, BY_RECOVER_RANK_DIED, 0, 0);
    }
}

static void bury(struct by_members *members)
{
    for (struct members_peer **at = &members->peers; *at != NULL;) {
        struct members_peer *peer = *at;

        if (!peer->seen) {
            peer->seen = peer->dead;
            at = &peer->next;
            continue;
        }
        *at = peer->next;
        members->peer_count--;
        free(peer->in.bytes);
        free(peer->out.bytes);
        free(peer);
    }
}

/* ---- bytes ---- */

static void flush(struct by_daemon *daemon, struct members_peer *peer)
{
    bool more;

    while (peer->out.at < peer->out.used) {
        int64_t sent = by_tls_move(peer->tls, peer->watcher.fd, NULL, peer->out.bytes + peer->out.at,
                                   peer->out.used - peer->out.at);

        if (sent == BY_EAGAIN)
            break;
        if (sent < 0) {
            peer->broken = true;
            return;
        }
        peer->out.at += (size_t)sent;
        daemon->members->waiting -= (size_t)sent;
    }
    by_queue_release(&peer->out);
    more = peer->out.at < peer->out.used;
    if (more != peer->writing) {
        peer->writing = more;
        by_daemon_rewatch(daemon, &peer->watcher, EPOLLIN | (more ? EPOLLOUT : 0));
    }
}

/* Sends a frame. Recovery may be calling this from within a decision (by_recover_config.act), so it
 * learns of a lost connection only later, from end_broken. */
static void put(struct by_daemon *daemon, struct members_peer *peer, const struct by_member_frame *frame)
{
    size_t waiting, begin;

    if (peer->dead || peer->broken)
        return;
    waiting = peer->out.used - peer->out.at;
    if (waiting + frame->bytes > BY_MEMBERS_WAITING_MAX ||
        (waiting > 0 && daemon->members->waiting + frame->bytes > BY_MEMBERS_WAITING_ALL_MAX) ||
        !by_queue_reserve(&peer->out, BY_MEMBER_FIXED_MAX + frame->bytes)) {
        peer->broken = true;
        peer->stuck = waiting;
        return;
    }
    begin = peer->out.used;
    peer->out.used += by_member_put(frame, peer->out.bytes + peer->out.used);
    if (frame->bytes > 0)
        memcpy(peer->out.bytes + peer->out.used, frame->data, frame->bytes);
    peer->out.used += frame->bytes;
    daemon->members->waiting += peer->out.used - begin;
    flush(daemon, peer);
}

/* Closes the connection of a host to which sending failed. */
static void end_broken(struct by_daemon *daemon, struct members_peer *peer)
{
    if (peer->stuck > 0)
        drop(daemon, peer, "it does not read its messages: %zu bytes wait", peer->stuck);
    else
        drop(daemon, peer, NULL);
}

static struct members_peer *find(const struct by_members *members, uint16_t job, uint16_t rank)
{
    for (struct members_peer *peer = members->peers; peer != NULL; peer = peer->next)
        if (peer->member && peer->job == job && peer->rank == rank)
            return peer;
    return NULL;
}

/* Whether a host is connected for the job. */
static bool is_used(const struct by_daemon *daemon, uint16_t job)
{
    const struct members_peer *peer = daemon->members != NULL ? daemon->members->peers : NULL;

    while (peer != NULL && (peer->dead || peer->job != job || !(peer->member || peer->waits)))
        peer = peer->next;
    return peer != NULL;
}

/* Injects faults. The first and last messages of a connection are spared: another fault. So are
 * standbys: they are repeated with a connection, but not within it. */
static bool is_lost(struct by_daemon *daemon, uint8_t type)
{
    if (daemon->options.lose == 0 || type == BY_MEMBER_HELLO || type == BY_MEMBER_GROUP ||
        type == BY_MEMBER_WELCOME || type == BY_MEMBER_BYE || type == BY_MEMBER_FAIL ||
        type == BY_MEMBER_STANDBY)
        return false;
    return by_prng_below(&daemon->members->prng, 1000) < daemon->options.lose;
}

void by_members_send(struct by_daemon *daemon, uint16_t job, uint16_t rank, struct by_member_frame frame)
{
    struct members_peer *peer = daemon->members != NULL ? find(daemon->members, job, rank) : NULL;

    frame.job = job;
    frame.rank = rank;
    if (peer != NULL && (peer->stands || frame.type != BY_MEMBER_STANDBY) && !is_lost(daemon, frame.type))
        put(daemon, peer, &frame);
}

bool by_members_stands(const struct by_daemon *daemon, uint16_t job, uint16_t rank)
{
    const struct members_peer *peer = daemon->members != NULL ? find(daemon->members, job, rank) : NULL;

    return peer != NULL && peer->stands;
}

/* ---- identification ---- */

static void refuse(struct by_daemon *daemon, struct members_peer *peer, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sends the reason and closes the connection. */
static void refuse(struct by_daemon *daemon, struct members_peer *peer, int error, const char *format, ...)
{
    char text[BY_MEMBER_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    put(daemon, peer,
        &(struct by_member_frame){.type = BY_MEMBER_FAIL,
                                  .job = peer->job,
                                  .rank = peer->rank,
                                  .code = error,
                                  .data = (const uint8_t *)text,
                                  .bytes = (uint32_t)strlen(text)});
    drop(daemon, peer, "%s", text);
}

/* Returns the job that the host requests; 0 requests the only job with its node, apart from those
 * of communicators. */
static struct by_job *job_of(struct by_daemon *daemon, const struct members_peer *peer, uint32_t node,
                             uint32_t *count)
{
    struct by_job *found = NULL;

    *count = 0;
    if (peer->job != 0)
        return by_jobs_find(daemon, peer->job);
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job_spec *spec = &daemon->jobs[i]->spec;

        if (spec->is_group || (spec->member != NULL && !spec->member[node]))
            continue;
        found = daemon->jobs[i];
        ++*count;
    }
    return *count == 1 ? found : NULL;
}

static void refuse_name(struct by_daemon *daemon, struct members_peer *peer)
{
    refuse(daemon, peer, BY_ENOENT, "the topology has no host %s; set BANYAN_NODE to its name there",
           peer->name);
}

/* Finds its rank, or lets it wait until its job has tables. */
static void settle(struct by_daemon *daemon, struct members_peer *peer)
{
    int64_t node = by_topology_find(daemon->topology, peer->name);
    uint32_t count, rank;
    struct by_job *job;
    struct members_peer *other;

    peer->waits = false;
    if (node < 0 || !daemon->topology->nodes[node].compute) {
        refuse_name(daemon, peer);
        return;
    }
    job = job_of(daemon, peer, (uint32_t)node, &count);
    if (job == NULL &&
        (daemon->start != NULL || (count == 0 && daemon->now_ms - peer->since_ms < BY_MEMBERS_HELLO_MS))) {
        peer->waits = true;
        return;
    }
    if (job == NULL && peer->job != 0)
        refuse(daemon, peer, BY_ENOENT, "there is no job %u", peer->job);
    else if (job == NULL && count == 0)
        refuse(daemon, peer, BY_ENOENT, "no job has host %s; banyan job create makes one", peer->name);
    else if (job == NULL)
        refuse(daemon, peer, BY_ENOENT, "%s is in %u jobs; BANYAN_JOB chooses one", peer->name, count);
    if (job == NULL)
        return;
    if (job->tables == NULL && job->state == BY_JOB_FAILED &&
        daemon->now_ms - peer->since_ms >= BY_MEMBERS_HELLO_MS) { /* it failed before this controller led */
        refuse(daemon, peer, BY_ENOENT, "job %u has no tables: %s", job->spec.job, job->text);
        return;
    }
    /* The next tick tries again; an ended job is gone by then. */
    if (job->tables == NULL || job->state == BY_JOB_ENDING) {
        peer->waits = true;
        return;
    }
    rank = by_lowering_rank(job->tables->lowering, job->spec.job, (uint32_t)node);
    if (rank == UINT32_MAX) {
        refuse(daemon, peer, BY_ENOENT, "%s is not a rank of job %u", peer->name, job->spec.job);
        return;
    }
    other = find(daemon->members, job->spec.job, (uint16_t)rank);
    if (other != NULL && other->broken) {
        end_broken(daemon, other);
        other = NULL;
    }
    if (other != NULL && other->nonce != peer->nonce) {
        refuse(daemon, peer, BY_EBUSY, "rank %u of job %u runs in another process", rank, job->spec.job);
        return;
    }
    if (other != NULL) { /* the host has reconnected before the loss of the old connection was noticed */
        other->member = false;
        drop(daemon, other, NULL);
    }
    peer->job = job->spec.job;
    peer->rank = (uint16_t)rank;
    peer->node = (uint32_t)node;
    peer->member = true;
    tell_rank(daemon, peer, BY_RECOVER_RANK_CAME, peer->gen, peer->nonce);
}

/* ---- frames ---- */

/* Takes the name of the node in the first frame. Returns whether the connection may go on. */
static bool take_name(struct by_daemon *daemon, struct members_peer *peer,
                      const struct by_member_frame *frame, size_t bytes)
{
    if (peer->name[0] != 0) {
        drop(daemon, peer, "it sent %s after HELLO", by_member_name(frame->type));
        return false;
    }
    memcpy(peer->name, frame->data, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        if (peer->name[i] <= ' ' || peer->name[i] > '~')
            peer->name[i] = '?';
    peer->gen = frame->gen;
    peer->nonce = frame->number;
    if (peer->tls == NULL || strcmp(peer->name, by_tls_peer(peer->tls)) == 0)
        return true;
    refuse(daemon, peer, BY_EPERM,
           "it claims to be %s, but its certificate names %s: give each host its own keys, and set "
           "BANYAN_NODE to the name in them",
           peer->name, by_tls_peer(peer->tls));
    return false;
}

static void take_hello(struct by_daemon *daemon, struct members_peer *peer,
                       const struct by_member_frame *frame)
{
    if (!take_name(daemon, peer, frame, frame->bytes))
        return;
    peer->job = frame->job;
    peer->stands = frame->rank == BY_MEMBER_RANK_STANDBY;
    settle(daemon, peer);
}

/* The requested job runs, or there is a reason against it. The host may have gone meanwhile; then
 * groups.c ends the job. */
static void on_group(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                     const char *text)
{
    struct members_peer *peer = daemon->members != NULL ? daemon->members->peers : NULL;

    if (job == NULL)
        by_groups_refused(daemon);
    while (peer != NULL && peer->id != (uintptr_t)context)
        peer = peer->next;
    if (peer == NULL || peer->dead)
        return;
    peer->asks = false;
    if (job == NULL) {
        refuse(daemon, peer, error, "%s", text);
        return;
    }
    peer->job = job->spec.job;
    settle(daemon, peer);
}

static void take_group(struct by_daemon *daemon, struct members_peer *peer,
                       const struct by_member_frame *frame)
{
    const uint8_t *end = memchr(frame->data, 0, frame->bytes);
    size_t bytes = end != NULL ? (size_t)(end - frame->data) : 0;
    int64_t node;

    if (bytes == 0 || bytes > BY_NAME_MAX) {
        drop(daemon, peer, "it sent GROUP without a name");
        return;
    }
    if (!take_name(daemon, peer, frame, bytes))
        return;
    node = by_topology_find(daemon->topology, peer->name);
    if (node < 0 || !daemon->topology->nodes[node].compute) {
        refuse_name(daemon, peer);
        return;
    }
    peer->asks = true;
    by_groups_create(daemon, frame->job, (uint32_t)node, end + 1, frame->bytes - (uint32_t)bytes - 1,
                     on_group, (void *)(uintptr_t)peer->id);
}

static void take_say(struct by_daemon *daemon, struct members_peer *peer, const struct by_member_frame *frame)
{
    by_members_send(daemon, peer->job, frame->peer,
                    (struct by_member_frame){.type = BY_MEMBER_HEARD,
                                             .gen = frame->gen,
                                             .peer = peer->rank,
                                             .data = frame->data,
                                             .bytes = frame->bytes});
}

static void take(struct by_daemon *daemon, struct members_peer *peer, const struct by_member_frame *frame)
{
    if (frame->type == BY_MEMBER_HELLO) {
        take_hello(daemon, peer, frame);
        return;
    }
    if (frame->type == BY_MEMBER_GROUP) {
        take_group(daemon, peer, frame);
        return;
    }
    if (!peer->member || frame->job != peer->job || frame->rank != peer->rank) {
        if (!peer->dead && peer->name[0] == 0)
            drop(daemon, peer, "it sent %s before HELLO", by_member_name(frame->type));
        return;
    }
    switch (frame->type) {
    case BY_MEMBER_ALIVE:
    case BY_MEMBER_MEASURED:
        by_daemon_tell(daemon,
                       &(struct by_daemon_event){.kind = frame->type == BY_MEMBER_ALIVE ? BY_EVENT_COUNTED
                                                                                        : BY_EVENT_MEASURED,
                                                 .node = peer->node,
                                                 .job = peer->job,
                                                 .rank = peer->rank,
                                                 .number = frame->number,
                                                 .data = frame->data,
                                                 .bytes = frame->bytes});
        if (frame->type == BY_MEMBER_ALIVE)
            tell_rank(daemon, peer, BY_RECOVER_RANK_ALIVE, frame->gen, frame->number);
        break;
    case BY_MEMBER_SUSPECT:
        /* A host that knows several controllers looks for another one if this one is silent. */
        by_members_send(daemon, peer->job, peer->rank,
                        (struct by_member_frame){.type = BY_MEMBER_WELCOME, .gen = peer->gen});
        tell_rank(daemon, peer, frame->code == BY_ESTATE ? BY_RECOVER_RANK_STUCK : BY_RECOVER_RANK_SUSPECTS,
                  frame->gen, frame->peer);
        break;
    case BY_MEMBER_CARRIED:
        tell_rank(daemon, peer, BY_RECOVER_RANK_CARRIED, frame->gen, 0);
        break;
    case BY_MEMBER_SAY:
        take_say(daemon, peer, frame);
        break;
    default: /* BYE */
        peer->member = false;
        tell_rank(daemon, peer, BY_RECOVER_RANK_LEFT, 0, 0);
        drop(daemon, peer, NULL);
        if (!is_used(daemon, peer->job))
            by_groups_left(daemon, peer->job);
        break;
    }
}

/* Handles all complete frames. */
static void parse(struct by_daemon *daemon, struct members_peer *peer)
{
    struct by_member_frame frame;
    size_t used;
    int error = 0;

    while (!peer->dead && error == 0) {
        error = by_member_get(peer->in.bytes + peer->in.at, peer->in.used - peer->in.at, BY_MEMBER_HOST,
                              &frame, &used);
        if (error != 0)
            break;
        peer->in.at += used;
        if (!is_lost(daemon, frame.type))
            take(daemon, peer, &frame);
    }
    if (peer->dead || error == 0 || error == BY_EAGAIN)
        return;
    drop(daemon, peer, "it sent an invalid frame: %s", by_error_text(error));
}

static void on_peer(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct members_peer *peer = watcher->context;
    size_t room;
    int64_t got;

    if (peer->dead)
        return;
    if ((events & EPOLLOUT) && !peer->broken)
        flush(daemon, peer);
    if (peer->broken)
        end_broken(daemon, peer);
    if (peer->dead || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    /* One read in each turn of the loop, so that no host delays the others. */
    room = peer->member ? READ_BYTES : BY_QUEUE_BYTES_LEAST;
    if (!by_queue_reserve(&peer->in, room)) {
        drop(daemon, peer, "no memory for the %zu bytes that it sends", peer->in.used + room);
        return;
    }
    got = by_tls_move(peer->tls, peer->watcher.fd, peer->in.bytes + peer->in.used, NULL,
                      peer->in.room - peer->in.used);
    if (got == BY_EAGAIN)
        return;
    if (got <= 0) {
        drop(daemon, peer, NULL);
        return;
    }
    peer->in.used += (size_t)got;
    parse(daemon, peer);
    by_queue_release(&peer->in);
    if (!peer->dead && !peer->member && peer->in.used - peer->in.at > BY_MEMBERS_STRANGER_MAX)
        drop(daemon, peer, "it sent a frame of more than %u bytes before it became a rank of a job",
             (unsigned)BY_MEMBERS_STRANGER_MAX);
}

void by_members_admit(struct by_daemon *daemon, int fd, struct by_tls *tls)
{
    struct by_members *members = daemon->members;
    int one = 1, silent_ms = SILENT_MS;
    struct members_peer *peer;

    if (members->peer_count >= members->peers_max) {
        by_members_say_stranger(daemon, "%u hosts are connected, the limit%s; another one is refused",
                                members->peers_max,
                                members->peers_max < BY_MEMBERS_MAX ? " that ulimit -n allows" : "");
        by_tls_close(tls);
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
    peer = by_alloc(1, sizeof(*peer));
    peer->watcher = (struct by_watcher){.fd = fd, .ready = on_peer, .context = peer};
    peer->tls = tls;
    peer->since_ms = daemon->now_ms;
    peer->id = ++members->last_id;
    peer->next = members->peers;
    members->peers = peer;
    members->peer_count++;
    if (by_daemon_watch(daemon, &peer->watcher, EPOLLIN) != 0)
        drop(daemon, peer, "cannot watch it: %s", strerror(errno));
}

void by_members_tick(struct by_daemon *daemon)
{
    char more[BY_STRANGERS_MORE_MAX];

    if (daemon->members == NULL)
        return;
    if (by_strangers_rest(&daemon->members->strangers, daemon->now_ms * 1000000, more))
        by_daemon_say("a connection that is not from a host is refused%s", more);
    for (struct members_peer *peer = daemon->members->peers; peer != NULL; peer = peer->next) {
        if (!peer->dead && peer->broken)
            end_broken(daemon, peer);
        else if (!peer->dead && peer->waits)
            settle(daemon, peer);
        else if (!peer->dead && peer->name[0] == 0 && daemon->now_ms - peer->since_ms > BY_MEMBERS_HELLO_MS)
            drop(daemon, peer, "it did not identify itself within %u s", BY_MEMBERS_HELLO_MS / 1000);
    }
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.is_group)
            daemon->jobs[i]->is_used = is_used(daemon, daemon->jobs[i]->spec.job);
    bury(daemon->members);
}

/* ---- the end ---- */

void by_members_close(struct by_daemon *daemon)
{
    struct by_members *members = daemon->members;

    if (members == NULL)
        return;
    by_acceptor_close(members->acceptor);
    for (struct members_peer *peer = members->peers; peer != NULL; peer = peer->next) {
        peer->member = false;
        drop(daemon, peer, NULL);
    }
    bury(members); /* the first call marks, the second frees */
    bury(members);
    for (uint32_t i = 0; i < members->listener_count; i++) {
        close(members->listeners[i].fd);
        if (strncmp(daemon->options.members[i], "unix:", 5) == 0)
            unlink(daemon->options.members[i] + 5);
    }
    by_tls_identity_close(members->identity);
    free(members);
    daemon->members = NULL;
}
