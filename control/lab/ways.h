/*
 * A lab with a schedule (--series): hosts and IP routers, and each path of the schedule is a route
 * of its own. Parallel links of the topology are one cable, as in schedules. Files: series.c,
 * routes.c, wire.c. Single-threaded, except that the process of the wires counts in shared memory.
 */
#ifndef BY_LAB_WAYS_H
#define BY_LAB_WAYS_H

#include "control/fabric/links.h"
#include "control/lab/lab.h"
#include "control/study/export/moves.h"

/* Most paths of a schedule (count); each is a route at every node on its way. */
#define LAB_PATHS_MAX 65536u
/* Least and greatest rate of a link (bytes per second). */
#define LAB_RATE_MIN UINT64_C(1000)
#define LAB_RATE_MAX (UINT64_C(1) << 36)
/* Least bytes of a data frame; acknowledgements and ARP are shorter. */
#define LAB_DATA_BYTES 256u
/* Ethernet header. A frame has at most the MTU and this header. */
#define LAB_HEADER_BYTES 14u

/* One direction of a cable. */
struct lab_way {
    uint32_t from, to; /* nodes */
    uint64_t rate;     /* bytes per second; 0: no limit */
    /* Frames that went this way, their bytes with Ethernet headers, and those that found the queue
     * full. */
    uint64_t frames, bytes, lost;
    uint64_t first_ns, last_ns; /* first and last data frame (CLOCK_MONOTONIC); only with a rate */
    uint64_t late_ns;           /* time that the wires lost because their process did not run */
};

struct lab_series {
    struct by_moves moves;
    uint32_t *addresses; /* by path: that of its receiver */
    struct by_links *links;
    uint32_t *way_of; /* by pair of `links` */
    uint32_t cable_count;
    struct lab_way *ways; /* numbers 2 i and 2 i + 1 are of cable i; in shared memory */
};

/* Returns the number of the direction from a node to a neighbour; that of the other one is ^ 1. */
static inline uint32_t lab_way_find(const struct lab_series *series, uint32_t from, uint32_t to)
{
    return series->way_of[by_links_find(series->links, from, to)];
}

/* Returns the address of the receiver of a path. */
uint32_t lab_routes_address(uint32_t path);
/*
 * Creates namespaces, cables, addresses and routes, and with a rate the interfaces of the wires.
 * Returns 0, or BY_EXIT_ENVIRONMENT after it printed an error.
 */
int lab_routes_up(struct lab *lab);
/* Returns the congestion control of the hosts. */
const char *lab_routes_congestion(void);
/* Reads what each interface has sent, for a lab without wires. */
void lab_routes_count(struct lab *lab);
/* Writes the name of the wires' interface at the end of a cable where a direction begins. */
void lab_wire_name(uint32_t way, char name[16]);
/* Starts the process of the wires and waits until it forwards. Returns as lab_routes_up. */
int lab_wires_start(struct lab *lab);

#endif
