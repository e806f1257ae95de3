/*
 * Shards of unequal size (allgather, reduce-scatter): the parts of the data that each compute node
 * has. Read from the file of `banyan plan --shares`, and from the member "shares" of a plan file
 * (banyan-plan(5)). The numbers are stored as integers without a common divisor, by node, 0 for
 * switches. Each call runs in one thread.
 */
#ifndef BY_PLAN_SHARES_H
#define BY_PLAN_SHARES_H

#include "control/fabric/topology.h"

struct by_json;
struct by_names;

/*
 * Reads a file of shares: an object of numbers by the name of the compute node, or an array of
 * numbers by rank. A number is an integer, a decimal, or a fraction in a string; 0 is a valid
 * share. All compute nodes (with `member`: those with member[node]) and no others must have a
 * share. Returns 0 and `*shares` (by node; the caller frees), or a negative BY_E* with `problem`
 * filled.
 */
int by_shares_read(const char *path, const struct by_topology *topology, const bool *member, int64_t **shares,
                   struct by_problem *problem);
/* The same from memory. */
int by_shares_parse(const char *text, size_t bytes, const struct by_topology *topology, const bool *member,
                    int64_t **shares, struct by_problem *problem);
/* The same for a value in a larger text; the parser is before it. The parser reports JSON syntax
 * errors itself: then the result is BY_EFORMAT, and `problem` is not filled. */
int by_shares_value(struct by_json *json, const struct by_names *names, const struct by_topology *topology,
                    const bool *member, int64_t **shares, struct by_problem *problem);
/* Whether all compute nodes have equal shares. */
bool by_shares_equal(const int64_t *shares, const struct by_topology *topology);
/* The sum of all shares, which fits 63 bits. */
int64_t by_shares_sum(const int64_t *shares, uint32_t node_count);
/* The sum of the shares of `nodes`. */
int64_t by_shares_of(const int64_t *shares, const uint32_t *nodes, uint32_t count);
/* Writes the object that by_shares_value reads to `stream` (a FILE *). */
void by_shares_write(const int64_t *shares, const struct by_topology *topology, const bool *member,
                     void *stream);

#endif
