/*
 * Presets of boxes full of accelerators: two boxes, rails, DGX A100 and H100, MI250. The figures of
 * the real machines are those of ForestColl (NSDI'26, section 6). See preset.h.
 */
#include "control/base/alloc.h"
#include "control/fabric/preset/preset.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Direct links inside an MI250 box, as multiples of 50 GB/s each way. */
static const struct {
    uint8_t a, b, lanes;
} mi250_links[] = {
    {0, 1, 4},   {0, 4, 2},   {0, 8, 1},   {1, 5, 1},   {1, 9, 1},   {1, 10, 1},  {2, 3, 4},
    {2, 6, 1},   {2, 9, 1},   {2, 10, 1},  {3, 7, 2},   {3, 11, 1},  {4, 5, 4},   {4, 6, 1},
    {5, 6, 1},   {5, 7, 1},   {6, 7, 4},   {8, 9, 4},   {8, 12, 2},  {9, 13, 1},  {10, 11, 4},
    {10, 14, 1}, {11, 15, 2}, {12, 13, 4}, {12, 14, 1}, {13, 14, 1}, {13, 15, 1}, {14, 15, 4},
};
#define MI250_LANE  50
#define MI250_OUTER 16
#define MI250_GCDS  16

static void link_both(struct by_builder *builder, int64_t a, int64_t b, struct by_fraction bandwidth)
{
    by_builder_link(builder, (uint32_t)a, (uint32_t)b, true, bandwidth, nowhere);
}

static int check_count(int64_t nodes, struct by_problem *problem)
{
    if (nodes <= BY_TOPOLOGY_NODES_MAX)
        return 0;
    return by_problem_set(problem, BY_ELIMIT, nowhere, "this fabric would have %lld nodes; the limit is %u",
                          (long long)nodes, BY_TOPOLOGY_NODES_MAX);
}

struct boxes {
    int64_t boxes, gpus;
    const char *gpu;   /* name of a compute node, with its number in the fabric */
    const char *inner; /* name of the switch of a box */
    const char *outer; /* name of an outer switch */
    struct by_fraction inside, outside;
    bool rails; /* an outer switch for each GPU number instead of one for all */
};

static int make_boxes(struct by_builder *builder, const struct boxes *shape, struct by_problem *problem)
{
    int64_t all = shape->boxes * shape->gpus, inner = all, outer = all + shape->boxes;

    if (check_count(all + shape->boxes + shape->gpus, problem) != 0)
        return BY_ELIMIT;
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "%s%lld", shape->gpu, (long long)i);
    for (int64_t i = 0; i < shape->boxes; i++)
        by_builder_switch(builder, "%s%lld", shape->inner, (long long)i);
    for (int64_t i = 0; i < (shape->rails ? shape->gpus : 1); i++)
        by_builder_switch(builder, "%s%lld", shape->outer, (long long)i);
    for (int64_t i = 0; i < all; i++) {
        link_both(builder, i, inner + i / shape->gpus, shape->inside);
        link_both(builder, i, outer + (shape->rails ? i % shape->gpus : 0), shape->outside);
    }
    return 0;
}

int by_preset_rail(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    struct boxes shape = {values->count[0],     values->count[1],     "gpu", "box", "rail",
                          values->bandwidth[2], values->bandwidth[3], true};

    return make_boxes(builder, &shape, problem);
}

int by_preset_twobox(struct by_builder *builder, const struct by_preset_values *values,
                     struct by_problem *problem)
{
    struct boxes shape = {values->count[3],     values->count[0],     "host", "box", "outer",
                          values->bandwidth[1], values->bandwidth[2], false};

    return make_boxes(builder, &shape, problem);
}

int by_preset_a100(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    struct boxes shape = {values->count[0], values->count[1], "gpu", "nvswitch", "ib",
                          {300, 1},         {25, 1},          false};

    return make_boxes(builder, &shape, problem);
}

int by_preset_h100(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    struct boxes shape = {values->count[0], values->count[1], "gpu", "nvswitch", "ib",
                          {450, 1},         {50, 1},          false};

    return make_boxes(builder, &shape, problem);
}

int by_preset_mi250(struct by_builder *builder, const struct by_preset_values *values,
                    struct by_problem *problem)
{
    int64_t boxes = values->count[0], gpus = values->count[1], all = boxes * gpus;
    uint32_t outer;

    if (check_count(all + 1, problem) != 0)
        return BY_ELIMIT;
    for (int64_t i = 0; i < all; i++)
        by_builder_compute(builder, "gcd%lld", (long long)i);
    outer = by_builder_switch(builder, "ib0");
    for (int64_t box = 0; box < boxes; box++)
        for (size_t i = 0; i < sizeof(mi250_links) / sizeof(mi250_links[0]); i++)
            if (mi250_links[i].a < gpus && mi250_links[i].b < gpus)
                link_both(builder, box * gpus + mi250_links[i].a, box * gpus + mi250_links[i].b,
                          (struct by_fraction){mi250_links[i].lanes * MI250_LANE, 1});
    for (int64_t i = 0; i < all; i++)
        link_both(builder, i, outer, (struct by_fraction){MI250_OUTER, 1});
    return 0;
}
