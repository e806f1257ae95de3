/*
 * One tree of a plan with its equal branches drawn once: children whose whole branches are alike
 * (same kind of node, reached over the same kinds of switches, equal children in turn; Aho,
 * Hopcroft, Ullman, "The design and analysis of computer algorithms", 1974, section 3.2) stand as
 * one with their number. A tree that is still too wide is told by kinds and depth alone.
 * Neighbours: summary_picture.c. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CROWN_H
#define BY_VIEW_PLOT_CROWN_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

struct by_crown;

/* The tree number `tree` of the fabric's plan. The caller frees. */
struct by_crown *by_crown_make(const struct by_fabric *fabric, uint32_t tree);
void by_crown_free(struct by_crown *crown);
void by_crown_size(const struct by_crown *crown, double *width, double *height);
void by_crown_draw(const struct by_crown *crown, FILE *out);

#endif
