/*
 * What the programs share: rows of ports and processors, prices, lanes, and removal of circular
 * flow. See program.h.
 */
#include "control/study/steady/program.h"

#include "control/study/series/rational.h"

static uint32_t add_resource(struct by_resources *resources, struct by_lp *lp, enum by_series_resource kind,
                             uint32_t node, uint32_t to)
{
    uint32_t row = lp ? by_lp_row(lp, BY_LP_AT_MOST, 1, 1) : resources->count;

    BY_GROW(resources->list, resources->count, resources->room);
    resources->list[resources->count++] = (struct by_steady_resource){kind, node, to, row};
    return row;
}

void by_resources_make(struct by_resources *resources, const struct by_platform *platform, struct by_lp *lp)
{
    const struct by_topology *topology = platform->topology;
    const struct by_links *links = platform->links;
    uint32_t n = topology->node_count;

    *resources = (struct by_resources){.sends = by_alloc(n, sizeof(uint32_t)),
                                       .receives = by_alloc(n, sizeof(uint32_t)),
                                       .computes = by_alloc(n, sizeof(uint32_t)),
                                       .link = by_alloc(links->count, sizeof(uint32_t))};
    for (uint32_t i = 0; i < n; i++) {
        bool shares = by_series_shares(topology, platform->ports, i);

        resources->sends[i] =
            shares ? add_resource(resources, lp, BY_SERIES_SENDS, i, BY_SERIES_NONE) : BY_SERIES_NONE;
        resources->receives[i] =
            shares ? add_resource(resources, lp, BY_SERIES_RECEIVES, i, BY_SERIES_NONE) : BY_SERIES_NONE;
        resources->computes[i] = by_platform_computes(platform, i)
                                     ? add_resource(resources, lp, BY_SERIES_COMPUTES, i, BY_SERIES_NONE)
                                     : BY_SERIES_NONE;
    }
    for (uint32_t i = 0; i < links->count; i++)
        resources->link[i] = resources->sends[links->from[i]] == BY_SERIES_NONE &&
                                     resources->receives[links->to[i]] == BY_SERIES_NONE
                                 ? add_resource(resources, lp, BY_SERIES_LINK, links->from[i], links->to[i])
                                 : BY_SERIES_NONE;
}

void by_resources_free(struct by_resources *resources)
{
    free(resources->list);
    free(resources->sends);
    free(resources->receives);
    free(resources->computes);
    free(resources->link);
}

void by_resources_charge(const struct by_resources *resources, const struct by_platform *platform,
                         struct by_lp *lp, uint32_t link, uint32_t column, const mpq_t size)
{
    uint32_t rows[3] = {resources->sends[platform->links->from[link]],
                        resources->receives[platform->links->to[link]], resources->link[link]};
    mpq_t time;

    mpq_init(time);
    mpq_mul(time, platform->cost[link], size);
    for (unsigned i = 0; i < 3; i++)
        if (rows[i] != BY_SERIES_NONE)
            by_lp_add_q(lp, rows[i], column, time);
    mpq_clear(time);
}

void by_program_prices(const struct by_resources *resources, const mpq_t *prices, struct by_series *series)
{
    uint32_t room = 0;

    for (uint32_t i = 0; i < resources->count; i++) {
        const struct by_steady_resource *resource = &resources->list[i];
        struct by_series_price *to;

        if (mpq_sgn(prices[resource->row]) == 0)
            continue;
        BY_GROW(series->prices, series->price_count, room);
        to = &series->prices[series->price_count++];
        to->resource = resource->kind;
        to->node = resource->node;
        to->to = resource->to;
        mpq_init(to->price);
        mpq_set(to->price, prices[resource->row]);
    }
}

struct by_steady_lane *by_lanes_add(struct by_lanes *lanes)
{
    struct by_steady_lane *lane;

    BY_GROW(lanes->list, lanes->count, lanes->room);
    lane = &lanes->list[lanes->count++];
    *lane = (struct by_steady_lane){.task_count = 0};
    mpq_init(lane->weight);
    return lane;
}

void by_lane_push(struct by_steady_lane *lane, struct by_series_task task)
{
    BY_GROW(lane->tasks, lane->task_count, lane->task_room);
    lane->tasks[lane->task_count++] = task;
}

