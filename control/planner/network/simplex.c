/*
 * Revised simplex in integers. See simplex.h. The matrix holds, for each row, the determinant times
 * the inverse of the basis, then the determinant times the basic amount; the last row holds the
 * prices and the value. A step replaces each entry e by (e * pivot - alpha * e of the pivot row) /
 * determinant, which is always exact.
 */
#include "control/planner/network/simplex.h"

#include <gmp.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

#define SLACK        UINT32_MAX
#define ROUNDED_BITS 20

struct by_simplex {
    uint32_t rows;
    uint32_t width; /* rows + 1 */
    mpz_t *matrix;  /* (rows + 1) x width */
    mpz_t determinant;
    mpz_t *alpha; /* by row: the entering column; the last is its reduced cost, negated */
    mpz_t scratch[2];
    uint32_t *basic; /* by row: tag of its column, or SLACK */
    uint32_t steps;
};

static mpz_t *entry(const struct by_simplex *simplex, uint32_t row, uint32_t column)
{
    return &simplex->matrix[(size_t)row * simplex->width + column];
}

struct by_simplex *by_simplex_new(uint32_t row_count, const int64_t *limits)
{
    struct by_simplex *simplex = by_alloc(1, sizeof(*simplex));

    simplex->rows = row_count;
    simplex->width = row_count + 1;
    simplex->matrix = by_alloc((size_t)simplex->width * simplex->width, sizeof(*simplex->matrix));
    simplex->alpha = by_alloc(simplex->width, sizeof(*simplex->alpha));
    simplex->basic = by_alloc(row_count, sizeof(*simplex->basic));
    for (size_t i = 0; i < (size_t)simplex->width * simplex->width; i++)
        mpz_init(simplex->matrix[i]);
    for (uint32_t i = 0; i < simplex->width; i++)
        mpz_init(simplex->alpha[i]);
    mpz_init_set_ui(simplex->determinant, 1);
    mpz_init(simplex->scratch[0]);
    mpz_init(simplex->scratch[1]);
    for (uint32_t i = 0; i < row_count; i++) {
        mpz_set_ui(*entry(simplex, i, i), 1);
        mpz_set_si(*entry(simplex, i, row_count), limits[i]);
        simplex->basic[i] = SLACK;
    }
    return simplex;
}

void by_simplex_free(struct by_simplex *simplex)
{
    if (!simplex)
        return;
    for (size_t i = 0; i < (size_t)simplex->width * simplex->width; i++)
        mpz_clear(simplex->matrix[i]);
    for (uint32_t i = 0; i < simplex->width; i++)
        mpz_clear(simplex->alpha[i]);
    mpz_clear(simplex->determinant);
    mpz_clear(simplex->scratch[0]);
    mpz_clear(simplex->scratch[1]);
    free(simplex->matrix);
    free(simplex->alpha);
    free(simplex->basic);
    free(simplex);
}

/* Whether row a, divided by its alpha, comes before row b: by amount, then by the entries of the
 * inverse. */
static bool comes_before(struct by_simplex *simplex, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < simplex->width; k++) {
        uint32_t column = (k + simplex->rows) % simplex->width;
        int order;

        mpz_mul(simplex->scratch[0], *entry(simplex, a, column), simplex->alpha[b]);
        mpz_mul(simplex->scratch[1], *entry(simplex, b, column), simplex->alpha[a]);
        order = mpz_cmp(simplex->scratch[0], simplex->scratch[1]);
        if (order)
            return order < 0;
    }
    return false;
}

/* Brings the column in `alpha` into the basis with tag `tag`. */
static void step(struct by_simplex *simplex, uint32_t tag)
{
    uint32_t pivot_row = UINT32_MAX;
    mpz_t *pivot;

    for (uint32_t i = 0; i < simplex->rows; i++)
        if (mpz_sgn(simplex->alpha[i]) > 0 &&
            (pivot_row == UINT32_MAX || comes_before(simplex, i, pivot_row)))
            pivot_row = i;
    BY_ASSERT(pivot_row != UINT32_MAX); /* every column uses some row, so the program is bounded */
    pivot = &simplex->alpha[pivot_row];
    for (uint32_t i = 0; i < simplex->width; i++) {
        bool plain = mpz_sgn(simplex->alpha[i]) == 0;

        if (i == pivot_row || (plain && mpz_cmp(*pivot, simplex->determinant) == 0))
            continue;
        for (uint32_t k = 0; k < simplex->width; k++) {
            mpz_t *at = entry(simplex, i, k), *of_pivot = entry(simplex, pivot_row, k);

            if (mpz_sgn(*at) == 0 && (plain || mpz_sgn(*of_pivot) == 0))
                continue;
            mpz_mul(*at, *at, *pivot);
            if (!plain)
                mpz_submul(*at, simplex->alpha[i], *of_pivot);
            mpz_divexact(*at, *at, simplex->determinant);
        }
    }
    mpz_set(simplex->determinant, *pivot);
    simplex->basic[pivot_row] = tag;
    simplex->steps++;
}

/* Brings slack columns back into the basis while one has a negative price. */
static void settle(struct by_simplex *simplex)
{
    for (;;) {
        uint32_t k = 0;

        while (k < simplex->rows && mpz_sgn(*entry(simplex, simplex->rows, k)) >= 0)
            k++;
        if (k == simplex->rows)
            return;
        for (uint32_t i = 0; i < simplex->width; i++)
            mpz_set(simplex->alpha[i], *entry(simplex, i, k));
        step(simplex, SLACK);
    }
}

