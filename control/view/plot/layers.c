/*
 * Places nodes in layers: each node's level, the order within a level, and coordinates. The order
 * is found by the barycentre method (Sugiyama, Tagawa, Toda, "Methods for visual understanding of
 * hierarchical system structures", IEEE SMC 1981): each sweep sorts the levels by the mean position
 * of the neighbours in the level below or above. See layout.h.
 */
#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/layout.h"

#define SWEEPS 6

struct layers_work {
    const struct by_fabric *fabric;
    struct by_layout *layout;
    double *key;     /* by node: sort key in its level */
    uint32_t **rows; /* nodes of each level, sorted */
    uint32_t *row_count;
};

/* Computes the hops to the nearest host, by rounds of relaxation over the channels. */
static void find_distances(struct layers_work *work)
{
    const struct by_fabric *fabric = work->fabric;
    struct by_spot *places = work->layout->places;
    bool changed = true;

    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        places[n].level = fabric->topology->nodes[n].compute ? 0 : UINT32_MAX;
    while (changed) {
        changed = false;
        for (uint32_t c = 0; c < fabric->channel_count; c++)
            for (unsigned side = 0; side < 2; side++) {
                uint32_t near = side ? fabric->channels[c].b : fabric->channels[c].a;
                uint32_t far = side ? fabric->channels[c].a : fabric->channels[c].b;

                if (places[near].level != UINT32_MAX && places[far].level > places[near].level + 1) {
                    places[far].level = places[near].level + 1;
                    changed = true;
                }
            }
    }
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        if (places[n].level == UINT32_MAX)
            places[n].level = 1; /* unreachable; cannot happen in a topology that was read from a file */
}

/*
 * Whether the direct hosts of `outer` include all hosts of `inner` and more. Then `outer` (the
 * network between boxes) is placed above `inner` (a box's own switch).
 */
static bool serves_more(const bool *hosts, uint32_t node_count, uint32_t outer, uint32_t inner)
{
    bool more = false;

    for (uint32_t n = 0; n < node_count; n++) {
        bool o = hosts[(size_t)outer * node_count + n], i = hosts[(size_t)inner * node_count + n];

        if (i && !o)
            return false;
        more |= o && !i;
    }
    return more;
}

/*
 * Whether the direct hosts of a switch are far apart in the file. Such a switch is a rail, which
 * joins one host of each box. (A box that has lost a link has only a single gap.)
 */
static bool serves_scattered(const struct by_topology *topology, const bool *hosts, uint32_t node)
{
    uint32_t count = 0, rank = 0, first = 0, last = 0;

    for (uint32_t n = 0; n < topology->node_count; n++)
        if (topology->nodes[n].compute) {
            if (hosts[(size_t)node * topology->node_count + n]) {
                first = count++ ? first : rank;
                last = rank;
            }
            rank++;
        }
    return count > 1 && last - first + 1 > 2 * count;
}

static void raise_outer_switches(struct layers_work *work)
{
    const struct by_fabric *fabric = work->fabric;
    const struct by_node *nodes = fabric->topology->nodes;
    struct by_spot *places = work->layout->places;
    uint32_t count = fabric->topology->node_count;
    bool *hosts, *raise;

    if (count > 2000)
        return; /* the loop below is quadratic */
    hosts = by_alloc((size_t)count * count, sizeof(*hosts));
    raise = by_alloc(count, sizeof(*raise));
    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        uint32_t a = fabric->channels[c].a, b = fabric->channels[c].b;

        if (nodes[a].compute && !nodes[b].compute)
            hosts[(size_t)b * count + a] = true;
        if (nodes[b].compute && !nodes[a].compute)
            hosts[(size_t)a * count + b] = true;
    }
    for (uint32_t outer = 0; outer < count; outer++) {
        raise[outer] = places[outer].level == 1 && serves_scattered(fabric->topology, hosts, outer);
        for (uint32_t inner = 0; inner < count && places[outer].level == 1; inner++)
            if (inner != outer && places[inner].level == 1 && serves_more(hosts, count, outer, inner))
                raise[outer] = true;
    }
    for (uint32_t n = 0; n < count; n++)
        if (raise[n])
            for (uint32_t m = 0; m < count; m++)
                if (places[m].level == 1 && !raise[m]) { /* a switch remains on the lower level */
                    places[n].level = 2;
                    break;
                }
    free(raise);
    free(hosts);
}

static const double *sort_keys;

