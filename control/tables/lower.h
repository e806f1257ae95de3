/*
 * Lowering: the plans of one or several jobs on one fabric become one table image for each node.
 * Neighbours: plan.h (in), offload/table/ image.h (out), the commands `tables` and `lab` (callers).
 * Nothing here is global; a lowering belongs to its caller; any thread.
 *
 * What becomes what: a node with children in a tree gets an ENTRY and its CHILDren; every compute
 * node gets a LEAF (of its own engine, by BY_PORT_LOCAL, where it has children or is the root); a
 * switch that a path only passes gets a RELAY for each direction. Plans of a job are merged: trees
 * that serve the same ranks in the same proportions are laid down once and carry the bits of all
 * their collectives. A job may be on some of the compute nodes (its plans say so): its ranks are
 * these, in the fabric's order.
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
/* Hops of all trees together (count) that hosts' images hold, for error texts: some 800 KB in each.
 * With more of them, hosts know their own neighbours alone. */
#define BY_LOWER_HOPS_MAX 65536u
/* Slots of one tree at one node, where nothing else is asked for: 256 x 1408 B = 352 KiB in flight.
 */
#define BY_LOWER_WINDOW 256u
/* Slots of one node (two banks of up to 2 x 1408 B each): 92 MB of a switch's memory. */
#define BY_LOWER_SLOTS 16384u
#define BY_LOWER_MTU   1500u
/* Ethernet, IPv4, UDP and banyan headers of one packet (bytes). */
#define BY_LOWER_HEADER_BYTES 82u

struct by_lower_options {
    uint32_t window; /* slots of one tree at one node, a power of two; 0 = BY_LOWER_WINDOW. Halved until every
                        node fits `slots` */
    uint32_t slots;  /* slots of one node over all jobs; 0 = BY_LOWER_SLOTS */
    uint32_t mtu;    /* of every link, bytes of IP packet; 0 = BY_LOWER_MTU */
    uint16_t gen;    /* install generation; 0 = 1 */
    uint8_t det;     /* entries get the slots by which they can sum in mode DET: one for each two children */
    uint8_t bare;    /* hosts' images without HOP and NAME, which only error texts need: for simulation */
    uint8_t cover;   /* enum by_cover (offload/wire/seal.h): of the tags of keyed jobs; by_lower_keyed() */
    uint8_t seed[16]; /* what keys are made of where a job brings none: secret, another for each lowering */
};

/* The plans of one job: at most one for each collective and root, all on the same compute nodes. */
struct by_lower_job {
    uint16_t job; /* 1 .. BY_JOBS_MAX - 1; the jobs given ascend */
    uint32_t plan_count;
    const struct by_plan *const *plans;
    uint16_t gen;    /* install generation; 0 = that of the options */
    uint32_t window; /* a power of two that is kept whatever the others need; 0 = chosen by the options */
    const uint32_t *slot_base; /* by node: the first slot of the job there; NULL: behind the job before it */
    const bool *lost_links;    /* by link: cables that its trees must not take; NULL: none */
    uint32_t share;            /* of its links, kept for it by switches: parts of BY_SHARE_ONE; 0: none */
    const uint8_t *secret;     /* the key of this generation, BY_SIPHASH_KEY_BYTES; NULL: made of the seed */
};

/* A tree's node and how it is tied to its parent. Paths are links (cables) in order, with the node
 * that each one leads to. */
struct by_hop_step {
    uint32_t link;
    uint32_t to; /* node index */
};
struct by_hop {
    uint32_t node;
    uint32_t parent;      /* node index, or BY_LOWER_NODE_NONE at the root */
    uint8_t child;        /* our bit at the parent */
    uint8_t child_count;  /* the node's own leaf included, which has bit 0; 0 on a pure leaf */
    uint32_t first_child; /* hop index of the first child that is another node */
    uint32_t nleaf;       /* compute nodes at and below this node */
    uint32_t down_count;  /* parent -> node */
    struct by_hop_step *down;
    uint32_t up_count; /* node -> parent; first and last cable are those of `down` */
    struct by_hop_step *up;
};

/* A tree as laid down: hops from the root outwards, children of one node in the order of their
 * bits. */
