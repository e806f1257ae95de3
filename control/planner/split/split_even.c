/*
 * Switch removal, all switches of a piece at once. See split.h. For each switch, a matrix holds how
 * much capacity from neighbour i continues to neighbour j. Its rows and columns add up to the
 * capacities, nothing returns to its origin, and otherwise it is as even as integers allow. One
 * oracle call at the end checks that every tree is kept. A violated cut is repaired by exchange: of
 * two pairs through one switch, one outside the cut and one inside, the ends are swapped, which
 * gains one unit of cut capacity for each unit.
 */
#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/planner/optimum/oracle.h"
#include "control/planner/split/relay.h"
#include "control/planner/split/split.h"
#include "offload/base/errors.h"

/* Exchanges across violated cuts before giving up (count). */
#define REPAIRS_MAX 400u
/* Rounds of proportional fitting (count). */
#define FIT_ROUNDS 24u
/* Fractions of a switch's capacity while fitting: 2^40 is all of it. */
#define FIT_BITS 40

/* One switch: its neighbours, and the amount from each entering to each leaving neighbour. */
struct split_even_hub {
    uint32_t node;
    uint32_t in_count, out_count;
    uint32_t *in, *out;
    int64_t *in_left, *out_left;
    int64_t *joined; /* [in index * out_count + out index] */
    uint8_t *weight; /* the same: 8 preferred, 2 avoided, 1 only if necessary, 0 back to its origin */
};

void by_split_make(struct by_split *split, const struct by_piece *piece, double deadline)
{
    uint32_t n = piece->count;
    const struct by_mesh *net = piece->net;

    *split = (struct by_split){
        .node_count = n, .roots = piece->roots, .outside = piece->outside, .deadline = deadline};
    split->capacity = by_alloc((size_t)n * n, sizeof(*split->capacity));
    split->targets = by_alloc(n, sizeof(*split->targets));
    split->remove = by_alloc(n, sizeof(*split->remove));
    split->compute = by_alloc(n, sizeof(*split->compute));
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        split->capacity[(size_t)net->tail[half] * n + by_mesh_head(net, half)] = net->capacity[half];
    for (uint32_t i = 0; i < n; i++) {
        split->remove[i] = piece->kind[i] == BY_PIECE_REMOVED;
        split->compute[i] = piece->kind[i] == BY_PIECE_COMPUTE || piece->kind[i] == BY_PIECE_GROUP;
        split->targets[i] = !split->remove[i] && i != piece->outside;
    }
}

void by_split_free(struct by_split *split)
{
    free(split->capacity);
    free(split->targets);
    free(split->remove);
    free(split->compute);
    free(split->joins);
    *split = (struct by_split){0};
}

static void hub_make(const struct by_split *split, uint32_t node, const uint32_t *level,
                     struct split_even_hub *hub)
{
    uint32_t n = split->node_count;

    *hub = (struct split_even_hub){.node = node};
    hub->in = by_alloc(n, sizeof(*hub->in));
    hub->out = by_alloc(n, sizeof(*hub->out));
    hub->in_left = by_alloc(n, sizeof(*hub->in_left));
    hub->out_left = by_alloc(n, sizeof(*hub->out_left));
    for (uint32_t i = 0; i < n; i++) {
        if ((hub->in_left[hub->in_count] = split->capacity[(size_t)i * n + node]) > 0)
            hub->in[hub->in_count++] = i;
        if ((hub->out_left[hub->out_count] = split->capacity[(size_t)node * n + i]) > 0)
            hub->out[hub->out_count++] = i;
    }
    hub->joined = by_alloc((size_t)hub->in_count * hub->out_count, sizeof(*hub->joined));
    hub->weight = by_alloc((size_t)hub->in_count * hub->out_count, sizeof(*hub->weight));
    for (uint32_t i = 0; i < hub->in_count; i++)
        for (uint32_t j = 0; j < hub->out_count; j++) {
            uint32_t u = hub->in[i], t = hub->out[j];
            uint8_t *weight = &hub->weight[(size_t)i * hub->out_count + j];

            if (u == t)
                *weight = 0;
            else if (split->remove[u] && split->remove[t])
                *weight = level[u] > level[node] && level[t] > level[node] ? 1 : 2;
            else
                *weight = 8;
        }
}

static void hub_free(struct split_even_hub *hub)
{
    free(hub->in);
    free(hub->out);
    free(hub->in_left);
    free(hub->out_left);
    free(hub->joined);
    free(hub->weight);
}

