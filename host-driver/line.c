/* The connection to the controller; see line.h. Thread: the communicator's. */
#include "host-driver/line.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "firmware/secure/hostport.h"
#include "host-driver/error.h"

/* A host whose data stay unacknowledged for this long reconnects (ms). */
#define SILENT_MS 3000
/* Timeouts (ns) of an attempt to connect and of a handshake; then the host tries again. */
#define CONNECT_NS UINT64_C(2000000000)
#define GREET_NS   UINT64_C(5000000000)
/* How long a controller that has been asked may be silent if there are others (ns). */
#define ANSWER_NS UINT64_C(1500000000)
/* Maximum bytes in the send queue: beyond this the controller is not reading. */
#define OUT_MAX ((size_t)256 << 20)
#define FORMS   "use unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, several with commas between"

static int read_unix(const struct by_host_line *line, const char *path, struct by_line_address *address)
{
    struct sockaddr_un *to = (struct sockaddr_un *)&address->socket;

    if (path[0] == 0 || strlen(path) >= sizeof(to->sun_path))
        return by_fail(BY_EINVAL, "BANYAN_CONTROLLER is '%s'; a path has 1 to %zu bytes", line->where,
                       sizeof(to->sun_path) - 1);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, path, strlen(path) + 1);
    address->bytes = sizeof(*to);
    return 0;
}

static int read_tcp(const struct by_host_line *line, const char *text, struct by_line_address *address)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct by_hostport to;
    int error;

    if (by_hostport_read(text, strlen(text), &to) != 0 || to.host[0] == 0)
        return by_fail(BY_EINVAL, "BANYAN_CONTROLLER is '%s'; " FORMS, line->where);
    error = getaddrinfo(to.host, to.port, &hints, &found);
    if (error != 0)
        return by_fail(BY_ENOENT, "BANYAN_CONTROLLER is '%s': %s: %s", line->where, to.host,
                       gai_strerror(error));
    memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
    address->bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int open_keys(struct by_host_line *line, const char *keys)
{
    char reason[BY_TLS_TEXT_MAX];
    int error;

    if (line->identity != NULL)
        return 0;
    if (keys[0] == 0)
        return by_fail(BY_EINVAL,
                       "BANYAN_CONTROLLER is '%s': TLS requires keys; set BANYAN_KEYS to this host's folder "
                       "of keys, which `banyan keys --host` creates",
                       line->where);
    error = by_tls_identity_open(keys, BY_TLS_HOST, &line->identity, reason);
    return error == 0 ? 0 : by_fail(error, "BANYAN_KEYS: %s", reason);
}

static int read_address(struct by_host_line *line, const char *text, const char *keys)
{
    struct by_line_address *address = &line->addresses[line->count];
    int error;

    if (line->count == BY_LINE_ADDRESSES_MAX)
        return by_fail(BY_EINVAL, "BANYAN_CONTROLLER is '%s', of more than %u addresses", line->where,
                       BY_LINE_ADDRESSES_MAX);
    address->tls = strncmp(text, "tls:", 4) == 0;
    if (strncmp(text, "unix:", 5) == 0)
        error = read_unix(line, text + 5, address);
    else if (address->tls || strncmp(text, "tcp:", 4) == 0)
        error = read_tcp(line, text + 4, address);
    else
        error = by_fail(BY_EINVAL, "BANYAN_CONTROLLER is '%s'; " FORMS, line->where);
    if (error == 0 && address->tls)
        error = open_keys(line, keys);
    line->count += error == 0;
    return error;
}

int by_host_line_open(struct by_host_line *line, const char *addresses, const char *keys)
{
    char copy[sizeof(line->where)], *rest = NULL;
    int error = 0;

    memset(line, 0, sizeof(*line));
    line->fd = -1;
    line->pause_ns = BY_LINE_PAUSE_NS;
    if ((size_t)snprintf(line->where, sizeof(line->where), "%s", addresses) >= sizeof(line->where))
        return by_fail(BY_EINVAL, "BANYAN_CONTROLLER is longer than %zu bytes", sizeof(line->where) - 1);
    snprintf(copy, sizeof(copy), "%s", addresses);
    for (char *text = strtok_r(copy, ",", &rest); text != NULL && error == 0;
         text = strtok_r(NULL, ",", &rest))
        error = read_address(line, text, keys);
    return error == 0 && line->count == 0
               ? by_fail(BY_EINVAL, "BANYAN_CONTROLLER is '%s'; " FORMS, line->where)
               : error;
}

