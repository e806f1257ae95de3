/* Internals of the check of periodic schedules: series.c follows lanes and adds up, series_bound.c
 * prices operations. See series.h. Each check belongs to one thread. */
#ifndef BY_VERIFY_SERIES_INSIDE_H
#define BY_VERIFY_SERIES_INSIDE_H

#include "control/fabric/links.h"
#include "control/verify/series.h"

struct by_series_checker {
    const struct by_series *series;
    const struct by_topology *topology;
    struct by_links *links;
    struct by_series_verdict *verdict;
};

/* Records the violation; returns false. */
bool by_series_violate(struct by_series_checker *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Computes the time of a unit on a link. */
void by_series_link_cost(const struct by_series_checker *checker, uint32_t link, mpq_t cost);
/* Computes the time of one combination at a node; false when the node cannot compute. */
bool by_series_task_time(const struct by_series_checker *checker, uint32_t node, const mpq_t size,
                         mpq_t time);
/*
 * Computes an upper bound for all schedules: the sum of the prices over the least cost of one
 * operation (shortest paths; for reductions, the minimum over all ways to combine). Returns false
 * with the violation when there is no such bound.
 */
bool by_series_bound(struct by_series_checker *checker, mpq_t bound);

#endif
