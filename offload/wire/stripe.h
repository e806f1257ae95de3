/*
 * Which of a node's workers handles a chunk, as a pure function: PROTOCOL.md, "Workers". A switch
 * with several cores has an engine for each, and each chunk belongs to one of them. Chunks are
 * numbered into lanes by job, tree and sequence number, and the lanes are dealt to the workers. All
 * chunks of one bank have the same lane, so engines share no slot. Any thread.
 */
#ifndef BY_WIRE_STRIPE_H
#define BY_WIRE_STRIPE_H

#include <stdint.h>

#include "offload/base/limits.h"

/* Lanes (count, a power of two): more than the workers of a switch, so that each worker gets nearly
 * the same number. */
#define BY_LANES 64u
/* Consecutive chunks in one lane, at most (count, a power of two): packets without a payload of
 * consecutive chunks share datagrams, which should seldom hold packets of several workers. */
#define BY_LANE_SHIFT  3u
#define BY_LANE_CHUNKS (1u << BY_LANE_SHIFT)
/* The bit of a UDP source port that is set if the bits below are a lane. */
#define BY_LANE_PORT 64u
/* Workers of a node (count). */
#define BY_WORKERS_MAX 32u

/* Returns the log2 of the consecutive chunks in one lane of an entry with this window (a power of
 * two): as many as leave each worker a lane, or 1. Lanes of 1 << shift chunks divide the chunks of
 * all banks, twice the window. */
static inline uint32_t by_lane_shift(uint32_t window, uint32_t workers)
{
    uint32_t shift = BY_LANE_SHIFT;

    while (shift > 0 && 2 * window >> shift < workers)
        shift--;
    return shift;
}

/* Returns over how many lanes, of 1 << shift chunks each, the chunks of an entry with this window
 * are spread: the period of the lanes, (1 << shift) times this number, divides the chunks of all
 * banks. */
static inline uint32_t by_lane_span(uint32_t window, uint32_t shift)
{
    uint32_t span = 2 * window >> shift;

    return span > BY_LANES ? BY_LANES : span > 1 ? span : 1;
}

/* Returns the lane of the first chunk of a tree (job << 16 | tree). */
static inline uint32_t by_lane_first(uint32_t tree)
{
    return (tree ^ tree >> 16) * 0x9e3779b1u >> 26;
}

/* Returns the lane of chunk `seq` of an entry whose first lane is `first`, and which has `span`
 * lanes of 1 << shift chunks. */
static inline uint32_t by_lane(uint32_t first, uint32_t span, uint32_t shift, uint32_t seq)
{
    return (first + (seq >> shift & (span - 1))) & (BY_LANES - 1);
}

/* Returns the worker of a lane, of `workers` > 0. */
static inline uint32_t by_lane_worker(uint32_t lane, uint32_t workers)
{
    return lane % workers;
}

/* Returns the UDP source port of a node's packets: of the dynamic range, derived from `tree`, to
 * give ECMP and RSS entropy. The low bits, BY_LANE_PORT and below, are 0. */
static inline uint16_t by_tree_port(uint32_t tree)
{
    return (uint16_t)(0xc000u | ((tree >> 16) * 31u + tree) % 0x80u * 2 * BY_LANE_PORT);
}

/* Returns the source port that gives a node's network card the lane of chunk `seq`: that of
 * BY_LANES lanes of BY_LANE_CHUNKS chunks. An entry with fewer lanes of as many chunks has the same
 * worker where the workers' number divides them. */
static inline uint16_t by_lane_port(uint32_t tree, uint32_t seq)
{
    return (uint16_t)(by_tree_port(tree) | BY_LANE_PORT |
                      by_lane(by_lane_first(tree), BY_LANES, BY_LANE_SHIFT, seq));
}

/* Returns the source port of a packet of chunk `seq` to UDP port `to`. Nodes listen on
 * BY_UDP_PORT. */
static inline uint16_t by_source_port(uint32_t tree, uint32_t seq, uint16_t to)
{
    return to == BY_UDP_PORT ? by_lane_port(tree, seq) : by_tree_port(tree);
}

#endif
