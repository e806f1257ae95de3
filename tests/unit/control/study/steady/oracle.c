/* Implements oracle.h. */
#include "tests/unit/control/study/steady/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/base/fraction.h"

#define SIDE 16 /* maximum number of nodes of a platform */

struct oracle {
    const struct by_steady_problem *problem;
    uint32_t n;
    int64_t bandwidth[SIDE][SIDE]; /* 0: no link */
    int64_t multiple;              /* factor of the rows of ports: a multiple of all bandwidths */
    FILE *file;
    unsigned rows;
    bool any; /* whether the current row has an entry */
};

static void begin(struct oracle *oracle)
{
    fprintf(oracle->file, " r%u:", oracle->rows++);
    oracle->any = false;
}

static void term(struct oracle *oracle, int64_t factor, const char *kind, uint32_t a, uint32_t b, uint32_t c)
{
    fprintf(oracle->file, " %+lld %s_%u_%u_%u\n", (long long)factor, kind, a, b, c);
    oracle->any = true;
}

static void end(struct oracle *oracle, const char *relation, int64_t right)
{
    fprintf(oracle->file, "%s %s %lld\n", oracle->any ? "" : " 0 TP", relation, (long long)right);
}

static int64_t size_of(const struct by_steady_problem *problem, uint32_t first, uint32_t last)
{
    int64_t size = 1;

    for (uint32_t i = 0; i < problem->size_count; i++)
        if (problem->sizes[i].first == BY_SERIES_NONE ||
            (problem->sizes[i].first == first && problem->sizes[i].last == last))
            size = problem->sizes[i].size.num;
    return size;
}

/* ---- kinds of messages: pairs (from, to) for scatters and gossips, intervals (k, m) for
 * reductions ---- */

static uint32_t kinds(const struct oracle *oracle)
{
    const struct by_steady_problem *problem = oracle->problem;

    return problem->operation == BY_SERIES_REDUCE ? problem->holder_count * problem->holder_count
                                                  : problem->source_count * problem->target_count;
}

static bool is_kind(const struct oracle *oracle, uint32_t kind)
{
    const struct by_steady_problem *problem = oracle->problem;

    if (problem->operation == BY_SERIES_REDUCE)
        return kind / problem->holder_count <= kind % problem->holder_count;
    if (problem->matrix && problem->matrix[kind].num == 0)
        return false;
    return problem->sources[kind / problem->target_count] != problem->targets[kind % problem->target_count];
}

static int64_t kind_size(const struct oracle *oracle, uint32_t kind)
{
    const struct by_steady_problem *problem = oracle->problem;
    uint32_t to;

    if (problem->operation == BY_SERIES_REDUCE)
        return size_of(problem, kind / problem->holder_count, kind % problem->holder_count);
    if (problem->matrix)
        return problem->matrix[kind].num;
    to = problem->targets[kind % problem->target_count];
    return size_of(problem, to, to);
}

/* Adds the time on a link, in 1 / multiple. */
static void link_terms(struct oracle *oracle, uint32_t from, uint32_t to)
{
    for (uint32_t kind = 0; kind < kinds(oracle) && oracle->bandwidth[from][to]; kind++)
        if (is_kind(oracle, kind))
            term(oracle, oracle->multiple / oracle->bandwidth[from][to] * kind_size(oracle, kind), "s", from,
                 to, kind);
}

static bool one_port(const struct oracle *oracle, uint32_t node)
{
    return oracle->problem->ports == BY_SERIES_ONE_PORT ||
           (oracle->problem->ports == BY_SERIES_HOST_PORTS && oracle->problem->topology->nodes[node].compute);
}

/* (1) to (3), and (7). */
static void port_rows(struct oracle *oracle)
{
    for (uint32_t i = 0; i < oracle->n; i++) {
        if (one_port(oracle, i)) {
            begin(oracle);
            for (uint32_t j = 0; j < oracle->n; j++)
                link_terms(oracle, i, j);
            end(oracle, "<=", oracle->multiple);
            begin(oracle);
            for (uint32_t j = 0; j < oracle->n; j++)
                link_terms(oracle, j, i);
            end(oracle, "<=", oracle->multiple);
        }
        for (uint32_t j = 0; j < oracle->n; j++)
            if (oracle->bandwidth[i][j]) {
                begin(oracle);
                link_terms(oracle, i, j);
                end(oracle, "<=", oracle->multiple);
            }
    }
}

static void arrivals(struct oracle *oracle, uint32_t node, uint32_t kind, int64_t sign)
{
    for (uint32_t j = 0; j < oracle->n; j++)
        if (oracle->bandwidth[j][node])
            term(oracle, sign, "s", j, node, kind);
}

static void departures(struct oracle *oracle, uint32_t node, uint32_t kind)
{
    for (uint32_t j = 0; j < oracle->n; j++)
        if (oracle->bandwidth[node][j])
            term(oracle, -1, "s", node, j, kind);
}

