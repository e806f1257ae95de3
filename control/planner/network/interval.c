/*
 * Cheapest trees that add in order. See interval.h. Three tables over intervals of ranks and places
 * p (compute nodes and switches that aggregate) hold the least prices: `at`, of the interval's sum
 * computed at p; `sent`, of the sum available at p after it was sent from another place; `joined`,
 * of the sum available at p in one or more parts. A compute node adds the parts left of its rank,
 * itself, and the parts right of it.
 */
#include "control/planner/network/interval.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

/* A hop costs 1 / HOP_SCALE of a unit of price. */
#define HOP_SCALE ((int64_t)1 << 10)
#define FAR       (INT64_MAX / 4)
#define NONE      UINT32_MAX

struct by_interval {
    const struct by_graph *up;
    uint32_t node_count, rank_count, site_count;
    uint32_t *node; /* by site: ranks first */
    bool *banned;   /* by site: only forwards in the current tree */
    int64_t *way;   /* [parent * site_count + child]: cheapest path, including the addition at the parent */
    int64_t *extra; /* by site: price of an addition */
    uint32_t *previous; /* [site * node_count + node] */
    int64_t *distance;
    bool *settled;
    const int64_t *prices, *additions;
    int64_t *at, *sent, *joined; /* by interval and site */
    uint32_t *sender;            /* of `sent`: the child */
    uint32_t *part;  /* of `joined`: the last rank before the last part, NONE if there is one part */
    uint32_t *split; /* of `at` at a switch: the last rank before the last part */
};

static size_t cell(const struct by_interval *interval, uint32_t first, uint32_t last, uint32_t site)
{
    return ((size_t)first * interval->rank_count + last) * interval->site_count + site;
}

struct by_interval *by_interval_new(const struct by_graph *up)
{
    struct by_interval *interval = by_alloc(1, sizeof(*interval));
    uint32_t n = up->node_count;
    size_t cells;

    interval->up = up;
    interval->node_count = n;
    interval->node = by_alloc(n, sizeof(*interval->node));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass ? up->branch[i] : up->compute[i])
                interval->node[interval->site_count++] = i;
    interval->rank_count = up->compute_count;
    cells = (size_t)interval->rank_count * interval->rank_count * interval->site_count;
    interval->banned = by_alloc(interval->site_count, sizeof(*interval->banned));
    interval->extra = by_alloc(interval->site_count, sizeof(*interval->extra));
    interval->way = by_alloc((size_t)interval->site_count * interval->site_count, sizeof(*interval->way));
    interval->previous = by_alloc((size_t)interval->site_count * n, sizeof(*interval->previous));
    interval->distance = by_alloc(n, sizeof(*interval->distance));
    interval->settled = by_alloc(n, sizeof(*interval->settled));
    interval->at = by_alloc(cells, sizeof(*interval->at));
    interval->sent = by_alloc(cells, sizeof(*interval->sent));
    interval->joined = by_alloc(cells, sizeof(*interval->joined));
    interval->sender = by_alloc(cells, sizeof(*interval->sender));
    interval->part = by_alloc(cells, sizeof(*interval->part));
    interval->split = by_alloc(cells, sizeof(*interval->split));
    return interval;
}

void by_interval_free(struct by_interval *interval)
{
    if (!interval)
        return;
    free(interval->node);
    free(interval->banned);
    free(interval->extra);
    free(interval->way);
    free(interval->previous);
    free(interval->distance);
    free(interval->settled);
    free(interval->at);
    free(interval->sent);
    free(interval->joined);
    free(interval->sender);
    free(interval->part);
    free(interval->split);
    free(interval);
}

/* Finds the cheapest paths from a site outwards, passing only switches. */
static void search_from(struct by_interval *interval, uint32_t site)
{
    const struct by_graph *up = interval->up;
    uint32_t n = interval->node_count, start = interval->node[site];
    uint32_t *previous = &interval->previous[(size_t)site * n];

    for (uint32_t i = 0; i < n; i++) {
        interval->distance[i] = i == start ? 0 : FAR;
        interval->settled[i] = false;
    }
    for (;;) {
        uint32_t at = NONE;

        for (uint32_t i = 0; i < n; i++)
            if (!interval->settled[i] && interval->distance[i] < FAR &&
                (at == NONE || interval->distance[i] < interval->distance[at]))
                at = i;
        if (at == NONE)
            break;
        interval->settled[at] = true;
        for (uint32_t i = 0; i < n && (at == start || !up->compute[at]); i++) {
            int64_t price = interval->prices[(size_t)at * n + i] * HOP_SCALE + 1;

            if (by_graph_capacity(up, at, i) == 0 || interval->distance[at] + price >= interval->distance[i])
                continue;
            interval->distance[i] = interval->distance[at] + price;
            previous[i] = at;
        }
    }
    for (uint32_t i = 0; i < interval->site_count; i++) {
        int64_t far = interval->distance[interval->node[i]];

        interval->way[(size_t)site * interval->site_count + i] = i == site || far >= FAR ? FAR : far;
    }
}

