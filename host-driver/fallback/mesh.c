/* Connections and messages between ranks; see mesh.h. */
#include "host-driver/fallback/mesh.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/fallback/door.h"
#include "host-driver/fallback/links.h"
#include "host-driver/fallback/pipe.h"
#include "offload/base/bytes.h"

#define MAGIC      UINT32_C(0x62796d36) /* "bym6" */
#define PIECES_MAX 64u                  /* maximum in one system call */

/* ---- opening */

/* Marks the ranks at the distances of most schedules, in both directions, and the pair that
 * measures the network; or all ranks. */
static void mark_neighbours(const struct by_circulant *circulant, const struct by_peers *peers,
                            enum by_mesh_reach reach, bool *wanted)
{
    uint32_t p = circulant->rank_count, rank = peers->rank;

    for (uint32_t other = 0; other < p; other++)
        wanted[other] = reach == BY_REACH_ALL;
    for (uint32_t k = 0; reach == BY_REACH_SCHEDULES && k < circulant->phase; k++) {
        uint32_t skip = circulant->skip[k];

        wanted[(rank + skip) % p] = wanted[(rank + p - skip) % p] = true;
    }
    if (reach == BY_REACH_SCHEDULES && (rank == 0 || rank == peers->partner))
        wanted[rank == 0 ? peers->partner : 0] = true;
    wanted[rank] = false;
}

static int fail_peer(const struct by_host_mesh *mesh, uint32_t peer, int error)
{
    char ip[BY_IP_TEXT];

    by_ip_text(mesh->ip[peer], ip);
    return by_fail(error, "rank %u cannot reach rank %u at %s: %s", mesh->rank, peer, ip,
                   errno != 0 ? by_files_reason(errno) : "it closed the connection");
}

/* Returns the ranks at the address of this one, with it. */
static uint32_t count_here(const struct by_host_mesh *mesh)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < mesh->rank_count; rank++)
        count += mesh->ip[rank] == mesh->ip[mesh->rank];
    return count;
}

/* Connects to a lower rank. Offers memory for the data if it runs on this host. */
static int greet(const struct by_host_mesh *mesh, const struct by_peers *peers, uint32_t peer,
                 enum by_mesh_channel channel, uint64_t deadline_ns)
{
    int *fd = channel == BY_CHANNEL_DATA ? &mesh->data[peer] : &mesh->control[peer];
    struct by_hello hello = {.rank = mesh->rank, .channel = channel};
    uint8_t bytes[BY_HELLO_BYTES];
    int error;

    *fd = by_peer_connect(peers->ip[peer], peers->port[peer], deadline_ns);
    if (*fd < 0)
        return fail_peer(mesh, peer, *fd);
    if (channel == BY_CHANNEL_DATA && mesh->shares && mesh->ip[peer] == mesh->ip[mesh->rank])
        mesh->pipe[peer] = by_pipe_create(by_pipe_bytes(mesh->ranks_here), &hello.offer);
    by_hello_encode(&hello, mesh->key, bytes);
    error = by_peer_write(*fd, bytes, sizeof(bytes), deadline_ns);
    return error == 0 ? 0 : fail_peer(mesh, peer, error);
}