/* (5) and the throughput; nothing returns to the sender or leaves the receiver. */
static void pair_rows(struct oracle *oracle)
{
    const struct by_steady_problem *problem = oracle->problem;

    for (uint32_t kind = 0; kind < kinds(oracle); kind++) {
        uint32_t from = problem->sources[kind / problem->target_count];
        uint32_t to = problem->targets[kind % problem->target_count];

        for (uint32_t i = 0; i < oracle->n && is_kind(oracle, kind); i++) {
            begin(oracle);
            if (i == from || i == to) {
                arrivals(oracle, i, kind, 1);
                departures(oracle, i, kind);
                fprintf(oracle->file, " %s TP", i == from ? "+" : "-");
                oracle->any = true;
            } else {
                arrivals(oracle, i, kind, 1);
                departures(oracle, i, kind);
            }
            end(oracle, "=", 0);
        }
    }
}

/* Adds the task that joins [k, l] and [l + 1, m] at a node. */
static void task_term(struct oracle *oracle, int64_t factor, uint32_t node, uint32_t k, uint32_t l,
                      uint32_t m)
{
    uint32_t n = oracle->problem->holder_count;

    if (oracle->problem->topology->nodes[node].has_task_time)
        term(oracle, factor, "c", node, k * n + l, m);
}

static void conserve(struct oracle *oracle, uint32_t node, uint32_t k, uint32_t m)
{
    const struct by_steady_problem *problem = oracle->problem;
    uint32_t n = problem->holder_count;
    bool whole = k == 0 && m == n - 1;

    if (k == m && problem->holders[k] == node)
        return; /* unlimited */
    begin(oracle);
    arrivals(oracle, node, k * n + m, 1);
    departures(oracle, node, k * n + m);
    for (uint32_t l = k; l < m; l++)
        task_term(oracle, 1, node, k, l, m);
    for (uint32_t o = m + 1; o < n; o++)
        task_term(oracle, -1, node, k, m, o);
    for (uint32_t o = 0; o < k; o++)
        task_term(oracle, -1, node, o, k - 1, m);
    if (whole && problem->targets[0] == node) {
        fprintf(oracle->file, " - TP");
        oracle->any = true;
    }
    end(oracle, "=", 0);
}

/* (9) to (11). */
static void reduce_rows(struct oracle *oracle)
{
    uint32_t n = oracle->problem->holder_count;

    for (uint32_t i = 0; i < oracle->n; i++) {
        const struct by_node *node = &oracle->problem->topology->nodes[i];

        for (uint32_t k = 0; k < n; k++)
            for (uint32_t m = k; m < n; m++)
                conserve(oracle, i, k, m);
        begin(oracle);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t m = k + 1; m < n; m++)
                for (uint32_t l = k; l < m; l++)
                    task_term(oracle, node->task_time.num, i, k, l, m);
        end(oracle, "<=", 1);
    }
}

static double solve(const char *program)
{
    char command[300], line[200];
    double value = -2;
    FILE *pipe;

    snprintf(command, sizeof(command),
             "glpsol --exact --cpxlp %s -w %s.sol >%s.log 2>&1 && cat %s.sol; rm -f %s.sol %s.log", program,
             program, program, program, program, program);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    /* "s bas ROWS COLUMNS f f VALUE": a basic solution, primal and dual feasible, so it is
     * optimal */
    while (fgets(line, sizeof(line), pipe)) {
        char primal, dual;

        if (sscanf(line, "s bas %*d %*d %c %c %lf", &primal, &dual, &value) == 3)
            assert_true(primal == 'f' && dual == 'f');
    }
    pclose(pipe);
    if (value < 0)
        fail_msg("glpsol has no optimum for %s", program);
    return value;
}

double oracle_throughput(const struct by_steady_problem *problem)
{
    struct oracle oracle = {.problem = problem, .n = problem->topology->node_count};
    char name[] = "/tmp/banyan-steady-oracle-XXXXXX";
    double value;
    int file;

    if (system("command -v glpsol >/dev/null") != 0)
        return -1;
    assert_true(oracle.n <= SIDE && problem->topology->scale == 1);
    for (uint32_t a = 0; a < problem->topology->arc_count; a++) {
        const struct by_arc *arc = &problem->topology->arcs[a];

        oracle.bandwidth[arc->from][arc->to] += arc->capacity;
    }
    oracle.multiple = 1;
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        int64_t bandwidth = oracle.bandwidth[i / SIDE][i % SIDE];

        if (bandwidth)
            oracle.multiple *= bandwidth / by_gcd(oracle.multiple, bandwidth);
    }
    file = mkstemp(name);
    assert_true(file >= 0);
    oracle.file = fdopen(file, "w");
    fputs("Maximize\n obj: TP\nSubject To\n", oracle.file);
    port_rows(&oracle);
    if (problem->operation == BY_SERIES_REDUCE)
        reduce_rows(&oracle);
    else
        pair_rows(&oracle);
    fputs("End\n", oracle.file);
    fclose(oracle.file);
    value = solve(name);
    unlink(name);
    return value;
}
