/*
 * Finds tight sets. See laminar.h. A node whose maximum flow is exactly `total` is in a tight set;
 * the smallest one around it is the set of nodes that still reach it in the residual graph. All
 * others around it are unions of that set and of the nodes that reach some further node without
 * meeting the source (Picard and Queyranne). Nodes already examined and sets already found become
 * part of the source: this changes no violated or tight set that is disjoint from them.
 */
#include "control/base/alloc.h"
#include "control/planner/optimum/oracle.h"
#include "control/planner/split/laminar.h"
#include "offload/base/assert.h"

/* Nodes visited while one set is enlarged (count): far more than any set worth finding this way
 * has. */
#define GROWTH_STEPS_MAX 20000u

struct tight_finder {
    const struct by_piece *piece;
    struct by_reach *reach;
    uint32_t bearing; /* nodes of the piece that hold compute nodes */
    uint32_t *mark;   /* by local node: 1 in the set, the candidate's number if visited from it */
    uint32_t stamp;
    uint32_t *set, set_count;
    uint32_t *candidate, candidate_count;
    uint32_t *best, best_count;
    uint32_t steps;
};

static bool bears(const struct by_piece *piece, uint32_t node)
{
    return piece->kind[node] == BY_PIECE_COMPUTE || piece->kind[node] == BY_PIECE_GROUP;
}

/* Whether the set is worth a group: it joins two nodes that hold compute nodes, or one such node
 * and a switch to be removed, and is not the whole piece. */
static bool is_worth(const struct tight_finder *finder)
{
    const struct by_piece *piece = finder->piece;
    uint32_t bearing = 0, removed = 0;

    for (uint32_t i = 0; i < finder->set_count; i++) {
        bearing += bears(piece, finder->set[i]);
        removed += piece->kind[finder->set[i]] == BY_PIECE_REMOVED;
    }
    if (bearing + removed < 2 || bearing == 0)
        return false;
    return piece->outside == UINT32_MAX ? bearing < finder->bearing : finder->set_count + 1 < piece->count;
}

/* Collects the nodes that can reach `start` in the residual graph without the set; false when the
 * source can reach it. */
static bool collect(struct tight_finder *finder, uint32_t start)
{
    const struct by_reach *reach = finder->reach;
    const struct by_mesh *net = reach->net;

    finder->stamp++;
    finder->candidate_count = 0;
    finder->candidate[finder->candidate_count++] = start;
    finder->mark[start] = finder->stamp;
    for (uint32_t head = 0; head < finder->candidate_count; head++) {
        uint32_t node = finder->candidate[head];

        if (reach->root_left[node] > 0 || finder->steps++ > GROWTH_STEPS_MAX)
            return false;
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            const struct by_near *near = &net->near[i];

            if (reach->left[near->half] == 0 || finder->mark[near->node] == 1 ||
                finder->mark[near->node] == finder->stamp)
                continue;
            if (reach->contracted[near->node])
                return false;
            finder->mark[near->node] = finder->stamp;
            finder->candidate[finder->candidate_count++] = near->node;
        }
    }
    return true;
}

/* Enlarges the set by the smallest extension that keeps it tight; false when there is none. */
static bool enlarge(struct tight_finder *finder)
{
    const struct by_mesh *net = finder->reach->net;

    finder->best_count = 0;
    for (uint32_t i = 0; i < finder->set_count && finder->best_count != 1; i++) {
        uint32_t node = finder->set[i];

        for (uint32_t j = net->first[node]; j < net->first[node + 1] && finder->best_count != 1; j++) {
            uint32_t other = net->near[j].node;

            if (finder->mark[other] == 1 || finder->reach->contracted[other] ||
                finder->steps > GROWTH_STEPS_MAX)
                continue;
            if (collect(finder, other) &&
                (finder->best_count == 0 || finder->candidate_count < finder->best_count)) {
                memcpy(finder->best, finder->candidate, finder->candidate_count * sizeof(*finder->best));
                finder->best_count = finder->candidate_count;
            }
        }
    }
    for (uint32_t i = 0; i < finder->best_count; i++) {
        finder->mark[finder->best[i]] = 1;
        finder->set[finder->set_count++] = finder->best[i];
    }
    return finder->best_count > 0;
}

/* Looks for a tight set around `node`, whose flow was exactly the total. */
static bool find_around(struct tight_finder *finder)
{
    memset(finder->mark, 0, finder->piece->count * sizeof(*finder->mark));
    finder->stamp = 1;
    finder->steps = 0;
    finder->set_count = by_reach_side(finder->reach);
    memcpy(finder->set, finder->reach->queue, finder->set_count * sizeof(*finder->set));
    for (uint32_t i = 0; i < finder->set_count; i++)
        finder->mark[finder->set[i]] = 1;
    while (!is_worth(finder))
        if (!enlarge(finder))
            return false;
    return true;
}

