/*
 * The least cost of a reduction with a commutative operator whose partial results have one size.
 * See series_inside.h.
 *
 * Every transfer over a link has the same cost, whatever it carries. So some cheapest reduction
 * never sends two messages from a node that could combine them (docs/decisions/0617). A holder that
 * combines sends one message, and one that does not sends its value to a node that does. The
 * cheapest reduction is thus a cheapest arborescence, to a root beyond the target (Chu and Liu
 * 1965, Edmonds 1967). Nodes without a value that combine in no time need not take part: all sets
 * of them are tried.
 */
#include "control/study/series/rational.h"
#include "control/verify/series_inside.h"
#include "offload/base/assert.h"

/* Values of a commutative operator whose sets may all be messages (count). */
#define ALL_SETS_MAX 8u
/* Nodes that combine without holding a value (count). */
#define OPTIONAL_MAX 12u

struct sets {
    struct by_series_checker *checker;
    const struct by_series_costs *costs;
    uint32_t n;
    uint32_t optional_count, optional[OPTIONAL_MAX];
    bool *holds, *takes_part; /* by node */
    mpz_t *path;              /* by start and end: least cost of a transfer; negative: none */
    /* A graph of `size` nodes; node 0 is the root. */
    uint32_t size, room;
    mpz_t *cost, *next_cost; /* by start and end (x room); negative: no edge */
    uint32_t *best, *group, *seen;
    mpz_t many, sum;
};

static bool combines(const struct sets *sets, uint32_t node)
{
    return mpz_sgn(sets->costs->task[node]) >= 0;
}

bool by_series_lists_few_sets(const struct by_series *series)
{
    return series->commutative && (series->holder_count > ALL_SETS_MAX ||
                                   series->message_count != (UINT32_C(1) << series->holder_count) - 1);
}

bool by_series_check_few_sets(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    uint32_t optional = 0;
    bool right = true;
    mpq_t time;

    mpq_init(time);
    for (uint32_t m = 1; m < series->message_count && right; m++)
        if (!mpq_equal(series->messages[m].size, series->messages[0].size))
            right = by_series_violate(checker,
                                      "messages 0 and %u differ in size, and not all sets of values "
                                      "are messages",
                                      m);
    for (uint32_t i = 0; i < checker->topology->node_count && right; i++) {
        bool holds = false;

        for (uint32_t h = 0; h < series->holder_count; h++)
            holds |= series->holders[h] == i;
        if (holds || !by_series_task_time(checker, i, series->messages[0].size, time))
            continue;
        if (mpq_sgn(time) != 0 || ++optional > OPTIONAL_MAX)
            right = by_series_violate(checker,
                                      "%s combines and holds no value: this cannot be checked unless "
                                      "it takes no time, at up to %u nodes",
                                      checker->topology->nodes[i].name, OPTIONAL_MAX);
    }
    mpq_clear(time);
    return right;
}

/* Computes the cheapest paths from the nodes that hold values or combine (Bellman 1958). */
static void find_paths(struct sets *sets)
{
    const struct by_links *links = sets->checker->links;
    uint32_t n = sets->n;

    for (uint32_t from = 0; from < n; from++) {
        mpz_t *path = sets->path + (size_t)from * n;
        bool changed = sets->holds[from] || combines(sets, from);

        for (uint32_t to = 0; to < n; to++)
            mpz_set_si(path[to], to == from ? 0 : -1);
        while (changed) {
            changed = false;
            for (uint32_t l = 0; l < links->count; l++) {
                mpz_t *to = &path[links->to[l]];

                if (mpz_sgn(path[links->from[l]]) < 0)
                    continue;
                mpz_add(sets->sum, path[links->from[l]], sets->costs->moved[l]);
                if (mpz_sgn(*to) >= 0 && mpz_cmp(sets->sum, *to) >= 0)
                    continue;
                mpz_set(*to, sets->sum);
                changed = true;
            }
        }
    }
}

/* Sets an entry of the graph to the cost of a transfer and what follows it, plus `more`. */
static void set_edge(struct sets *sets, uint32_t from, uint32_t to, mpz_t path, mpz_t more)
{
    mpz_t *cost = &sets->cost[(size_t)from * sets->room + to];

    if (mpz_sgn(path) < 0)
        mpz_set_si(*cost, -1);
    else
        mpz_add(*cost, path, more);
}

