/*
 * Linear programs, solved exactly: maximise c x under rows a x <= b, >= b or = b, with x >= 0. A
 * floating-point solver (Clp, clp.c) proposes a basis; rational arithmetic decides (simplex.c). It
 * solves for that basis, pivots on from it until it is optimal, and finally checks primal
 * feasibility, dual feasibility and the equality of both values, from the model alone (check.c). No
 * unchecked solution is returned. Neighbours: the programs of control/study/bound and
 * control/study/steady. Each program belongs to one thread.
 *
 * Rows and columns may be added after a solution; the next one starts from the last basis. Programs
 * whose rows (cuts) or columns (trees) are generated one by one therefore cost little more than
 * their last version.
 */
#ifndef BY_PLANNER_LP_LP_H
#define BY_PLANNER_LP_LP_H

#include <gmp.h>

#include "control/base/fraction.h"
#include "control/base/problem.h"

enum by_lp_sense { BY_LP_AT_MOST = 1, BY_LP_AT_LEAST, BY_LP_EQUAL };

/* The state of a program after by_lp_solve. */
enum by_lp_state { BY_LP_UNSOLVED = 0, BY_LP_OPTIMAL, BY_LP_INFEASIBLE, BY_LP_UNBOUNDED };

struct by_lp_options {
    double deadline; /* a time of CLOCK_MONOTONIC in seconds, 0 for none */
    bool exact_only; /* no floating-point proposal: rational arithmetic starts from the last basis */
    /* Clp perturbs the costs from its first step. By default it waits until steps have been
     * degenerate for long, and then needs ten times as many where costs are mostly 0. */
    bool perturb;
};

/* The work of the last by_lp_solve. */
struct by_lp_work {
    uint32_t pivots;    /* exact pivots after the proposal: 0 if the proposed basis was optimal */
    uint32_t repairs;   /* columns of the proposed basis that depend on others */
    size_t factor_size; /* entries in the factors of the last basis */
};

struct by_lp;

struct by_lp *by_lp_new(void);
void by_lp_free(struct by_lp *lp);
/* Adds a variable x >= 0 whose coefficient in the value is `num / den` (den > 0); returns its
 * number. */
uint32_t by_lp_column(struct by_lp *lp, int64_t num, int64_t den);
/* Changes the coefficient of a variable in the value. */
void by_lp_cost(struct by_lp *lp, uint32_t column, int64_t num, int64_t den);
/* Changes the right side of a row to `num / den` (den > 0). */
void by_lp_limit(struct by_lp *lp, uint32_t row, int64_t num, int64_t den);
/* Adds an empty row with the right side `num / den` (den > 0); returns its number. */
uint32_t by_lp_row(struct by_lp *lp, enum by_lp_sense sense, int64_t num, int64_t den);
/* Adds `num / den` (den > 0) to the coefficient of `column` in `row`. */
void by_lp_add(struct by_lp *lp, uint32_t row, uint32_t column, int64_t num, int64_t den);
/* The same for rationals that need more than 64 bits. */
uint32_t by_lp_column_q(struct by_lp *lp, const mpq_t cost);
uint32_t by_lp_row_q(struct by_lp *lp, enum by_lp_sense sense, const mpq_t limit);
void by_lp_add_q(struct by_lp *lp, uint32_t row, uint32_t column, const mpq_t value);
uint32_t by_lp_column_count(const struct by_lp *lp);
uint32_t by_lp_row_count(const struct by_lp *lp);

/*
 * Solves the program; `options` may be NULL. Returns
 *
 * - 0: the optimum is found and verified.
 * - BY_EINVAL with `problem` filled: there is no optimum. by_lp_state distinguishes an infeasible
 *   program from an unbounded one.
 * - BY_ETIMEDOUT: the deadline passed.
 * - BY_ESTATE: the verification failed, which is a bug in the solver; no result is returned.
 */
int by_lp_solve(struct by_lp *lp, const struct by_lp_options *options, struct by_problem *problem);
/*
 * Solves the program in floating point only: fills `*value`, the variables and the prices (arrays
 * by column and by row, or NULL). These are a guide and are not checked. After other costs, other
 * right sides or new columns, the next estimate starts from the last one; after new rows it starts
 * anew. The next by_lp_solve starts from the basis that was found. Returns false, and fills
 * nothing, if there is no optimum or the deadline passed (0: none).
 */
bool by_lp_estimate(struct by_lp *lp, double deadline, double *value, double *primals, double *duals);
enum by_lp_state by_lp_state(const struct by_lp *lp);
struct by_lp_work by_lp_work(const struct by_lp *lp);

/* After by_lp_solve returned 0: the optimum, a variable, and the price of a row (the gain of the
 * optimum from one more unit on its right side: >= 0 for at most, <= 0 for at least). The caller
 * owns and initialises the mpq_t. */
void by_lp_value(const struct by_lp *lp, mpq_t value);
void by_lp_primal(const struct by_lp *lp, uint32_t column, mpq_t value);
void by_lp_dual(const struct by_lp *lp, uint32_t row, mpq_t value);
/* Views of all variables (by column) and all prices (by row), valid until the program changes. */
const mpq_t *by_lp_primals(const struct by_lp *lp);
const mpq_t *by_lp_duals(const struct by_lp *lp);

/* Converts a non-negative rational to a fraction in 64 bits; BY_ERANGE if it does not fit. */
int by_lp_fraction(const mpq_t value, struct by_fraction *fraction);
/* The least common denominator of the `count` rationals at `values`. */
void by_lp_denominator(const mpq_t *values, uint32_t count, mpz_t denominator);

/* Writes the program in CPLEX format to `stream` (a FILE *), which other solvers read (glpsol
 * --cpxlp): for tests and for inspection. All numbers are multiplied by the rows' common
 * denominators. */
void by_lp_write(const struct by_lp *lp, void *stream);

#endif