struct by_lowered_tree {
    uint16_t job;
    uint16_t tree;
    uint16_t collectives; /* bit 1 << enum by_collective */
    uint16_t owner;       /* rank, or BY_RANK_NONE */
    uint32_t share;
    uint32_t window;
    uint8_t modes; /* what all its inner nodes can do, as in struct by_image_leaf */
    uint16_t ops, dtypes;
    uint32_t hop_count;
    struct by_hop *hops;
    uint32_t
        *hop_of; /* by node: index of its hop, or BY_LOWER_NODE_NONE where the node is not part of the tree */
};

/* What a switch passes on: packets of (job, tree) from src_ip to dst_ip come by `from` and leave by
 * `port`.
 */
struct by_lowered_relay {
    uint32_t node;
    uint16_t job;
    uint16_t tree;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t port;
    uint16_t from; /* the port that they come by */
};

struct by_lowering {
    const struct by_topology *topology; /* the caller's; must outlive the lowering */
    uint32_t node_count;
    struct by_address_map map;
    uint32_t job_count;
    struct by_image_job *jobs; /* `rank` is each host's own, and is not set here */
    uint32_t **ranks;          /* by the place of the job in `jobs`, by node: rank, or UINT32_MAX */
    uint32_t **slot_base; /* by the place of the job in `jobs`, by node; NULL: behind the job before it */
    uint32_t tree_count;
    struct by_lowered_tree *trees; /* of all jobs, by (job, tree) */
    uint32_t relay_count;
    struct by_lowered_relay *relays; /* by (node, job, tree, src_ip, dst_ip) */
    struct by_image_key *keys;       /* of `jobs`, or NULL: not keyed */
    uint8_t det, bare;
    uint8_t brief;                            /* hosts' images without HOP, which would be too many */
    uint32_t sharers;                         /* jobs with a share: switches learn their links' rates */
    uint32_t mtu, payload_max, window, slots; /* slots: the most that one node needs */
    uint64_t cookie;
    uint32_t note_count;
    char **notes; /* what a user should know: windows halved, shares rounded, trees shared */
};

/* HOP records of a tree: of each of its nodes, and of each relay but the first above one (emit.c).
 */
uint32_t by_lower_hop_records(const struct by_lowered_tree *tree);

/* Slots for each place of a window at a tree's inner node. */
static inline uint32_t by_lower_depth(const struct by_lowering *lowering, const struct by_hop *hop)
{
    return lowering->det ? by_image_det_depth(hop->child_count) : 1;
}

/* Entries of a job at `node`, and slots that they need (counts). */
struct by_lower_need {
    uint32_t entries, slots;
};
struct by_lower_need by_lowering_need(const struct by_lowering *lowering, uint16_t job, uint32_t node);

/* The rank of `node` in a job of this lowering, or UINT32_MAX; and how many the job has. */
uint32_t by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node);
uint32_t by_lowering_rank_count(const struct by_lowering *lowering, uint16_t job);

/*
 * Lowers `jobs` onto `topology`. 0 and a lowering that the caller frees with by_lowering_free, or
 * BY_EINVAL, BY_ELIMIT, BY_EUNSUPPORTED with `problem` filled (object, limit, remedy).
 * Deterministic: the same input gives the same bytes.
 */
int by_lower(const struct by_topology *topology, const struct by_lower_job *jobs, uint32_t job_count,
             const struct by_lower_options *options, struct by_lowering **lowering,
             struct by_problem *problem);
void by_lowering_free(struct by_lowering *lowering);

/*
 * The image of one node, sealed and accepted by by_image_check: *bytes is the caller's to free.
 * BY_ELIMIT with `problem` when the node needs more than an image can hold.
 */
int by_lowering_image(const struct by_lowering *lowering, uint32_t node, uint8_t **bytes, size_t *size,
                      struct by_problem *problem);

/* A job's share, at most 1, in parts of BY_SHARE_ONE; none that is more than 0 becomes 0. */
uint32_t by_lower_share(struct by_fraction share);

/* Largest payload of a packet at an MTU: what is left after the headers, in whole cache lines, at
 * most BY_PAYLOAD_MAX. 0 if none. */
uint32_t by_lower_payload(uint32_t mtu);

#endif
