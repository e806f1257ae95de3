/*
 * Draws one tree of a plan, with equal branches merged. Children are merged if their whole branches
 * are equal: same kind of node, reached over the same kinds of switches, with equal children (Aho,
 * Hopcroft, Ullman, "The design and analysis of computer algorithms", 1974, section 3.2). They are
 * drawn once, with their number. If the tree is still too wide, nodes of equal kind and depth are
 * merged. Neighbour: summary_picture.c. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CROWN_H
#define BY_VIEW_PLOT_CROWN_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

struct by_crown;

/* Prepares tree number `tree` of the fabric's plan. The caller frees it. */
struct by_crown *by_crown_make(const struct by_fabric *fabric, uint32_t tree);
void by_crown_free(struct by_crown *crown);
void by_crown_size(const struct by_crown *crown, double *width, double *height);
void by_crown_draw(const struct by_crown *crown, FILE *out);

#endif
