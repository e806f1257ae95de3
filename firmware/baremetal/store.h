/*
 * The last committed table in flash, for the next life of the switch: two copies, written in turn
 * (firmware/agent/saved.h), so that whatever ends a life, one whole copy is left. A commit only copies to
 * memory; the loop then erases and writes a piece in each of its rounds. What is read at the start is offered
 * to controllers and never active by itself.
 */
#ifndef BY_BAREMETAL_STORE_H
#define BY_BAREMETAL_STORE_H

#include "firmware/baremetal/flash.h"

enum by_store_state { BY_STORE_IDLE, BY_STORE_ERASE, BY_STORE_WRITE };

struct by_store {
    struct by_flash flash;
    uint32_t area_bytes; /* of one copy: whole sectors */
    uint64_t sequence;   /* of the newest copy */
    enum by_store_state state;
    bool is_begun;  /* the piece at `at` is under way */
    uint32_t at;    /* in the area */
    uint32_t bytes; /* of the copy that is written */
    uint8_t *copy;  /* area_bytes */
    uint8_t *saved; /* the copy that was read at the start */
    uint32_t saved_bytes;
};

/* Reads the newest whole copy, of an image of at most `image_bytes_max`; memory from the plan. False when the
 * board has no flash that is large enough. */
bool by_store_open(struct by_store *store, uint32_t image_bytes_max);
/* The image that was read, or NULL. */
const uint8_t *by_store_saved(const struct by_store *store, uint32_t *bytes);
/* Has a copy of the image written instead of what is being written. */
void by_store_put(struct by_store *store, const uint8_t *image, size_t bytes);
/* A piece of work; false when there is none. */
bool by_store_step(struct by_store *store);

#endif
