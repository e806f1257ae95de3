/*
 * Presets that are hard to plan for: boxes of different sizes behind a narrow trunk, boxes whose
 * GPUs reach the network through PCIe switches and NICs, random regular graphs. See preset.h;
 * vary.c fails links and scatters bandwidths.
 */
#include "control/base/alloc.h"
#include "control/fabric/preset/preset.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

/* Attempts to find a random Hamiltonian cycle that repeats no link (count). For degrees far below
 * the number of hosts, one in a few succeeds. */
#define CIRCLE_TRIES_MAX 10000u

static const struct by_place nowhere = {0, 0};

static void link_both(struct by_builder *builder, int64_t a, int64_t b, struct by_fraction bandwidth)
{
    by_builder_link(builder, (uint32_t)a, (uint32_t)b, true, bandwidth, nowhere);
}

static int refuse_count(int64_t nodes, struct by_problem *problem)
{
    return by_problem_set(problem, BY_ELIMIT, nowhere, "this fabric would have %lld nodes; the limit is %u",
                          (long long)nodes, BY_TOPOLOGY_NODES_MAX);
}

/* The possible boxes of the heterogeneous preset. */
static const struct {
    int64_t gpus, inside, outside;
} box_kinds[] = {{4, 100, 25}, {8, 300, 25}, {8, 450, 50}, {12, 200, 16}};

int by_preset_hetero(struct by_builder *builder, const struct by_preset_values *values,
                     struct by_problem *problem)
{
    int64_t boxes = values->count[0], sites = values->count[1], all = 0, gpu = 0;
    struct by_prng prng = {(uint64_t)values->count[3]};
    unsigned *kinds = by_alloc((size_t)boxes, sizeof(*kinds));

    for (int64_t i = 0; i < boxes; i++) {
        kinds[i] = (unsigned)by_prng_below(&prng, sizeof(box_kinds) / sizeof(box_kinds[0]));
        all += box_kinds[kinds[i]].gpus;
    }
    if (all + boxes + sites > BY_TOPOLOGY_NODES_MAX) {
        free(kinds);
        return refuse_count(all + boxes + sites, problem);
    }
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "gpu%lld", (long long)i);
    for (int64_t i = 0; i < boxes; i++)
        by_builder_switch(builder, "box%lld", (long long)i);
    for (int64_t i = 0; i < sites; i++)
        by_builder_switch(builder, "site%lld", (long long)i);
    for (int64_t box = 0; box < boxes; box++)
        for (int64_t i = 0; i < box_kinds[kinds[box]].gpus; i++, gpu++) {
            link_both(builder, gpu, all + box, (struct by_fraction){box_kinds[kinds[box]].inside, 1});
            link_both(builder, gpu, all + boxes + box * sites / boxes,
                      (struct by_fraction){box_kinds[kinds[box]].outside, 1});
        }
    for (int64_t i = 0; i + 1 < sites; i++)
        link_both(builder, all + boxes + i, all + boxes + i + 1, values->bandwidth[2]);
    free(kinds);
    return 0;
}

/* A PCIe switch for every two GPUs of a box, with a NIC for each GPU below it. All NICs are linked
 * to one outer switch. */
int by_preset_pcie(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    int64_t boxes = values->count[0], gpus = values->count[1], all = boxes * gpus;
    int64_t pairs = (gpus + 1) / 2, inner = all, pcie = inner + boxes, nic = pcie + boxes * pairs;
    int64_t outer = nic + all;

    if (outer + 1 > BY_TOPOLOGY_NODES_MAX)
        return refuse_count(outer + 1, problem);
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "gpu%lld", (long long)i);
    for (int64_t i = 0; i < boxes; i++)
        by_builder_switch(builder, "nvswitch%lld", (long long)i);
    for (int64_t i = 0; i < boxes * pairs; i++)
        by_builder_switch(builder, "pcie%lld", (long long)i);
    for (int64_t i = 0; i < all; i++)
        by_builder_switch(builder, "nic%lld", (long long)i);
    by_builder_switch(builder, "ib0");
    for (int64_t i = 0; i < all; i++) {
        int64_t box = i / gpus, above = pcie + box * pairs + i % gpus / 2;

        link_both(builder, i, inner + box, values->bandwidth[2]);
        link_both(builder, i, above, values->bandwidth[3]);
        link_both(builder, above, nic + i, values->bandwidth[3]);
        link_both(builder, nic + i, outer, values->bandwidth[4]);
    }
    return 0;
}

