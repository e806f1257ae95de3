/*
 * The proof of a solved program. See witness.h. The price of a link is that of the row of its
 * capacity, the weight of a cut that of its row. Rounded prices are rounded up and rounded weights
 * down, so that no path costs less than its cuts; the floor, what every pair of trees pays, is
 * computed from the rounded weights.
 */
#include "control/study/bound/witness.h"

#include "control/base/alloc.h"

/* Numbers of a proof stay below 2^EXACT_BITS; rounded ones are multiples of 2^-ROUNDED_BITS of the
 * price of a pair. */
#define EXACT_BITS   56
#define ROUNDED_BITS 40

struct witness {
    const struct by_model *model;
    const mpq_t *duals;
    mpz_t scale, scratch;
    bool fits;
};

/* The scale that makes all numbers whole, or a power of two if that is too large. */
static void choose_scale(struct witness *witness)
{
    const struct by_model *model = witness->model;

    mpz_set_ui(witness->scale, 1);
    for (uint32_t i = 0; i < model->arc_count; i++)
        mpz_lcm(witness->scale, witness->scale, mpq_denref(witness->duals[model->arcs[i].row]));
    for (uint32_t i = 0; i < model->cut_count && mpz_sizeinbase(witness->scale, 2) <= EXACT_BITS; i++)
        mpz_lcm(witness->scale, witness->scale, mpq_denref(witness->duals[model->cuts[i].row]));
    if (mpz_sizeinbase(witness->scale, 2) <= EXACT_BITS)
        return;
    mpz_set_ui(witness->scale, 1);
    mpz_mul_2exp(witness->scale, witness->scale, ROUNDED_BITS);
}

/* The dual of a row, in the scale; the dual of a cut is negative. */
static int64_t number_of(struct witness *witness, uint32_t row, bool price)
{
    mpz_mul(witness->scratch, witness->scale, mpq_numref(witness->duals[row]));
    if (price) {
        mpz_cdiv_q(witness->scratch, witness->scratch, mpq_denref(witness->duals[row]));
    } else {
        mpz_neg(witness->scratch, witness->scratch);
        mpz_fdiv_q(witness->scratch, witness->scratch, mpq_denref(witness->duals[row]));
    }
    witness->fits = witness->fits && mpz_sizeinbase(witness->scratch, 2) <= EXACT_BITS;
    return witness->fits ? mpz_get_si(witness->scratch) : 0;
}

/* Lists the prices; returns capacities times prices. */
static __int128 list_prices(struct witness *witness, struct by_price *prices, uint32_t *count)
{
    __int128 value = 0;

    *count = 0;
    for (uint32_t i = 0; i < witness->model->arc_count; i++) {
        const struct by_model_arc *arc = &witness->model->arcs[i];
        int64_t price = number_of(witness, arc->row, true);

        if (price <= 0)
            continue;
        prices[(*count)++] = (struct by_price){arc->from, arc->to, price};
        value += (__int128)arc->capacity * price;
    }
    return value;
}

static struct by_part make_cut(const struct by_model *model, const struct by_model_cut *cut, int64_t weight,
                               bool up)
{
    const struct by_model_sites *sites = &model->sites[cut->use];
    struct by_part part = {.nodes = by_alloc(sites->count, sizeof(*part.nodes)), .weight = weight, .up = up};

    for (uint32_t i = 0; i < sites->count; i++)
        if (cut->inside[i])
            part.nodes[part.node_count++] = sites->node[i];
    return part;
}

/* Lists the cuts with a weight, those of a mirrored model for both directions. */
static void list_cuts(struct witness *witness, struct by_part *cuts, uint32_t *count)
{
    const struct by_model *model = witness->model;

    *count = 0;
    for (uint32_t i = 0; i < model->cut_count; i++) {
        const struct by_model_cut *cut = &model->cuts[i];
        int64_t weight = number_of(witness, cut->row, false);

        if (weight <= 0)
            continue;
        cuts[(*count)++] = make_cut(model, cut, weight, cut->use == BY_PROGRAM_UP);
        if (model->mirrored)
            cuts[(*count)++] = make_cut(model, cut, weight, true);
    }
}

/* The least sum of the weights of the cuts without a root, over all roots. */
static __int128 find_floor(const struct by_model *model, const struct by_part *cuts, uint32_t count)
{
    bool *inside = by_alloc(model->graph->node_count, sizeof(*inside));
    __int128 least = -1, *sums = by_alloc(model->root_count, sizeof(*sums));

    for (uint32_t i = 0; i < count; i++) {
        memset(inside, 0, model->graph->node_count * sizeof(*inside));
        for (uint32_t j = 0; j < cuts[i].node_count; j++)
            inside[cuts[i].nodes[j]] = true;
        for (uint32_t r = 0; r < model->root_count; r++)
            sums[r] += inside[model->roots[r].node] ? 0 : cuts[i].weight;
    }
    for (uint32_t r = 0; r < model->root_count; r++)
        least = least < 0 || sums[r] < least ? sums[r] : least;
    free(inside);
    free(sums);
    return least;
}

void by_witness_keep(const struct by_model *model, bool branches, struct by_bound_program *program)
{
    struct witness witness = {.model = model, .duals = by_lp_duals(model->lp), .fits = true};
    struct by_price *prices = by_alloc(model->arc_count, sizeof(*prices));
    struct by_part *cuts = by_alloc(2 * (size_t)model->cut_count, sizeof(*cuts));
    uint32_t price_count, cut_count;
    __int128 value;

    mpz_inits(witness.scale, witness.scratch, NULL);
    choose_scale(&witness);
    value = list_prices(&witness, prices, &price_count);
    list_cuts(&witness, cuts, &cut_count);
    program->proof =
        by_certificate_of_cuts(prices, price_count, cuts, cut_count, witness.fits ? value : 0,
                               witness.fits ? find_floor(model, cuts, cut_count) : 0, &program->bound);
    if (!program->proof)
        program->bound = (struct by_fraction){0, 1};
    else if (!branches)
        by_certificate_drop_cuts(program->proof);
    mpz_clears(witness.scale, witness.scratch, NULL);
}
