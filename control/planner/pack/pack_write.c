/* Turns the decisions of all nodes into bundles, and into a table of trees and back. See
 * pack_order.h. */
#include "control/base/alloc.h"
#include "control/planner/pack/pack_order.h"
#include "offload/base/assert.h"

/* ---- decisions to bundles ---- */

struct pack_write_writer {
    struct by_orders *orders;
    uint32_t *half;                     /* by node, of the current bundle */
    uint32_t *main;                     /* [class % TILE * node_count + node], of TILE classes */
    uint32_t *first_child, *next_child; /* by node: children + 1, 0 ends */
    uint32_t *queue;
    int64_t *cuts;
    uint32_t cut_count, cut_room;
};

/* Classes whose decisions are read at a time: 64 bytes of a node. */
#define TILE 16u

/* Writes the tree that `half` describes, breadth first. */
static void write_bundle(struct pack_write_writer *writer, uint32_t root, int64_t count,
                         struct by_packing *packing)
{
    const struct by_mesh *net = writer->orders->net;
    uint32_t n = net->node_count, head = 0, tail = 0, *halves = by_pack_append(packing, root, count);

    memset(writer->first_child, 0, n * sizeof(*writer->first_child));
    for (uint32_t i = n; i-- > 0;)
        if (i != root) {
            uint32_t parent = net->tail[writer->half[i]];

            writer->next_child[i] = writer->first_child[parent];
            writer->first_child[parent] = i + 1;
        }
    writer->queue[tail++] = root;
    while (head < tail)
        for (uint32_t child = writer->first_child[writer->queue[head++]]; child;
             child = writer->next_child[child - 1]) {
            halves[tail - 1] = writer->half[child - 1];
            writer->queue[tail++] = child - 1;
        }
    BY_ASSERT(tail == n);
}

static int compare_cuts(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Finds the tree numbers at which the trees of a class change their link at some node. At a node,
 * the extras serve consecutive trees from number 0 on, and the main part serves the rest. */
static void find_cuts(struct pack_write_writer *writer, uint32_t class, int64_t *used)
{
    const struct by_orders *orders = writer->orders;

    writer->cut_count = 0;
    for (uint32_t e = orders->first_extra[class]; e != UINT32_MAX; e = orders->extras[e].next) {
        used[orders->extras[e].node] += orders->extras[e].amount;
        BY_GROW(writer->cuts, writer->cut_count, writer->cut_room);
        writer->cuts[writer->cut_count++] = used[orders->extras[e].node];
    }
    for (uint32_t e = orders->first_extra[class]; e != UINT32_MAX; e = orders->extras[e].next)
        used[orders->extras[e].node] = 0;
    if (writer->cut_count > 1)
        qsort(writer->cuts, writer->cut_count, sizeof(*writer->cuts), compare_cuts);
}

static void write_class(struct pack_write_writer *writer, uint32_t class, int64_t *used,
                        struct by_packing *packing)
{
    const struct by_orders *orders = writer->orders;
    uint32_t n = orders->net->node_count, root = orders->class_node[class];
    int64_t begin = 0, all = orders->roots[root];

    find_cuts(writer, class, used);
    for (uint32_t i = 0; i <= writer->cut_count; i++) {
        int64_t end = i < writer->cut_count ? writer->cuts[i] : all;

        if (end == begin)
            continue;
        memcpy(writer->half, writer->main + (size_t)(class % TILE) * n, n * sizeof(*writer->half));
        for (uint32_t e = orders->first_extra[class]; e != UINT32_MAX; e = orders->extras[e].next) {
            const struct by_order_extra *extra = &orders->extras[e];

            if (used[extra->node] <= begin && begin < used[extra->node] + extra->amount)
                writer->half[extra->node] = extra->half;
            used[extra->node] += extra->amount;
        }
        for (uint32_t e = orders->first_extra[class]; e != UINT32_MAX; e = orders->extras[e].next)
            used[orders->extras[e].node] = 0;
        write_bundle(writer, root, end - begin, packing);
        begin = end;
    }
}

static void writer_make(struct pack_write_writer *writer, struct by_orders *orders)
{
    uint32_t n = orders->net->node_count;

    *writer = (struct pack_write_writer){.orders = orders};
    writer->half = by_alloc(n, sizeof(*writer->half));
    writer->first_child = by_alloc(n, sizeof(*writer->first_child));
    writer->next_child = by_alloc(n, sizeof(*writer->next_child));
    writer->queue = by_alloc(n, sizeof(*writer->queue));
    writer->main = by_alloc((size_t)n * TILE, sizeof(*writer->main));
}

static void writer_free(struct pack_write_writer *writer)
{
    free(writer->half);
    free(writer->main);
    free(writer->first_child);
    free(writer->next_child);
    free(writer->queue);
    free(writer->cuts);
}

/* Reads the decisions of TILE classes from `first` on. */
static void read_main(struct pack_write_writer *writer, uint32_t first)
{
    const struct by_orders *orders = writer->orders;
    uint32_t n = orders->net->node_count, classes = orders->class_count;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = first; c < classes && c < first + TILE; c++)
            writer->main[(size_t)(c % TILE) * n + i] = orders->main[(size_t)i * classes + c];
}

