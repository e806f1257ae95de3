/* Fabrics in memory: construction, trees, predefined shapes. image.c converts them to table images.
 * Single-threaded. */
#include "tests/sim/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/wire/types.h"

static int node_add(struct fabric *fabric, const char *name, int kind, int plain)
{
    struct fabric_node *node = &fabric->nodes[fabric->node_count];

    if (fabric->node_count == FABRIC_NODES_MAX)
        abort();
    memset(node, 0, sizeof(*node));
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->kind = (uint8_t)kind;
    node->plain = (uint8_t)plain;
    return fabric->node_count++;
}

int fabric_switch(struct fabric *fabric, const char *name, int plain)
{
    return node_add(fabric, name, BY_NODE_SWITCH, plain);
}

int fabric_host(struct fabric *fabric, const char *name)
{
    return node_add(fabric, name, BY_NODE_HOST, 0);
}

int fabric_cable(struct fabric *fabric, int a, int b, uint32_t mbps, uint32_t latency_ns)
{
    int link = fabric->link_count++;

    if (link == FABRIC_LINKS_MAX || fabric->nodes[a].port_count == FABRIC_NODES_MAX ||
        fabric->nodes[b].port_count == FABRIC_NODES_MAX)
        abort();
    fabric->links[link] = (struct fabric_link){a, b, mbps, latency_ns};
    fabric->nodes[a].port_link[fabric->nodes[a].port_count++] = link;
    fabric->nodes[b].port_link[fabric->nodes[b].port_count++] = link;
    return link;
}

int fabric_named(const struct fabric *fabric, const char *name)
{
    for (int n = 0; n < fabric->node_count; n++)
        if (strcmp(fabric->nodes[n].name, name) == 0)
            return n;
    fprintf(stderr, "the fabric has no node %s\n", name);
    abort();
}

int fabric_job_add(struct fabric *fabric, uint16_t job, uint16_t gen)
{
    struct fabric_job *j = &fabric->jobs[fabric->job_count];

    if (fabric->job_count == FABRIC_JOBS_MAX)
        abort();
    memset(j, 0, sizeof(*j));
    j->job = job;
    j->gen = gen;
    for (int n = 0; n < fabric->node_count; n++)
        if (fabric->nodes[n].kind == BY_NODE_HOST)
            j->rank_node[j->rank_count++] = n;
    return fabric->job_count++;
}

uint32_t fabric_ip(const struct fabric *fabric, int link, int node)
{
    return FABRIC_IP_BASE + 2u * (uint32_t)link + (fabric->links[link].b == node);
}

int fabric_peer(const struct fabric *fabric, int node, int port)
{
    const struct fabric_link *link = &fabric->links[fabric->nodes[node].port_link[port]];

    return link->a == node ? link->b : link->a;
}

int fabric_port_to(const struct fabric *fabric, int node, int peer)
{
    for (int p = 0; p < fabric->nodes[node].port_count; p++)
        if (fabric_peer(fabric, node, p) == peer)
            return p;
    return -1;
}

static int is_rank(const struct fabric_job *job, int node)
{
    for (int r = 0; r < job->rank_count; r++)
        if (job->rank_node[r] == node)
            return 1;
    return 0;
}

/* Finds the neighbours of `node`, in random order. */
static int neighbours(const struct fabric *fabric, int node, struct by_prng *prng, int out[FABRIC_NODES_MAX])
{
    int count = fabric->nodes[node].port_count;

    for (int p = 0; p < count; p++)
        out[p] = fabric_peer(fabric, node, p);
    for (int p = count - 1; p > 0 && prng != NULL; p--) {
        int q = (int)by_prng_below(prng, (uint64_t)p + 1);
        int swap = out[p];

        out[p] = out[q];
        out[q] = swap;
    }
    return count;
}

static void grow(const struct fabric *fabric, struct fabric_tree *tree, int root, int through_hosts,
                 struct by_prng *prng)
{
    int queue[FABRIC_NODES_MAX];
    int head = 0, tail = 0;

    for (int n = 0; n < FABRIC_NODES_MAX; n++)
        tree->cable_parent[n] = FABRIC_ABSENT;
    tree->cable_parent[root] = FABRIC_ROOT;
    queue[tail++] = root;
    while (head < tail) {
        int node = queue[head++];
        int out[FABRIC_NODES_MAX];
        int count = neighbours(fabric, node, prng, out);

        if (fabric->nodes[node].kind == BY_NODE_HOST && node != root && !through_hosts)
            continue;
        for (int i = 0; i < count; i++) {
            if (tree->cable_parent[out[i]] != FABRIC_ABSENT)
                continue;
            tree->cable_parent[out[i]] = node;
            queue[tail++] = out[i];
        }
    }
}

/* Removes nodes with no rank below them, then skips plain switches. */
static int settle(const struct fabric *fabric, const struct fabric_job *job, struct fabric_tree *tree)
{
    uint8_t needed[FABRIC_NODES_MAX] = {0};

    for (int r = 0; r < job->rank_count; r++) {
        int node = job->rank_node[r];

        if (tree->cable_parent[node] == FABRIC_ABSENT)
            return -1;
        for (; node >= 0 && !needed[node]; node = tree->cable_parent[node])
            needed[node] = 1;
    }
    for (int n = 0; n < fabric->node_count; n++) {
        int up;

        if (!needed[n])
            tree->cable_parent[n] = FABRIC_ABSENT;
        up = tree->cable_parent[n];
        while (up >= 0 && fabric->nodes[up].plain)
            up = tree->cable_parent[up];
        tree->parent[n] = fabric->nodes[n].plain ? FABRIC_ABSENT : up;
    }
    return 0;
}

