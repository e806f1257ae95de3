/* Tree packing: chooses the method, and manages the list of bundles. See pack.h. */
#include "control/planner/pack/pack.h"

#include "control/base/alloc.h"

uint32_t *by_pack_append(struct by_packing *packing, uint32_t root, int64_t count)
{
    size_t stride = packing->node_count - 1;

    if (packing->count == packing->room) {
        packing->room = packing->room ? packing->room * 2 : 8;
        packing->roots = by_realloc(packing->roots, packing->room, sizeof(*packing->roots));
        packing->counts = by_realloc(packing->counts, packing->room, sizeof(*packing->counts));
        packing->halves = by_realloc(packing->halves, packing->room * stride, sizeof(*packing->halves));
    }
    packing->roots[packing->count] = root;
    packing->counts[packing->count] = count;
    return packing->halves + packing->count++ * stride;
}

void by_pack_free(struct by_packing *packing)
{
    free(packing->roots);
    free(packing->counts);
    free(packing->halves);
    *packing = (struct by_packing){0};
}

int by_pack_run(const struct by_mesh *net, const int64_t *roots, double deadline, struct by_packing *packing)
{
    *packing = (struct by_packing){.node_count = net->node_count};
    if (net->node_count == 1) {
        if (roots[0] > 0)
            by_pack_append(packing, 0, roots[0]);
        return 0;
    }
    if (by_pack_relay(net, roots, packing) || by_pack_order(net, roots, deadline, packing))
        return 0;
    return by_pack_grow(net, roots, deadline, packing);
}
