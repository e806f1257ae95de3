/*
 * Keyed mode: the tag of a packet is a SipHash under a key that only the two ends of a hop can
 * derive, in place of the CRC (PROTOCOL.md, "Keyed jobs"). A job's key is part of the table image.
 * It yields a key for each hop and direction, so that a packet is valid only at its intended
 * receiver, and a key for payloads. Pure; any thread.
 */
#ifndef BY_WIRE_SEAL_H
#define BY_WIRE_SEAL_H

#include "offload/base/siphash.h"
#include "offload/wire/wire.h"

/* The coverage of a job's tags. In every keyed job the tags of WAIT, ERR and GAP cover the whole
 * packet. */
enum by_cover {
    BY_COVER_NONE,   /* not keyed */
    BY_COVER_HEADER, /* the header with psum: payloads are protected only by the 32-bit sum */
    BY_COVER_PAYLOAD /* the header and the payload */
};

/* The keys of a hop, as seen from one of its ends. */
struct by_hop_keys {
    struct by_siphash_key in, out;
};

/* Derives the keys between `node` and its neighbour `other` in trees of the job; `up`: `other` is
 * the parent. */
void by_hop_keys_make(const struct by_siphash_key *job, uint16_t node, uint16_t other, int up,
                      struct by_hop_keys *keys);
/* Derives the key for the hashes of the job's payloads. */
void by_payload_key_make(const struct by_siphash_key *job, struct by_siphash_key *key);

/* Returns the hash of a payload of `bytes` bytes for the tag, or 0 if the tag does not cover the
 * payload. */
uint64_t by_payload_digest(const struct by_siphash_key *key, unsigned cover, unsigned type,
                           const uint8_t *payload, uint32_t bytes);

/* Writes the tag of an encoded header with BY_FLAG_KEYED. The header must not change afterwards. */
void by_header_seal(uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key, uint64_t digest);
/* Returns 1 when the tag is the one that by_header_seal would write. */
int by_header_is_sealed(const uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key,
                        uint64_t digest);

#endif
