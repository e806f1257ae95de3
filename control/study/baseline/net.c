/* Routing for baselines. See net.h. */
#include "control/study/baseline/net.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

static int compare_arcs(const void *left, const void *right)
{
    const struct by_net_arc *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static void merge_arcs(struct by_baseline_net *net)
{
    uint32_t kept = 0;

    if (net->arc_count > 1)
        qsort(net->arcs, net->arc_count, sizeof(*net->arcs), compare_arcs);
    for (uint32_t i = 0; i < net->arc_count; i++) {
        if (kept > 0 && compare_arcs(&net->arcs[kept - 1], &net->arcs[i]) == 0)
            net->arcs[kept - 1].capacity += net->arcs[i].capacity;
        else
            net->arcs[kept++] = net->arcs[i];
    }
    net->arc_count = kept;
    for (uint32_t i = 0; i < kept; i++)
        net->first[net->arcs[i].from + 1]++;
    for (uint32_t i = 0; i < net->node_count; i++)
        net->first[i + 1] += net->first[i];
}

static bool is_symmetric(const struct by_baseline_net *net)
{
    for (uint32_t i = 0; i < net->arc_count; i++) {
        uint32_t back = by_net_arc(net, net->arcs[i].to, net->arcs[i].from);

        if (back == BY_NET_NO_ARC || net->arcs[back].capacity != net->arcs[i].capacity)
            return false;
    }
    return true;
}

struct by_baseline_net *by_net_new(const struct by_topology *topology, bool transposed)
{
    struct by_baseline_net *net = by_alloc(1, sizeof(*net));
    uint32_t n = topology->node_count;

    net->topology = topology;
    net->node_count = n;
    net->compute = by_alloc(n, sizeof(*net->compute));
    for (uint32_t i = 0; i < n; i++)
        if (topology->nodes[i].compute)
            net->compute[net->compute_count++] = i;
    net->arcs = by_alloc(topology->arc_count, sizeof(*net->arcs));
    net->first = by_alloc((size_t)n + 1, sizeof(*net->first));
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];

        net->arcs[net->arc_count++] = (struct by_net_arc){.from = transposed ? arc->to : arc->from,
                                                          .to = transposed ? arc->from : arc->to,
                                                          .capacity = arc->capacity};
    }
    merge_arcs(net);
    for (uint32_t i = 0; i < net->arc_count; i++)
        net->arcs[i].left = net->arcs[i].capacity;
    net->symmetric = is_symmetric(net);
    net->hops = by_alloc(n, sizeof(*net->hops));
    net->queue = by_alloc(n, sizeof(*net->queue));
    net->via = by_alloc(n, sizeof(*net->via));
    net->width = by_alloc(n, sizeof(*net->width));
    return net;
}

void by_net_free(struct by_baseline_net *net)
{
    if (!net)
        return;
    free(net->compute);
    free(net->arcs);
    free(net->first);
    free(net->hops);
    free(net->queue);
    free(net->via);
    free(net->width);
    free(net);
}

