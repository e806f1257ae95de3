/* Bytes of a schedule's connection; see connection.h. */
#include "host-driver/schedule/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "offload/base/assert.h"
#include "offload/base/bytes.h"

#define READ_MAX ((size_t)1 << 20) /* bytes of one call, so that all connections get their turn */

void by_connection_open(struct by_schedule_connection *connection, int fd, uint32_t peer, bool sends)
{
    memset(connection, 0, sizeof(*connection));
    connection->fd = fd;
    connection->peer = peer;
    connection->sends = sends;
}

void by_connection_close(struct by_schedule_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
}

static void encode(const struct by_connection_head *head, uint8_t bytes[BY_CONNECTION_HEAD_BYTES])
{
    by_put32(bytes, (uint32_t)head->kind << 24 | head->index);
    by_put32(bytes + 4, head->operation);
    by_put32(bytes + 8, head->tag);
    by_put32(bytes + 12, 0);
    by_put64(bytes + 16, head->elements);
}

static void decode(const uint8_t bytes[BY_CONNECTION_HEAD_BYTES], struct by_connection_head *head)
{
    *head = (struct by_connection_head){.kind = (enum by_connection_kind)(by_get32(bytes) >> 24),
                                        .index = by_get32(bytes) & 0xffffff,
                                        .operation = by_get32(bytes + 4),
                                        .tag = by_get32(bytes + 8),
                                        .elements = by_get64(bytes + 16)};
}

void by_connection_send(struct by_schedule_connection *connection, const struct by_connection_head *head,
                        const void *body, size_t bytes)
{
    BY_ASSERT(connection->sends && !connection->out.active);
    connection->out = (struct by_connection_stream){
        .active = true, .body = (uint8_t *)(uintptr_t)body, .body_bytes = bytes};
    encode(head, connection->out.head);
}

bool by_connection_is_full(const struct by_schedule_connection *connection)
{
    return connection->out.active;
}

/* Sends a part. True: all is sent. */
static bool push(struct by_schedule_connection *connection, struct by_connection_stream *stream)
{
    while (stream->active) {
        struct iovec pieces[2] = {
            {stream->head + stream->head_done, BY_CONNECTION_HEAD_BYTES - stream->head_done},
            {stream->body + stream->body_done, stream->body_bytes - stream->body_done}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = stream->body_bytes > 0 ? 2 : 1};
        ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        size_t of_head;

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            connection->gone = connection->gone || (errno != EAGAIN && errno != ENOBUFS);
            return false;
        }
        connection->tx_bytes += (uint64_t)sent;
        of_head = (size_t)sent < pieces[0].iov_len ? (size_t)sent : pieces[0].iov_len;
        stream->head_done += (uint32_t)of_head;
        stream->body_done += (size_t)sent - of_head;
        stream->active =
            stream->head_done < BY_CONNECTION_HEAD_BYTES || stream->body_done < stream->body_bytes;
    }
    return true;
}

bool by_connection_push(struct by_schedule_connection *connection)
{
    if (connection->fd < 0 || connection->gone)
        return false;
    if (!connection->sends && !connection->out.active &&
        (connection->sent.operation != connection->ready.operation ||
         connection->sent.messages != connection->ready.messages)) {
        connection->out = (struct by_connection_stream){.active = true};
        connection->sent = connection->ready;
        encode(&(struct by_connection_head){.kind = BY_CONNECTION_READY,
                                            .operation = connection->ready.operation,
                                            .elements = connection->ready.messages},
               connection->out.head);
    }
    return connection->out.active && push(connection, &connection->out) && connection->sends;
}

enum by_connection_news by_connection_pull(struct by_schedule_connection *connection,
                                           struct by_connection_head *head)
{
    struct by_connection_stream *in = &connection->in;

    while (connection->fd >= 0 && !connection->gone) {
        bool at_head = in->head_done < BY_CONNECTION_HEAD_BYTES;
        uint8_t *to = at_head ? in->head + in->head_done : in->body + in->body_done;
        size_t left = at_head ? BY_CONNECTION_HEAD_BYTES - in->head_done : in->body_bytes - in->body_done;
        ssize_t got;

        if (!at_head && left == 0) {
            in->head_done = 0;
            return BY_CONNECTION_BODY;
        }
        got = recv(connection->fd, to, left < READ_MAX ? left : READ_MAX, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return BY_CONNECTION_NOTHING;
        if (got <= 0) {
            connection->gone = true;
            break;
        }
        connection->rx_bytes += (uint64_t)got;
        if (at_head) {
            in->head_done += (uint32_t)got;
            if (in->head_done == BY_CONNECTION_HEAD_BYTES) {
                decode(in->head, head);
                in->body_bytes = in->body_done = 0;
                if (head->kind != BY_CONNECTION_DATA)
                    in->head_done = 0;
                return BY_CONNECTION_HEAD;
            }
        } else {
            in->body_done += (size_t)got;
        }
    }
    return connection->gone ? BY_CONNECTION_CLOSED : BY_CONNECTION_NOTHING;
}

void by_connection_take(struct by_schedule_connection *connection, void *body, size_t bytes)
{
    connection->in.body = body;
    connection->in.body_bytes = bytes;
    connection->in.body_done = 0;
}
