/*
 * Tables onto many switches at once, in two phases: every switch has taken and validated its image
 * before any commits, so a refusal leaves all of them as they were. Within a phase all are spoken
 * with at the same time. Whatever ends a controller between the two phases, the switches know
 * enough for another one to settle it. The caller waits; threads of its own (parallel.h) do the
 * talking.
 */
#ifndef BY_SERVICE_CONTROLLER_PUSH_H
#define BY_SERVICE_CONTROLLER_PUSH_H

#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/controller/session.h"

/* Switches that are spoken with at a time (count), unless options say otherwise. */
#define BY_PUSH_AT_ONCE 64u

/* One switch and its image (checked by by_image_check). */
struct by_push_target {
    const char *name;     /* the switch's: must be what it answers to, and what the image is for */
    const char *address;  /* as by_session_open takes it */
    const uint8_t *image; /* NULL: the table of the switch's earlier life */
    size_t bytes;
    const uint8_t
        *base; /* the image that is probably active, of which only the difference is then sent; or NULL */
    size_t base_bytes;
    uint64_t hash; /* out: of the image that is now active */
    uint64_t sent; /* out: bytes of requests to the switch */
};

/*
 * 0 when all are active. Otherwise an error with `problem` naming the switch; nothing was committed
 * unless the text says which were: pushing again, or by_push_settle, is then safe, since a commit
 * of what is active already succeeds. An election id of 0 stands for by_push_election(). The push
 * id must be another one in each push, and later than those before (0: the election id is, as one
 * who pushes once does).
 */
int by_push(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
            struct by_problem *problem);

enum by_push_settled {
    BY_PUSH_CLEAR,   /* no push was open */
    BY_PUSH_FORWARD, /* a push whose commits had begun was completed */
    BY_PUSH_BACK,    /* a push that had not come so far was forgotten */
};

/*
 * Settles a push that was interrupted, at all its switches (images are not looked at): completes it
 * where one of them has committed, since all had validated then; else has all forget it. BY_ESTATE
 * when it cannot be settled, because a switch has restarted in between: push again. Calling it
 * twice is harmless.
 */
int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem);

/* An election id from the clock: of two writers the later one wins. */
uint64_t by_push_election(void);

#endif
