/*
 * The last committed table in flash, for the next boot of the switch: two copies, of which the one
 * that is not the last good one is overwritten (firmware/agent/saved.h). So one intact copy remains
 * however a boot or a write ends. A commit only copies to memory. The loop then erases or writes
 * one piece in each of its rounds, and never waits. A copy in progress is finished; of the tables
 * committed meanwhile the newest is next. The copy read at the start is offered to controllers and
 * never activated automatically.
 */
#ifndef BY_BAREMETAL_STORE_H
#define BY_BAREMETAL_STORE_H

#include "firmware/baremetal/flash.h"

enum by_store_state { BY_STORE_IDLE, BY_STORE_ERASE, BY_STORE_WRITE, BY_STORE_DEAD };

struct by_metal_store {
    struct by_flash flash;
    uint32_t area_bytes; /* size of one copy: whole sectors */
    uint64_t sequence;   /* of the newest intact copy */
    uint32_t newest;     /* index of that copy, 0 or 1: the other one is written */
    enum by_store_state state;
    uint32_t at;    /* offset in the area of the current piece, or the next one */
    uint32_t bytes; /* size of the copy being written */
    uint8_t *copy;  /* the copy being written, area_bytes */
    uint8_t *next;  /* the same size: the copy that was read at the start, then the waiting one */
    uint32_t next_bytes;
    uint32_t saved_bytes;
    const char *word;
};

/* Reads the newest intact copy, of an image of at most `image_bytes_max`; uses memory from the
 * plan. Returns false when the board has no flash that is large enough. */
bool by_metal_store_open(struct by_metal_store *store, uint32_t image_bytes_max);
/* Returns the image that was read, or NULL; valid until the first put. */
const uint8_t *by_metal_store_saved(const struct by_metal_store *store, uint32_t *bytes);
/* Has a copy of the image written, after the one in progress and in place of a waiting one. */
void by_metal_store_put(struct by_metal_store *store, const uint8_t *image, size_t bytes);
/* Does a piece of work; returns false when there is none. */
bool by_metal_store_step(struct by_metal_store *store);
/* Returns a message on the outcome of a table since the last call, or NULL. */
const char *by_metal_store_word(struct by_metal_store *store);

#endif
