/*
 * Weighted edge colouring of bipartite graphs: splits the times for which edges are to be busy into
 * matchings that follow each other, in no more time than the busiest vertex needs (Koenig;
 * Birkhoff, von Neumann; Gonzalez and Sahni's open shop). Private to control/study/steady. One
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
 * Colours. There may be parallel edges. Returns the matchings (the caller frees them with
 * by_matchings_free),
 * `*count` of them: at most 2 edges + left_count + right_count. Their times add up to the greatest
 * sum at a vertex at most, and those of the matchings that hold an edge to its time.
 */
struct by_matching *by_colour(const struct by_colour_edge *edges, uint32_t edge_count, uint32_t left_count,
                              uint32_t right_count, uint32_t *count);
void by_matchings_free(struct by_matching *matchings, uint32_t count);

#endif
