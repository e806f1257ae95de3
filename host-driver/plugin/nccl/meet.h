/*
 * How two ranks of the NCCL plugin get TCP streams to each other. The listener writes a handle, 128
 * bytes that NCCL passes to the peer: address, number of streams and a random key. The connecting
 * rank opens that many streams and begins each with a greeting that repeats the key, so a
 * stranger's stream is closed, whatever its order among the others. No function blocks.
 *
 * Threads: one at a time for each object.
 */
#ifndef BY_PLUGIN_NCCL_MEET_H
#define BY_PLUGIN_NCCL_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/plugin/nccl/core.h"

/* What the ranks' streams are for; both ends must agree. */
enum by_nccl_purpose { BY_NCCL_FOR_MESSAGES = 1, BY_NCCL_FOR_COLLECTIVES = 2 };

/* One stream that a listener has accepted, and whose greeting may be incomplete. */
#define BY_NCCL_GREETING_BYTES 32
#define BY_NCCL_GUESTS_MAX     64 /* streams that a listener has accepted and not passed on */

struct by_nccl_guest {
    int file; /* -1: free */
    unsigned got;
    uint64_t since_ns;
    uint64_t number; /* of the connecting rank's choice: its connection, or its rank */
    uint8_t stream;
    uint8_t greeting[BY_NCCL_GREETING_BYTES];
};

struct by_nccl_listener {
    int file;
    unsigned streams;
    enum by_nccl_purpose purpose;
    uint64_t timeout_ns;
    uint8_t key[16];
    struct by_nccl_guest guests[BY_NCCL_GUESTS_MAX];
};

/* Opens a listener at the device, and writes its handle. A result of abi.h. */
int by_nccl_listener_open(int device, enum by_nccl_purpose purpose, uint8_t handle[BY_NCCL_HANDLE_BYTES],
                          struct by_nccl_listener **listener);

/* The same for NCCL: the listener becomes an object of the table, and its number `*number`. */
int by_nccl_listen_for(int device, enum by_nccl_purpose purpose, void *handle, void **number);

/* Accepts streams. If all streams of one connection have arrived: 1, and the caller owns files[0,
 * streams). 0: not yet; < 0: a result of abi.h, negated. */
int by_nccl_listener_take(struct by_nccl_listener *listener, uint64_t *number, int *files);

/* Frees the listener and the streams that it has not passed on; `listener` may be NULL. */
void by_nccl_listener_free(void *listener);

/* The streams of the connecting rank. */
struct by_nccl_visit {
    unsigned streams;
    uint64_t until_ns;
    uint8_t key[16];
    uint64_t number;
    enum by_nccl_purpose purpose;
    struct by_nccl_visit_stream {
        int file;
        bool connected;
        unsigned sent; /* bytes of the greeting */
    } at[BY_NCCL_STREAMS_MAX];
    char peer[64]; /* for texts */
};

/* Starts to connect to the rank that wrote `handle`. `number` tells this rank's visits apart. A
 * result of abi.h. */
int by_nccl_visit_open(const uint8_t handle[BY_NCCL_HANDLE_BYTES], enum by_nccl_purpose purpose,
                       uint64_t number, struct by_nccl_visit **visit);

/* 1: all streams are connected, and the caller owns files[0, streams); 0: not yet; < 0: a result of
 * abi.h, negated. */
int by_nccl_visit_step(struct by_nccl_visit *visit, int *files);

/* Frees the visit and closes streams that it has not passed on; `visit` may be NULL. */
void by_nccl_visit_free(void *visit);

/* The place in a handle where the connecting rank keeps its number between calls. */
void *by_nccl_handle_visit(const uint8_t handle[BY_NCCL_HANDLE_BYTES]);
void by_nccl_handle_set_visit(uint8_t handle[BY_NCCL_HANDLE_BYTES], void *visit);

#endif
