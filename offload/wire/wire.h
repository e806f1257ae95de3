/*
 * The banyan packet: a 40-byte header in network byte order, payload after it
 * (offload/wire/PROTOCOL.md). Encode and decode, and nothing else: what a packet means is decided
 * by the engine and the endpoint. Pure; any thread.
 */
#ifndef BY_WIRE_WIRE_H
#define BY_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/types.h"

#define BY_WIRE_VERSION      1u
#define BY_WIRE_HEADER_BYTES 40u
/* The child index of a RESULT that is addressed to all children at once. */
#define BY_WIRE_CHILD_ALL 255u

/* Where fields lie in a header (bytes). Words of 8 bytes begin at HEAD, GEN, WITNESS, PSUM, TAG. */
enum by_header_at {
    BY_HEADER_AT_HEAD = 0, /* version and length */
    BY_HEADER_AT_TYPE = 1,
    BY_HEADER_AT_FLAGS = 2,
    BY_HEADER_AT_CHILD = 3,
    BY_HEADER_AT_JOB = 4, /* with the tree one 32-bit number, job << 16 | tree */
    BY_HEADER_AT_TREE = 6,
    BY_HEADER_AT_GEN = 8, /* gen, op, dtype, mode */
    BY_HEADER_AT_SEQ = 12,
    BY_HEADER_AT_WITNESS = 16, /* witness, count, nleaf */
    BY_HEADER_AT_PSUM = 24,    /* psum, optag */
    BY_HEADER_AT_TAG = 32,
    BY_HEADER_AT_CRC = 36 /* the low half of the tag */
};

/* X(NAME, value, "name") */
#define BY_TYPE_LIST(X)                                                                                      \
    X(CONTRIB, 1, "contrib")                                                                                 \
    X(RESULT, 2, "result")                                                                                   \
    X(WAIT, 3, "wait")                                                                                       \
    X(ERR, 4, "err")                                                                                         \
    X(PROBE, 5, "probe")

#define X(name, value, text) BY_TYPE_##name = (value),
enum by_type { BY_TYPE_LIST(X) BY_TYPE_COUNT };
#undef X

enum by_flag {
    BY_FLAG_RETX =
        0x01, /* sent again, or made of what was: a hint for clocks, no chunk's state depends on it */
    BY_FLAG_NODATA = 0x02,  /* no payload. CONTRIB: a receive credit. RESULT: an acknowledgement */
    BY_FLAG_CE = 0x04,      /* congestion was seen below; ORed along the tree */
    BY_FLAG_PARTIAL = 0x08, /* nleaf is less than the job's size on purpose */
    BY_FLAG_POISON = 0x10,  /* the ranks disagree; the value is void */
    BY_FLAG_STAMP = 0x20,   /* reserved: time stamps follow the header */
    BY_FLAG_ACKONLY = 0x40, /* CONTRIB: nobody below needs the value back; the RESULT may come with NODATA */
    BY_FLAG_KEYED = 0x80,   /* the tag is the job's (seal.h), not a checksum that anyone can make */
    /* Flags that a receiver of this version understands. */
    BY_FLAGS_KNOWN = BY_FLAG_RETX | BY_FLAG_NODATA | BY_FLAG_CE | BY_FLAG_PARTIAL | BY_FLAG_POISON |
                     BY_FLAG_ACKONLY | BY_FLAG_KEYED
};

/* The first byte of a header. */
#define BY_WIRE_HEAD (BY_WIRE_VERSION << 4 | BY_WIRE_HEADER_BYTES / 8)

