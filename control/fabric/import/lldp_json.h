/*
 * The neighbours in the output of lldpctl -f json (or json0). Neighbours: import_lldp.c makes a
 * topology of them, control/discover the facts of a node. Pure; any thread.
 */
#ifndef BY_FABRIC_IMPORT_LLDP_JSON_H
#define BY_FABRIC_IMPORT_LLDP_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* A neighbour on an interface; texts are NULL where the output has none. */
struct by_lldp_sight {
    const char *interface;   /* of the node that has heard it */
    const char *node;        /* the neighbour's name, or its chassis' identifier; NULL: no chassis */
    const char *port;        /* the identifier of its port */
    const char *description; /* of its port */
    const char *speed;       /* type of its medium, such as "100GbaseCR4" */
    bool forwards;           /* it is a bridge or router, and enabled */
};

/* Whether `root` is such output. */
bool by_lldp_json_is(const json_t *root);
/* Calls `take` for each neighbour, in the order of the output, until it returns an error. Returns
 * that, or 0. */
int by_lldp_json_each(const json_t *root, int (*take)(void *context, const struct by_lldp_sight *sight),
                      void *context);

#endif
