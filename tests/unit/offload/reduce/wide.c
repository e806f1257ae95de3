/* Implements wide.h: exact sums. Pure. */
#include "tests/unit/offload/reduce/wide.h"

#include "offload/wire/types.h"
#include "tests/unit/offload/reduce/oracle.h"

const struct wide_format formats[FORMATS] = {{BY_DTYPE_F16, 10, 15, 31, 30},
                                             {BY_DTYPE_BF16, 7, 127, 255, 30},
                                             {BY_DTYPE_F32, 23, 127, 255, 62},
                                             {BY_DTYPE_F64, 52, 1023, 2047, 62}};

void wide_add(struct reduce_wide *w, uint64_t value, unsigned shift, int negative)
{
    struct reduce_wide term = {{0}};
    unsigned at = shift / 64, by = shift % 64;
    unsigned carry = 0;

    term.limb[at] = value << by;
    if (by)
        term.limb[at + 1] = value >> (64 - by);
    if (negative) { /* two's complement */
        unsigned c = 1;

        for (unsigned i = 0; i < LIMBS; i++) {
            term.limb[i] = ~term.limb[i] + c;
            c = c && term.limb[i] == 0;
        }
    }
    for (unsigned i = 0; i < LIMBS; i++) {
        uint64_t sum = w->limb[i] + term.limb[i];
        unsigned over = sum < w->limb[i];

        w->limb[i] = sum + carry;
        carry = over | (w->limb[i] < sum);
    }
}

int wide_negative(const struct reduce_wide *w)
{
    return w->limb[LIMBS - 1] >> 63 != 0;
}

struct reduce_wide wide_magnitude(const struct reduce_wide *w)
{
    struct reduce_wide m = *w;
    unsigned c = 1;

    if (!wide_negative(w))
        return m;
    for (unsigned i = 0; i < LIMBS; i++) {
        m.limb[i] = ~m.limb[i] + c;
        c = c && m.limb[i] == 0;
    }
    return m;
}

int wide_compare(const struct reduce_wide *a, const struct reduce_wide *b)
{
    for (unsigned i = LIMBS; i-- > 0;)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

struct reduce_wide wide_times(const struct reduce_wide *w, uint32_t factor)
{
    struct reduce_wide product;
    uint64_t carry = 0;

    for (unsigned i = 0; i < LIMBS; i++) {
        unsigned __int128 limb = (unsigned __int128)w->limb[i] * factor + carry;

        product.limb[i] = (uint64_t)limb;
        carry = (uint64_t)(limb >> 64);
    }
    return product;
}

struct reduce_wide wide_shifted(const struct reduce_wide *w, unsigned shift)
{
    struct reduce_wide result = {{0}};
    unsigned at = shift / 64, by = shift % 64;

    for (unsigned i = at; i < LIMBS; i++) {
        result.limb[i] = w->limb[i - at] << by;
        if (by && i > at)
            result.limb[i] |= w->limb[i - at - 1] >> (64 - by);
    }
    return result;
}

struct reduce_wide wide_sum(const struct reduce_wide *a, const struct reduce_wide *b)
{
    struct reduce_wide sum = *a;

    for (unsigned i = 0; i < LIMBS; i++)
        if (b->limb[i])
            wide_add(&sum, b->limb[i], 64 * i, 0);
    return sum;
}

/* Returns the significand and the place of its last bit above 2^-1074. The bits must be finite. */
static void take_apart(const struct wide_format *f, uint64_t bits, uint64_t *m, unsigned *shift,
                       int *negative)
{
    unsigned width = 8 * oracle_element_bytes(f->dtype);
    unsigned e = (unsigned)(bits >> f->mant & f->exponents);

    *negative = (int)(bits >> (width - 1) & 1);
    *m = (bits & (((uint64_t)1 << f->mant) - 1)) | (e ? (uint64_t)1 << f->mant : 0);
    *shift = (e ? e : 1) + 1074 - f->bias - f->mant;
}

void wide_add_element(struct reduce_wide *w, const struct wide_format *f, uint64_t bits, int minus)
{
    uint64_t m;
    unsigned shift;
    int negative;

    take_apart(f, bits, &m, &shift, &negative);
    wide_add(w, m, shift, negative ^ minus);
}

/* Returns the element nearest to the exact sum, ties to even. Values that are too large become
 * infinities. Zero is +0. */
uint64_t wide_round(const struct wide_format *f, const struct reduce_wide *w)
{
    struct reduce_wide m = wide_magnitude(w), left;
    unsigned width = 8 * oracle_element_bytes(f->dtype);
    uint64_t sign = wide_negative(w) ? (uint64_t)1 << (width - 1) : 0;
    uint64_t low = 0, high = (uint64_t)f->exponents << f->mant; /* magnitudes ascend with their bits */
    uint64_t m_low;
    struct reduce_wide both = {{0}};
    unsigned shift;
    int negative, order;

    while (high - low > 1) { /* finds the greatest element <= m, where infinity counts as 2^(e + 1) */
        uint64_t middle = low + (high - low) / 2;
        struct reduce_wide value = {{0}};

        take_apart(f, middle, &m_low, &shift, &negative);
        wide_add(&value, m_low, shift, 0);
        if (wide_compare(&value, &m) <= 0)
            low = middle;
        else
            high = middle;
    }
    take_apart(f, low, &m_low, &shift, &negative);
    for (unsigned i = 0; i < LIMBS; i++)
        left.limb[i] = m.limb[i] << 1 | (i ? m.limb[i - 1] >> 63 : 0);
    wide_add(&both, m_low, shift, 0);
    wide_add(&both, m_low + 1, shift, 0);
    order = wide_compare(&left, &both); /* compares twice m with the sum of its neighbours */
    if (order > 0 || (order == 0 && (low & 1)))
        low++;
    return low == 0 ? 0 : sign | low;
}
