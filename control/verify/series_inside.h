/* The inside of the check of periodic schedules: series.c follows lanes and adds up, series_bound.c
 * prices operations. See series.h. One thread for each check. */
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

/* Writes the violation; returns false. */
bool by_series_violate(struct by_series_checker *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Time of a unit on a link. */
void by_series_link_cost(const struct by_series_checker *checker, uint32_t link, mpq_t cost);
/* Time of one combination at a node; false when it cannot compute. */
bool by_series_task_time(const struct by_series_checker *checker, uint32_t node, const mpq_t size,
                         mpq_t time);
/*
 * What no schedule exceeds: the sum of the prices over what one operation costs at least (shortest
 * paths, for reductions over all ways to combine). False with the violation when there is no such
 * bound.
 */
bool by_series_bound(struct by_series_checker *checker, mpq_t bound);

#endif