void by_host_line_close(struct by_host_line *line)
{
    by_tls_close(line->tls);
    if (line->count > 0 && line->fd >= 0)
        close(line->fd);
    by_tls_identity_close(line->identity);
    free(line->in.bytes);
    free(line->out.bytes);
    memset(line, 0, sizeof(*line));
    line->fd = -1;
}

void by_host_line_drop(struct by_host_line *line, uint64_t now_ns, const char *why)
{
    snprintf(line->why, sizeof(line->why), "%s", why); /* `why` may be a text of the TLS stream */
    by_tls_close(line->tls);
    line->tls = NULL;
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    if (line->up)
        line->pause_ns = BY_LINE_PAUSE_NS;
    line->up = line->connected = line->full = false;
    line->asked_ns = 0;
    if (line->count > 0)
        line->at = (line->at + 1) % line->count;
    line->in.at = line->in.used = line->out.at = line->out.used = 0;
    line->retry_ns = now_ns + line->pause_ns;
    line->pause_ns = line->pause_ns * 2 < BY_LINE_PAUSE_MAX_NS ? line->pause_ns * 2 : BY_LINE_PAUSE_MAX_NS;
}

/* The connection is established. */
static void connected(struct by_host_line *line, uint64_t now_ns)
{
    line->connected = true;
    if (!line->addresses[line->at].tls) {
        line->up = true;
        return;
    }
    line->tls = by_tls_open(line->identity, line->fd);
    if (line->tls == NULL)
        by_host_line_drop(line, now_ns, "no memory for TLS");
}

/* Continues the handshake. */
static void greet(struct by_host_line *line, uint64_t now_ns)
{
    int error = by_tls_handshake(line->tls);

    if (error == 0)
        line->up = true;
    else if (error != BY_EAGAIN)
        by_host_line_drop(line, now_ns, by_tls_text(line->tls));
    else if (now_ns - line->begun_ns > GREET_NS)
        by_host_line_drop(line, now_ns, "it accepts the connection but does not authenticate");
}

