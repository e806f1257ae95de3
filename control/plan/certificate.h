/*
 * The proof that no trees carry more, if a cut does not prove it: a part of the plan of an
 * allreduce in addition to its bottleneck (banyan-plan(5), "proof"). The planner makes it; verify/
 * checks it with independent code. A certificate is plain data: any number of threads may read it.
 */
#ifndef BY_PLAN_CERTIFICATE_H
#define BY_PLAN_CERTIFICATE_H

#include "control/fabric/topology.h"

struct by_json;
struct by_names;

enum by_certificate_kind {
    BY_CERTIFICATE_PARTS = 1, /* disjoint sets of nodes: all trees but its own enter and leave each */
    BY_CERTIFICATE_PRICES,    /* prices of links: every pair of trees costs at least some amount */
    BY_CERTIFICATE_CUTS       /* prices of links, and weighted sets that show what every pair costs */
};

/* A set of nodes: one of the disjoint parts, or a set that trees must cross (cuts). */
struct by_part {
    uint32_t node_count;
    uint32_t *nodes;
    /* cuts only: the weight, > 0, and whether trees that carry up leave the set, or trees that
     * carry down enter it */
    int64_t weight;
    bool up;
};

struct by_price {
    uint32_t from, to; /* node indices; equal for the price of an addition at a switch */
    int64_t price;     /* > 0 */
};

struct by_certificate {
    enum by_certificate_kind kind;
    uint32_t part_count, part_room;
    struct by_part *parts;
    uint32_t price_count;
    struct by_price *prices;
};

void by_certificate_free(struct by_certificate *certificate);
/* NULL for NULL. */
struct by_certificate *by_certificate_copy(const struct by_certificate *from);
/* Makes the certificate whose sets are given by node (`part` below `part_count`; any other value
 * for nodes outside). */
struct by_certificate *by_certificate_of_parts(const uint32_t *part, uint32_t node_count,
                                               uint32_t part_count);
/*
 * Makes the certificate of prices and cuts (both given away), where `floor` is the least sum of the
 * weights of the cuts that a pair of trees from one root crosses, and computes the bound that it
 * proves: `value` (capacities times prices) / floor. Returns NULL if the bound does not fit 63
 * bits.
 */
struct by_certificate *by_certificate_of_cuts(struct by_price *prices, uint32_t price_count,
                                              struct by_part *cuts, uint32_t cut_count, __int128 value,
                                              __int128 floor, struct by_fraction *bound);
/* Removes the cuts: the prices remain, for a checker that finds what every pair costs by itself. */
void by_certificate_drop_cuts(struct by_certificate *certificate);
/*
 * Makes the certificate of these prices, and computes the bound that it proves: (capacities times
 * prices) / floor, where every pair of trees costs `floor` or more. Returns NULL if the bound does
 * not fit 63 bits. The arrays are by row. A row with equal ends is a switch with a budget of
 * additions. With `both_ways`, rows are links in both directions, no row has equal ends, and
 * `floor` is the least price of one tree that is used up and down.
 */
struct by_certificate *by_certificate_of_prices(const struct by_price *rows, const int64_t *capacity,
                                                uint32_t row_count, bool both_ways, __int128 floor,
                                                struct by_fraction *bound);
/* Writes the certificate as a JSON object to `stream` (a FILE *). */
void by_certificate_write(const struct by_certificate *certificate, const struct by_topology *topology,
                          void *stream);
/* Reads a certificate; the parser is before its value. Returns NULL with `problem` filled if the
 * value is not a certificate. The parser reports JSON syntax errors itself. */
struct by_certificate *by_certificate_read(struct by_json *json, const struct by_names *names,
                                           const struct by_topology *topology, struct by_problem *problem);

#endif
