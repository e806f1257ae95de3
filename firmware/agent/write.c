/*
 * The requests that write: staging, validation, commit. See agent.c. Agent's thread.
 */
#include "firmware/agent/inside.h"

#include <string.h>

#include "firmware/agent/limit.h"
#include "firmware/agent/refuse.h"
#include "offload/base/errors.h"

void by_agent_forget_staged(struct by_agent *agent)
{
    agent->total = 0;
    agent->received = 0;
    if (agent->is_validated)
        agent->config.ops->abort(agent->config.node);
    agent->is_validated = 0;
    agent->validated = 0;
    agent->validated_push = 0;
}

/* Returns the defect of the pieces, or NULL; `*bytes` is how many bytes they add. */
static const char *check_pieces(const by_Stage *stage, size_t active_bytes, uint64_t *bytes)
{
    uint64_t literal = 0;

    *bytes = stage->pieces_count == 0 ? stage->data.size : 0;
    for (pb_size_t i = 0; i < stage->pieces_count; i++) {
        const by_Piece *piece = &stage->pieces[i];

        if ((uint64_t)piece->from + piece->copy > active_bytes)
            return "exceeds the active image";
        literal += piece->literal;
        *bytes += (uint64_t)piece->literal + piece->copy;
    }
    if (stage->pieces_count > 0 && literal != stage->data.size)
        return "does not match the data's length";
    return NULL;
}

