/*
 * The switch's end of the control channel, as a state machine without input or output: bytes of
 * requests in, bytes of responses out (control.proto, encoded by nanopb). A controller stages a
 * table image in chunks, has it validated, and commits it. It can read the active image, counters,
 * and which nodes chunks wait for. The agent calls its node through a const struct of functions, so
 * the same agent runs in banyan-switchd, in tests and on bare metal. The memory is the caller's.
 * One agent belongs to one thread, that of the node.
 *
 *   by_agent_size -> memory -> by_agent_init
 *   for each client: by_channel_init, then by_channel_step with the bytes from its stream
 */
#ifndef BY_FIRMWARE_AGENT_AGENT_H
#define BY_FIRMWARE_AGENT_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/guard.h"
#include "offload/base/rate.h"
#include "offload/engine/engine.h"
#include "offload/table/image.h"
#include "offload/wire/lldp.h"

/* Version of the messages. */
#define BY_CONTROL_VERSION 1u
/* Size of the length in front of each message (bytes). */
#define BY_CONTROL_LENGTH_BYTES 4u
/* Maximum request and response, without the length (bytes): a chunk of 16 KiB with its surrounding
 * fields. */
#define BY_REQUEST_BYTES_MAX  19200u
#define BY_RESPONSE_BYTES_MAX 16768u
/* Maximum data of one Stage or ReadReply (bytes). */
#define BY_CHUNK_BYTES_MAX 16384u
/* Maximum pieces of one Stage (count). */
#define BY_PIECES_MAX 128u
/* Requests of one client: per second in the long run, and in a burst (count). The longest push is
 * 4096 Stages, and a monitor sends some ten requests a second; more requests would take the
 * switch's processor time from packets. */
#define BY_CHANNEL_REQUESTS_PER_S 1000u
#define BY_CHANNEL_REQUESTS_BURST 8192u
/* Room for output that by_channel_step requires (bytes). */
#define BY_CHANNEL_OUT_MIN (BY_CONTROL_LENGTH_BYTES + BY_RESPONSE_BYTES_MAX + BY_PSK_BYTES)

struct by_agent;

struct by_agent_counter {
    const char *name;
    uint64_t value;
};

/* Counters of a port; bytes are those of whole Ethernet frames. */
struct by_agent_port {
    const char *name;
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_dropped, tx_dropped;
    uint8_t down;    /* no carrier */
    uint32_t silent; /* address, or number in the table, of a neighbour that does not answer; 0: none */
};

/* What a port is, and its neighbour. Texts are "", numbers 0, and addresses zero where they are
 * unknown. */
struct by_agent_interface {
    char name[BY_NAME_MAX + 1];
    uint8_t is_kernel, down;
    uint8_t mac[BY_MAC_BYTES];
    uint32_t mtu, speed_mbps, queues;
    uint32_t numa; /* 1 + the number of the NUMA node */
    char driver[32], bus[32], features[128], addresses[96];
    const struct by_lldp *neighbour; /* NULL: none was heard */
};

/* How a port moves packets: the fields of Port in control.proto. Strings may be empty, not NULL. */
struct by_agent_way {
    const char *name, *driver, *why, *offloads, *steer;
    uint32_t mtu, rx_queues, tx_queues, rx_descriptors, tx_descriptors, mbps;
    uint8_t by_reference, late, promiscuous, down;
};

/* The node of an agent. All functions get `node`; those that fill `out` return 0, or BY_ENOENT
 * beyond the last index. */
struct by_agent_ops {
    /* Checks an image against the node and stores it beside the active one, like
     * by_engine_stage. */
    int (*stage)(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault);
    /* Activates the staged image, like by_engine_commit. */
    int (*commit)(void *node);
    /* Discards the staged image. */
    void (*abort)(void *node);
    /* Returns the active image or NULL, like by_engine_image. */
    const uint8_t *(*image)(void *node, size_t *bytes);
    int (*counter)(void *node, uint32_t index, struct by_agent_counter *out);
    int (*port)(void *node, uint32_t index, struct by_agent_port *out);
    /* Reads the oldest incomplete chunk of entry `index`; BY_EAGAIN when it has none. */
    int (*waiting)(void *node, uint32_t index, struct by_bank_view *out);
    /* Keeps a copy of the image that has just become active, for after a restart; must not wait.
     * NULL if a node cannot store it. */
    void (*keep)(void *node, const uint8_t *image, size_t bytes);
    /* Reads the time: monotonic, never 0; and nanoseconds since 1970, 0 if unknown. NULL if a node
     * has no clock: then no rate limits apply. */
    void (*clock)(void *node, uint64_t *now_ns, uint64_t *unix_ns);
    /* Reads share `index`, like by_engine_share. NULL if a node has no shares. */
    int (*share)(void *node, uint32_t index, struct by_engine_share *out);
    /* Describes a port; `out` is zero. NULL if a node cannot. */
    int (*interface)(void *node, uint32_t index, struct by_agent_interface *out);
    /* Sends an LLDP frame on each port that can. NULL if a node cannot. */
    void (*announce)(void *node);
    /* Describes port `index`; the strings stay valid until the next call. NULL if a node cannot. */
    int (*way)(void *node, uint32_t index, struct by_agent_way *out);
};

