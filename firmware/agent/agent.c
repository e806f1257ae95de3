/*
 * The agent: decodes a request, does it, encodes the response. Writing goes through three gates: staged bytes
 * must come in order, their hash must be the one that the controller names (Validate, where the node also
 * checks every field against its limits), and a commit names that hash again. Between these the active table
 * is untouched. A commit of what is active already succeeds, so a controller that lost the answer may repeat
 * it. Writers carry an election id; one lower than the highest seen is refused, so a deposed controller
 * cannot write. Node's thread.
 */
#include "firmware/agent/agent.h"

#include <pb_decode.h>
#include <pb_encode.h>
#include <string.h>

#include "firmware/agent/refuse.h"
#include "firmware/agent/text.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "proto/control.pb.h"

#define ALIGNMENT 16u

BY_STATIC_ASSERT(by_Request_size <= BY_REQUEST_BYTES_MAX, "a request fits its frame");
BY_STATIC_ASSERT(by_Response_size <= BY_RESPONSE_BYTES_MAX, "a response fits its frame");
BY_STATIC_ASSERT(sizeof(((by_Stage *)0)->data.bytes) == BY_CHUNK_BYTES_MAX,
                 "the chunk's limit is the message's");
BY_STATIC_ASSERT(sizeof(((by_Stage *)0)->pieces) == BY_PIECES_MAX * sizeof(by_Piece),
                 "the pieces' limit is the message's");

struct by_agent {
    struct by_agent_config config;
    uint64_t election_id; /* the highest seen */
    uint32_t total;       /* bytes of the image being staged, 0 = none */
    uint32_t received;
    uint64_t validated;                   /* hash of what the node has accepted and not yet committed */
    uint64_t validated_push, active_push; /* which pushes that and the active image belong to */
    int is_validated;
    by_Request request;
    by_Response response;
    uint8_t *image; /* config.image_bytes_max */
};

