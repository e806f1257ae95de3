/* Topology files of arbitrary bytes: refused with a text, or read and written back as the same
 * fabric. */
#include <stdio.h>

#include "control/fabric/topology.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct by_topology *topology = NULL, *again = NULL;
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out;

    if (by_topology_parse((const char *)data, size, &topology, &problem) != 0) {
        FUZZ_CHECK(topology == NULL && problem.text[0] != 0);
        return 0;
    }
    out = open_memstream(&text, &bytes);
    FUZZ_CHECK(out != NULL && by_topology_write(topology, out) == 0);
    fclose(out);
    FUZZ_CHECK(by_topology_parse(text, bytes, &again, &problem) == 0);
    FUZZ_CHECK(again->node_count == topology->node_count && again->link_count == topology->link_count &&
               again->arc_count == topology->arc_count && again->scale == topology->scale);
    for (uint32_t i = 0; i < topology->arc_count; i++)
        FUZZ_CHECK(again->arcs[i].from == topology->arcs[i].from &&
                   again->arcs[i].to == topology->arcs[i].to &&
                   again->arcs[i].capacity == topology->arcs[i].capacity);
    by_topology_free(again);
    by_topology_free(topology);
    free(text);
    return 0;
}
