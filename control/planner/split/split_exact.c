/*
 * Switch removal, switch by switch. See split.h. Every cut that an attempt ever violated is kept
 * ("learned"). Its slack bounds how much may be joined between two nodes on the side of the cut
 * opposite to the switch.
 */
#include "control/planner/split/split.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/planner/flow/flow.h"
#include "control/planner/optimum/oracle.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Attempts to split a whole switch evenly before its pairs are joined one by one (count). */
#define EVEN_ATTEMPTS_MAX 96u

struct learned {
    uint32_t count;
    uint32_t room;
    bool **side;    /* by cut: the nodes that data must enter */
    int64_t *spare; /* by cut: slack left in the current attempt */
};

/* One switch: its neighbours, and the amount joined from each entering to each
 * leaving neighbour. */
struct split_exact_hub {
    uint32_t node;
    uint32_t in_count, out_count;
    uint32_t *in, *out;
    int64_t *in_left, *out_left;
    int64_t *joined; /* [in index * out_count + out index] */
};

static void learn(struct learned *cuts, uint32_t node_count, const bool *side)
{
    for (uint32_t i = 0; i < cuts->count; i++)
        if (memcmp(cuts->side[i], side, node_count * sizeof(*side)) == 0)
            return;
    if (cuts->count == cuts->room) {
        cuts->room = cuts->room ? cuts->room * 2 : 32;
        cuts->side = by_realloc(cuts->side, cuts->room, sizeof(*cuts->side));
        cuts->spare = by_realloc(cuts->spare, cuts->room, sizeof(*cuts->spare));
    }
    cuts->side[cuts->count] = by_alloc(node_count, sizeof(*side));
    memcpy(cuts->side[cuts->count], side, node_count * sizeof(*side));
    cuts->spare[cuts->count++] = 0;
}

/* The slack of a set: capacity entering it, plus the trees that start inside, minus all trees. */
static int64_t slack(const struct by_split *split, const bool *inside)
{
    uint32_t n = split->node_count;
    int64_t sum = 0;

    for (uint32_t from = 0; from < n; from++) {
        sum -= inside[from] ? 0 : split->roots[from];
        for (uint32_t to = 0; to < n && !inside[from]; to++)
            sum += inside[to] ? split->capacity[(size_t)from * n + to] : 0;
    }
    return sum;
}

/* Computes the slack of every learned cut in the current graph. */
static void refresh_spare(const struct by_split *split, struct learned *cuts)
{
    for (uint32_t i = 0; i < cuts->count; i++)
        cuts->spare[i] = slack(split, cuts->side[i]);
}

/* Whether joining u->w->t lowers a cut: u and t are on one side and w is on the other. */
static bool cut_is_lowered(const bool *side, uint32_t u, uint32_t w, uint32_t t)
{
    return side[u] == side[t] && side[u] != side[w];
}

static int64_t allowed(const struct learned *cuts, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
    for (uint32_t i = 0; i < cuts->count && amount > 0; i++)
        if (cut_is_lowered(cuts->side[i], u, w, t) && cuts->spare[i] < amount)
            amount = cuts->spare[i];
    return amount < 0 ? 0 : amount;
}

static void spend(struct learned *cuts, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
    for (uint32_t i = 0; i < cuts->count; i++)
        if (cut_is_lowered(cuts->side[i], u, w, t))
            cuts->spare[i] -= amount;
}

static void hub_make(const struct by_split *split, uint32_t node, struct split_exact_hub *hub)
{
    uint32_t n = split->node_count;

    *hub = (struct split_exact_hub){.node = node};
    hub->in = by_alloc(n, sizeof(*hub->in));
    hub->out = by_alloc(n, sizeof(*hub->out));
    for (uint32_t i = 0; i < n; i++) {
        if (split->capacity[(size_t)i * n + node])
            hub->in[hub->in_count++] = i;
        if (split->capacity[(size_t)node * n + i])
            hub->out[hub->out_count++] = i;
    }
    hub->in_left = by_alloc(hub->in_count, sizeof(*hub->in_left));
    hub->out_left = by_alloc(hub->out_count, sizeof(*hub->out_left));
    hub->joined = by_alloc((size_t)hub->in_count * hub->out_count, sizeof(*hub->joined));
}

