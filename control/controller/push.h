/*
 * Tables onto many switches at once, in two phases: every switch has taken and validated its image before any
 * commits, so a refusal leaves all of them as they were. Single-threaded.
 */
#ifndef BY_CONTROLLER_PUSH_H
#define BY_CONTROLLER_PUSH_H

#include <stddef.h>
#include <stdint.h>

#include "control/controller/session.h"
#include "control/topology/topology.h"

/* One switch and its image (checked by by_image_check). */
struct by_push_target {
    const char *name;    /* the switch's: must be what it answers to, and what the image is for */
    const char *address; /* as by_session_open takes it */
    const uint8_t *image;
    size_t bytes;
    uint64_t hash; /* out: of the image that is now active */
};

/*
 * 0 when all are active. Otherwise an error with `problem` naming the switch; nothing was committed unless
 * the text says which were: pushing again is then safe, since a commit of what is active already succeeds. An
 * election id of 0 stands for by_push_election().
 */
int by_push(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
            struct by_problem *problem);

/* An election id from the clock: of two writers the later one wins. */
uint64_t by_push_election(void);

#endif
