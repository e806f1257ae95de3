/*
 * Predefined fabrics: a table of presets, each with its parameters and defaults, and the function
 * that makes it. `banyan topo` prints them, varied by vary.h; tests and the demo build on them.
 * Pure functions: any thread.
 */
#ifndef BY_FABRIC_PRESET_PRESET_H
#define BY_FABRIC_PRESET_PRESET_H

#include "control/fabric/build.h"

#define BY_PRESET_PARAMETERS_MAX 6u

enum by_parameter_kind { BY_PARAMETER_COUNT = 1, BY_PARAMETER_BANDWIDTH, BY_PARAMETER_SIZES };

struct by_parameter {
    const char *name; /* the option's name, without dashes; NULL ends the list */
    enum by_parameter_kind kind;
    const char *fallback; /* the default, as text */
    int64_t max;          /* maximum of a count, whose minimum is 1; 0 if not applicable */
    const char *help;
};

/* Parameters in the order of the preset's list. */
struct by_preset_values {
    int64_t count[BY_PRESET_PARAMETERS_MAX];
    struct by_fraction bandwidth[BY_PRESET_PARAMETERS_MAX];
    const char *text[BY_PRESET_PARAMETERS_MAX];
};

struct by_preset {
    const char *name;
    const char *summary;
    const char *capable; /* default of --capable */
    struct by_parameter parameters[BY_PRESET_PARAMETERS_MAX + 1];
    int (*make)(struct by_builder *builder, const struct by_preset_values *values,
                struct by_problem *problem);
};

/* All presets; sets `*count`. */
const struct by_preset *by_preset_list(size_t *count);
const struct by_preset *by_preset_find(const char *name);
/*
 * Makes a preset. `texts[i]` is parameter i as text, or NULL for its default. `capable` lists the
 * switches that multicast and aggregate, separated by commas: names of switches, classes of
 * switches (a name without its trailing digits), "all" or "none"; NULL is the default. Returns 0,
 * or BY_EINVAL with `problem` filled.
 */
int by_preset_make(const struct by_preset *preset, const char *const *texts, const char *capable,
                   struct by_topology **topology, struct by_problem *problem);

/* Marks the switches that multicast and aggregate, according to `capable` as in by_preset_make.
 * Must be called before the topology is shared. Returns 0, or BY_EINVAL with `problem` filled. */
int by_capable_choose(struct by_topology *topology, const char *capable, struct by_problem *problem);

/* Functions that make presets, one for each row of the table (preset_regular.c, preset_fabric.c,
 * preset_box.c, preset_irregular.c). */
typedef int by_preset_fn(struct by_builder *builder, const struct by_preset_values *values,
                         struct by_problem *problem);
by_preset_fn by_preset_star, by_preset_ring, by_preset_complete, by_preset_torus, by_preset_hypercube,
    by_preset_random, by_preset_leafspine, by_preset_fattree, by_preset_clos, by_preset_dragonfly,
    by_preset_rail, by_preset_twobox, by_preset_a100, by_preset_h100, by_preset_mi250, by_preset_hetero,
    by_preset_pcie, by_preset_regular;

#endif
