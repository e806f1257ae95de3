/*
 * A fabric in the model of LMR section 2: directed links with the time of a message of size 1, and
 * nodes with the time of one combination. Private to control/study/steady. Immutable once made.
 */
#ifndef BY_STUDY_STEADY_PLATFORM_H
#define BY_STUDY_STEADY_PLATFORM_H

#include <gmp.h>

#include "control/fabric/links.h"
#include "control/study/series/series.h"

struct by_platform {
    const struct by_topology *topology;
    enum by_series_ports ports;
    struct by_links *links; /* parallel links are merged */
    mpq_t *cost;            /* by link: time of a message of size 1 */
};

struct by_platform *by_platform_new(const struct by_topology *topology, enum by_series_ports ports);
void by_platform_free(struct by_platform *platform);
/* Whether a node can combine messages. */
bool by_platform_computes(const struct by_platform *platform, uint32_t node);
/*
 * Sets `time` to the time of one combination into a message of `size`: the node's task_time, or at
 * a switch that aggregates the time to add `size` of data.
 */
void by_platform_task_time(const struct by_platform *platform, uint32_t node, const mpq_t size, mpq_t time);

#endif
