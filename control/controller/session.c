/* One connection of the controller: a socket, a deadline, and one request at a time. Neighbours: message.c
 * codes; push.c uses many. */
#include "control/controller/session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/controller/delta.h"
#include "control/controller/dial.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/table/image.h"
#include "secure/tls.h"

#define CHUNK_BYTES 16384u
#define PIECES_MAX  (sizeof(((by_Stage *)0)->pieces) / sizeof(by_Piece))

struct by_session {
    int fd;
    struct by_dial dial;
    struct by_session_options options;
    struct by_tls_identity *identity;
    struct by_tls *tls; /* NULL: the bytes go as they are */
    uint64_t next_id;
    uint64_t sent; /* bytes of requests */
    char address[256];
    by_Response response;
    size_t have; /* bytes of the stream in `in` */
    uint8_t in[BY_MESSAGE_LENGTH_BYTES + BY_MESSAGE_BYTES_MAX];
    uint8_t out[BY_MESSAGE_LENGTH_BYTES + BY_MESSAGE_BYTES_MAX];
};

/* Waits for the socket; BY_ETIMEDOUT at the deadline. */
static int wait_for(const struct by_session *session, short events, int64_t deadline,
                    struct by_problem *problem)
{
    return by_dial_wait(&session->dial, session->fd, events, deadline, problem);
}

static int connect_tcp(struct by_session *session, const char *text, struct by_problem *problem)
{
    return by_dial_tcp(&session->dial, text, strlen(text), by_dial_now_ms() + session->options.timeout_ms,
                       &session->fd, problem);
}

/* Brings TLS up over the connected socket. */
static int secure(struct by_session *session, struct by_problem *problem)
{
    int64_t deadline = by_dial_now_ms() + session->options.timeout_ms;
    char text[BY_TLS_TEXT_MAX];
    int error;

    session->tls = by_tls_open(session->identity, session->fd);
    if (session->tls == NULL)
        return by_problem_say(problem, BY_EIO, "%s: no memory for TLS", session->address);
    while ((error = by_tls_handshake(session->tls)) == BY_EAGAIN) {
        error = wait_for(session, by_tls_events(session->tls), deadline, problem);
        if (error != 0)
            return error;
    }
    if (error == 0)
        return 0;
    snprintf(text, sizeof(text), "%s", by_tls_text(session->tls));
    return by_problem_say(problem, error, "%s: %s", session->address, text);
}

/* Reads the keys before anything is connected: a mistake with them is the caller's. */
static int connect_tls(struct by_session *session, const char *text, struct by_problem *problem)
{
    char reason[BY_TLS_TEXT_MAX];
    int error;

    if (session->options.keys == NULL)
        return by_problem_say(
            problem, BY_EINVAL,
            "%s: TLS needs keys: name their folder with --keys or BANYAN_KEYS; `banyan keys` makes them",
            session->address);
    if (by_tls_identity_open(session->options.keys, BY_TLS_CONTROLLER, &session->identity, reason) != 0)
        return by_problem_say(problem, BY_EINVAL, "%s", reason);
    error = connect_tcp(session, text, problem);
    return error != 0 ? error : secure(session, problem);
}

int by_session_open(const char *address, const struct by_session_options *options, struct by_session **result,
                    struct by_problem *problem)
{
    struct by_session *session = by_alloc(1, sizeof(*session));
    int error;

    session->fd = -1;
    session->options = *options;
    session->next_id = 1;
    snprintf(session->address, sizeof(session->address), "%s", address);
    session->dial =
        (struct by_dial){.address = session->address,
                         .form = strncmp(address, "tls:", 4) == 0 ? "tls:HOST:PORT" : "tcp:HOST:PORT",
                         .silent = "is the switch alive? (--timeout gives it longer)",
                         .refused = "is the switch running, with this --control address?",
                         .timeout_ms = options->timeout_ms};
    if (strncmp(address, "unix:", 5) == 0)
        error = by_dial_unix(&session->dial, address + 5, by_dial_now_ms() + options->timeout_ms,
                             &session->fd, problem);
    else if (strncmp(address, "tcp:", 4) == 0)
        error = connect_tcp(session, address + 4, problem);
    else if (strncmp(address, "tls:", 4) == 0)
        error = connect_tls(session, address + 4, problem);
    else
        error = by_problem_say(problem, BY_EINVAL,
                               "'%s' is not an address: write unix:PATH, tcp:HOST:PORT or tls:HOST:PORT",
                               address);
    if (error != 0) {
        by_session_close(session);
        return error;
    }
    *result = session;
    return 0;
}