struct fabric_tree *fabric_tree_add(struct fabric *fabric, int job, int root, int through_hosts,
                                    struct by_prng *prng)
{
    struct fabric_job *j = &fabric->jobs[job];
    struct fabric_tree *tree = &j->trees[j->tree_count];

    if (j->tree_count == FABRIC_TREES_MAX || fabric->nodes[root].plain)
        return NULL;
    memset(tree, 0, sizeof(*tree));
    tree->collectives = (1u << BY_COLLECTIVE_COUNT) - 2;
    tree->owner = BY_RANK_NONE;
    tree->share = 1;
    tree->window = 16;
    tree->payload_max = 1024;
    if (fabric->nodes[root].kind == BY_NODE_HOST && !is_rank(j, root))
        return NULL;
    grow(fabric, tree, root, through_hosts, prng);
    if (settle(fabric, j, tree) != 0 || (fabric->nodes[root].kind == BY_NODE_HOST && j->rank_count == 1))
        return NULL; /* a single host is not a root */
    j->tree_count++;
    return tree;
}

int fabric_pair_make(struct fabric *fabric, int job, int tree, int through_hosts, struct by_prng *prng)
{
    struct fabric_job *j = &fabric->jobs[job];
    struct fabric_tree *up = &j->trees[tree], *down;
    int root = 0;

    while (up->cable_parent[root] != FABRIC_ROOT)
        root++;
    down = fabric_tree_add(fabric, job, root, through_hosts, prng);
    if (down == NULL)
        return 0;
    down->collectives = up->collectives;
    down->owner = up->owner;
    down->share = up->share;
    down->window = up->window;
    down->payload_max = up->payload_max;
    up->half = BY_HALF_UP;
    down->half = BY_HALF_DOWN;
    for (int i = j->tree_count - 1; i > tree + 1; i--) {
        struct fabric_tree swap = j->trees[i];

        j->trees[i] = j->trees[i - 1];
        j->trees[i - 1] = swap;
    }
    return 1;
}

/* ---- shapes ---- */

static int numbered(struct fabric *fabric, const char *prefix, int number, int kind, int plain)
{
    char name[16];

    snprintf(name, sizeof(name), "%s%d", prefix, number);
    return node_add(fabric, name, kind, plain);
}

void fabric_star(struct fabric *fabric, int hosts, uint32_t mbps, uint32_t latency_ns)
{
    int hub;

    memset(fabric, 0, sizeof(*fabric));
    hub = numbered(fabric, "leaf", 0, BY_NODE_SWITCH, 0);
    for (int h = 0; h < hosts; h++)
        fabric_cable(fabric, numbered(fabric, "h", h, BY_NODE_HOST, 0), hub, mbps, latency_ns);
}

void fabric_leafspine(struct fabric *fabric, int spines, int leaves, int hosts_per_leaf, uint32_t mbps,
                      uint32_t latency_ns, int plain_spines)
{
    int first_leaf = spines;

    memset(fabric, 0, sizeof(*fabric));
    for (int s = 0; s < spines; s++)
        numbered(fabric, "spine", s, BY_NODE_SWITCH, plain_spines);
    for (int l = 0; l < leaves; l++)
        numbered(fabric, "leaf", l, BY_NODE_SWITCH, 0);
    for (int l = 0; l < leaves; l++) {
        for (int h = 0; h < hosts_per_leaf; h++)
            fabric_cable(fabric, numbered(fabric, "h", l * hosts_per_leaf + h, BY_NODE_HOST, 0),
                         first_leaf + l, mbps, latency_ns);
        for (int s = 0; s < spines; s++)
            fabric_cable(fabric, first_leaf + l, s, mbps, latency_ns);
    }
}

void fabric_three_level(struct fabric *fabric, int pods, int leaves_per_pod, int hosts_per_leaf,
                        uint32_t mbps, uint32_t latency_ns)
{
    int core, host = 0;

    memset(fabric, 0, sizeof(*fabric));
    core = numbered(fabric, "core", 0, BY_NODE_SWITCH, 0);
    for (int p = 0; p < pods; p++) {
        int spine = numbered(fabric, "spine", p, BY_NODE_SWITCH, 0);

        fabric_cable(fabric, spine, core, mbps, latency_ns);
        for (int l = 0; l < leaves_per_pod; l++) {
            int leaf = numbered(fabric, "leaf", p * leaves_per_pod + l, BY_NODE_SWITCH, 0);

            fabric_cable(fabric, leaf, spine, mbps, latency_ns);
            for (int h = 0; h < hosts_per_leaf; h++)
                fabric_cable(fabric, numbered(fabric, "h", host++, BY_NODE_HOST, 0), leaf, mbps, latency_ns);
        }
    }
}

void fabric_chain(struct fabric *fabric, int switches, int hosts_per_switch, uint32_t mbps,
                  uint32_t latency_ns)
{
    memset(fabric, 0, sizeof(*fabric));
    for (int s = 0; s < switches; s++) {
        numbered(fabric, "s", s, BY_NODE_SWITCH, 0);
        if (s > 0)
            fabric_cable(fabric, s - 1, s, mbps, latency_ns);
    }
    for (int h = 0; h < switches * hosts_per_switch; h++)
        fabric_cable(fabric, numbered(fabric, "h", h, BY_NODE_HOST, 0), h / hosts_per_switch, mbps,
                     latency_ns);
}

void fabric_ring(struct fabric *fabric, int hosts, uint32_t mbps, uint32_t latency_ns)
{
    memset(fabric, 0, sizeof(*fabric));
    for (int h = 0; h < hosts; h++)
        numbered(fabric, "h", h, BY_NODE_HOST, 0);
    for (int h = 0; h < hosts; h++)
        fabric_cable(fabric, h, (h + 1) % hosts, mbps, latency_ns);
}
