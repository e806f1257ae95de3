/* The server of hosts; see members.h. The loop's thread. */
#include "control/service/daemon/members.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/listen.h"
#include "firmware/secure/acceptor.h"
#include "firmware/secure/strangers.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

#define READ_BYTES ((size_t)64 << 10)
/* What a queue has room for at first (bytes): a connection that is no rank needs no more. */
#define QUEUE_BYTES_LEAST ((size_t)4 << 10)
#define SILENT_MS         3000
/* Handshakes a second, and at once (count): all hosts of a fabric come at the same time. */
#define GREETED_PER_S 2000u
#define GREETED_BURST 256u
/* Descriptors that hosts leave to others: in all, and for each switch (count). */
#define OTHERS     256u
#define FOR_SWITCH 4u

struct members_queue {
    uint8_t *bytes;
    size_t at, used, room;
};

struct members_peer {
    struct by_watcher watcher;
    struct members_peer *next;
    struct by_tls *tls; /* or NULL: what it says of itself is believed */
    struct members_queue in, out;
    bool dead;    /* its connection is ended */
    bool seen;    /* dead at the last tick, too: the loop's batch of events, which may name it, is over */
    bool waits;   /* has said HELLO for a job that has no tables yet */
    bool member;  /* recovery.c knows it */
    bool broken;  /* it cannot be sent to any more: its connection is ended when that may be told, */
    size_t stuck; /* as so many bytes wait for it, or, where that is 0, as it has ended */
    bool writing; /* the loop tells when it can be written to */
    uint64_t since_ms, nonce;
    uint16_t job, rank, gen;
    uint32_t node;              /* of a member */
    char name[BY_NAME_MAX + 1]; /* of its node; "" until HELLO */
};

struct by_members {
    struct by_prng prng; /* of injected faults */
    uint32_t listener_count, peer_count;
    uint32_t peers_max; /* that descriptors are there for: BY_MEMBERS_MAX at most */
    struct by_watcher listeners[BY_OPTIONS_MEMBERS_MAX];
    struct by_tls_identity *identity; /* NULL: nobody comes over TLS */
    struct by_acceptor *acceptor;
    struct by_watcher greeted;
    struct by_strangers strangers; /* who have shown neither keys nor that they are a rank */
    struct members_peer *peers;
    size_t waiting; /* bytes in the output queues of all peers */
};

/* ---- lines of the log ---- */