static size_t head_bytes(void)
{
    return (sizeof(struct by_agent) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t by_agent_size(const struct by_agent_config *config)
{
    return head_bytes() + config->image_bytes_max;
}

int by_agent_init(struct by_agent **out, void *memory, size_t bytes, const struct by_agent_config *config)
{
    struct by_agent *agent = memory;

    if (!config->ops || !config->name || config->image_bytes_max < BY_IMAGE_HEADER_BYTES ||
        (config->saved && config->saved_bytes > config->image_bytes_max) ||
        (uintptr_t)memory % ALIGNMENT != 0)
        return BY_EINVAL;
    if (bytes < by_agent_size(config))
        return BY_ENOMEM;
    memset(agent, 0, sizeof *agent);
    agent->config = *config;
    agent->image = (uint8_t *)memory + head_bytes();
    *out = agent;
    return 0;
}

/* A failed response; its text goes to the returned builder. */
static struct by_text fail(struct by_agent *agent, int error)
{
    struct by_text text;

    agent->response.error = error;
    agent->response.which_body = 0;
    by_text_start(&text, agent->response.text, sizeof agent->response.text);
    return text;
}

static void copy_name(char *to, size_t bytes, const char *from)
{
    size_t i = 0;

    for (; from[i] && i + 1 < bytes; i++)
        to[i] = from[i];
    to[i] = 0;
}

/* Hash of the active image, 0 without one. */
static uint64_t active_hash(const struct by_agent *agent)
{
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);

    return image ? by_image_hash(image, bytes) : 0;
}

static void forget_staged(struct by_agent *agent)
{
    agent->total = 0;
    agent->received = 0;
    if (agent->is_validated)
        agent->config.ops->abort(agent->config.node);
    agent->is_validated = 0;
    agent->validated = 0;
    agent->validated_push = 0;
}

static void answer_hello(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    by_HelloReply *reply = &agent->response.body.hello;
    struct by_image_header header;
    size_t bytes = 0;
    const uint8_t *image = config->ops->image(config->node, &bytes);

    agent->response.which_body = by_Response_hello_tag;
    copy_name(reply->name, sizeof reply->name, config->name);
    copy_name(reply->software, sizeof reply->software, config->software);
    reply->boot_nonce = config->boot_nonce;
    reply->port_count = config->port_count;
    reply->slot_count = config->slot_count;
    reply->payload_max = config->payload_max;
    reply->entry_max = config->entry_max;
    reply->validated_hash = agent->validated;
    reply->validated_push = agent->validated_push;
    if (config->saved) {
        by_image_header(config->saved, &header);
        reply->saved_hash = by_image_hash(config->saved, config->saved_bytes);
        reply->saved_cookie = header.cookie;
    }
    if (!image)
        return;
    by_image_header(image, &header);
    reply->table_hash = by_image_hash(image, bytes);
    reply->table_cookie = header.cookie;
    reply->table_bytes = (uint32_t)bytes;
    reply->table_push = agent->active_push;
}

/* What is wrong with pieces, or NULL; `*bytes` is how many they add. */
static const char *check_pieces(const by_Stage *stage, size_t active_bytes, uint64_t *bytes)
{
    uint64_t literal = 0;

    *bytes = stage->pieces_count == 0 ? stage->data.size : 0;
    for (pb_size_t i = 0; i < stage->pieces_count; i++) {
        const by_Piece *piece = &stage->pieces[i];

        if ((uint64_t)piece->from + piece->copy > active_bytes)
            return "lies beyond the active image";
        literal += piece->literal;
        *bytes += (uint64_t)piece->literal + piece->copy;
    }
    if (stage->pieces_count > 0 && literal != stage->data.size)
        return "has other literal bytes than the data";
    return NULL;
}

/* Adds what a Stage brings. 0, or a failed response. */
static int take_pieces(struct by_agent *agent, const by_Stage *stage)
{
    size_t active_bytes = 0;
    const uint8_t *active = agent->config.ops->image(agent->config.node, &active_bytes);
    const uint8_t *data = stage->data.bytes;
    const char *fault;
    uint64_t bytes;
    struct by_text text;

    if (stage->pieces_count > 0 && (!active || stage->base != active_hash(agent))) {
        text = fail(agent, BY_ESTATE);
        by_text_add(&text, "stage: pieces of the table ");
        by_text_hash(&text, stage->base);
        by_text_add(&text, ", but ");
        by_text_hash(&text, active ? active_hash(agent) : 0);
        by_text_add(&text, " is active: stage the whole image");
        return BY_ESTATE;
    }
    fault = check_pieces(stage, active_bytes, &bytes);
    if (fault || bytes > agent->total - agent->received) {
        text = fail(agent, BY_ERANGE);
        by_text_add(&text, "stage: a piece ");
        by_text_add(&text, fault ? fault : "lies beyond the image that is staged");
        by_text_add(&text, ": begin again at offset 0");
        return BY_ERANGE;
    }
    if (stage->pieces_count == 0)
        memcpy(agent->image + agent->received, data, stage->data.size);
    for (pb_size_t i = 0; i < stage->pieces_count; i++) {
        const by_Piece *piece = &stage->pieces[i];

        memcpy(agent->image + agent->received, data, piece->literal);
        memcpy(agent->image + agent->received + piece->literal, active + piece->from, piece->copy);
        data += piece->literal;
        agent->received += piece->literal + piece->copy;
    }
    agent->received += stage->pieces_count == 0 ? stage->data.size : 0;
    return 0;
}

static void answer_stage(struct by_agent *agent)
{
    const by_Stage *stage = &agent->request.body.stage;
    struct by_text text;

    if (stage->total < BY_IMAGE_HEADER_BYTES || stage->total > agent->config.image_bytes_max) {
        text = fail(agent, BY_ELIMIT);
        by_text_add(&text, "stage: an image of ");
        by_text_number(&text, stage->total);
        by_text_add(&text, " bytes; this switch takes ");
        by_text_number(&text, BY_IMAGE_HEADER_BYTES);
        by_text_add(&text, " to ");
        by_text_number(&text, agent->config.image_bytes_max);
        by_text_add(&text, ": plan fewer trees or start it with a larger board");
        return;
    }
    if (stage->offset == 0) {
        forget_staged(agent);
        agent->total = stage->total;
    }
    if (agent->is_validated || stage->total != agent->total || stage->offset != agent->received ||
        (stage->pieces_count == 0 && stage->data.size > agent->total - agent->received)) {
        text = fail(agent, BY_ESTATE);
        by_text_add(&text, "stage: ");
        by_text_number(&text, stage->data.size);
        by_text_add(&text, " bytes at offset ");
        by_text_number(&text, stage->offset);
        by_text_add(&text, " of ");
        by_text_number(&text, stage->total);
        by_text_add(&text, "; expected offset ");
        by_text_number(&text, agent->received);
        by_text_add(&text, " of ");
        by_text_number(&text, agent->total);
        by_text_add(&text, ": begin again at offset 0");
        return;
    }
    if (take_pieces(agent, stage) != 0)
        return;
    agent->response.which_body = by_Response_stage_tag;
    agent->response.body.stage.received = agent->received;
}

/* Stages what was kept in an earlier life. */
static void answer_restore(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    uint64_t wanted = agent->request.body.restore.hash;
    uint64_t hash = config->saved ? by_image_hash(config->saved, config->saved_bytes) : 0;
    struct by_text text;

    if (!config->saved || hash != wanted) {
        text = fail(agent, BY_ENOENT);
        by_text_add(&text, "restore: ");
        if (!config->saved) {
            by_text_add(&text, "no table of an earlier life is offered");
        } else {
            by_text_add(&text, "the saved table is ");
            by_text_hash(&text, hash);
            by_text_add(&text, ", the request names ");
            by_text_hash(&text, wanted);
        }
        by_text_add(&text, ": push the images instead");
        return;
    }
    forget_staged(agent);
    memcpy(agent->image, config->saved, config->saved_bytes);
    agent->total = agent->received = config->saved_bytes;
    agent->response.which_body = by_Response_stage_tag;
    agent->response.body.stage.received = agent->received;
}

/* Has the node check and keep the staged image. 0, or a failed response. */
static int accept_image(struct by_agent *agent)
{
    struct by_image_fault fault = {0};
    struct by_image_header header;
    struct by_text text;
    int error = agent->config.ops->stage(agent->config.node, agent->image, agent->total, &fault);

    if (error != 0) {
        text = fail(agent, error);
        by_refuse_image(&text, error, &fault);
        return error;
    }
    by_image_header(agent->image, &header);
    if (header.kind != BY_NODE_SWITCH) {
        text = fail(agent, BY_EINVAL);
        by_text_add(&text, "validate: the image is of host ");
        by_text_add(&text, header.name);
        by_text_add(&text, ", this is a switch: push a switch's image");
        agent->config.ops->abort(agent->config.node);
        return BY_EINVAL;
    }
    if (header.count[BY_SECTION_PORT] > agent->config.port_count) {
        text = fail(agent, BY_ELIMIT);
        by_text_add(&text, "validate: the image of ");
        by_text_add(&text, header.name);
        by_text_add(&text, " has ");
        by_text_number(&text, header.count[BY_SECTION_PORT]);
        by_text_add(&text, " ports, this switch ");
        by_text_number(&text, agent->config.port_count);
        by_text_add(&text, ": give it more --iface, --vdev or --pci, or push the right node's image");
        agent->config.ops->abort(agent->config.node);
        return BY_ELIMIT;
    }
    return 0;
}

static void answer_validate(struct by_agent *agent)
{
    uint64_t wanted = agent->request.body.validate.hash;
    uint64_t hash;
    struct by_text text;

    if (agent->total == 0 || agent->received != agent->total) {
        text = fail(agent, BY_ESTATE);
        by_text_add(&text, "validate: ");
        by_text_number(&text, agent->received);
        by_text_add(&text, " of ");
        by_text_number(&text, agent->total);
        by_text_add(&text, " bytes are staged: stage the whole image first");
        return;
    }
    hash = by_image_hash(agent->image, agent->total);
    if (hash != wanted) {
        text = fail(agent, BY_ECHECKSUM);
        by_text_add(&text, "validate: the staged image hashes to ");
        by_text_hash(&text, hash);
        by_text_add(&text, ", the request names ");
        by_text_hash(&text, wanted);
        by_text_add(&text, ": stage it again");
        return;
    }
    if (!agent->is_validated && accept_image(agent) != 0)
        return;
    agent->is_validated = 1;
    agent->validated = hash;
    agent->validated_push = agent->request.body.validate.push;
    agent->response.which_body = by_Response_validate_tag;
    agent->response.body.validate.hash = hash;
}

static void answer_commit(struct by_agent *agent)
{
    uint64_t hash = agent->request.body.commit.hash;
    struct by_text text;
    int error;

    if (!agent->is_validated || hash != agent->validated) {
        if (hash == 0 || hash != active_hash(agent)) {
            text = fail(agent, BY_ESTATE);
            by_text_add(&text, "commit: ");
            by_text_hash(&text, hash);
            by_text_add(&text, " is neither validated nor active");
            if (agent->is_validated) {
                by_text_add(&text, "; validated is ");
                by_text_hash(&text, agent->validated);
            }
            by_text_add(&text, ": stage and validate it first");
            return;
        }
    } else {
        error = agent->config.ops->commit(agent->config.node);
        if (error != 0) {
            text = fail(agent, error);
            by_text_add(&text, "commit: ");
            by_text_add(&text, by_error_text(error));
            by_text_add(&text, "; the active table is unchanged: stage the image again");
            forget_staged(agent);
            return;
        }
        agent->active_push = agent->validated_push;
        agent->is_validated = 0; /* it is the active one now: nothing is left to abort */
        if (agent->config.ops->keep)
            agent->config.ops->keep(agent->config.node, agent->image, agent->total);
        agent->config.saved = NULL; /* an earlier life's table is offered no more */
        forget_staged(agent);
    }
    agent->response.which_body = by_Response_commit_tag;
    agent->response.body.commit.hash = hash;
}

static void answer_read(struct by_agent *agent)
{
    const by_Read *read = &agent->request.body.read;
    by_ReadReply *reply = &agent->response.body.read;
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);
    uint32_t count = read->bytes < BY_CHUNK_BYTES_MAX ? read->bytes : BY_CHUNK_BYTES_MAX;
    uint32_t offset = read->offset;
    struct by_text text;

    if (!image || offset > bytes) {
        text = fail(agent, image ? BY_ERANGE : BY_ENOENT);
        by_text_add(&text, "read: ");
        if (image) {
            by_text_add(&text, "offset ");
            by_text_number(&text, offset);
            by_text_add(&text, " lies beyond the active image of ");
            by_text_number(&text, bytes);
            by_text_add(&text, " bytes");
        } else {
            by_text_add(&text, "no table is active: push one first");
        }
        return;
    }
    if (count > bytes - offset)
        count = (uint32_t)(bytes - offset);
    agent->response.which_body = by_Response_read_tag;
    reply->total = (uint32_t)bytes;
    reply->hash = by_image_hash(image, bytes);
    reply->offset = offset;
    reply->data.size = (pb_size_t)count;
    memcpy(reply->data.bytes, image + offset, count);
}