/* Links of the random regular graph, as a table of linked pairs. */
struct meetings {
    int64_t hosts;
    uint8_t *met; /* [a * hosts + b] */
};

static bool have_met(const struct meetings *meetings, int64_t a, int64_t b)
{
    return meetings->met[a * meetings->hosts + b];
}

static void meet(struct meetings *meetings, struct by_builder *builder, int64_t a, int64_t b,
                 struct by_fraction bandwidth)
{
    meetings->met[a * meetings->hosts + b] = meetings->met[b * meetings->hosts + a] = 1;
    link_both(builder, a, b, bandwidth);
}

static void shuffle(struct by_prng *prng, int64_t *order, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)by_prng_below(prng, (uint64_t)i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

/*
 * Finds a random order of the hosts in which neighbours are not linked yet: a cycle when `closed`,
 * else pairs. After a shuffle, each conflict is swapped with a random position until none is left.
 */
static bool find_order(const struct meetings *meetings, struct by_prng *prng, int64_t *order, bool closed)
{
    int64_t hosts = meetings->hosts, step = closed ? 1 : 2, clean = 0, at = 0;

    shuffle(prng, order, hosts);
    for (uint64_t tries = 0; tries < (uint64_t)CIRCLE_TRIES_MAX * (uint64_t)hosts; tries++) {
        int64_t next = (at + 1) % hosts, other, kept;

        if (!have_met(meetings, order[at], order[next])) {
            at = (at + step) % hosts;
            clean += step;
            if (clean >= hosts)
                return true;
            continue;
        }
        other = (int64_t)by_prng_below(prng, (uint64_t)hosts);
        kept = order[next];
        order[next] = order[other];
        order[other] = kept;
        clean = 0;
    }
    return false;
}

/* Random cycles through all hosts, plus random pairs if the degree is odd: connected, and without
 * parallel links. */
int by_preset_regular(struct by_builder *builder, const struct by_preset_values *values,
                      struct by_problem *problem)
{
    int64_t hosts = values->count[0], degree = values->count[1], left = degree;
    struct by_prng prng = {(uint64_t)values->count[3]};
    struct meetings meetings = {hosts, NULL};
    int64_t *order;
    bool found = true;

    if (degree < 2 || degree >= hosts || (degree * hosts) % 2)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "--degree is %lld with %lld hosts: it must be at least 2, below the number "
                              "of hosts, and even if that is odd",
                              (long long)degree, (long long)hosts);
    meetings.met = by_alloc((size_t)hosts * (size_t)hosts, 1);
    order = by_alloc((size_t)hosts, sizeof(*order));
    for (int64_t i = 0; i < hosts; i++) {
        by_builder_compute(builder, "host%lld", (long long)i);
        order[i] = i;
        meetings.met[i * hosts + i] = 1;
    }
    for (; left > 0 && found; left -= 2) {
        found = find_order(&meetings, &prng, order, left > 1);
        for (int64_t i = 0; i < hosts && found; i += left > 1 ? 1 : 2)
            meet(&meetings, builder, order[i], order[(i + 1) % hosts], values->bandwidth[2]);
    }
    free(order);
    free(meetings.met);
    if (!found)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "no random graph of degree %lld on %lld hosts was found; lower --degree or try "
                              "another --seed",
                              (long long)degree, (long long)hosts);
    return 0;
}
