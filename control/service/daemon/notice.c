/* Evaluation of counters. See notice.h. The loop's thread. */
#include "control/service/daemon/notice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/members.h"
#include "control/service/daemon/blackhole.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recovery.h"
#include "offload/base/bytes.h"
#include "offload/wire/member.h"

/* Maximum delay of a host's message (ms); it bounds when its counters were read. */
#define HOST_MS 40u

struct by_notice {
    struct by_blackhole *blackhole;
    bool *used; /* by link */
};

void by_notice_open(struct by_daemon *daemon)
{
    const struct by_topology *topology = daemon->topology;
    struct by_blackhole_link *links = by_alloc(topology->link_count, sizeof(*links));
    bool *switches = by_alloc(topology->node_count, sizeof(*switches));

    for (uint32_t l = 0; l < topology->link_count; l++)
        links[l] = (struct by_blackhole_link){.node = {topology->links[l].a, topology->links[l].b}};
    for (uint32_t n = 0; n < topology->node_count; n++)
        switches[n] = by_site_is_switch(topology, n);
    daemon->notice = by_alloc(1, sizeof(*daemon->notice));
    daemon->notice->used = by_alloc(topology->link_count, sizeof(bool));
    daemon->notice->blackhole = by_blackhole_open(links, topology->link_count, switches, topology->node_count,
                                                  daemon->options.heartbeat_ms);
    if (daemon->notice->blackhole == NULL)
        by_daemon_end(daemon, 3, "no memory for the counters of %u links", topology->link_count);
    free(switches);
    free(links);
}

void by_notice_close(struct by_daemon *daemon)
{
    if (daemon->notice == NULL)
        return;
    by_blackhole_close(daemon->notice->blackhole);
    free(daemon->notice->used);
    free(daemon->notice);
    daemon->notice = NULL;
}

static void take(struct by_daemon *daemon, uint32_t node, uint32_t port,
                 const struct by_blackhole_sample *sample)
{
    uint32_t link = by_address_link(&daemon->map, node, port);

    by_blackhole_take(daemon->notice->blackhole, link, daemon->topology->links[link].b == node, sample);
}

void by_notice_switch(struct by_daemon *daemon, const struct by_daemon_switch *device,
                      const struct by_beat *beat)
{
    if (daemon->notice == NULL)
        return;
    for (uint32_t port = 0; port < beat->counters.ports_count && port < daemon->map.port_count[device->node];
         port++) {
        const by_PortCounters *counters = &beat->counters.ports[port];
        uint32_t link = by_address_link(&daemon->map, device->node, port);

        take(daemon, device->node, port,
             &(struct by_blackhole_sample){.asked_ms = beat->asked_ms,
                                           .answered_ms = beat->answered_ms,
                                           .sent = counters->tx_packets,
                                           .received = counters->rx_packets});
        by_rates_take(daemon->rates, link, daemon->topology->links[link].b == device->node, beat->answered_ms,
                      counters->tx_bytes, counters->rx_bytes);
    }
}

/* Ranks of several jobs on one host have separate counters. Only their sum would be the host's. */
static bool is_shared(const struct by_daemon *daemon, uint32_t node)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < daemon->job_count; i++)
        count += by_members_have(daemon->topology, daemon->jobs[i]->spec.member, node);
    return count > 1;
}

void by_notice_host(struct by_daemon *daemon, uint32_t node, const uint8_t *data, uint32_t bytes)
{
    uint64_t asked_ms = daemon->now_ms > HOST_MS ? daemon->now_ms - HOST_MS : 0;

    if (daemon->notice == NULL || is_shared(daemon, node))
        return;
    for (uint32_t port = 0; (port + 1) * BY_MEMBER_PORT_BYTES <= bytes && port < daemon->map.port_count[node];
         port++) {
        const uint8_t *at = data + (size_t)port * BY_MEMBER_PORT_BYTES;

        take(daemon, node, port,
             &(struct by_blackhole_sample){.asked_ms = asked_ms,
                                           .answered_ms = daemon->now_ms,
                                           .sent = by_get64(at),
                                           .received = by_get64(at + 8)});
    }
}

/* Writes the description that follows the name of the part. */
static void describe(const struct by_daemon *daemon, const struct by_blackhole_found *found, char *text,
                     size_t bytes)
{
    const struct by_topology *topology = daemon->topology;
    double seconds = (double)found->span_ms / 1e3;
    const char *from, *to;

    if (!found->is_link && found->silent) {
        snprintf(text, bytes, "forwards nothing: %" PRIu64 " frames arrived at it and none left it in %.1f s",
                 found->frames, seconds);
    } else if (!found->is_link) {
        snprintf(text, bytes,
                 "drops packets silently: %" PRIu64 " sent to or by it, none received on any of its links in "
                 "%.1f s",
                 found->frames, seconds);
    } else {
        from = topology
                   ->nodes[found->from == 0 ? topology->links[found->what].a : topology->links[found->what].b]
                   .name;
        to = topology
                 ->nodes[found->from == 0 ? topology->links[found->what].b : topology->links[found->what].a]
                 .name;
        snprintf(text, bytes,
                 "drops packets silently%s: %" PRIu64 " sent by %s, none received by %s in %.1f s",
                 found->both ? " in both directions" : "", found->frames, from, to, seconds);
    }
}

void by_notice_tick(struct by_daemon *daemon)
{
    struct by_notice *notice = daemon->notice;
    struct by_blackhole_found found;
    char text[200];

    if (notice == NULL || !by_recovery_waiting(daemon, notice->used) ||
        !by_blackhole_find(notice->blackhole, notice->used, &found))
        return;
    describe(daemon, &found, text, sizeof(text));
    by_blackhole_forget(notice->blackhole, found.is_link, found.what);
    daemon->counts.swallows++;
    by_recovery_swallows(daemon, found.is_link, found.what, text);
}
