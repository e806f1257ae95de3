/* Implements naive.h: the straightforward construction of the schedules. */
#include "tests/unit/host-driver/circulant/naive.h"

/* Returns the largest k with skip[k] <= rank; rank > 0. */
static uint32_t home_of(const struct by_circulant *circulant, uint32_t rank)
{
    uint32_t k = circulant->phase;

    while (circulant->skip[k] > rank)
        k--;
    return k;
}

static uint32_t baseblock(const struct by_circulant *circulant, uint32_t rank)
{
    uint32_t k = home_of(circulant, rank);

    while (rank > circulant->skip[k]) {
        rank -= circulant->skip[k];
        k = home_of(circulant, rank);
    }
    return k;
}

/* Returns a bitmap of the baseblocks of the ranks first ... last, 1 <= first <= last < p (algorithm
 * 3). */
static uint32_t blocks_between(const struct by_circulant *circulant, uint32_t first, uint32_t last)
{
    uint32_t blocks = 0;

    while (first <= last) {
        uint32_t k = home_of(circulant, last);
        uint32_t home = circulant->skip[k];

        if (first <= home) {
            blocks |= 1u << k;
            if (last > home && first < home) /* the ranks after `home` repeat those from 1 on */
                blocks |= (2u << home_of(circulant, last - home)) - 1;
            if (first < home) {
                last = home - 1;
                continue;
            }
            first++;
        }
        first -= home;
        last -= home;
    }
    return blocks;
}

/* The same for a range whose lower ranks may be negative: p is added to them. The root has no
 * baseblock. */
static uint32_t blocks_around(const struct by_circulant *circulant, int64_t first, int64_t last)
{
    int64_t p = circulant->rank_count;
    uint32_t blocks = 0;

    if (first <= -p)
        first = 1 - p;
    if (first < 0)
        blocks |= blocks_between(circulant, (uint32_t)(first + p), (uint32_t)((last < 0 ? last : -1) + p));
    if (last > 0)
        blocks |= blocks_between(circulant, first > 0 ? (uint32_t)first : 1, (uint32_t)last);
    return blocks;
}

bool by_naive_receive(const struct by_circulant *circulant, uint32_t rank, uint32_t count, int8_t *receive)
{
    const uint32_t *skip = circulant->skip;
    uint32_t q = circulant->phase;
    int64_t r = rank, sum = 0;
    uint32_t had = rank > 0 ? 1u << baseblock(circulant, rank) : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t found, b;

        sum += skip[i];
        if (skip[i] <= rank && rank < skip[i + 1]) {
            receive[i] = (int8_t)baseblock(circulant, rank);
            continue;
        }
        if (i == 0)
            found = 1u << baseblock(circulant, rank > 0 ? rank - 1 : circulant->rank_count - 1);
        else if (i < q - 1)
            found = blocks_around(circulant, r - skip[i + 1] + 1, r - skip[i]);
        else
            found = (1u << q) - 1;
        if ((found & ~had) == 0)
            found = blocks_around(circulant, r - sum, r - skip[i + 1]);
        found &= ~had;
        if (found == 0)
            return false;
        b = 31u - (uint32_t)__builtin_clz(found);
        had |= 1u << b;
        receive[i] = (int8_t)((int)b - (int)q);
    }
    return true;
}

bool by_naive_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send)
{
    for (uint32_t i = 0; i < circulant->phase; i++) {
        uint32_t to = (uint32_t)(((uint64_t)rank + circulant->skip[i]) % circulant->rank_count);
        int8_t receive[BY_CIRCULANT_PHASE_MAX];

        if (!by_naive_receive(circulant, to, i + 1, receive))
            return false;
        send[i] = to == 0 && rank == 0 ? (int8_t)i : receive[i];
    }
    return true;
}
