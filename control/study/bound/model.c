/*
 * Variables and rows of the linear program. See model.h.
 *
 * For each use and compute node a there is a flow along the arcs that leave a and the arcs between
 * and behind switches. Switches conserve it. The amount that reaches compute node b is the capacity
 * from a to b for that use. All flows share an arc's capacity.
 *
 * On a symmetric fabric the trees up can be the trees down reversed, because the mean of a solution
 * and its mirror image is also a solution. Then only the flows down are variables, and each uses a
 * link equally in both directions.
 */
#include "control/study/bound/model.h"

#include "control/base/alloc.h"

static void make_arcs(struct by_model *model)
{
    const struct by_mesh *net = model->graph->net;
    uint32_t *arc_of = by_alloc(2 * (size_t)net->pair_count, sizeof(*arc_of));

    model->arcs = by_alloc(2 * (size_t)net->pair_count, sizeof(*model->arcs));
    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        bool there = net->capacity[half] > 0, merged = model->mirrored && half % 2 == 1;
        struct by_model_arc *arc = &model->arcs[model->arc_count];

        arc_of[half] = UINT32_MAX;
        if (!there)
            continue;
        arc->from = net->tail[half];
        arc->to = by_mesh_head(net, half);
        arc->capacity = net->capacity[half];
        arc->reverse = UINT32_MAX;
        if (half % 2 == 1 && arc_of[half ^ 1] != UINT32_MAX) {
            arc->reverse = arc_of[half ^ 1];
            model->arcs[arc->reverse].reverse = model->arc_count;
        }
        arc->row =
            merged ? model->arcs[arc->reverse].row : by_lp_row(model->lp, BY_LP_AT_MOST, arc->capacity, 1);
        arc_of[half] = model->arc_count++;
    }
    free(arc_of);
}

/* Marks the switches that data of `node` can reach. */
static void find_reach(const struct by_model *model, uint32_t node, bool *reached)
{
    bool more = true;

    memset(reached, 0, model->graph->node_count * sizeof(*reached));
    reached[node] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < model->arc_count; i++) {
            const struct by_model_arc *arc = &model->arcs[i];

            if (!reached[arc->from] || reached[arc->to] || model->number[arc->to] != UINT32_MAX)
                continue;
            reached[arc->to] = more = true;
        }
    }
}

/* Adds the flow of one compute node for one use. */
static void make_flow(struct by_model *model, enum by_program_use use, uint32_t source, bool *reached)
{
    uint32_t n = model->graph->node_count, *kept = by_alloc(n, sizeof(*kept));

    find_reach(model, model->node[source], reached);
    for (uint32_t i = 0; i < n; i++)
        kept[i] =
            reached[i] && i != model->node[source] ? by_lp_row(model->lp, BY_LP_EQUAL, 0, 1) : UINT32_MAX;
    for (uint32_t i = 0; i < model->arc_count; i++) {
        const struct by_model_arc *arc = &model->arcs[i];
        struct by_model_share *share;

        if (!reached[arc->from] || arc->to == model->node[source])
            continue;
        BY_GROW(model->shares, model->share_count, model->share_room);
        share = &model->shares[model->share_count++];
        *share = (struct by_model_share){use, source, i, by_lp_column(model->lp, 0, 1)};
        by_lp_add(model->lp, arc->row, share->column, 1, 1);
        if (kept[arc->from] != UINT32_MAX)
            by_lp_add(model->lp, kept[arc->from], share->column, -1, 1);
        if (kept[arc->to] != UINT32_MAX)
            by_lp_add(model->lp, kept[arc->to], share->column, 1, 1);
    }
    free(kept);
}

struct by_model *by_model_new(const struct by_graph *graph)
{
    struct by_model *model = by_alloc(1, sizeof(*model));
    uint32_t n = graph->node_count;
    bool *reached = by_alloc(n, sizeof(*reached));

    model->graph = graph;
    model->lp = by_lp_new();
    model->mirrored = by_graph_is_symmetric(graph);
    model->node = by_alloc(n, sizeof(*model->node));
    model->number = by_alloc(n, sizeof(*model->number));
    model->root = by_alloc(n, sizeof(*model->root));
    for (uint32_t i = 0; i < n; i++) {
        model->number[i] = graph->compute[i] ? model->compute_count : UINT32_MAX;
        if (!graph->compute[i])
            continue;
        model->root[model->compute_count] = by_lp_column(model->lp, 1, 1);
        model->node[model->compute_count++] = i;
    }
    make_arcs(model);
    for (uint32_t use = 0; use < (model->mirrored ? 1 : BY_PROGRAM_USES); use++)
        for (uint32_t i = 0; i < model->compute_count; i++)
            make_flow(model, (enum by_program_use)use, i, reached);
    free(reached);
    return model;
}

void by_model_free(struct by_model *model)
{
    if (!model)
        return;
    by_lp_free(model->lp);
    free(model->node);
    free(model->number);
    free(model->root);
    free(model->arcs);
    free(model->shares);
    for (uint32_t i = 0; i < model->cut_count; i++)
        free(model->cuts[i]);
    free(model->cuts);
    free(model);
}

/*
 * Every tree down enters each set that does not contain its root; every tree up leaves it. So the
 * capacity across the cut is at least the number of trees that start outside.
 */
bool by_model_cut(struct by_model *model, enum by_program_use use, const bool *inside)
{
    size_t n = model->compute_count;
    uint32_t row;
    bool *cut;

    for (uint32_t i = 0; i < model->cut_count; i++)
        if (model->cuts[i][n] == (use == BY_PROGRAM_UP) &&
            memcmp(model->cuts[i], inside, n * sizeof(*inside)) == 0)
            return false;
    BY_GROW(model->cuts, model->cut_count, model->cut_room);
    cut = model->cuts[model->cut_count++] = by_alloc(n + 1, sizeof(*cut));
    memcpy(cut, inside, n * sizeof(*cut));
    cut[n] = use == BY_PROGRAM_UP;
    row = by_lp_row(model->lp, BY_LP_AT_LEAST, 0, 1);
    for (uint32_t i = 0; i < n; i++)
        if (!inside[i])
            by_lp_add(model->lp, row, model->root[i], -1, 1);
    for (uint32_t i = 0; i < model->share_count; i++) {
        const struct by_model_share *share = &model->shares[i];
        uint32_t to = model->number[model->arcs[share->arc].to];

        if (share->use == use && to != UINT32_MAX && inside[to] != inside[share->source] &&
            inside[to] == (use == BY_PROGRAM_DOWN))
            by_lp_add(model->lp, row, share->column, 1, 1);
    }
    return true;
}
