/* Messages between two ranks over TCP streams; see net.h. Each object is used under its lock. */
#include "host-driver/plugin/nccl/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/meet.h"

#define HEADER_MAGIC 0x4753454du /* "MESG" */
#define HEADER_BYTES 16u         /* magic (4), tag (4), size (8); little-endian */
#define PART_LEAST   65536u      /* fewer bytes are not worth another stream */
#define MOVES_MAX    16          /* system calls for a stream in one call of NCCL */
#define MOVE_BYTES   262144u     /* limit of each; with the above, a call copies 4 MiB for a stream */
#define CHECK_NS     1000000000u /* period of looking for a dead peer behind a full buffer */

struct net_request {
    bool used;
    bool known; /* receiver: the header has arrived */
    unsigned generation;
    unsigned passed; /* streams that have moved their part */
    char *data;
    size_t room, bytes;
    int tag;
};

struct net_stream {
    int file;
    uint64_t sequence; /* of the message that it moves */
    size_t moved;      /* bytes of its part */
    unsigned header_moved;
    uint8_t header[HEADER_BYTES];
    uint64_t checked_ns;
};

struct net_comm {
    void *handle;
    bool sends;
    int failed; /* result of all later calls, or 0 */
    unsigned streams;
    uint64_t timeout_ns;
    uint64_t next; /* sequence of the next request; its place is the rest modulo the limit */
    struct net_stream at[BY_NCCL_STREAMS_MAX];
    struct net_request requests[BY_NCCL_REQUESTS_MAX];
    struct by_nccl_memories memories;
};

/* ---- headers and parts ---- */

