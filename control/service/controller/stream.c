/* Streams of control messages: sockets, deadlines, TLS and the key mode. See stream.h. */
#include "control/service/controller/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/controller/dial.h"
#include "control/service/controller/message.h"
#include "control/service/controller/psk_file.h"
#include "firmware/secure/psk.h"
#include "firmware/secure/tls.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* Prefix of an address that requires a pre-shared key. */
#define PSK "psk+"
/* A serial line has one client at a time, so the first answers may belong to the previous client.
 * This is the number of such answers that are skipped, and the wait for each next one (ms). */
#define OTHERS_MAX 3u
#define OTHERS_MS  250
/* A message and its frame in key mode (bytes). */
#define FRAME_BYTES_MAX (BY_MESSAGE_LENGTH_BYTES + BY_PSK_BYTES + BY_MESSAGE_BYTES_MAX)

struct by_stream {
    int fd;
    struct by_session_options options;
    struct by_tls_identity *identity;
    struct by_tls *tls; /* NULL: without TLS */
    bool is_keyed;
    struct by_siphash_key key;
    struct by_psk psk;
    char address[256];
    struct by_dial dial;
    size_t have; /* bytes of the stream in `in` */
    size_t done; /* of these, the bytes of the last message returned */
    uint8_t in[FRAME_BYTES_MAX];
    uint8_t out[FRAME_BYTES_MAX];
};

/* Waits for the socket. Returns BY_ETIMEDOUT at the deadline. */
static int wait_for(const struct by_stream *stream, short events, int64_t deadline,
                    struct by_problem *problem)
{
    return by_dial_wait(&stream->dial, stream->fd, events, deadline, problem);
}

static int connect_tcp(struct by_stream *stream, const char *text, struct by_problem *problem)
{
    return by_dial_tcp(&stream->dial, text, strlen(text), by_stream_deadline(stream), &stream->fd, problem);
}

/* Performs the TLS handshake on the connected socket. */
static int secure(struct by_stream *stream, struct by_problem *problem)
{
    int64_t deadline = by_dial_now_ms() + stream->options.timeout_ms;
    char text[BY_TLS_TEXT_MAX];
    int error;

    stream->tls = by_tls_open(stream->identity, stream->fd);
    if (stream->tls == NULL)
        return by_problem_say(problem, BY_EIO, "%s: no memory for TLS", stream->address);
    while ((error = by_tls_handshake(stream->tls)) == BY_EAGAIN) {
        error = wait_for(stream, by_tls_events(stream->tls), deadline, problem);
        if (error != 0)
            return error;
    }
    if (error == 0)
        return 0;
    snprintf(text, sizeof(text), "%s", by_tls_text(stream->tls));
    return by_problem_say(problem, error, "%s: %s", stream->address, text);
}

/* Reads the keys before it connects, because a wrong key is an error of the caller (BY_EINVAL). */
static int connect_tls(struct by_stream *stream, const char *text, struct by_problem *problem)
{
    char reason[BY_TLS_TEXT_MAX];
    int error;

    if (stream->options.keys == NULL)
        return by_problem_say(
            problem, BY_EINVAL,
            "%s: TLS requires keys: name their folder with --keys or BANYAN_KEYS; `banyan keys` makes them",
            stream->address);
    if (by_tls_identity_open(stream->options.keys, BY_TLS_CONTROLLER, &stream->identity, reason) != 0)
        return by_problem_say(problem, BY_EINVAL, "%s", reason);
    error = connect_tcp(stream, text, problem);
    return error != 0 ? error : secure(stream, problem);
}

/* Sends or receives as many bytes as possible now. Returns the number of bytes, 0 at the end of the
 * stream, BY_EAGAIN with the events to wait for in `*events`, or another error with `problem`. */
static int64_t move_bytes(struct by_stream *stream, void *into, const void *from, size_t bytes, short *events,
                          struct by_problem *problem)
{
    int64_t count = by_tls_move(stream->tls, stream->fd, into, from, bytes);

    *events = stream->tls != NULL ? by_tls_events(stream->tls) : from ? POLLOUT : POLLIN;
    if (count >= 0 || count == BY_EAGAIN)
        return count;
    if (stream->tls != NULL)
        return by_problem_say(problem, (int)count, "%s: %s", stream->address, by_tls_text(stream->tls));
    return by_problem_say(problem, BY_EIO, "%s: the connection is lost: %s", stream->address,
                          strerror(errno));
}

static int send_all(struct by_stream *stream, const uint8_t *from, size_t bytes, int64_t deadline,
                    struct by_problem *problem)
{
    for (size_t done = 0; done < bytes;) {
        short events;
        int64_t count = move_bytes(stream, NULL, from + done, bytes - done, &events, problem);

        if (count > 0)
            done += (size_t)count;
        else if (count != BY_EAGAIN)
            return (int)count;
        else if ((count = wait_for(stream, events, deadline, problem)) != 0)
            return (int)count;
    }
    return 0;
}

