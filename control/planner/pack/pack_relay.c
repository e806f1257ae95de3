/* Packs trees of height two on links between all nodes, as relay.h describes them. See pack.h. */
#include "control/base/alloc.h"
#include "control/planner/pack/pack.h"
#include "control/planner/split/relay.h"

/* Whether the links, whose halves + 1 are at [from * n + to], 0 for none, have the capacity. */
static bool fits(const struct by_mesh *net, const uint32_t *halves, const int64_t *load)
{
    size_t n = net->node_count;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (load[i * n + j] > (halves[i * n + j] ? net->capacity[halves[i * n + j] - 1] : 0))
                return false;
    return true;
}

/* Writes `count` trees of `root`, which sends to all others. */
static void write_star(const uint32_t *halves, uint32_t n, uint32_t root, int64_t count,
                       struct by_packing *packing)
{
    uint32_t *to = by_pack_append(packing, root, count);

    for (uint32_t j = 0; j < n; j++)
        if (j != root)
            *to++ = halves[(size_t)root * n + j] - 1;
}

/* Writes `count` trees whose relay sends to `sends` nodes. */
static void write_relay(const uint32_t *halves, uint32_t n, const struct by_split_relay *relay,
                        uint32_t sends, int64_t count, struct by_packing *packing)
{
    uint32_t *to = by_pack_append(packing, relay->from, count), node = relay->through;

    *to++ = halves[(size_t)relay->from * n + node] - 1;
    for (uint32_t sent = 0; sent < n - 2; sent++) {
        node = by_split_relay_next(relay, node, n);
        *to++ = halves[(size_t)(sent < sends ? relay->through : relay->from) * n + node] - 1;
    }
}

bool by_pack_relay(const struct by_mesh *net, const int64_t *roots, struct by_packing *packing)
{
    size_t n = net->node_count;
    uint32_t *halves;
    int64_t *load, *out, *in, *left;
    struct by_split_relay_list list;
    bool found;

    if (net->pair_count < n * (n - 1) / 4)
        return false; /* most nodes with trees are joined to all others */
    halves = by_alloc(n * n, sizeof(*halves));
    load = by_alloc(n * n, sizeof(*load));
    out = by_alloc(n, sizeof(*out));
    in = by_alloc(n, sizeof(*in));
    left = by_alloc(n, sizeof(*left));
    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        out[net->tail[half]] += net->capacity[half];
        in[by_mesh_head(net, half)] += net->capacity[half];
        halves[net->tail[half] * n + by_mesh_head(net, half)] = half + 1;
    }
    found = by_split_relay_find(net->node_count, roots, out, in, &list);
    if (found) {
        by_split_relay_load(net->node_count, roots, &list, load);
        found = fits(net, halves, load);
        memcpy(left, roots, n * sizeof(*left));
        for (uint32_t r = 0; r < list.count && found; r++) {
            const struct by_split_relay *relay = &list.relays[r];

            if (relay->amount > 0)
                write_relay(halves, net->node_count, relay, net->node_count - 2, relay->amount, packing);
            if (relay->rest > 0)
                write_relay(halves, net->node_count, relay, relay->rest, 1, packing);
            left[relay->from] -= relay->amount + (relay->rest > 0);
        }
        for (uint32_t i = 0; i < n && found; i++)
            if (left[i] > 0)
                write_star(halves, net->node_count, i, left[i], packing);
        free(list.relays);
    }
    free(halves);
    free(load);
    free(out);
    free(in);
    free(left);
    return found;
}