/* Computes the least price of an interval's sum computed at a place. */
static void make_at(struct by_interval *interval, uint32_t first, uint32_t last, uint32_t site)
{
    size_t here = cell(interval, first, last, site);
    int64_t least = FAR;

    interval->split[here] = NONE;
    if (site < interval->rank_count) {
        if (site >= first && site <= last)
            least = (site > first ? interval->joined[cell(interval, first, site - 1, site)] : 0) +
                    (site < last ? interval->joined[cell(interval, site + 1, last, site)] : 0);
    } else if (!interval->banned[site]) {
        for (uint32_t i = first; i < last; i++) {
            int64_t price = interval->joined[cell(interval, first, i, site)] +
                            interval->sent[cell(interval, i + 1, last, site)];

            /* A switch does one addition less than it has children, but every child was charged
             * one. */
            if (price < FAR && price - interval->extra[site] < least) {
                least = price - interval->extra[site];
                interval->split[here] = i;
            }
        }
    }
    interval->at[here] = least < FAR ? least : FAR;
}

static void make_sent(struct by_interval *interval, uint32_t first, uint32_t last, uint32_t site)
{
    size_t here = cell(interval, first, last, site);
    int64_t least = FAR;

    for (uint32_t from = 0; from < interval->site_count; from++) {
        int64_t way = interval->way[(size_t)site * interval->site_count + from],
                price = interval->at[cell(interval, first, last, from)];

        if (way >= FAR || price >= FAR || way + price >= least)
            continue;
        least = way + price;
        interval->sender[here] = from;
    }
    interval->sent[here] = least < FAR ? least + interval->extra[site] : FAR;
}

static void make_joined(struct by_interval *interval, uint32_t first, uint32_t last, uint32_t site)
{
    size_t here = cell(interval, first, last, site);

    interval->joined[here] = interval->sent[here];
    interval->part[here] = NONE;
    for (uint32_t i = first; i < last; i++) {
        int64_t price = interval->joined[cell(interval, first, i, site)] +
                        interval->sent[cell(interval, i + 1, last, site)];

        if (price < interval->joined[here]) {
            interval->joined[here] = price;
            interval->part[here] = i;
        }
    }
}

static void fill_tables(struct by_interval *interval)
{
    for (uint32_t length = 1; length <= interval->rank_count; length++)
        for (uint32_t first = 0; first + length <= interval->rank_count; first++) {
            uint32_t last = first + length - 1;

            for (uint32_t site = 0; site < interval->site_count; site++)
                make_at(interval, first, last, site);
            for (uint32_t site = 0; site < interval->site_count; site++)
                make_sent(interval, first, last, site);
            for (uint32_t site = 0; site < interval->site_count; site++)
                make_joined(interval, first, last, site);
        }
}

void by_interval_search(struct by_interval *interval, const int64_t *prices, const int64_t *additions)
{
    interval->prices = prices;
    interval->additions = additions;
    for (uint32_t i = 0; i < interval->site_count; i++) {
        uint32_t node = interval->node[i];
        bool limited = i >= interval->rank_count && interval->up->budget[node] >= 0;

        interval->banned[i] = false;
        interval->extra[i] = limited ? additions[node] * HOP_SCALE : 0;
    }
    for (uint32_t i = 0; i < interval->site_count; i++)
        search_from(interval, i);
    fill_tables(interval);
}

static uint32_t site_of(const struct by_interval *interval, uint32_t node)
{
    uint32_t site = 0;

    while (site < interval->site_count && interval->node[site] != node)
        site++;
    return site;
}

int64_t by_interval_price(const struct by_interval *interval, uint32_t root)
{
    uint32_t site = site_of(interval, root);
    int64_t price =
        site < interval->site_count ? interval->at[cell(interval, 0, interval->rank_count - 1, site)] : FAR;

    return price < FAR ? price / HOP_SCALE : INT64_MAX;
}