static int by_key(const void *left, const void *right)
{
    uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;

    if (sort_keys[x] != sort_keys[y])
        return sort_keys[x] < sort_keys[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void fill_rows(struct layers_work *work)
{
    uint32_t count = work->fabric->topology->node_count;
    struct by_layout *layout = work->layout;

    for (uint32_t n = 0; n < count; n++)
        if (layout->places[n].level + 1 > layout->level_count)
            layout->level_count = layout->places[n].level + 1;
    work->rows = by_alloc(layout->level_count, sizeof(*work->rows));
    work->row_count = by_alloc(layout->level_count, sizeof(*work->row_count));
    for (uint32_t l = 0; l < layout->level_count; l++)
        work->rows[l] = by_alloc(count, sizeof(**work->rows));
    for (uint32_t n = 0; n < count; n++) {
        uint32_t l = layout->places[n].level;

        work->rows[l][work->row_count[l]++] = n;
    }
}

/*
 * Computes the mean of `position` over the neighbours of each node of `level` in the levels below
 * (or above). Nodes without such neighbours keep their position.
 */
static void find_means(const struct layers_work *work, uint32_t level, bool below, const double *position,
                       double *mean)
{
    const struct by_spot *places = work->layout->places;
    uint32_t count = work->fabric->topology->node_count;
    double *sum = by_alloc(count, sizeof(*sum));
    uint32_t *weight = by_alloc(count, sizeof(*weight));

    for (uint32_t c = 0; c < work->fabric->channel_count; c++)
        for (unsigned side = 0; side < 2; side++) {
            uint32_t n = side ? work->fabric->channels[c].b : work->fabric->channels[c].a;
            uint32_t m = side ? work->fabric->channels[c].a : work->fabric->channels[c].b;

            if (places[n].level != level || places[m].level == level || (places[m].level < level) != below)
                continue;
            sum[n] += position[m];
            weight[n]++;
        }
    for (uint32_t i = 0; i < work->row_count[level]; i++) {
        uint32_t n = work->rows[level][i];

        mean[n] = weight[n] ? sum[n] / weight[n] : position[n];
    }
    free(weight);
    free(sum);
}

/* Returns the total horizontal length of the links; a shorter length means fewer crossings. */
static double row_cost(const struct layers_work *work)
{
    double cost = 0;

    for (uint32_t c = 0; c < work->fabric->channel_count; c++)
        cost += fabs(work->key[work->fabric->channels[c].a] - work->key[work->fabric->channels[c].b]);
    return cost;
}

static void number_row(struct layers_work *work, uint32_t level)
{
    for (uint32_t i = 0; i < work->row_count[level]; i++)
        work->key[work->rows[level][i]] = (i + 0.5) / work->row_count[level];
}

/*
 * Sorts all rows; work->key then has positions in [0, 1]. The file's order stays if no sweep
 * improves it.
 */
static void order_rows(struct layers_work *work)
{
    uint32_t levels = work->layout->level_count, count = work->fabric->topology->node_count;
    double *mean = by_alloc(count, sizeof(*mean)), *best = by_alloc(count, sizeof(*best)), least;

    for (uint32_t l = 0; l < levels; l++)
        number_row(work, l);
    least = row_cost(work);
    memcpy(best, work->key, count * sizeof(*best));
    for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
        bool upwards = sweep % 2 == 0;

        for (uint32_t step = 1; step < levels; step++) {
            uint32_t l = upwards ? step : levels - 1 - step;

            find_means(work, l, upwards, work->key, mean);
            sort_keys = mean;
            qsort(work->rows[l], work->row_count[l], sizeof(**work->rows), by_key);
            number_row(work, l);
        }
        if (row_cost(work) < least - 1e-9) {
            least = row_cost(work);
            memcpy(best, work->key, count * sizeof(*best));
        }
    }
    memcpy(work->key, best, count * sizeof(*best));
    sort_keys = work->key;
    for (uint32_t l = 0; l < levels; l++)
        qsort(work->rows[l], work->row_count[l], sizeof(**work->rows), by_key);
    free(best);
    free(mean);
}

/* Places hosts side by side, with a wider gap where the switch above changes. */
static double place_hosts(struct layers_work *work)
{
    struct by_layout *layout = work->layout;
    double *above = by_alloc(work->fabric->topology->node_count, sizeof(*above));
    double x = 0;

    find_means(work, 0, false, work->key, above);
    for (uint32_t i = 0; i < work->row_count[0]; i++) {
        uint32_t n = work->rows[0][i];

        if (i > 0) {
            uint32_t before = work->rows[0][i - 1];

            x += by_layout_half_room(work->fabric, layout, before) +
                 by_layout_half_room(work->fabric, layout, n) + (layout->detail == BY_DETAIL_FULL ? 22 : 6);
            if (fabs(above[before] - above[n]) > 1e-9)
                x += layout->detail == BY_DETAIL_FULL ? 26 : 12;
        }
        layout->places[n].x = x;
    }
    free(above);
    return x;
}

/*
 * Places each switch above the mean position of the nodes below it. Switches that would overlap are
 * moved apart: they form a block, centred on the mean of its members' preferred positions (pool
 * adjacent violators).
 */
static void place_row(struct layers_work *work, uint32_t level, double gap)
{
    const struct by_layout *layout = work->layout;
    struct by_spot *places = layout->places;
    uint32_t count = work->row_count[level], blocks = 0;
    const uint32_t *row = work->rows[level];
    double *mean = by_alloc(work->fabric->topology->node_count, sizeof(*mean));
    double *position = by_alloc(work->fabric->topology->node_count, sizeof(*position));
    double *offset = by_alloc(count, sizeof(*offset)), *start = by_alloc(count, sizeof(*start));
    uint32_t *first = by_alloc(count + 1, sizeof(*first));

    for (uint32_t n = 0; n < work->fabric->topology->node_count; n++)
        position[n] = places[n].x;
    find_means(work, level, true, position, mean);
    for (uint32_t i = 1; i < count; i++)
        offset[i] = offset[i - 1] + by_layout_half_room(work->fabric, layout, row[i - 1]) +
                    by_layout_half_room(work->fabric, layout, row[i]) + gap;
    for (uint32_t i = 0; i < count; i++) {
        first[blocks] = i;
        start[blocks] = mean[row[i]] - offset[i];
        blocks++;
        while (blocks > 1 && start[blocks - 1] < start[blocks - 2]) {
            uint32_t left = first[blocks - 1] - first[blocks - 2], right = i + 1 - first[blocks - 1];

            start[blocks - 2] = (start[blocks - 2] * left + start[blocks - 1] * right) / (left + right);
            blocks--;
        }
    }
    first[blocks] = count;
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = first[b]; i < first[b + 1]; i++)
            places[row[i]].x = start[b] + offset[i];
    free(first);
    free(start);
    free(offset);
    free(position);
    free(mean);
}

