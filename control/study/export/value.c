/* Symbolic values. See value.h. */
#include "control/study/export/value.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

struct by_values {
    uint32_t rank_count;
    uint32_t words;
    uint32_t count, room; /* number 0 is BY_VALUE_NONE */
    uint32_t count_max;
    uint32_t *chunk;
    uint64_t *ranks; /* [value * words] */
    uint32_t slot_count;
    uint32_t *slots; /* hash table of numbers; 0 is free */
    uint64_t *draft;
};

struct by_values *by_values_new(uint32_t rank_count, uint64_t bytes_max)
{
    struct by_values *values = by_alloc(1, sizeof(*values));
    uint64_t most;

    values->rank_count = rank_count;
    values->words = (rank_count + 63) / 64;
    most = bytes_max / (values->words * sizeof(uint64_t) + 4 * sizeof(uint32_t));
    values->count_max = most < UINT32_MAX / 4 ? (uint32_t)most : UINT32_MAX / 4;
    values->count = 1;
    values->room = 1024;
    values->chunk = by_alloc(values->room, sizeof(*values->chunk));
    values->ranks = by_alloc((size_t)values->room * values->words, sizeof(*values->ranks));
    values->slot_count = 4096;
    values->slots = by_alloc(values->slot_count, sizeof(*values->slots));
    values->draft = by_alloc(values->words, sizeof(*values->draft));
    return values;
}

void by_values_free(struct by_values *values)
{
    if (!values)
        return;
    free(values->chunk);
    free(values->ranks);
    free(values->slots);
    free(values->draft);
    free(values);
}

static const uint64_t *ranks_of(const struct by_values *values, uint32_t value)
{
    return values->ranks + (size_t)value * values->words;
}

static uint64_t hash(const struct by_values *values, uint32_t chunk, const uint64_t *ranks)
{
    uint64_t state = (chunk + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t w = 0; w < values->words; w++) {
        state ^= ranks[w];
        state *= UINT64_C(0xff51afd7ed558ccd);
        state ^= state >> 32;
    }
    return state;
}

static void rehash(struct by_values *values)
{
    free(values->slots);
    values->slot_count *= 2;
    values->slots = by_alloc(values->slot_count, sizeof(*values->slots));
    for (uint32_t v = 1; v < values->count; v++) {
        uint64_t at = hash(values, values->chunk[v], ranks_of(values, v));

        while (values->slots[at & (values->slot_count - 1)])
            at++;
        values->slots[at & (values->slot_count - 1)] = v;
    }
}

/* Returns the number of the value in the draft, and stores the value if it is new. */
static uint32_t intern(struct by_values *values, uint32_t chunk)
{
    size_t bytes = values->words * sizeof(*values->draft);
    uint64_t at = hash(values, chunk, values->draft);
    uint32_t found;

    for (;; at++) {
        found = values->slots[at & (values->slot_count - 1)];
        if (found == 0)
            break;
        if (values->chunk[found] == chunk && memcmp(ranks_of(values, found), values->draft, bytes) == 0)
            return found;
    }
    if (values->count >= values->count_max)
        return BY_VALUE_FULL;
    if (values->count == values->room) {
        values->room *= 2;
        values->chunk = by_realloc(values->chunk, values->room, sizeof(*values->chunk));
        values->ranks =
            by_realloc(values->ranks, (size_t)values->room * values->words, sizeof(*values->ranks));
    }
    values->chunk[values->count] = chunk;
    memcpy(values->ranks + (size_t)values->count * values->words, values->draft, bytes);
    values->slots[at & (values->slot_count - 1)] = values->count++;
    if (values->count > values->slot_count / 2)
        rehash(values);
    return values->count - 1;
}

uint32_t by_value_own(struct by_values *values, uint32_t chunk, uint32_t rank)
{
    BY_ASSERT(rank < values->rank_count);
    memset(values->draft, 0, values->words * sizeof(*values->draft));
    values->draft[rank / 64] |= UINT64_C(1) << (rank % 64);
    return intern(values, chunk);
}

uint32_t by_value_all(struct by_values *values, uint32_t chunk)
{
    memset(values->draft, 0, values->words * sizeof(*values->draft));
    for (uint32_t rank = 0; rank < values->rank_count; rank++)
        values->draft[rank / 64] |= UINT64_C(1) << (rank % 64);
    return intern(values, chunk);
}

uint32_t by_value_sum(struct by_values *values, uint32_t a, uint32_t b, int64_t *twice)
{
    *twice = -1;
    if (values->chunk[a] != values->chunk[b])
        return BY_VALUE_NONE;
    for (uint32_t w = 0; w < values->words; w++) {
        uint64_t left = ranks_of(values, a)[w], right = ranks_of(values, b)[w];

        if (left & right) {
            *twice = w * 64 + __builtin_ctzll(left & right);
            return BY_VALUE_NONE;
        }
        values->draft[w] = left | right;
    }
    return intern(values, values->chunk[a]);
}

uint32_t by_value_chunk(const struct by_values *values, uint32_t value)
{
    return values->chunk[value];
}

uint32_t by_value_count(const struct by_values *values, uint32_t value)
{
    uint32_t count = 0;

    for (uint32_t w = 0; w < values->words; w++)
        count += (uint32_t)__builtin_popcountll(ranks_of(values, value)[w]);
    return count;
}

bool by_value_has(const struct by_values *values, uint32_t value, uint32_t rank)
{
    return ranks_of(values, value)[rank / 64] >> (rank % 64) & 1;
}