void by_lanes_free(struct by_lanes *lanes)
{
    for (uint32_t l = 0; l < lanes->count; l++) {
        mpq_clear(lanes->list[l].weight);
        free(lanes->list[l].tasks);
    }
    free(lanes->list);
}

void by_steady_message_size(const struct by_steady_problem *problem, uint32_t first, uint32_t last,
                            mpq_t size)
{
    mpq_set_ui(size, 1, 1);
    for (uint32_t i = 0; i < problem->size_count; i++) {
        const struct by_steady_size *given = &problem->sizes[i];

        if (given->first == BY_SERIES_NONE || (given->first == first && given->last == last))
            by_rational_set(size, given->size);
    }
}

/* Walks along links with flow until the walk meets itself or ends. */
struct steady_program_walk {
    const struct by_links *links;
    mpq_t *flow;
    uint32_t *first, *next; /* lists of links by their start node */
    uint32_t *cursor;       /* by node: the next link to examine */
    uint32_t *place;        /* by node: its position on the walk plus one, 0 if it is not on the walk */
    uint32_t *path;         /* links of the walk */
};

/*
 * Removes the circle at the end of the walk (`path` from `at` on) from the flow. Returns the new
 * length: the walk continues before the first link that is now empty.
 */
static uint32_t take_circle(struct steady_program_walk *walk, uint32_t at, uint32_t length)
{
    mpq_t least;
    uint32_t cut = length;

    mpq_init(least);
    mpq_set(least, walk->flow[walk->path[at]]);
    for (uint32_t i = at; i < length; i++)
        if (mpq_cmp(walk->flow[walk->path[i]], least) < 0)
            mpq_set(least, walk->flow[walk->path[i]]);
    for (uint32_t i = length; i-- > at;) {
        mpq_sub(walk->flow[walk->path[i]], walk->flow[walk->path[i]], least);
        if (mpq_sgn(walk->flow[walk->path[i]]) == 0)
            cut = i;
    }
    for (uint32_t i = cut; i + 1 < length; i++)
        walk->place[walk->links->to[walk->path[i]]] = 0;
    mpq_clear(least);
    return cut;
}

/* Walks from `start` until no circle remains among the nodes that it reaches. */
static void walk_from(struct steady_program_walk *walk, uint32_t start)
{
    uint32_t length = 0, node = start;

    walk->place[start] = 1;
    for (;;) {
        uint32_t link = walk->cursor[node];

        while (link != BY_SERIES_NONE && mpq_sgn(walk->flow[link]) == 0)
            link = walk->next[link];
        walk->cursor[node] = link;
        if (link == BY_SERIES_NONE) { /* no link beyond this node leads back to the walk */
            walk->place[node] = 0;
            if (length == 0)
                return;
            node = walk->links->from[walk->path[--length]];
            walk->cursor[node] = walk->next[walk->cursor[node]];
            continue;
        }
        walk->path[length++] = link;
        node = walk->links->to[link];
        if (walk->place[node]) {
            length = take_circle(walk, walk->place[node] - 1, length);
            node = length ? walk->links->to[walk->path[length - 1]] : start;
        }
        walk->place[node] = length + 1;
    }
}

void by_flow_straighten(const struct by_links *links, uint32_t node_count, mpq_t *flow)
{
    struct steady_program_walk walk = {.links = links,
                                       .flow = flow,
                                       .first = by_alloc(node_count, sizeof(uint32_t)),
                                       .next = by_alloc(links->count, sizeof(uint32_t)),
                                       .cursor = by_alloc(node_count, sizeof(uint32_t)),
                                       .place = by_alloc(node_count, sizeof(uint32_t)),
                                       .path = by_alloc((size_t)node_count + 1, sizeof(uint32_t))};

    memset(walk.first, 0xff, node_count * sizeof(uint32_t));
    for (uint32_t i = links->count; i-- > 0;) {
        walk.next[i] = walk.first[links->from[i]];
        walk.first[links->from[i]] = i;
    }
    memcpy(walk.cursor, walk.first, node_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < node_count; i++)
        walk_from(&walk, i);
    free(walk.first);
    free(walk.next);
    free(walk.cursor);
    free(walk.place);
    free(walk.path);
}
