/* Implements made.h. */
#include "tests/unit/host-driver/schedule/made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/study/export/moves.h"
#include "tests/unit/control/study/steady/rig.h"

#define RANKS_MAX 16

void made_file(const struct made *made, char path[64])
{
    struct by_topology *topology = steady_parse(made->topology);
    uint32_t hosts[RANKS_MAX], others[RANKS_MAX], count = 0, other_count = 0;
    struct by_fraction sizes[RANKS_MAX * RANKS_MAX];
    struct by_steady_problem problem = {.topology = topology,
                                        .operation = made->operation,
                                        .ports = made->ports,
                                        .balance = BY_BALANCE_CHEAP,
                                        .sources = hosts,
                                        .targets = hosts,
                                        .holders = hosts};
    struct by_series *series;
    struct by_moves moves;
    struct by_problem trouble = {0};
    FILE *file;
    int fd;

    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            hosts[count++] = i;
    for (uint32_t r = 0; r < count; r++)
        if (r != made->rank)
            others[other_count++] = hosts[r];
    for (uint32_t i = 0; made->matrix != NULL && i < count * count; i++)
        sizes[i] = (struct by_fraction){.num = made->matrix[i], .den = 1};
    problem.source_count = problem.target_count = count;
    if (made->operation == BY_SERIES_EXCHANGE) {
        problem.matrix = sizes;
    } else if (made->operation == BY_SERIES_SCATTER) {
        problem.sources = &hosts[made->rank];
        problem.targets = others;
        problem.source_count = 1;
        problem.target_count = other_count;
    } else if (made->is_gather) {
        problem.sources = others;
        problem.targets = &hosts[made->rank];
        problem.source_count = other_count;
        problem.target_count = 1;
    } else if (made->operation == BY_SERIES_REDUCE) {
        problem.targets = &hosts[made->rank];
        problem.target_count = 1;
        problem.source_count = 0;
        problem.holder_count = count;
    }
    series = steady_made(&problem);
    if (by_moves_make(series, topology, &moves, &trouble) != 0)
        fail_msg("%s", trouble.text);
    snprintf(path, 64, "/tmp/banyan-schedule-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_int_equal(by_moves_write(&moves, topology, NULL, file), 0);
    assert_int_equal(fclose(file), 0);
    by_moves_free(&moves);
    by_series_free(series);
    by_topology_free(topology);
}
