/*
 * Pushes tables to many switches in two phases: every switch validates its image before any switch
 * commits, so a refusal changes no table. All switches of a phase are contacted in parallel. If the
 * controller fails between the phases, the state of the switches suffices for another controller to
 * settle the push. The call blocks; its own threads (parallel.h) do the I/O.
 */
#ifndef BY_SERVICE_CONTROLLER_PUSH_H
#define BY_SERVICE_CONTROLLER_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/controller/session.h"

/* Switches that are contacted at a time (count), unless the options set another number. */
#define BY_PUSH_AT_ONCE 64u

/* One switch and its image (checked by by_image_check). */
struct by_push_target {
    const char *name;     /* the name in the switch's Hello and in the image; else the push fails */
    const char *address;  /* format: see by_session_open */
    const uint8_t *image; /* NULL: the table that the switch saved before it restarted */
    size_t bytes;
    /* the image that is probably active, so that only the difference is sent; or NULL */
    const uint8_t *base;
    size_t base_bytes;
    uint64_t hash;       /* out: hash of the image that is now active */
    uint64_t sent;       /* out: bytes of requests sent to the switch */
    uint64_t boot_nonce; /* out of by_push_settle: of the switch's present run; 0: not reached */
};

/*
 * Returns 0 when all images are active, else an error; `problem` names the switch. Nothing was
 * committed, unless the text lists commits. After an error it is safe to push again or to call
 * by_push_settle, since a commit of the active image succeeds. An election id of 0 stands for
 * by_push_election(). The push id must increase with each push; 0 stands for the election id and
 * suits programs that push once.
 */
int by_push(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
            struct by_problem *problem);

/* Something that is to be recorded before any switch commits. */
struct by_push_record {
    /* Records it, in any thread. 0, or an error with `problem`: then no switch commits. */
    int (*write)(void *user, struct by_problem *problem);
    void *user;
    bool written; /* out: it succeeded */
};

/* The same as by_push; the switches validate while the record is written, and commit after it. If
 * it fails, its error is returned, and all switches discard their images. */
int by_push_recorded(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                     struct by_push_record *record, struct by_problem *problem);

enum by_push_settled {
    BY_PUSH_CLEAR,   /* no push was open */
    BY_PUSH_FORWARD, /* an open push with a commit was completed */
    BY_PUSH_BACK,    /* an open push without a commit was discarded */
};

/*
 * Settles an interrupted push at all its switches (images are ignored). If one switch has
 * committed, all have validated, and the push is completed; else all switches discard it. Returns
 * BY_ESTATE when it cannot be settled because a switch has restarted in between: push again.
 * Idempotent.
 */
int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem);

/* Returns an election id from the clock: of two writers the later one wins. */
uint64_t by_push_election(void);

#endif
