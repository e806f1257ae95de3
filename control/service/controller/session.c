/* One connection of the controller: one request at a time, each with a deadline. Neighbours:
 * stream.c transfers messages, message.c encodes them; push.c uses many sessions. */
#include "control/service/controller/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/controller/delta.h"
#include "control/service/controller/stream.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/table/image.h"

#define CHUNK_BYTES 16384u
#define PIECES_MAX  (sizeof(((by_Stage *)0)->pieces) / sizeof(by_Piece))

struct by_session {
    struct by_stream *stream;
    struct by_session_options options;
    uint64_t next_id;
    uint64_t sent; /* bytes of requests */
    bool refused;  /* the switch answered the last call with an error */
    bool late;     /* its answer may still come */
    bool noticed;  /* `notice` is newer than the last counters requested */
    by_CountersReply notice;
    by_Response response;
};

int by_session_open(const char *address, const struct by_session_options *options, struct by_session **result,
                    struct by_problem *problem)
{
    struct by_session *session = by_alloc(1, sizeof(*session));
    int error = by_stream_open(address, options, &session->stream, problem);

    session->options = *options;
    session->next_id = 1;
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
    by_stream_close(session->stream);
    free(session);
}

void by_session_access_complete(struct by_session_options *access)
{
    if (access->keys == NULL)
        access->keys = getenv("BANYAN_KEYS");
    if (access->psk == NULL)
        access->psk = getenv("BANYAN_PSK");
}

bool by_session_is_address(const char *text)
{
    static const char *const schemes[] = {"unix:", "tcp:", "tls:", "psk+unix:", "psk+tcp:"};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

void by_session_limit(struct by_session *session, uint32_t timeout_ms, int stop_fd)
{
    by_stream_limit(session->stream, timeout_ms, stop_fd);
}

int by_session_fd(const struct by_session *session)
{
    return by_stream_fd(session->stream);
}

bool by_session_refused(const struct by_session *session)
{
    return session->refused;
}

bool by_session_is_late(const struct by_session *session)
{
    return session->late;
}

uint64_t by_session_leader(const struct by_session *session)
{
    return session->refused ? session->response.leader : 0;
}

const char *by_session_address(const struct by_session *session)
{
    return by_stream_address(session->stream);
}

uint64_t by_session_sent(const struct by_session *session)
{
    return session->sent;
}

/* Receives the next response from the stream. */
static int receive(struct by_session *session, int64_t deadline, struct by_problem *problem)
{
    const uint8_t *message;
    size_t bytes, used;
    int error = by_stream_receive(session->stream, deadline, &message, &bytes, problem);

    if (error != 0)
        return error;
    error = by_message_decode(message, bytes, &session->response, &used);
    return error == 0 ? 0
                      : by_problem_say(problem, error, "%s: the answer is not from a banyan switch: %s",
                                       by_session_address(session), by_error_text(error));
}

/* Whether session->response is a notice, which is kept. */
static bool take_notice(struct by_session *session)
{
    const by_Response *response = &session->response;

    if (response->id != 0 || response->error != 0 || response->which_body != by_Response_counters_tag)
        return false;
    session->notice = response->body.counters;
    session->noticed = true;
    return true;
}

/* Sends a request, after filling in version, id and election id, and receives its response into
 * session->response. */
static int call(struct by_session *session, by_Request *request, struct by_problem *problem)
{
    int64_t deadline = by_stream_deadline(session->stream);
    size_t bytes;
    int error;

    session->refused = session->late = false;
    request->version = BY_MESSAGE_VERSION;
    request->id = session->next_id++;
    request->election_id = session->options.election_id;
    bytes = by_message_encode(request, by_stream_room(session->stream),
                              BY_MESSAGE_LENGTH_BYTES + BY_MESSAGE_BYTES_MAX);
    if (bytes == 0)
        return by_problem_say(problem, BY_EINVAL, "%s: cannot encode the request",
                              by_session_address(session));
    session->sent += bytes;
    error = by_stream_send(session->stream, bytes, deadline, problem);
    if (error != 0)
        return error;
    do /* also notices, and the answers of calls that timed out or were stopped */
        error = receive(session, deadline, problem);
    while (error == 0 &&
           (take_notice(session) || (session->response.id != 0 && session->response.id < request->id)));
    session->late = error == BY_ETIMEDOUT || error == BY_EABORTED;
    if (error != 0)
        return error;
    if (session->response.id != request->id && session->response.error == 0)
        return by_problem_say(
            problem, BY_EFORMAT, "%s: the answer is for request %" PRIu64 " instead of %" PRIu64,
            by_session_address(session), (uint64_t)session->response.id, (uint64_t)request->id);
    session->refused = session->response.error != 0;
    if (session->refused)
        return by_problem_say(problem, session->response.error, "%s: %s", by_session_address(session),
                              session->response.text[0] ? session->response.text
                                                        : by_error_text(session->response.error));
    return 0;
}

/* Makes a call whose answer must have the given body. */
static int call_for(struct by_session *session, by_Request *request, pb_size_t body,
                    struct by_problem *problem)
{
    int error = call(session, request, problem);

    if (error == 0 && session->response.which_body != body)
        error = by_problem_say(problem, BY_EFORMAT, "%s: the answer does not match the request",
                               by_session_address(session));
    return error;
}

int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_hello_tag};
    const char *peer = by_stream_peer(session->stream);
    int error = call_for(session, &request, by_Response_hello_tag, problem);

    if (error != 0)
        return error;
    *reply = session->response.body.hello;
    if (peer != NULL && strcmp(reply->name, peer) != 0)
        return by_problem_say(problem, BY_EPERM,
                              "%s: it has the name '%s', but the certificate of '%s': give it its own keys",
                              by_session_address(session), reply->name, peer);
    return 0;
}