/* An interval whose sum is to be computed at a site. */
struct interval_order {
    uint32_t first, last, site;
};

static struct by_path make_path(const struct by_interval *interval, uint32_t from, uint32_t to)
{
    const uint32_t *previous = &interval->previous[(size_t)from * interval->node_count];
    uint32_t count = 1, start = interval->node[from];
    struct by_path path;

    for (uint32_t node = interval->node[to]; node != start; node = previous[node])
        count++;
    path.node_count = count;
    path.nodes = by_alloc(count, sizeof(*path.nodes));
    for (uint32_t node = interval->node[to]; count-- > 0; node = previous[node])
        path.nodes[count] = node;
    return path;
}

struct unrolled {
    struct by_path *paths;
    uint32_t path_count;
    struct interval_order *orders;
    uint32_t order_count;
};

/* Lists the parts in which an interval arrives at `site`: for each a path, and an order for the
 * part below. */
static void unroll(const struct by_interval *interval, uint32_t first, uint32_t last, uint32_t site,
                   struct unrolled *out)
{
    for (;;) {
        uint32_t part = interval->part[cell(interval, first, last, site)],
                 start = part == NONE ? first : part + 1;
        uint32_t from = interval->sender[cell(interval, start, last, site)];

        out->paths[out->path_count++] = make_path(interval, site, from);
        out->orders[out->order_count++] = (struct interval_order){start, last, from};
        if (part == NONE)
            return;
        last = part;
    }
}

/* Writes the tree out. Returns false when a site occurs a second time (`*twice`), or when a path
 * passes a site of the tree that adds. */
static bool lay_out(const struct by_interval *interval, uint32_t root, struct unrolled *out, uint32_t *twice)
{
    bool *used = by_alloc(interval->node_count, sizeof(*used)), right = true;

    out->path_count = out->order_count = 0;
    out->orders[out->order_count++] = (struct interval_order){0, interval->rank_count - 1, root};
    used[interval->node[root]] = true;
    for (uint32_t i = 0; i < out->order_count && right; i++) {
        struct interval_order order = out->orders[i];
        uint32_t split = interval->split[cell(interval, order.first, order.last, order.site)],
                 before = out->order_count;

        if (order.site < interval->rank_count) {
            if (order.site > order.first)
                unroll(interval, order.first, order.site - 1, order.site, out);
            if (order.site < order.last)
                unroll(interval, order.site + 1, order.last, order.site, out);
        } else {
            uint32_t from = interval->sender[cell(interval, split + 1, order.last, order.site)];

            out->paths[out->path_count++] = make_path(interval, order.site, from);
            out->orders[out->order_count++] = (struct interval_order){split + 1, order.last, from};
            unroll(interval, order.first, split, order.site, out);
        }
        for (uint32_t j = before; j < out->order_count && right; j++) {
            right = !used[interval->node[out->orders[j].site]];
            *twice = out->orders[j].site;
            used[interval->node[out->orders[j].site]] = true;
        }
    }
    for (uint32_t i = 0; i < out->path_count && right; i++)
        for (uint32_t j = 1; j + 1 < out->paths[i].node_count && right; j++)
            if (used[out->paths[i].nodes[j]]) {
                right = false;
                for (uint32_t site = 0; site < interval->site_count; site++)
                    *twice = interval->node[site] == out->paths[i].nodes[j] ? site : *twice;
            }
    free(used);
    return right;
}

uint32_t by_interval_tree(struct by_interval *interval, uint32_t root, struct by_path *paths)
{
    uint32_t site = site_of(interval, root), twice = NONE, last = interval->rank_count - 1;
    struct unrolled out = {.paths = paths,
                           .orders = by_alloc((size_t)2 * interval->rank_count + 2, sizeof(*out.orders))};

    if (site == interval->site_count) {
        free(out.orders);
        return 0;
    }
    while (interval->at[cell(interval, 0, last, site)] < FAR && !lay_out(interval, site, &out, &twice)) {
        BY_ASSERT(twice >= interval->rank_count); /* intervals are disjoint, so each rank occurs once */
        for (uint32_t i = 0; i < out.path_count; i++)
            free(out.paths[i].nodes);
        out.path_count = 0;
        interval->banned[twice] = true;
        fill_tables(interval);
    }
    free(out.orders);
    return out.path_count;
}