static void give(struct split_even_hub *hub, uint32_t i, uint32_t j, int64_t amount)
{
    hub->joined[(size_t)i * hub->out_count + j] += amount;
    hub->in_left[i] -= amount;
    hub->out_left[j] -= amount;
}

/* The most common case: a switch with equal links in both directions to equal neighbours. A
 * circulant matrix is exact at once. */
static bool fill_circulant(struct split_even_hub *hub)
{
    uint32_t n = hub->in_count;
    int64_t base, rest;

    if (n < 2 || n != hub->out_count)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (hub->in[i] != hub->out[i] || hub->in_left[i] != hub->in_left[0] ||
            hub->out_left[i] != hub->in_left[0])
            return false;
    for (size_t i = 0; i < (size_t)n * n; i++)
        if (hub->weight[i] != 8 && hub->weight[i] != 0)
            return false;
    base = hub->in_left[0] / (n - 1);
    rest = hub->in_left[0] % (n - 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t step = 1; step < n; step++)
            give(hub, i, (i + step) % n, base + (step <= rest));
    return true;
}

/* Scales the rows (or columns) of `part` to the capacities. Returns whether any changed by more
 * than a small amount. */
static bool fit(const struct split_even_hub *hub, uint64_t *part, bool rows, int64_t total)
{
    uint32_t outer = rows ? hub->in_count : hub->out_count, inner = rows ? hub->out_count : hub->in_count;
    bool moved = false;

    for (uint32_t a = 0; a < outer; a++) {
        int64_t left = rows ? hub->in_left[a] : hub->out_left[a];
        uint64_t wanted = (uint64_t)(((unsigned __int128)left << FIT_BITS) / (uint64_t)total), sum = 0;

        for (uint32_t b = 0; b < inner; b++)
            sum += part[rows ? (size_t)a * hub->out_count + b : (size_t)b * hub->out_count + a];
        if (sum == 0 || sum == wanted)
            continue;
        moved |= (sum > wanted ? sum - wanted : wanted - sum) > (wanted >> 14) + inner;
        for (uint32_t b = 0; b < inner; b++) {
            uint64_t *at = &part[rows ? (size_t)a * hub->out_count + b : (size_t)b * hub->out_count + a];

            *at = (uint64_t)((unsigned __int128)*at * wanted / sum);
        }
    }
    return moved;
}

/* Iterative proportional fitting, rounded down: the even part of the matrix. */
static void fill_fitted(struct split_even_hub *hub)
{
    size_t cells = (size_t)hub->in_count * hub->out_count;
    uint64_t *part = by_alloc(cells, sizeof(*part));
    int64_t total = 0;

    for (uint32_t i = 0; i < hub->in_count; i++)
        total += hub->in_left[i];
    for (uint32_t i = 0; i < hub->in_count; i++)
        for (uint32_t j = 0; j < hub->out_count; j++)
            part[(size_t)i * hub->out_count + j] =
                (uint64_t)hub->weight[(size_t)i * hub->out_count + j] *
                ((uint64_t)((((unsigned __int128)hub->in_left[i] * (uint64_t)hub->out_left[j]) << 30) /
                            ((unsigned __int128)total * (uint64_t)total)) +
                 1);
    for (uint32_t round = 0; round < FIT_ROUNDS; round++) {
        bool moved = fit(hub, part, true, total);

        moved |= fit(hub, part, false, total);
        if (!moved)
            break;
    }
    for (uint32_t i = 0; i < hub->in_count; i++)
        for (uint32_t j = 0; j < hub->out_count; j++) {
            /* An amount within an eighth of the next integer is rounded up to it. */
            int64_t amount =
                (int64_t)(((unsigned __int128)part[(size_t)i * hub->out_count + j] * (uint64_t)total +
                           ((uint64_t)1 << (FIT_BITS - 3))) >>
                          FIT_BITS);

            amount = amount < hub->in_left[i] ? amount : hub->in_left[i];
            amount = amount < hub->out_left[j] ? amount : hub->out_left[j];
            give(hub, i, j, amount);
        }
    free(part);
}

/* Distributes the rounding remainders to pairs of at least this weight, in small steps along the
 * diagonals. */
static void fill_rest(struct split_even_hub *hub, uint8_t least)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t offset = 0; offset < hub->out_count; offset++)
            for (uint32_t i = 0; i < hub->in_count; i++) {
                uint32_t j = (i + offset + 1) % hub->out_count;
                int64_t amount = hub->in_left[i] < hub->out_left[j] ? hub->in_left[i] : hub->out_left[j];

                if (amount == 0 || hub->weight[(size_t)i * hub->out_count + j] < least)
                    continue;
                give(hub, i, j, amount > 16 ? amount / 8 : 1);
                moved = true;
            }
    }
}