uint32_t by_net_arc(const struct by_baseline_net *net, uint32_t from, uint32_t to)
{
    uint32_t low = net->first[from], high = net->first[from + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (net->arcs[middle].to < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low < net->first[from + 1] && net->arcs[low].to == to ? low : BY_NET_NO_ARC;
}

void by_net_clear(struct by_baseline_net *net)
{
    for (uint32_t i = 0; i < net->arc_count; i++)
        net->arcs[i].load = 0;
}

/*
 * Breadth-first search from `from`, with `relays` also through compute nodes. Fills hops and the
 * queue, and returns the number of nodes reached. With `left`, it uses only arcs with remaining
 * capacity.
 */
static uint32_t search(struct by_baseline_net *net, uint32_t from, bool relays, bool left)
{
    uint32_t head = 0, tail = 0;

    memset(net->hops, 0xff, net->node_count * sizeof(*net->hops));
    net->hops[from] = 0;
    net->queue[tail++] = from;
    while (head < tail) {
        uint32_t node = net->queue[head++];

        if (node != from && net->topology->nodes[node].compute && !relays)
            continue;
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t to = net->arcs[i].to;

            if (net->hops[to] != UINT32_MAX || (left && net->arcs[i].left <= 0))
                continue;
            net->hops[to] = net->hops[node] + 1;
            net->queue[tail++] = to;
        }
    }
    return tail;
}

/* Whether a search may continue through `node`. */
static bool passes(const struct by_baseline_net *net, uint32_t from, uint32_t node, bool relays)
{
    return node == from || relays || !net->topology->nodes[node].compute;
}

/* Finds the widest of the shortest paths to every node reached. */
static void find_widths(struct by_baseline_net *net, uint32_t from, uint32_t reached, bool relays, bool left)
{
    for (uint32_t i = 0; i < reached; i++)
        net->width[net->queue[i]] = 0;
    net->width[from] = INT64_MAX;
    for (uint32_t i = 0; i < reached; i++) {
        uint32_t node = net->queue[i];

        if (!passes(net, from, node, relays))
            continue;
        for (uint32_t a = net->first[node]; a < net->first[node + 1]; a++) {
            const struct by_net_arc *arc = &net->arcs[a];
            int64_t capacity = left ? arc->left : arc->capacity;
            int64_t width = capacity < net->width[node] ? capacity : net->width[node];

            if (net->hops[arc->to] == net->hops[node] + 1 && width > net->width[arc->to])
                net->width[arc->to] = width;
        }
    }
}

void by_net_reach(struct by_baseline_net *net, uint32_t from)
{
    find_widths(net, from, search(net, from, false, true), false, true);
}

/* Whether load `a` on capacity `first` is relatively less than load `b` on capacity `second`. */
static bool is_lighter(int64_t a, int64_t first, int64_t b, int64_t second)
{
    return (__int128)a * second < (__int128)b * first;
}

/*
 * Among the shortest paths whose arcs are all at least `width` wide, finds the one with the lowest
 * maximum load. Fills via.
 */
static void find_lightest(struct by_baseline_net *net, uint32_t from, uint32_t reached, bool relays,
                          bool left, int64_t width, int64_t units)
{
    uint32_t *worst = by_alloc(net->node_count, sizeof(*worst)); /* by node: maximum load on the path to it */

    for (uint32_t i = 0; i < reached; i++)
        net->via[net->queue[i]] = worst[net->queue[i]] = BY_NET_NO_ARC;
    for (uint32_t i = 0; i < reached; i++) {
        uint32_t node = net->queue[i];

        if (!passes(net, from, node, relays) || (node != from && net->via[node] == BY_NET_NO_ARC))
            continue;
        for (uint32_t a = net->first[node]; a < net->first[node + 1]; a++) {
            const struct by_net_arc *arc = &net->arcs[a], *before, *there;
            uint32_t heaviest = a;

            if (net->hops[arc->to] != net->hops[node] + 1 || (left ? arc->left : arc->capacity) < width)
                continue;
            before = worst[node] == BY_NET_NO_ARC ? NULL : &net->arcs[worst[node]];
            if (before &&
                is_lighter(arc->load + units, arc->capacity, before->load + units, before->capacity))
                heaviest = worst[node];
            there = worst[arc->to] == BY_NET_NO_ARC ? NULL : &net->arcs[worst[arc->to]];
            if (there && !is_lighter(net->arcs[heaviest].load + units, net->arcs[heaviest].capacity,
                                     there->load + units, there->capacity))
                continue;
            worst[arc->to] = heaviest;
            net->via[arc->to] = a;
        }
    }
    free(worst);
}

uint32_t by_net_route(struct by_baseline_net *net, uint32_t from, uint32_t to, int64_t units, bool left,
                      uint32_t *nodes)
{
    bool relays = false;
    uint32_t reached = search(net, from, false, left), count;

    if (net->hops[to] == UINT32_MAX && left)
        return 0;
    if (net->hops[to] == UINT32_MAX) {
        relays = true;
        reached = search(net, from, true, false);
        if (net->hops[to] == UINT32_MAX)
            return 0;
    }
    find_widths(net, from, reached, relays, left);
    find_lightest(net, from, reached, relays, left, net->width[to], units);
    count = net->hops[to] + 1;
    for (uint32_t i = count - 1, node = to;; i--) {
        nodes[i] = node;
        if (i == 0)
            break;
        BY_ASSERT(net->via[node] != BY_NET_NO_ARC);
        net->arcs[net->via[node]].load += units;
        node = net->arcs[net->via[node]].from;
    }
    return count;
}
