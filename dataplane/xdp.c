/* Loads and attaches the programs of offload/xdp/switch.bpf.c, whose object is embedded here, and
 * reads their counters; see xdp.h. Loop's thread. */
#include "dataplane/xdp_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "dataplane/xdp_cable.h"
#include "offload/base/errors.h"
#include "offload/linux/object.h"

/* BY_XDP_OBJECT is the object's path, from module.mk. */
BY_OBJECT(by_switch_object, BY_XDP_OBJECT);

/* MTU of the cable: a frame must fit a page together with the kernel's own data. */
#define CABLE_MTU    3498u
#define CRC_SLICES   8u
#define CRC_POLYNOME 0x82f63b78u /* CRC32C, reflected */
/* Maximum children of all entries in the kernel (count); the switch serves the children of further
 * entries. */
#define CHILDREN_MAX 65536u

/* ---- open and close ---- */

/* CRC32C of one byte at each of eight places (Kounavis and Berry, "slicing by 8"). */
static void make_crc_table(uint32_t table[CRC_SLICES * 256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOME : 0);
        table[i] = crc;
    }
    for (uint32_t i = 256; i < CRC_SLICES * 256; i++)
        table[i] = table[i - 256] >> 8 ^ table[table[i - 256] & 0xff];
}

static int prepare(struct by_xdp *xdp, const struct by_xdp_config *config)
{
    uint32_t children = config->entry_count > CHILDREN_MAX / BY_CHILDREN_MAX
                            ? CHILDREN_MAX
                            : config->entry_count * BY_CHILDREN_MAX;
    uint32_t table[CRC_SLICES * 256];
    int error;

    xdp->object = by_object_open(by_switch_object, by_switch_object_end);
    if (!xdp->object)
        return -errno;
    make_crc_table(table);
    error = by_object_constants(xdp->object, table, sizeof(table));
    if (error == 0)
        error = bpf_map__set_max_entries(bpf_object__find_map_by_name(xdp->object, "by_relays"),
                                         config->relay_count ? config->relay_count : 1);
    if (error == 0)
        error = bpf_map__set_max_entries(bpf_object__find_map_by_name(xdp->object, "by_children"), children);
    return error != 0 ? error : bpf_object__load(xdp->object);
}

/* Creates one map per group, all at the start: a change of a map's content does not wait for
 * running programs, but a change of the set of maps does. */
static int make_groups(struct by_xdp *xdp)
{
    uint32_t keys[BY_XDP_GROUPS_MAX], count = BY_XDP_GROUPS_MAX;
    int error = 0;

    for (uint32_t i = 0; i < BY_XDP_GROUPS_MAX; i++) {
        keys[i] = i;
        xdp->group_fd[i] = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "by_group", sizeof(uint32_t),
                                          sizeof(struct bpf_devmap_val), BY_XDP_PORTS_MAX, NULL);
        if (xdp->group_fd[i] < 0)
            return xdp->group_fd[i];
    }
    if (bpf_map_update_batch(xdp->group_map, keys, xdp->group_fd, &count, NULL) == 0)
        return 0;
    for (uint32_t i = 0; i < BY_XDP_GROUPS_MAX && error == 0; i++)
        error = bpf_map_update_elem(xdp->group_map, &i, &xdp->group_fd[i], BPF_ANY);
    return error;
}

static int program_of(const struct by_xdp *xdp, const char *name)
{
    struct bpf_program *program = bpf_object__find_program_by_name(xdp->object, name);

    return program ? bpf_program__fd(program) : -ENOENT;
}

static int attach(const struct by_xdp *xdp, const char *program, uint32_t interface)
{
    struct bpf_link_create_opts options = {.sz = sizeof options, .flags = XDP_FLAGS_DRV_MODE};

    return bpf_link_create(program_of(xdp, program), (int)interface, BPF_XDP, &options);
}

/* Creates a private cable. Frames that the switch sends into its near end reach the program at its
 * far end, many at a time. */
static int open_cable(struct by_xdp *xdp)
{
    int outside, error = by_xdp_cable_enter(&outside, CABLE_MTU), left;

    if (error != 0)
        return error;
    xdp->cable_link = attach(xdp, "by_group", if_nametoindex(BY_XDP_CABLE_FAR));
    if (xdp->cable_link < 0)
        error = xdp->cable_link;
    else if (by_gso_open(&xdp->gso, BY_XDP_CABLE_NEAR, CABLE_MTU, BY_GSO_SENDS) != 0)
        error = -EIO;
    left = by_xdp_cable_leave(outside);
    return error != 0 ? error : left;
}

static int report(const char *what, int error)
{
    bool right = error == -EPERM || error == -EACCES;

    by_say("driver xdp: %s: %s%s", what, strerror(-error),
           right ? ": run as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_SYS_ADMIN"
                 : "; other drivers do not need this (--driver af_packet)");
    return right ? BY_EPERM : error == -ENOMEM ? BY_ENOMEM : BY_EIO;
}

