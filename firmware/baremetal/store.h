/*
 * The last committed table in flash, for the next life of the switch: two copies, of which the one
 * that is not the last good one is written (firmware/agent/saved.h), so that whatever ends a life
 * or a write, one whole copy is left. A commit only copies to memory; the loop then erases and
 * writes a piece in each of its rounds, and never waits. What is begun is finished; of the tables
 * that come meanwhile the newest is next. What is read at the start is offered to controllers and
 * never active by itself.
 */
#ifndef BY_BAREMETAL_STORE_H
#define BY_BAREMETAL_STORE_H

#include "firmware/baremetal/flash.h"

enum by_store_state { BY_STORE_IDLE, BY_STORE_ERASE, BY_STORE_WRITE, BY_STORE_DEAD };

struct by_metal_store {
    struct by_flash flash;
    uint32_t area_bytes; /* of one copy: whole sectors */
    uint64_t sequence;   /* of the newest whole copy */
    uint32_t newest;     /* which one that is, 0 or 1: the other one is written */
    enum by_store_state state;
    uint32_t at;    /* the piece that is under way, or the next one, in the area */
    uint32_t bytes; /* of the copy that is written */
    uint8_t *copy;  /* area_bytes */
    uint8_t *next;  /* as many: the copy that was read at the start, then the one that waits */
    uint32_t next_bytes;
    uint32_t saved_bytes;
    const char *word;
};

/* Reads the newest whole copy, of an image of at most `image_bytes_max`; memory from the plan.
 * False when the board has no flash that is large enough. */
bool by_metal_store_open(struct by_metal_store *store, uint32_t image_bytes_max);
/* The image that was read, or NULL; until the first put. */
const uint8_t *by_metal_store_saved(const struct by_metal_store *store, uint32_t *bytes);
/* Has a copy of the image written, after what is being written and instead of what waits. */
void by_metal_store_put(struct by_metal_store *store, const uint8_t *image, size_t bytes);
/* A piece of work; false when there is none. */
bool by_metal_store_step(struct by_metal_store *store);
/* What has come of a table since the last call, for people, or NULL. */
const char *by_metal_store_word(struct by_metal_store *store);

#endif
