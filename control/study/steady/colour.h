/*
 * Weighted edge colouring of bipartite graphs: splits the times for which edges must be busy into
 * consecutive matchings. The total time is that of the busiest vertex, which is optimal (Koenig;
 * Birkhoff, von Neumann; open shop of Gonzalez and Sahni). Private to control/study/steady. One
 * thread for each call.
 */
#ifndef BY_STUDY_STEADY_COLOUR_H
#define BY_STUDY_STEADY_COLOUR_H

#include <gmp.h>
#include <stdint.h>

/* An edge from a sender to a receiver, busy for `time` > 0. */
struct by_colour_edge {
    uint32_t left, right;
    mpq_t time;
};

/* A matching: edges without a common vertex, for `time`. */
struct by_matching {
    mpq_t time;
    uint32_t edge_count;
    uint32_t *edges;
};

/*
 * Colours a graph; parallel edges are allowed. Returns `*count` matchings, at most 2 * edges +
 * left_count + right_count; the caller frees them with by_matchings_free. Their times sum to at
 * most the busy time of the busiest vertex. The times of the matchings that contain an edge sum to
 * the edge's time.
 */
struct by_matching *by_colour(const struct by_colour_edge *edges, uint32_t edge_count, uint32_t left_count,
                              uint32_t right_count, uint32_t *count);
void by_matchings_free(struct by_matching *matchings, uint32_t count);

#endif
