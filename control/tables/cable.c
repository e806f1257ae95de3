/* MTUs, routers and bridges in the paths of trees; see cable.h. Pure; any thread. */
#include "control/tables/cable.h"

#include "offload/base/errors.h"

static const char *name_of(const struct by_lowering *lowering, uint32_t node)
{
    return lowering->topology->nodes[node].name;
}

/* Calls `visit` for each direction of each path of the trees, until one call returns an error. */
static int visit_ways(struct by_lowering *lowering,
                      int (*visit)(struct by_lowering *lowering, uint32_t from, const struct by_hop_step *way,
                                   uint32_t count, struct by_problem *problem),
                      struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < lowering->tree_count; i++)
        for (uint32_t j = 1; j < lowering->trees[i].hop_count && error == 0; j++) {
            const struct by_hop *hop = &lowering->trees[i].hops[j];

            error = visit(lowering, hop->parent, hop->down, hop->down_count, problem);
            if (error == 0)
                error = visit(lowering, hop->node, hop->up, hop->up_count, problem);
        }
    return error;
}

/* Refuses a link that is too small, and names its smaller end. */
static int refuse_link(const struct by_lowering *lowering, uint32_t link, struct by_problem *problem)
{
    const struct by_topology *topology = lowering->topology;
    const struct by_link *record = &topology->links[link];
    uint32_t least = by_site_mtu(topology, link);
    const struct by_site_end *end = by_site_end(topology, link, record->a);
    uint32_t node = end->mtu == least ? record->a : record->b;
    char interface[BY_INTERFACE_BYTES];

    by_address_interface(&lowering->map, link, node, interface);
    return by_problem_say(problem, BY_EINVAL,
                          "the link '%s' - '%s' has an MTU of %u bytes at '%s' (%s), and tables are made for "
                          "%u: use --mtu %u, or raise the MTU there and in the site file",
                          name_of(lowering, record->a), name_of(lowering, record->b), least,
                          name_of(lowering, node), interface, lowering->mtu, least);
}

static int check_way_mtu(struct by_lowering *lowering, uint32_t from, const struct by_hop_step *way,
                         uint32_t count, struct by_problem *problem)
{
    (void)from;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t mtu = by_site_mtu(lowering->topology, way[i].link);

        if (mtu != 0 && mtu < lowering->mtu)
            return refuse_link(lowering, way[i].link, problem);
    }
    return 0;
}

static int lower_mtu(struct by_lowering *lowering, uint32_t from, const struct by_hop_step *way,
                     uint32_t count, struct by_problem *problem)
{
    (void)from;
    (void)problem;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t mtu = by_site_mtu(lowering->topology, way[i].link);

        mtu = mtu == 0 ? BY_LOWER_MTU : mtu;
        lowering->mtu = lowering->mtu == 0 || mtu < lowering->mtu ? mtu : lowering->mtu;
    }
    return 0;
}

uint32_t by_lower_extra(const struct by_topology *topology, uint32_t link, uint32_t from)
{
    return by_ipv6_is(by_address_ip(topology, link, from)) ? BY_IPV6_EXTRA_BYTES : 0;
}

/* BY_ELIMIT: packets of this path are longer. */
static int find_ipv6(struct by_lowering *lowering, uint32_t from, const struct by_hop_step *way,
                     uint32_t count, struct by_problem *problem)
{
    (void)count;
    (void)problem;
    return by_lower_extra(lowering->topology, way[0].link, from) > 0 ? BY_ELIMIT : 0;
}

