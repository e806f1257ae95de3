/*
 * Completes trees by exchange. See pack_repair.h. A tree that lacks a node needs one of the node's
 * links, from a node that is not below it. If all those links are taken, another tree moves to
 * another link into the same node, and so on, until a link is free. The shortest such chain is
 * used. All trees stay free of cycles, because only the links into this one node change. If there
 * is no chain, the node is attached below one of its own descendants over a free link, and the
 * resulting cycle is broken at another of its nodes, which then is the missing one: a step of a
 * random walk. Other steps of it move a part of what is below the node to the rest of the tree.
 */
#include "control/planner/pack/pack_repair.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/assert.h"
#include "offload/base/prng.h"

#define NONE UINT32_MAX
/* Work before giving up (trees visited): little on small nets, because growth packs them quickly;
 * above that size it increases with the fourth power of the nodes, as the work of growth does. */
#define SMALL_NODES 48u
#define SCALE_LARGE 5u /* times SMALL_NODES */
#define WORK_SMALL  ((uint64_t)2000000)
#define WORK_LARGE  ((uint64_t)600000000)
/* Part of that work after which it gives up if no fewer nodes are missing. Of 306 successful
 * repairs of the hard suite and of random fabrics none needed more than a thirty-eighth. */
#define STUCK_PART 16u
/* One step in so many is a bridge. */
#define BRIDGE_RARITY 4

struct lack {
    uint32_t tree;
    uint32_t node;
};

struct repairer {
    struct by_units *units;
    int64_t *left;  /* by half: trees that could still take it */
    uint32_t *slot; /* by half: its position among the neighbours of its head */
    struct lack *lacks;
    uint32_t lack_count, lack_room;
    struct by_prng prng;
    uint64_t work;
    /* The chain into one node. A place is the position of a link among the node's neighbours. */
    uint32_t *begin;  /* by place, plus one: the first tree, in `sorted`, that enters there */
    uint32_t *sorted; /* trees */
    uint32_t *free_places, free_count;
    uint32_t *seen, stamp;
    uint32_t *before; /* by place: the previous place of the chain, NONE at its start */
    uint32_t *mover;  /* by place: the tree that would move here */
    uint32_t *queue;
};

static uint32_t *parent_of(const struct repairer *repairer, uint32_t node, uint32_t tree)
{
    return &repairer->units->parent[(size_t)node * repairer->units->count + tree];
}

/* Whether the tree may enter `node` over `half`: the half's tail is not below the node. */
static bool may_use(struct repairer *repairer, uint32_t tree, uint32_t node, uint32_t half)
{
    const struct by_mesh *net = repairer->units->net;
    uint32_t at = net->tail[half];

    for (;;) {
        uint32_t parent;

        repairer->work++;
        if (at == node)
            return false;
        parent = *parent_of(repairer, at, tree);
        if (parent == BY_UNIT_MISSING)
            return true;
        at = net->tail[parent];
    }
}

static void note_lack(struct repairer *repairer, uint32_t tree, uint32_t node)
{
    BY_GROW(repairer->lacks, repairer->lack_count, repairer->lack_room);
    repairer->lacks[repairer->lack_count++] = (struct lack){tree, node};
}

/* Sorts the trees at a node by the place of their half. */
static void sort_trees(struct repairer *repairer, uint32_t node)
{
    const struct by_units *units = repairer->units;
    uint32_t degree = units->net->first[node + 1] - units->net->first[node];
    const uint32_t *parent = parent_of(repairer, node, 0);

    repairer->work += 2 * units->count;
    memset(repairer->begin, 0, (degree + 2) * sizeof(*repairer->begin));
    for (uint32_t t = 0; t < units->count; t++)
        if (parent[t] != BY_UNIT_MISSING)
            repairer->begin[repairer->slot[parent[t]] + 2]++;
    for (uint32_t i = 0; i < degree; i++)
        repairer->begin[i + 2] += repairer->begin[i + 1];
    for (uint32_t t = 0; t < units->count; t++)
        if (parent[t] != BY_UNIT_MISSING)
            repairer->sorted[repairer->begin[repairer->slot[parent[t]] + 1]++] = t;
    repairer->free_count = 0;
    for (uint32_t i = 0; i < degree; i++)
        if (repairer->left[units->net->near[units->net->first[node] + i].half] > 0)
            repairer->free_places[repairer->free_count++] = i;
}

/* Moves every tree of the chain that ends at `place`, which has a free link. */
static void move_chain(struct repairer *repairer, uint32_t node, uint32_t place)
{
    const struct by_mesh *net = repairer->units->net;
    const struct by_near *near = net->near + net->first[node];

    repairer->left[near[place].half]--;
    for (; place != NONE; place = repairer->before[place])
        *parent_of(repairer, node, repairer->mover[place]) = near[place].half;
}

/* Records that `tree` could enter at `place` and thereby free `before`; true when `place` has a
 * free link. */