bool by_simplex_offer(struct by_simplex *simplex, const int32_t *counts, uint32_t tag)
{
    for (uint32_t i = 0; i < simplex->width; i++) {
        mpz_set_ui(simplex->alpha[i], 0);
        for (uint32_t k = 0; k < simplex->rows; k++)
            if (counts[k])
                mpz_addmul_ui(simplex->alpha[i], *entry(simplex, i, k), (unsigned long)counts[k]);
    }
    mpz_sub(simplex->alpha[simplex->rows], simplex->alpha[simplex->rows], simplex->determinant);
    if (mpz_sgn(simplex->alpha[simplex->rows]) >= 0)
        return false;
    step(simplex, tag);
    settle(simplex);
    return true;
}

/* Computes the greatest common divisor of all prices and the determinant. */
static void common_divisor(const struct by_simplex *simplex, mpz_t divisor)
{
    mpz_set(divisor, simplex->determinant);
    for (uint32_t k = 0; k < simplex->rows && mpz_cmp_ui(divisor, 1) != 0; k++)
        mpz_gcd(divisor, divisor, *entry(simplex, simplex->rows, k));
}

bool by_simplex_prices(const struct by_simplex *simplex, int64_t *prices, int64_t *one)
{
    size_t bits = 0, limit = 0, shift;
    mpz_t value, divisor;

    mpz_inits(value, divisor, NULL);
    common_divisor(simplex, divisor);
    while (((int64_t)1 << limit) < BY_PRICE_MAX)
        limit++;
    for (uint32_t k = 0; k <= simplex->rows; k++) {
        size_t more;

        mpz_divexact(value, k < simplex->rows ? *entry(simplex, simplex->rows, k) : simplex->determinant,
                     divisor);
        more = mpz_sizeinbase(value, 2);
        bits = more > bits ? more : bits;
    }
    shift = bits > limit ? bits - limit : 0;
    for (uint32_t k = 0; k < simplex->rows; k++) {
        mpz_divexact(value, *entry(simplex, simplex->rows, k), divisor);
        mpz_fdiv_q_2exp(value, value, shift);
        prices[k] = mpz_get_si(value);
    }
    mpz_divexact(value, simplex->determinant, divisor);
    mpz_fdiv_q_2exp(value, value, shift);
    *one = mpz_get_si(value);
    mpz_clears(value, divisor, NULL);
    return shift == 0;
}

/* Converts over / determinant to a fraction; false when it does not fit. */
static bool to_fraction(const struct by_simplex *simplex, mpz_t over, struct by_fraction *result)
{
    bool fits;
    mpq_t ratio;

    mpq_init(ratio);
    mpz_set(mpq_numref(ratio), over);
    mpz_set(mpq_denref(ratio), simplex->determinant);
    mpq_canonicalize(ratio);
    fits = mpz_fits_slong_p(mpq_numref(ratio)) && mpz_fits_slong_p(mpq_denref(ratio));
    if (fits)
        *result = (struct by_fraction){mpz_get_si(mpq_numref(ratio)), mpz_get_si(mpq_denref(ratio))};
    mpq_clear(ratio);
    return fits;
}

/* Computes the greatest multiple of 2^-ROUNDED_BITS that is at most over / determinant. Row limits
 * fit 61 bits minus the scale of the caller. */
static void to_rounded(const struct by_simplex *simplex, mpz_t over, struct by_fraction *result)
{
    int error;
    mpz_t number;

    mpz_init(number);
    mpz_mul_2exp(number, over, ROUNDED_BITS);
    mpz_fdiv_q(number, number, simplex->determinant);
    error = mpz_fits_slong_p(number)
                ? by_fraction_set(mpz_get_si(number), (__int128)1 << ROUNDED_BITS, result)
                : BY_ERANGE;
    if (error) { /* an amount above 2^43: use an integer */
        mpz_fdiv_q(number, over, simplex->determinant);
        *result = (struct by_fraction){mpz_get_si(number), 1};
    }
    mpz_clear(number);
}

bool by_simplex_reaches(const struct by_simplex *simplex, int64_t bound)
{
    bool reached;
    mpz_t product;

    mpz_init(product);
    mpz_mul_si(product, simplex->determinant, bound);
    reached = mpz_cmp(*entry(simplex, simplex->rows, simplex->rows), product) >= 0;
    mpz_clear(product);
    return reached;
}

uint32_t by_simplex_steps(const struct by_simplex *simplex)
{
    return simplex->steps;
}

/* Fills the parts, exactly or rounded; false when an exact one does not fit. */
static bool fill_parts(const struct by_simplex *simplex, bool rounded, struct by_simplex_part *parts,
                       uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < simplex->rows; i++) {
        struct by_simplex_part *part = &parts[*count];

        if (simplex->basic[i] == SLACK || mpz_sgn(*entry(simplex, i, simplex->rows)) == 0)
            continue;
        part->tag = simplex->basic[i];
        if (rounded)
            to_rounded(simplex, *entry(simplex, i, simplex->rows), &part->amount);
        else if (!to_fraction(simplex, *entry(simplex, i, simplex->rows), &part->amount))
            return false;
        *count += part->amount.num > 0;
    }
    return true;
}

uint32_t by_simplex_solution(const struct by_simplex *simplex, struct by_simplex_part *parts,
                             struct by_fraction *value)
{
    uint32_t count;

    if (to_fraction(simplex, *entry(simplex, simplex->rows, simplex->rows), value) &&
        fill_parts(simplex, false, parts, &count))
        return count;
    fill_parts(simplex, true, parts, &count);
    *value = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < count; i++) {
        int error = by_fraction_add(*value, parts[i].amount, value);

        BY_ASSERT(error == 0); /* one common denominator, and limits far from overflow */
    }
    return count;
}