static void finder_make(struct tight_finder *finder, const struct by_piece *piece)
{
    *finder = (struct tight_finder){.piece = piece, .reach = by_reach_new(piece->net)};
    finder->mark = by_alloc(piece->count, sizeof(*finder->mark));
    finder->set = by_alloc(piece->count, sizeof(*finder->set));
    finder->candidate = by_alloc(piece->count, sizeof(*finder->candidate));
    finder->best = by_alloc(piece->count, sizeof(*finder->best));
    for (uint32_t i = 0; i < piece->count; i++) {
        by_reach_set_root(finder->reach, i, piece->roots[i]);
        finder->bearing += bears(piece, i);
        finder->reach->contracted[i] = i == piece->outside;
    }
}

static void finder_free(struct tight_finder *finder)
{
    by_reach_free(finder->reach);
    free(finder->mark);
    free(finder->set);
    free(finder->candidate);
    free(finder->best);
}

uint32_t by_tight_find(const struct by_piece *piece, uint32_t *set_of)
{
    uint32_t *order = by_alloc(piece->count, sizeof(*order)), sets = 0;
    struct tight_finder finder;

    finder_make(&finder, piece);
    by_oracle_order(piece->net, order);
    memset(set_of, 0, piece->count * sizeof(*set_of));
    for (uint32_t i = 0; i < piece->count; i++) {
        uint32_t node = order[i];
        int64_t flow;

        if (piece->kind[node] == BY_PIECE_REMOVED || finder.reach->contracted[node])
            continue;
        flow = by_reach_flow(finder.reach, node, piece->total + 1);
        BY_ASSERT(flow >= piece->total);
        if (flow == piece->total && find_around(&finder)) {
            sets++;
            for (uint32_t j = 0; j < finder.set_count; j++) {
                set_of[finder.set[j]] = sets;
                finder.reach->contracted[finder.set[j]] = true;
            }
        }
        finder.reach->contracted[node] = true;
    }
    finder_free(&finder);
    free(order);
    return sets;
}

/* Makes a group of each set found in the piece. */
static void insert_sets(struct by_laminar *laminar, const struct by_piece *piece, const uint32_t *set_of,
                        uint32_t sets)
{
    uint32_t *start = by_alloc(sets + 2, sizeof(*start)), *ids = by_alloc(piece->count, sizeof(*ids));

    for (uint32_t i = 0; i < piece->count; i++)
        start[set_of[i] + 1]++;
    for (uint32_t i = 0; i <= sets; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < piece->count; i++) /* in order, so that ids are ascending within each set */
        ids[start[set_of[i]]++] = piece->ids[i];
    for (uint32_t i = 1; i <= sets; i++)
        by_laminar_insert(laminar, piece->group, ids + start[i - 1], start[i] - start[i - 1]);
    free(ids);
    free(start);
}

/* Pieces without a set worth a group; many pieces are equal. */
struct known {
    uint32_t count, room;
    struct by_piece *pieces;
    uint64_t *hashes;
};

static bool is_known(const struct known *known, const struct by_piece *piece, uint64_t hash)
{
    for (uint32_t i = known->count; i-- > 0;)
        if (known->hashes[i] == hash && by_piece_equal(&known->pieces[i], piece))
            return true;
    return false;
}

static void remember(struct known *known, const struct by_piece *piece, uint64_t hash)
{
    if (known->count == known->room) {
        known->room = known->room ? known->room * 2 : 16;
        known->pieces = by_realloc(known->pieces, known->room, sizeof(*known->pieces));
        known->hashes = by_realloc(known->hashes, known->room, sizeof(*known->hashes));
    }
    known->hashes[known->count] = hash;
    known->pieces[known->count++] = *piece;
}

void by_tight_laminar(struct by_laminar *laminar)
{
    struct known known = {0};

    for (uint32_t group = 0; group < laminar->group_count;) {
        struct by_piece piece;
        uint32_t *set_of, sets = 0;
        uint64_t hash;

        by_piece_make(laminar, group, &piece);
        hash = by_piece_hash(&piece);
        set_of = by_alloc(piece.count, sizeof(*set_of));
        if (!is_known(&known, &piece, hash))
            sets = by_tight_find(&piece, set_of);
        if (sets > 0)
            insert_sets(laminar, &piece, set_of, sets);
        else
            group++;
        free(set_of);
        if (sets == 0 && known.count < 64)
            remember(&known, &piece, hash);
        else
            by_piece_free(&piece);
    }
    for (uint32_t i = 0; i < known.count; i++)
        by_piece_free(&known.pieces[i]);
    free(known.pieces);
    free(known.hashes);
}
