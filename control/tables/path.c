/*
 * Chooses the cables for one edge of a tree, in both directions. Private to tables/.
 *
 * The plan defines the nodes on the way of the data. The opposite direction uses the same cables if
 * each has arcs in both directions; else the shortest way through switches between the same two end
 * cables. A table has one port and one address for each neighbour, so both directions must use the
 * same cables at the two ends.
 */
#include <stdarg.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/tables/tree.h"
#include "offload/base/errors.h"

static uint32_t arc_from(const struct by_link *link, uint32_t from)
{
    return link->a == from ? link->arc_ab : link->arc_ba;
}

static int is_lost(const struct by_address_map *map, uint32_t link)
{
    return map->lost_links != NULL && map->lost_links[link];
}

/*
 * Whether answers may leave `from` by this cable: if it has an arc in that direction, or if a
 * parallel one-way link has. Two one-way links between the same nodes can describe the two
 * directions of one cable with different bandwidths; the cable itself is full duplex, and answers
 * are bare headers.
 */
static int answers_by(const struct by_address_map *map, uint32_t link, uint32_t from)
{
    const struct by_topology *topology = map->topology;
    uint32_t peer = by_address_peer(topology, link, from);

    if (arc_from(&topology->links[link], from) != UINT32_MAX)
        return 1;
    for (uint32_t port = 0; port < map->port_count[from]; port++) {
        uint32_t other = by_address_link(map, from, port);
        if (by_address_peer(topology, other, from) == peer && !is_lost(map, other) &&
            arc_from(&topology->links[other], from) != UINT32_MAX)
            return 1;
    }
    return 0;
}

/*
 * Converts a weight to units of 2^-20, saturated. This is precise enough to balance cables, and the
 * same on every machine.
 */
static uint64_t weight_units(struct by_fraction weight)
{
    unsigned __int128 units = ((unsigned __int128)weight.num << 20) / (unsigned __int128)weight.den;

    return units > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)units;
}

/*
 * Whether a node may forward: a switch, or a compute node outside of the job if the topology lets
 * it forward.
 */
static int forwards(const struct by_address_map *map, uint32_t node)
{
    const struct by_node *kind = &map->topology->nodes[node];

    return !kind->compute || (kind->forward && map->rank[node] == UINT32_MAX);
}

/* Whether `arc` would be more loaded than `other` after `units` are added to it. */
static int fuller(const struct by_topology *topology, const struct by_lower_load *load, uint32_t arc,
                  uint32_t other, uint64_t units)
{
    return (unsigned __int128)(load->arc[arc] + units) * (uint64_t)topology->arcs[other].capacity >
           (unsigned __int128)(load->arc[other] + units) * (uint64_t)topology->arcs[arc].capacity;
}

/*
 * Returns the least loaded cable from `near` (the parent's side) to `far` that has the arcs which
 * the data need, or UINT32_MAX. Cables with arcs in both directions are preferred, because answers
 * can then return by them.
 */
static uint32_t choose(const struct by_address_map *map, uint32_t near, uint32_t far, enum by_table_flow flow,
                       uint64_t units, const struct by_lower_load *load)
{
    const struct by_topology *topology = map->topology;
    uint32_t best = UINT32_MAX;
    int best_both = 0;

    for (uint32_t port = 0; port < map->port_count[near]; port++) {
        uint32_t link = by_address_link(map, near, port);
        const struct by_link *cable = &topology->links[link];
        uint32_t down = arc_from(cable, near), up = arc_from(cable, far);
        uint32_t main = flow == BY_FLOW_UP ? up : down;
        int both = down != UINT32_MAX && up != UINT32_MAX;

        if (by_address_peer(topology, link, near) != far || main == UINT32_MAX || is_lost(map, link) ||
            (flow == BY_FLOW_BOTH && !both))
            continue;
        if (best != UINT32_MAX) {
            uint32_t held = arc_from(&topology->links[best], flow == BY_FLOW_UP ? far : near);
            if (best_both > both || (best_both == both && !fuller(topology, load, held, main, units)))
                continue;
        }
        best = link;
        best_both = both;
    }
    return best;
}