int by_lower_set_mtu(struct by_lowering *lowering, uint32_t mtu, struct by_problem *problem)
{
    int error;
    bool ipv6;

    lowering->mtu = mtu;
    error = visit_ways(lowering, mtu != 0 ? check_way_mtu : lower_mtu, problem);
    if (lowering->mtu == 0)
        lowering->mtu = BY_LOWER_MTU; /* no tree uses a link */
    ipv6 = error == 0 && visit_ways(lowering, find_ipv6, problem) == BY_ELIMIT;
    if (ipv6 && mtu != 0 && mtu < BY_IPV6_MTU_MIN)
        error = by_problem_say(problem, BY_EINVAL,
                               "an MTU of %u: the trees use links with IPv6 addresses, whose MTU must be at "
                               "least %u (RFC 8200): use --mtu %u or more",
                               mtu, BY_IPV6_MTU_MIN, BY_IPV6_MTU_MIN);
    /* Chunks of all trees have one size. */
    lowering->payload_max = by_lower_payload(lowering->mtu - (ipv6 ? BY_IPV6_EXTRA_BYTES : 0));
    return error;
}

uint32_t by_lower_mtu_least(const struct by_topology *topology)
{
    uint32_t least = 0;

    for (uint32_t i = 0; i < topology->link_count; i++) {
        uint32_t mtu = by_site_mtu(topology, i);

        mtu = mtu == 0 ? BY_LOWER_MTU : mtu;
        least = least == 0 || mtu < least ? mtu : least;
    }
    return least == 0 ? BY_LOWER_MTU : least;
}

uint32_t by_lower_port_mtu(const struct by_topology *topology, uint32_t link, uint32_t mtu)
{
    uint32_t stated = by_site_mtu(topology, link);

    return stated != 0 && stated < mtu ? stated : mtu;
}

static const char *kind_of(enum by_site_runs runs)
{
    return runs == BY_SITE_ROUTER ? "router" : "bridge";
}

static int check_way(struct by_lowering *lowering, uint32_t from, const struct by_hop_step *way,
                     uint32_t count, struct by_problem *problem)
{
    const struct by_topology *topology = lowering->topology;
    uint32_t to = way[count - 1].to;

    if (by_ipv6_is(by_address_ip(topology, way[0].link, from)) !=
        by_ipv6_is(by_address_ip(topology, way[count - 1].link, to))) {
        char ends[2][BY_ADDRESS_TEXT];

        return by_problem_say(
            problem, BY_EUNSUPPORTED,
            "packets from '%s' (%s) pass '%s' unchanged on their way to '%s' (%s), and their addresses are "
            "of different families: give the links of both ends addresses of one family",
            name_of(lowering, from), by_address_of(topology, way[0].link, from, ends[0]),
            name_of(lowering, way[0].to), name_of(lowering, to),
            by_address_of(topology, way[count - 1].link, to, ends[1]));
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = i + 1;

        if (by_site_runs(topology, way[i].to) != BY_SITE_BRIDGE)
            continue;
        while (next < count && by_site_runs(topology, way[next].to) == BY_SITE_BRIDGE)
            next++;
        if (next < count && by_site_runs(topology, way[next].to) == BY_SITE_ROUTER)
            return by_problem_say(
                problem, BY_EUNSUPPORTED,
                "between '%s' and '%s' the bridge '%s' is followed by the router '%s': behind a bridge a "
                "sender asks for the receiver itself, for which a router does not answer; connect the router "
                "without a bridge",
                name_of(lowering, from), name_of(lowering, way[count - 1].to), name_of(lowering, way[i].to),
                name_of(lowering, way[next].to));
    }
    return 0;
}

int by_lower_check_ways(const struct by_lowering *lowering, struct by_problem *problem)
{
    const struct by_topology *topology = lowering->topology;

    if (topology->site == NULL)
        return 0;
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        for (uint32_t j = 0; j < lowering->trees[i].hop_count; j++) {
            uint32_t node = lowering->trees[i].hops[j].node;
            enum by_site_runs runs = by_site_runs(topology, node);

            if (runs != BY_SITE_BANYAN)
                return by_problem_say(
                    problem, BY_EUNSUPPORTED,
                    "the plan lets '%s' add or copy, and the site states that it is a %s: omit "
                    "\"multicast\" and \"aggregate\" of this switch in the topology, and plan again",
                    name_of(lowering, node), kind_of(runs));
        }
    return visit_ways((struct by_lowering *)(uintptr_t)lowering, check_way, problem);
}
