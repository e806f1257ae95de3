/* Groups, their queues, and one send per GSO batch; see group.h. Loop's thread. */
#include "dataplane/group.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/say.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/base/limits.h"
#include "offload/linux/copies.h"
#include "offload/wire/wire.h"

/* Maximum number of groups: one per tree and source of its values. When it is exceeded, all groups
 * are rebuilt. */
#define GROUPS_MAX 128u
/* Frames of one send, copies included (count). The kernel queues them all before it delivers the
 * first, 1000 at most (net.core.netdev_max_backlog); a smaller number stays in the cache. */
#define FRAMES_MAX 256u

BY_STATIC_ASSERT(BY_CHILDREN_MAX <= BY_COPIES_MAX && BY_PORTS_MAX <= 64, "a group fits a list and 64 bits");

struct group_member {
    struct by_port *port;
    struct by_frame to; /* MAC and IP addresses, and the receiver's UDP port */
};

struct by_dp_group {
    uint64_t ports; /* of the members, as bits */
    uint32_t tree;  /* job and tree */
    uint32_t count;
    /* the member through whose port the last GSO batch left */
    uint32_t carrier;
    uint16_t queued;
    struct rte_mbuf *queue[BY_PORT_BURST];
    struct group_member member[BY_CHILDREN_MAX];
};

struct by_dp_groups {
    struct by_copies *copies;
    struct by_port *ports;
    uint64_t served;                  /* ports, as bits */
    uint32_t interface[BY_PORTS_MAX]; /* of the served ports */
    struct by_group_counters counters;
    uint32_t count, last; /* number of groups, and the last group found */
    struct by_dp_group group[GROUPS_MAX];
};

static void refuse(const char *what, int error)
{
    by_say("results for several children are sent one by one: %s: %s%s", what, strerror(-error),
           error == -EPERM ? "" : "; it requires Linux 6.6");
}

/* Attaches the program to a port's interface. False if the kernel refuses it, which is reported. */
static bool serve(struct by_dp_groups *groups, unsigned index)
{
    const struct by_port *port = &groups->ports[index];
    unsigned interface = if_nametoindex(port->name);
    int error = interface ? by_copies_add(groups->copies, interface) : -ENODEV;

    if (error != 0) {
        refuse(port->name, error);
        return false;
    }
    groups->interface[index] = interface;
    groups->served |= UINT64_C(1) << index;
    return true;
}

struct by_dp_groups *by_groups_open(struct by_port *ports, unsigned port_count)
{
    struct by_dp_groups *groups;
    const char *step;
    unsigned able = 0;
    int error;

    for (unsigned i = 0; i < port_count; i++)
        able += ports[i].gso && by_gso_sends_batches(ports[i].gso);
    if (able < 2)
        return NULL;
    groups = calloc(1, sizeof *groups);
    if (!groups)
        return NULL;
    groups->ports = ports;
    error = by_copies_open(&groups->copies, &step);
    if (error != 0)
        refuse(step, error);
    for (unsigned i = 0; i < port_count && error == 0; i++)
        if (ports[i].gso && by_gso_sends_batches(ports[i].gso) && !serve(groups, i))
            error = -EIO;
    if (error == 0)
        return groups;
    by_groups_close(groups);
    return NULL;
}

static void drop(struct by_dp_group *group, uint16_t from)
{
    for (uint32_t i = 0; i < group->count; i++)
        group->member[i].port->counters.tx_dropped += (uint64_t)(group->queued - from);
    rte_pktmbuf_free_bulk(group->queue + from, (unsigned)(group->queued - from));
    group->queued = 0;
}

void by_groups_close(struct by_dp_groups *groups)
{
    if (!groups)
        return;
    for (uint32_t i = 0; i < groups->count; i++)
        drop(&groups->group[i], 0);
    by_copies_close(groups->copies);
    free(groups);
}

void by_groups_forget(struct by_dp_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++)
        drop(&groups->group[i], 0);
    groups->count = groups->last = 0;
}

/* ---- group membership ---- */

static bool matches(const struct by_dp_group *group, uint64_t ports, uint32_t tree, const struct by_tx *tx,
                    uint32_t count)
{
    if (group->ports != ports || group->tree != tree)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (group->member[i].to.dst_ip != tx[i].dst_ip || group->member[i].to.dst_port != tx[i].udp_port)
            return false;
    return true;
}

static struct by_dp_group *make(struct by_dp_groups *groups, struct by_batch *batch, uint64_t ports,
                                uint32_t tree, const struct by_tx *tx, uint32_t count)
{
    struct by_dp_group *group;

    if (groups->count == GROUPS_MAX) {
        by_groups_flush(groups);
        groups->count = 0;
    }
    groups->last = groups->count;
    group = &groups->group[groups->count++];
    group->ports = ports;
    group->tree = tree;
    group->count = count;
    group->carrier = 0;
    group->queued = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct group_member *member = &group->member[i];
        const uint8_t *mac = by_batch_mac(batch, tx[i].port, tx[i].dst_ip);

        member->port = &groups->ports[tx[i].port];
        member->to = member->port->carrier;
        if (mac) /* the batch sends nothing to an unknown neighbour */
            memcpy(member->to.dst_mac, mac, BY_MAC_BYTES);
        member->to.dst_ip = tx[i].dst_ip;
        member->to.dst_port = tx[i].udp_port;
    }
    return group;
}

