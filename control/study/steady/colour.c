/*
 * Weighted edge colouring. See colour.h.
 *
 * The graph is made regular first: a copy with both sides swapped is added, and every vertex is
 * joined to its copy for the time by which it is less busy than the busiest vertex. In a regular
 * graph a perfect matching always exists. It lasts until one of its edges has no time left; what
 * remains is regular again. Only the vertex that lost its edge then searches for a new one.
 */
#include "control/study/steady/colour.h"

#include "control/study/series/rational.h"
#include "offload/base/assert.h"

#define NONE UINT32_MAX

struct edge {
    uint32_t to;   /* vertex on the right */
    uint32_t real; /* index of the caller's edge, or NONE */
    mpq_t left;
};

struct colour {
    uint32_t n; /* vertices on each side */
    uint32_t edge_count;
    struct edge *edges;
    uint32_t *first; /* by vertex on the left, plus an end: first of its edges */
    uint32_t *used;  /* by vertex on the left: its edge in the matching */
    uint32_t *owner; /* by vertex on the right: the vertex matched to it, or NONE */
    /* State of the search. */
    uint32_t *seen, round; /* by vertex on the right: last search that visited it */
    uint32_t *queue;       /* vertices on the left */
    uint32_t *via;         /* by vertex on the right: the edge that reached it */
    uint32_t *finder;      /* by vertex on the right: the vertex that reached it */
};

/*
 * Computes the time that each vertex is busy: left vertices, then right ones. `most` receives the
 * greatest.
 */
static mpq_t *busy_times(const struct by_colour_edge *edges, uint32_t edge_count, uint32_t left_count,
                         uint32_t right_count, mpq_t most)
{
    mpq_t *times = by_rationals_new((size_t)left_count + right_count);

    for (uint32_t e = 0; e < edge_count; e++) {
        mpq_t *left = &times[edges[e].left], *right = &times[left_count + edges[e].right];

        mpq_add(*left, *left, edges[e].time);
        mpq_add(*right, *right, edges[e].time);
    }
    for (uint32_t i = 0; i < left_count + right_count; i++)
        if (mpq_cmp(times[i], most) > 0)
            mpq_set(most, times[i]);
    return times;
}

static void put_edge(struct colour *colour, uint32_t *fill, uint32_t from, uint32_t to, uint32_t real,
                     const mpq_t time)
{
    struct edge *edge = &colour->edges[fill[from]++];

    edge->to = to;
    edge->real = real;
    mpq_init(edge->left);
    mpq_set(edge->left, time);
}

/* Left side: senders, then copies of receivers. Right side: receivers, then copies of senders. */
static void make_regular(struct colour *colour, const struct by_colour_edge *edges, uint32_t edge_count,
                         uint32_t left_count, uint32_t right_count)
{
    uint32_t n = left_count + right_count, *fill;
    mpq_t most, rest, *times;

    mpq_inits(most, rest, NULL);
    times = busy_times(edges, edge_count, left_count, right_count, most);
    *colour = (struct colour){.n = n, .edge_count = 2 * edge_count + n};
    colour->edges = by_alloc(colour->edge_count, sizeof(*colour->edges));
    colour->first = by_alloc((size_t)n + 1, sizeof(uint32_t));
    fill = by_alloc((size_t)n + 1, sizeof(uint32_t));
    for (uint32_t e = 0; e < edge_count; e++) {
        fill[edges[e].left]++;
        fill[left_count + edges[e].right]++;
    }
    for (uint32_t i = 0; i < n; i++)
        colour->first[i + 1] = colour->first[i] + fill[i] + 1;
    memcpy(fill, colour->first, n * sizeof(*fill));
    for (uint32_t e = 0; e < edge_count; e++) {
        put_edge(colour, fill, edges[e].left, edges[e].right, e, edges[e].time);
        put_edge(colour, fill, left_count + edges[e].right, right_count + edges[e].left, NONE, edges[e].time);
    }
    for (uint32_t i = 0; i < n; i++) {
        mpq_sub(rest, most, times[i]);
        put_edge(colour, fill, i, i < left_count ? right_count + i : i - left_count, NONE, rest);
    }
    free(fill);
    by_rationals_free(times, n);
    mpq_clears(most, rest, NULL);
}

static void colour_make(struct colour *colour)
{
    colour->used = by_alloc(colour->n, sizeof(uint32_t));
    colour->owner = by_alloc(colour->n, sizeof(uint32_t));
    colour->seen = by_alloc(colour->n, sizeof(uint32_t));
    colour->queue = by_alloc(colour->n, sizeof(uint32_t));
    colour->via = by_alloc(colour->n, sizeof(uint32_t));
    colour->finder = by_alloc(colour->n, sizeof(uint32_t));
    memset(colour->owner, 0xff, colour->n * sizeof(uint32_t));
    memset(colour->used, 0xff, colour->n * sizeof(uint32_t));
}