/*
 * Finds the shortest path of arcs from `from` to `to` through switches that avoids the `barred`
 * nodes. Writes its steps and returns their count, or -1.
 */
static int64_t find_way(const struct by_address_map *map, uint32_t from, uint32_t to,
                        const uint32_t barred[2], struct by_hop_step *steps)
{
    const struct by_topology *topology = map->topology;
    uint32_t n = topology->node_count, head = 0, tail = 0, length = 0;
    uint32_t *queue = by_alloc(n, sizeof(uint32_t));
    uint32_t *via = by_alloc(n, sizeof(uint32_t)); /* link + 1 that reached a node */
    uint8_t *seen = by_alloc(n, 1);

    queue[tail++] = from;
    seen[from] = seen[barred[0]] = seen[barred[1]] = 1;
    while (head < tail && !via[to] && from != to) {
        uint32_t node = queue[head++];
        for (uint32_t port = 0; port < map->port_count[node]; port++) {
            uint32_t link = by_address_link(map, node, port), peer = by_address_peer(topology, link, node);
            if (seen[peer] || !forwards(map, peer) || is_lost(map, link) ||
                arc_from(&topology->links[link], node) == UINT32_MAX)
                continue;
            seen[peer] = 1;
            via[peer] = link + 1;
            queue[tail++] = peer;
        }
    }
    if (from != to && !via[to])
        length = UINT32_MAX;
    else
        for (uint32_t node = to; node != from; node = by_address_peer(topology, via[node] - 1, node))
            length++;
    for (uint32_t node = to, i = length; length != UINT32_MAX && node != from; i--) {
        steps[i - 1] = (struct by_hop_step){.link = via[node] - 1, .to = node};
        node = by_address_peer(topology, via[node] - 1, node);
    }
    free(queue);
    free(via);
    free(seen);
    return length == UINT32_MAX ? -1 : (int64_t)length;
}

/*
 * Finds the reverse of `way`, whose first node is `start`: the same cables if they have the arcs,
 * else another path through switches.
 */
static int way_back(const struct by_address_map *map, uint32_t start, const struct by_hop_step *way,
                    uint32_t count, const char *where, struct by_hop_step **back, uint32_t *back_count,
                    struct by_problem *problem)
{
    const struct by_topology *topology = map->topology;
    uint32_t end = way[count - 1].to;
    uint32_t ends[2] = {start, end};
    struct by_hop_step *steps = by_alloc((size_t)topology->node_count + 2, sizeof(*steps));
    uint32_t before_end = count > 1 ? way[count - 2].to : start;
    uint32_t missing = 0;
    int64_t inner;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = i == 0 ? start : way[i - 1].to;
        steps[count - 1 - i] = (struct by_hop_step){.link = way[i].link, .to = to};
        missing += !answers_by(map, way[i].link, way[i].to);
    }
    if (missing == 0) {
        *back = by_realloc(steps, count, sizeof(*steps));
        *back_count = count;
        return 0;
    }
    if (!answers_by(map, way[count - 1].link, end) || !answers_by(map, way[0].link, way[0].to)) {
        uint32_t here = answers_by(map, way[0].link, way[0].to) ? end : start;
        free(steps);
        return by_problem_say(problem, BY_EUNSUPPORTED,
                              "%s: between '%s' and '%s' the cable at '%s' is one-way, but nodes that add "
                              "or copy reply over the cable that reached them: give that link both "
                              "directions",
                              where, topology->nodes[start].name, topology->nodes[end].name,
                              topology->nodes[here].name);
    }
    steps[0] = (struct by_hop_step){.link = way[count - 1].link, .to = before_end};
    inner = find_way(map, before_end, way[0].to, ends, steps + 1);
    if (inner < 0) {
        free(steps);
        return by_problem_say(problem, BY_EUNSUPPORTED,
                              "%s: no path back through switches from '%s' to '%s' for acknowledgements: "
                              "add a link in that direction",
                              where, topology->nodes[end].name, topology->nodes[start].name);
    }
    steps[inner + 1] = (struct by_hop_step){.link = way[0].link, .to = start};
    *back_count = (uint32_t)inner + 2;
    *back = by_realloc(steps, *back_count, sizeof(*steps));
    return 0;
}