/* Opens the memory that a rank offers, unless it is switched off, and sends the outcome. */
static void answer_offer(const struct by_host_mesh *mesh, uint32_t peer, const struct by_pipe_offer *offer)
{
    uint8_t taken;

    if (offer->pid == 0)
        return;
    if (mesh->shares)
        mesh->pipe[peer] = by_pipe_open(offer, by_pipe_bytes(mesh->ranks_here));
    taken = mesh->pipe[peer] != NULL;
    (void)!send(mesh->data[peer], &taken, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* the first byte has room */
}

/* Reads the answers to the own offers. */
static int hear_answers(const struct by_host_mesh *mesh, uint64_t deadline_ns)
{
    for (uint32_t rank = 0; rank < mesh->rank; rank++) {
        uint8_t taken = 0;
        int error;

        if (mesh->pipe[rank] == NULL)
            continue;
        error = by_peer_read(mesh->data[rank], &taken, 1, deadline_ns);
        if (error != 0)
            return fail_peer(mesh, rank, error);
        by_pipe_settle(mesh->pipe[rank]);
        if (taken)
            continue;
        by_pipe_close(mesh->pipe[rank]);
        mesh->pipe[rank] = NULL;
    }
    return 0;
}

/* Returns the slot for the connection that a greeting of `rank` announces, or NULL. */
static int *slot_for(const struct by_host_mesh *mesh, uint32_t rank, uint32_t channel)
{
    if (rank >= mesh->rank_count || rank <= mesh->rank)
        return NULL;
    return channel == BY_CHANNEL_DATA ? &mesh->data[rank] : &mesh->control[rank];
}

/* Accepts one connection from a higher rank; closes foreign connections. */
static int admit(struct by_host_mesh *mesh, struct by_door *door, uint64_t deadline_ns, uint32_t *missing)
{
    uint8_t bytes[BY_HELLO_BYTES];
    int fd = by_door_next(door, bytes, deadline_ns);
    struct by_hello hello;
    int *slot;

    if (fd < 0)
        return fd;
    slot = by_hello_decode(bytes, mesh->key, &hello) ? slot_for(mesh, hello.rank, hello.channel) : NULL;
    if (slot == NULL || *slot >= 0) {
        close(fd);
        return 0;
    }
    *slot = fd;
    --*missing;
    if (hello.channel == BY_CHANNEL_DATA)
        answer_offer(mesh, hello.rank, &hello.offer);
    return 0;
}

static int watch_all(struct by_host_mesh *mesh)
{
    mesh->watch = epoll_create1(EPOLL_CLOEXEC);
    if (mesh->watch < 0)
        return by_fail(BY_EIO, "cannot create an epoll instance for the peers of rank %u: %s", mesh->rank,
                       strerror(errno));
    for (uint32_t rank = 0; rank < mesh->rank_count; rank++)
        if (mesh->control[rank] >= 0 &&
            by_watch_set(mesh, mesh->control[rank], EPOLLIN, BY_WATCH_NOTICES, rank) != 0)
            return by_fail(BY_EIO, "cannot add rank %u to epoll: %s", rank, strerror(errno));
    return 0;
}

static int connect_all(struct by_host_mesh *mesh, const struct by_circulant *circulant,
                       const struct by_peers *peers, enum by_mesh_reach reach, uint64_t deadline_ns)
{
    bool *wanted = calloc(mesh->rank_count + 1u, sizeof(*wanted));
    struct by_door door;
    uint32_t missing = 0;
    int error = 0;

    if (wanted == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u peers", mesh->rank_count);
    mark_neighbours(circulant, peers, reach, wanted);
    for (uint32_t rank = 0; rank < mesh->rank_count; rank++)
        missing += wanted[rank] && rank > mesh->rank ? 2 : 0;
    for (uint32_t rank = 0; error == 0 && rank < mesh->rank; rank++) {
        if (!wanted[rank])
            continue;
        error = greet(mesh, peers, rank, BY_CHANNEL_DATA, deadline_ns);
        if (error == 0)
            error = greet(mesh, peers, rank, BY_CHANNEL_CONTROL, deadline_ns);
    }
    by_door_open(&door, peers->listener, BY_HELLO_BYTES);
    while (error == 0 && missing > 0) {
        char text[128];
        int why;

        error = admit(mesh, &door, deadline_ns, &missing);
        why = errno;
        by_peers_missing(mesh->control, wanted, mesh->rank + 1, mesh->rank_count, text, sizeof(text));
        errno = why;
        if (error != 0)
            by_fail(error, "rank %u waits for connections from other ranks; these have not connected: %s%s%s",
                    mesh->rank, text, error == BY_EIO ? "; " : "",
                    error == BY_EIO ? by_files_reason(errno) : "");
    }
    by_door_close(&door);
    free(wanted);
    return error == 0 ? hear_answers(mesh, deadline_ns) : error;
}

int by_mesh_open(struct by_host_mesh *mesh, const struct by_circulant *circulant, struct by_peers *peers,
                 enum by_mesh_reach reach, uint32_t key, bool shares, uint64_t deadline_ns)
{
    uint32_t count = peers->rank_count;
    int error;

    memset(mesh, 0, sizeof(*mesh));
    mesh->watch = -1;
    mesh->rank = peers->rank;
    mesh->rank_count = count;
    mesh->suspect = peers->rank;
    mesh->waits_for = mesh->rank;
    mesh->key = key;
    mesh->shares = shares;
    mesh->ip = peers->ip;
    mesh->ranks_here = count_here(mesh);
    mesh->data = malloc(count * sizeof(*mesh->data));
    mesh->control = malloc(count * sizeof(*mesh->control));
    mesh->pipe = calloc(count, sizeof(*mesh->pipe));
    mesh->gone = calloc(count, sizeof(*mesh->gone));
    mesh->inbox = calloc(count, sizeof(*mesh->inbox));
    for (uint32_t rank = 0; mesh->data != NULL && mesh->control != NULL && rank < count; rank++)
        mesh->data[rank] = mesh->control[rank] = -1;
    if (mesh->data == NULL || mesh->control == NULL || mesh->pipe == NULL || mesh->gone == NULL ||
        mesh->inbox == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u peers", count);
    error = connect_all(mesh, circulant, peers, reach, deadline_ns);
    if (error == 0)
        error = watch_all(mesh);
    if (error == 0 && reach != BY_REACH_ALL) {
        error = by_links_open(mesh, peers->port, peers->listener);
        peers->listener = -1;
    }
    return error;
}

uint64_t by_mesh_files(const struct by_host_mesh *mesh)
{
    uint64_t files = mesh->rank_count + BY_FILES_OTHER;

    for (uint32_t rank = 0; rank < mesh->rank_count; rank++)
        files += mesh->control[rank] >= 0;
    return files;
}

void by_mesh_close(struct by_host_mesh *mesh)
{
    by_links_close(mesh);
    for (uint32_t rank = 0; mesh->pipe != NULL && rank < mesh->rank_count; rank++)
        by_pipe_close(mesh->pipe[rank]);
    for (uint32_t rank = 0; mesh->data != NULL && mesh->control != NULL && rank < mesh->rank_count; rank++) {
        if (mesh->data[rank] >= 0)
            close(mesh->data[rank]);
        if (mesh->control[rank] >= 0)
            close(mesh->control[rank]);
    }
    if (mesh->watch >= 0)
        close(mesh->watch);
    free(mesh->data);
    free(mesh->control);
    free(mesh->pipe);
    free(mesh->gone);
    free(mesh->inbox);
    memset(mesh, 0, sizeof(*mesh));
    mesh->watch = -1;
}

/* ---- messages */

static void write_head(uint8_t *head, const struct by_host_message *message)
{
    by_put32(head, MAGIC);
    by_put32(head + 4, message->call);
    by_put32(head + 8, message->round);
    by_put32(head + 12, message->tag);
    by_put64(head + 16, message->bytes);
}

/* Skips empty pieces; the transfer has ended when no piece is left and the head is complete. */
static void settle(struct by_host_transfer *transfer)
{
    while (transfer->piece_at < transfer->piece_count && transfer->piece[transfer->piece_at].iov_len == 0)
        transfer->piece_at++;
    if (transfer->head_done == BY_MESSAGE_BYTES && transfer->piece_at == transfer->piece_count)
        transfer->active = false;
}

void by_mesh_send(struct by_host_mesh *mesh, uint32_t to, const struct by_host_message *message,
                  struct iovec *piece, uint32_t piece_count)
{
    mesh->send =
        (struct by_host_transfer){.active = true, .peer = to, .piece = piece, .piece_count = piece_count};
    write_head(mesh->send.head, message);
    mesh->messages++;
}

void by_mesh_receive(struct by_host_mesh *mesh, uint32_t from, const struct by_host_message *message,
                     struct iovec *piece, uint32_t piece_count)
{
    mesh->receive =
        (struct by_host_transfer){.active = true, .peer = from, .piece = piece, .piece_count = piece_count};
    mesh->expected = *message;
}

/* Lists the pieces for one system call, preceded by the rest of the head if it is sent together
 * with them. */
static uint32_t list_pieces(const struct by_host_transfer *transfer, struct iovec *list, bool with_head)
{
    uint32_t count = 0;

    if (transfer->head_done < BY_MESSAGE_BYTES)
        list[count++] = (struct iovec){(void *)(uintptr_t)(transfer->head + transfer->head_done),
                                       BY_MESSAGE_BYTES - transfer->head_done};
    if (count > 0 && !with_head)
        return count;
    for (uint32_t i = transfer->piece_at; i < transfer->piece_count && count < PIECES_MAX; i++)
        list[count++] = transfer->piece[i];
    return count;
}

static void advance(struct by_host_transfer *transfer, size_t bytes)
{
    size_t head = BY_MESSAGE_BYTES - transfer->head_done;

    if (bytes < head)
        head = bytes;
    transfer->head_done += (uint32_t)head;
    bytes -= head;
    while (bytes > 0) {
        struct iovec *piece = &transfer->piece[transfer->piece_at];
        size_t part = bytes < piece->iov_len ? bytes : piece->iov_len;

        piece->iov_base = (uint8_t *)piece->iov_base + part;
        piece->iov_len -= part;
        bytes -= part;
        if (piece->iov_len == 0)
            transfer->piece_at++;
    }
    settle(transfer);
}

/* Handles the loss of a peer; if the peer has sent a reason, that is the fault. */
static void lose(struct by_host_mesh *mesh, uint32_t peer, struct by_mesh_fault *fault)
{
    by_mesh_listen(mesh, fault);
    if (fault->error == 0)
        *fault = (struct by_mesh_fault){.error = BY_EIO, .rank = peer};
}

/* Whether a rank of this host has ended; its last bytes are in the pipe before that is known. */
static bool is_lost(const struct by_host_mesh *mesh, const struct by_host_transfer *transfer)
{
    bool sends = transfer == &mesh->send;

    return mesh->gone[transfer->peer] && (sends || !by_pipe_is_ready(mesh->pipe[transfer->peer], false));
}

/* Like sendmsg and recvmsg, for a rank of this host. */
static ssize_t move_here(struct by_host_mesh *mesh, const struct by_host_transfer *transfer,
                         const struct iovec *list, uint32_t count)
{
    uint32_t peer = transfer->peer;
    ssize_t moved = 0;

    errno = EPIPE;
    if (is_lost(mesh, transfer))
        return -1;
    moved = by_pipe_move(mesh->pipe[peer], transfer == &mesh->send, list, count, mesh->data[peer]);
    if (moved > 0 && transfer == &mesh->send)
        mesh->shared_bytes += (uint64_t)moved;
    errno = moved == 0 ? EAGAIN : EPROTO;
    return moved > 0 ? moved : -1;
}

/* Like sendmsg and recvmsg. */
static ssize_t move_pieces(struct by_host_mesh *mesh, const struct by_host_transfer *transfer,
                           struct iovec *list, uint32_t count)
{
    struct msghdr message = {.msg_iov = list, .msg_iovlen = count};

    errno = EAGAIN;
    if (mesh->data[transfer->peer] < 0)
        return -1; /* not connected yet */
    if (mesh->pipe[transfer->peer] != NULL)
        return move_here(mesh, transfer, list, count);
    return transfer == &mesh->send
               ? sendmsg(mesh->data[transfer->peer], &message, MSG_NOSIGNAL | MSG_DONTWAIT)
               : recvmsg(mesh->data[transfer->peer], &message, MSG_DONTWAIT);
}

static uint64_t send_some(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    struct iovec list[PIECES_MAX];
    uint64_t moved = 0;

    while (mesh->send.active) {
        uint32_t count = list_pieces(&mesh->send, list, true);
        ssize_t sent = move_pieces(mesh, &mesh->send, list, count);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EAGAIN)
                lose(mesh, mesh->send.peer, fault);
            break;
        }
        advance(&mesh->send, (size_t)sent);
        moved += (uint64_t)sent;
    }
    mesh->tx_bytes += moved;
    return moved;
}

static bool is_expected(const struct by_host_mesh *mesh)
{
    uint8_t head[BY_MESSAGE_BYTES];

    write_head(head, &mesh->expected);
    return memcmp(head, mesh->receive.head, sizeof(head)) == 0;
}

static uint64_t receive_some(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    struct iovec list[PIECES_MAX];
    uint64_t moved = 0;

    while (mesh->receive.active) {
        bool in_head = mesh->receive.head_done < BY_MESSAGE_BYTES;
        uint32_t count = list_pieces(&mesh->receive, list, false);
        ssize_t got = move_pieces(mesh, &mesh->receive, list, count);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN)
                lose(mesh, mesh->receive.peer, fault);
            break;
        }
        advance(&mesh->receive, (size_t)got);
        moved += (uint64_t)got;
        if (in_head && mesh->receive.head_done == BY_MESSAGE_BYTES && !is_expected(mesh)) {
            *fault = (struct by_mesh_fault){.error = BY_EMISMATCH, .rank = mesh->receive.peer};
            break;
        }
    }
    mesh->rx_bytes += moved;
    return moved;
}

