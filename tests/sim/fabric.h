/*
 * Small fabrics for simulation: nodes, cables, jobs and trees in memory, and the table images made
 * from them. Independent of the planner: trees are breadth-first from a root. Used by the simulator
 * and by unit tests; single-threaded.
 */
#ifndef TESTS_SIM_FABRIC_H
#define TESTS_SIM_FABRIC_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/prng.h"
#include "offload/table/image.h"

#define FABRIC_NODES_MAX    160
#define FABRIC_LINKS_MAX    160
#define FABRIC_TREES_MAX    32
#define FABRIC_JOBS_MAX     4
#define FABRIC_STANDBYS_MAX 3
#define FABRIC_IP_BASE      0xc6120000u /* 198.18.0.0/15, RFC 2544 */
#define FABRIC_MTU          9000

#define FABRIC_ROOT   (-1)
#define FABRIC_ABSENT (-2)

struct fabric_node {
    char name[16];
    uint8_t kind;  /* enum by_node_kind */
    uint8_t plain; /* a switch that can only forward */
    int port_count;
    int port_link[FABRIC_NODES_MAX]; /* link of each port, in the order of the links */
};

struct fabric_link {
    int a, b;
    uint32_t mbps;
    uint32_t latency_ns;
};

struct fabric_tree {
    uint16_t collectives; /* bits */
    uint16_t owner;
    uint32_t share;
    uint16_t window;
    uint16_t payload_max;
    uint16_t ops, dtypes; /* operations that its nodes support, as in struct by_image_leaf; 0: all */
    uint8_t modes;
    uint8_t half;                       /* enum by_half */
    int cable_parent[FABRIC_NODES_MAX]; /* along the cables; FABRIC_ROOT, FABRIC_ABSENT */
    int parent[FABRIC_NODES_MAX];       /* the node that runs the engine; never a plain switch */
};

struct fabric_job {
    uint16_t job;
    uint16_t gen;
    uint32_t share; /* of its links, in parts of BY_SHARE_ONE */
    int rank_count;
    int rank_node[FABRIC_NODES_MAX];
    int tree_count;
    struct fabric_tree trees[FABRIC_TREES_MAX];
};

struct fabric {
    int node_count, link_count, job_count;
    uint8_t cover; /* enum by_cover: every job is keyed, with keys derived from its number */
    struct fabric_node nodes[FABRIC_NODES_MAX];
    struct fabric_link links[FABRIC_LINKS_MAX];
    struct fabric_job jobs[FABRIC_JOBS_MAX];
};

int fabric_switch(struct fabric *fabric, const char *name, int plain);
int fabric_host(struct fabric *fabric, const char *name);
int fabric_cable(struct fabric *fabric, int a, int b, uint32_t mbps, uint32_t latency_ns);
/* Adds a job on all hosts, in the order of their nodes. Returns its index. */
int fabric_job_add(struct fabric *fabric, uint16_t job, uint16_t gen);

/*
 * Adds a breadth-first tree from `root` to every rank of the job. Visits neighbours in an order
 * drawn from `prng` (NULL: by number). Passes through hosts other than the root only with
 * `through_hosts`. Omits switches with no rank below. Returns the tree, or NULL if some rank cannot
 * be reached.
 */
struct fabric_tree *fabric_tree_add(struct fabric *fabric, int job, int root, int through_hosts,
                                    struct by_prng *prng);

/* Makes tree `tree` of a job the tree up of a pair: inserts a tree down with the same root behind
 * it. Returns 0 if there is no room for it. */
int fabric_pair_make(struct fabric *fabric, int job, int tree, int through_hosts, struct by_prng *prng);

/* Returns the node with this name; aborts if there is none. */
int fabric_named(const struct fabric *fabric, const char *name);
/* Returns the address of a node's port on a link. */
uint32_t fabric_ip(const struct fabric *fabric, int link, int node);
/* Returns the port of `node` whose cable leads to `peer`; -1: none. */
int fabric_port_to(const struct fabric *fabric, int node, int peer);
/* Returns the node at the other end of a port. */
int fabric_peer(const struct fabric *fabric, int node, int port);
/* Returns the total number of slots that a node's entries require. */
uint32_t fabric_slots(const struct fabric *fabric, int node);
/* Returns the table image of a node: malloc'd, sealed; *bytes is its length. Aborts if
 * by_image_check refuses it. */
uint8_t *fabric_image(const struct fabric *fabric, int node, size_t *bytes);

/*
 * The same for a fabric with `count` standbys: fabrics that differ in the trees and generations of
 * their jobs only. A switch has the tables of all generations. A host has those of one: `gen` 0 is
 * that of `fabric`, then the standbys follow.
 */
uint8_t *fabric_image_standby(const struct fabric *fabric, const struct fabric *standbys, int count, int gen,
                              int node, size_t *bytes);

/* Predefined fabrics. Hosts are named h0.., switches by their role. */
void fabric_star(struct fabric *fabric, int hosts, uint32_t mbps, uint32_t latency_ns);
void fabric_leafspine(struct fabric *fabric, int spines, int leaves, int hosts_per_leaf, uint32_t mbps,
                      uint32_t latency_ns, int plain_spines);
void fabric_three_level(struct fabric *fabric, int pods, int leaves_per_pod, int hosts_per_leaf,
                        uint32_t mbps, uint32_t latency_ns);
void fabric_chain(struct fabric *fabric, int switches, int hosts_per_switch, uint32_t mbps,
                  uint32_t latency_ns);
void fabric_ring(struct fabric *fabric, int hosts, uint32_t mbps, uint32_t latency_ns);

#endif
