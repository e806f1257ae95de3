/*
 * Conversion of elements; see convert.h. A pair becomes a 64-bit number: the value, mapped to an
 * unsigned number of the same order, then the index so that of equal values the least index wins:
 * as it is for the least number, complemented for the greatest.
 */
#include "host-driver/plugin/mpi/convert.h"

#include <string.h>

#define SIGN 0x80000000u

unsigned by_mpi_wire_bytes(const struct by_mpi_shape *shape)
{
    switch ((enum by_mpi_form)shape->form) {
    case BY_MPI_TRUTH:
        return 1;
    case BY_MPI_WIDE:
        return 4;
    case BY_MPI_PAIR:
        return 8;
    case BY_MPI_AS_IS:
        break;
    }
    return shape->bytes;
}

static uint8_t truth_of(const uint8_t *from, unsigned bytes)
{
    uint8_t any = 0;

    for (unsigned i = 0; i < bytes; i++)
        any |= from[i];
    return any != 0;
}

/* Writes 0 or 1 as an integer of `bytes` bytes in this machine's order. */
static void truth_write(uint8_t truth, unsigned bytes, uint8_t *to)
{
    const uint16_t probe = 1;
    uint8_t first;

    memcpy(&first, &probe, 1);
    memset(to, 0, bytes);
    to[first == 1 ? 0 : bytes - 1] = truth;
}

/* Maps a value to a number of the same order. */
static uint32_t rank_of_value(const struct by_mpi_shape *shape, const uint8_t *from)
{
    int16_t half;
    uint32_t word;

    if (shape->bytes == 2) {
        memcpy(&half, from, sizeof(half));
        return (uint32_t)(int32_t)half ^ SIGN;
    }
    memcpy(&word, from, sizeof(word));
    if (!shape->is_real)
        return shape->is_signed ? word ^ SIGN : word;
    if (word == SIGN)
        word = 0; /* -0 and 0 are equal */
    return word & SIGN ? ~word : word | SIGN;
}

static void value_write(const struct by_mpi_shape *shape, uint32_t rank, uint8_t *to)
{
    uint32_t word = shape->is_signed ? rank ^ SIGN : rank;
    int16_t half = (int16_t)(int32_t)word;

    if (shape->is_real)
        word = rank & SIGN ? rank & ~SIGN : ~rank;
    if (shape->bytes == 2)
        memcpy(to, &half, sizeof(half));
    else
        memcpy(to, &word, sizeof(word));
}

static uint64_t pair_encode(const struct by_mpi_shape *shape, const uint8_t *from)
{
    uint32_t index;

    memcpy(&index, from + shape->index_at, sizeof(index));
    index ^= shape->is_greatest ? ~SIGN : SIGN;
    return (uint64_t)rank_of_value(shape, from) << 32 | index;
}

static void pair_decode(const struct by_mpi_shape *shape, uint64_t pair, uint8_t *to)
{
    uint32_t index = (uint32_t)pair ^ (shape->is_greatest ? ~SIGN : SIGN);

    value_write(shape, (uint32_t)(pair >> 32), to);
    memcpy(to + shape->index_at, &index, sizeof(index));
}

void by_mpi_encode(const struct by_mpi_shape *shape, const void *from, uint64_t count, void *to)
{
    const uint8_t *in = from;
    uint8_t *out = to;

    for (uint64_t i = 0; i < count; i++, in += shape->stride, out += by_mpi_wire_bytes(shape)) {
        uint16_t half;
        uint32_t word;
        uint64_t pair;

        switch ((enum by_mpi_form)shape->form) {
        case BY_MPI_TRUTH:
            *out = truth_of(in, shape->bytes);
            break;
        case BY_MPI_WIDE:
            memcpy(&half, in, sizeof(half));
            word = shape->is_signed ? (uint32_t)(int32_t)(int16_t)half : half;
            memcpy(out, &word, sizeof(word));
            break;
        case BY_MPI_PAIR:
            pair = pair_encode(shape, in);
            memcpy(out, &pair, sizeof(pair));
            break;
        case BY_MPI_AS_IS:
            memcpy(out, in, shape->bytes);
            break;
        }
    }
}

void by_mpi_decode(const struct by_mpi_shape *shape, const void *from, uint64_t count, void *to)
{
    const uint8_t *in = from;
    uint8_t *out = to;

    for (uint64_t i = 0; i < count; i++, in += by_mpi_wire_bytes(shape), out += shape->stride) {
        uint16_t half;
        uint32_t word;
        uint64_t pair;

        switch ((enum by_mpi_form)shape->form) {
        case BY_MPI_TRUTH:
            truth_write(*in, shape->bytes, out);
            break;
        case BY_MPI_WIDE:
            memcpy(&word, in, sizeof(word));
            half = (uint16_t)word;
            memcpy(out, &half, sizeof(half));
            break;
        case BY_MPI_PAIR:
            memcpy(&pair, in, sizeof(pair));
            pair_decode(shape, pair, out);
            break;
        case BY_MPI_AS_IS:
            memcpy(out, in, shape->bytes);
            break;
        }
    }
}
