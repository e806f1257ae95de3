/* Trees through one switch. See relay.h. */
#include "control/planner/split/relay.h"

#include "control/base/alloc.h"

/* Finds how many sends of its trees a node must leave to relays; negative: how many it can do for
 * others. False where the numbers are too large. */
static bool find_need(uint32_t n, int64_t roots, int64_t out, int64_t *need)
{
    int64_t all;

    if (__builtin_mul_overflow(roots, (int64_t)n - 1, &all) || all > INT64_MAX / 2 || out > INT64_MAX / 2)
        return false;
    *need = all - out;
    return true;
}

/* Gives the sends of each root that needs relays to the first nodes that still have room. */
static bool assign(uint32_t n, const int64_t *roots, int64_t *need, struct by_split_relay_list *list)
{
    uint32_t through = 0;

    for (uint32_t from = 0; from < n; from++) {
        int64_t trees = 0; /* of this root that have relays */

        while (need[from] > 0) {
            int64_t sends;

            while (through < n && need[through] >= 0)
                through++;
            if (through == n)
                return false;
            sends = need[from] < -need[through] ? need[from] : -need[through];
            BY_GROW(list->relays, list->count, list->room);
            list->relays[list->count++] = (struct by_split_relay){.from = from,
                                                                  .through = through,
                                                                  .rest = (uint32_t)(sends % (n - 2)),
                                                                  .amount = sends / (n - 2)};
            trees += (sends + n - 3) / (n - 2);
            need[from] -= sends;
            need[through] += sends;
        }
        if (trees > roots[from])
            return false;
    }
    return true;
}

uint32_t by_split_relay_next(const struct by_split_relay *relay, uint32_t node, uint32_t n)
{
    do
        node = node + 1 < n ? node + 1 : 0;
    while (node == relay->from || node == relay->through);
    return node;
}

bool by_split_relay_find(uint32_t n, const int64_t *roots, const int64_t *out, const int64_t *in,
                         struct by_split_relay_list *list)
{
    int64_t *need = by_alloc(n, sizeof(*need)), total = 0;
    bool right = n > 3;

    *list = (struct by_split_relay_list){0};
    for (uint32_t i = 0; i < n && right; i++)
        right = !__builtin_add_overflow(total, roots[i], &total) && find_need(n, roots[i], out[i], &need[i]);
    for (uint32_t i = 0; i < n && right; i++)
        right = total - roots[i] <= in[i];
    right = right && assign(n, roots, need, list);
    free(need);
    if (!right) {
        free(list->relays);
        *list = (struct by_split_relay_list){0};
    }
    return right;
}

void by_split_relay_load(uint32_t n, const int64_t *roots, const struct by_split_relay_list *list,
                         int64_t *load)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            load[i * n + j] = i == j ? 0 : roots[i];
    for (uint32_t r = 0; r < list->count; r++) {
        const struct by_split_relay *relay = &list->relays[r];
        uint32_t node = relay->through;

        for (uint32_t sent = 0; sent < n - 2; sent++) {
            int64_t amount = relay->amount + (sent < relay->rest);

            node = by_split_relay_next(relay, node, n);
            load[(size_t)relay->from * n + node] -= amount;
            load[(size_t)relay->through * n + node] += amount;
        }
    }
}