/* A decoded header. */
struct by_header {
    uint8_t type;  /* enum by_type */
    uint8_t flags; /* enum by_flag */
    uint8_t child; /* the receiver's bitmap bit; on RESULT the child addressed */
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

/* Writes the 40 bytes, with the CRC32C of bytes 0-31 in the low half of `tag`; with BY_FLAG_KEYED
 * the tag is 0 until by_header_seal. */
void by_header_encode(const struct by_header *header, uint8_t bytes[BY_WIRE_HEADER_BYTES]);

/* Changes flags and child of an encoded header: one header serves every child of a node. */
void by_header_patch(uint8_t bytes[BY_WIRE_HEADER_BYTES], uint8_t flags, uint8_t child);

/*
 * Reads a header from the `size` bytes of a UDP payload and points `payload` behind it. Returns the
 * payload's size in bytes, or BY_EFORMAT (too short, header length, unknown type, reserved flag,
 * NODATA with a payload, or a payload longer than BY_PAYLOAD_MAX), BY_EVERSION, BY_ECHECKSUM (tag).
 * Does not check the payload: its psum and its size against count are the receiver's business; and
 * so is the tag of a header with BY_FLAG_KEYED (by_header_is_sealed).
 */
int32_t by_header_decode(const uint8_t *bytes, size_t size, struct by_header *header,
                         const uint8_t **payload);

/* The tag of `rank` in `job`: a well-mixed 32-bit word, so that a missing and a doubled leaf do not
 * cancel out. */
uint32_t by_leaf_tag(uint16_t job, uint16_t rank);

/* What all ranks must agree on beside op, dtype, mode and count: the job's call counter,
 * collective, root and total element count. */
uint32_t by_optag(uint32_t call, unsigned collective, uint16_t root, uint64_t total_count);

/* The collective in the optag of the roll call that opens a session; no user's call has it. */
#define BY_COLLECTIVE_SESSION 0u

/* The session that follows from a complete roll: `nonces[count]` in the order of the ranks. Every
 * optag of the session is XORed with it. */
uint32_t by_session_salt(const uint32_t *nonces, uint32_t count);

/* Payload of WAIT (16 bytes; psum covers it as any other): who waits, in which state, and at which
 * place in the tree somebody is missing. */
#define BY_WAIT_BYTES 16u
enum by_wait_state { BY_WAIT_CHILDREN = 1, BY_WAIT_PARENT = 2 };
struct by_wait {
    uint16_t node;    /* id of the node that waits (its image's node id) */
    uint8_t state;    /* enum by_wait_state: for its children, or for its parent's result */
    uint16_t at;      /* id of the deepest node below `node`, or `node`, that is known to wait for children */
    uint64_t missing; /* bitmap of those of `at` that have not contributed */
};
void by_wait_encode(const struct by_wait *wait, uint8_t bytes[BY_WAIT_BYTES]);
int by_wait_decode(const uint8_t *bytes, size_t size, struct by_wait *wait);

/* Payload of ERR (48 bytes; psum covers it as any other): who objects, to which child, and both
 * sides of the disagreement. */
#define BY_ERR_BYTES 48u
enum by_err_reason {
    BY_ERR_MISMATCH = 1,
    BY_ERR_WINDOW,
    BY_ERR_NO_ENTRY,
    BY_ERR_UNSUPPORTED,
    BY_ERR_USED,
    BY_ERR_MEMORY
};
struct by_err_side {
    uint8_t op, dtype, mode, child; /* child: the bitmap bit at `node` whose contribution said this */
    uint16_t count;
    uint32_t optag;
};
struct by_err {
    uint16_t node;  /* id of the node that objects; BY_ERR_USED: of the one that holds another run's chunks */
    uint8_t reason; /* enum by_err_reason */
    uint32_t seq;
    uint32_t expected_seq;           /* BY_ERR_WINDOW: the bank's seq */
    struct by_err_side first, other; /* BY_ERR_MISMATCH, BY_ERR_UNSUPPORTED, BY_ERR_MEMORY */
    uint64_t agree;                  /* bitmap of the children at `node` that had said what `first` says */
};
void by_err_encode(const struct by_err *err, uint8_t bytes[BY_ERR_BYTES]);
int by_err_decode(const uint8_t *bytes, size_t size, struct by_err *err);

const char *by_type_name(unsigned type);

#endif
