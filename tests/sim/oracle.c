/* Implements oracle.h, which explains which results are exact. Pure. */
#include "tests/sim/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/prng.h"
#include "offload/wire/types.h"

/* An element without an encoding, in the field for its type. */
union oracle_number {
    uint64_t u;
    int64_t i;
    double f;
};

static int is_float(unsigned dtype)
{
    return dtype == BY_DTYPE_F16 || dtype == BY_DTYPE_BF16 || dtype == BY_DTYPE_F32 || dtype == BY_DTYPE_F64;
}

static int is_signed(unsigned dtype)
{
    return dtype == BY_DTYPE_I8 || dtype == BY_DTYPE_I32 || dtype == BY_DTYPE_I64;
}

static int is_reduced(unsigned collective)
{
    return collective == BY_COLLECTIVE_ALLREDUCE || collective == BY_COLLECTIVE_REDUCE ||
           collective == BY_COLLECTIVE_REDUCE_SCATTER;
}

/* Truncates an integer to the width of `dtype`, with its sign. */
static union oracle_number narrow(unsigned dtype, uint64_t bits)
{
    unsigned unused = 64 - 8 * by_dtype_bytes(dtype);
    union oracle_number n;

    if (is_signed(dtype))
        n.i = (int64_t)(bits << unused) >> unused;
    else
        n.u = bits << unused >> unused;
    return n;
}

/* Returns element `index` of the send buffer of `rank`. */
static union oracle_number value_of(const struct plan_call *call, uint64_t seed, int rank, uint64_t index)
{
    struct by_prng prng = {seed ^ (uint64_t)rank << 48 ^ index * 0x9e3779b97f4a7c15u};
    uint64_t bits = by_prng_next(&prng);
    union oracle_number n;

    if (!is_float(call->dtype))
        return narrow(call->dtype, bits);
    if (is_reduced(call->collective) && call->op == BY_OP_PROD)
        n.f = (bits & 1 ? -1.0 : 1.0) * (rank < 6 && (bits & 6) == 6 ? 2.0 : 1.0);
    else
        n.f = (double)(int)(bits % 9) - 4.0; /* 64 ranks: sums up to 256, exact even in bf16 */
    return n;
}

static union oracle_number combine(unsigned op, unsigned dtype, union oracle_number a, union oracle_number b)
{
    union oracle_number n = a;

    if (is_float(dtype)) {
        switch (op) {
        case BY_OP_SUM:
            n.f = a.f + b.f;
            break;
        case BY_OP_PROD:
            n.f = a.f * b.f;
            break;
        case BY_OP_MIN:
            n.f = a.f < b.f ? a.f : b.f;
            break;
        default:
            n.f = a.f > b.f ? a.f : b.f;
            break;
        }
        return n;
    }
    switch (op) {
    case BY_OP_SUM:
        return narrow(dtype, a.u + b.u);
    case BY_OP_PROD:
        return narrow(dtype, a.u * b.u);
    case BY_OP_MIN:
        return (is_signed(dtype) ? a.i < b.i : a.u < b.u) ? a : b;
    case BY_OP_MAX:
        return (is_signed(dtype) ? a.i > b.i : a.u > b.u) ? a : b;
    case BY_OP_BAND:
        return narrow(dtype, a.u & b.u);
    case BY_OP_BOR:
        return narrow(dtype, a.u | b.u);
    default:
        return narrow(dtype, a.u ^ b.u);
    }
}

/* Returns the bits of a small integer as f16: sign, exponent of its highest bit, and the bits
 * below. */
static uint16_t half_of(double value)
{
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    uint32_t exponent = 0;

    if (magnitude == 0)
        return 0;
    while (magnitude >> (exponent + 1) != 0)
        exponent++;
    return (uint16_t)((value < 0 ? 0x8000u : 0) | (exponent + 15) << 10 |
                      ((magnitude << 10 >> exponent) & 0x3ffu));
}

