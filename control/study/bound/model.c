/*
 * Variables and rows of the linear program. See model.h.
 *
 * For each use and site a there is a flow along the arcs that leave a and the arcs between and
 * behind switches that are no sites. These switches conserve it. The amount that reaches site b is
 * the capacity from a to b for that use. All flows share an arc's capacity.
 *
 * On a symmetric fabric whose sites are the same for both uses the trees up can be the trees down
 * reversed, because the mean of a solution and its mirror image is also a solution. Then only the
 * flows down are variables, and each uses a link equally in both directions.
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
static void find_reach(const struct by_model *model, const struct by_model_sites *sites, uint32_t node,
                       bool *reached)
{
    bool more = true;

    memset(reached, 0, model->graph->node_count * sizeof(*reached));
    reached[node] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < model->arc_count; i++) {
            const struct by_model_arc *arc = &model->arcs[i];

            if (!reached[arc->from] || reached[arc->to] || sites->number[arc->to] != UINT32_MAX)
                continue;
            reached[arc->to] = more = true;
        }
    }
}

/* Adds the flow of one site for one use. */
static void make_flow(struct by_model *model, enum by_program_use use, uint32_t source, bool *reached)
{
    const struct by_model_sites *sites = &model->sites[use];
    uint32_t n = model->graph->node_count, *kept = by_alloc(n, sizeof(*kept));

    find_reach(model, sites, sites->node[source], reached);
    for (uint32_t i = 0; i < n; i++)
        kept[i] =
            reached[i] && i != sites->node[source] ? by_lp_row(model->lp, BY_LP_EQUAL, 0, 1) : UINT32_MAX;
    for (uint32_t i = 0; i < model->arc_count; i++) {
        const struct by_model_arc *arc = &model->arcs[i];
        struct by_model_share *share;

        if (!reached[arc->from] || arc->to == sites->node[source])
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

static void make_sites(struct by_model *model, const struct by_graph *graph, struct by_model_sites *sites)
{
    uint32_t n = model->graph->node_count;

    sites->node = by_alloc(n, sizeof(*sites->node));
    sites->number = by_alloc(n, sizeof(*sites->number));
    for (uint32_t i = 0; i < n; i++) {
        bool is_site = graph->compute[i] || graph->branch[i];

        sites->number[i] = is_site ? sites->count : UINT32_MAX;
        if (is_site)
            sites->node[sites->count++] = i;
    }
}

/* Whether the solution for trees down, reversed, is one for trees up. */
static bool is_mirrored(const struct by_program_graphs *graphs)
{
    for (uint32_t i = 0; i < graphs->both->node_count; i++)
        if (graphs->up->branch[i] != graphs->down->branch[i])
            return false;
    return by_graph_is_symmetric(graphs->both);
}

struct by_model *by_model_new(const struct by_program_graphs *graphs)
{
    struct by_model *model = by_alloc(1, sizeof(*model));
    uint32_t n = graphs->both->node_count;
    bool *reached = by_alloc(n, sizeof(*reached));

    model->graph = graphs->both;
    model->lp = by_lp_new();
    model->mirrored = is_mirrored(graphs);
    model->roots = by_alloc(n, sizeof(*model->roots));
    make_sites(model, graphs->down, &model->sites[BY_PROGRAM_DOWN]);
    make_sites(model, graphs->up, &model->sites[BY_PROGRAM_UP]);
    for (uint32_t i = 0; i < n; i++)
        if (model->sites[BY_PROGRAM_DOWN].number[i] != UINT32_MAX &&
            model->sites[BY_PROGRAM_UP].number[i] != UINT32_MAX)
            model->roots[model->root_count++] = (struct by_model_root){i, by_lp_column(model->lp, 1, 1)};
    make_arcs(model);
    for (uint32_t use = 0; use < (model->mirrored ? 1 : BY_PROGRAM_USES); use++)
        for (uint32_t i = 0; i < model->sites[use].count; i++)
            make_flow(model, (enum by_program_use)use, i, reached);
    free(reached);
    return model;
}

void by_model_free(struct by_model *model)
{
    if (!model)
        return;
    by_lp_free(model->lp);
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++) {
        free(model->sites[use].node);
        free(model->sites[use].number);
    }
    free(model->roots);
    free(model->arcs);
    free(model->shares);
    for (uint32_t i = 0; i < model->cut_count; i++)
        free(model->cuts[i].inside);
    free(model->cuts);
    free(model);
}

/*
 * Every tree down enters each set that does not contain its root; every tree up leaves it. So the
 * capacity across the cut is at least the number of trees that start outside.
 */
bool by_model_cut(struct by_model *model, enum by_program_use use, const bool *inside)
{
    const struct by_model_sites *sites = &model->sites[use];
    struct by_model_cut *cut;
    bool outside = false, compute = false;

    for (uint32_t i = 0; i < model->root_count; i++)
        outside |= !inside[sites->number[model->roots[i].node]];
    for (uint32_t i = 0; i < sites->count; i++)
        compute |= inside[i] && model->graph->compute[sites->node[i]];
    if (!outside || !compute)
        return false;
    for (uint32_t i = 0; i < model->cut_count; i++)
        if (model->cuts[i].use == use &&
            memcmp(model->cuts[i].inside, inside, sites->count * sizeof(*inside)) == 0)
            return false;
    BY_GROW(model->cuts, model->cut_count, model->cut_room);
    cut = &model->cuts[model->cut_count++];
    *cut = (struct by_model_cut){use, by_alloc(sites->count, sizeof(*cut->inside)),
                                 by_lp_row(model->lp, BY_LP_AT_LEAST, 0, 1)};
    memcpy(cut->inside, inside, sites->count * sizeof(*inside));
    for (uint32_t i = 0; i < model->root_count; i++)
        if (!inside[sites->number[model->roots[i].node]])
            by_lp_add(model->lp, cut->row, model->roots[i].column, -1, 1);
    for (uint32_t i = 0; i < model->share_count; i++) {
        const struct by_model_share *share = &model->shares[i];
        uint32_t to;

        if (share->use != use)
            continue;
        to = sites->number[model->arcs[share->arc].to];
        if (to != UINT32_MAX && inside[to] != inside[share->source] && inside[to] == (use == BY_PROGRAM_DOWN))
            by_lp_add(model->lp, cut->row, share->column, 1, 1);
    }
    return true;
}
