/*
 * When a rank leaves its trees for those of a standby generation without the controller, and for
 * which one (PROTOCOL.md, "Standby generations"). The shell then freezes the calls, levels them in
 * rounds (rounds.h), and continues them there; or it begins again with the next standby, when the
 * attempt takes too long. Neighbour: suspect.c judges trees. Pure; the endpoint's thread.
 */
#ifndef BY_ENDPOINT_STANDBY_H
#define BY_ENDPOINT_STANDBY_H

#include <stdbool.h>

#include "offload/base/limits.h"
#include "offload/endpoint/endpoint.h"

struct by_standby_tree {
    const struct by_endpoint *rounds; /* its tree of rounds; NULL: the standby cannot be used */
    const uint8_t *mask;              /* a bit for each tree of the base that it replaces */
    uint32_t mask_bytes;              /* trees beyond them are not replaced */
};

struct by_standby_move {
    /* The shell sets these before each call: standbys in the order of their generations, and
     * whether the calls have left their base. Then what they replace does not count. */
    struct by_standby_tree list[BY_STANDBYS_MAX];
    uint32_t count;
    bool left;
    /* How long trees must have stopped, at least, to leave one for another one of the same base
     * (ns). The others may use the part that has failed, so a false alarm would be worse than a
     * pause. */
    uint64_t again_ns;
    /* The least time of an attempt (ns). Where ranks are in different attempts only the controller
     * can help. */
    uint64_t attempt_ns;
    /* Of the move under way: `tried` standbys of the list have been tried (0: none), the last one
     * since began_ns. `broken`, set by the shell: its tree has failed. */
    uint32_t tried;
    bool broken;
    uint64_t began_ns;
    uint64_t looked_ns; /* time of the last check of the trees */
};

/*
 * Returns the standby to which the rank must move now, counted from 1; 0: none. That is one where
 * another rank waits. Else, if a chunk of `calls` has waited for `patience_ns` in a tree that no
 * node reports as waiting for a rank, the first one that replaces all such trees, or the first one.
 * During a move it is the next one, when the attempt has failed. Cheap between checks.
 */
uint32_t by_standby_move_choose(struct by_standby_move *move, const struct by_endpoint *calls,
                                uint64_t patience_ns, uint64_t now_ns);
/* An attempt to move to standby `to` begins, counted from 1. */
void by_standby_move_begin(struct by_standby_move *move, uint32_t to, uint64_t now_ns);
/* Returns whether the attempt has failed, and no standby is left. */
bool by_standby_move_is_stuck(const struct by_standby_move *move, uint64_t patience_ns, uint64_t now_ns);
/* Returns the latest time of the next check if no packet arrives (ns). */
uint64_t by_standby_move_deadline(const struct by_standby_move *move, const struct by_endpoint *calls,
                                  uint64_t patience_ns);

#endif