/* Builds the graph of the nodes that take part. The root can be reached from each, at a cost that
 * no tree pays twice. */
static void build_graph(struct sets *sets)
{
    const struct by_series *series = sets->checker->series;
    uint32_t n = sets->n, *node = sets->group; /* unused so far */

    sets->size = 1;
    for (uint32_t i = 0; i < n; i++)
        if (sets->takes_part[i])
            node[sets->size++] = i;
    for (uint32_t a = 1; a < sets->size; a++) {
        set_edge(sets, a, 0, sets->path[(size_t)node[a] * n + series->target], sets->many);
        for (uint32_t b = 1; b < sets->size; b++)
            set_edge(sets, a, b, sets->path[(size_t)node[a] * n + node[b]], sets->costs->task[node[b]]);
    }
}

/* Chooses the cheapest edge out of each node, and adds its cost; false if there is none. */
static bool choose_edges(struct sets *sets, mpz_t total)
{
    for (uint32_t a = 1; a < sets->size; a++) {
        mpz_t *cost = sets->cost + (size_t)a * sets->room;

        sets->best[a] = a;
        for (uint32_t b = 0; b < sets->size; b++)
            if (b != a && mpz_sgn(cost[b]) >= 0 &&
                (sets->best[a] == a || mpz_cmp(cost[b], cost[sets->best[a]]) < 0))
                sets->best[a] = b;
        if (sets->best[a] == a)
            return false;
        mpz_add(total, total, cost[sets->best[a]]);
    }
    return true;
}

/* Numbers the groups: all nodes of a circle of chosen edges are one. Returns their number. */
static uint32_t number_groups(struct sets *sets)
{
    uint32_t groups = 1;

    for (uint32_t a = 0; a < sets->size; a++) {
        sets->group[a] = UINT32_MAX;
        sets->seen[a] = UINT32_MAX;
    }
    sets->group[0] = sets->seen[0] = 0;
    for (uint32_t a = 1; a < sets->size; a++) {
        uint32_t at = a;

        while (sets->seen[at] == UINT32_MAX) {
            sets->seen[at] = a;
            at = sets->best[at];
        }
        if (sets->seen[at] != a || at == 0)
            continue;
        for (; sets->group[at] == UINT32_MAX; at = sets->best[at])
            sets->group[at] = groups;
        groups++;
    }
    for (uint32_t a = 1; a < sets->size; a++)
        if (sets->group[a] == UINT32_MAX)
            sets->group[a] = groups++;
    return groups;
}

/* Makes the graph of the groups, whose edges cost what they add to the chosen ones. */
static void merge_groups(struct sets *sets, uint32_t groups)
{
    mpz_t *kept = sets->cost;

    for (uint32_t a = 1; a < groups; a++)
        for (uint32_t b = 0; b < groups; b++)
            mpz_set_si(sets->next_cost[(size_t)a * sets->room + b], -1);
    for (uint32_t a = 1; a < sets->size; a++)
        for (uint32_t b = 0; b < sets->size; b++) {
            mpz_t *cost = &sets->cost[(size_t)a * sets->room + b];
            mpz_t *to = &sets->next_cost[(size_t)sets->group[a] * sets->room + sets->group[b]];

            if (sets->group[a] == sets->group[b] || mpz_sgn(*cost) < 0)
                continue;
            mpz_sub(sets->sum, *cost, sets->cost[(size_t)a * sets->room + sets->best[a]]);
            if (mpz_sgn(*to) < 0 || mpz_cmp(sets->sum, *to) < 0)
                mpz_set(*to, sets->sum);
        }
    sets->cost = sets->next_cost;
    sets->next_cost = kept;
    sets->size = groups;
}

/* Adds the cost of the cheapest arborescence of the nodes that take part; false if there is
 * none. */
static bool price_tree(struct sets *sets, mpz_t total)
{
    build_graph(sets);
    while (choose_edges(sets, total)) {
        uint32_t groups = number_groups(sets);

        if (groups == sets->size)
            return true;
        merge_groups(sets, groups);
    }
    return false;
}