/* Refuses to send keys of jobs over a connection on which they can be read. */
static int check_exposure(const struct by_session *session, const uint8_t *image, size_t bytes,
                          struct by_problem *problem)
{
    struct by_image_header header = {0};

    if (bytes >= BY_IMAGE_HEADER_BYTES)
        by_image_header(image, &header);
    if (header.count[BY_SECTION_KEY] == 0 || session->options.plain_keys ||
        !by_stream_is_exposed(session->stream))
        return 0;
    return by_problem_say(
        problem, BY_EPERM,
        "%s: the table contains keys of jobs, which TCP without TLS would expose: use tls: or unix:, or "
        "--plain-keys where no other program can listen",
        by_session_address(session));
}

int by_session_stage(struct by_session *session, const uint8_t *image, size_t bytes,
                     struct by_problem *problem)
{
    by_Request *request = by_alloc(1, sizeof(*request));
    int error = check_exposure(session, image, bytes, problem);

    if (error == 0 && bytes > BY_IMAGE_BYTES_MAX)
        error = by_problem_say(problem, BY_ELIMIT, "%s: the image has %zu bytes; the limit is %u",
                               by_session_address(session), bytes, BY_IMAGE_BYTES_MAX);
    for (size_t offset = 0; offset < bytes && error == 0; offset += CHUNK_BYTES) {
        size_t count = bytes - offset < CHUNK_BYTES ? bytes - offset : CHUNK_BYTES;
        request->which_body = by_Request_stage_tag;
        request->body.stage.total = (uint32_t)bytes;
        request->body.stage.offset = (uint32_t)offset;
        request->body.stage.data.size = (pb_size_t)count;
        memcpy(request->body.stage.data.bytes, image + offset, count);
        error = call_for(session, request, by_Response_stage_tag, problem);
        if (error == 0 && session->response.body.stage.received != offset + count)
            error = by_problem_say(problem, BY_EFORMAT, "%s: it accepted %u bytes instead of %zu",
                                   by_session_address(session),
                                   (unsigned)session->response.body.stage.received, offset + count);
    }
    free(request);
    return error;
}

/* Moves as many pieces into a request as fit. The literals come from `image`. Returns the number of
 * bytes that it adds to the image. */
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
            error = by_problem_say(problem, BY_EFORMAT, "%s: it accepted %u bytes instead of %zu",
                                   by_session_address(session),
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
                               by_session_address(session));
        if (error == 0 && (total > BY_IMAGE_BYTES_MAX || reply->offset != have || reply->data.size == 0 ||
                           reply->data.size > total - have))
            error = by_problem_say(problem, BY_EFORMAT, "%s: it sent a piece of the table that does not fit",
                                   by_session_address(session));
        if (error == 0) {
            memcpy(*image + have, reply->data.bytes, reply->data.size);
            have += reply->data.size;
        }
    } while (error == 0 && have < total);
    if (error == 0 && by_image_hash(*image, total) != hash)
        error = by_problem_say(problem, BY_ECHECKSUM,
                               "%s: the table does not match the hash that the switch reports: read it again",
                               by_session_address(session));
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
    by_Request request = {.which_body = by_Request_counters_tag,
                          .body.counters.notify = session->options.notify};
    int error = call_for(session, &request, by_Response_counters_tag, problem);

    if (error != 0)
        return error;
    *reply = session->response.body.counters;
    session->noticed = false;
    return 0;
}

int by_session_notice(struct by_session *session, by_CountersReply *reply, struct by_problem *problem)
{
    while (!session->noticed) {
        int error = receive(session, by_stream_deadline_now(), problem);

        if (error == BY_ETIMEDOUT)
            return BY_EAGAIN;
        if (error != 0)
            return error;
        take_notice(session);
    }
    *reply = session->notice;
    session->noticed = false;
    return 0;
}

int by_session_waiting(struct by_session *session, by_WaitingReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_waiting_tag};
    int error = call_for(session, &request, by_Response_waiting_tag, problem);

    if (error == 0)
        *reply = session->response.body.waiting;
    return error;
}

int by_session_ports(struct by_session *session, uint32_t from, by_PortsReply *reply,
                     struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_ports_tag, .body.ports.from = from};
    int error = call_for(session, &request, by_Response_ports_tag, problem);

    if (error == 0)
        *reply = session->response.body.ports;
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

int by_session_interfaces(struct by_session *session, uint32_t from, bool announce, by_InterfacesReply *reply,
                          struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_interfaces_tag,
                          .body.interfaces = {.from = from, .announce = announce}};
    int error = call_for(session, &request, by_Response_interfaces_tag, problem);

    if (error == 0)
        *reply = session->response.body.interfaces;
    return error;
}
