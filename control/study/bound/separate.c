/*
 * Converts solutions to integers, and finds the cuts that they violate: for each use and each
 * compute node, a maximum flow from all roots must bring all trees. See model.h.
 */
#include "control/study/bound/model.h"

#include "control/base/alloc.h"

/* Sums of exact amounts stay below 2^AMOUNT_BITS, so flows and their sums fit into 64 bits. */
#define AMOUNT_BITS 58
/* Sums of rounded amounts stay below 2^ROUNDED_BITS. */
#define ROUNDED_BITS 44

/* Computes floor(value * scale); returns false if that needs more than `bits` bits. */
static bool to_integer(const mpq_t value, const mpz_t scale, mpz_t scratch, uint32_t bits, int64_t *result)
{
    mpz_mul(scratch, mpq_numref(value), scale);
    mpz_fdiv_q(scratch, scratch, mpq_denref(value));
    if (mpz_sizeinbase(scratch, 2) > bits)
        return false;
    *result = mpz_get_si(scratch);
    return true;
}

/* Chooses the scale: exact, or a power of two for which sums of amounts have ROUNDED_BITS bits. */
static void choose_scale(const struct by_model *model, bool exact, mpz_t scale)
{
    int64_t whole = by_graph_sum(model->graph);
    uint32_t bits = 0;

    if (exact) {
        by_lp_denominator(by_lp_primals(model->lp), by_lp_column_count(model->lp), scale);
        return;
    }
    while (bits < ROUNDED_BITS && whole >> bits > 0)
        bits++;
    mpz_set_ui(scale, 1);
    mpz_mul_2exp(scale, scale, ROUNDED_BITS - bits);
}

bool by_model_amounts(const struct by_model *model, bool exact, struct by_model_amounts *amounts)
{
    const mpq_t *values = by_lp_primals(model->lp);
    bool fits = true;
    mpz_t scale, scratch;
    int64_t sum = 0;

    *amounts = (struct by_model_amounts){.exact = exact};
    amounts->roots = by_alloc(model->root_count, sizeof(*amounts->roots));
    amounts->shares = by_alloc(model->share_count, sizeof(*amounts->shares));
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++)
        amounts->capacity[use] = by_alloc((size_t)model->sites[use].count * model->sites[use].count,
                                          sizeof(*amounts->capacity[use]));
    mpz_inits(scale, scratch, NULL);
    choose_scale(model, exact, scale);
    fits = mpz_sizeinbase(scale, 2) <= AMOUNT_BITS;
    amounts->scale = fits ? mpz_get_si(scale) : 0;
    for (uint32_t i = 0; i < model->root_count && fits; i++) {
        fits = to_integer(values[model->roots[i].column], scale, scratch, AMOUNT_BITS, &amounts->roots[i]);
        amounts->total += amounts->roots[i];
        fits = fits && amounts->total >> AMOUNT_BITS == 0;
    }
    for (uint32_t i = 0; i < model->share_count && fits; i++) {
        const struct by_model_share *share = &model->shares[i];
        const struct by_model_sites *sites = &model->sites[share->use];
        uint32_t to = sites->number[model->arcs[share->arc].to];

        fits = to_integer(values[share->column], scale, scratch, AMOUNT_BITS, &amounts->shares[i]);
        sum += amounts->shares[i];
        fits = fits && sum >> AMOUNT_BITS == 0;
        if (to != UINT32_MAX)
            amounts->capacity[share->use][(size_t)share->source * sites->count + to] += amounts->shares[i];
    }
    mpz_clears(scale, scratch, NULL);
    return fits;
}

void by_model_amounts_free(struct by_model_amounts *amounts)
{
    free(amounts->roots);
    free(amounts->shares);
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++)
        free(amounts->capacity[use]);
    *amounts = (struct by_model_amounts){0};
}

/* Separates one use: computes the maximum flow from all roots to each compute node. */
static uint32_t separate_use(struct by_model *model, const struct by_model_amounts *amounts,
                             enum by_program_use use)
{
    const struct by_model_sites *sites = &model->sites[use];
    uint32_t n = sites->count, added = 0;
    const int64_t *capacity = amounts->capacity[use];
    struct by_flow *flow = by_flow_new(n + 1);
    bool *side = by_alloc((size_t)n + 1, sizeof(*side));
    int64_t wanted = amounts->total - (amounts->exact ? 0 : (int64_t)model->share_count + model->root_count);

    for (uint32_t i = 0; i < model->root_count; i++)
        if (amounts->roots[i] > 0)
            by_flow_add(flow, n, sites->number[model->roots[i].node], amounts->roots[i]);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            int64_t amount =
                use == BY_PROGRAM_DOWN ? capacity[(size_t)i * n + j] : capacity[(size_t)j * n + i];

            if (amount > 0)
                by_flow_add(flow, i, j, amount);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!model->graph->compute[sites->node[i]] || by_flow_run(flow, n, i, wanted) >= wanted)
            continue;
        by_flow_sink_side(flow, side);
        added += by_model_cut(model, use, side);
        by_flow_source_side(flow, side);
        for (uint32_t j = 0; j < n; j++)
            side[j] = !side[j];
        added += by_model_cut(model, use, side);
    }
    by_flow_free(flow);
    free(side);
    return added;
}

uint32_t by_model_separate(struct by_model *model, const struct by_model_amounts *amounts)
{
    uint32_t added = separate_use(model, amounts, BY_PROGRAM_DOWN);

    if (!model->mirrored)
        added += separate_use(model, amounts, BY_PROGRAM_UP);
    return added;
}
