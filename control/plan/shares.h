/*
 * Shards of unequal size (allgather, reduce-scatter): how much of the data each compute node has.
 * Read from the file of `banyan plan --shares`, and from the member "shares" of a plan file
 * (banyan-plan(5)). The numbers are kept as integers without a common divisor, by node, 0 for
 * switches. One thread for each call.
 */
#ifndef BY_PLAN_SHARES_H
#define BY_PLAN_SHARES_H

#include "control/fabric/topology.h"

struct by_json;
struct by_names;

/*
 * Reads a file of shares: an object of numbers by the name of the compute node, or an array of them
 * by rank. A number is an integer, a decimal, or a fraction in a string; 0 is a share. All compute
 * nodes must have one, or those with member[node] where `member` is given, and no others. 0 and
 * `*shares` (by node; the caller frees), or a negative BY_E* with `problem` filled.
 */
int by_shares_read(const char *path, const struct by_topology *topology, const bool *member, int64_t **shares,
                   struct by_problem *problem);
/* The same from memory. */
int by_shares_parse(const char *text, size_t bytes, const struct by_topology *topology, const bool *member,
                    int64_t **shares, struct by_problem *problem);
/* The same for a value in a larger text: the parser stands before it. Mistakes of JSON itself are
 * the parser's: then the result is BY_EFORMAT, and `problem` is not filled. */
int by_shares_value(struct by_json *json, const struct by_names *names, const struct by_topology *topology,
                    const bool *member, int64_t **shares, struct by_problem *problem);
/* Whether all compute nodes have the same. */
bool by_shares_equal(const int64_t *shares, const struct by_topology *topology);
/* All of them together, which fits. */
int64_t by_shares_sum(const int64_t *shares, uint32_t node_count);
/* Those of the nodes `nodes`. */
int64_t by_shares_of(const int64_t *shares, const uint32_t *nodes, uint32_t count);
/* Writes the object that by_shares_value reads to `stream` (a FILE *). */
void by_shares_write(const int64_t *shares, const struct by_topology *topology, const bool *member,
                     void *stream);

#endif
