/*
 * Lowering: converts the plans of one or several jobs on one fabric to one table image for each
 * node. Neighbours: plan.h (input), offload/table/image.h (output), the commands `tables` and `lab`
 * (callers). There is no global state; a lowering belongs to its caller. Any thread.
 *
 * How a tree is represented:
 * - a node with children gets an ENTRY and its CHILD records;
 * - every compute node gets a LEAF; if it has children or is the root, it is a leaf of its own
 *   engine, by BY_PORT_LOCAL;
 * - a switch that only forwards gets a RELAY for each direction.
 *
 * An allreduce plan may have different trees up and down, both rooted at the same node, a switch or
 * a host. They become pairs of trees with consecutive numbers. The root joins the ENTRY of the tree
 * down to that of the tree up.
 *
 * Plans of a job are merged: trees that serve the same ranks in the same proportions are laid once,
 * with the bits of all their collectives. A job may use a subset of the compute nodes, as its plans
 * define: its ranks are this subset, in the fabric's order.
 */
#ifndef BY_TABLES_LOWER_H
#define BY_TABLES_LOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/plan/plan.h"
#include "control/tables/address.h"
#include "offload/table/image.h"

#define BY_LOWER_NODE_NONE UINT32_MAX
/*
 * Most hops of all trees (count) in the images of hosts, where they serve error texts: about 800 KB
 * in each image. Beyond it, the images of hosts contain only their own neighbours.
 */
#define BY_LOWER_HOPS_MAX 65536u
/* Default slots of one tree at one node: 256 x 1408 B = 352 KiB in flight. */
#define BY_LOWER_WINDOW 256u
/* Default slots of one node (two banks of up to 2 x 1408 B each): 92 MB of a switch's memory. */
#define BY_LOWER_SLOTS 16384u
#define BY_LOWER_MTU   1500u
/* Ethernet, IPv4, UDP and banyan headers of a packet (bytes). */
#define BY_LOWER_HEADER_BYTES 82u

struct by_lower_options {
    /*
     * Slots of one tree at one node, a power of two; 0 = BY_LOWER_WINDOW. Halved until every node's
     * slots fit into `slots`.
     */
    uint32_t window;
    uint32_t slots; /* slots of one node for all jobs; 0 = BY_LOWER_SLOTS */
    /* IP packet size of every link that trees use, in bytes; 0 = the smallest of these links that
     * the site states, BY_LOWER_MTU for a link without a statement */
    uint32_t mtu;
    uint16_t gen; /* install generation; 0 = 1 */
    uint8_t det;  /* entries get the slots for sums in mode DET: one for each two children */
    /* Omits HOP and NAME, which only error texts need, from the images of hosts: for simulation. */
    uint8_t bare;
    uint8_t cover;    /* of the tags of keyed jobs: enum by_cover (offload/wire/seal.h); by_lower_keyed() */
    uint8_t seed[16]; /* derives the keys of jobs without their own: secret, different for each lowering */
};

/* Returns the smallest MTU of all links of the fabric, where a link without a statement of the site
 * counts as BY_LOWER_MTU. */
uint32_t by_lower_mtu_least(const struct by_topology *topology);
/* Returns the UDP port of the hosts of `job`: the site's, else BY_UDP_PORT, of job 1, and one more
 * for each job. */
uint16_t by_lower_udp_port(const struct by_topology *topology, uint16_t job);

/*
 * The plans of one job: at most one for each collective and root, all on the same compute nodes. A
 * job may occur again for each standby generation, with other trees between the same ranks. A
 * standby gets one tree more, the last, by which ranks level (BY_LEAF_ROUNDS): a copy of the lowest
 * of its trees whose inner nodes are switches that both sum and copy.
 */
struct by_lower_job {
    uint16_t job;        /* 1 .. BY_JOBS_MAX - 1; jobs are sorted by it, and then by first_tree */
    uint16_t first_tree; /* number of the first tree: 0, or that after the job's last one (a standby) */
    uint32_t plan_count;
    const struct by_plan *const *plans;
    uint16_t gen;              /* install generation; 0 = that of the options */
    uint32_t window;           /* a power of two, used as it is; 0 = chosen by the options */
    const uint32_t *slot_base; /* by node: the job's first slot; NULL: after the previous job */
    const bool *lost_links;    /* by link: the job's trees must not use it; NULL: none */
    uint32_t share;            /* of its links, reserved by switches, in units of BY_SHARE_ONE; 0: none */
    const uint8_t *secret;     /* key of this generation, BY_SIPHASH_KEY_BYTES; NULL: derived from the seed */
};

/* A step of a path: a link (cable), and the node to which it leads. */
struct by_hop_step {
    uint32_t link;
    uint32_t to; /* node index */
};
struct by_hop {
    uint32_t node;
    uint32_t parent;      /* node index; BY_LOWER_NODE_NONE for the root */
    uint16_t child;       /* this node's number among the parent's children */
    uint16_t child_count; /* includes the node's own leaf, which has number 0; 0 on a pure leaf */
    uint32_t first_child; /* hop index of the first child, not counting the own leaf */
    uint32_t nleaf;       /* compute nodes in the subtree, including this node */
    uint32_t down_count;  /* cables from parent to node */
    struct by_hop_step *down;
    uint32_t up_count; /* cables from node to parent; the first and last cable are those of `down` */
    struct by_hop_step *up;
};

/*
 * A tree as laid on cables: hops from the root outwards; children of a node in the order of their
 * bits.
 */