/* Reads until a whole frame is at `in`. `*bytes` includes its length field. */
static int receive_frame(struct by_stream *stream, int64_t deadline, size_t *bytes,
                         struct by_problem *problem)
{
    memmove(stream->in, stream->in + stream->done, stream->have - stream->done);
    stream->have -= stream->done;
    stream->done = 0;
    for (;;) {
        short events;
        int64_t count;

        if (stream->have >= BY_MESSAGE_LENGTH_BYTES) {
            *bytes = BY_MESSAGE_LENGTH_BYTES + (size_t)by_get32(stream->in);
            if (*bytes > sizeof(stream->in))
                return by_problem_say(problem, BY_EFORMAT, "%s: the answer is not from a banyan switch: %s",
                                      stream->address, by_error_text(BY_EFORMAT));
            if (*bytes <= stream->have)
                return 0;
        }
        count = move_bytes(stream, stream->in + stream->have, NULL, sizeof(stream->in) - stream->have,
                           &events, problem);
        if (count == 0)
            return by_problem_say(problem, BY_EIO, "%s: the switch closed the connection", stream->address);
        if (count == BY_EAGAIN)
            count = wait_for(stream, events, deadline, problem);
        else if (count > 0)
            stream->have += (size_t)count;
        if (count < 0)
            return (int)count;
    }
}

/* Reports why the frame of `bytes` at `in` fails authentication. A switch that refuses a client
 * answers without a tag; the problem quotes this text as unauthenticated. */
static int distrust(const struct by_stream *stream, enum by_psk_fault fault, size_t bytes,
                    struct by_problem *problem)
{
    by_Response *response;
    size_t used;
    int error;

    if (fault != BY_PSK_PLAIN)
        return by_problem_say(problem, BY_EPERM,
                              "%s: the other end does not have our key, or its answer was modified: check "
                              "that %s is the key of this switch",
                              stream->address, stream->options.psk);
    response = by_alloc(1, sizeof(*response));
    if (by_message_decode(stream->in, bytes, response, &used) == 0 && response->error != 0)
        error =
            by_problem_say(problem, BY_EPERM, "%s: it refuses this client, in an answer without a tag: %s",
                           stream->address, response->text);
    else
        error =
            by_problem_say(problem, BY_EPERM, "%s: it answers without a tag: check that the switch has a key",
                           stream->address);
    free(response);
    return error;
}

/* Begins a session under the key. The switch proves that it has the key. */
static int greet(struct by_stream *stream, struct by_problem *problem)
{
    int64_t deadline = by_stream_deadline(stream);
    uint8_t nonce[BY_PSK_NONCE_BYTES];
    enum by_psk_fault fault;
    size_t bytes = 0;
    int error;

    if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
        return by_problem_say(problem, BY_EIO, "%s: no random bytes: %s", stream->address, strerror(errno));
    by_put32(stream->out, BY_PSK_OPEN_BYTES);
    by_psk_open(stream->out + BY_MESSAGE_LENGTH_BYTES, nonce);
    error = send_all(stream, stream->out, BY_MESSAGE_LENGTH_BYTES + BY_PSK_OPEN_BYTES, deadline, problem);
    if (error == 0)
        error = receive_frame(stream, deadline, &bytes, problem);
    for (unsigned i = 0; error == 0; i++) {
        stream->done = bytes;
        fault = by_psk_accept(&stream->psk, &stream->key, nonce, stream->in + BY_MESSAGE_LENGTH_BYTES,
                              bytes - BY_MESSAGE_LENGTH_BYTES);
        if (fault == BY_PSK_FINE)
            return 0;
        if (fault == BY_PSK_PLAIN || i == OTHERS_MAX ||
            receive_frame(stream, by_dial_now_ms() + OTHERS_MS, &bytes, problem) != 0)
            return distrust(stream, fault, bytes, problem);
    }
    return error;
}

/* Reads the key before it connects, because a wrong key is an error of the caller (BY_EINVAL). */
static int read_key(struct by_stream *stream, struct by_problem *problem)
{
    if (stream->options.psk == NULL)
        return by_problem_say(problem, BY_EINVAL,
                              "%s: psk+ requires a pre-shared key: name its file with --psk or BANYAN_PSK; "
                              "`banyan keys --psk FILE` makes one",
                              stream->address);
    return by_psk_file_read(stream->options.psk, &stream->key, problem) == 0 ? 0 : BY_EINVAL;
}