static bool see_place(struct repairer *repairer, uint32_t node, uint32_t place, uint32_t before,
                      uint32_t tree, uint32_t *tail)
{
    const struct by_mesh *net = repairer->units->net;

    repairer->seen[place] = repairer->stamp;
    repairer->before[place] = before;
    repairer->mover[place] = tree;
    repairer->queue[(*tail)++] = place;
    return repairer->left[net->near[net->first[node] + place].half] > 0;
}

/* Gives the tree a link into the node through a shortest chain; false when there is none. */
static bool find_chain(struct repairer *repairer, uint32_t tree, uint32_t node)
{
    const struct by_mesh *net = repairer->units->net;
    const struct by_near *near = net->near + net->first[node];
    uint32_t degree = net->first[node + 1] - net->first[node], head = 0, tail = 0;

    sort_trees(repairer, node);
    repairer->stamp++;
    for (uint32_t i = 0; i < degree; i++)
        if (net->capacity[near[i].half] > 0 && may_use(repairer, tree, node, near[i].half) &&
            see_place(repairer, node, i, NONE, tree, &tail)) {
            move_chain(repairer, node, i);
            return true;
        }
    while (head < tail) {
        uint32_t place = repairer->queue[head++];

        for (uint32_t i = repairer->begin[place]; i < repairer->begin[place + 1]; i++) {
            uint32_t other = repairer->sorted[i];

            for (uint32_t f = 0; f < repairer->free_count; f++) {
                uint32_t free_place = repairer->free_places[f];

                if (repairer->seen[free_place] != repairer->stamp &&
                    may_use(repairer, other, node, near[free_place].half)) {
                    see_place(repairer, node, free_place, place, other, &tail);
                    move_chain(repairer, node, free_place);
                    return true;
                }
            }
        }
        for (uint32_t i = repairer->begin[place]; i < repairer->begin[place + 1] && tail < degree; i++)
            for (uint32_t j = 0; j < degree; j++)
                if (repairer->seen[j] != repairer->stamp && net->capacity[near[j].half] > 0 &&
                    may_use(repairer, repairer->sorted[i], node, near[j].half))
                    see_place(repairer, node, j, place, repairer->sorted[i], &tail);
    }
    return false;
}

/* Whether `node` is in the part of the tree below `above`, or is `above`; `side` remembers the
 * answers (1 below, 2 not). */
static bool is_below(struct repairer *repairer, uint32_t tree, uint32_t node, uint32_t above, uint8_t *side)
{
    const struct by_mesh *net = repairer->units->net;
    uint32_t at = node;
    uint8_t answer;

    side[above] = 1;
    while (side[at] == 0 && *parent_of(repairer, at, tree) != BY_UNIT_MISSING)
        at = net->tail[*parent_of(repairer, at, tree)];
    answer = side[at] == 1 ? 1 : 2;
    for (at = node; side[at] == 0; at = net->tail[*parent_of(repairer, at, tree)]) {
        side[at] = answer;
        repairer->work++;
        if (*parent_of(repairer, at, tree) == BY_UNIT_MISSING)
            break;
    }
    return answer == 1;
}

/*
 * Moves a random node below `node` to the rest of the tree, over a link that another tree may have
 * to give up for it; that tree then lacks the moved node. So a root whose links all serve other
 * trees gets one. `node` is still missing. Returns false if no link joins the two parts.
 */
static bool bridge(struct repairer *repairer, uint32_t tree, uint32_t node)
{
    const struct by_mesh *net = repairer->units->net;
    uint8_t *side = by_alloc(net->node_count, sizeof(*side));
    uint32_t half = NONE, seen = 0, to, first, count;

    for (uint32_t i = 0; i < net->node_count; i++) {
        if (i == node || !is_below(repairer, tree, i, node, side))
            continue;
        for (uint32_t j = net->first[i]; j < net->first[i + 1]; j++)
            if (net->capacity[net->near[j].half] > 0 &&
                !is_below(repairer, tree, net->near[j].node, node, side) &&
                by_prng_below(&repairer->prng, ++seen) == 0)
                half = net->near[j].half;
    }
    free(side);
    if (half == NONE)
        return false;
    to = by_mesh_head(net, half);
    sort_trees(repairer, to);
    first = repairer->begin[repairer->slot[half]];
    count = repairer->begin[repairer->slot[half] + 1] - first;
    if (repairer->left[half] > 0) {
        repairer->left[half]--;
    } else {
        uint32_t other = repairer->sorted[first + by_prng_below(&repairer->prng, count)];

        *parent_of(repairer, to, other) = BY_UNIT_MISSING;
        note_lack(repairer, other, to);
    }
    repairer->left[*parent_of(repairer, to, tree)]++;
    *parent_of(repairer, to, tree) = half;
    note_lack(repairer, tree, node);
    return true;
}