/* Reads the head of a rank's next message, which stays where it is. */
static bool has_head(const struct by_host_mesh *mesh, uint32_t rank, uint8_t head[BY_MESSAGE_BYTES])
{
    if (mesh->pipe[rank] != NULL)
        return by_pipe_peek(mesh->pipe[rank], head, BY_MESSAGE_BYTES);
    return mesh->data[rank] >= 0 && recv(mesh->data[rank], head, BY_MESSAGE_BYTES, MSG_PEEK | MSG_DONTWAIT) ==
                                        (ssize_t)BY_MESSAGE_BYTES;
}

uint32_t by_mesh_stranger(const struct by_host_mesh *mesh)
{
    uint8_t head[BY_MESSAGE_BYTES];

    for (uint32_t rank = 0; rank < mesh->rank_count && mesh->receive.active; rank++)
        if (rank != mesh->receive.peer && has_head(mesh, rank, head) && by_get32(head) == MAGIC &&
            by_get32(head + 4) == mesh->expected.call && by_get32(head + 12) != mesh->expected.tag)
            return rank;
    return mesh->rank;
}

/* Reads the bells of a rank of this host after a sleep. */
static void hear_bells(struct by_host_mesh *mesh, const struct by_host_transfer *transfer)
{
    uint32_t peer = transfer->peer;
    uint8_t bells[64];
    ssize_t got = 1;

    if (!transfer->active || mesh->pipe[peer] == NULL || !by_pipe_wake(mesh->pipe[peer]))
        return;
    while (got > 0)
        got = recv(mesh->data[peer], bells, sizeof(bells), MSG_DONTWAIT);
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        mesh->gone[peer] = true;
}