struct by_lowered_tree {
    uint16_t job;
    uint16_t tree;
    uint16_t collectives; /* bit 1 << enum by_collective, or BY_LEAF_ROUNDS */
    uint16_t owner;       /* rank, or BY_RANK_NONE */
    uint8_t half;         /* enum by_half */
    uint32_t share;
    uint32_t window;
    uint8_t modes; /* supported by all its inner nodes, as in struct by_image_leaf */
    uint16_t ops, dtypes;
    uint32_t hop_count;
    struct by_hop *hops;
    uint32_t *hop_of; /* by node: index of its hop, or BY_LOWER_NODE_NONE if the node is not in the tree */
};

/*
 * A forwarding rule of a switch: packets of (job, tree) from src_ip to dst_ip arrive at port `from`
 * and leave by `port`.
 */
struct by_lowered_relay {
    uint32_t node;
    uint16_t job;
    uint16_t tree;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t port;
    uint16_t from; /* port at which they arrive */
};

struct by_lowering {
    const struct by_topology *topology; /* owned by the caller; must outlive the lowering */
    uint32_t node_count;
    struct by_address_map map;
    uint32_t job_count;
    struct by_image_job *jobs; /* `rank` is not set here, because it differs by host */
    uint32_t **ranks;          /* by index of the job in `jobs`, by node: rank, or UINT32_MAX */
    uint32_t **slot_base;      /* by index of the job in `jobs`, by node; NULL: after the previous job */
    uint32_t tree_count;
    struct by_lowered_tree *trees; /* of all jobs, sorted by (job, tree) */
    uint32_t relay_count;
    struct by_lowered_relay *relays; /* sorted by (node, job, tree, src_ip, dst_ip) */
    struct by_image_key *keys;       /* by job; NULL: not keyed */
    uint8_t det, bare;
    uint8_t brief;    /* HOP is omitted from the images of hosts: there would be too many */
    uint32_t sharers; /* number of jobs with a share; if there are any, images contain the rates of links */
    uint32_t mtu, payload_max, window, slots; /* slots: the largest number that one node needs */
    /* The least part of a planned rate that parallel cables allow, at most 1 (balance.h). */
    struct by_fraction part;
    uint64_t cookie;
    uint32_t note_count;
    char **notes; /* notes for the user: windows halved, shares rounded, trees shared or split */
};

/*
 * Returns the number of HOP records of a tree: one for each of its nodes, and one for each relay
 * but the first above a node (emit.c).
 */
uint32_t by_lower_hop_records(const struct by_lowered_tree *tree);

/* Whether a hop is the root of a pair's tree down, which has the slots of the tree up. */
static inline bool by_lower_joins(const struct by_lowered_tree *tree, const struct by_hop *hop)
{
    return tree->half == BY_HALF_DOWN && hop->parent == BY_LOWER_NODE_NONE;
}

/* Returns the slots for each position of a window at an inner node of a tree. */
static inline uint32_t by_lower_depth(const struct by_lowering *lowering, const struct by_lowered_tree *tree,
                                      const struct by_hop *hop)
{
    return by_lower_joins(tree, hop)                              ? 0
           : lowering->det && hop->child_count <= BY_CHILDREN_MAX ? by_image_det_depth(hop->child_count)
                                                                  : 1;
}

/* Returns the further slots for each position, for sets of more than 64 children; at the root of a
 * pair those of both trees. */
static inline uint32_t by_lower_sets(const struct by_lowered_tree *tree, const struct by_hop *hop)
{
    uint32_t both = tree->half == BY_HALF_UP && hop == tree->hops ? tree[1].hops->child_count : 0;

    return by_lower_joins(tree, hop) ? 0 : by_image_sets(hop->child_count + both);
}

/* The entries of a job at a node, in all its generations, and the slots that they need (counts). */
struct by_lower_need {
    uint32_t entries, slots;
};
struct by_lower_need by_lowering_need(const struct by_lowering *lowering, uint16_t job, uint32_t node);
/* The same for one of its trees. */
struct by_lower_need by_lowering_tree_need(const struct by_lowering *lowering,
                                           const struct by_lowered_tree *tree, uint32_t node);

/*
 * Return the rank of `node` in a job of this lowering, or UINT32_MAX; and the job's number of
 * ranks.
 */
uint32_t by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node);
uint32_t by_lowering_rank_count(const struct by_lowering *lowering, uint16_t job);

/*
 * Lowers `jobs` onto `topology`. Returns 0 and a lowering that the caller frees with
 * by_lowering_free; or BY_EINVAL, BY_ELIMIT or BY_EUNSUPPORTED with `problem` filled (object,
 * limit, remedy). Deterministic: the same input gives the same bytes.
 */
int by_lower(const struct by_topology *topology, const struct by_lower_job *jobs, uint32_t job_count,
             const struct by_lower_options *options, struct by_lowering **lowering,
             struct by_problem *problem);
void by_lowering_free(struct by_lowering *lowering);

/*
 * Makes the image of one node, sealed and checked by by_image_check. The caller frees *bytes.
 * Returns 0, or BY_ELIMIT with `problem` filled if the node needs more than an image can hold.
 */
int by_lowering_image(const struct by_lowering *lowering, uint32_t node, uint8_t **bytes, size_t *size,
                      struct by_problem *problem);

/* Returns a job's share (at most 1) in units of BY_SHARE_ONE. A share above 0 never becomes 0. */
uint32_t by_lower_share(struct by_fraction share);

/*
 * Returns the largest payload of a packet at an MTU: the rest after the headers, in whole cache
 * lines, at most BY_PAYLOAD_MAX; 0 if there is none.
 */
uint32_t by_lower_payload(uint32_t mtu);

#endif