static void colour_free(struct colour *colour)
{
    for (uint32_t e = 0; e < colour->edge_count; e++)
        mpq_clear(colour->edges[e].left);
    free(colour->edges);
    free(colour->first);
    free(colour->used);
    free(colour->owner);
    free(colour->seen);
    free(colour->queue);
    free(colour->via);
    free(colour->finder);
}

/* Matches `start` by an augmenting path of minimum length. In a regular graph one exists. */
static void match(struct colour *colour, uint32_t start)
{
    uint32_t head = 0, tail = 0, free_vertex = NONE;

    colour->round++;
    colour->queue[tail++] = start;
    while (head < tail && free_vertex == NONE) {
        uint32_t from = colour->queue[head++];

        for (uint32_t e = colour->first[from]; e < colour->first[from + 1] && free_vertex == NONE; e++) {
            uint32_t to = colour->edges[e].to;

            if (colour->seen[to] == colour->round || mpq_sgn(colour->edges[e].left) == 0)
                continue;
            colour->seen[to] = colour->round;
            colour->via[to] = e;
            colour->finder[to] = from;
            if (colour->owner[to] == NONE)
                free_vertex = to;
            else
                colour->queue[tail++] = colour->owner[to];
        }
    }
    BY_ASSERT(free_vertex != NONE);
    for (uint32_t to = free_vertex;;) {
        uint32_t from = colour->finder[to], before = colour->used[from];

        colour->owner[to] = from;
        colour->used[from] = colour->via[to];
        if (from == start)
            return;
        to = colour->edges[before].to;
    }
}

/* Uses the current matching for as long as all of its edges have time left. */
static void take(struct colour *colour, struct by_matching *matching)
{
    uint32_t room = 0;

    *matching = (struct by_matching){.edge_count = 0};
    mpq_init(matching->time);
    mpq_set(matching->time, colour->edges[colour->used[0]].left);
    for (uint32_t i = 1; i < colour->n; i++)
        if (mpq_cmp(colour->edges[colour->used[i]].left, matching->time) < 0)
            mpq_set(matching->time, colour->edges[colour->used[i]].left);
    for (uint32_t i = 0; i < colour->n; i++) {
        struct edge *edge = &colour->edges[colour->used[i]];

        mpq_sub(edge->left, edge->left, matching->time);
        if (edge->real != NONE) {
            BY_GROW(matching->edges, matching->edge_count, room);
            matching->edges[matching->edge_count++] = edge->real;
        }
        if (mpq_sgn(edge->left) == 0) {
            colour->owner[edge->to] = NONE;
            colour->used[i] = NONE;
        }
    }
}

/*
 * Joins a matching to an equal one before it, or drops it if it is empty. Returns whether it is
 * kept.
 */
static bool keep(struct by_matching *matchings, uint32_t count)
{
    struct by_matching *last = &matchings[count];
    bool same = false;

    for (uint32_t i = 0; i < count && last->edge_count > 0 && !same; i++) {
        same = matchings[i].edge_count == last->edge_count &&
               memcmp(matchings[i].edges, last->edges, last->edge_count * sizeof(*last->edges)) == 0;
        if (same)
            mpq_add(matchings[i].time, matchings[i].time, last->time);
    }
    if (last->edge_count > 0 && !same)
        return true;
    free(last->edges);
    mpq_clear(last->time);
    return false;
}

struct by_matching *by_colour(const struct by_colour_edge *edges, uint32_t edge_count, uint32_t left_count,
                              uint32_t right_count, uint32_t *count)
{
    struct by_matching *matchings = NULL;
    struct colour colour;
    uint32_t room = 0;
    mpq_t left;

    *count = 0;
    if (edge_count == 0)
        return NULL;
    make_regular(&colour, edges, edge_count, left_count, right_count);
    colour_make(&colour);
    mpq_init(left);
    for (uint32_t e = colour.first[0]; e < colour.first[1]; e++)
        mpq_add(left, left, colour.edges[e].left);
    while (mpq_sgn(left) > 0) {
        for (uint32_t i = 0; i < colour.n; i++)
            if (colour.used[i] == NONE)
                match(&colour, i);
        BY_GROW(matchings, *count, room);
        take(&colour, &matchings[*count]);
        mpq_sub(left, left, matchings[*count].time);
        *count += keep(matchings, *count);
    }
    mpq_clear(left);
    colour_free(&colour);
    return matchings;
}

void by_matchings_free(struct by_matching *matchings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(matchings[i].edges);
        mpq_clear(matchings[i].time);
    }
    free(matchings);
}