void by_session_close(struct by_session *session)
{
    if (session == NULL)
        return;
    by_tls_close(session->tls);
    by_tls_identity_close(session->identity);
    if (session->fd >= 0)
        close(session->fd);
    free(session);
}

int by_session_fd(const struct by_session *session)
{
    return session->fd;
}

const char *by_session_address(const struct by_session *session)
{
    return session->address;
}

uint64_t by_session_sent(const struct by_session *session)
{
    return session->sent;
}

/* One send or receive of what can be done now. Bytes, 0 at the end of the stream, BY_EAGAIN with what to wait
 * for in `*events`, or another error with `problem`. */
static int64_t move_bytes(struct by_session *session, void *into, const void *from, size_t bytes,
                          short *events, struct by_problem *problem)
{
    int64_t count = by_tls_move(session->tls, session->fd, into, from, bytes);

    *events = session->tls != NULL ? by_tls_events(session->tls) : from ? POLLOUT : POLLIN;
    if (count >= 0 || count == BY_EAGAIN)
        return count;
    if (session->tls != NULL)
        return by_problem_say(problem, (int)count, "%s: %s", session->address, by_tls_text(session->tls));
    return by_problem_say(problem, BY_EIO, "%s: the connection is lost: %s", session->address,
                          strerror(errno));
}

static int send_all(struct by_session *session, size_t bytes, int64_t deadline, struct by_problem *problem)
{
    for (size_t done = 0; done < bytes;) {
        short events;
        int64_t count = move_bytes(session, NULL, session->out + done, bytes - done, &events, problem);

        if (count > 0)
            done += (size_t)count;
        else if (count != BY_EAGAIN)
            return (int)count;
        else if ((count = wait_for(session, events, deadline, problem)) != 0)
            return (int)count;
    }
    return 0;
}

/* Takes the next response from the stream. */
static int receive(struct by_session *session, int64_t deadline, struct by_problem *problem)
{
    for (;;) {
        size_t used = 0;
        short events;
        int64_t count;
        int error = by_message_decode(session->in, session->have, &session->response, &used);

        if (error == 0) {
            memmove(session->in, session->in + used, session->have - used);
            session->have -= used;
            return 0;
        }
        if (error != BY_EAGAIN)
            return by_problem_say(problem, error, "%s: the answer is not a banyan switch's: %s",
                                  session->address, by_error_text(error));
        count = move_bytes(session, session->in + session->have, NULL, sizeof(session->in) - session->have,
                           &events, problem);
        if (count == 0)
            return by_problem_say(problem, BY_EIO, "%s: the switch closed the connection", session->address);
        if (count == BY_EAGAIN)
            count = wait_for(session, events, deadline, problem);
        else if (count > 0)
            session->have += (size_t)count;
        if (count < 0)
            return (int)count;
    }
}

/* Sends a request (version, id and election id are filled in here) and takes its response into
 * session->response. */
static int call(struct by_session *session, by_Request *request, struct by_problem *problem)
{
    int64_t deadline = by_dial_now_ms() + session->options.timeout_ms;
    size_t bytes;
    int error;

    request->version = BY_MESSAGE_VERSION;
    request->id = session->next_id++;
    request->election_id = session->options.election_id;
    bytes = by_message_encode(request, session->out, sizeof(session->out));
    if (bytes == 0)
        return by_problem_say(problem, BY_EINVAL, "%s: the request cannot be coded", session->address);
    session->sent += bytes;
    error = send_all(session, bytes, deadline, problem);
    if (error == 0)
        error = receive(session, deadline, problem);
    if (error != 0)
        return error;
    if (session->response.id != request->id && session->response.error == 0)
        return by_problem_say(problem, BY_EFORMAT, "%s: answers request %" PRIu64 " instead of %" PRIu64,
                              session->address, (uint64_t)session->response.id, (uint64_t)request->id);
    if (session->response.error != 0)
        return by_problem_say(problem, session->response.error, "%s: %s", session->address,
                              session->response.text[0] ? session->response.text
                                                        : by_error_text(session->response.error));
    return 0;
}

