/*
 * The symmetries of a plan by classes: permutations of the nodes that keep all links. A tree of
 * such a plan stands for its images under all products of their powers, and so for one tree at each
 * image of its root. Each object belongs to one thread.
 */
#ifndef BY_PLAN_ROTATIONS_H
#define BY_PLAN_ROTATIONS_H

#include <stdint.h>

#include "control/base/problem.h"

/* Rotations of a plan (count), and the images of a tree, beyond which files are refused. */
#define BY_ROTATIONS_MAX       8u
#define BY_ROTATION_IMAGES_MAX ((uint64_t)1 << 20)

struct by_plan;

struct by_rotation {
    uint32_t order; /* a node that is moved returns after so many steps */
    uint32_t *next; /* by node: where it moves to */
};

struct by_rotations {
    uint32_t node_count;
    uint32_t count;
    struct by_rotation list[BY_ROTATIONS_MAX];
};

void by_rotations_free(struct by_rotations *rotations);
/* The number of images of a tree: the product of the orders. 1 for NULL. */
uint64_t by_rotations_images(const struct by_rotations *rotations);
/* By node: the first of the nodes that it can be moved to; the caller frees. */
uint32_t *by_rotations_orbits(const struct by_rotations *rotations);
/*
 * Replaces the trees of a plan by all their images, in the order of their roots, and removes its
 * rotations. BY_ELIMIT with `problem` filled if there are too many edges (about 200 million).
 */
int by_rotations_expand(struct by_plan *plan, struct by_problem *problem);
/* Replaces each tree by its image that is rooted at `root`, and removes trees that have none; a
 * plan without rotations has only the trees themselves. BY_EINVAL with `problem` filled if none
 * remains. */
int by_rotations_at_root(struct by_plan *plan, uint32_t node_count, uint32_t root,
                         struct by_problem *problem);

#endif