static void begin(struct by_host_line *line, uint64_t now_ns)
{
    const int one = 1, silent_ms = SILENT_MS;
    const struct by_line_address *address = &line->addresses[line->at];

    line->begun_ns = now_ns;
    line->fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (line->fd < 0) {
        by_host_line_drop(line, now_ns, strerror(errno));
        return;
    }
    if (address->socket.ss_family != AF_UNIX) {
        setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(line->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
    }
    if (connect(line->fd, (const struct sockaddr *)&address->socket, address->bytes) == 0)
        connected(line, now_ns);
    else if (errno != EINPROGRESS)
        by_host_line_drop(line, now_ns, strerror(errno));
}

/* Checks whether a pending connection is established. */
static void finish(struct by_host_line *line, uint64_t now_ns)
{
    struct pollfd one = {.fd = line->fd, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof(error);

    if (poll(&one, 1, 0) <= 0) {
        if (now_ns - line->begun_ns > CONNECT_NS)
            by_host_line_drop(line, now_ns, "it does not answer");
        return;
    }
    if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
        by_host_line_drop(line, now_ns, strerror(error != 0 ? error : errno));
    else
        connected(line, now_ns);
}

/* Reserves room for `more` bytes after the waiting ones. */
static int reserve(struct by_line_queue *queue, size_t more)
{
    size_t room = queue->room > 0 ? queue->room : BY_LINE_READ_BYTES;
    uint8_t *bytes;

    if (queue->at > 0) {
        memmove(queue->bytes, queue->bytes + queue->at, queue->used - queue->at);
        queue->used -= queue->at;
        queue->at = 0;
    }
    while (room - queue->used < more)
        room *= 2;
    if (room == queue->room)
        return 0;
    bytes = realloc(queue->bytes, room);
    if (bytes == NULL)
        return BY_ENOMEM;
    queue->bytes = bytes;
    queue->room = room;
    return 0;
}

/* Returns the reason why bytes do not move. */
static const char *reason(const struct by_host_line *line)
{
    return line->tls != NULL ? by_tls_text(line->tls) : strerror(errno);
}

static int receive(struct by_host_line *line, uint64_t now_ns)
{
    int moved = 0;

    for (;;) {
        size_t most = BY_LINE_IN_MAX - (line->in.used - line->in.at);
        int64_t got;

        line->full = most == 0;
        if (line->full)
            return moved;
        if (reserve(&line->in, most < BY_LINE_READ_BYTES ? most : BY_LINE_READ_BYTES) != 0) {
            by_host_line_drop(line, now_ns, "no memory for its message");
            return moved;
        }
        if (most > line->in.room - line->in.used)
            most = line->in.room - line->in.used;
        got = by_tls_move(line->tls, line->fd, line->in.bytes + line->in.used, NULL, most);
        if (got > 0) {
            line->in.used += (size_t)got;
            moved = 1;
            /* A TLS record may be shorter than the available data. */
            if ((size_t)got < most && line->tls == NULL)
                return moved;
            continue;
        }
        /* Bytes received before the end are still processed: they may contain the reason. */
        if (got != BY_EAGAIN && !(moved && line->in.used > line->in.at))
            by_host_line_drop(line, now_ns, got == 0 ? "it closed the connection" : reason(line));
        return moved;
    }
}

static void send_queued(struct by_host_line *line, uint64_t now_ns)
{
    while (line->fd >= 0 && line->out.at < line->out.used) {
        int64_t sent = by_tls_move(line->tls, line->fd, NULL, line->out.bytes + line->out.at,
                                   line->out.used - line->out.at);

        if (sent < 0) {
            if (sent != BY_EAGAIN)
                by_host_line_drop(line, now_ns, reason(line));
            return;
        }
        line->out.at += (size_t)sent;
    }
}

enum by_line_event by_host_line_step(struct by_host_line *line, uint64_t now_ns)
{
    bool was_up = line->up;

    if (line->fd < 0) {
        if (now_ns < line->retry_ns)
            return BY_LINE_NOTHING;
        begin(line, now_ns);
    } else if (!line->connected) {
        finish(line, now_ns);
    }
    if (line->connected && !line->up)
        greet(line, now_ns);
    if (!line->up)
        return BY_LINE_NOTHING;
    if (!was_up)
        return BY_LINE_UP;
    if (line->count > 1 && line->asked_ns != 0 && now_ns - line->asked_ns > ANSWER_NS) {
        by_host_line_drop(line, now_ns, "it is connected but does not answer");
        return BY_LINE_NOTHING;
    }
    send_queued(line, now_ns);
    return line->up && receive(line, now_ns) ? BY_LINE_MOVED : BY_LINE_NOTHING;
}

void by_host_line_put(struct by_host_line *line, const struct by_member_frame *frame, uint64_t now_ns)
{
    if (!line->up)
        return;
    if (line->out.used - line->out.at > OUT_MAX ||
        reserve(&line->out, BY_MEMBER_FIXED_MAX + frame->bytes) != 0) {
        by_host_line_drop(line, now_ns, "it accepts no more data");
        return;
    }
    line->out.used += by_member_put(frame, line->out.bytes + line->out.used);
    if (frame->bytes > 0)
        memcpy(line->out.bytes + line->out.used, frame->data, frame->bytes);
    line->out.used += frame->bytes;
    send_queued(line, now_ns);
}

void by_host_line_ask(struct by_host_line *line, uint64_t now_ns)
{
    if (line->up && line->asked_ns == 0)
        line->asked_ns = now_ns;
}

int by_host_line_get(struct by_host_line *line, struct by_member_frame *frame, uint64_t now_ns)
{
    char text[sizeof(line->why)];
    size_t used;
    int error;

    if (!line->up)
        return BY_EAGAIN;
    error = by_member_get(line->in.bytes + line->in.at, line->in.used - line->in.at, BY_MEMBER_CONTROLLER,
                          frame, &used);
    if (error == BY_EAGAIN && used > line->in.room && reserve(&line->in, used) != 0)
        error = BY_ENOMEM;
    if (error == 0) {
        line->in.at += used;
        line->asked_ns = 0;
    }
    if (error == 0 || error == BY_EAGAIN)
        return error;
    if (error == BY_ELIMIT)
        snprintf(
            text, sizeof(text),
            "it sent a frame of more than %zu bytes, the limit of its type; is it a banyand of this version?",
            used);
    by_host_line_drop(line, now_ns,
                      error == BY_ELIMIT     ? text
                      : error == BY_EVERSION ? "it uses another protocol version"
                                             : "it is not a banyand");
    return BY_EAGAIN;
}

uint64_t by_host_line_deadline(const struct by_host_line *line)
{
    return line->fd < 0 ? line->retry_ns : line->full ? 0 : UINT64_MAX;
}

uint32_t by_host_line_fds(const struct by_host_line *line, struct pollfd *fds)
{
    if (line->fd < 0)
        return 0;
    fds[0] = (struct pollfd){.fd = line->fd, .events = POLLIN};
    if (line->connected && !line->up)
        fds[0].events = by_tls_events(line->tls);
    else if (!line->up || line->out.at < line->out.used)
        fds[0].events |= POLLOUT;
    return 1;
}