/* A call whose answer must have the given body. */
static int call_for(struct by_session *session, by_Request *request, pb_size_t body,
                    struct by_problem *problem)
{
    int error = call(session, request, problem);

    if (error == 0 && session->response.which_body != body)
        error = by_problem_say(problem, BY_EFORMAT, "%s: the answer is of another kind than the request",
                               session->address);
    return error;
}

int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_hello_tag};
    int error = call_for(session, &request, by_Response_hello_tag, problem);

    if (error != 0)
        return error;
    *reply = session->response.body.hello;
    if (session->tls != NULL && strcmp(reply->name, by_tls_peer(session->tls)) != 0)
        return by_problem_say(
            problem, BY_EPERM,
            "%s: calls itself '%s', but its certificate is that of '%s': give it its own keys",
            session->address, reply->name, by_tls_peer(session->tls));
    return 0;
}

/* May this image go to this switch as it is? */
static int check_exposure(const struct by_session *session, const uint8_t *image, size_t bytes,
                          struct by_problem *problem)
{
    struct by_image_header header = {0};

    if (bytes >= BY_IMAGE_HEADER_BYTES)
        by_image_header(image, &header);
    if (header.count[BY_SECTION_KEY] == 0 || session->options.plain_keys ||
        strncmp(session->address, "tcp:", 4) != 0)
        return 0;
    return by_problem_say(
        problem, BY_EPERM,
        "%s: the table holds keys of jobs, which plain TCP would show: use tls: or unix:, or "
        "--plain-keys where nobody else listens",
        session->address);
}

int by_session_stage(struct by_session *session, const uint8_t *image, size_t bytes,
                     struct by_problem *problem)
{
    by_Request *request = by_alloc(1, sizeof(*request));
    int error = check_exposure(session, image, bytes, problem);

    if (error == 0 && bytes > BY_IMAGE_BYTES_MAX)
        error = by_problem_say(problem, BY_ELIMIT, "%s: an image of %zu bytes; at most %u", session->address,
                               bytes, BY_IMAGE_BYTES_MAX);
    for (size_t offset = 0; offset < bytes && error == 0; offset += CHUNK_BYTES) {
        size_t count = bytes - offset < CHUNK_BYTES ? bytes - offset : CHUNK_BYTES;
        request->which_body = by_Request_stage_tag;
        request->body.stage.total = (uint32_t)bytes;
        request->body.stage.offset = (uint32_t)offset;
        request->body.stage.data.size = (pb_size_t)count;
        memcpy(request->body.stage.data.bytes, image + offset, count);
        error = call_for(session, request, by_Response_stage_tag, problem);
        if (error == 0 && session->response.body.stage.received != offset + count)
            error = by_problem_say(problem, BY_EFORMAT, "%s: took %u bytes instead of %zu", session->address,
                                   (unsigned)session->response.body.stage.received, offset + count);
    }
    free(request);
    return error;
}

/* Moves as much of the pieces into a request as it holds; `at` is where its literals come from. Returns how
 * many bytes of the image it adds. */
static size_t fill_stage(by_Stage *stage, struct by_delta_piece *pieces, uint32_t count, uint32_t *next,
                         const uint8_t *image)
{
    size_t added = 0;

    stage->pieces_count = 0;
    stage->data.size = 0;
    while (*next < count && stage->pieces_count < PIECES_MAX && stage->data.size < CHUNK_BYTES) {
        struct by_delta_piece *piece = &pieces[*next];
        uint32_t room = CHUNK_BYTES - stage->data.size;
        by_Piece *out = &stage->pieces[stage->pieces_count++];

        *out = (by_Piece){.literal = piece->literal < room ? piece->literal : room};
        memcpy(stage->data.bytes + stage->data.size, image + added, out->literal);
        stage->data.size += (pb_size_t)out->literal;
        added += out->literal;
        piece->literal -= out->literal;
        if (piece->literal > 0)
            break;
        out->from = piece->from;
        out->copy = piece->copy;
        added += piece->copy;
        ++*next;
    }
    return added;
}