struct by_dp_group *by_groups_find(struct by_dp_groups *groups, struct by_batch *batch,
                                   const struct by_tx *tx, uint32_t count)
{
    uint32_t tree = by_get32(tx->header + BY_HEADER_AT_JOB);
    uint64_t ports = 0;

    if (tx->header[BY_HEADER_AT_CHILD] != BY_WIRE_CHILD_ALL)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << tx[i].port;

        if (!(groups->served & bit & ~ports))
            return NULL;
        ports |= bit;
    }
    for (uint32_t i = 0; i < groups->count; i++) {
        uint32_t at = (groups->last + i) % groups->count;

        if (matches(&groups->group[at], ports, tree, tx, count)) {
            groups->last = at;
            return &groups->group[at];
        }
    }
    return make(groups, batch, ports, tree, tx, count);
}

/* ---- sending ---- */

/* Orders the members as in the kernel's list: the member whose port is used is last. */
static unsigned order(const struct by_dp_group *group, uint32_t carrier, const struct group_member *members[])
{
    unsigned count = 0;

    for (uint32_t i = 0; i < group->count; i++)
        if (i != carrier)
            members[count++] = &group->member[i];
    members[count++] = &group->member[carrier];
    return count;
}

/* Counts a sent GSO batch for each member. */
static void count_sent(struct by_dp_groups *groups, const struct group_member *const *members, unsigned count,
                       struct rte_mbuf *const *frames, int taken)
{
    const struct by_copy *list = by_copies_list(groups->copies);
    uint64_t bytes = 0;

    for (int i = 0; i < taken; i++)
        bytes += frames[i]->pkt_len;
    for (unsigned i = 0; i < count; i++) {
        struct by_dp_port_counters *counters = &members[i]->port->counters;

        if (list[i].result != 0) {
            counters->tx_dropped += (uint64_t)taken;
            groups->counters.lost += (uint64_t)taken;
            continue;
        }
        counters->tx_packets += (uint64_t)taken;
        counters->tx_bytes += bytes;
        groups->counters.replicated += (uint64_t)taken;
    }
}

/* Sends one GSO batch through the port of one member; returns the number of accepted frames, or an
 * error. */
static int send_by(struct by_dp_groups *groups, const struct by_dp_group *group, uint32_t carrier,
                   uint16_t from)
{
    struct by_copy *list = by_copies_list(groups->copies);
    const struct group_member *members[BY_CHILDREN_MAX];
    const struct by_frame *to[BY_CHILDREN_MAX];
    unsigned count = order(group, carrier, members);
    uint16_t most = (uint16_t)(FRAMES_MAX / count);
    int taken;

    for (unsigned i = 0; i < count; i++) {
        to[i] = &members[i]->to;
        list[i].interface = i + 1 < count ? groups->interface[members[i]->port->index] : 0;
    }
    taken = by_gso_copy(members[count - 1]->port->gso, group->queue + from,
                        RTE_MIN((uint16_t)(group->queued - from), most), groups->copies, to, count);
    if (taken > 0)
        count_sent(groups, members, count, group->queue + from, taken);
    return taken;
}

/* If a port's cable is gone or its socket is full, another member's port is used. */
static int send_some(struct by_dp_groups *groups, struct by_dp_group *group, uint16_t from)
{
    int taken = -EIO;

    for (uint32_t i = 0; i < group->count && taken <= 0; i++) {
        taken = send_by(groups, group, group->carrier, from);
        if (taken == -ENOEXEC) {
            by_say("results for several children are sent one by one: the program that copied them was "
                   "removed");
            groups->served = 0;
            return taken;
        }
        if (taken <= 0)
            group->carrier = (group->carrier + 1) % group->count;
    }
    return taken;
}

static void flush(struct by_dp_groups *groups, struct by_dp_group *group)
{
    uint16_t done = 0;
    unsigned tries = 0;

    while (done < group->queued) {
        int taken = send_some(groups, group, done);

        if (taken > 0) {
            rte_pktmbuf_free_bulk(group->queue + done, (unsigned)taken);
            done = (uint16_t)(done + taken);
        } else if (taken == -ENOEXEC || ++tries == BY_PORT_RETRIES) {
            break;
        }
    }
    drop(group, done);
}

void by_group_send(struct by_dp_groups *groups, struct by_dp_group *group, struct rte_mbuf *frame)
{
    group->queue[group->queued++] = frame;
    if (group->queued == BY_PORT_BURST)
        flush(groups, group);
}

void by_groups_flush(struct by_dp_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->group[i].queued)
            flush(groups, &groups->group[i]);
}

const struct by_group_counters *by_groups_counters(const struct by_dp_groups *groups)
{
    return &groups->counters;
}