/* Finds a rank of this host that has ended while a message is under way. */
static void find_lost(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    const struct by_host_transfer *both[] = {&mesh->send, &mesh->receive};

    for (int i = 0; i < 2 && fault->error == 0; i++)
        if (both[i]->active && mesh->pipe[both[i]->peer] != NULL && is_lost(mesh, both[i]))
            lose(mesh, both[i]->peer, fault);
}

uint64_t by_mesh_step(struct by_host_mesh *mesh, struct by_mesh_fault *fault)
{
    uint64_t moved = 0;

    *fault = (struct by_mesh_fault){0};
    if (mesh->links != NULL)
        by_links_need(mesh, fault);
    if (mesh->send.active && fault->error == 0)
        moved += send_some(mesh, fault);
    if (mesh->receive.active && fault->error == 0)
        moved += receive_some(mesh, fault);
    if (moved == 0 && fault->error == 0) {
        hear_bells(mesh, &mesh->send);
        hear_bells(mesh, &mesh->receive);
        by_mesh_listen(mesh, fault);
    }
    if (moved == 0 && fault->error == 0)
        find_lost(mesh, fault);
    return moved;
}

/* What to wait for in a transfer's direction: nothing without a connection. A connection that
 * carries bells is writable at any time: it ends the sleep at once if there is work already. */