/* Adds the data of a Stage. Returns 0, or a failed response. */
static int take_pieces(struct by_agent *agent, const by_Stage *stage)
{
    size_t active_bytes = 0;
    const uint8_t *active = agent->config.ops->image(agent->config.node, &active_bytes);
    const uint8_t *data = stage->data.bytes;
    const char *fault;
    uint64_t bytes;
    struct by_text text;

    if (stage->pieces_count > 0 && (!active || stage->base != by_agent_active_hash(agent))) {
        text = by_agent_fail(agent, BY_ESTATE);
        by_text_add(&text, "stage: the pieces refer to table ");
        by_text_hash(&text, stage->base);
        by_text_add(&text, ", but ");
        by_text_hash(&text, active ? by_agent_active_hash(agent) : 0);
        by_text_add(&text, " is active: stage the whole image");
        return BY_ESTATE;
    }
    fault = check_pieces(stage, active_bytes, &bytes);
    if (fault || bytes > agent->total - agent->received) {
        text = by_agent_fail(agent, BY_ERANGE);
        by_text_add(&text, "stage: a piece ");
        by_text_add(&text, fault ? fault : "exceeds the staged image");
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

void by_agent_answer_stage(struct by_agent *agent)
{
    const by_Stage *stage = &agent->request.body.stage;
    const struct by_agent_config *config = &agent->config;
    size_t active_bytes;
    struct by_text text;

    if (stage->total < BY_IMAGE_HEADER_BYTES || stage->total > config->image_bytes_max) {
        text = by_agent_fail(agent, BY_ELIMIT);
        by_text_add(&text, "stage: ");
        by_limit_explain_bytes(&text, stage->total, config->image_bytes_max,
                               config->ops->image(config->node, &active_bytes), config->board);
        return;
    }
    if (stage->offset == 0) {
        by_agent_forget_staged(agent);
        agent->total = stage->total;
    }
    if (agent->is_validated || stage->total != agent->total || stage->offset != agent->received ||
        (stage->pieces_count == 0 && stage->data.size > agent->total - agent->received)) {
        text = by_agent_fail(agent, BY_ESTATE);
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

/* Stages the image that was saved before the restart. */
void by_agent_answer_restore(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    uint64_t wanted = agent->request.body.restore.hash;
    uint64_t hash = agent->saved_hash;
    struct by_text text;

    if (!config->saved || hash != wanted) {
        text = by_agent_fail(agent, BY_ENOENT);
        by_text_add(&text, "restore: ");
        if (!config->saved) {
            by_text_add(&text, "no saved table is available");
        } else {
            by_text_add(&text, "the saved table is ");
            by_text_hash(&text, hash);
            by_text_add(&text, ", the request names ");
            by_text_hash(&text, wanted);
        }
        by_text_add(&text, ": push the images instead");
        return;
    }
    by_agent_forget_staged(agent);
    memcpy(agent->image, config->saved, config->saved_bytes);
    agent->total = agent->received = config->saved_bytes;
    agent->response.which_body = by_Response_stage_tag;
    agent->response.body.stage.received = agent->received;
}

/* Checks the staged image against the switch's capacity. Returns 0, or a failed response that names
 * the jobs that hold the resource. The image must be valid. */
static int check_limits(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    const struct by_use limits = {.amount = {[BY_RESOURCE_PORTS] = config->port_count,
                                             [BY_RESOURCE_PAYLOAD] = config->payload_max,
                                             [BY_RESOURCE_SLOTS] = config->slot_count,
                                             [BY_RESOURCE_ENTRIES] = config->entry_max,
                                             [BY_RESOURCE_RELAYS] = config->relay_max}};
    char line[sizeof agent->response.text];
    size_t bytes;
    struct by_text text;

    by_text_start(&text, line, sizeof line);
    by_text_add(&text, "validate: ");
    if (!by_limit_explain(&text, agent->image, config->ops->image(config->node, &bytes), &limits,
                          config->board))
        return 0;
    text = by_agent_fail(agent, BY_ELIMIT);
    by_text_add(&text, line);
    return BY_ELIMIT;
}

/* Has the node check and stage the image. Returns 0, or a failed response. */
static int accept_image(struct by_agent *agent)
{
    struct by_image_fault fault = {0};
    struct by_image_header header;
    struct by_text text;
    int error = agent->config.ops->stage(agent->config.node, agent->image, agent->total, &fault);

    /* A violated limit of the switch is reported first, before any other objection of the node. */
    if (error != 0 && by_image_check(agent->image, agent->total, NULL, NULL) == 0 && check_limits(agent) != 0)
        return BY_ELIMIT;
    if (error != 0) {
        text = by_agent_fail(agent, error);
        by_refuse_image(&text, error, &fault);
        return error;
    }
    by_image_header(agent->image, &header);
    if (header.kind != BY_NODE_SWITCH) {
        text = by_agent_fail(agent, BY_EINVAL);
        by_text_add(&text, "validate: the image is for host ");
        by_text_add(&text, header.name);
        by_text_add(&text, ", and this is a switch: push a switch's image");
        error = BY_EINVAL;
    } else {
        error = check_limits(agent);
    }
    if (error != 0)
        agent->config.ops->abort(agent->config.node);
    return error;
}

/* Adds a journal entry such as "validate: 0x... of 4711 bytes, push 17". */
static void note_table(struct by_agent *agent, const char *what, uint64_t hash, uint64_t push)
{
    char line[BY_JOURNAL_TEXT_BYTES];
    struct by_text text;

    by_text_start(&text, line, sizeof line);
    by_text_add(&text, what);
    by_text_hash(&text, hash);
    if (push != 0) {
        by_text_add(&text, ", push ");
        by_text_number(&text, push);
    }
    by_agent_note(agent, line);
}

void by_agent_answer_validate(struct by_agent *agent)
{
    uint64_t wanted = agent->request.body.validate.hash;
    uint64_t hash;
    struct by_text text;

    if (agent->total == 0 || agent->received != agent->total) {
        text = by_agent_fail(agent, BY_ESTATE);
        by_text_add(&text, "validate: ");
        by_text_number(&text, agent->received);
        by_text_add(&text, " of ");
        by_text_number(&text, agent->total);
        by_text_add(&text, " bytes are staged: stage the whole image first");
        return;
    }
    hash = by_image_hash(agent->image, agent->total);
    if (hash != wanted) {
        text = by_agent_fail(agent, BY_ECHECKSUM);
        by_text_add(&text, "validate: the staged image hashes to ");
        by_text_hash(&text, hash);
        by_text_add(&text, ", the request names ");
        by_text_hash(&text, wanted);
        by_text_add(&text, ": stage it again");
        return;
    }
    if (!agent->is_validated && accept_image(agent) != 0)
        return;
    if (!agent->is_validated)
        note_table(agent, "validate: ready to commit: ", hash, agent->request.body.validate.push);
    agent->is_validated = 1;
    agent->validated = hash;
    agent->validated_push = agent->request.body.validate.push;
    agent->response.which_body = by_Response_validate_tag;
    agent->response.body.validate.hash = hash;
}

void by_agent_answer_commit(struct by_agent *agent)
{
    uint64_t hash = agent->request.body.commit.hash;
    struct by_text text;
    int error;

    if (!agent->is_validated || hash != agent->validated) {
        if (hash == 0 || hash != by_agent_active_hash(agent)) {
            text = by_agent_fail(agent, BY_ESTATE);
            by_text_add(&text, "commit: ");
            by_text_hash(&text, hash);
            by_text_add(&text, " is neither validated nor active");
            if (agent->is_validated) {
                by_text_add(&text, "; the validated table is ");
                by_text_hash(&text, agent->validated);
            }
            by_text_add(&text, ": stage and validate it first");
            return;
        }
    } else {
        error = agent->config.ops->commit(agent->config.node);
        if (error != 0) {
            text = by_agent_fail(agent, error);
            by_text_add(&text, "commit: ");
            by_text_add(&text, by_error_text(error));
            by_text_add(&text, "; the active table is unchanged: stage the image again");
            by_agent_forget_staged(agent);
            return;
        }
        agent->active_push = agent->validated_push;
        agent->active_hash = 0;
        note_table(agent, "commit: the active table is ", hash, agent->active_push);
        agent->is_validated = 0; /* it is active now: nothing is left to abort */
        if (agent->config.ops->keep)
            agent->config.ops->keep(agent->config.node, agent->image, agent->total);
        agent->config.saved = NULL; /* the saved table is no longer offered */
        by_agent_forget_staged(agent);
    }
    agent->response.which_body = by_Response_commit_tag;
    agent->response.body.commit.hash = hash;
}
