/* State of the switch's XDP part, shared by xdp.c (programs, descriptors, counters) and xdp_table.c
 * (maps from the table). Private to these files. */
#ifndef BY_DATAPLANE_XDP_STATE_H
#define BY_DATAPLANE_XDP_STATE_H

#include "dataplane/xdp.h"
#include "dataplane/xdp_ready.h"
#include "offload/base/assert.h"
#include "offload/base/limits.h"

struct bpf_object;

BY_STATIC_ASSERT(BY_XDP_PORTS_MAX == BY_PORTS_MAX && BY_XDP_PORTS_MAX <= 64, "a set of ports is 64 bits");

/* An entry of the table, restricted to children with a port of their own. */
struct by_xdp_tree {
    uint32_t key;   /* job << 16 | tree */
    uint64_t ports; /* ports of the children that the kernel can serve */
};

struct by_xdp {
    struct bpf_object *object;
    bool relays;
    bool metered; /* jobs have shares: the engine must see relayed packets */
    uint32_t entry_count;
    int inside, relay_map, child_map, out, group_map, count_map, port_count_map, socket_map;
    int child_program;  /* descriptor of by_child */
    struct by_gso *gso; /* the near end of the cable to by_group */
    int cable_link;
    struct by_xdp_ready ready;
    uint64_t ready_ports;
    uint64_t refresh_ns;
    int processors;
    void *counts;                         /* one set per processor, for by_xdp_read */
    int link[BY_XDP_PORTS_MAX];           /* or -1 */
    uint32_t interface[BY_XDP_PORTS_MAX]; /* index; 0: not a port of this switch */
    const uint8_t *image;                 /* NULL: no table yet */
    const struct by_batch_port *ports;    /* of the batch: MAC addresses, as learned or stated */
    struct by_xdp_tree *tree;             /* ascending */
    uint32_t tree_count;
    uint32_t group_count;
    uint64_t group[BY_XDP_GROUPS_MAX]; /* sets of ports in use */
    int group_fd[BY_XDP_GROUPS_MAX];
};

#endif
