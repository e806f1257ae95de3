/*
 * Greedy synthesis on the time-expanded network, in the manner of TACOS (Won et al., "TACOS:
 * Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning", MICRO 2024).
 * See baseline.h.
 *
 * Each shard is divided into chunks. Whenever a link is free, it takes a chunk that its sender has
 * and its receiver neither has nor is about to get; the chunk is chosen at random. Some seeds are
 * tried, and the shortest schedule wins. Reduce-scatter is an allgather on reversed links,
 * allreduce is both. Times are integers: a unit of time is that of a chunk at the least common
 * multiple of the bandwidths.
 */
#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"

/* Chunks of a shard, and seeds (counts). */
#define CHUNKS 4u
#define SEEDS  4u
/* Limit of the units of time of one chunk. */
#define TICKS_MAX ((int64_t)1 << 40)

/* A link between two compute nodes. */
struct tacos_link {
    uint32_t from, to; /* ranks */
    int64_t ticks;     /* time of a chunk */
    int64_t free_at;
    uint32_t chunk; /* in flight, or UINT32_MAX */
};

struct tacos {
    struct by_baseline_task *task;
    uint32_t n, words, link_count;
    struct tacos_link *links;
    uint64_t *has, *due; /* [rank * words]: chunks there, and there or in flight to it */
    int64_t common;      /* units of capacity of one tick */
};

/* Finds the links between compute nodes and the time of a chunk on each. */
static int find_links(struct tacos *tacos, const struct by_baseline_net *net)
{
    uint32_t *rank = by_alloc(net->node_count, sizeof(*rank));

    tacos->links = by_alloc(net->arc_count, sizeof(*tacos->links));
    tacos->common = 1;
    for (uint32_t i = 0; i < net->compute_count; i++)
        rank[net->compute[i]] = i + 1;
    for (uint32_t a = 0; a < net->arc_count; a++) {
        const struct by_net_arc *arc = &net->arcs[a];
        int64_t part;

        if (!rank[arc->from] || !rank[arc->to])
            continue;
        tacos->links[tacos->link_count++] =
            (struct tacos_link){.from = rank[arc->from] - 1, .to = rank[arc->to] - 1, .ticks = arc->capacity};
        part = arc->capacity / by_gcd(tacos->common, arc->capacity);
        if (tacos->common > TICKS_MAX / part) {
            free(rank);
            return by_problem_say(tacos->task->problem, BY_ERANGE,
                                  "the bandwidths have no small common multiple; round them");
        }
        tacos->common *= part;
    }
    for (uint32_t i = 0; i < tacos->link_count; i++)
        tacos->links[i].ticks = tacos->common / tacos->links[i].ticks;
    free(rank);
    return 0;
}

/* Returns a chunk that the link can bring, the first from a random one on; UINT32_MAX: none. */
static uint32_t choose(const struct tacos *tacos, const struct tacos_link *link, struct by_prng *prng)
{
    const uint64_t *has = tacos->has + (size_t)link->from * tacos->words;
    const uint64_t *due = tacos->due + (size_t)link->to * tacos->words;
    uint32_t begin = (uint32_t)by_prng_below(prng, tacos->words);

    for (uint32_t i = 0; i < tacos->words; i++) {
        uint32_t word = (begin + i) % tacos->words, turn = (uint32_t)by_prng_below(prng, 64);
        uint64_t open = has[word] & ~due[word];

        if (open == 0)
            continue;
        open = turn ? open >> turn | open << (64 - turn) : open;
        return word * 64 + ((uint32_t)__builtin_ctzll(open) + turn) % 64;
    }
    return UINT32_MAX;
}

/* Starts a chunk on each free link that has one. Links take turns to be first. */
static void start_links(struct tacos *tacos, int64_t now, struct by_prng *prng)
{
    uint32_t begin = (uint32_t)by_prng_below(prng, tacos->link_count);

    for (uint32_t i = 0; i < tacos->link_count; i++) {
        struct tacos_link *link = &tacos->links[(begin + i) % tacos->link_count];

        if (link->chunk != UINT32_MAX)
            continue;
        link->chunk = choose(tacos, link, prng);
        if (link->chunk == UINT32_MAX)
            continue;
        tacos->due[(size_t)link->to * tacos->words + link->chunk / 64] |= (uint64_t)1 << link->chunk % 64;
        link->free_at = now + link->ticks;
    }
}

