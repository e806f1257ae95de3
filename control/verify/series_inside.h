/* Internals of the check of periodic schedules: series.c follows lanes and adds up, series_bound.c
 * prices operations, series_reduction.c reductions, with series_sets.c if the operator commutes.
 * See series.h. Each check belongs to one thread. */
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

/* The prices of a file, by what they are for. */
struct by_series_prices {
    mpq_t *sends, *receives, *computes; /* by node */
    mpq_t *length;                      /* by link: price of a unit message */
    mpq_t sum;
};

/* The costs of a reduction in integers with one denominator, the product of both that are given. */
struct by_series_costs {
    mpz_t *length; /* by link: of a message of size 1, in 1 / time_unit */
    mpz_t *moved;  /* by link: of the message that is priced now */
    mpz_t *task;   /* by node: of the combination into it; negative: the node cannot combine */
    mpz_t time_unit, size_unit;
    mpq_t size; /* of the message that is priced now */
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
/* Computes the least cost of a reduction; false with the violation when there is none. */
bool by_series_price_reduction(struct by_series_checker *checker, const struct by_series_prices *prices,
                               mpq_t total);
/*
 * Whether the schedule of a commutative operator does not list all sets of values. Then the partial
 * results must have one size, and nodes that combine without holding a value must take no time for
 * it: the cheapest reduction is an arborescence.
 */
bool by_series_lists_few_sets(const struct by_series *series);
/* Checks this; false with the violation. */
bool by_series_check_few_sets(struct by_series_checker *checker);
/* Computes the cost of the cheapest arborescence, in the units of `costs`; false with the
 * violation. */
bool by_series_price_sets(struct by_series_checker *checker, const struct by_series_costs *costs,
                          mpz_t total);

#endif