/* Places capacity that is left over at entering i and leaving j: another pair (a, b) is replaced by
 * (i, b) and (a, j). */
static bool exchange(struct split_even_hub *hub, uint32_t i, uint32_t j)
{
    for (uint32_t a = 0; a < hub->in_count; a++)
        for (uint32_t b = 0; b < hub->out_count; b++) {
            int64_t amount = hub->joined[(size_t)a * hub->out_count + b];

            amount = amount < hub->in_left[i] ? amount : hub->in_left[i];
            amount = amount < hub->out_left[j] ? amount : hub->out_left[j];
            if (amount == 0 || a == i || b == j || !hub->weight[(size_t)i * hub->out_count + b] ||
                !hub->weight[(size_t)a * hub->out_count + j])
                continue;
            give(hub, a, b, -amount);
            give(hub, i, b, amount);
            give(hub, a, j, amount);
            return true;
        }
    return false;
}

/* Whether the switch has links to all nodes, both ways, there are no others, and the nodes have
 * different numbers of trees. */
static bool is_uneven_star(const struct by_split *split, const struct split_even_hub *hub)
{
    uint32_t n = split->node_count, count = hub->in_count;
    bool uneven = false;

    if (count != n - 1 || hub->out_count != count || split->outside < n)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (hub->in[i] != hub->out[i] || split->remove[hub->in[i]])
            return false;
        uneven |= split->roots[hub->in[i]] != split->roots[hub->in[0]];
        for (uint32_t j = 0; j < count; j++)
            if (split->capacity[(size_t)hub->in[i] * n + hub->in[j]] > 0)
                return false;
    }
    return uneven;
}

/* Joins what trees over relays need. */
static bool fill_relays(const struct by_split *split, struct split_even_hub *hub)
{
    uint32_t n = hub->in_count;
    int64_t *roots, *load;
    struct by_split_relay_list list;
    bool found;

    if (!is_uneven_star(split, hub))
        return false;
    roots = by_alloc(n, sizeof(*roots));
    load = by_alloc((size_t)n * n, sizeof(*load));
    for (uint32_t i = 0; i < n; i++)
        roots[i] = split->roots[hub->in[i]];
    found = by_split_relay_find(n, roots, hub->in_left, hub->out_left, &list);
    if (found)
        by_split_relay_load(n, roots, &list, load);
    for (uint32_t i = 0; i < n && found; i++)
        for (uint32_t j = 0; j < n; j++)
            give(hub, i, j, load[(size_t)i * n + j]);
    for (uint32_t i = 0; i < n && found; i++) /* the rest has no use */
        give(hub, i, i, hub->in_left[i] < hub->out_left[i] ? hub->in_left[i] : hub->out_left[i]);
    if (found)
        fill_rest(hub, 0);
    free(list.relays);
    free(load);
    free(roots);
    return found;
}

static void fill(struct split_even_hub *hub)
{
    if (fill_circulant(hub))
        return;
    fill_fitted(hub);
    fill_rest(hub, 8);
    for (int last = 0; last < 2; last++) {
        for (uint32_t i = 0; i < hub->in_count; i++)
            for (uint32_t j = 0; j < hub->out_count; j++)
                while (hub->in_left[i] > 0 && hub->out_left[j] > 0 && exchange(hub, i, j))
                    continue;
        fill_rest(hub, (uint8_t)(1 - last)); /* in the last round, capacity may be discarded */
    }
}

/* Fills the matrix of every switch. */
static void spread(struct by_split *split)
{
    uint32_t *level = by_alloc(split->node_count, sizeof(*level));
    uint32_t *order = by_alloc(split->node_count, sizeof(*order)),
             count = by_split_order(split, level, order);

    for (uint32_t s = 0; s < count; s++) {
        struct split_even_hub hub;

        hub_make(split, order[s], level, &hub);
        if (!fill_relays(split, &hub))
            fill(&hub);
        for (uint32_t i = 0; i < hub.in_count; i++)
            for (uint32_t j = 0; j < hub.out_count; j++)
                if (hub.joined[(size_t)i * hub.out_count + j] > 0)
                    by_split_join(split, hub.in[i], hub.node, hub.out[j],
                                  hub.joined[(size_t)i * hub.out_count + j]);
        hub_free(&hub);
    }
    free(order);
    free(level);
}

/* Calls the oracle. Returns how much capacity the violated cut lacks, 0 when there is none;
 * `inside` is the cut. */
