/*
 * Notices between ranks, over separate connections: a report that the job has failed, with the
 * responsible rank, and the question to a silent rank which rank it waits for. A rank inside a call
 * answers at once, even while it waits. So a rank that does not answer is stopped or absent, and
 * not merely blocked by another rank. See mesh.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "host-driver/fallback/links.h"
#include "host-driver/fallback/mesh.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

#define MAGIC      UINT32_C(0x62796e31) /* "byn1" */
#define EVENTS_MAX 16

/* A notice: magic, kind, rank, error. */
enum notice_kind {
    KIND_FAULT = 1, /* the job has ended with `error`, caused by `rank` */
    KIND_ASK,       /* which rank do you wait for? */
    KIND_ANSWER     /* I wait for `rank`; own rank: none */
};

static void tell(struct by_host_mesh *mesh, uint32_t to, enum notice_kind kind, uint32_t rank, int error)
{
    uint8_t notice[BY_NOTICE_BYTES];
    int fd = by_links_notices(mesh, to);

    if (fd < 0 || mesh->gone[to])
        return;
    by_put32(notice, MAGIC);
    by_put32(notice + 4, kind);
    by_put32(notice + 8, rank);
    by_put32(notice + 12, (uint32_t)error);
    /* A rank sends few notices: if one does not fit, the peer is not reading. */
    (void)!send(fd, notice, sizeof(notice), MSG_NOSIGNAL | MSG_DONTWAIT);
}

uint32_t by_mesh_peer(const struct by_host_mesh *mesh)
{
    return mesh->receive.active ? mesh->receive.peer : mesh->send.active ? mesh->send.peer : mesh->waits_for;
}

uint32_t by_mesh_suspect(const struct by_host_mesh *mesh)
{
    return mesh->suspect != mesh->rank ? mesh->suspect : by_mesh_peer(mesh);
}

void by_mesh_ask(struct by_host_mesh *mesh)
{
    uint32_t peer = by_mesh_peer(mesh);

    if (peer == mesh->rank)
        return;
    by_links_ask(mesh, peer);
    tell(mesh, peer, KIND_ASK, mesh->rank, 0);
}

bool by_mesh_lives(const struct by_host_mesh *mesh, uint32_t rank, uint64_t ns)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info);
    int fd = by_links_notices(mesh, rank);

    if (fd < 0 || mesh->gone[rank] || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        return false;
    return info.tcpi_last_ack_recv * UINT64_C(1000000) < ns;
}

static void take(struct by_host_mesh *mesh, uint32_t from, const uint8_t *notice, struct by_mesh_fault *fault)
{
    uint32_t rank = by_get32(notice + 8);
    int error = (int)by_get32(notice + 12);

    if (by_get32(notice) != MAGIC || rank >= mesh->rank_count)
        return;
    switch (by_get32(notice + 4)) {
    case KIND_FAULT:
        if (fault->error == 0)
            *fault =
                (struct by_mesh_fault){.error = error < 0 ? error : BY_EIO, .rank = rank, .noticed = true};
        break;
    case KIND_ASK:
        tell(mesh, from, KIND_ANSWER, by_mesh_suspect(mesh), 0);
        break;
    case KIND_ANSWER:
        if (from != by_mesh_peer(mesh))
            break; /* it has progressed since */
        mesh->answered++;
        if (rank != mesh->rank)
            mesh->suspect = rank;
        break;
    default:
        break;
    }
}

/* Reads one notice; returns whether there may be more. */
static bool read_one(struct by_host_mesh *mesh, uint32_t from, struct by_mesh_fault *fault)
{
    struct by_inbox *inbox = &mesh->inbox[from];
    ssize_t got = recv(mesh->control[from], inbox->bytes + inbox->have, sizeof(inbox->bytes) - inbox->have,
                       MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        mesh->gone[from] = true; /* correct if the peer has finished its part */
        epoll_ctl(mesh->watch, EPOLL_CTL_DEL, mesh->control[from], NULL);
    }
    if (got <= 0)
        return false;
    inbox->have += (uint32_t)got;
    if (inbox->have < sizeof(inbox->bytes))
        return false;
    inbox->have = 0;
    take(mesh, from, inbox->bytes, fault);
    return true;
}

void by_mesh_listen(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    struct epoll_event events[EVENTS_MAX];
    int count = mesh->watch >= 0 ? epoll_wait(mesh->watch, events, EVENTS_MAX, 0) : 0;

    for (int i = 0; i < count; i++) {
        enum by_watched what = (enum by_watched)(events[i].data.u64 >> 32);
        uint32_t rank = (uint32_t)events[i].data.u64;

        if (what != BY_WATCH_NOTICES)
            by_links_hear(mesh, what, rank, fault);
        else
            while (read_one(mesh, rank, fault))
                ;
    }
}

void by_mesh_warn(struct by_host_mesh *mesh, const struct by_mesh_fault *fault)
{
    for (uint32_t rank = 0; mesh->control != NULL && rank < mesh->rank_count; rank++)
        tell(mesh, rank, KIND_FAULT, fault->rank, fault->error);
}
