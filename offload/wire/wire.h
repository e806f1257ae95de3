/*
 * The banyan packet: a 40-byte header in network byte order, followed by the payload
 * (offload/wire/PROTOCOL.md). This file only encodes and decodes; the engine and the endpoint
 * interpret the packets. Pure; any thread.
 */
#ifndef BY_WIRE_WIRE_H
#define BY_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/types.h"

#define BY_WIRE_VERSION      1u
#define BY_WIRE_HEADER_BYTES 40u
/* The child index of a RESULT that is addressed to all children. */
#define BY_WIRE_CHILD_ALL 255u

/* Offsets of the header's fields (bytes). Words of 8 bytes begin at HEAD, GEN, WITNESS, PSUM,
 * TAG. */
enum by_header_at {
    BY_HEADER_AT_HEAD = 0, /* version and length */
    BY_HEADER_AT_TYPE = 1,
    BY_HEADER_AT_FLAGS = 2,
    BY_HEADER_AT_CHILD = 3,
    BY_HEADER_AT_JOB = 4, /* together with the tree a 32-bit number, job << 16 | tree */
    BY_HEADER_AT_TREE = 6,
    BY_HEADER_AT_GEN = 8, /* gen, op, dtype, mode */
    BY_HEADER_AT_SEQ = 12,
    BY_HEADER_AT_WITNESS = 16, /* witness, count, nleaf */
    BY_HEADER_AT_COUNT = 20,
    BY_HEADER_AT_PSUM = 24, /* psum, optag */
    BY_HEADER_AT_OPTAG = 28,
    BY_HEADER_AT_TAG = 32,
    BY_HEADER_AT_CRC = 36 /* the low half of the tag */
};

/* X(NAME, value, "name") */
#define BY_TYPE_LIST(X)                                                                                      \
    X(CONTRIB, 1, "contrib")                                                                                 \
    X(RESULT, 2, "result")                                                                                   \
    X(WAIT, 3, "wait")                                                                                       \
    X(ERR, 4, "err")                                                                                         \
    X(PROBE, 5, "probe")                                                                                     \
    X(GAP, 6, "gap")

#define X(name, value, text) BY_TYPE_##name = (value),
enum by_type { BY_TYPE_LIST(X) BY_TYPE_COUNT };
#undef X

enum by_flag {
    BY_FLAG_RETX = 0x01, /* sent again, or built from such packets: a hint for round-trip measurement only; no
                            chunk's state depends on it */
    BY_FLAG_NODATA = 0x02,  /* no payload. CONTRIB: a receive credit. RESULT: an acknowledgement */
    BY_FLAG_CE = 0x04,      /* congestion was observed below; ORed along the tree */
    BY_FLAG_PARTIAL = 0x08, /* nleaf is deliberately less than the job's size */
    BY_FLAG_POISON = 0x10,  /* the ranks disagree; the value is void */
    BY_FLAG_START = 0x20,   /* a chunk of a session's first two windows: it claims its bank from any older
                               chunk */
    BY_FLAG_ACKONLY = 0x40, /* CONTRIB: no rank below needs the value; the RESULT may have NODATA */
    BY_FLAG_KEYED = 0x80,   /* the tag depends on the job's key (seal.h) and is no plain checksum */
    /* Flags that a receiver of this version understands. */
    BY_FLAGS_KNOWN = BY_FLAG_RETX | BY_FLAG_NODATA | BY_FLAG_CE | BY_FLAG_PARTIAL | BY_FLAG_POISON |
                     BY_FLAG_START | BY_FLAG_ACKONLY | BY_FLAG_KEYED
};

/* The first byte of a header. */
#define BY_WIRE_HEAD (BY_WIRE_VERSION << 4 | BY_WIRE_HEADER_BYTES / 8)

/* A decoded header. */
struct by_header {
    uint8_t type;  /* enum by_type */
    uint8_t flags; /* enum by_flag */
    uint8_t child; /* the bit of the sender in the receiver's bitmap; on RESULT the child addressed */
    uint8_t op;
    uint8_t dtype;
    uint8_t mode;
    uint16_t job;
    uint16_t tree;
    uint16_t gen;
    uint16_t count; /* elements in this chunk */
    uint16_t nleaf; /* leaves in this value */
    uint32_t seq;
    uint32_t witness; /* sum of leaf tags mod 2^32 */
    uint32_t psum;  /* sum of the payload's 32-bit little-endian words mod 2^32 (by_psum in offload/reduce) */
    uint32_t optag; /* by_optag() of the call */
};

/* Writes the 40 bytes, with the CRC32C of bytes 0-31 in the low half of `tag`. With BY_FLAG_KEYED
 * the tag is 0 until by_header_seal. */
