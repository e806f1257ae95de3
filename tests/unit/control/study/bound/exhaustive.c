/*
 * All small fabrics against exhaustive enumeration: `bound-exhaustive [--lp FOLDER] [--only WHAT
 * [--index N]]`. `make bound-check` runs it. --lp also writes a sample of the programs over all
 * trees for glpsol --exact. A difference prints the command that replays it. Ends with `N passed, N
 * failed`. Single-threaded.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "tests/unit/control/study/bound/compare.h"
#include "tests/unit/control/study/bound/graphs.h"
#include "tests/unit/control/study/bound/oracle.h"

/* Programs written in each sweep (count). */
#define PROGRAMS_MAX 24u

struct sweep {
    struct graphs graphs;
    uint64_t step; /* tests each step-th fabric */
    bool trees;    /* compares with the program over all trees */
    const char *words;
};

static struct sweep sweeps[] = {
    {{GRAPH_SYMMETRIC, 2, 9, "graph-2", 0, {0}}, 1, true, "graphs of 2 nodes, bandwidths to 9"},
    {{GRAPH_SYMMETRIC, 3, 6, "graph-3", 0, {0}}, 1, true, "graphs of 3 nodes, bandwidths to 6"},
    {{GRAPH_SYMMETRIC, 4, 3, "graph-4", 0, {0}}, 1, false, "graphs of 4 nodes, bandwidths to 3"},
    {{GRAPH_SYMMETRIC, 4, 2, "graph-4-2", 0, {0}}, 7, true, "a 7th of those to 2, by all trees"},
    {{GRAPH_SYMMETRIC, 5, 2, "graph-5", 0, {0}}, 1, false, "graphs of 5 nodes, bandwidths to 2"},
    {{GRAPH_CLASS, 6, 2, "class-6", 0, {0}}, 1, false, "shapes of 6 nodes, bandwidths 1 and 2"},
    {{GRAPH_DIRECTED, 3, 3, "directed-3", 0, {0}}, 1, true, "directed graphs of 3 nodes, bandwidths to 3"},
    {{GRAPH_DIRECTED, 4, 1, "directed-4", 0, {0}}, 1, true, "directed graphs of 4 nodes"},
    {{GRAPH_DIRECTED, 4, 2, "directed-4-2", 0, {0}}, 997, true, "a 997th of those with bandwidths to 2"},
    {{GRAPH_SWITCHED, 0, 5, "switched", 0, {0}}, 1, true, "random hosts and switches that forward"},
};

/* Writes one program over all trees and its expected optimum, as tests/oracle/programs.sh reads
 * it. */
static bool write_program(const char *folder, const struct by_topology *topology, struct by_fraction rate)
{
    struct by_lp *lp;
    char path[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.lp", folder, topology->name);
    file = fopen(path, "we");
    if (!file)
        return false;
    fprintf(file, "\\ expect equal %lld %lld %s\n", (long long)(rate.num * topology->scale),
            (long long)rate.den, topology->name);
    lp = oracle_program(topology);
    by_lp_write(lp, file);
    by_lp_free(lp);
    return fclose(file) == 0;
}

/* Runs one sweep, or only its number `only`. Returns the number of differences. */
static uint64_t run(struct sweep *sweep, int64_t only, const char *folder, uint64_t *passed)
{
    uint64_t count = graphs_count(&sweep->graphs), tried = 0, different = 0;
    uint64_t apart = count / sweep->step / PROGRAMS_MAX + 1, written = 0;

    for (uint64_t i = only >= 0 ? (uint64_t)only : 0; i < count; i += sweep->step) {
        struct by_topology *topology = graphs_make(&sweep->graphs, i);
        char text[COMPARE_TEXT_BYTES];
        struct by_fraction rate;

        if (topology && !compare_bounds(topology, sweep->trees, &rate, text)) {
            printf("FAIL   %s; replay: bound-exhaustive --only %s --index %llu\n", text, sweep->graphs.what,
                   (unsigned long long)i);
            different++;
        } else if (topology && folder && sweep->trees && i / sweep->step / apart >= written) {
            if (!write_program(folder, topology, rate)) {
                printf("FAIL   cannot write to %s\n", folder);
                different++;
            }
            written = i / sweep->step / apart + 1;
        }
        tried += topology != NULL;
        by_topology_free(topology);
        if (only >= 0)
            break;
    }
    printf("  %-45s %7llu fabrics, %llu differences\n", sweep->words, (unsigned long long)tried,
           (unsigned long long)different);
    *passed += tried - different;
    return different;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"lp", required_argument, NULL, 'l'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"index", required_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    const char *folder = NULL, *only = NULL;
    uint64_t passed = 0, failed = 0;
    int64_t index = -1;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'l')
            folder = optarg;
        else if (option == 'o')
            only = optarg;
        else if (option == 'i')
            index = strtoll(optarg, NULL, 10);
        else
            return 2;
    }
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++)
        if (!only || strcmp(only, sweeps[i].graphs.what) == 0)
            failed += run(&sweeps[i], index, folder, &passed);
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed > 0 || passed == 0;
}
