/* Connections on demand; see links.h. */
#include "host-driver/fallback/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/fallback/door.h"
#include "host-driver/fallback/mesh.h"
#include "offload/base/bytes.h"

#define MAGIC UINT32_C(0x62796d37) /* "bym7" */

/* A receiver waits this long for the sender to connect. Senders usually connect at once; a receiver
 * that also does makes the pair open a second connection and close it. */
#define PATIENCE_NS UINT64_C(100000000)
/* Answer to a greeting; the lowest bit: the offered memory is used. */
#define ANSWER 0xa0u
/* Pairs of a host that shares memory are 64 ranks' at most: each needs 32 KiB and more. */
#define NEAR_RANKS_MAX 64u

/* A connection that is not complete. */
struct by_host_link {
    int dial;   /* opened by this rank, and not answered; or -1 */
    int parked; /* opened by a higher rank, which will take the own one instead; or -1 */
    bool greeted;
    struct by_pipe *offered;
};

struct by_host_links {
    struct by_door door;
    const uint16_t *port; /* of each rank's listener */
    bool shares;
    uint64_t lacks_ns;          /* since when the receiver waits for a connection; 0: it does not */
    struct by_host_link link[]; /* two for each rank: data, control */
};

void by_hello_encode(const struct by_hello *hello, uint32_t key, uint8_t bytes[BY_HELLO_BYTES])
{
    by_put32(bytes, MAGIC);
    by_put32(bytes + 4, key);
    by_put32(bytes + 8, hello->rank);
    by_put32(bytes + 12, hello->channel);
    by_put32(bytes + 16, (uint32_t)hello->offer.pid);
    by_put32(bytes + 20, (uint32_t)hello->offer.fd);
    by_put64(bytes + 24, hello->offer.nonce);
}

bool by_hello_decode(const uint8_t bytes[BY_HELLO_BYTES], uint32_t key, struct by_hello *hello)
{
    *hello = (struct by_hello){.rank = by_get32(bytes + 8),
                               .channel = by_get32(bytes + 12),
                               .offer = {.pid = (int32_t)by_get32(bytes + 16),
                                         .fd = (int32_t)by_get32(bytes + 20),
                                         .nonce = by_get64(bytes + 24)}};
    return by_get32(bytes) == MAGIC && by_get32(bytes + 4) == key &&
           (hello->channel == BY_CHANNEL_DATA || hello->channel == BY_CHANNEL_CONTROL);
}

