/*
 * How near allreduce comes to its bound over many fabrics: exact ratios sorted into classes,
 * separately for fabrics whose switches support everything, nothing, or some of it. One thread per
 * table.
 */
#ifndef TESTS_CAMPAIGN_RATIO_H
#define TESTS_CAMPAIGN_RATIO_H

#include "control/fabric/topology.h"

#define RATIO_CLASSES 8u

struct ratio_table {
    uint64_t count[3][RATIO_CLASSES]; /* [capability][class] */
    double sum[3];                    /* of the ratios, for the mean */
};

/* `capability` is a result of campaign_capability. */
void ratio_add(struct ratio_table *table, char capability, struct by_fraction achieved,
               struct by_fraction bound);
void ratio_print(const struct ratio_table *table);
/* Returns whether at least `percent` of the fabrics with a capable switch reach 0.99. */
bool ratio_reaches(const struct ratio_table *table, uint64_t percent);

#endif