/* Adds the cheapest ways from holders that do not combine to nodes that do. */
static bool price_leaves(struct sets *sets, mpz_t total)
{
    const struct by_series *series = sets->checker->series;
    bool right = true;
    mpz_t least;

    mpz_init(least);
    for (uint32_t h = 0; h < series->holder_count && right; h++) {
        uint32_t from = series->holders[h];

        mpz_set_si(least, -1);
        for (uint32_t i = 0; i < sets->n && !combines(sets, from); i++) {
            if (!sets->takes_part[i] || mpz_sgn(sets->path[(size_t)from * sets->n + i]) < 0)
                continue;
            mpz_add(sets->sum, sets->path[(size_t)from * sets->n + i], sets->costs->task[i]);
            if (mpz_sgn(least) < 0 || mpz_cmp(sets->sum, least) < 0)
                mpz_set(least, sets->sum);
        }
        if (combines(sets, from))
            continue;
        right = mpz_sgn(least) >= 0;
        mpz_add(total, total, least);
    }
    mpz_clear(least);
    return right;
}

/* Sets `many` to more than any arborescence costs. */
static void count_many(struct sets *sets)
{
    uint32_t n = sets->n;

    mpz_set_ui(sets->many, 1);
    for (size_t i = 0; i < (size_t)n * n; i++)
        if (mpz_sgn(sets->path[i]) > 0)
            mpz_add(sets->many, sets->many, sets->path[i]);
    for (uint32_t i = 0; i < n; i++)
        if (combines(sets, i))
            mpz_addmul_ui(sets->many, sets->costs->task[i], n);
}

static bool price_choices(struct sets *sets, mpz_t total)
{
    bool found = false;
    mpz_t cost;

    mpz_init(cost);
    for (uint32_t choice = 0; choice < UINT32_C(1) << sets->optional_count; choice++) {
        for (uint32_t o = 0; o < sets->optional_count; o++)
            sets->takes_part[sets->optional[o]] = choice >> o & 1;
        mpz_set_ui(cost, 0);
        if (!price_leaves(sets, cost) || !price_tree(sets, cost))
            continue;
        mpz_sub(cost, cost, sets->many);
        if (!found || mpz_cmp(cost, total) < 0)
            mpz_set(total, cost);
        found = true;
    }
    mpz_clear(cost);
    return found || by_series_violate(sets->checker, "the result cannot reach the target");
}

bool by_series_price_sets(struct by_series_checker *checker, const struct by_series_costs *costs, mpz_t total)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count, room = series->holder_count + OPTIONAL_MAX + 1;
    struct sets sets = {.checker = checker,
                        .costs = costs,
                        .n = n,
                        .holds = by_alloc(n, sizeof(bool)),
                        .takes_part = by_alloc(n, sizeof(bool)),
                        .path = by_integers_new((size_t)n * n),
                        .room = room,
                        .cost = by_integers_new((size_t)room * room),
                        .next_cost = by_integers_new((size_t)room * room),
                        .best = by_alloc(room, sizeof(uint32_t)),
                        .group = by_alloc(room, sizeof(uint32_t)),
                        .seen = by_alloc(room, sizeof(uint32_t))};
    bool right;

    mpz_inits(sets.many, sets.sum, NULL);
    for (uint32_t h = 0; h < series->holder_count; h++)
        sets.holds[series->holders[h]] = true;
    for (uint32_t i = 0; i < n; i++) {
        sets.takes_part[i] = sets.holds[i] && combines(&sets, i);
        if (!sets.holds[i] && combines(&sets, i)) {
            BY_ASSERT(sets.optional_count < OPTIONAL_MAX); /* checked before */
            sets.optional[sets.optional_count++] = i;
        }
    }
    find_paths(&sets);
    count_many(&sets);
    right = price_choices(&sets, total);
    mpz_clears(sets.many, sets.sum, NULL);
    by_integers_free(sets.path, (size_t)n * n);
    by_integers_free(sets.cost, (size_t)room * room);
    by_integers_free(sets.next_cost, (size_t)room * room);
    free(sets.holds);
    free(sets.takes_part);
    free(sets.best);
    free(sets.group);
    free(sets.seen);
    return right;
}
