/* Requests under a pre-shared key; see guard.h. Agent's thread. */
#include "firmware/agent/guard.h"

#include "firmware/agent/inside.h"
#include "firmware/agent/refuse.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

#define LINE_SHIFT 48u

void by_guard_open(struct by_guard *guard, const struct by_siphash_key *key, uint64_t boot_nonce,
                   uint16_t line)
{
    *guard = (struct by_guard){.key = *key, .boot_nonce = boot_nonce, .next = (uint64_t)line << LINE_SHIFT};
    by_rate_start(&guard->refusals, BY_GUARD_REFUSALS_PER_S, BY_GUARD_REFUSALS_BURST);
}

/* Counts a refusal and reports it in a plain message, because there is no session. */
static size_t refuse(struct by_channel *channel, struct by_agent *agent, enum by_psk_fault fault,
                     uint8_t *out, size_t capacity)
{
    static const char *const words[] = {
        [BY_PSK_PLAIN] = "key: this switch requires its pre-shared key: give the address as psk+unix:PATH or "
                         "psk+tcp:HOST:PORT, and --psk FILE",
        [BY_PSK_CUT] = "key: an invalid frame of the key mode: connect again",
        [BY_PSK_CLOSED] = "key: a request without a session: connect again",
        [BY_PSK_FORGED] = "key: the tag of a request is wrong: use the same key at both ends",
        [BY_PSK_STALE] = "key: a request is repeated or out of order: connect again",
    };
    struct by_guard_counters *counters = &channel->guard->counters;

    counters->plain += fault == BY_PSK_PLAIN;
    counters->cut += fault == BY_PSK_CUT;
    counters->closed += fault == BY_PSK_CLOSED;
    counters->forged += fault == BY_PSK_FORGED;
    counters->stale += fault == BY_PSK_STALE;
    channel->psk = (struct by_psk){0};
    (void)by_rate_take(&channel->guard->refusals, by_agent_now(agent));
    by_agent_note(agent, words[fault]);
    return by_refuse(BY_EPERM, words[fault], out, capacity);
}

static size_t begin(struct by_channel *channel, const uint8_t *body, uint8_t *out)
{
    struct by_guard *guard = channel->guard;
    uint8_t nonce[BY_PSK_NONCE_BYTES];

    by_put64(nonce, guard->boot_nonce);
    by_put64(nonce + 8, guard->next++);
    guard->counters.sessions++;
    by_psk_welcome(&channel->psk, &guard->key, body, nonce, out);
    return BY_PSK_WELCOME_BYTES;
}

size_t by_guard_answer(struct by_channel *channel, struct by_agent *agent, const uint8_t *body, size_t bytes,
                       uint8_t *out, size_t capacity)
{
    enum by_psk_fault fault;
    size_t made;

    if (by_psk_is_open(body, bytes))
        return begin(channel, body, out);
    fault = by_psk_unseal(&channel->psk, body, bytes);
    if (fault != BY_PSK_FINE)
        return refuse(channel, agent, fault, out, capacity);
    made = by_channel_answer(channel, agent, body + BY_PSK_HEAD_BYTES, bytes - BY_PSK_BYTES,
                             out + BY_PSK_HEAD_BYTES, capacity - BY_PSK_BYTES);
    return by_psk_seal(&channel->psk, out, made);
}