static int64_t find_violation(const struct by_split *split, bool *inside)
{
    uint32_t n = split->node_count, count = 0, room = 0;
    uint32_t *order = by_alloc(n, sizeof(*order));
    struct by_mesh_arc *arcs = NULL;
    struct by_reach *reach;
    struct by_mesh *net;
    int64_t total = 0, lacking = 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (split->capacity[(size_t)i * n + j] > 0) {
                BY_GROW(arcs, count, room);
                arcs[count++] = (struct by_mesh_arc){i, j, split->capacity[(size_t)i * n + j]};
            }
    net = by_mesh_new(n, arcs, count);
    net->deadline = split->deadline;
    reach = by_reach_new(net);
    by_oracle_order(net, order);
    for (uint32_t i = 0; i < n; i++) {
        by_reach_set_root(reach, i, split->roots[i]);
        total += split->roots[i];
    }
    if (by_oracle_ask(reach, order, total, split->targets) >= 0) {
        lacking = total;
        for (uint32_t i = 0; i < n; i++) {
            inside[i] = by_reach_inside(reach, i);
            lacking -= inside[i] ? split->roots[i] : 0;
        }
        lacking -= by_mesh_entering_set(net, inside);
    }
    by_reach_free(reach);
    by_mesh_free(net);
    free(order);
    free(arcs);
    return lacking;
}

/* Whether both ends of a join remain, so that exchanging them changes no other join. */
static bool is_final(const struct by_split *split, const struct by_join *join)
{
    return join->amount > 0 && !split->remove[join->from] && !split->remove[join->to];
}

/* Swaps the ends of `amount` of two joins through one switch. */
static void swap_ends(struct by_split *split, uint32_t a, uint32_t b, int64_t amount)
{
    struct by_join x = split->joins[a], y = split->joins[b];
    uint32_t n = split->node_count;

    split->joins[a].amount -= amount;
    split->joins[b].amount -= amount;
    split->capacity[(size_t)x.from * n + x.to] -= amount;
    split->capacity[(size_t)y.from * n + y.to] -= amount;
    split->capacity[(size_t)x.from * n + x.through] += amount; /* by_split_join subtracts these again */
    split->capacity[(size_t)y.from * n + y.through] += amount;
    split->capacity[(size_t)x.through * n + x.to] += amount;
    split->capacity[(size_t)y.through * n + y.to] += amount;
    by_split_join(split, x.from, x.through, y.to, amount);
    by_split_join(split, y.from, y.through, x.to, amount);
}

/* Gains the capacity that the violated cut lacks; false when the exchanges do not suffice. Each
 * pair contributes a part at a time, so that the change is spread. */
static bool repair(struct by_split *split, const bool *inside, int64_t lacking)
{
    for (int share = 4; share >= 1 && lacking > 0; share /= 2) {
        uint32_t count = split->join_count, b = 0;

        for (uint32_t a = 0; a < count && lacking > 0; a++) {
            const struct by_join *x = &split->joins[a];

            if (!is_final(split, x) || inside[x->from] || inside[x->to])
                continue;
            for (uint32_t tried = 0; tried < count && lacking > 0 && split->joins[a].amount > 0; tried++) {
                const struct by_join *y;
                int64_t amount;

                x = &split->joins[a];
                b = b + 1 < count ? b + 1 : 0;
                y = &split->joins[b];
                if (y->through != x->through || !is_final(split, y) || !inside[y->from] || !inside[y->to] ||
                    x->from == y->to || y->from == x->to)
                    continue;
                amount = (y->amount + share - 1) / share;
                amount = amount < (x->amount + share - 1) / share ? amount : (x->amount + share - 1) / share;
                amount = amount < lacking ? amount : lacking;
                swap_ends(split, a, b, amount);
                lacking -= amount;
            }
        }
    }
    return lacking == 0;
}

int by_split_run(struct by_split *split)
{
    uint32_t n = split->node_count;
    size_t cells = (size_t)n * n;
    int64_t *before = by_alloc(cells, sizeof(*before)), lacking;
    bool *inside = by_alloc(n, sizeof(*inside));
    uint32_t repairs = 0;
    int error = 0;

    memcpy(before, split->capacity, cells * sizeof(*before));
    spread(split);
    while ((lacking = find_violation(split, inside)) > 0) {
        if (by_plan_late(split->deadline) || repairs++ == REPAIRS_MAX || !repair(split, inside, lacking))
            break;
    }
    if (by_plan_late(split->deadline)) {
        error = BY_ETIMEDOUT;
    } else if (lacking > 0) {
        memcpy(split->capacity, before, cells * sizeof(*before));
        split->join_count = 0;
        error = by_split_exactly(split);
    }
    free(before);
    free(inside);
    return error;
}
