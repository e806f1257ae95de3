/* What all nodes of a tree support. See able.h. */
#include "control/tables/able.h"

#include "control/fabric/site.h"

/* Whether all nodes of some steps but the last, which leads to a node of the tree, run banyan as
 * switches. */
static bool way_marks(const struct by_topology *topology, const struct by_hop_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!by_site_is_switch(topology, steps[i].to))
            return false;
    return true;
}

/* Whether all queues between a tree's root and leaves are those of switches that run banyan. A host
 * receives no more than its buffers hold if it is the root or a leaf. */
static bool tree_marks(const struct by_topology *topology, const struct by_lowered_tree *tree)
{
    for (uint32_t i = 0; i < tree->hop_count; i++) {
        const struct by_hop *hop = &tree->hops[i];

        if (hop->child_count > 0 && hop->parent != BY_LOWER_NODE_NONE &&
            !by_site_is_switch(topology, hop->node))
            return false;
        if (!way_marks(topology, hop->down, hop->down_count) || !way_marks(topology, hop->up, hop->up_count))
            return false;
    }
    return true;
}

void by_lower_able(const struct by_lowering *lowering, struct by_lowered_tree *tree)
{
    tree->modes = (1u << BY_MODE_COUNT) - 2;
    if (tree_marks(lowering->topology, tree))
        tree->modes |= BY_LEAF_MARKS;
    tree->ops = BY_LOWER_OPS;
    tree->dtypes = BY_LOWER_DTYPES;
    for (uint32_t i = 0; i < tree->hop_count; i++) {
        const struct by_hop *hop = &tree->hops[i];
        const struct by_node *node = &lowering->topology->nodes[hop->node];

        if (hop->child_count == 0)
            continue;
        if (!by_lower_joins(tree, hop) &&
            by_lower_depth(lowering, tree, hop) < by_image_det_depth(hop->child_count))
            tree->modes &= (uint8_t) ~(1u << BY_MODE_DET);
        /*
         * Data that are only copied, and the roll call, are sent as bor of u8. Every node supports
         * these.
         */
        if (node->ops != 0)
            tree->ops &= (uint16_t)(node->ops | 1u << BY_OP_BOR);
        if (node->dtypes != 0)
            tree->dtypes &= (uint16_t)(node->dtypes | 1u << BY_DTYPE_U8);
    }
}

void by_lower_able_pair(struct by_lowered_tree *up, struct by_lowered_tree *down)
{
    up->modes = down->modes &= up->modes;
    up->ops = down->ops &= up->ops;
    up->dtypes = down->dtypes &= up->dtypes;
}