/*
 * Copies the nodes of `path` without detours that return to a node already visited, which only
 * lowers loads. Returns the count.
 */
static uint32_t straighten(const uint32_t *nodes, uint32_t count, uint32_t *straight)
{
    uint32_t length = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = i;
        for (uint32_t j = i + 1; j < count; j++)
            if (nodes[j] == nodes[i])
                last = j;
        straight[length++] = nodes[i];
        i = last;
    }
    return length;
}

/* Chooses the cables from parent to child in the direction of the data. */
static int way_down(const struct by_address_map *map, const uint32_t *nodes, uint32_t count,
                    enum by_table_flow flow, uint64_t units, struct by_lower_load *load, const char *where,
                    struct by_hop_step *steps, struct by_problem *problem)
{
    const struct by_topology *topology = map->topology;

    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t near = nodes[i], far = nodes[i + 1];
        uint32_t link = choose(map, near, far, flow, units, load);
        if (link == UINT32_MAX)
            return by_problem_say(problem, BY_EINVAL,
                                  "%s: the path uses a link from '%s' to '%s'%s, which this fabric does not "
                                  "have: plan again for this "
                                  "topology",
                                  where, topology->nodes[flow == BY_FLOW_UP ? far : near].name,
                                  topology->nodes[flow == BY_FLOW_UP ? near : far].name,
                                  flow == BY_FLOW_BOTH ? " and back" : "");
        steps[i] = (struct by_hop_step){.link = link, .to = far};
        if (flow & BY_FLOW_DOWN)
            load->arc[arc_from(&topology->links[link], near)] += units;
        if (flow & BY_FLOW_UP)
            load->arc[arc_from(&topology->links[link], far)] += units;
    }
    return 0;
}

int by_path_lay(const struct by_address_map *map, const uint32_t *nodes, uint32_t node_count,
                enum by_table_flow flow, struct by_fraction weight, struct by_lower_load *load,
                const char *where, struct by_hop *hop, struct by_problem *problem)
{
    const struct by_topology *topology = map->topology;
    uint32_t *straight = by_alloc(node_count, sizeof(uint32_t));
    uint32_t count = straighten(nodes, node_count, straight), parent = straight[0];
    struct by_hop_step *down = by_alloc(count, sizeof(*down));
    int error = 0;

    if (count < 2)
        error = by_problem_say(problem, BY_EINVAL,
                               "%s: an edge begins and ends at '%s': plan again for this topology", where,
                               topology->nodes[parent].name);
    for (uint32_t i = 1; i + 1 < count && error == 0; i++)
        if (!forwards(map, straight[i]))
            error = by_problem_say(
                problem, BY_EUNSUPPORTED,
                "%s: the path from '%s' to '%s' passes the compute node '%s', and hosts do not forward: make "
                "it a node of the tree",
                where, topology->nodes[parent].name, topology->nodes[straight[count - 1]].name,
                topology->nodes[straight[i]].name);
    if (error == 0)
        error = way_down(map, straight, count, flow, weight_units(weight), load, where, down, problem);
    free(straight);
    if (error == 0 && flow != BY_FLOW_UP) {
        error = way_back(map, parent, down, count - 1, where, &hop->up, &hop->up_count, problem);
    } else if (error == 0) {
        /*
         * The data run up, so the cables are chosen in that direction; the way down is the way
         * back.
         */
        struct by_hop_step *up = by_alloc(count, sizeof(*up));
        for (uint32_t i = 0; i + 1 < count; i++)
            up[count - 2 - i] =
                (struct by_hop_step){.link = down[i].link, .to = i == 0 ? parent : down[i - 1].to};
        error =
            way_back(map, down[count - 2].to, up, count - 1, where, &hop->down, &hop->down_count, problem);
        hop->up = up;
        hop->up_count = count - 1;
        free(down);
        if (error != 0) {
            free(hop->up);
            hop->up = NULL;
        }
        return error;
    }
    if (error != 0) {
        free(down);
        return error;
    }
    hop->down = down;
    hop->down_count = count - 1;
    return 0;
}
