/*
 * The agent: decodes a request, executes it, encodes the response. A write passes three checks:
 * staged bytes must arrive in order; their hash must be the one that the controller names
 * (Validate, where the node also checks every field against its limits); and a commit names that
 * hash again. Until the commit the active table is untouched. A commit of the active table
 * succeeds, so a controller that lost the answer may repeat it. Writers carry an election id. An id
 * lower than the highest seen is refused, so a deposed controller cannot write. Neighbours:
 * write.c, look.c and interfaces.c answer; this file checks permissions. Node's thread.
 */
#include "firmware/agent/agent.h"

#include <pb_decode.h>
#include <pb_encode.h>
#include <string.h>

#include "firmware/agent/inside.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

#define ALIGNMENT 16u

BY_STATIC_ASSERT(by_Request_size <= BY_REQUEST_BYTES_MAX, "a request fits its frame");
BY_STATIC_ASSERT(by_Response_size <= BY_RESPONSE_BYTES_MAX, "a response fits its frame");
BY_STATIC_ASSERT(sizeof(((by_Stage *)0)->data.bytes) == BY_CHUNK_BYTES_MAX,
                 "the chunk's limit is the message's");
BY_STATIC_ASSERT(sizeof(((by_Stage *)0)->pieces) == BY_PIECES_MAX * sizeof(by_Piece),
                 "the pieces' limit is the message's");

