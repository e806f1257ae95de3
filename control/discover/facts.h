/*
 * What the nodes of a site report of themselves: interfaces with addresses, speeds and devices, and
 * the neighbours that they have heard by LLDP. A node's facts come from this machine (local.h),
 * from a file or the output of a command (facts_json.c), or from a switch (collect.h). Neighbours:
 * cables.h joins the facts of all nodes. Single-threaded.
 */
#ifndef BY_DISCOVER_FACTS_H
#define BY_DISCOVER_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/base/problem.h"
#include "offload/base/limits.h"

/* Neighbours that one interface may report (count): one, or several on a shared segment. */
#define BY_FACTS_NEIGHBOURS_MAX 8u
/* Interfaces of one node (count). */
#define BY_FACTS_INTERFACES_MAX 4096u
/* Largest file of facts (bytes). */
#define BY_FACTS_BYTES_MAX ((size_t)16 << 20)

/* What an LLDP frame stated about its sender. */
struct by_facts_neighbour {
    char node[BY_NAME_MAX + 1], port[BY_NAME_MAX + 1], description[BY_NAME_MAX + 1];
    bool has_mac; /* the frame's source, or the port's identifier */
    uint8_t mac[6];
    bool forwards; /* it is a bridge or a router */
};

/* Texts are "" and numbers 0 where nothing was reported. */
struct by_facts_interface {
    char name[BY_NAME_MAX + 1];
    bool is_kernel; /* an interface of the kernel; else a device of DPDK */
    bool is_down;   /* without a carrier, or disabled */
    bool has_mac;
    uint8_t mac[6];
    uint32_t mtu, speed_mbps, queues;
    uint32_t numa; /* 1 + the number of the NUMA node */
    char driver[32], bus[32], features[128], addresses[96];
    uint32_t neighbour_count;
    struct by_facts_neighbour neighbours[BY_FACTS_NEIGHBOURS_MAX];
};

struct by_facts {
    char node[BY_NAME_MAX + 1];
    char source[192]; /* a file, a command or an address, for messages */
    bool is_switch;
    bool multicast, aggregate; /* of a switch */
    bool without_lldp;         /* it could not listen, so its neighbours are unknown */
    char control[160];         /* address of the control channel, or "" */
    uint32_t interface_count, room;
    struct by_facts_interface *interfaces; /* of a switch in the order of its ports */
};

/* The facts of several nodes. */
struct by_facts_list {
    uint32_t count, room;
    struct by_facts *nodes;
};

/* Adds a node without interfaces; the pointer is valid until the next call. */
struct by_facts *by_facts_add(struct by_facts_list *list, const char *node, const char *source);
void by_facts_list_free(struct by_facts_list *list);
/* Adds an interface; the pointer is valid until the next call. */
struct by_facts_interface *by_facts_interface(struct by_facts *facts, const char *name);
/* Returns the number of the interface with this name, or UINT32_MAX. */
uint32_t by_facts_find(const struct by_facts *facts, const char *name);
/* Adds a neighbour, unless the interface has the same one or no room. */
void by_facts_hear(struct by_facts_interface *interface, const struct by_facts_neighbour *neighbour);

/* Copies a text from another machine as a name: what names do not have (blanks, quotes,
 * backslashes, other than printable ASCII) becomes '?'. NULL is "". */
void by_facts_copy_name(char to[BY_NAME_MAX + 1], const char *from);

/* MAC addresses as text: 02:42:ac:11:00:02. Reading accepts nothing else. */
#define BY_MAC_TEXT_BYTES 18u
bool by_mac_read(const char *text, uint8_t mac[6]);
const char *by_mac_write(const uint8_t mac[6], char text[BY_MAC_TEXT_BYTES]);

/* Writes the facts of one node as JSON (banyan-discover(1) describes it). */
void by_facts_write(const struct by_facts *facts, FILE *stream);
/*
 * Reads the JSON of one node, from `source`, and adds it to the list. Returns 0, or BY_EFORMAT or
 * BY_ELIMIT with `problem`: what is read is checked, since it comes from other machines.
 */
int by_facts_parse(struct by_facts_list *list, const char *source, const char *json, size_t bytes,
                   struct by_problem *problem);
int by_facts_read(struct by_facts_list *list, const char *path, struct by_problem *problem);

#endif