static int open_address(struct by_stream *stream, struct by_problem *problem)
{
    const char *text = stream->address;
    int error = 0;

    stream->is_keyed = strncmp(text, PSK, strlen(PSK)) == 0;
    if (stream->is_keyed) {
        text += strlen(PSK);
        error = read_key(stream, problem);
    }
    if (error != 0)
        return error;
    if (strncmp(text, "unix:", 5) == 0)
        error = by_dial_unix(&stream->dial, text + 5, by_stream_deadline(stream), &stream->fd, problem);
    else if (strncmp(text, "tcp:", 4) == 0)
        error = connect_tcp(stream, text + 4, problem);
    else if (strncmp(text, "tls:", 4) == 0 && !stream->is_keyed)
        error = connect_tls(stream, text + 4, problem);
    else
        error = by_problem_say(problem, BY_EINVAL,
                               "'%s' is not an address: write unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, or "
                               "psk+ and one of the first two",
                               stream->address);
    return error == 0 && stream->is_keyed ? greet(stream, problem) : error;
}

int by_stream_open(const char *address, const struct by_session_options *options, struct by_stream **result,
                   struct by_problem *problem)
{
    struct by_stream *stream = by_alloc(1, sizeof(*stream));
    int error;

    stream->fd = -1;
    stream->options = *options;
    snprintf(stream->address, sizeof(stream->address), "%s", address);
    stream->dial = (struct by_dial){.address = stream->address,
                                    .form = strstr(address, "tls:") != NULL           ? "tls:HOST:PORT"
                                            : strncmp(address, PSK, strlen(PSK)) == 0 ? "psk+tcp:HOST:PORT"
                                                                                      : "tcp:HOST:PORT",
                                    .silent = "check that the switch is alive, or wait longer with --timeout",
                                    .refused = "check that the switch runs with this --control address",
                                    .timeout_ms = options->timeout_ms,
                                    .stop_fd = options->stop_fd};
    error = open_address(stream, problem);
    if (error != 0) {
        by_stream_close(stream);
        return error;
    }
    *result = stream;
    return 0;
}

void by_stream_close(struct by_stream *stream)
{
    if (stream == NULL)
        return;
    by_tls_close(stream->tls);
    by_tls_identity_close(stream->identity);
    if (stream->fd >= 0)
        close(stream->fd);
    explicit_bzero(stream, sizeof(*stream));
    free(stream);
}

int by_stream_fd(const struct by_stream *stream)
{
    return stream->fd;
}

const char *by_stream_address(const struct by_stream *stream)
{
    return stream->address;
}

const char *by_stream_peer(const struct by_stream *stream)
{
    return stream->tls != NULL ? by_tls_peer(stream->tls) : NULL;
}

bool by_stream_is_exposed(const struct by_stream *stream)
{
    return strncmp(stream->address + (stream->is_keyed ? strlen(PSK) : 0), "tcp:", 4) == 0;
}

void by_stream_limit(struct by_stream *stream, uint32_t timeout_ms, int stop_fd)
{
    stream->dial.stop_fd = stop_fd;
    stream->options.timeout_ms = stream->dial.timeout_ms = timeout_ms;
}

int64_t by_stream_deadline(const struct by_stream *stream)
{
    return by_dial_now_ms() + stream->options.timeout_ms;
}

int64_t by_stream_deadline_now(void)
{
    return by_dial_now_ms();
}

uint8_t *by_stream_room(struct by_stream *stream)
{
    return stream->out + BY_PSK_HEAD_BYTES;
}

int by_stream_send(struct by_stream *stream, size_t bytes, int64_t deadline, struct by_problem *problem)
{
    if (!stream->is_keyed)
        return send_all(stream, by_stream_room(stream), bytes, deadline, problem);
    bytes = by_psk_seal(&stream->psk, stream->out + BY_MESSAGE_LENGTH_BYTES, bytes - BY_MESSAGE_LENGTH_BYTES);
    by_put32(stream->out, (uint32_t)bytes);
    return send_all(stream, stream->out, BY_MESSAGE_LENGTH_BYTES + bytes, deadline, problem);
}

int by_stream_receive(struct by_stream *stream, int64_t deadline, const uint8_t **message, size_t *bytes,
                      struct by_problem *problem)
{
    enum by_psk_fault fault;
    int error = receive_frame(stream, deadline, bytes, problem);

    if (error != 0)
        return error;
    stream->done = *bytes;
    *message = stream->in;
    if (!stream->is_keyed)
        return 0;
    fault =
        by_psk_unseal(&stream->psk, stream->in + BY_MESSAGE_LENGTH_BYTES, *bytes - BY_MESSAGE_LENGTH_BYTES);
    if (fault != BY_PSK_FINE)
        return distrust(stream, fault, *bytes, problem);
    /* The message's own length overwrites the end of the head, which has been checked. */
    *bytes -= BY_PSK_BYTES;
    by_put32(stream->in + BY_PSK_HEAD_BYTES, (uint32_t)(*bytes - BY_MESSAGE_LENGTH_BYTES));
    *message = stream->in + BY_PSK_HEAD_BYTES;
    return 0;
}
