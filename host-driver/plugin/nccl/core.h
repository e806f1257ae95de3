/*
 * What all parts of the NCCL plugin share: its settings, its log, and the table of the objects that
 * NCCL holds. NCCL gets numbers in place of pointers, so a handle that is closed, of another kind
 * or invented is refused and never dereferenced.
 *
 * Threads: NCCL calls from several. The table has one lock per object; calls on different objects
 * run at the same time, calls on one object one after another.
 */
#ifndef BY_PLUGIN_NCCL_CORE_H
#define BY_PLUGIN_NCCL_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/plugin/nccl/abi.h"

#define BY_NCCL_NAME        "banyan"
#define BY_NCCL_STREAMS_MAX 8
#define BY_NCCL_TEXT_MAX    400

/* ---- settings ---- */

enum by_nccl_coll_mode {
    BY_NCCL_COLL_AUTO = 1, /* with trees in the table */
    BY_NCCL_COLL_ON = 2,   /* also between the hosts */
    BY_NCCL_COLL_OFF = 3
};

struct by_nccl_settings {
    char interface[256]; /* BANYAN_NCCL_INTERFACE */
    unsigned streams;    /* BANYAN_NCCL_STREAMS */
    unsigned log;        /* BANYAN_LOG */
    enum by_nccl_coll_mode coll;
    uint64_t timeout_ns; /* BANYAN_TIMEOUT */
    /* BANYAN_NCCL_RATE: bytes per second of an allreduce in the trees, and its latency; 0: not
     * stated */
    uint64_t rate, rate_latency_ns;
};

/* Reads the settings again, and takes NCCL's logger, which may be NULL. A result of abi.h. */
int by_nccl_start(by_nccl_logger logger);

/* Returns a copy of the settings that by_nccl_start read last. */
struct by_nccl_settings by_nccl_settings(void);

/* Writes a line to NCCL's log; WARN or INFO of abi.h. */
void by_nccl_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs a warning and returns `result`. */
int by_nccl_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t by_nccl_now(void); /* ns, monotonic */

/* ---- objects ---- */

enum by_nccl_kind {
    BY_NCCL_LISTENER = 1,
    BY_NCCL_CONNECTING = 2,
    BY_NCCL_SENDER = 3,
    BY_NCCL_RECEIVER = 4,
    BY_NCCL_COLL_LISTENER = 5,
    BY_NCCL_COLL = 6,
    BY_NCCL_TUNER = 7
};

/* What is known of a request's number without its object. */
struct by_nccl_ticket {
    enum by_nccl_kind kind;
    unsigned index;      /* of the request in its object */
    unsigned generation; /* of that place; 12 bits */
    void *owner;         /* the object's handle */
};

/* Adds an object, which `free_object` frees if NCCL never closes it. Returns its handle, or NULL if
 * the table is full. */
void *by_nccl_add(enum by_nccl_kind kind, void *object, void (*free_object)(void *object));

/* Adds an object and sets its handle. If the table is full, frees the object, sets NULL, and logs
 * that there is no place for another `what`. A result of abi.h. */
int by_nccl_keep(enum by_nccl_kind kind, void *object, void (*free_object)(void *object), const char *what,
                 void **handle);

/* Returns the object with its lock held, or NULL if `handle` is not one of `kind`. */
void *by_nccl_enter(void *handle, enum by_nccl_kind kind);
void by_nccl_leave(void *handle);

/* Takes the object out of the table; NULL as above. The caller frees it. */
void *by_nccl_remove(void *handle, enum by_nccl_kind kind);

/* The number of request `index` of the object; `index` < 255. */
void *by_nccl_ticket_make(void *owner, unsigned index, unsigned generation);

/* 0 if `request` has not the form of a request. */
int by_nccl_ticket_read(void *request, struct by_nccl_ticket *ticket);

/* Number of objects in the table, for tests of leaks. */
unsigned by_nccl_count(void);

/* ---- registered memory ---- */

#define BY_NCCL_MEMORIES_MAX 4096

/* The buffers that NCCL registered with one object. */
struct by_nccl_memories {
    struct by_nccl_range {
        const char *start; /* NULL: free */
        size_t bytes;
        unsigned generation;
    } * ranges;
    unsigned count;
};

/* Results of abi.h. `memory` is the number of the buffer. */
int by_nccl_memory_add(struct by_nccl_memories *memories, void *data, size_t bytes, int kind, void **memory);
int by_nccl_memory_remove(struct by_nccl_memories *memories, void *memory);
void by_nccl_memories_free(struct by_nccl_memories *memories);

/* 1 if `data` lies in the registered buffer; an empty range always does. */
int by_nccl_memory_holds(const struct by_nccl_memories *memories, void *memory, const void *data,
                         size_t bytes);

#endif