static void hub_free(struct split_exact_hub *hub)
{
    free(hub->in);
    free(hub->out);
    free(hub->in_left);
    free(hub->out_left);
    free(hub->joined);
}

/* Resets the switch to no joins. */
static void hub_reset(const struct by_split *split, struct split_exact_hub *hub)
{
    uint32_t n = split->node_count;

    memset(hub->joined, 0, (size_t)hub->in_count * hub->out_count * sizeof(*hub->joined));
    for (uint32_t i = 0; i < hub->in_count; i++)
        hub->in_left[i] = split->capacity[(size_t)hub->in[i] * n + hub->node];
    for (uint32_t i = 0; i < hub->out_count; i++)
        hub->out_left[i] = split->capacity[(size_t)hub->node * n + hub->out[i]];
}

/* Joins up to `amount` of pair (i, j); a negative amount undoes joins. Returns the
 * amount joined. */
static int64_t hub_join(struct split_exact_hub *hub, struct learned *cuts, uint32_t i, uint32_t j,
                        int64_t amount)
{
    uint32_t u = hub->in[i], t = hub->out[j];

    if (amount > 0) {
        amount = amount < hub->in_left[i] ? amount : hub->in_left[i];
        amount = amount < hub->out_left[j] ? amount : hub->out_left[j];
        amount = allowed(cuts, u, hub->node, t, amount);
    }
    hub->joined[(size_t)i * hub->out_count + j] += amount;
    hub->in_left[i] -= amount;
    hub->out_left[j] -= amount;
    spend(cuts, u, hub->node, t, amount);
    return amount;
}

/* Ranks a pair: 0 is preferred; 1 joins two neighbours without compute nodes (switches, the
 * outside); 2 leads back to its origin and discards capacity. */
static int pair_rank(const struct by_split *split, uint32_t u, uint32_t t)
{
    if (u == t)
        return 2;
    return !split->compute[u] && !split->compute[t];
}

/* Joins pairs of one rank, in turns of a fair share each, until none can grow. */
static void fill_rank(const struct by_split *split, struct split_exact_hub *hub, struct learned *cuts,
                      int rank)
{
    int64_t total = 0, moved = 1;
    bool first = true;

    for (uint32_t i = 0; i < hub->in_count; i++)
        total += hub->in_left[i];
    while (moved > 0) {
        moved = 0;
        for (uint32_t offset = 0; offset < hub->out_count; offset++) {
            for (uint32_t i = 0; i < hub->in_count; i++) {
                uint32_t j = (i + offset + 1) % hub->out_count;
                int64_t share;

                if (hub->in_left[i] == 0 || hub->out_left[j] == 0 ||
                    pair_rank(split, hub->in[i], hub->out[j]) != rank)
                    continue;
                if (first)
                    share = (int64_t)((__int128)hub->in_left[i] * hub->out_left[j] / total);
                else
                    share = hub->in_left[i] / (hub->out_count + 1);
                moved += hub_join(hub, cuts, i, j, share > 0 ? share : 1);
            }
        }
        first = false;
    }
}

/* Places capacity that is left over at entering i and leaving j: another pair (a, b) is replaced by
 * (i, b) and (a, j). */
static bool exchange(struct split_exact_hub *hub, struct learned *cuts, uint32_t i, uint32_t j)
{
    for (uint32_t a = 0; a < hub->in_count; a++) {
        for (uint32_t b = 0; b < hub->out_count; b++) {
            int64_t amount = hub->joined[(size_t)a * hub->out_count + b], taken;

            amount = amount < hub->in_left[i] ? amount : hub->in_left[i];
            amount = amount < hub->out_left[j] ? amount : hub->out_left[j];
            if (amount == 0 || a == i || b == j || hub->in[i] == hub->out[b] || hub->in[a] == hub->out[j])
                continue;
            hub_join(hub, cuts, a, b, -amount);
            taken = hub_join(hub, cuts, i, b, amount);
            if (taken > 0) {
                int64_t other = hub_join(hub, cuts, a, j, taken);

                if (other < taken)
                    hub_join(hub, cuts, i, b, other - taken);
                hub_join(hub, cuts, a, b, amount - other);
                taken = other;
            } else {
                hub_join(hub, cuts, a, b, amount);
            }
            if (taken > 0)
                return true;
        }
    }
    return false;
}

