/* Nodes that report facts, for the tests in this folder: what each has heard is made of a list of
 * cables. */
#ifndef BY_TESTS_UNIT_CONTROL_DISCOVER_BENCH_H
#define BY_TESTS_UNIT_CONTROL_DISCOVER_BENCH_H

#include "control/discover/write.h"

struct discover_bench {
    struct by_facts_list facts;
    struct by_cables cables;
    struct by_report report;
    struct by_discovery discovery;
    struct by_problem problem;
    char *site; /* the site file */
};

/* For cmocka: an empty bench in *state; frees it. */
int bench_open(void **state);
int bench_close(void **state);

/* Adds a host or switch with `count` interfaces eth0, eth1, ... or p0, p1, ...: 10 Gb/s, MTU
 * 1500, and the address 10.NODE.PORT.1/31. */
void bench_host(struct discover_bench *bench, const char *name, uint32_t count);
void bench_switch(struct discover_bench *bench, const char *name, uint32_t count);
struct by_facts_interface *bench_interface(struct discover_bench *bench, const char *node, const char *name);
/* Both ends hear each other; or only `node` hears `other`. */
void bench_cable(struct discover_bench *bench, const char *node, const char *port, const char *other,
                 const char *other_port);
struct by_facts_neighbour *bench_hears(struct discover_bench *bench, const char *node, const char *port,
                                       const char *other, const char *other_port);
/* Two hosts at each of two leaves with one spine. */
void bench_leafspine(struct discover_bench *bench);
/* Finds the cables and makes the files. Returns what by_discovery_make returns. */
int bench_discover(struct discover_bench *bench);
/* Asserts that there are `count` findings of trouble, and that one of them has these texts. */
void bench_trouble(const struct discover_bench *bench, uint32_t count, const char *check, const char *text);

#endif