static void say_stranger(struct by_daemon *daemon, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* About somebody who may be anybody: of many such lines few are said. */
static void say_stranger(struct by_daemon *daemon, const char *format, ...)
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

/* ---- ends ---- */

static void drop(struct by_daemon *daemon, struct members_peer *peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An event of the rank of a connection; `gen` and `number` as recover.h has them. */
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

/* Ends a connection; without a reason nothing is said. */
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
            by_daemon_say("host %s: %s; its connection is ended", name, text);
        else
            say_stranger(daemon, "host %s: %s; its connection is ended", name, text);
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

/* Makes room for `more` bytes. False when there is no memory: the queue is as before. */
static bool reserve(struct members_queue *queue, size_t more)
{
    size_t room = queue->room;
    uint8_t *bytes;

    if (queue->at > 0) {
        memmove(queue->bytes, queue->bytes + queue->at, queue->used - queue->at);
        queue->used -= queue->at;
        queue->at = 0;
    }
    if (room - queue->used >= more)
        return true;
    while (room - queue->used < more)
        room = room > 0 ? room * 2 : QUEUE_BYTES_LEAST;
    bytes = realloc(queue->bytes, room);
    if (bytes == NULL)
        return false;
    queue->bytes = bytes;
    queue->room = room;
    return true;
}

/* Gives the memory of a long message back, once it is empty. */
static void release(struct members_queue *queue)
{
    if (queue->at < queue->used || queue->room <= READ_BYTES)
        return;
    free(queue->bytes);
    *queue = (struct members_queue){0};
}

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
    release(&peer->out);
    more = peer->out.at < peer->out.used;
    if (more != peer->writing) {
        peer->writing = more;
        by_daemon_rewatch(daemon, &peer->watcher, EPOLLIN | (more ? EPOLLOUT : 0));
    }
}

/* Says it. Recovery may be in the midst of a decision (recover.h: act): that the connection is lost
 * it hears later, by end_broken. */
static void put(struct by_daemon *daemon, struct members_peer *peer, const struct by_member_frame *frame)
{
    size_t waiting, begin;

    if (peer->dead || peer->broken)
        return;
    waiting = peer->out.used - peer->out.at;
    if (waiting + frame->bytes > BY_MEMBERS_WAITING_MAX ||
        (waiting > 0 && daemon->members->waiting + frame->bytes > BY_MEMBERS_WAITING_ALL_MAX) ||
        !reserve(&peer->out, BY_MEMBER_FIXED_MAX + frame->bytes)) {
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

/* Ends the connection of a host that could not be sent to. */
static void end_broken(struct by_daemon *daemon, struct members_peer *peer)
{
    if (peer->stuck > 0)
        drop(daemon, peer, "it does not take what it is sent: %zu bytes wait", peer->stuck);
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

/* Fault injection. What a connection begins and ends with is spared: a peer without it is another
 * fault. */
static bool is_lost(struct by_daemon *daemon, uint8_t type)
{
    if (daemon->options.lose == 0 || type == BY_MEMBER_HELLO || type == BY_MEMBER_WELCOME ||
        type == BY_MEMBER_BYE || type == BY_MEMBER_FAIL)
        return false;
    return by_prng_below(&daemon->members->prng, 1000) < daemon->options.lose;
}

void by_members_send(struct by_daemon *daemon, uint16_t job, uint16_t rank, struct by_member_frame frame)
{
    struct members_peer *peer = daemon->members != NULL ? find(daemon->members, job, rank) : NULL;

    frame.job = job;
    frame.rank = rank;
    if (peer != NULL && !is_lost(daemon, frame.type))
        put(daemon, peer, &frame);
}

/* ---- who it is ---- */

static void refuse(struct by_daemon *daemon, struct members_peer *peer, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says why, and ends it. */
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

/* The job that it asks for: 0 is the only one with its node. */
static struct by_job *job_of(struct by_daemon *daemon, const struct members_peer *peer, uint32_t node,
                             uint32_t *count)
{
    struct by_job *found = NULL;

    *count = 0;
    if (peer->job != 0)
        return by_jobs_find(daemon, peer->job);
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job_spec *spec = &daemon->jobs[i]->spec;

        if (spec->member != NULL && !spec->member[node])
            continue;
        found = daemon->jobs[i];
        ++*count;
    }
    return *count == 1 ? found : NULL;
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
        refuse(daemon, peer, BY_ENOENT, "the topology has no host %s; set BANYAN_NODE to its name there",
               peer->name);
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
    if (job->tables == NULL || job->state == BY_JOB_ENDING) { /* or it is gone when that is done */
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
    if (other != NULL) { /* it has come back before we saw that it had gone */
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

static void take_hello(struct by_daemon *daemon, struct members_peer *peer,
                       const struct by_member_frame *frame)
{
    if (peer->name[0] != 0) {
        drop(daemon, peer, "it sends HELLO twice");
        return;
    }
    memcpy(peer->name, frame->data, frame->bytes);
    for (uint32_t i = 0; i < frame->bytes; i++)
        if (peer->name[i] <= ' ' || peer->name[i] > '~')
            peer->name[i] = '?';
    peer->job = frame->job;
    peer->gen = frame->gen;
    peer->nonce = frame->number;
    if (peer->tls != NULL && strcmp(peer->name, by_tls_peer(peer->tls)) != 0)
        refuse(daemon, peer, BY_EPERM,
               "it claims to be %s, but its certificate names %s: give each host its own keys, and "
               "BANYAN_NODE the name in them",
               peer->name, by_tls_peer(peer->tls));
    else
        settle(daemon, peer);
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
    if (!peer->member || frame->job != peer->job || frame->rank != peer->rank) {
        if (!peer->dead && peer->name[0] == 0)
            drop(daemon, peer, "it sends %s before HELLO", by_member_name(frame->type));
        return;
    }
    switch (frame->type) {
    case BY_MEMBER_ALIVE:
        by_daemon_tell(daemon, &(struct by_daemon_event){.kind = BY_EVENT_COUNTED,
                                                         .node = peer->node,
                                                         .data = frame->data,
                                                         .bytes = frame->bytes});
        tell_rank(daemon, peer, BY_RECOVER_RANK_ALIVE, frame->gen, frame->number);
        break;
    case BY_MEMBER_SUSPECT:
        tell_rank(daemon, peer, BY_RECOVER_RANK_SUSPECTS, frame->gen, frame->peer);
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
        break;
    }
}

/* All frames that are there. */
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
    drop(daemon, peer, "it sends what is no frame of a host: %s", by_error_text(error));
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
    /* One read for each turn, so that no host keeps the others waiting. */
    room = peer->member ? READ_BYTES : QUEUE_BYTES_LEAST;
    if (!reserve(&peer->in, room)) {
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
    release(&peer->in);
    if (!peer->dead && !peer->member && peer->in.used - peer->in.at > BY_MEMBERS_STRANGER_MAX)
        drop(daemon, peer, "it sends a frame of more than %u bytes and is no rank of a job yet",
             (unsigned)BY_MEMBERS_STRANGER_MAX);
}

/* Takes a connection in; over TLS, one whose other end is a host of our authority. */
static void admit(struct by_daemon *daemon, int fd, struct by_tls *tls)
{
    struct by_members *members = daemon->members;
    int one = 1, silent_ms = SILENT_MS;
    struct members_peer *peer;

    if (members->peer_count >= members->peers_max) {
        say_stranger(daemon, "%u hosts are connected, the limit%s; one more is refused", members->peers_max,
                     members->peers_max < BY_MEMBERS_MAX ? " of its descriptors (ulimit -n)" : "");
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
    peer->next = members->peers;
    members->peers = peer;
    members->peer_count++;
    if (by_daemon_watch(daemon, &peer->watcher, EPOLLIN) != 0)
        drop(daemon, peer, "no room to watch it: %s", strerror(errno));
}

static void on_listener(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    int fd = accept4(watcher->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd >= 0)
        admit(daemon, fd, NULL);
}

/* Those who came over TLS. */
static void on_greeted(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct by_greeted who;

    (void)watcher;
    (void)events;
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX && by_acceptor_take(daemon->members->acceptor, &who);
         i++) {
        if (who.tls != NULL)
            admit(daemon, who.fd, who.tls);
        else
            say_stranger(daemon, "a connection that is not a host's is refused: %s", who.text);
    }
}

void by_members_tick(struct by_daemon *daemon)
{
    char more[BY_STRANGERS_MORE_MAX];

    if (daemon->members == NULL)
        return;
    if (by_strangers_rest(&daemon->members->strangers, daemon->now_ms * 1000000, more))
        by_daemon_say("a connection that is not a host's is refused%s", more);
    for (struct members_peer *peer = daemon->members->peers; peer != NULL; peer = peer->next) {
        if (!peer->dead && peer->broken)
            end_broken(daemon, peer);
        else if (!peer->dead && peer->waits)
            settle(daemon, peer);
        else if (!peer->dead && peer->name[0] == 0 && daemon->now_ms - peer->since_ms > BY_MEMBERS_HELLO_MS)
            drop(daemon, peer, "it has not identified itself within %u s", BY_MEMBERS_HELLO_MS / 1000);
    }
    bury(daemon->members);
}

/* ---- begin and end ---- */

/* The thread that meets hosts over TLS. */
static int open_acceptor(struct by_daemon *daemon)
{
    struct by_members *members = daemon->members;
    struct by_acceptor_options options = {.handshakes = BY_ACCEPTOR_HANDSHAKES_MAX,
                                          .deadline_ms = BY_ACCEPTOR_DEADLINE_MS,
                                          .per_second = GREETED_PER_S,
                                          .burst = GREETED_BURST};
    const char *keys = daemon->options.access.keys;
    char text[BY_TLS_TEXT_MAX] =
        "TLS needs a controller's keys: name their folder with --keys or BANYAN_KEYS";

    if (keys == NULL || by_tls_identity_open(keys, BY_TLS_HOSTS, &members->identity, text) != 0) {
        fprintf(stderr, "banyand: --members tls: %s\n", text);
        return BY_EINVAL;
    }
    options.identity = members->identity;
    if (by_acceptor_open(&members->acceptor, &options) != 0) {
        fprintf(stderr, "banyand: --members tls: no thread for handshakes: %s\n", strerror(errno));
        return BY_EIO;
    }
    members->greeted = (struct by_watcher){.fd = by_acceptor_fd(members->acceptor), .ready = on_greeted};
    return by_daemon_watch(daemon, &members->greeted, EPOLLIN);
}

/* Whether hosts may come in by this plain address: tables of keyed jobs hold their keys. */
static int check_exposure(const struct by_daemon *daemon, const char *address, bool loopback)
{
    if (loopback || daemon->options.lower.cover == 0 || daemon->options.access.plain_keys)
        return 0;
    fprintf(stderr,
            "banyand: --members %s: tables of keyed jobs hold keys, which plain TCP would show: use tls:%s, "
            "or --plain-keys where no other program can listen\n",
            address, address + 4);
    return BY_EINVAL;
}

static int open_listener(struct by_daemon *daemon, struct by_watcher *listener, const char *address)
{
    struct by_members *members = daemon->members;
    bool loopback = true, tls = strncmp(address, "tls:", 4) == 0;
    int error = tls && members->acceptor == NULL ? open_acceptor(daemon) : 0;

    if (error != 0)
        return error;
    listener->fd = strncmp(address, "unix:", 5) == 0 ? by_listen_unix(address + 5)
                                                     : by_listen_tcp(address + 4, &loopback);
    listener->ready = on_listener;
    if (listener->fd < 0) {
        fprintf(stderr, "banyand: --members %s: %s\n", address, strerror(errno));
        return BY_EIO;
    }
    members->listener_count++;
    if (tls)
        return by_acceptor_listen(members->acceptor, listener->fd);
    error = check_exposure(daemon, address, loopback);
    return error != 0 ? error : by_daemon_watch(daemon, listener, EPOLLIN);
}

/* How many hosts may be connected, so that descriptors are left for switches and all else, or three
 * quarters of few: their limit is raised as far as this process may. */
static uint32_t count_room(const struct by_daemon *daemon)
{
    const rlim_t others = OTHERS + FOR_SWITCH * (rlim_t)daemon->switch_count, all = others + BY_MEMBERS_MAX;
    struct rlimit limit = {.rlim_cur = all, .rlim_max = all};
    rlim_t room;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < all) {
        limit.rlim_cur = limit.rlim_max < all ? limit.rlim_max : all;
        setrlimit(RLIMIT_NOFILE, &limit); /* up to its hard limit it always may */
    }
    room = limit.rlim_cur > others ? limit.rlim_cur - others : 0;
    if (room < limit.rlim_cur / 4)
        room = limit.rlim_cur / 4;
    return room < BY_MEMBERS_MAX ? (uint32_t)room : BY_MEMBERS_MAX;
}

int by_members_open(struct by_daemon *daemon)
{
    int error = 0;

    daemon->members = by_alloc(1, sizeof(*daemon->members));
    daemon->members->prng.state = by_push_election();
    daemon->members->peers_max = count_room(daemon);
    by_strangers_start(&daemon->members->strangers);
    for (uint32_t i = 0; i < daemon->options.member_count && error == 0; i++)
        error = open_listener(daemon, &daemon->members->listeners[i], daemon->options.members[i]);
    return error;
}

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
    bury(members); /* marks, then frees */
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