/* Joins the whole switch evenly within the learned cuts; false when something is left over. */
static bool fill_evenly(const struct by_split *split, struct split_exact_hub *hub, struct learned *cuts)
{
    bool left = false;

    hub_reset(split, hub);
    refresh_spare(split, cuts);
    fill_rank(split, hub, cuts, 0);
    fill_rank(split, hub, cuts, 1);
    for (uint32_t i = 0; i < hub->in_count; i++)
        for (uint32_t j = 0; j < hub->out_count; j++)
            while (hub->in_left[i] > 0 && hub->out_left[j] > 0 && exchange(hub, cuts, i, j))
                continue;
    fill_rank(split, hub, cuts, 2);
    for (uint32_t i = 0; i < hub->in_count; i++)
        left |= hub->in_left[i] > 0;
    return !left;
}

/* Moves `amount` of capacity from u->w->t to u->t. */
static void join_capacity(uint32_t n, int64_t *capacity, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
    capacity[(size_t)u * n + w] -= amount;
    capacity[(size_t)w * n + t] -= amount;
    if (u != t)
        capacity[(size_t)u * n + t] += amount;
}

void by_split_join(struct by_split *split, uint32_t u, uint32_t w, uint32_t t, int64_t amount)
{
    BY_GROW(split->joins, split->join_count, split->join_room);
    split->joins[split->join_count++] = (struct by_join){u, w, t, amount};
    join_capacity(split->node_count, split->capacity, u, w, t, amount);
}

/* Tries to split the whole switch at once; after a failure, learns the violated cut and tries
 * again. */
static bool split_evenly(struct by_split *split, struct split_exact_hub *hub, struct learned *cuts)
{
    uint32_t n = split->node_count;
    int64_t *trial = by_alloc((size_t)n * n, sizeof(*trial));
    bool *inside = by_alloc(n, sizeof(*inside)), done = false;

    for (uint32_t attempt = 0; attempt < EVEN_ATTEMPTS_MAX && !done && !by_plan_late(split->deadline);
         attempt++) {
        if (!fill_evenly(split, hub, cuts))
            break;
        memcpy(trial, split->capacity, (size_t)n * n * sizeof(*trial));
        for (uint32_t i = 0; i < hub->in_count; i++)
            for (uint32_t j = 0; j < hub->out_count; j++)
                join_capacity(n, trial, hub->in[i], hub->node, hub->out[j],
                              hub->joined[(size_t)i * hub->out_count + j]);
        done = by_oracle_check(n, trial, split->roots, split->targets, inside) < 0;
        if (!done)
            learn(cuts, n, inside);
    }
    for (uint32_t i = 0; i < hub->in_count && done; i++)
        for (uint32_t j = 0; j < hub->out_count; j++) {
            int64_t amount = hub->joined[(size_t)i * hub->out_count + j];

            if (amount > 0)
                by_split_join(split, hub->in[i], hub->node, hub->out[j], amount);
        }
    free(trial);
    free(inside);
    return done;
}

/*
 * Theorem 6: the largest amount of u->w->t that may be joined. `entering` selects the cuts with w
 * and a target inside and u, t outside, or those with u, t and a target inside and w outside;
 * infinite arcs keep the nodes on their sides. Lowers `amount` to the slack of these cuts.
 */
