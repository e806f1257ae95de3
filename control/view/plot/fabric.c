/* Merges cables into channels and adds up the load of a plan's trees. See fabric.h. */
#include "control/view/plot/fabric.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "offload/wire/types.h"

static int compare(const void *left, const void *right)
{
    const struct by_plot_channel *x = left, *y = right;

    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return x->b == y->b ? 0 : x->b < y->b ? -1 : 1;
}

static void merge_cables(struct by_fabric *fabric)
{
    const struct by_topology *topology = fabric->topology;
    struct by_plot_channel *all = by_alloc(topology->link_count, sizeof(*all));
    uint32_t count = 0;

    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct by_link *link = &topology->links[i];
        bool turned = link->a > link->b;

        all[i].a = turned ? link->b : link->a;
        all[i].b = turned ? link->a : link->b;
        all[i].cable_count = 1;
        if (link->arc_ab != UINT32_MAX)
            all[i].capacity[turned] = (double)topology->arcs[link->arc_ab].capacity / (double)topology->scale;
        if (link->arc_ba != UINT32_MAX)
            all[i].capacity[!turned] =
                (double)topology->arcs[link->arc_ba].capacity / (double)topology->scale;
    }
    qsort(all, topology->link_count, sizeof(*all), compare);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        if (count > 0 && compare(&all[count - 1], &all[i]) == 0) {
            all[count - 1].cable_count++;
            all[count - 1].capacity[0] += all[i].capacity[0];
            all[count - 1].capacity[1] += all[i].capacity[1];
        } else {
            all[count++] = all[i];
        }
    }
    fabric->channels = all;
    fabric->channel_count = count;
}

struct by_plot_channel *by_fabric_channel(const struct by_fabric *fabric, uint32_t from, uint32_t to,
                                          unsigned *direction)
{
    struct by_plot_channel key = {.a = from < to ? from : to, .b = from < to ? to : from};

    *direction = from < to ? 0 : 1;
    return bsearch(&key, fabric->channels, fabric->channel_count, sizeof(key), compare);
}

void by_fabric_flow(const struct by_fabric *fabric, const struct by_tree *tree, bool *down, bool *up)
{
    unsigned collective = fabric->plan->collective;

    *down = by_collective_way(collective) == BY_DATA_DOWN;
    *up = by_collective_way(collective) == BY_DATA_UP;
    if (!*down && !*up) {
        *down = tree->use != BY_TREE_UP;
        *up = tree->use != BY_TREE_DOWN;
    }
}

static void add_loads(struct by_fabric *fabric)
{
    for (uint32_t t = 0; t < fabric->plan->tree_count; t++) {
        const struct by_tree *tree = &fabric->plan->trees[t];
        double weight = by_fraction_value(tree->weight);
        bool down, up;

        by_fabric_flow(fabric, tree, &down, &up);
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            const struct by_path path = by_plan_edge(fabric->plan, tree, e);

            for (uint32_t i = 0; i + 1 < path.node_count; i++) {
                unsigned direction;
                struct by_plot_channel *channel =
                    by_fabric_channel(fabric, path.nodes[i], path.nodes[i + 1], &direction);

                if (channel == NULL)
                    continue; /* an invalid plan; `banyan verify` reports it */
                if (down)
                    channel->load[direction] += weight;
                if (up)
                    channel->load[!direction] += weight;
            }
        }
    }
}

static void choose_trees(struct by_fabric *fabric, int64_t root, uint32_t tree_max)
{
    const struct by_plan *plan = fabric->plan;
    bool owned = by_collective_is_sharded(plan->collective);

    fabric->root = root >= 0 ? root : owned && plan->tree_count > 0 ? (int64_t)plan->trees[0].root : -1;
    fabric->drawn = by_alloc(plan->tree_count, sizeof(*fabric->drawn));
    for (uint32_t t = 0; t < plan->tree_count; t++) {
        if (fabric->root >= 0 && plan->trees[t].root != fabric->root)
            continue;
        fabric->matching_count++;
        if (fabric->drawn_count < tree_max)
            fabric->drawn[fabric->drawn_count++] = t;
    }
}