static void store(unsigned dtype, uint8_t *at, union oracle_number n)
{
    float f32;
    uint32_t bits;
    uint16_t half;

    switch (dtype) {
    case BY_DTYPE_F16:
        half = half_of(n.f);
        memcpy(at, &half, 2);
        break;
    case BY_DTYPE_BF16:
        f32 = (float)n.f;
        memcpy(&bits, &f32, 4);
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, 2);
        break;
    case BY_DTYPE_F32:
        f32 = (float)n.f;
        memcpy(at, &f32, 4);
        break;
    default:
        memcpy(at, &n, by_dtype_bytes(dtype)); /* little-endian: the low bytes come first */
        break;
    }
}

uint64_t oracle_send_count(const struct plan_call *call, int ranks)
{
    return call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? call->count * (uint64_t)ranks : call->count;
}

uint64_t oracle_recv_count(const struct plan_call *call, int ranks)
{
    return call->collective == BY_COLLECTIVE_ALLGATHER ? call->count * (uint64_t)ranks : call->count;
}

void oracle_fill(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send)
{
    uint64_t count = oracle_send_count(call, ranks);
    unsigned bytes = by_dtype_bytes(call->dtype);

    for (uint64_t i = 0; i < count; i++)
        store(call->dtype, (uint8_t *)send + i * bytes, value_of(call, seed, rank, i));
}

void oracle_fill_rough(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send)
{
    uint64_t count = oracle_send_count(call, ranks);
    unsigned bytes = by_dtype_bytes(call->dtype);
    unsigned mant = call->dtype == BY_DTYPE_F64    ? 52
                    : call->dtype == BY_DTYPE_F32  ? 23
                    : call->dtype == BY_DTYPE_BF16 ? 7
                                                   : 10;
    unsigned bias = call->dtype == BY_DTYPE_F64 ? 1023 : call->dtype == BY_DTYPE_F16 ? 15 : 127;
    unsigned spread = call->dtype == BY_DTYPE_F16 || call->op == BY_OP_PROD ? 2 : 16;

    for (uint64_t i = 0; i < count; i++) {
        struct by_prng prng = {seed ^ (uint64_t)rank << 48 ^ i * 0x9e3779b97f4a7c15u};
        uint64_t bits = by_prng_next(&prng) & (((uint64_t)1 << mant) - 1);

        bits |= (uint64_t)(bias - spread + by_prng_below(&prng, 2 * spread + 1)) << mant;
        bits |= by_prng_below(&prng, 2) << (8 * bytes - 1);
        memcpy((uint8_t *)send + i * bytes, &bits, bytes);
    }
}

int oracle_is_ordered(const struct plan_call *call)
{
    return is_reduced(call->collective) && is_float(call->dtype) &&
           (call->op == BY_OP_SUM || call->op == BY_OP_PROD);
}

uint64_t oracle_offset(const struct plan_call *call, int rank)
{
    return call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? call->count * (uint64_t)rank : 0;
}

uint8_t *oracle_answer(const struct plan_call *call, uint64_t seed, int ranks)
{
    int sharded =
        call->collective == BY_COLLECTIVE_REDUCE_SCATTER || call->collective == BY_COLLECTIVE_ALLGATHER;
    uint64_t count = sharded ? call->count * (uint64_t)ranks : call->count;
    unsigned bytes = by_dtype_bytes(call->dtype);
    uint8_t *answer = malloc(count * bytes + 1);

    for (uint64_t i = 0; i < count; i++) {
        union oracle_number n;

        if (call->collective == BY_COLLECTIVE_ALLGATHER) {
            n = value_of(call, seed, (int)(i / call->count), i % call->count);
        } else if (call->collective == BY_COLLECTIVE_BROADCAST) {
            n = value_of(call, seed, call->root, i);
        } else {
            n = value_of(call, seed, 0, i);
            for (int r = 1; r < ranks; r++)
                n = combine(call->op, call->dtype, n, value_of(call, seed, r, i));
        }
        store(call->dtype, answer + i * bytes, n);
    }
    return answer;
}