void by_order_write(struct by_orders *orders, struct by_packing *packing)
{
    int64_t *used = by_alloc(orders->net->node_count, sizeof(*used));
    struct pack_write_writer writer;

    writer_make(&writer, orders);
    for (uint32_t c = 0; c < orders->class_count; c++) {
        if (c % TILE == 0)
            read_main(&writer, c);
        write_class(&writer, c, used, packing);
    }
    writer_free(&writer);
    free(used);
}

/* ---- tree by tree ---- */

/* Writes the trees as a table, class by class. At a node, the extras serve the first trees of a
 * class, and the main part serves the rest. */
void by_order_units(const struct by_orders *orders, struct by_units *units)
{
    uint32_t n = orders->net->node_count, first = 0;
    uint32_t *used = by_alloc(n, sizeof(*used));

    units->net = orders->net;
    units->root = by_alloc(units->count, sizeof(*units->root));
    units->parent = by_alloc((size_t)n * units->count, sizeof(*units->parent));
    for (uint32_t c = 0; c < orders->class_count; c++) {
        uint32_t root = orders->class_node[c], count = (uint32_t)orders->roots[root];

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t t = 0; t < count; t++)
                units->parent[(size_t)i * units->count + first + t] =
                    orders->main[(size_t)i * orders->class_count + c];
        for (uint32_t t = 0; t < count; t++) {
            units->root[first + t] = root;
            units->parent[(size_t)root * units->count + first + t] = BY_UNIT_MISSING;
        }
        for (uint32_t e = orders->first_extra[c]; e != UINT32_MAX; e = orders->extras[e].next) {
            const struct by_order_extra *extra = &orders->extras[e];

            for (int64_t t = 0; t < extra->amount; t++)
                units->parent[(size_t)extra->node * units->count + first + used[extra->node]++] = extra->half;
        }
        for (uint32_t e = orders->first_extra[c]; e != UINT32_MAX; e = orders->extras[e].next)
            used[orders->extras[e].node] = 0;
        first += count;
    }
    free(used);
}

/* Whether two consecutive trees are the same. */
static bool are_equal(const struct by_units *units, uint32_t tree)
{
    if (units->root[tree] != units->root[tree + 1])
        return false;
    for (uint32_t i = 0; i < units->net->node_count; i++)
        if (units->parent[(size_t)i * units->count + tree] !=
            units->parent[(size_t)i * units->count + tree + 1])
            return false;
    return true;
}

void by_order_write_units(struct by_orders *orders, const struct by_units *units, struct by_packing *packing)
{
    uint32_t n = orders->net->node_count;
    struct pack_write_writer writer;
    int64_t equal = 1;

    writer_make(&writer, orders);
    for (uint32_t t = 0; t < units->count; t++, equal++) {
        if (t + 1 < units->count && are_equal(units, t))
            continue;
        for (uint32_t i = 0; i < n; i++)
            writer.half[i] = units->parent[(size_t)i * units->count + t];
        write_bundle(&writer, units->root[t], equal, packing);
        equal = 0;
    }
    writer_free(&writer);
}
