/*
 * Keyed mode: the tag of a packet is a SipHash under a key that only the two ends of a hop can
 * make, in place of the CRC (PROTOCOL.md, "Keyed jobs"). A job's key comes with the table image;
 * from it follow a key for each hop and direction, so that no packet counts anywhere but where it
 * was meant for, and one for payloads. Pure; any thread.
 */
#ifndef BY_WIRE_SEAL_H
#define BY_WIRE_SEAL_H

#include "offload/base/siphash.h"
#include "offload/wire/wire.h"

/* What the tags of a job cover. WAIT and ERR are covered whole in every keyed job. */
enum by_cover {
    BY_COVER_NONE,   /* not keyed */
    BY_COVER_HEADER, /* the header, with psum: payloads are as sound as a sum of 32 bits makes them */
    BY_COVER_PAYLOAD /* the header and the payload */
};

/* Keys of a hop as one of its ends uses them. */
struct by_hop_keys {
    struct by_siphash_key in, out;
};

/* The keys between `node` and its neighbour `other` in trees of the job; `up`: `other` is the
 * parent. */
void by_hop_keys_make(const struct by_siphash_key *job, uint16_t node, uint16_t other, int up,
                      struct by_hop_keys *keys);
/* The key that payloads of the job are hashed with. */
void by_payload_key_make(const struct by_siphash_key *job, struct by_siphash_key *key);

/* What a tag takes from a payload of `bytes`: its hash, or 0 where nothing of it is covered. */
uint64_t by_payload_digest(const struct by_siphash_key *key, unsigned cover, unsigned type,
                           const uint8_t *payload, uint32_t bytes);

/* Writes the tag of an encoded header with BY_FLAG_KEYED, which stays as it is from then on. */
void by_header_seal(uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key, uint64_t digest);
/* 1 when the tag is the one that by_header_seal would write. */
int by_header_is_sealed(const uint8_t header[BY_WIRE_HEADER_BYTES], const struct by_siphash_key *key,
                        uint64_t digest);

#endif
