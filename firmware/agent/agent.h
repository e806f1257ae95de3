/*
 * The switch's end of the control channel, as a step without input or output: bytes of requests in,
 * bytes of responses out (control.proto, coded by nanopb). A controller stages a table image in
 * chunks, has it validated, and commits it; it reads back what is active, counters, and who is
 * waited for. The node behind it is reached through a const struct of functions, so the same agent
 * runs in banyan-switchd, in tests and on bare metal. Memory is the caller's. One agent belongs to
 * one thread, that of the node.
 *
 *   by_agent_size -> memory -> by_agent_init; for each client: by_channel_init, then
 * by_channel_step with what came from its stream
 */
#ifndef BY_FIRMWARE_AGENT_AGENT_H
#define BY_FIRMWARE_AGENT_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/guard.h"
#include "offload/base/rate.h"
#include "offload/engine/engine.h"
#include "offload/table/image.h"

/* Version of the messages. */
#define BY_CONTROL_VERSION 1u
/* Length in front of each message (bytes). */
#define BY_CONTROL_LENGTH_BYTES 4u
/* Longest request and response, without the length (bytes): a chunk of 16 KiB and what is around
 * it. */
#define BY_REQUEST_BYTES_MAX  19200u
#define BY_RESPONSE_BYTES_MAX 16768u
/* Data of one Stage or ReadReply (bytes). */
#define BY_CHUNK_BYTES_MAX 16384u
/* Pieces of one Stage (count). */
#define BY_PIECES_MAX 128u
/* Requests of one client: a second in the long run, and at once (count). The longest push is 4096
 * Stages, and a monitor asks some ten times a second; who asks more takes the switch's time from
 * packets. */
#define BY_CHANNEL_REQUESTS_PER_S 1000u
#define BY_CHANNEL_REQUESTS_BURST 8192u
/* What by_channel_step needs of room for output (bytes). */
#define BY_CHANNEL_OUT_MIN (BY_CONTROL_LENGTH_BYTES + BY_RESPONSE_BYTES_MAX + BY_PSK_BYTES)

struct by_agent;

struct by_agent_counter {
    const char *name;
    uint64_t value;
};

/* Bytes are of whole Ethernet frames. */
struct by_agent_port {
    const char *name;
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped;
    uint8_t down; /* no carrier */
};

/* The node behind an agent. All functions get `node`; those that fill `out` return 0, or BY_ENOENT
 * beyond the last index. */
struct by_agent_ops {
    /* Checks an image against the node and keeps it beside the active one: as by_engine_stage. */
    int (*stage)(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault);
    /* Makes the staged image the active one: as by_engine_commit. */
    int (*commit)(void *node);
    /* Forgets the staged image. */
    void (*abort)(void *node);
    /* The active image or NULL: as by_engine_image. */
    const uint8_t *(*image)(void *node, size_t *bytes);
    int (*counter)(void *node, uint32_t index, struct by_agent_counter *out);
    int (*port)(void *node, uint32_t index, struct by_agent_port *out);
    /* The oldest incomplete chunk of entry `index`, BY_EAGAIN when it has none. */
    int (*waiting)(void *node, uint32_t index, struct by_bank_view *out);
    /* Keeps a copy of the image that has just become active, for the next life; must not wait. NULL
     * where a node has no place for it. */
    void (*keep)(void *node, const uint8_t *image, size_t bytes);
    /* Time: monotonic, never 0, and that of the world in nanoseconds since 1970, 0 where it is not
     * known. NULL where a node has no clock: then nothing is limited by rate. */
    void (*clock)(void *node, uint64_t *now_ns, uint64_t *unix_ns);
    /* Share `index`: as by_engine_share. NULL where a node keeps none. */
    int (*share)(void *node, uint32_t index, struct by_engine_share *out);
};

struct by_agent_config {
    const char *name;     /* of the switch; at most BY_NAME_MAX characters count */
    const char *software; /* "banyan 0.1.0" */
    uint64_t boot_nonce;  /* differs after each start */
    uint32_t port_count;
    uint32_t slot_count;
    uint32_t payload_max;
    uint32_t entry_max;
    uint32_t relay_max;
    uint32_t share_max; /* jobs whose shares are kept; 0: unknown, or none is */
    uint32_t image_bytes_max;
    uint32_t able;     /* of control.proto's enum Able, ORed */
    const char *board; /* its name, or NULL */
    uint32_t saved_bytes;
    const uint8_t *saved; /* the image of an earlier life, offered until a table is committed, or NULL */
    const struct by_agent_ops *ops;
    void *node;
};

/* Bytes of memory (16-byte aligned) for `config`. */
size_t by_agent_size(const struct by_agent_config *config);
/* Builds an agent with nothing staged. The config's strings, saved image, ops and node must outlive
 * it. 0, BY_EINVAL or BY_ENOMEM. */
int by_agent_init(struct by_agent **agent, void *memory, size_t bytes, const struct by_agent_config *config);

/* Adds a line to what the switch remembers (journal.h). */
void by_agent_note(struct by_agent *agent, const char *text);

/*
 * Answers one request: the `bytes` of a message at `message` (no length in front). Writes one
 * response to `out` (`capacity` >= BY_RESPONSE_BYTES_MAX) and returns its bytes. Whatever comes in,
 * an answer goes out: an error has a text with object, limit and remedy.
 */
size_t by_agent_answer(struct by_agent *agent, const uint8_t *message, size_t bytes, uint8_t *out,
                       size_t capacity);

/* The error of the last answer (enum by_error, 0 for none), and how many requests of writers were
 * accepted so far: what a server judges its clients by. */
int by_agent_last_error(const struct by_agent *agent);
uint64_t by_agent_writes(const struct by_agent *agent);

/* The stream of one client: collects a message whose bytes come in pieces. About 19 KiB; owned by
 * the caller.
 */
struct by_channel {
    struct by_rate rate;    /* of requests */
    int hasty;              /* the last one came too soon */
    uint32_t have;          /* bytes in `frame` */
    int closed;             /* the stream is beyond repair; its answer has been given */
    struct by_guard *guard; /* NULL: requests come as they are */
    struct by_psk psk;      /* the session of this client, when guarded */
    uint8_t frame[BY_CONTROL_LENGTH_BYTES + BY_REQUEST_BYTES_MAX + BY_PSK_BYTES];
};

/* `guard`: requests are taken under its key alone; it is the line's, and outlives its clients.
 * NULL: plain.
 */
void by_channel_init(struct by_channel *channel, struct by_guard *guard);

/*
 * Takes bytes of the stream, at most up to the end of one message, and writes its answer with the
 * length in front. `*used` is how many were taken: call again with the rest while it is positive
 * and there is room. Returns the bytes written (0: the message is not complete), or BY_EFORMAT once
 * the stream is closed because a length was impossible (the answer that says so came before).
 * `capacity` must be at least BY_CHANNEL_OUT_MIN. Never reads beyond `bytes`.
 */
int32_t by_channel_step(struct by_channel *channel, struct by_agent *agent, const uint8_t *data, size_t bytes,
                        size_t *used, uint8_t *out, size_t capacity);
/* After a request that came too soon, or one of many that were not under the key, how long the next
 * one should wait (ns), else 0: a shell that does not read so long is spared from refusing it, too.
 * A guarded line must not be read so long: that is what limits guesses. */
uint64_t by_channel_wait_ns(const struct by_channel *channel, struct by_agent *agent);

#endif