/* Attaches the node below its own descendant, and breaks the cycle elsewhere. */
static void kick(struct repairer *repairer, uint32_t tree, uint32_t node)
{
    const struct by_mesh *net = repairer->units->net;
    const struct by_near *near = net->near + net->first[node];
    uint32_t place, length = 0, cut, at, steps;

    /* the node has capacity for all trees, and this tree does not enter it */
    BY_ASSERT(repairer->free_count > 0);
    place = repairer->free_places[by_prng_below(&repairer->prng, repairer->free_count)];
    for (at = near[place].node; at != node; at = net->tail[*parent_of(repairer, at, tree)])
        length++;
    cut = (uint32_t)by_prng_below(&repairer->prng, length);
    for (at = near[place].node, steps = 0; steps < cut; steps++)
        at = net->tail[*parent_of(repairer, at, tree)];
    repairer->left[*parent_of(repairer, at, tree)]++;
    *parent_of(repairer, at, tree) = BY_UNIT_MISSING;
    repairer->left[near[place].half]--;
    *parent_of(repairer, node, tree) = near[place].half;
    note_lack(repairer, tree, at);
}

static void repairer_make(struct repairer *repairer, struct by_units *units)
{
    const struct by_mesh *net = units->net;
    uint32_t degree = 0;

    *repairer = (struct repairer){.units = units, .prng = {1}};
    repairer->left = by_alloc(2 * (size_t)net->pair_count, sizeof(*repairer->left));
    repairer->slot = by_alloc(2 * (size_t)net->pair_count, sizeof(*repairer->slot));
    memcpy(repairer->left, net->capacity, 2 * (size_t)net->pair_count * sizeof(*repairer->left));
    for (uint32_t node = 0; node < net->node_count; node++) {
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++)
            repairer->slot[net->near[i].half] = i - net->first[node];
        degree = net->first[node + 1] - net->first[node] > degree ? net->first[node + 1] - net->first[node]
                                                                  : degree;
        for (uint32_t t = 0; t < units->count; t++) {
            uint32_t parent = *parent_of(repairer, node, t);

            if (parent != BY_UNIT_MISSING)
                repairer->left[parent]--;
            else if (units->root[t] != node)
                note_lack(repairer, t, node);
        }
    }
    repairer->begin = by_alloc(degree + 2, sizeof(*repairer->begin));
    repairer->sorted = by_alloc(units->count, sizeof(*repairer->sorted));
    repairer->free_places = by_alloc(degree, sizeof(*repairer->free_places));
    repairer->seen = by_alloc(degree, sizeof(*repairer->seen));
    repairer->before = by_alloc(degree, sizeof(*repairer->before));
    repairer->mover = by_alloc(degree, sizeof(*repairer->mover));
    repairer->queue = by_alloc(degree, sizeof(*repairer->queue));
}

static void repairer_free(struct repairer *repairer)
{
    free(repairer->left);
    free(repairer->slot);
    free(repairer->lacks);
    free(repairer->begin);
    free(repairer->sorted);
    free(repairer->free_places);
    free(repairer->seen);
    free(repairer->before);
    free(repairer->mover);
    free(repairer->queue);
}

bool by_pack_repair(struct by_units *units, double deadline)
{
    struct repairer repairer;
    uint64_t scale = (units->net->node_count + SMALL_NODES - 1) / SMALL_NODES, work_max = WORK_LARGE;
    uint64_t last_work = 0; /* when fewer nodes were last missing */
    uint32_t least;
    bool right = true;

    if (scale < SCALE_LARGE)
        work_max = WORK_SMALL * scale * scale * scale * scale;
    repairer_make(&repairer, units);
    least = repairer.lack_count;
    right = (uint64_t)least * units->count < work_max;
    for (uint64_t step = 0; repairer.lack_count > 0 && right; step++) {
        /* Mostly the last one, whose data is in the cache; sometimes a random one, so that none
         * blocks the others. */
        uint32_t pick =
            step % 8 ? repairer.lack_count - 1 : (uint32_t)by_prng_below(&repairer.prng, repairer.lack_count);
        struct lack lack = repairer.lacks[pick];

        if (repairer.lack_count < least) {
            least = repairer.lack_count;
            last_work = repairer.work;
        }
        repairer.lacks[pick] = repairer.lacks[--repairer.lack_count];
        right = repairer.work < work_max && repairer.work - last_work < work_max / STUCK_PART &&
                (step % 64 || !by_plan_late(deadline));
        /* Kicks alone may move the same tree to and fro for ever. Small nets are left to growth
         * then, which makes fewer trees. */
        if (right && !find_chain(&repairer, lack.tree, lack.node) &&
            (scale < SCALE_LARGE || by_prng_below(&repairer.prng, BRIDGE_RARITY) > 0 ||
             !bridge(&repairer, lack.tree, lack.node)))
            kick(&repairer, lack.tree, lack.node);
    }
    repairer_free(&repairer);
    return right;
}
