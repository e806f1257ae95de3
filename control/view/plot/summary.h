/*
 * Summarises a large fabric: equal parts are drawn once, with their number. The fabric is divided
 * from the top: first the highest switches, then the connected parts that remain without them.
 * Equal parts (pods, racks, boxes) become one frame, which is divided in the same way until it is
 * small enough to be drawn whole. If the highest switches form groups (clique.h), these are the
 * first parts. One edge of the summary represents all links between two groups, and every link of
 * the fabric is in one edge.
 *
 * Neighbours: classes.h (equal nodes), summary_draw.c (the picture). Single-threaded.
 */
#ifndef BY_VIEW_PLOT_SUMMARY_H
#define BY_VIEW_PLOT_SUMMARY_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

/* One node, or several equal nodes. */
struct by_plot_group {
    uint32_t sample; /* a node of the fabric: the first of the group */
    uint32_t count;  /* nodes in the group, in the whole fabric */
    uint32_t within; /* nodes in the group, in one copy of its frame */
    uint32_t frame;
    uint32_t level;
    uint32_t position; /* position among the hosts of its frame */
    bool shaded;       /* on the shaded side of the bottleneck */
    bool mixed;        /* different nodes that did not get a frame of their own */
    double x, y, half_width, half_height;
};

/* All links between two groups, or inside one; direction 0 is from a to b. */
struct by_bundle {
    uint32_t a, b;
    bool apart;     /* joins different groups of switches (clique.h), which may be copies of one frame */
    uint32_t count; /* channels */
    double capacity_min, capacity_max;
    struct {
        uint32_t count;
        double part_min, part_max, part_sum; /* utilisation: part of the capacity that is used */
    } way[2];
};

struct by_plot_frame {
    uint32_t parent; /* UINT32_MAX for the first */
    uint32_t copies; /* number of copies in the whole fabric */
    uint32_t size;   /* nodes of one copy */
    bool whole;      /* all nodes of a copy are drawn */
    bool bare;       /* a single node: no frame is drawn */
    double x, y, width, height;
};

struct by_summary {
    const struct by_fabric *fabric;
    uint32_t group_count, bundle_count, frame_count;
    struct by_plot_group *groups;
    struct by_bundle *bundles;
    struct by_plot_frame *frames;
    uint32_t *group_of; /* by node */
    double width, height;
};

/* Whether a summary is clearer than a picture of every node. */
bool by_summary_suits(const struct by_fabric *fabric);
struct by_summary *by_summary_make(const struct by_fabric *fabric);
void by_summary_free(struct by_summary *summary);
/* Places frames and groups; sets width and height. */
void by_summary_place(struct by_summary *summary);
/* Draws the frames with their links, coloured by load if there is a plan. */
void by_summary_draw(const struct by_summary *summary, FILE *out);

#endif