/* Makes one schedule. Returns its ticks, 0 if a chunk cannot arrive, or negative BY_ETIMEDOUT. */
static int64_t run(struct tacos *tacos, uint64_t seed, uint32_t *rounds)
{
    struct by_prng prng = {seed};
    size_t words = (size_t)tacos->n * tacos->words;
    uint64_t left = (uint64_t)tacos->n * (tacos->n - 1) * CHUNKS;
    int64_t now = 0;

    memset(tacos->has, 0, words * sizeof(*tacos->has));
    for (uint32_t c = 0; c < tacos->n * CHUNKS; c++)
        tacos->has[(size_t)(c / CHUNKS) * tacos->words + c / 64] |= (uint64_t)1 << c % 64;
    memcpy(tacos->due, tacos->has, words * sizeof(*tacos->due));
    for (uint32_t i = 0; i < tacos->link_count; i++)
        tacos->links[i].chunk = UINT32_MAX;
    for (*rounds = 0; left > 0; ++*rounds) {
        int64_t next = INT64_MAX;

        if (by_task_late(tacos->task))
            return BY_ETIMEDOUT;
        start_links(tacos, now, &prng);
        for (uint32_t i = 0; i < tacos->link_count; i++)
            if (tacos->links[i].chunk != UINT32_MAX && tacos->links[i].free_at < next)
                next = tacos->links[i].free_at;
        if (next == INT64_MAX)
            return 0;
        now = next;
        for (uint32_t i = 0; i < tacos->link_count; i++) {
            struct tacos_link *link = &tacos->links[i];

            if (link->chunk == UINT32_MAX || link->free_at != now)
                continue;
            tacos->has[(size_t)link->to * tacos->words + link->chunk / 64] |= (uint64_t)1 << link->chunk % 64;
            link->chunk = UINT32_MAX;
            left--;
        }
    }
    return now;
}

/* Adds the time of an allgather on a net, in chunks in a unit of capacity. */
static int gather(struct by_baseline_task *task, const struct by_baseline_net *net, struct by_fraction *total,
                  uint32_t *rounds)
{
    struct tacos tacos = {.task = task, .n = net->compute_count};
    int64_t best = 0;
    uint32_t best_rounds = 0;
    int error = find_links(&tacos, net);

    tacos.words = (tacos.n * CHUNKS + 63) / 64;
    tacos.has = by_alloc((size_t)tacos.n * tacos.words, sizeof(*tacos.has));
    tacos.due = by_alloc((size_t)tacos.n * tacos.words, sizeof(*tacos.due));
    for (uint64_t seed = 1; seed <= SEEDS && error == 0; seed++) {
        uint32_t steps;
        int64_t ticks = tacos.link_count > 0 ? run(&tacos, seed, &steps) : 0;

        if (ticks < 0)
            error = BY_ETIMEDOUT;
        else if (ticks == 0)
            error = by_problem_say(task->problem, BY_EUNSUPPORTED,
                                   "only on direct links between hosts: some do not reach all by them");
        else if (best == 0 || ticks < best) {
            best = ticks;
            best_rounds = steps;
        }
    }
    if (error == 0) {
        struct by_fraction time;

        if (by_fraction_set(best, tacos.common, &time) != 0 || by_fraction_add(*total, time, total) != 0)
            error = by_problem_say(task->problem, BY_ERANGE,
                                   "the time needs more than 63 bits; round the bandwidths");
    }
    *rounds += best_rounds;
    free(tacos.links);
    free(tacos.has);
    free(tacos.due);
    return error;
}

int by_baseline_tacos(struct by_baseline_task *task, struct by_sketch_facts *facts, uint32_t *rounds)
{
    return by_task_gather(task, "tacos", gather, CHUNKS, facts, rounds);
}
