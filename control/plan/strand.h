/*
 * Where logical capacity runs physically. Splitting a switch off joins capacity u->w and w->t to u->t; a
 * strand remembers the path behind a part of an arc's capacity, so that trees of the logical graph can be
 * laid back onto the fabric. ForestColl's `routing` table (appendix E.2), kept as paths. One thread for each
 * set.
 */
#ifndef BY_PLAN_STRAND_H
#define BY_PLAN_STRAND_H

#include <stdint.h>

struct by_strand {
    int64_t amount;
    uint32_t length; /* nodes on the path, ends included */
    uint32_t *nodes;
};

/* The strands of one arc; taken from the end. */
struct by_strand_list {
    uint32_t count;
    uint32_t room;
    struct by_strand *strands;
};

struct by_strands {
    uint32_t node_count;
    struct by_strand_list *lists; /* [from * node_count + to] */
};

/* One strand of two nodes for each positive capacity. */
struct by_strands *by_strands_new(uint32_t node_count, const int64_t *capacity);
void by_strands_free(struct by_strands *strands);
/* Moves `amount` from u->w and from w->t to u->t (dropped when u == t). The arcs must have that much. */
void by_strands_join(struct by_strands *strands, uint32_t u, uint32_t w, uint32_t t, int64_t amount);
/* The strand of from->to that by_strands_take would use next. */
const struct by_strand *by_strands_next(const struct by_strands *strands, uint32_t from, uint32_t to);
/* Uses `amount` of that strand, which must have it. */
void by_strands_take(struct by_strands *strands, uint32_t from, uint32_t to, int64_t amount);

#endif