static void answer_counters(struct by_agent *agent)
{
    by_CountersReply *reply = &agent->response.body.counters;
    struct by_agent_counter counter;
    struct by_agent_port port;

    agent->response.which_body = by_Response_counters_tag;
    for (uint32_t i = 0; i < sizeof reply->engine / sizeof reply->engine[0]; i++) {
        if (agent->config.ops->counter(agent->config.node, i, &counter) != 0)
            break;
        copy_name(reply->engine[i].name, sizeof reply->engine[i].name, counter.name);
        reply->engine[i].value = counter.value;
        reply->engine_count = (pb_size_t)(i + 1);
    }
    for (uint32_t i = 0; i < sizeof reply->ports / sizeof reply->ports[0]; i++) {
        by_PortCounters *row = &reply->ports[i];

        if (agent->config.ops->port(agent->config.node, i, &port) != 0)
            break;
        copy_name(row->name, sizeof row->name, port.name);
        row->rx_packets = port.rx_packets;
        row->rx_bytes = port.rx_bytes;
        row->tx_packets = port.tx_packets;
        row->tx_bytes = port.tx_bytes;
        row->rx_dropped = port.rx_dropped;
        row->tx_dropped = port.tx_dropped;
        reply->ports_count = (pb_size_t)(i + 1);
    }
}

