/* One connection of the controller: one call at a time, each with a deadline. Neighbours:
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
/* Requests of a push that are sent before the first of them is answered (count). Their answers, of
 * some 20 bytes, fit the buffers of any socket. */
#define AWAITED_MAX 32u
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

/* Stores session->response if it is a notice. Returns whether it is one. */
static bool take_notice(struct by_session *session)
{
    const by_Response *response = &session->response;

    if (response->id != 0 || response->error != 0 || response->which_body != by_Response_counters_tag)
        return false;
    session->notice = response->body.counters;
    session->noticed = true;
    return true;
}

/* Sends a request, after filling in version, id and election id. */
static int post(struct by_session *session, by_Request *request, struct by_problem *problem)
{
    size_t bytes;

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
    return by_stream_send(session->stream, bytes, by_stream_deadline(session->stream), problem);
}

/* Receives the response to request `id`, which must have the given body unless that is 0, into
 * session->response. */
static int take(struct by_session *session, uint64_t id, pb_size_t body, int64_t deadline,
                struct by_problem *problem)
{
    int error;

    do /* also notices, and the answers of calls that timed out or were stopped */
        error = receive(session, deadline, problem);
    while (error == 0 && (take_notice(session) || (session->response.id != 0 && session->response.id < id)));
    session->late = error == BY_ETIMEDOUT || error == BY_EABORTED;
    if (error != 0)
        return error;
    if (session->response.id != id && session->response.error == 0)
        return by_problem_say(problem, BY_EFORMAT,
                              "%s: the answer is for request %" PRIu64 " instead of %" PRIu64,
                              by_session_address(session), (uint64_t)session->response.id, id);
    session->refused = session->response.error != 0;
    if (session->refused)
        return by_problem_say(problem, session->response.error, "%s: %s", by_session_address(session),
                              session->response.text[0] ? session->response.text
                                                        : by_error_text(session->response.error));
    if (body != 0 && session->response.which_body != body)
        return by_problem_say(problem, BY_EFORMAT, "%s: the answer does not match the request",
                              by_session_address(session));
    return 0;
}

/* Makes a call whose answer must have the given body, unless that is 0. */
static int call_for(struct by_session *session, by_Request *request, pb_size_t body,
                    struct by_problem *problem)
{
    int64_t deadline = by_stream_deadline(session->stream);
    int error = post(session, request, problem);

    return error == 0 ? take(session, request->id, body, deadline, problem) : error;
}

/* Takes the answer to Hello from session->response. */
static int take_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem)
{
    const char *peer = by_stream_peer(session->stream);

    *reply = session->response.body.hello;
    if (peer != NULL && strcmp(reply->name, peer) != 0)
        return by_problem_say(problem, BY_EPERM,
                              "%s: it has the name '%s', but the certificate of '%s': give it its own keys",
                              by_session_address(session), reply->name, peer);
    return 0;
}

int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_hello_tag};
    int error = call_for(session, &request, by_Response_hello_tag, problem);

    return error == 0 ? take_hello(session, reply, problem) : error;
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

/* ---- staging ---- */

/* Requests whose answers are outstanding, in their order. */
struct awaited {
    struct by_session *session;
    struct {
        uint64_t id;
        pb_size_t body;
        uint32_t received; /* of a Stage: bytes of the image up to its end */
    } of[AWAITED_MAX];
    uint32_t first, count;
    by_HelloReply *hello; /* filled by the answer to Hello */
};

static int take_first(struct awaited *awaited, struct by_problem *problem)
{
    struct by_session *session = awaited->session;
    uint32_t at = awaited->first++ % AWAITED_MAX, received = awaited->of[at].received;
    pb_size_t body = awaited->of[at].body;
    int error = take(session, awaited->of[at].id, body, by_stream_deadline(session->stream), problem);

    awaited->count--;
    if (error == 0 && body == by_Response_hello_tag)
        error = take_hello(session, awaited->hello, problem);
    if (error == 0 && body == by_Response_stage_tag && session->response.body.stage.received != received)
        error = by_problem_say(problem, BY_EFORMAT, "%s: it accepted %u bytes instead of %u",
                               by_session_address(session), (unsigned)session->response.body.stage.received,
                               received);
    return error;
}

static int take_all(struct awaited *awaited, struct by_problem *problem)
{
    int error = 0;

    while (awaited->count > 0 && error == 0)
        error = take_first(awaited, problem);
    return error;
}

/* Sends a request. If too many answers are outstanding, takes the first of them. */
static int post_on(struct awaited *awaited, by_Request *request, pb_size_t body, uint32_t received,
                   struct by_problem *problem)
{
    int error = awaited->count == AWAITED_MAX ? take_first(awaited, problem) : 0;
    uint32_t at = (awaited->first + awaited->count) % AWAITED_MAX;

