/* Arrays of GMP rationals and integers, for the modules that compute and check steady states. Any
 * thread. */
#ifndef BY_STUDY_SERIES_RATIONAL_H
#define BY_STUDY_SERIES_RATIONAL_H

#include <gmp.h>

#include "control/base/alloc.h"
#include "control/fabric/topology.h"

/* Allocates `count` rationals, all zero. Free with by_rationals_free. */
static inline mpq_t *by_rationals_new(size_t count)
{
    mpq_t *numbers = by_alloc(count, sizeof(*numbers));

    for (size_t i = 0; i < count; i++)
        mpq_init(numbers[i]);
    return numbers;
}

static inline void by_rationals_free(mpq_t *numbers, size_t count)
{
    for (size_t i = 0; i < count && numbers; i++)
        mpq_clear(numbers[i]);
    free(numbers);
}

/* The same for integers. */
static inline mpz_t *by_integers_new(size_t count)
{
    mpz_t *numbers = by_alloc(count, sizeof(*numbers));

    for (size_t i = 0; i < count; i++)
        mpz_init(numbers[i]);
    return numbers;
}

static inline void by_integers_free(mpz_t *numbers, size_t count)
{
    for (size_t i = 0; i < count && numbers; i++)
        mpz_clear(numbers[i]);
    free(numbers);
}

static inline void by_rational_set(mpq_t number, struct by_fraction value)
{
    mpq_set_si(number, value.num, (unsigned long)value.den);
    mpq_canonicalize(number);
}

#endif
