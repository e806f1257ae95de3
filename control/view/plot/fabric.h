/*
 * The facts for a picture of a fabric and a plan: channels (merged cables between two nodes), the
 * use of each direction by the plan's trees, and the trees that are drawn. Values are floating
 * point, because they are for drawing only. Neighbours: layout.h places the nodes; picture.h and
 * dot.c write files. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_FABRIC_H
#define BY_VIEW_PLOT_FABRIC_H

#include "control/fabric/topology.h"
#include "control/plan/plan.h"

/*
 * Two nodes joined by at least one cable; a < b. In arrays of two, index 0 is the direction a -> b,
 * index 1 is b -> a.
 */
struct by_plot_channel {
    uint32_t a, b;
    uint32_t cable_count;
    double capacity[2]; /* in the file's unit; 0: no arc in this direction */
    double load[2];     /* in the same unit: sum of the weights of the trees that send data this way */
};

/* Value for a node outside all parts; number of colours for parts. */
#define BY_FABRIC_NO_PART UINT32_MAX
#define BY_PART_COLORS    6u

struct by_fabric {
    const struct by_topology *topology;
    const struct by_plan *plan; /* may be NULL */
    uint32_t channel_count;
    struct by_plot_channel *channels; /* sorted by (a, b) */
    bool *idle;                       /* by node: a compute node whose links the plan must not use */
    uint32_t *shaded;                 /* by node: 1 on the smaller side of the bottleneck cut, else 0 */
    bool shaded_receives;             /* true: the cut's data enter the shaded side; false: they leave it */
    uint32_t part_count;              /* parts of the partition that proves the plan's bound; 0: none */
    uint32_t *part;                   /* by node: its part, or BY_FABRIC_NO_PART */
    uint8_t *part_color;              /* by part: below BY_PART_COLORS */
    uint32_t drawn_count;
    uint32_t *drawn;         /* indices of the plan's trees that are drawn */
    uint32_t matching_count; /* number of trees of the chosen root, drawn or not */
    int64_t root;            /* node whose trees are drawn; -1: all roots */
};

/*
 * Merges cables, adds up loads, and chooses up to `tree_max` trees. `root` is a node index; its
 * trees are chosen. With -1, it chooses the trees of the first root if each tree of the collective
 * belongs to a root, else any trees. The caller frees the result. The topology and the plan must
 * outlive it.
 */
struct by_fabric *by_fabric_make(const struct by_topology *topology, const struct by_plan *plan, int64_t root,
                                 uint32_t tree_max);
void by_fabric_free(struct by_fabric *fabric);
/* Symbol of a node. */
enum by_symbol { BY_SYMBOL_HOST, BY_SYMBOL_CAPABLE, BY_SYMBOL_PLAIN, BY_SYMBOL_OUTSIDE };
enum by_symbol by_fabric_symbol(const struct by_fabric *fabric, uint32_t node);
/* Returns the channel between two nodes, or NULL; `*direction` is 0 if `from` is its a. */
struct by_plot_channel *by_fabric_channel(const struct by_fabric *fabric, uint32_t from, uint32_t to,
                                          unsigned *direction);
/* Sets whether data of `tree` flow from parent to child, and from child to parent. */
void by_fabric_flow(const struct by_fabric *fabric, const struct by_tree *tree, bool *down, bool *up);
/* Writes a number with at most 4 significant digits: "12.5", "40.8", "1.2e+06". */
#define BY_NUMBER_TEXT_BYTES 24
const char *by_number_text(double value, char text[BY_NUMBER_TEXT_BYTES]);

#endif