static size_t head_bytes(void)
{
    return (sizeof(struct by_agent) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t by_agent_size(const struct by_agent_config *config)
{
    return head_bytes() + config->image_bytes_max;
}

uint64_t by_agent_now(struct by_agent *agent)
{
    uint64_t now_ns = 0, unix_ns = 0;

    if (agent->config.ops->clock)
        agent->config.ops->clock(agent->config.node, &now_ns, &unix_ns);
    return now_ns;
}

void by_agent_note(struct by_agent *agent, const char *string)
{
    by_journal_add(&agent->journal, by_agent_now(agent), string);
}

static void note_start(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    char line[BY_JOURNAL_TEXT_BYTES];
    struct by_text text;

    by_text_start(&text, line, sizeof line);
    by_text_add(&text, config->software);
    by_text_add(&text, " started");
    by_text_add(&text, config->board ? " on board " : "");
    by_text_add(&text, config->board ? config->board : "");
    by_text_add(&text, ": ");
    by_text_number(&text, config->port_count);
    by_text_add(&text, " ports, ");
    by_text_number(&text, config->slot_count);
    by_text_add(&text, config->saved ? " slots; it offers a saved table" : " slots");
    by_agent_note(agent, line);
}

int by_agent_init(struct by_agent **out, void *memory, size_t bytes, const struct by_agent_config *config)
{
    struct by_agent *agent = memory;

    if (!config->ops || !config->name || !config->software ||
        config->image_bytes_max < BY_IMAGE_HEADER_BYTES ||
        (config->saved && config->saved_bytes > config->image_bytes_max) ||
        (uintptr_t)memory % ALIGNMENT != 0)
        return BY_EINVAL;
    if (bytes < by_agent_size(config))
        return BY_ENOMEM;
    memset(agent, 0, sizeof *agent);
    agent->config = *config;
    agent->image = (uint8_t *)memory + head_bytes();
    agent->saved_hash = config->saved ? by_image_hash(config->saved, config->saved_bytes) : 0;
    agent->start_ns = by_agent_now(agent);
    note_start(agent);
    *out = agent;
    return 0;
}

/* Makes the response a failure and returns the builder of its text. */
struct by_text by_agent_fail(struct by_agent *agent, int error)
{
    struct by_text text;

    agent->response.error = error;
    agent->response.which_body = 0;
    by_text_start(&text, agent->response.text, sizeof agent->response.text);
    return text;
}

int by_agent_last_error(const struct by_agent *agent)
{
    return agent->response.error;
}

uint64_t by_agent_writes(const struct by_agent *agent)
{
    return agent->election_count;
}

/* Checks that no writer with a higher election id was seen before. Returns 0, or a failed
 * response. */
static int check_writer(struct by_agent *agent)
{
    struct by_text text;

    if (agent->request.election_id >= agent->election_id) {
        agent->election_id = agent->request.election_id;
        agent->election_count++;
        return 0;
    }
    text = by_agent_fail(agent, BY_EPERM);
    agent->response.leader = agent->election_id;
    by_text_add(&text, "election id ");
    by_text_number(&text, agent->request.election_id);
    by_text_add(&text, " is stale: a writer has used ");
    by_text_number(&text, agent->election_id);
    by_text_add(&text, "; use a higher one to write");
    return BY_EPERM;
}

/* Executes the decoded request and fills the response. */
static void dispatch(struct by_agent *agent)
{
    struct by_text text;

    switch (agent->request.which_body) {
    case by_Request_hello_tag: /* from a writer: refuses older writers from now on, so the data it reads
                                  remains true */
        if (agent->request.election_id == 0 || check_writer(agent) == 0)
            by_agent_answer_hello(agent);
        return;
    case by_Request_read_tag:
        by_agent_answer_read(agent);
        return;
    case by_Request_counters_tag:
        by_agent_answer_counters(agent);
        return;
    case by_Request_waiting_tag:
        by_agent_answer_waiting(agent);
        return;
    case by_Request_ports_tag:
        by_agent_answer_ports(agent);
        return;
    case by_Request_log_tag:
        by_agent_answer_log(agent);
        return;
    case by_Request_interfaces_tag:
        by_agent_answer_interfaces(agent);
        return;
    case by_Request_stage_tag:
        if (check_writer(agent) == 0)
            by_agent_answer_stage(agent);
        return;
    case by_Request_validate_tag:
        if (check_writer(agent) == 0)
            by_agent_answer_validate(agent);
        return;
    case by_Request_commit_tag:
        if (check_writer(agent) == 0)
            by_agent_answer_commit(agent);
        return;
    case by_Request_restore_tag:
        if (check_writer(agent) == 0)
            by_agent_answer_restore(agent);
        return;
    case by_Request_abort_tag:
        if (check_writer(agent) != 0)
            return;
        if (agent->total > 0)
            by_agent_note(agent, "abort: the staged image is discarded");
        by_agent_forget_staged(agent);
        return;
    default:
        text = by_agent_fail(agent, BY_EUNSUPPORTED);
        by_text_add(&text, "request: not supported by this switch (");
        by_text_add(&text, agent->config.software);
        by_text_add(&text, "): use a client of its version");
    }
}

size_t by_agent_encode(struct by_agent *agent, uint8_t *out, size_t capacity)
{
    pb_ostream_t stream = pb_ostream_from_buffer(out, capacity);
    bool encoded = pb_encode(&stream, by_Response_fields, &agent->response);

    BY_ASSERT(encoded);
    return stream.bytes_written;
}

size_t by_agent_answer(struct by_agent *agent, const uint8_t *message, size_t bytes, uint8_t *out,
                       size_t capacity)
{
    pb_istream_t in = pb_istream_from_buffer(message, bytes);
    struct by_text text;

    BY_ASSERT(capacity >= BY_RESPONSE_BYTES_MAX);
    memset(&agent->response, 0, sizeof agent->response);
    agent->response.version = BY_CONTROL_VERSION;
    if (!pb_decode(&in, by_Request_fields, &agent->request)) {
        text = by_agent_fail(agent, BY_EFORMAT);
        by_text_add(&text, "request: ");
        by_text_number(&text, bytes);
        by_text_add(&text, " bytes are not a request of control.proto (");
        by_text_add(&text, PB_GET_ERROR(&in));
        by_text_add(&text, "): use a banyan client");
    } else if (agent->request.version != BY_CONTROL_VERSION) {
        agent->response.id = agent->request.id;
        text = by_agent_fail(agent, BY_EVERSION);
        by_text_add(&text, "request: version ");
        by_text_number(&text, agent->request.version);
        by_text_add(&text, "; this switch supports ");
        by_text_number(&text, BY_CONTROL_VERSION);
    } else {
        agent->response.id = agent->request.id;
        dispatch(agent);
    }
    if (agent->response.error != 0)
        by_agent_note(agent, agent->response.text);
    return by_agent_encode(agent, out, capacity);
}
