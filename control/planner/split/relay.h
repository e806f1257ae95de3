/*
 * Trees through one switch between nodes with different numbers of trees. A tree either goes from
 * its root straight to all others, or to one relay first, which sends it to the rest. Roots with
 * more trees than they can send to all use the spare capacity of roots with fewer. Switch removal
 * (split_even.c) makes logical links of exactly the loads of these trees, and packing
 * (pack_relay.c) finds the trees again from the links. Each call runs in one thread.
 */
#ifndef BY_PLANNER_SPLIT_RELAY_H
#define BY_PLANNER_SPLIT_RELAY_H

#include <stdbool.h>
#include <stdint.h>

/* `amount` trees of root `from` that `through` sends to all others, and one more, if rest > 0, that
 * it sends to `rest` nodes: those that follow it (by_split_relay_next); the root sends to the
 * others. */
struct by_split_relay {
    uint32_t from, through, rest;
    int64_t amount;
};

struct by_split_relay_list {
    uint32_t count, room;
    struct by_split_relay *relays;
};

/*
 * Finds relays for roots[i] trees (count) at each of `n` nodes; node i sends out[i] and receives
 * in[i] trees through the switch. Returns false where trees of this kind do not fit; the list is
 * then empty. The caller frees relays->relays.
 */
bool by_split_relay_find(uint32_t n, const int64_t *roots, const int64_t *out, const int64_t *in,
                         struct by_split_relay_list *list);
/* Returns the node after `node`, in a circle, to which the relay may send. */
uint32_t by_split_relay_next(const struct by_split_relay *relay, uint32_t node, uint32_t n);
/* Sets load[i * n + j] to what i sends to j in these trees. */
void by_split_relay_load(uint32_t n, const int64_t *roots, const struct by_split_relay_list *list,
                         int64_t *load);

#endif