/* Entries that wait, up to what one response holds. */
static void answer_waiting(struct by_agent *agent)
{
    by_WaitingReply *reply = &agent->response.body.waiting;
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);
    struct by_image_header header;

    agent->response.which_body = by_Response_waiting_tag;
    if (!image)
        return;
    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_WaitingEntry *row = &reply->entries[reply->entries_count];
        struct by_image_entry entry;
        struct by_bank_view view;

        if (reply->entries_count == sizeof reply->entries / sizeof reply->entries[0])
            break;
        if (agent->config.ops->waiting(agent->config.node, i, &view) != 0)
            continue;
        by_image_entry(image, i, &entry);
        row->job = entry.job;
        row->tree = entry.tree;
        row->seq = view.seq;
        row->state = view.state;
        row->missing = view.missing;
        reply->entries_count++;
    }
}

/* A writer with a lower election id than one seen before was deposed. 0, or a failed response. */
static int check_writer(struct by_agent *agent)
{
    struct by_text text;

    if (agent->request.election_id >= agent->election_id) {
        agent->election_id = agent->request.election_id;
        return 0;
    }
    text = fail(agent, BY_EPERM);
    by_text_add(&text, "election id ");
    by_text_number(&text, agent->request.election_id);
    by_text_add(&text, " is stale: a writer with ");
    by_text_number(&text, agent->election_id);
    by_text_add(&text, " has been here; take a higher one to write");
    return BY_EPERM;
}