void by_header_encode(const struct by_header *header, uint8_t bytes[BY_WIRE_HEADER_BYTES]);

/*
 * Reads a header from the `size` bytes of a UDP payload and points `payload` behind it. Returns the
 * payload's size in bytes, or:
 *   BY_EFORMAT    too short, wrong header length, unknown type, reserved flag, NODATA with a
 *                 payload, or a payload longer than BY_PAYLOAD_MAX
 *   BY_EVERSION   another protocol version
 *   BY_ECHECKSUM  wrong tag
 * Does not check the payload: the receiver checks its psum, its size against count, and the tag of
 * a header with BY_FLAG_KEYED (by_header_is_sealed).
 */
int32_t by_header_decode(const uint8_t *bytes, size_t size, struct by_header *header,
                         const uint8_t **payload);

/* Returns the tag of `rank` in `job`: a well-mixed 32-bit word, so that a missing leaf and a
 * duplicated one do not cancel out. */
uint32_t by_leaf_tag(uint16_t job, uint16_t rank);

/* Returns a hash of the properties that all ranks must agree on besides op, dtype, mode and count:
 * the job's call counter, collective, root and total element count. */
uint32_t by_optag(uint32_t call, unsigned collective, uint16_t root, uint64_t total_count);

/* The collective in the optag of the roll call that opens a session; no user's call has this
 * value. */
#define BY_COLLECTIVE_SESSION 0u

/* Returns the salt of a session from a complete roll call: `nonces[count]` in the order of the
 * ranks. Every optag of the session is XORed with it. */
uint32_t by_session_salt(const uint32_t *nonces, uint32_t count);

/* Payload of WAIT (16 bytes, covered by psum as any payload): the waiting node, its state, and the
 * place in the tree where contributions are missing. */
#define BY_WAIT_BYTES 16u
enum by_wait_state { BY_WAIT_CHILDREN = 1, BY_WAIT_PARENT = 2 };
struct by_wait {
    uint16_t node; /* id of the node that waits (its image's node id) */
    uint8_t state; /* enum by_wait_state: for its children, or for its parent's result */
    uint16_t at;   /* id of the deepest node that is reported to wait for children: `node` or one below it */
    uint8_t set;   /* the set of 64 children, by their numbers, to which `missing` refers */
    uint64_t missing; /* bitmap of the children of `at` that have not contributed */
};
void by_wait_encode(const struct by_wait *wait, uint8_t bytes[BY_WAIT_BYTES]);
int by_wait_decode(const uint8_t *bytes, size_t size, struct by_wait *wait);

/* Payload of ERR (48 bytes, covered by psum as any payload): the objecting node, the child, and
 * both sides of the disagreement. */
#define BY_ERR_BYTES    48u
#define BY_ERR_AT_AGREE 40u /* of `agree` in that payload */
enum by_err_reason {
    BY_ERR_MISMATCH = 1,
    BY_ERR_WINDOW,
    BY_ERR_NO_ENTRY,
    BY_ERR_UNSUPPORTED,
    BY_ERR_MEMORY,
    BY_ERR_RANK, /* a host with several ranks lacks one of them */
};
enum by_err_fate { BY_FATE_ENDED = 1, BY_FATE_LEFT, BY_FATE_SILENT };
struct by_err_side {
    uint8_t op, dtype, mode, child; /* child: the bitmap bit at `node` of the child that contributed this */
    uint16_t count;
    uint32_t optag;
};
struct by_err {
    uint16_t node;  /* id of the objecting node */
    uint8_t reason; /* enum by_err_reason */
    uint32_t seq;
    uint32_t expected_seq;           /* BY_ERR_WINDOW: the bank's seq; BY_ERR_RANK: the rank */
    struct by_err_side first, other; /* MISMATCH, UNSUPPORTED, MEMORY; RANK: first.count is its by_err_fate */
    uint64_t agree;                  /* bitmap of the children at `node` that agree with `first` */
};
void by_err_encode(const struct by_err *err, uint8_t bytes[BY_ERR_BYTES]);
int by_err_decode(const uint8_t *bytes, size_t size, struct by_err *err);

/* Payload of GAP (8 bytes, covered by psum as any payload): chunks of a hop's stream that the
 * sender lacks, although it has a later one. The first is the header's seq. */
#define BY_GAP_BYTES  8u
#define BY_GAP_CHUNKS 8u /* that one GAP can name */
struct by_gap {
    uint32_t seen;   /* a chunk of the same stream that the sender has */
    uint8_t missing; /* bit i: chunk seq + i; bit 0 is set */
};
void by_gap_encode(const struct by_gap *gap, uint8_t bytes[BY_GAP_BYTES]);
int by_gap_decode(const uint8_t *bytes, size_t size, struct by_gap *gap);

const char *by_type_name(unsigned type);

#endif
