/* Tags of keyed packets, and the keys for them; PROTOCOL.md defines the hashed bytes. Pure; any
 * thread. */
#include "offload/wire/seal.h"

#include "offload/base/bytes.h"

enum label { LABEL_HOP = 1, LABEL_PAYLOAD = 2 };

static void derive(const struct by_siphash_key *job, unsigned label, unsigned down, uint16_t from,
                   uint16_t to, struct by_siphash_key *key)
{
    uint8_t what[8] = {(uint8_t)label, 0, (uint8_t)down, 0};

    by_put16(what + 4, from);
    by_put16(what + 6, to);
    key->k0 = by_siphash(job, what, sizeof(what));
    what[1] = 1;
    key->k1 = by_siphash(job, what, sizeof(what));
}

void by_hop_keys_make(const struct by_siphash_key *job, uint16_t node, uint16_t other, int up,
                      struct by_hop_keys *keys)
{
    derive(job, LABEL_HOP, up ? 1 : 0, other, node, &keys->in);
    derive(job, LABEL_HOP, up ? 0 : 1, node, other, &keys->out);
}

void by_payload_key_make(const struct by_siphash_key *job, struct by_siphash_key *key)
{
    derive(job, LABEL_PAYLOAD, 0, 0, 0, key);
}

uint64_t by_payload_digest(const struct by_siphash_key *key, unsigned cover, unsigned type,
                           const uint8_t *payload, uint32_t bytes)
{
    if (bytes == 0 || (cover != BY_COVER_PAYLOAD && (type == BY_TYPE_CONTRIB || type == BY_TYPE_RESULT)))
        return 0;
    return by_siphash(key, payload, bytes);
}

/* Returns the SipHash of 40 bytes: the header up to the tag, then the digest. */
static uint64_t tag_of(const uint8_t *header, const struct by_siphash_key *key, uint64_t digest)
{
    struct by_siphash_state state;

    by_siphash_begin(&state, key);
    for (unsigned at = 0; at < BY_HEADER_AT_TAG; at += 8)
        by_siphash_word(&state, by_siphash_get(header + at));
    by_siphash_word(&state, digest);
    return by_siphash_end(&state, 0, BY_HEADER_AT_TAG + 8);
}

void by_header_seal(uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key, uint64_t digest)
{
    by_put64(header + BY_HEADER_AT_TAG, tag_of(header, key, digest));
}

int by_header_is_sealed(const uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key,
                        uint64_t digest)
{
    return by_get64(header + BY_HEADER_AT_TAG) == tag_of(header, key, digest);
}