struct by_agent_config {
    const char *name;     /* the switch's name; at most BY_NAME_MAX characters count */
    const char *software; /* "banyan 0.1.0" */
    uint64_t boot_nonce;  /* differs after each start */
    uint32_t port_count;
    uint32_t slot_count;
    uint32_t payload_max;
    uint32_t entry_max;
    uint32_t relay_max;
    uint32_t share_max; /* jobs whose shares it can enforce; 0: unknown, or none */
    uint32_t image_bytes_max;
    uint32_t able;     /* of control.proto's enum Able, ORed */
    const char *board; /* its name, or NULL */
    uint32_t saved_bytes;
    const uint8_t *saved; /* image saved before the restart, offered until a commit, or NULL */
    const struct by_agent_ops *ops;
    void *node;
};

/* Returns the bytes of memory (16-byte aligned) for `config`. */
size_t by_agent_size(const struct by_agent_config *config);
/* Builds an agent with nothing staged. The config's strings, saved image, ops and node must outlive
 * it. Returns 0, BY_EINVAL or BY_ENOMEM. */
int by_agent_init(struct by_agent **agent, void *memory, size_t bytes, const struct by_agent_config *config);

/* Adds a line to the switch's journal (journal.h). */
void by_agent_note(struct by_agent *agent, const char *text);

/*
 * Answers one request: the `bytes` of a message at `message` (without the length). Writes one
 * response to `out` (`capacity` >= BY_RESPONSE_BYTES_MAX) and returns its bytes. Every input gets
 * an answer: an error has a text with object, limit and remedy.
 */
size_t by_agent_answer(struct by_agent *agent, const uint8_t *message, size_t bytes, uint8_t *out,
                       size_t capacity);

/* Return the error of the last answer (enum by_error, 0 for none), and the number of accepted
 * requests of writers so far. A server ranks its clients by these. */
int by_agent_last_error(const struct by_agent *agent);
uint64_t by_agent_writes(const struct by_agent *agent);

/* The stream of one client: collects a message that arrives in pieces. About 19 KiB; owned by the
 * caller. */
struct by_channel {
    struct by_rate rate;    /* limit on requests */
    int hasty;              /* the last request came too soon */
    uint32_t have;          /* bytes in `frame` */
    int closed;             /* the stream is broken and the client has been notified */
    int notify;             /* the client has requested notices */
    struct by_guard *guard; /* NULL: requests are plain */
    struct by_psk psk;      /* the session of this client, when guarded */
    uint8_t frame[BY_CONTROL_LENGTH_BYTES + BY_REQUEST_BYTES_MAX + BY_PSK_BYTES];
};

/* Starts a channel. `guard`: only requests under its key are accepted; it belongs to the line and
 * outlives the line's clients. NULL: plain. */
void by_channel_init(struct by_channel *channel, struct by_guard *guard);

/*
 * Consumes bytes of the stream, at most up to the end of one message, and writes its answer with
 * the length in front. `*used` is the number of bytes consumed: call again with the rest while it
 * is positive and there is room. Returns the bytes written (0: the message is incomplete), or
 * BY_EFORMAT once the stream is closed because of an impossible length (the preceding answer
 * reports that). `capacity` must be at least BY_CHANNEL_OUT_MIN. Never reads beyond `bytes`.
 */
int32_t by_channel_step(struct by_channel *channel, struct by_agent *agent, const uint8_t *data, size_t bytes,
                        size_t *used, uint8_t *out, size_t capacity);
/*
 * Writes a notice, which is the present counters in a response to no request, for a client that has
 * requested notices, between two answers. Returns its bytes with the length in front; 0 if the
 * client has not requested them. `capacity` as above.
 */
size_t by_channel_notice(struct by_channel *channel, struct by_agent *agent, uint8_t *out, size_t capacity);
/* Returns how long the next request should wait (ns) after one that came too soon, or one of many
 * without the key; else 0. A shell that does not read for that time need not refuse the next one
 * too. A guarded line must not be read for that time, because this limits guesses. */
uint64_t by_channel_wait_ns(const struct by_channel *channel, struct by_agent *agent);

#endif