/* Shades the smaller side. Idle nodes belong to no side. */
static void mark_cut(struct by_fabric *fabric)
{
    const struct by_plan *plan = fabric->plan;
    uint32_t n = fabric->topology->node_count, idle = 0;

    for (uint32_t i = 0; i < n; i++)
        idle += fabric->idle[i] = by_members_idle(fabric->topology, plan->member, i);
    for (uint32_t i = 0; i < plan->cut_count; i++)
        fabric->shaded[plan->cut[i]] = 1;
    fabric->shaded_receives = plan->cut_count > (n - idle) / 2;
    for (uint32_t i = 0; i < n && fabric->shaded_receives; i++)
        fabric->shaded[i] = !fabric->shaded[i] && !fabric->idle[i];
}

/*
 * Colours the parts that prove the bound, so that neighbouring parts differ if six colours suffice.
 */
static void mark_parts(struct by_fabric *fabric)
{
    const struct by_certificate *proof = fabric->plan->proof;

    if (proof == NULL || proof->kind != BY_CERTIFICATE_PARTS)
        return;
    fabric->part_count = proof->part_count;
    fabric->part = by_alloc(fabric->topology->node_count, sizeof(*fabric->part));
    fabric->part_color = by_alloc(proof->part_count, sizeof(*fabric->part_color));
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        fabric->part[n] = BY_FABRIC_NO_PART;
    for (uint32_t i = 0; i < proof->part_count; i++)
        for (uint32_t k = 0; k < proof->parts[i].node_count; k++)
            fabric->part[proof->parts[i].nodes[k]] = i;
    for (uint32_t i = 0; i < proof->part_count; i++) {
        uint32_t taken = 0;

        for (uint32_t c = 0; c < fabric->channel_count; c++) {
            uint32_t a = fabric->part[fabric->channels[c].a], b = fabric->part[fabric->channels[c].b];

            if (a != b && (a == i || b == i) && (a == i ? b : a) < i)
                taken |= 1u << fabric->part_color[a == i ? b : a];
        }
        fabric->part_color[i] = (uint8_t)(i % BY_PART_COLORS);
        for (uint32_t color = 0; color < BY_PART_COLORS && (taken >> fabric->part_color[i] & 1); color++)
            fabric->part_color[i] = (uint8_t)color;
    }
}

struct by_fabric *by_fabric_make(const struct by_topology *topology, const struct by_plan *plan, int64_t root,
                                 uint32_t tree_max)
{
    struct by_fabric *fabric = by_alloc(1, sizeof(*fabric));

    fabric->topology = topology;
    fabric->plan = plan;
    fabric->root = -1;
    fabric->idle = by_alloc(topology->node_count, sizeof(*fabric->idle));
    fabric->shaded = by_alloc(topology->node_count, sizeof(*fabric->shaded));
    merge_cables(fabric);
    if (plan != NULL) {
        add_loads(fabric);
        choose_trees(fabric, root, tree_max);
        mark_cut(fabric);
        mark_parts(fabric);
    }
    return fabric;
}

void by_fabric_free(struct by_fabric *fabric)
{
    if (fabric == NULL)
        return;
    free(fabric->channels);
    free(fabric->idle);
    free(fabric->shaded);
    free(fabric->part);
    free(fabric->part_color);
    free(fabric->drawn);
    free(fabric);
}

enum by_symbol by_fabric_symbol(const struct by_fabric *fabric, uint32_t node)
{
    const struct by_node *kind = &fabric->topology->nodes[node];

    if (kind->compute)
        return by_members_have(fabric->topology, fabric->plan ? fabric->plan->member : NULL, node)
                   ? BY_SYMBOL_HOST
                   : BY_SYMBOL_OUTSIDE;
    return kind->multicast || kind->aggregate ? BY_SYMBOL_CAPABLE : BY_SYMBOL_PLAIN;
}

const char *by_number_text(double value, char text[BY_NUMBER_TEXT_BYTES])
{
    snprintf(text, BY_NUMBER_TEXT_BYTES, "%.4g", value);
    return text;
}
