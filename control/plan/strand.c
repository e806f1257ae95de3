/* Paths behind logical capacity. See strand.h. */
#include "control/plan/strand.h"

#include "control/topology/alloc.h"
#include "offload/base/assert.h"

static struct by_strand_list *list_of(const struct by_strands *strands, uint32_t from, uint32_t to)
{
    return &strands->lists[(size_t)from * strands->node_count + to];
}

/* Adds a strand and takes its nodes over. */
static void append(struct by_strand_list *list, struct by_strand strand)
{
    BY_GROW(list->strands, list->count, list->room);
    list->strands[list->count++] = strand;
}

struct by_strands *by_strands_new(uint32_t node_count, const int64_t *capacity)
{
    struct by_strands *strands = by_alloc(1, sizeof(*strands));

    strands->node_count = node_count;
    strands->lists = by_alloc((size_t)node_count * node_count, sizeof(*strands->lists));
    for (uint32_t from = 0; from < node_count; from++)
        for (uint32_t to = 0; to < node_count; to++) {
            uint32_t *nodes;

            if (!capacity[(size_t)from * node_count + to])
                continue;
            nodes = by_alloc(2, sizeof(*nodes));
            nodes[0] = from;
            nodes[1] = to;
            append(list_of(strands, from, to),
                   (struct by_strand){capacity[(size_t)from * node_count + to], 2, nodes});
        }
    return strands;
}

void by_strands_free(struct by_strands *strands)
{
    if (!strands)
        return;
    for (size_t i = 0; i < (size_t)strands->node_count * strands->node_count; i++) {
        for (uint32_t j = 0; j < strands->lists[i].count; j++)
            free(strands->lists[i].strands[j].nodes);
        free(strands->lists[i].strands);
    }
    free(strands->lists);
    free(strands);
}

const struct by_strand *by_strands_next(const struct by_strands *strands, uint32_t from, uint32_t to)
{
    const struct by_strand_list *list = list_of(strands, from, to);

    BY_ASSERT(list->count > 0);
    return &list->strands[list->count - 1];
}

void by_strands_take(struct by_strands *strands, uint32_t from, uint32_t to, int64_t amount)
{
    struct by_strand_list *list = list_of(strands, from, to);
    struct by_strand *strand;

    BY_ASSERT(list->count > 0);
    strand = &list->strands[list->count - 1];
    BY_ASSERT(strand->amount >= amount);
    strand->amount -= amount;
    if (strand->amount == 0) {
        free(strand->nodes);
        list->count--;
    }
}

void by_strands_join(struct by_strands *strands, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
    while (amount > 0) {
        const struct by_strand *head = by_strands_next(strands, u, w), *tail = by_strands_next(strands, w, t);
        int64_t part = head->amount < tail->amount ? head->amount : tail->amount;

        part = part < amount ? part : amount;
        if (u != t) {
            uint32_t length = head->length + tail->length - 1;
            uint32_t *nodes = by_alloc(length, sizeof(*nodes));

            memcpy(nodes, head->nodes, head->length * sizeof(*nodes));
            memcpy(nodes + head->length, tail->nodes + 1, (tail->length - 1) * sizeof(*nodes));
            append(list_of(strands, u, t), (struct by_strand){part, length, nodes});
        }
        by_strands_take(strands, u, w, part);
        by_strands_take(strands, w, t, part);
        amount -= part;
    }
}