static int64_t exact_amount(const struct by_split *split, struct learned *cuts, uint32_t u, uint32_t w,
                            uint32_t t, bool entering, int64_t amount)
{
    uint32_t n = split->node_count, s = n, from = entering ? u : w, to = entering ? w : t;
    struct by_flow *flow = by_flow_new(n + 1);
    uint32_t *hold = by_alloc(n, sizeof(*hold));
    bool *side = by_alloc(n + 1, sizeof(*side));
    int64_t total = 0;

    for (uint32_t i = 0; i < n * n; i++)
        if (split->capacity[i])
            by_flow_add(flow, i / n, i % n, split->capacity[i]);
    for (uint32_t i = 0; i < n; i++) {
        by_flow_add(flow, s, i, split->roots[i]);
        total += split->roots[i];
        hold[i] = i == to ? UINT32_MAX : by_flow_add(flow, i, to, 0);
    }
    by_flow_add(flow, from, s, BY_FLOW_INFINITE);
    if (u != t)
        by_flow_add(flow, u, t, BY_FLOW_INFINITE);
    for (uint32_t v = 0; v < n && amount > 0; v++) {
        int64_t found;

        if (!split->targets[v] || (entering && (v == u || v == t)))
            continue;
        if (hold[v] != UINT32_MAX)
            by_flow_set(flow, hold[v], BY_FLOW_INFINITE);
        found = by_flow_run(flow, from, to, total + amount);
        if (found < total + amount) {
            amount = found - total;
            by_flow_sink_side(flow, side);
            learn(cuts, n, side);
        }
        if (hold[v] != UINT32_MAX)
            by_flow_set(flow, hold[v], 0);
    }
    by_flow_free(flow);
    free(hold);
    free(side);
    return amount;
}

static void split_exactly(struct by_split *split, struct split_exact_hub *hub, struct learned *cuts)
{
    uint32_t n = split->node_count, w = hub->node;

    refresh_spare(split, cuts);
    for (int loops = 0; loops < 2; loops++) {
        for (uint32_t j = 0; j < hub->out_count; j++) {
            for (uint32_t i = 0; i < hub->in_count; i++) {
                uint32_t u = hub->in[(i + j + 1) % hub->in_count], t = hub->out[j];
                int64_t amount = split->capacity[(size_t)u * n + w],
                        leaving = split->capacity[(size_t)w * n + t];

                amount = amount < leaving ? amount : leaving;
                amount = allowed(cuts, u, w, t, amount);
                if ((u == t) != (loops == 1) || amount == 0 || by_plan_late(split->deadline))
                    continue;
                amount = exact_amount(split, cuts, u, w, t, true, amount);
                amount = exact_amount(split, cuts, u, w, t, false, amount);
                if (amount > 0)
                    by_split_join(split, u, w, t, amount);
                refresh_spare(split, cuts);
            }
        }
    }
}

uint32_t by_split_order(const struct by_split *split, uint32_t *level, uint32_t *order)
{
    uint32_t n = split->node_count, highest = 0, count = 0;
    bool changed = true;

    for (uint32_t i = 0; i < n; i++)
        level[i] = split->compute[i] ? 0 : n;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n && level[i] < n; j++)
                if (level[i] + 1 < level[j] && split->capacity[(size_t)i * n + j]) {
                    level[j] = level[i] + 1;
                    changed = true;
                }
    }
    for (uint32_t i = 0; i < n; i++)
        highest = split->remove[i] && level[i] > highest ? level[i] : highest;
    for (uint32_t at = highest + 1; at-- > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (split->remove[i] && level[i] == at)
                order[count++] = i;
    return count;
}

/* Returns 0, or BY_ETIMEDOUT when the deadline has passed: the switch may then have capacity
 * left. */
static int remove_switch(struct by_split *split, uint32_t node, struct learned *cuts)
{
    uint32_t n = split->node_count;
    struct split_exact_hub hub;

    hub_make(split, node, &hub);
    if (hub.in_count > 0 && !split_evenly(split, &hub, cuts))
        split_exactly(split, &hub, cuts);
    hub_free(&hub);
    if (by_plan_late(split->deadline))
        return BY_ETIMEDOUT;
    for (uint32_t i = 0; i < n; i++)
        BY_ASSERT(split->capacity[(size_t)i * n + node] == 0 && split->capacity[(size_t)node * n + i] == 0);
    return 0;
}

int by_split_exactly(struct by_split *split)
{
    uint32_t *level = by_alloc(split->node_count, sizeof(*level));
    uint32_t *order = by_alloc(split->node_count, sizeof(*order)),
             count = by_split_order(split, level, order);
    struct learned cuts = {0};
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++)
        error = remove_switch(split, order[i], &cuts);
    for (uint32_t i = 0; i < cuts.count; i++)
        free(cuts.side[i]);
    free(cuts.side);
    free(cuts.spare);
    free(order);
    free(level);
    return error;
}