/* Does what the decoded request asks; the response is filled. */
static void dispatch(struct by_agent *agent)
{
    struct by_text text;

    switch (agent->request.which_body) {
    case by_Request_hello_tag: /* of a writer: from now on older ones write no more, so what it reads stays
                                  true */
        if (agent->request.election_id == 0 || check_writer(agent) == 0)
            answer_hello(agent);
        return;
    case by_Request_read_tag:
        answer_read(agent);
        return;
    case by_Request_counters_tag:
        answer_counters(agent);
        return;
    case by_Request_waiting_tag:
        answer_waiting(agent);
        return;
    case by_Request_stage_tag:
        if (check_writer(agent) == 0)
            answer_stage(agent);
        return;
    case by_Request_validate_tag:
        if (check_writer(agent) == 0)
            answer_validate(agent);
        return;
    case by_Request_commit_tag:
        if (check_writer(agent) == 0)
            answer_commit(agent);
        return;
    case by_Request_restore_tag:
        if (check_writer(agent) == 0)
            answer_restore(agent);
        return;
    case by_Request_abort_tag:
        if (check_writer(agent) == 0)
            forget_staged(agent);
        return;
    default:
        text = fail(agent, BY_EUNSUPPORTED);
        by_text_add(&text, "request: no body that this switch (");
        by_text_add(&text, agent->config.software);
        by_text_add(&text, ") knows: use a client of its version");
    }
}

size_t by_agent_answer(struct by_agent *agent, const uint8_t *message, size_t bytes, uint8_t *out,
                       size_t capacity)
{
    pb_istream_t in = pb_istream_from_buffer(message, bytes);
    pb_ostream_t stream = pb_ostream_from_buffer(out, capacity);
    struct by_text text;
    bool encoded;

    BY_ASSERT(capacity >= BY_RESPONSE_BYTES_MAX);
    memset(&agent->response, 0, sizeof agent->response);
    agent->response.version = BY_CONTROL_VERSION;
    if (!pb_decode(&in, by_Request_fields, &agent->request)) {
        text = fail(agent, BY_EFORMAT);
        by_text_add(&text, "request: ");
        by_text_number(&text, bytes);
        by_text_add(&text, " bytes are not a request of control.proto (");
        by_text_add(&text, PB_GET_ERROR(&in));
        by_text_add(&text, "): use a banyan client");
    } else if (agent->request.version != BY_CONTROL_VERSION) {
        agent->response.id = agent->request.id;
        text = fail(agent, BY_EVERSION);
        by_text_add(&text, "request: version ");
        by_text_number(&text, agent->request.version);
        by_text_add(&text, "; this switch speaks ");
        by_text_number(&text, BY_CONTROL_VERSION);
    } else {
        agent->response.id = agent->request.id;
        dispatch(agent);
    }
    encoded = pb_encode(&stream, by_Response_fields, &agent->response);
    BY_ASSERT(encoded);
    return stream.bytes_written;
}