static void write_header(uint8_t *header, int tag, uint64_t bytes)
{
    uint32_t words[4] = {HEADER_MAGIC, (uint32_t)tag, (uint32_t)bytes, (uint32_t)(bytes >> 32)};

    for (unsigned i = 0; i < HEADER_BYTES; i++)
        header[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

static uint32_t word_of(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The part of a message of `bytes` that stream `index` moves. Both ends compute it alike. */
static size_t part_of(size_t bytes, unsigned streams, unsigned index, size_t *start)
{
    size_t share = (bytes + streams - 1) / streams;

    if (share < PART_LEAST)
        share = PART_LEAST;
    share = (share + 63) & ~(size_t)63;
    *start = (size_t)index * share;
    if (*start >= bytes)
        return 0;
    return bytes - *start < share ? bytes - *start : share;
}

/* ---- failures ---- */

static int fail(struct net_comm *comm, int result, const char *what)
{
    comm->failed = result;
    return by_nccl_fail(result, "a connection is given up: %s", what);
}

static int fail_errno(struct net_comm *comm)
{
    char text[BY_NCCL_TEXT_MAX];

    snprintf(text, sizeof(text), "the peer has ended or is not reachable (%s)", strerror(errno));
    return fail(comm, BY_NCCL_REMOTE, text);
}

/* A peer that acknowledges nothing for the timeout is dead: neither data nor, if it does not read
 * and its window is full, two probes of the window, of which the last may be on its way. */
static int check_peer(struct net_comm *comm, struct net_stream *stream)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info);
    uint64_t now = by_nccl_now();
    bool owes;

    if (now - stream->checked_ns < CHECK_NS)
        return BY_NCCL_OK;
    stream->checked_ns = now;
    if (getsockopt(stream->file, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        return BY_NCCL_OK;
    owes = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) || info.tcpi_probes > 1;
    if (!owes || (uint64_t)info.tcpi_last_ack_recv * 1000000u < comm->timeout_ns)
        return BY_NCCL_OK;
    return fail(comm, BY_NCCL_REMOTE, "the peer has acknowledged nothing for BANYAN_TIMEOUT");
}

/* ---- moving data ---- */

/* The result of a system call: 1 to go on, 0 to stop for now, < 0 if the connection has failed. */
static int judge(struct net_comm *comm, struct net_stream *stream, ssize_t moved)
{
    if (moved > 0)
        return 1;
    if (moved == 0)
        return -fail(comm, BY_NCCL_REMOTE, "the peer has closed it");
    if (errno == EINTR)
        return 1;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return -fail_errno(comm);
    return comm->sends ? -check_peer(comm, stream) : 0;
}

static int send_part(struct net_comm *comm, struct net_stream *stream, unsigned header_bytes, char *data,
                     size_t bytes)
{
    struct iovec parts[2] = {{stream->header + stream->header_moved, header_bytes - stream->header_moved},
                             {data, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = bytes > 0 ? 2 : 1};
    ssize_t sent = sendmsg(stream->file, &message, MSG_NOSIGNAL);
    int go = judge(comm, stream, sent);

    if (go > 0 && sent > 0) {
        size_t of_header = (size_t)sent < parts[0].iov_len ? (size_t)sent : parts[0].iov_len;

        stream->header_moved += (unsigned)of_header;
        stream->moved += (size_t)sent - of_header;
    }
    return go;
}

/* Receives the header of a message: -, 0, 1 as above. */
static int receive_header(struct net_comm *comm, struct net_stream *stream, struct net_request *request)
{
    ssize_t got =
        recv(stream->file, stream->header + stream->header_moved, HEADER_BYTES - stream->header_moved, 0);
    int go = judge(comm, stream, got);
    uint64_t bytes;
    char text[BY_NCCL_TEXT_MAX];

    if (go <= 0 || got < 0)
        return go;
    stream->header_moved += (unsigned)got;
    if (stream->header_moved < HEADER_BYTES)
        return 1;
    bytes = word_of(stream->header + 8) | (uint64_t)word_of(stream->header + 12) << 32;
    if (word_of(stream->header) != HEADER_MAGIC)
        return -fail(comm, BY_NCCL_INTERNAL, "its data are damaged: a message does not start with a header");
    if ((int)word_of(stream->header + 4) != request->tag) {
        snprintf(text, sizeof(text), "the peer sent a message with tag %d where tag %d was to be received",
                 (int)word_of(stream->header + 4), request->tag);
        return -fail(comm, BY_NCCL_USAGE, text);
    }
    if (bytes > request->room) {
        snprintf(text, sizeof(text), "the peer sent %llu bytes, and the receive has room for %zu",
                 (unsigned long long)bytes, request->room);
        return -fail(comm, BY_NCCL_USAGE, text);
    }
    request->bytes = (size_t)bytes;
    request->known = true;
    return 1;
}

static int receive_part(struct net_comm *comm, struct net_stream *stream, char *data, size_t bytes)
{
    ssize_t got = recv(stream->file, data, bytes, 0);
    int go = judge(comm, stream, got);

    if (go > 0 && got > 0)
        stream->moved += (size_t)got;
    return go;
}

/* One system call for a message on a stream; *passed = true at the end of its part. */
static int move(struct net_comm *comm, unsigned index, struct net_request *request, bool *passed)
{
    struct net_stream *stream = &comm->at[index];
    unsigned header_bytes = index == 0 ? HEADER_BYTES : 0;
    size_t start, part, rest;
    int go = 1;

    if (!comm->sends && !request->known)
        return index == 0 ? receive_header(comm, stream, request) : 0;
    part = part_of(request->bytes, comm->streams, index, &start);
    rest = part - stream->moved < MOVE_BYTES ? part - stream->moved : MOVE_BYTES;
    if (comm->sends && (stream->header_moved < header_bytes || rest > 0)) {
        if (index == 0 && stream->header_moved == 0)
            write_header(stream->header, request->tag, request->bytes);
        go = send_part(comm, stream, header_bytes, rest > 0 ? request->data + start + stream->moved : NULL,
                       rest);
    } else if (!comm->sends && rest > 0) {
        go = receive_part(comm, stream, request->data + start + stream->moved, rest);
    }
    *passed = stream->moved == part && stream->header_moved == header_bytes;
    return go;
}

/* Moves data until the kernel's buffers are full or empty, or for a bounded number of calls. */
static int progress(struct net_comm *comm)
{
    for (unsigned index = 0; comm->failed == 0 && index < comm->streams; index++) {
        struct net_stream *stream = &comm->at[index];
        int go = 1;

        for (unsigned moves = 0; go > 0 && moves < MOVES_MAX && stream->sequence < comm->next; moves++) {
            struct net_request *request = &comm->requests[stream->sequence % BY_NCCL_REQUESTS_MAX];
            bool passed = false;

            go = move(comm, index, request, &passed);
            if (!passed)
                continue;
            request->passed++;
            stream->sequence++;
            stream->moved = 0;
            stream->header_moved = 0;
        }
        if (go < 0)
            return -go;
    }
    return comm->failed;
}

/* ---- connections ---- */

static void free_comm(void *object)
{
    struct net_comm *comm = object;

    for (unsigned i = 0; i < comm->streams; i++)
        close(comm->at[i].file);
    by_nccl_memories_free(&comm->memories);
    free(comm);
}

/* Takes over the files. */
static int make_comm(bool sends, const int *files, unsigned streams, void **handle)
{
    struct net_comm *comm = calloc(1, sizeof(*comm));
    int result;

    if (comm == NULL) {
        for (unsigned i = 0; i < streams; i++)
            close(files[i]);
        return by_nccl_fail(BY_NCCL_SYSTEM, "insufficient memory for a connection");
    }
    comm->sends = sends;
    comm->streams = streams;
    comm->timeout_ns = by_nccl_settings().timeout_ns;
    for (unsigned i = 0; i < streams; i++)
        comm->at[i].file = files[i];
    /* no other thread has the handle yet, so `handle` of the object needs no lock */
    result =
        by_nccl_keep(sends ? BY_NCCL_SENDER : BY_NCCL_RECEIVER, comm, free_comm, "connection", &comm->handle);
    if (result == BY_NCCL_OK)
        *handle = comm->handle;
    return result;
}

int by_nccl_listen(int device, void *handle, void **listener)
{
    return by_nccl_listen_for(device, BY_NCCL_FOR_MESSAGES, handle, listener);
}

static int begin_visit(void *handle, void **visit)
{
    struct by_nccl_visit *made;
    uint64_t number;
    int result;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return by_nccl_fail(BY_NCCL_SYSTEM, "the system gives no random numbers: %s", strerror(errno));
    result = by_nccl_visit_open(handle, BY_NCCL_FOR_MESSAGES, number, &made);
    if (result != BY_NCCL_OK)
        return result;
    return by_nccl_keep(BY_NCCL_CONNECTING, made, by_nccl_visit_free, "connection", visit);
}

int by_nccl_connect(void *handle, void **sender)
{
    int files[BY_NCCL_STREAMS_MAX];
    struct by_nccl_visit *visit;
    void *number;
    unsigned streams;
    int step;

    if (handle == NULL || sender == NULL)
        return BY_NCCL_ARGUMENT;
    *sender = NULL;
    number = by_nccl_handle_visit(handle);
    if (number == NULL) {
        step = begin_visit(handle, &number);
        if (step != BY_NCCL_OK)
            return step;
        by_nccl_handle_set_visit(handle, number);
    }
    visit = by_nccl_enter(number, BY_NCCL_CONNECTING);
    if (visit == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "a handle is damaged: it names a connection that does not exist");
    streams = visit->streams;
    step = by_nccl_visit_step(visit, files);
    by_nccl_leave(number);
    if (step == 0)
        return BY_NCCL_OK;
    by_nccl_handle_set_visit(handle, NULL);
    by_nccl_visit_free(by_nccl_remove(number, BY_NCCL_CONNECTING));
    return step < 0 ? -step : make_comm(true, files, streams, sender);
}

int by_nccl_accept(void *handle, void **receiver)
{
    struct by_nccl_listener *listener = by_nccl_enter(handle, BY_NCCL_LISTENER);
    int files[BY_NCCL_STREAMS_MAX];
    uint64_t number;
    unsigned streams;
    int step;

    if (listener == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "accept: %p is not an open listener", handle);
    *receiver = NULL;
    streams = listener->streams;
    step = by_nccl_listener_take(listener, &number, files);
    by_nccl_leave(handle);
    return step <= 0 ? -step : make_comm(false, files, streams, receiver);
}

static int close_comm(void *handle, enum by_nccl_kind kind, const char *what)
{
    struct net_comm *comm = by_nccl_remove(handle, kind);

    if (comm == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "close: %p is not an open %s", handle, what);
    free_comm(comm);
    return BY_NCCL_OK;
}

int by_nccl_close_sender(void *sender)
{
    return close_comm(sender, BY_NCCL_SENDER, "sender");
}

int by_nccl_close_receiver(void *receiver)
{
    return close_comm(receiver, BY_NCCL_RECEIVER, "receiver");
}

int by_nccl_close_listener(void *handle)
{
    struct by_nccl_listener *listener = by_nccl_remove(handle, BY_NCCL_LISTENER);

    if (listener == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "close: %p is not an open listener", handle);
    by_nccl_listener_free(listener);
    return BY_NCCL_OK;
}

/* ---- memory ---- */

/* The connection, sender or receiver, with its lock held. */
static struct net_comm *enter_either(void *handle)
{
    struct net_comm *comm = by_nccl_enter(handle, BY_NCCL_SENDER);

    return comm != NULL ? comm : by_nccl_enter(handle, BY_NCCL_RECEIVER);
}

int by_nccl_add_memory(void *handle, void *data, size_t bytes, int kind, void **memory)
{
    struct net_comm *comm = enter_either(handle);
    int result;

    if (comm == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "registration: %p is not an open connection", handle);
    result = by_nccl_memory_add(&comm->memories, data, bytes, kind, memory);
    by_nccl_leave(handle);
    return result;
}

int by_nccl_remove_memory(void *handle, void *memory)
{
    struct net_comm *comm = enter_either(handle);
    int result;

    if (comm == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "registration: %p is not an open connection", handle);
    result = by_nccl_memory_remove(&comm->memories, memory);
    by_nccl_leave(handle);
    return result;
}

/* ---- requests ---- */

/* Posts a send or a receive, with the connection's lock held. */
static int post(struct net_comm *comm, void *data, size_t bytes, int tag, void *memory, void **request)
{
    unsigned place = (unsigned)(comm->next % BY_NCCL_REQUESTS_MAX);
    struct net_request *made = &comm->requests[place];

    if (comm->failed != 0)
        return comm->failed;
    if (bytes > BY_NCCL_MESSAGE_BYTES_MAX)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "a message has %zu bytes; the limit, which the properties state, "
                            "is %zu",
                            bytes, BY_NCCL_MESSAGE_BYTES_MAX);
    if (!by_nccl_memory_holds(&comm->memories, memory, data, bytes))
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "%zu bytes at %p are not in the registered buffer %p of this "
                            "connection",
                            bytes, data, memory);
    if (made->used)
        return BY_NCCL_OK;
    made->used = true;
    made->known = comm->sends;
    made->generation = (made->generation + 1) & 0xfffu;
    made->passed = 0;
    made->data = data;
    made->room = bytes;
    made->bytes = comm->sends ? bytes : 0;
    made->tag = tag;
    comm->next++;
    *request = by_nccl_ticket_make(comm->handle, place, made->generation);
    progress(comm); /* a failure is reported by `test` */
    return BY_NCCL_OK;
}

static int post_on(void *handle, enum by_nccl_kind kind, void *data, size_t bytes, int tag, void *memory,
                   void **request)
{
    struct net_comm *comm = by_nccl_enter(handle, kind);
    int result;

    if (comm == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "%s: %p is not an open connection of this direction",
                            kind == BY_NCCL_SENDER ? "send" : "receive", handle);
    *request = NULL;
    result = post(comm, data, bytes, tag, memory, request);
    by_nccl_leave(handle);
    return result;
}

int by_nccl_send(void *sender, void *data, size_t bytes, int tag, void *memory, void **request)
{
    return post_on(sender, BY_NCCL_SENDER, data, bytes, tag, memory, request);
}

int by_nccl_receive(void *receiver, void *data, size_t bytes, int tag, void *memory, void **request)
{
    return post_on(receiver, BY_NCCL_RECEIVER, data, bytes, tag, memory, request);
}

int by_nccl_test(void *number, int *done, int *bytes)
{
    struct by_nccl_ticket ticket;
    struct net_request *request;
    struct net_comm *comm = NULL;
    int result;

    if (done == NULL)
        return BY_NCCL_ARGUMENT;
    *done = 0;
    if (by_nccl_ticket_read(number, &ticket) && ticket.index < BY_NCCL_REQUESTS_MAX &&
        (ticket.kind == BY_NCCL_SENDER || ticket.kind == BY_NCCL_RECEIVER))
        comm = by_nccl_enter(ticket.owner, ticket.kind);
    if (comm == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "test: %p is not a request of an open connection", number);
    request = &comm->requests[ticket.index];
    if (!request->used || request->generation != ticket.generation) {
        by_nccl_leave(ticket.owner);
        return by_nccl_fail(BY_NCCL_ARGUMENT, "test: request %p has been completed before", number);
    }
    result = request->passed == comm->streams ? BY_NCCL_OK : progress(comm);
    if (request->passed == comm->streams) {
        result = BY_NCCL_OK;
        *done = 1;
        if (bytes != NULL)
            *bytes = (int)request->bytes;
        request->used = false;
    }
    by_nccl_leave(ticket.owner);
    return result;
}
