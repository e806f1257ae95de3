/*
 * Finds boxes: groups of compute nodes with much more bandwidth inside than to the outside. The
 * code builds a spanning tree of the widest links. Boxes end at the largest drop in the widths at
 * which groups of compute nodes join. See baseline.h.
 */
#include "control/base/alloc.h"
#include "control/study/baseline/baseline.h"

static uint32_t find(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static int wider_first(const void *left, const void *right)
{
    const struct by_net_arc *a = left, *b = right;

    if (a->capacity != b->capacity)
        return a->capacity > b->capacity ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/*
 * Joins nodes by arcs wider than `floor`; writes the widths at which two groups with compute nodes
 * joined.
 */
static uint32_t join(const struct by_baseline_net *net, const struct by_net_arc *arcs, int64_t floor,
                     uint32_t *parent, int64_t *met)
{
    uint32_t count = 0;
    bool *has_compute = by_alloc(net->node_count, sizeof(*has_compute));

    for (uint32_t i = 0; i < net->node_count; i++) {
        parent[i] = i;
        has_compute[i] = net->topology->nodes[i].compute;
    }
    for (uint32_t i = 0; i < net->arc_count && arcs[i].capacity > floor; i++) {
        uint32_t a = find(parent, arcs[i].from), b = find(parent, arcs[i].to);

        if (a == b)
            continue;
        if (has_compute[a] && has_compute[b] && met)
            met[count++] = arcs[i].capacity;
        parent[a] = b;
        has_compute[b] |= has_compute[a];
    }
    free(has_compute);
    return count;
}

/*
 * Returns the width below which boxes end: the lower side of the largest drop, if that is at least
 * a factor of two; else 0.
 */
static int64_t find_floor(const int64_t *met, uint32_t count)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < count; i++) {
        if (met[i - 1] / 2 < met[i])
            continue;
        if (best == 0 || (__int128)met[i - 1] * met[best] > (__int128)met[best - 1] * met[i])
            best = i;
    }
    return best > 0 ? met[best] : 0;
}

void by_boxes_find(const struct by_baseline_net *net, struct by_boxes *boxes)
{
    struct by_net_arc *arcs = by_alloc(net->arc_count, sizeof(*arcs));
    uint32_t *parent = by_alloc(net->node_count, sizeof(*parent));
    uint32_t *number = by_alloc(net->node_count, sizeof(*number));
    int64_t *met = by_alloc(net->node_count, sizeof(*met));

    *boxes = (struct by_boxes){.box_of = by_alloc(net->compute_count, sizeof(*boxes->box_of))};
    memcpy(arcs, net->arcs, net->arc_count * sizeof(*arcs));
    if (net->arc_count > 1)
        qsort(arcs, net->arc_count, sizeof(*arcs), wider_first);
    boxes->floor = find_floor(met, join(net, arcs, 0, parent, met));
    if (boxes->floor > 0) {
        join(net, arcs, boxes->floor, parent, NULL);
        memset(number, 0xff, net->node_count * sizeof(*number));
        for (uint32_t i = 0; i < net->compute_count; i++) {
            uint32_t group = find(parent, net->compute[i]);

            if (number[group] == UINT32_MAX)
                number[group] = boxes->count++;
            boxes->box_of[i] = number[group];
        }
    } else {
        for (; boxes->count < net->compute_count; boxes->count++)
            boxes->box_of[boxes->count] = boxes->count;
    }
    free(arcs);
    free(parent);
    free(number);
    free(met);
}

void by_boxes_free(struct by_boxes *boxes)
{
    free(boxes->box_of);
    boxes->box_of = NULL;
}