/* Whether links join nodes of one level; they are drawn as arcs upwards and need space there. */
static bool has_level_links(const struct layers_work *work, uint32_t level)
{
    const struct by_spot *places = work->layout->places;

    for (uint32_t c = 0; c < work->fabric->channel_count; c++)
        if (places[work->fabric->channels[c].a].level == level &&
            places[work->fabric->channels[c].b].level == level)
            return true;
    return false;
}

static void place_layers(struct layers_work *work)
{
    struct by_layout *layout = work->layout;
    double width = place_hosts(work), low = 0, high = 0, y = BY_LAYOUT_MARGIN + 24, rise;

    for (uint32_t l = 1; l < layout->level_count; l++) {
        uint32_t count = work->row_count[l];
        double gap = layout->detail == BY_DETAIL_FULL ? 34 : 14;

        if (l + 1 == layout->level_count && count > 1) /* the top row is spread over the whole width */
            gap = fmax(gap, fmin(160, width / count - 110));
        place_row(work, l, gap);
    }
    for (uint32_t n = 0; n < work->fabric->topology->node_count; n++) {
        low = fmin(low, layout->places[n].x - by_layout_half_room(work->fabric, layout, n));
        high = fmax(high, layout->places[n].x + by_layout_half_room(work->fabric, layout, n));
    }
    rise = fmax(150, fmin(300, (high - low) / (layout->level_count + 1)));
    layout->width = fmax(high - low + 2 * BY_LAYOUT_MARGIN, 320);
    for (uint32_t n = 0; n < work->fabric->topology->node_count; n++)
        layout->places[n].x += (layout->width - (high - low)) / 2 - low;
    for (uint32_t l = layout->level_count; l-- > 0;) {
        if (l + 1 == layout->level_count && has_level_links(work, l))
            y += 46;
        for (uint32_t i = 0; i < work->row_count[l]; i++)
            layout->places[work->rows[l][i]].y = y;
        y += l > 0 ? rise : 0;
    }
    layout->height = y + BY_LAYOUT_HOST_RADIUS + 34;
}

uint32_t *by_layout_levels(const struct by_fabric *fabric)
{
    uint32_t count = fabric->topology->node_count, *levels = by_alloc(count, sizeof(*levels));
    struct by_layout layout = {.places = by_alloc(count, sizeof(*layout.places))};
    struct layers_work work = {.fabric = fabric, .layout = &layout};

    find_distances(&work);
    raise_outer_switches(&work);
    for (uint32_t n = 0; n < count; n++)
        levels[n] = layout.places[n].level;
    free(layout.places);
    return levels;
}

void by_layout_layers(const struct by_fabric *fabric, struct by_layout *layout)
{
    struct layers_work work = {.fabric = fabric, .layout = layout};

    work.key = by_alloc(fabric->topology->node_count, sizeof(*work.key));
    find_distances(&work);
    raise_outer_switches(&work);
    fill_rows(&work);
    order_rows(&work);
    place_layers(&work);
    for (uint32_t l = 0; l < layout->level_count; l++)
        free(work.rows[l]);
    free(work.rows);
    free(work.row_count);
    free(work.key);
}
