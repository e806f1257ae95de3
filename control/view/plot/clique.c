/*
 * Finds groups of switches. See clique.h. Two neighbours belong to one group if they have many
 * common neighbours, as the members of a group do. The resulting groups must be nearly complete.
 */
#include "control/view/plot/clique.h"

#include "control/base/alloc.h"

#define GROUPS_MIN 3u /* least number of groups; fewer are no pattern */
#define SIZE_MIN   3u /* least number of switches in a group */
#define TOPS_MAX   2000u

struct clique_work {
    const struct by_fabric *fabric;
    const uint32_t *levels;
    uint32_t top;
    uint32_t count;   /* number of nodes of the highest level */
    uint32_t *number; /* by node: its number among these nodes */
    bool *joined;     /* [a * count + b] */
    uint32_t *set;    /* by number: the first member of its group */
};

static uint32_t common(const struct clique_work *work, uint32_t a, uint32_t b)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < work->count; i++)
        sum += work->joined[(size_t)a * work->count + i] && work->joined[(size_t)b * work->count + i];
    return sum;
}

static uint32_t find(uint32_t *set, uint32_t a)
{
    while (set[a] != a)
        a = set[a] = set[set[a]];
    return a;
}

/*
 * Joins neighbours with at least a third of the largest number of common neighbours, so a few
 * failed links do not split a group.
 */
static void make_sets(struct clique_work *work)
{
    uint32_t most = 0;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t a = 0; a < work->count; a++)
            for (uint32_t b = a + 1; b < work->count; b++) {
                uint32_t shared = work->joined[(size_t)a * work->count + b] ? common(work, a, b) : 0;

                if (pass == 0)
                    most = shared > most ? shared : most;
                else if (shared > 0 && 3 * shared >= most) {
                    uint32_t x = find(work->set, a), y = find(work->set, b);

                    work->set[x > y ? x : y] = x > y ? y : x;
                }
            }
}

/* Whether each group is large enough and has most of its possible links. */
static bool are_groups(struct clique_work *work, uint32_t *sets)
{
    uint32_t *size = by_alloc(work->count, sizeof(*size)), *links = by_alloc(work->count, sizeof(*links));
    bool right = true, apart = false;

    for (uint32_t a = 0; a < work->count; a++) {
        size[find(work->set, a)]++;
        for (uint32_t b = a + 1; b < work->count; b++)
            if (work->joined[(size_t)a * work->count + b]) {
                links[find(work->set, a)] += find(work->set, a) == find(work->set, b);
                apart |= find(work->set, a) != find(work->set, b);
            }
    }
    *sets = 0;
    for (uint32_t a = 0; a < work->count; a++) {
        if (size[a] == 0)
            continue;
        ++*sets;
        right &= size[a] >= SIZE_MIN && 10 * (uint64_t)links[a] >= 3 * (uint64_t)size[a] * (size[a] - 1);
    }
    free(size);
    free(links);
    return right && apart && *sets >= GROUPS_MIN;
}

/*
 * Nodes below a group belong to it: the group numbers are passed down from neighbour to neighbour.
 */
static void number_nodes(struct clique_work *work, uint32_t *clique)
{
    const struct by_fabric *fabric = work->fabric;
    uint32_t next = 0, *of_set = by_alloc(work->count, sizeof(*of_set));
    bool changed = true;

    memset(of_set, 0xff, work->count * sizeof(*of_set));
    for (uint32_t n = 0; n < fabric->topology->node_count; n++) {
        uint32_t set;

        clique[n] = UINT32_MAX;
        if (work->levels[n] != work->top)
            continue;
        set = find(work->set, work->number[n]);
        if (of_set[set] == UINT32_MAX)
            of_set[set] = next++;
        clique[n] = of_set[set];
    }
    while (changed) {
        changed = false;
        for (uint32_t c = 0; c < fabric->channel_count; c++)
            for (unsigned side = 0; side < 2; side++) {
                uint32_t from = side ? fabric->channels[c].b : fabric->channels[c].a;
                uint32_t to = side ? fabric->channels[c].a : fabric->channels[c].b;

                if (clique[from] != UINT32_MAX && clique[to] == UINT32_MAX) {
                    clique[to] = clique[from];
                    changed = true;
                }
            }
    }
    free(of_set);
}

uint32_t by_clique_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t *clique)
{
    uint32_t nodes = fabric->topology->node_count, sets = 0;
    struct clique_work work = {.fabric = fabric, .levels = levels};

    for (uint32_t n = 0; n < nodes; n++)
        work.top = levels[n] > work.top ? levels[n] : work.top;
    for (uint32_t n = 0; n < nodes; n++)
        work.count += levels[n] == work.top;
    if (work.top == 0 || work.count < GROUPS_MIN * SIZE_MIN || work.count > TOPS_MAX)
        return 0;
    work.number = by_alloc(nodes, sizeof(*work.number));
    work.joined = by_alloc((size_t)work.count * work.count, sizeof(*work.joined));
    work.set = by_alloc(work.count, sizeof(*work.set));
    for (uint32_t n = 0, at = 0; n < nodes; n++)
        if (levels[n] == work.top) {
            work.set[at] = at;
            work.number[n] = at++;
        }
    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        uint32_t a = fabric->channels[c].a, b = fabric->channels[c].b;

        if (levels[a] == work.top && levels[b] == work.top)
            work.joined[(size_t)work.number[a] * work.count + work.number[b]] =
                work.joined[(size_t)work.number[b] * work.count + work.number[a]] = true;
    }
    make_sets(&work);
    if (are_groups(&work, &sets))
        number_nodes(&work, clique);
    else
        sets = 0;
    free(work.number);
    free(work.joined);
    free(work.set);
    return sets;
}