    if (error == 0)
        error = post(awaited->session, request, problem);
    if (error != 0)
        return error;
    awaited->of[at].id = request->id;
    awaited->of[at].body = body;
    awaited->of[at].received = received;
    awaited->count++;
    return 0;
}

static int stage_whole(struct awaited *awaited, by_Request *request, const uint8_t *image, size_t bytes,
                       struct by_problem *problem)
{
    int error = 0;

    request->which_body = by_Request_stage_tag;
    for (size_t offset = 0; offset < bytes && error == 0; offset += CHUNK_BYTES) {
        size_t count = bytes - offset < CHUNK_BYTES ? bytes - offset : CHUNK_BYTES;

        request->body.stage.total = (uint32_t)bytes;
        request->body.stage.offset = (uint32_t)offset;
        request->body.stage.data.size = (pb_size_t)count;
        memcpy(request->body.stage.data.bytes, image + offset, count);
        error = post_on(awaited, request, by_Response_stage_tag, (uint32_t)(offset + count), problem);
    }
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

static int stage_over(struct awaited *awaited, by_Request *request, const struct by_session_load *load,
                      struct by_problem *problem)
{
    struct by_delta_piece *pieces;
    uint32_t count = by_delta_make(load->base, load->base_bytes, load->image, load->bytes, &pieces), next = 0;
    uint64_t hash = by_image_hash(load->base, load->base_bytes);
    size_t offset = 0;
    int error = 0;

    request->which_body = by_Request_stage_tag;
    while (next < count && error == 0) {
        by_Stage *stage = &request->body.stage;

        stage->total = (uint32_t)load->bytes;
        stage->offset = (uint32_t)offset;
        stage->base = hash;
        offset += fill_stage(stage, pieces, count, &next, load->image + offset);
        error = post_on(awaited, request, by_Response_stage_tag, (uint32_t)offset, problem);
    }
    free(pieces);
    return error;
}

/* Returns the push that images are validated for. */
static uint64_t push_of(const struct by_session *session)
{
    return session->options.push_id ? session->options.push_id : session->options.election_id;
}

int by_session_load(struct by_session *session, const struct by_session_load *load, by_HelloReply *hello,
                    struct by_problem *problem)
{
    by_Request *request = by_alloc(1, sizeof(*request));
    struct awaited awaited = {.session = session, .hello = hello};
    int error = check_exposure(session, load->image, load->bytes, problem);

    if (hello != NULL)
        hello->name[0] = 0;
    if (error == 0 && load->bytes > BY_IMAGE_BYTES_MAX)
        error = by_problem_say(problem, BY_ELIMIT, "%s: the image has %zu bytes; the limit is %u",
                               by_session_address(session), load->bytes, BY_IMAGE_BYTES_MAX);
    if (error == 0 && hello != NULL) {
        request->which_body = by_Request_hello_tag;
        error = post_on(&awaited, request, by_Response_hello_tag, 0, problem);
    }
    memset(&request->body, 0, sizeof(request->body));
    if (error == 0 && load->base != NULL)
        error = stage_over(&awaited, request, load, problem);
    else if (error == 0)
        error = stage_whole(&awaited, request, load->image, load->bytes, problem);
    memset(&request->body, 0, sizeof(request->body));
    if (error == 0 && load->hash != 0) {
        request->which_body = by_Request_validate_tag;
        request->body.validate = (by_Validate){.hash = load->hash, .push = push_of(session)};
        error = post_on(&awaited, request, by_Response_validate_tag, 0, problem);
    }
    if (error == 0)
        error = take_all(&awaited, problem);
    free(request);
    return error;
}

int by_session_stage(struct by_session *session, const uint8_t *image, size_t bytes,
                     struct by_problem *problem)
{
    return by_session_load(session, &(struct by_session_load){.image = image, .bytes = bytes}, NULL, problem);
}

int by_session_stage_over(struct by_session *session, const uint8_t *base, size_t base_bytes,
                          const uint8_t *image, size_t bytes, struct by_problem *problem)
{
    return by_session_load(
        session,
        &(struct by_session_load){.base = base, .base_bytes = base_bytes, .image = image, .bytes = bytes},
        NULL, problem);
}

int by_session_restore(struct by_session *session, uint64_t hash, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_restore_tag, .body.restore.hash = hash};

    return call_for(session, &request, by_Response_stage_tag, problem);
}

int by_session_validate(struct by_session *session, uint64_t hash, struct by_problem *problem)
{
    by_Request request = {.which_body = by_Request_validate_tag,
                          .body.validate = {.hash = hash, .push = push_of(session)}};

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

    return call_for(session, &request, 0, problem);
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
