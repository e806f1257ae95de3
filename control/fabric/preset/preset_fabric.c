/* Presets of data-centre networks: leaf-spine, fat-tree, Clos, dragonfly. See preset.h. */
#include "control/fabric/preset/preset.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

static void link_both(struct by_builder *builder, int64_t a, int64_t b, struct by_fraction bandwidth)
{
    by_builder_link(builder, (uint32_t)a, (uint32_t)b, true, bandwidth, nowhere);
}

/* Refuses a size with more nodes or links than a topology can have. */
static int check_count(int64_t nodes, int64_t links, struct by_problem *problem)
{
    if (nodes > BY_TOPOLOGY_NODES_MAX)
        return by_problem_set(problem, BY_ELIMIT, nowhere,
                              "this fabric would have %lld nodes; the limit is %u", (long long)nodes,
                              BY_TOPOLOGY_NODES_MAX);
    if (links > BY_TOPOLOGY_LINKS_MAX)
        return by_problem_set(problem, BY_ELIMIT, nowhere,
                              "this fabric would have %lld links; the limit is %u", (long long)links,
                              BY_TOPOLOGY_LINKS_MAX);
    return 0;
}

int by_preset_leafspine(struct by_builder *builder, const struct by_preset_values *values,
                        struct by_problem *problem)
{
    int64_t leaves = values->count[0], spines = values->count[1], hosts = values->count[2],
            all = leaves * hosts;

    if (check_count(all + leaves + spines, all + leaves * spines, problem) != 0)
        return BY_ELIMIT;
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "host%lld", (long long)i);
    for (int64_t i = 0; i < leaves; i++)
        by_builder_switch(builder, "leaf%lld", (long long)i);
    for (int64_t i = 0; i < spines; i++)
        by_builder_switch(builder, "spine%lld", (long long)i);
    for (int64_t i = 0; i < all; i++)
        link_both(builder, i, all + i / hosts, values->bandwidth[3]);
    for (int64_t i = 0; i < leaves; i++)
        for (int64_t j = 0; j < spines; j++)
            link_both(builder, all + i, all + leaves + j, values->bandwidth[4]);
    return 0;
}

/* Pods of K/2 edge and K/2 aggregation switches; core switch (i, j) is linked to aggregation switch
 * i of each pod. */
int by_preset_fattree(struct by_builder *builder, const struct by_preset_values *values,
                      struct by_problem *problem)
{
    int64_t ports = values->count[0], half = ports / 2, hosts = ports * half * half, edge = hosts;
    int64_t upper = edge + ports * half, core = upper + ports * half;

    if (ports % 2)
        return by_problem_set(problem, BY_EINVAL, nowhere, "--ports is %lld: it must be even",
                              (long long)ports);
    for (int64_t i = 0; i < hosts; i++)
        by_builder_compute(builder, "host%lld", (long long)i);
    for (int64_t i = 0; i < ports * half; i++)
        by_builder_switch(builder, "edge%lld", (long long)i);
    for (int64_t i = 0; i < ports * half; i++)
        by_builder_switch(builder, "aggr%lld", (long long)i);
    for (int64_t i = 0; i < half * half; i++)
        by_builder_switch(builder, "core%lld", (long long)i);
    for (int64_t i = 0; i < hosts; i++)
        link_both(builder, i, edge + i / half, values->bandwidth[1]);
    for (int64_t i = 0; i < ports * half; i++)
        for (int64_t j = 0; j < half; j++) {
            link_both(builder, edge + i, upper + i / half * half + j, values->bandwidth[1]);
            link_both(builder, upper + i, core + i % half * half + j, values->bandwidth[1]);
        }
    return 0;
}

/* Core switches are in groups, one for each spine number: spine s of each pod is linked to each
 * core of group s. */
int by_preset_clos(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    int64_t pods = values->count[0], leaves = values->count[1], hosts = values->count[2],
            spines = values->count[3], cores = values->count[4];
    int64_t all = pods * leaves * hosts, spine = all + pods * leaves, core = spine + pods * spines;
    struct by_fraction bandwidth = values->bandwidth[5];

    if (check_count(core + spines * cores, all + pods * spines * (leaves + cores), problem) != 0)
        return BY_ELIMIT;
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "host%lld", (long long)i);
    for (int64_t i = 0; i < pods * leaves; i++)
        by_builder_switch(builder, "leaf%lld", (long long)i);
    for (int64_t i = 0; i < pods * spines; i++)
        by_builder_switch(builder, "spine%lld", (long long)i);
    for (int64_t i = 0; i < spines * cores; i++)
        by_builder_switch(builder, "core%lld", (long long)i);
    for (int64_t i = 0; i < all; i++)
        link_both(builder, i, all + i / hosts, bandwidth);
    for (int64_t i = 0; i < pods * leaves; i++)
        for (int64_t j = 0; j < spines; j++)
            link_both(builder, all + i, spine + i / leaves * spines + j, bandwidth);
    for (int64_t i = 0; i < pods * spines; i++)
        for (int64_t j = 0; j < cores; j++)
            link_both(builder, spine + i, core + i % spines * cores + j, bandwidth);
    return 0;
}

/* One global link for each pair of groups, distributed over the routers of a group in turn. */
int by_preset_dragonfly(struct by_builder *builder, const struct by_preset_values *values,
                        struct by_problem *problem)
{
    int64_t groups = values->count[0], routers = values->count[1], hosts = values->count[2];
    int64_t all = groups * routers * hosts;

    if (check_count(all + groups * routers, all + groups * (routers * (routers - 1) + groups - 1) / 2,
                    problem) != 0)
        return BY_ELIMIT;
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "host%lld", (long long)i);
    for (int64_t i = 0; i < groups * routers; i++)
        by_builder_switch(builder, "router%lld", (long long)i);
    for (int64_t i = 0; i < all; i++)
        link_both(builder, i, all + i / hosts, values->bandwidth[3]);
    for (int64_t group = 0; group < groups; group++)
        for (int64_t i = 0; i < routers; i++)
            for (int64_t j = i + 1; j < routers; j++)
                link_both(builder, all + group * routers + i, all + group * routers + j,
                          values->bandwidth[3]);
    for (int64_t group = 0; group < groups; group++)
        for (int64_t other = group + 1; other < groups; other++)
            link_both(builder, all + group * routers + (other - 1) % routers,
                      all + other * routers + group % routers, values->bandwidth[4]);
    return 0;
}
