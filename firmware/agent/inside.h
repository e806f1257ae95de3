/* The state and the answers that the agent's files share. Not for other folders. Agent's thread. */
#ifndef BY_FIRMWARE_AGENT_INSIDE_H
#define BY_FIRMWARE_AGENT_INSIDE_H

#include "firmware/agent/agent.h"
#include "firmware/agent/journal.h"
#include "firmware/agent/text.h"
#include "proto/control.pb.h"

struct by_agent {
    struct by_agent_config config;
    uint64_t election_id;    /* the highest seen */
    uint64_t election_count; /* accepted requests of writers */
    uint32_t total;          /* bytes of the image being staged, 0 = none */
    uint32_t received;
    uint64_t validated; /* hash of the image that the node has accepted and not yet committed */
    uint64_t validated_push, active_push; /* the pushes of that image and of the active image */
    int is_validated;
    uint64_t active_hash;  /* of the active image, which only a commit changes; 0: not computed yet */
    uint32_t active_slots; /* that its entries use */
    uint64_t saved_hash;
    uint64_t start_ns;
    uint64_t announced_ns; /* the last time that its ports announced it; 0: never */
    struct by_journal journal;
    by_Request request;
    by_Response response;
    uint8_t *image; /* config.image_bytes_max */
};

/* agent.c: makes the response a failure and returns the builder of its text. */
struct by_text by_agent_fail(struct by_agent *agent, int error);
/* agent.c: returns the node's monotonic time, 0 without a clock. */
uint64_t by_agent_now(struct by_agent *agent);
/* notice.c: whether the last request was answered and requests notices; and the encoded notice. */
int by_agent_asks_notices(const struct by_agent *agent);
size_t by_agent_notice(struct by_agent *agent, uint8_t *out, size_t capacity);
/* agent.c: encodes agent->response; returns its bytes. */
size_t by_agent_encode(struct by_agent *agent, uint8_t *out, size_t capacity);
/* channel.c: answers a complete request, unless it came too soon, like by_agent_answer. */
size_t by_channel_answer(struct by_channel *channel, struct by_agent *agent, const uint8_t *message,
                         size_t bytes, uint8_t *out, size_t capacity);
/* guard.c: the same for the body of a frame on a guarded channel; `out` gets a body. */
size_t by_guard_answer(struct by_channel *channel, struct by_agent *agent, const uint8_t *body, size_t bytes,
                       uint8_t *out, size_t capacity);
/* look.c: returns the hash of the active image, 0 without one. */
uint64_t by_agent_active_hash(struct by_agent *agent);
void by_agent_answer_hello(struct by_agent *agent);
void by_agent_answer_read(struct by_agent *agent);
void by_agent_answer_counters(struct by_agent *agent);
void by_agent_answer_waiting(struct by_agent *agent);
void by_agent_answer_ports(struct by_agent *agent);
void by_agent_answer_log(struct by_agent *agent);
/* interfaces.c */
void by_agent_answer_interfaces(struct by_agent *agent);
/* write.c */
void by_agent_answer_stage(struct by_agent *agent);
void by_agent_answer_restore(struct by_agent *agent);
void by_agent_answer_validate(struct by_agent *agent);
void by_agent_answer_commit(struct by_agent *agent);
void by_agent_forget_staged(struct by_agent *agent);

#endif