int by_watch_set(const struct by_host_mesh *mesh, int fd, uint32_t events, enum by_watched what,
                 uint32_t rank)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)what << 32 | rank};

    if (epoll_ctl(mesh->watch, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return errno == EEXIST && epoll_ctl(mesh->watch, EPOLL_CTL_MOD, fd, &event) == 0 ? 0 : BY_EIO;
}

static struct by_host_link *link_of(const struct by_host_mesh *mesh, enum by_mesh_channel channel,
                                    uint32_t peer)
{
    return &mesh->links->link[2 * (size_t)peer + (channel == BY_CHANNEL_CONTROL)];
}

static int *slot_of(const struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer)
{
    return channel == BY_CHANNEL_DATA ? &mesh->data[peer] : &mesh->control[peer];
}

int by_links_open(struct by_host_mesh *mesh, const uint16_t *port, int listener)
{
    struct by_host_links *links =
        calloc(1, sizeof(*links) + 2 * (size_t)mesh->rank_count * sizeof(links->link[0]));

    if (links == NULL) {
        close(listener);
        return by_fail(BY_ENOMEM, "no memory for the connections to %u ranks", mesh->rank_count);
    }
    for (size_t i = 0; i < 2 * (size_t)mesh->rank_count; i++)
        links->link[i].dial = links->link[i].parked = -1;
    links->port = port;
    by_door_open(&links->door, listener, BY_HELLO_BYTES);
    links->door.watch = mesh->watch;
    links->door.watched = (uint64_t)BY_WATCH_DOOR << 32;
    mesh->links = links;
    if (by_watch_set(mesh, listener, EPOLLIN, BY_WATCH_DOOR, 0) != 0)
        return by_fail(BY_EIO, "cannot add the listener of rank %u to epoll: %s", mesh->rank,
                       strerror(errno));
    return 0;
}

/* Closes what is not complete. */
static void drop(struct by_host_link *link)
{
    if (link->dial >= 0)
        close(link->dial);
    if (link->parked >= 0)
        close(link->parked);
    by_pipe_close(link->offered);
    *link = (struct by_host_link){.dial = -1, .parked = -1};
}

void by_links_close(struct by_host_mesh *mesh)
{
    if (mesh->links == NULL)
        return;
    for (size_t i = 0; i < 2 * (size_t)mesh->rank_count; i++)
        drop(&mesh->links->link[i]);
    by_door_close(&mesh->links->door);
    close(mesh->links->door.listener);
    free(mesh->links);
    mesh->links = NULL;
}

/* A connection is complete: it is used from now on. `pipe`: the memory in its place, or NULL. */
static void adopt(struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer, int fd,
                  struct by_pipe *pipe)
{
    *slot_of(mesh, channel, peer) = fd;
    if (channel == BY_CHANNEL_CONTROL) {
        by_watch_set(mesh, fd, EPOLLIN, BY_WATCH_NOTICES, peer);
        return;
    }
    mesh->pipe[peer] = pipe;
    /* The end of a rank that shares memory shows only here. */
    if (pipe != NULL)
        by_watch_set(mesh, fd, EPOLLRDHUP, BY_WATCH_DATA, peer);
    else
        epoll_ctl(mesh->watch, EPOLL_CTL_DEL, fd, NULL);
}

/* This rank cannot open or accept connections. */
static void fail_here(struct by_host_mesh *mesh, int why, struct by_mesh_fault *fault)
{
    mesh->limit_why = why;
    *fault = (struct by_mesh_fault){.error = BY_ELIMIT, .rank = mesh->rank};
}

/* A connection to a rank that a message needs has failed. Questions are repeated, so the next one
 * tries again. */
static void fail_link(struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer, int why,
                      struct by_mesh_fault *fault)
{
    drop(link_of(mesh, channel, peer));
    if (channel == BY_CHANNEL_CONTROL || fault->error != 0)
        return;
    *fault = (struct by_mesh_fault){.error = BY_EIO, .rank = peer};
    if (why == EMFILE || why == ENFILE)
        fail_here(mesh, why, fault);
}

static bool is_near(const struct by_host_mesh *mesh, uint32_t peer)
{
    return mesh->shares && mesh->ip[peer] == mesh->ip[mesh->rank] && mesh->ranks_here <= NEAR_RANKS_MAX;
}

/* Sends the greeting, which a new connection has room for. */
static bool greet(struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer,
                  struct by_host_link *link)
{
    struct by_hello hello = {.rank = mesh->rank, .channel = channel};
    uint8_t bytes[BY_HELLO_BYTES];

    if (channel == BY_CHANNEL_DATA && is_near(mesh, peer))
        link->offered = by_pipe_create(by_pipe_bytes(mesh->ranks_here), &hello.offer);
    by_hello_encode(&hello, mesh->key, bytes);
    link->greeted = true;
    return send(link->dial, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(bytes);
}

/* Goes on with a connection that this rank opens. */
static void go_on(struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer,
                  struct by_mesh_fault *fault)
{
    enum by_watched what = channel == BY_CHANNEL_DATA ? BY_WATCH_DIAL_DATA : BY_WATCH_DIAL_CONTROL;
    struct by_host_link *link = link_of(mesh, channel, peer);
    uint8_t answer = 0;
    ssize_t got;
    int fd = link->dial;

    if (fd < 0)
        return;
    if (!link->greeted) {
        int error = by_peer_dialled(fd);

        if (error == BY_EAGAIN) {
            by_watch_set(mesh, fd, EPOLLOUT, what, peer);
            return;
        }
        if (error != 0 || !greet(mesh, channel, peer, link)) {
            fail_link(mesh, channel, peer, errno, fault);
            return;
        }
        by_watch_set(mesh, fd, EPOLLIN, what, peer);
    }
    got = recv(fd, &answer, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || (answer & ~1u) != ANSWER) {
        fail_link(mesh, channel, peer, 0, fault);
        return;
    }
    if (link->offered != NULL)
        by_pipe_settle(link->offered);
    if (!(answer & 1u)) {
        by_pipe_close(link->offered);
        link->offered = NULL;
    }
    adopt(mesh, channel, peer, fd, link->offered);
    link->dial = -1;
    link->offered = NULL;
    drop(link);
}

static void dial(struct by_host_mesh *mesh, enum by_mesh_channel channel, uint32_t peer,
                 struct by_mesh_fault *fault)
{
    struct by_host_link *link = link_of(mesh, channel, peer);

    if (link->dial >= 0)
        return;
    link->greeted = false;
    link->dial = by_peer_dial(mesh->ip[peer], mesh->links->port[peer]);
    if (link->dial < 0) {
        link->dial = -1;
        fail_link(mesh, channel, peer, errno, fault);
        return;
    }
    go_on(mesh, channel, peer, fault);
}

void by_links_need(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    struct by_host_links *links = mesh->links;
    uint64_t now_ns;

    if (mesh->send.active && mesh->data[mesh->send.peer] < 0)
        dial(mesh, BY_CHANNEL_DATA, mesh->send.peer, fault);
    if (!mesh->receive.active || mesh->data[mesh->receive.peer] >= 0) {
        links->lacks_ns = 0;
        return;
    }
    now_ns = by_clock_ns();
    if (links->lacks_ns == 0)
        links->lacks_ns = now_ns;
    else if (now_ns - links->lacks_ns >= PATIENCE_NS && fault->error == 0)
        dial(mesh, BY_CHANNEL_DATA, mesh->receive.peer, fault);
}

void by_links_ask(struct by_host_mesh *mesh, uint32_t peer)
{
    struct by_mesh_fault ignored = {0};

    if (mesh->links != NULL && mesh->control[peer] < 0 && !mesh->gone[peer])
        dial(mesh, BY_CHANNEL_CONTROL, peer, &ignored);
}

int by_links_notices(const struct by_host_mesh *mesh, uint32_t peer)
{
    const struct by_host_link *link;

    if (mesh->control[peer] >= 0 || mesh->links == NULL)
        return mesh->control[peer];
    link = link_of(mesh, BY_CHANNEL_CONTROL, peer);
    return link->greeted ? link->dial : -1;
}

/* Takes a connection that another rank has opened. */
static void take(struct by_host_mesh *mesh, const struct by_hello *hello, int fd)
{
    enum by_mesh_channel channel = (enum by_mesh_channel)hello->channel;
    uint32_t peer = hello->rank;
    struct by_host_link *link = link_of(mesh, channel, peer);
    struct by_pipe *pipe = NULL;
    uint8_t answer;

    if (link->dial >= 0 && mesh->rank < peer) {
        /* Both connect, and the other rank takes this rank's connection. Until then its own stays
         * open: closing it would look like the end of this rank. */
        if (link->parked >= 0)
            close(link->parked);
        link->parked = fd;
        epoll_ctl(mesh->watch, EPOLL_CTL_DEL, fd, NULL);
        return;
    }
    drop(link);
    if (hello->offer.pid != 0 && channel == BY_CHANNEL_DATA && is_near(mesh, peer))
        pipe = by_pipe_open(&hello->offer, by_pipe_bytes(mesh->ranks_here));
    answer = (uint8_t)(ANSWER | (pipe != NULL));
    (void)!send(fd, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* the first byte has room */
    adopt(mesh, channel, peer, fd, pipe);
}

/* Takes the connections at the listener that have sent their greetings. */
static void answer_door(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    uint8_t bytes[BY_HELLO_BYTES];
    struct by_hello hello;
    int fd;

    while ((fd = by_door_look(&mesh->links->door, bytes)) >= 0) {
        if (by_hello_decode(bytes, mesh->key, &hello) && hello.rank < mesh->rank_count &&
            hello.rank != mesh->rank && *slot_of(mesh, (enum by_mesh_channel)hello.channel, hello.rank) < 0)
            take(mesh, &hello, fd);
        else
            close(fd);
    }
    if (fd == BY_EIO && fault->error == 0)
        fail_here(mesh, errno, fault);
}

void by_links_hear(struct by_host_mesh *mesh, enum by_watched what, uint32_t rank,
                   struct by_mesh_fault *fault)
{
    switch (what) {
    case BY_WATCH_DOOR:
        answer_door(mesh, fault);
        break;
    case BY_WATCH_DIAL_DATA:
    case BY_WATCH_DIAL_CONTROL:
        /* Before the end of the own connection: a lower rank that has ended may have sent one. */
        answer_door(mesh, fault);
        go_on(mesh, what == BY_WATCH_DIAL_DATA ? BY_CHANNEL_DATA : BY_CHANNEL_CONTROL, rank, fault);
        break;
    case BY_WATCH_DATA:
        mesh->gone[rank] = true;
        epoll_ctl(mesh->watch, EPOLL_CTL_DEL, mesh->data[rank], NULL);
        break;
    case BY_WATCH_NOTICES:
    default:
        break;
    }
}
