/* Crossover sizes: the lower envelope of lines. See crossover.h. */
#include "control/cli/crossover.h"

#include "offload/base/errors.h"

/* Computes the size at which the faster, but higher line `b` overtakes `a`. */
static int overtakes(const struct by_crossover_line *a, const struct by_crossover_line *b,
                     struct by_fraction *size)
{
    struct by_fraction hops = {(int64_t)(b->hops - a->hops), 1}, one = {1, 1}, slow = one, fast = one;
    int error = by_fraction_divide(one, a->rate, &slow);

    if (!error)
        error = by_fraction_divide(one, b->rate, &fast);
    if (!error)
        error = by_fraction_subtract(slow, fast, &slow);
    return error ? error : by_fraction_divide(hops, slow, size);
}

/* Whether `a` is faster than `b` for data of size 0, and just above it. */
static bool is_first(const struct by_crossover_line *a, const struct by_crossover_line *b)
{
    return a->hops != b->hops ? a->hops < b->hops : by_fraction_compare(a->rate, b->rate) > 0;
}

int by_crossovers(const struct by_crossover_line *lines, uint32_t count, struct by_crossover *found)
{
    uint32_t at = 0;
    int number = 0;

    for (uint32_t i = 1; i < count; i++)
        at = is_first(&lines[i], &lines[at]) ? i : at;
    if (count > 0)
        found[number++] = (struct by_crossover){at, {0, 1}};
    while (number > 0) {
        struct by_fraction best = {0, 1};
        uint32_t next = count;

        /* A line of higher rate has more hops, or it would have been found before. */
        for (uint32_t i = 0; i < count; i++) {
            struct by_fraction size;
            int order;

            if (by_fraction_compare(lines[i].rate, lines[at].rate) <= 0)
                continue;
            if (overtakes(&lines[at], &lines[i], &size) != 0)
                return BY_ERANGE;
            order = next == count ? -1 : by_fraction_compare(size, best);
            if (order < 0 || (order == 0 && by_fraction_compare(lines[i].rate, lines[next].rate) > 0)) {
                next = i;
                best = size;
            }
        }
        if (next == count)
            break;
        at = next;
        found[number++] = (struct by_crossover){at, best};
    }
    return number;
}
