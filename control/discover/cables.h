/*
 * The cables between the nodes of a site, joined from what each node has heard of its neighbours.
 * Neighbours: facts.h in; write.h makes files of them, compare.h compares them with files. A cable
 * that one end has heard is a cable; where ends contradict each other, a finding tells it.
 * Single-threaded.
 */
#ifndef BY_DISCOVER_CABLES_H
#define BY_DISCOVER_CABLES_H

#include "control/base/report.h"
#include "control/discover/facts.h"

/* An interface that is not known. */
#define BY_CABLE_UNKNOWN UINT32_MAX

/* An end: a node of the facts (below facts->count) or a plain node (from there on), and its
 * interface, the number of one of the facts or BY_CABLE_UNKNOWN. */
struct by_cable_end {
    uint32_t node, interface;
    char port[BY_NAME_MAX + 1]; /* the name of the interface, also of a plain node's; "" if unknown */
};

struct by_cable {
    struct by_cable_end ends[2];
};

/* A node that was heard, but reported nothing itself. */
struct by_plain_node {
    char name[BY_NAME_MAX + 1];
    bool forwards;
};

struct by_cables {
    const struct by_facts_list *facts;
    uint32_t plain_count, plain_room;
    struct by_plain_node *plain;
    uint32_t count, room;
    struct by_cable *cables;
};

/* Joins the facts and adds findings for what does not fit together: nodes of one name, an interface
 * that hears several neighbours, ends that hear different ones, an address or MAC address twice.
 * The facts must outlive the cables. */
void by_cables_find(struct by_cables *cables, const struct by_facts_list *facts, struct by_report *report);
void by_cables_free(struct by_cables *cables);

const char *by_cables_name(const struct by_cables *cables, uint32_t node);
/* Returns the facts of an end's interface, or NULL. */
const struct by_facts_interface *by_cables_interface(const struct by_cables *cables,
                                                     const struct by_cable_end *end);
/* Returns the cable at an interface of a node, or NULL; `*side` is the number of that end. */
const struct by_cable *by_cables_at(const struct by_cables *cables, uint32_t node, uint32_t interface,
                                    unsigned *side);
/* Whether two texts name one node: equal, or equal without their domains ("host0.example.org"). */
bool by_cables_same_name(const char *a, const char *b);

#endif
