/* Converts a fabric to the simulated world: an image for each node, and an arc for each direction
 * of a cable. Single-threaded. */
#include "tests/sim/cabling.h"

#include <stdlib.h>
#include <string.h>

static uint16_t port_of(const struct fabric *fabric, int node, int link)
{
    for (int p = 0; p < fabric->nodes[node].port_count; p++)
        if (fabric->nodes[node].port_link[p] == link)
            return (uint16_t)p;
    abort();
}

void cabling_make(const struct fabric *fabric, struct cabling *cabling)
{
    cabling_make_standby(fabric, NULL, 0, cabling);
}

void cabling_make_standby(const struct fabric *fabric, const struct fabric *standbys, int count,
                          struct cabling *cabling)
{
    memset(cabling, 0, sizeof(*cabling));
    cabling->world.node_count = (uint32_t)fabric->node_count;
    cabling->world.nodes = cabling->nodes;
    cabling->world.arcs = cabling->arcs;
    cabling->world.job_count = (uint32_t)fabric->job_count;
    for (int j = 0; j < fabric->job_count; j++)
        cabling->world.jobs[j] = fabric->jobs[j].job;
    for (int n = 0; n < fabric->node_count; n++)
        cabling->nodes[n].image =
            fabric_image_standby(fabric, standbys, count, 0, n, &cabling->nodes[n].image_bytes);
    for (int l = 0; l < fabric->link_count; l++)
        for (int side = 0; side < 2; side++) {
            const struct fabric_link *link = &fabric->links[l];
            int from = side ? link->b : link->a, to = side ? link->a : link->b;

            cabling->arcs[cabling->world.arc_count++] =
                (struct by_world_arc){.from = (uint32_t)from,
                                      .to = (uint32_t)to,
                                      .from_port = port_of(fabric, from, l),
                                      .to_port = port_of(fabric, to, l),
                                      .ps_num = 8000000,
                                      .ps_den = link->mbps,
                                      .latency_ps = link->latency_ns * UINT64_C(1000)};
        }
}