static struct pollfd wait_for(const struct by_host_mesh *mesh, const struct by_host_transfer *transfer)
{
    struct by_pipe *pipe = mesh->pipe[transfer->peer];
    bool sends = transfer == &mesh->send;
    struct pollfd one = {.fd = mesh->data[transfer->peer], .events = sends ? POLLOUT : POLLIN};

    if (pipe == NULL)
        return one;
    by_pipe_doze(pipe, sends);
    one.events = by_pipe_is_ready(pipe, sends) ? POLLOUT : POLLIN;
    return one;
}

uint32_t by_mesh_fds(const struct by_host_mesh *mesh, struct pollfd *fds)
{
    uint32_t count = 0;

    fds[count++] = (struct pollfd){.fd = mesh->watch, .events = POLLIN};
    if (mesh->send.active)
        fds[count++] = wait_for(mesh, &mesh->send);
    if (mesh->receive.active)
        fds[count++] = wait_for(mesh, &mesh->receive);
    return count;
}

void by_mesh_sleep(const struct by_host_mesh *mesh, uint64_t until_ns)
{
    uint64_t now_ns = by_clock_ns(), wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct pollfd fds[BY_MESH_FDS];

    if (wait_ns > BY_MESH_SLEEP_NS)
        wait_ns = BY_MESH_SLEEP_NS;
    poll(fds, by_mesh_fds(mesh, fds), (int)((wait_ns + 999999u) / 1000000u));
}