static const char *open_steps(struct by_xdp *xdp, const struct by_xdp_config *config, int *error)
{
    *error = prepare(xdp, config);
    if (*error != 0)
        return "cannot load the programs";
    xdp->inside = bpf_object__find_map_fd_by_name(xdp->object, "by_inside");
    xdp->socket_map = bpf_object__find_map_fd_by_name(xdp->object, "by_sockets");
    xdp->relay_map = bpf_object__find_map_fd_by_name(xdp->object, "by_relays");
    xdp->child_map = bpf_object__find_map_fd_by_name(xdp->object, "by_children");
    xdp->out = bpf_object__find_map_fd_by_name(xdp->object, "by_out");
    xdp->group_map = bpf_object__find_map_fd_by_name(xdp->object, "by_groups");
    xdp->count_map = bpf_object__find_map_fd_by_name(xdp->object, "by_counts");
    xdp->port_count_map = bpf_object__find_map_fd_by_name(xdp->object, "by_port_counts");
    xdp->child_program = program_of(xdp, "by_child");
    *error = make_groups(xdp);
    if (*error != 0)
        return "cannot create maps for groups of ports";
    *error = open_cable(xdp);
    if (*error != 0)
        return "cannot create a veth pair in a separate namespace";
    return NULL;
}

int by_xdp_open(struct by_xdp **out, const struct by_xdp_config *config)
{
    struct by_xdp *xdp = calloc(1, sizeof *xdp);
    libbpf_print_fn_t before = libbpf_set_print(by_object_be_silent);
    const char *failed;
    int error = -ENOMEM;

    if (!xdp)
        return BY_ENOMEM;
    xdp->relays = config->relays;
    xdp->entry_count = config->entry_count;
    xdp->cable_link = xdp->ready.fd = -1;
    xdp->processors = libbpf_num_possible_cpus();
    memset(xdp->link, 0xff, sizeof xdp->link);
    memset(xdp->group_fd, 0xff, sizeof xdp->group_fd);
    xdp->tree = calloc(config->entry_count, sizeof *xdp->tree);
    xdp->counts =
        calloc(xdp->processors > 0 ? (size_t)xdp->processors : 1, sizeof(struct by_xdp_port_counts));
    failed = xdp->tree && xdp->counts ? open_steps(xdp, config, &error) : "memory";
    libbpf_set_print(before);
    if (failed) {
        error = report(failed, error);
        by_xdp_close(xdp);
        return error;
    }
    error = by_xdp_ready_open(&xdp->ready);
    if (error != 0)
        by_say("driver xdp: the kernel does not report which interfaces accept redirected frames (%s; it "
               "requires Linux 6.3): it does not relay or replicate",
               strerror(-error));
    *out = xdp;
    return 0;
}

void by_xdp_close(struct by_xdp *xdp)
{
    if (!xdp)
        return;
    for (uint32_t i = 0; i < BY_XDP_PORTS_MAX; i++)
        if (xdp->link[i] >= 0)
            close(xdp->link[i]);
    if (xdp->gso)
        by_gso_close(xdp->gso);
    if (xdp->cable_link >= 0)
        close(xdp->cable_link);
    for (uint32_t i = 0; i < BY_XDP_GROUPS_MAX; i++)
        if (xdp->group_fd[i] >= 0)
            close(xdp->group_fd[i]);
    by_xdp_ready_close(&xdp->ready);
    bpf_object__close(xdp->object);
    free(xdp->tree);
    free(xdp->counts);
    free(xdp);
}

int by_xdp_add(struct by_xdp *xdp, uint32_t port, const char *interface, int socket)
{
    struct by_xdp_inside inside = {.port = port};
    struct bpf_devmap_val out = {.ifindex = if_nametoindex(interface)};
    int link;

    if (bpf_map_update_elem(xdp->inside, &out.ifindex, &inside, BPF_ANY) != 0 ||
        bpf_map_update_elem(xdp->out, &port, &out, BPF_ANY) != 0 ||
        bpf_map_update_elem(xdp->socket_map, &port, &socket, BPF_ANY) != 0) {
        by_say("--iface %s: cannot register it with the driver xdp: %s", interface, strerror(errno));
        return BY_EIO;
    }
    link = attach(xdp, "by_port", out.ifindex);
    if (link >= 0) {
        xdp->link[port] = link;
        xdp->interface[port] = out.ifindex;
        return 0;
    }
    if (link == -EBUSY || link == -EEXIST) {
        by_say("--iface %s: it already has an XDP program; end the program that attached it, or `ip link set "
               "%s xdp off`",
               interface, interface);
        return BY_EBUSY;
    }
    by_say("--iface %s: its driver does not accept an XDP program: %s; use --driver af_packet", interface,
           strerror(-link));
    return link == -EOPNOTSUPP ? BY_EUNSUPPORTED : BY_EIO;
}

/* ---- counts ---- */

void by_xdp_read(const struct by_xdp *xdp, uint64_t counts[BY_XDP_COUNTS])
{
    const uint64_t *each = xdp->counts;

    for (uint32_t i = 0; i < BY_XDP_COUNTS; i++) {
        counts[i] = 0;
        if (bpf_map_lookup_elem(xdp->count_map, &i, xdp->counts) == 0)
            for (int k = 0; k < xdp->processors; k++)
                counts[i] += each[k];
    }
}

void by_xdp_read_port(const struct by_xdp *xdp, uint32_t port, struct by_xdp_port_counts *counts)
{
    const struct by_xdp_port_counts *each = xdp->counts;

    *counts = (struct by_xdp_port_counts){0};
    if (bpf_map_lookup_elem(xdp->port_count_map, &port, xdp->counts) != 0)
        return;
    for (int k = 0; k < xdp->processors; k++) {
        counts->rx_packets += each[k].rx_packets;
        counts->rx_bytes += each[k].rx_bytes;
        counts->tx_packets += each[k].tx_packets;
        counts->tx_bytes += each[k].tx_bytes;
    }
}
