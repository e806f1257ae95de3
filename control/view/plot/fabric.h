/*
 * What a picture knows of a fabric and a plan: neighbours (cables between the same two nodes
 * merged), how much of each direction the plan's trees use, and which trees are drawn. Floats are
 * for drawing; nothing here decides anything. Neighbours: layout.h places the nodes, picture.h and
 * dot.h write. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_FABRIC_H
#define BY_VIEW_PLOT_FABRIC_H

#include "control/fabric/topology.h"
#include "control/plan/plan.h"

/* Two nodes that at least one cable joins; a < b. Index 0 of a pair is the direction a -> b, 1 is b
 * -> a. */
struct by_plot_channel {
    uint32_t a, b;
    uint32_t cable_count;
    double capacity[2]; /* in the file's unit; 0 = no arc in this direction */
    double load[2];     /* the same unit: the sum of the weights of the trees whose data goes this way */
};

/* A node outside all parts; colours of parts (count). */
#define BY_FABRIC_NO_PART UINT32_MAX
#define BY_PART_COLORS    6u

struct by_fabric {
    const struct by_topology *topology;
    const struct by_plan *plan; /* or NULL */
    uint32_t channel_count;
    struct by_plot_channel *channels; /* ascending by (a, b) */
    bool *idle;                       /* by node: a compute node whose links the plan may not use */
    uint32_t *shaded;                 /* by node: 1 on the smaller side of the bottleneck cut, else 0 */
    bool shaded_receives;             /* the cut's data enters the shaded side; else it leaves it */
    uint32_t part_count; /* of the partition that proves the plan's bound, 0 where there is none */
    uint32_t *part;      /* by node: its part, BY_FABRIC_NO_PART outside all */
    uint8_t *part_color; /* by part: below BY_PART_COLORS */
    uint32_t drawn_count;
    uint32_t *drawn;         /* indices of the plan's trees that are drawn */
    uint32_t matching_count; /* trees of the chosen root, drawn or not */
    int64_t root;            /* node whose trees are drawn, or -1: of all roots */
};

/*
 * Merges cables, adds loads, and chooses up to `tree_max` trees: those of `root` (a node index), or
 * with -1 those of the first root for collectives where each tree belongs to a root, else all. The
 * caller frees. The topology and the plan must outlive it.
 */
struct by_fabric *by_fabric_make(const struct by_topology *topology, const struct by_plan *plan, int64_t root,
                                 uint32_t tree_max);
void by_fabric_free(struct by_fabric *fabric);
/* How a node is drawn. */
enum by_symbol { BY_SYMBOL_HOST, BY_SYMBOL_CAPABLE, BY_SYMBOL_PLAIN, BY_SYMBOL_OUTSIDE };
enum by_symbol by_fabric_symbol(const struct by_fabric *fabric, uint32_t node);
/* The channel between two nodes, or NULL; `*direction` is 0 when from is its a. */
struct by_plot_channel *by_fabric_channel(const struct by_fabric *fabric, uint32_t from, uint32_t to,
                                          unsigned *direction);
/* Whether data of `tree` goes from parent to child, and from child to parent. */
void by_fabric_flow(const struct by_fabric *fabric, const struct by_tree *tree, bool *down, bool *up);
/* "12.5", "40.8", "1.2e+06": at most 4 significant digits. */
#define BY_NUMBER_TEXT_BYTES 24
const char *by_number_text(double value, char text[BY_NUMBER_TEXT_BYTES]);

#endif