int by_session_stage_over(struct by_session *session, const uint8_t *base, size_t base_bytes,
                          const uint8_t *image, size_t bytes, struct by_problem *problem)
{
    by_Request *request = by_alloc(1, sizeof(*request));
    struct by_delta_piece *pieces;
    uint32_t count = by_delta_make(base, base_bytes, image, bytes, &pieces), next = 0;
    uint64_t hash = by_image_hash(base, base_bytes);
    size_t offset = 0;
    int error = check_exposure(session, image, bytes, problem);

    while (next < count && error == 0) {
        by_Stage *stage = &request->body.stage;

        request->which_body = by_Request_stage_tag;
        stage->total = (uint32_t)bytes;
        stage->offset = (uint32_t)offset;
        stage->base = hash;
        offset += fill_stage(stage, pieces, count, &next, image + offset);
        error = call_for(session, request, by_Response_stage_tag, problem);
        if (error == 0 && session->response.body.stage.received != offset)
            error = by_problem_say(problem, BY_EFORMAT, "%s: took %u bytes instead of %zu", session->address,
                                   (unsigned)session->response.body.stage.received, offset);
    }
    free(pieces);
    free(request);
    return error;
}

int by_session_restore(struct by_session *session, uint64_t hash, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_restore_tag, .body.restore.hash = hash};

    return call_for(session, &request, by_Response_stage_tag, problem);
}

int by_session_validate(struct by_session *session, uint64_t hash, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_validate_tag,
                          .body.validate = {.hash = hash,
                                            .push = session->options.push_id ? session->options.push_id
                                                                             : session->options.election_id}};

    return call_for(session, &request, by_Response_validate_tag, problem);
}

int by_session_commit(struct by_session *session, uint64_t hash, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_commit_tag, .body.commit.hash = hash};

    return call_for(session, &request, by_Response_commit_tag, problem);
}

int by_session_abort(struct by_session *session, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_abort_tag};

    return call(session, &request, problem);
}

int by_session_read(struct by_session *session, uint8_t **image, size_t *bytes, struct by_problem *problem)
{
    const by_ReadReply *reply = &session->response.body.read;
    uint64_t hash = 0;
    size_t total = 0, have = 0;
    int error;

    *image = NULL;
    do {
        by_Request request = {.which_body = by_Request_read_tag,
                              .body.read = {.offset = (uint32_t)have, .bytes = CHUNK_BYTES}};
        error = call_for(session, &request, by_Response_read_tag, problem);
        if (error == 0 && *image == NULL) {
            total = reply->total;
            hash = reply->hash;
            *image = by_alloc(total <= BY_IMAGE_BYTES_MAX ? total : 0, 1);
        }
        if (error == 0 && (reply->total != total || reply->hash != hash))
            error =
                by_problem_say(problem, BY_EAGAIN, "%s: the table changed while it was read: read it again",
                               session->address);
        if (error == 0 && (total > BY_IMAGE_BYTES_MAX || reply->offset != have || reply->data.size == 0 ||
                           reply->data.size > total - have))
            error = by_problem_say(problem, BY_EFORMAT, "%s: sends a piece of the table that does not fit",
                                   session->address);
        if (error == 0) {
            memcpy(*image + have, reply->data.bytes, reply->data.size);
            have += reply->data.size;
        }
    } while (error == 0 && have < total);
    if (error == 0 && by_image_hash(*image, total) != hash)
        error =
            by_problem_say(problem, BY_ECHECKSUM,
                           "%s: what was read does not have the hash that the switch names: read it again",
                           session->address);
    if (error != 0) {
        free(*image);
        *image = NULL;
        return error;
    }
    *bytes = total;
    return 0;
}

int by_session_counters(struct by_session *session, by_CountersReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_counters_tag};
    int error = call_for(session, &request, by_Response_counters_tag, problem);

    if (error == 0)
        *reply = session->response.body.counters;
    return error;
}

int by_session_waiting(struct by_session *session, by_WaitingReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_waiting_tag};
    int error = call_for(session, &request, by_Response_waiting_tag, problem);

    if (error == 0)
        *reply = session->response.body.waiting;
    return error;
}

int by_session_log(struct by_session *session, uint64_t from, by_LogReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_log_tag, .body.log.from = from};
    int error = call_for(session, &request, by_Response_log_tag, problem);

    if (error == 0)
        *reply = session->response.body.log;
    return error;
}
