/*
 * The state of switches and links, from heartbeats. A switch is down if it has not answered for
 * three heartbeats (eight if jobs have no path without it), or for its patience (watch.h) while
 * ranks that use it wait, or if its process has ended. It has rebooted if its boot nonce has
 * changed. Its carrier reports show which links are down. Each change is posted once
 * (by_daemon_tell). The loop's thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"

/* Heartbeats without an answer that make a switch down (count). */
#define SILENT_BEATS 3u
/* ... if jobs need it: without it no path is left to any of them, so that to wait costs nothing,
 * and a new plan costs more than the delay. */
#define NEEDED_BEATS 8u
/* Minimum time for the first answer of a switch (milliseconds), since everything may be starting.
 * It does not apply to a switch whose process is absent if an earlier daemon has led this fabric:
 * then its switches were running already. */
#define FIRST_MS 1000u

struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node)
{
    uint32_t index = daemon->switch_of[node];

    return index == UINT32_MAX ? NULL : &daemon->switches[index];
}

uint32_t by_switch_link(const struct by_daemon *daemon, const struct by_daemon_switch *device, uint32_t port)
{
    return port < daemon->map.port_count[device->node] ? by_address_link(&daemon->map, device->node, port)
                                                       : UINT32_MAX;
}

uint64_t by_switch_chunks(const by_CountersReply *counters)
{
    static const char *const names[] = {"complete", "up", "relay", "shell_kernel_relayed"};
    uint64_t sum = 0;

    for (pb_size_t i = 0; i < counters->engine_count; i++)
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
            if (strcmp(counters->engine[i].name, names[n]) == 0)
                sum += counters->engine[i].value;
    return sum;
}

void by_switches_start(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];

        device->state = BY_SWITCH_UNKNOWN;
        device->watch =
            by_watch_start(&(struct by_watch_options){.node = device->node,
                                                      .name = device->name,
                                                      .address = device->address,
                                                      .keys = daemon->options.access.keys,
                                                      .psk = daemon->options.access.psk,
                                                      .heartbeat_ms = daemon->options.heartbeat_ms},
                           daemon->events);
    }
}

void by_switches_lead(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        by_watch_lead(daemon->switches[i].watch, daemon->election_id);
}

void by_switches_stop(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        by_watch_stop(daemon->switches[i].watch);
        daemon->switches[i].watch = NULL;
    }
}

void by_switches_ask(struct by_daemon *daemon, const bool *used)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        const struct by_daemon_switch *device = &daemon->switches[i];
        bool some = false;

        for (uint32_t port = 0; port < daemon->map.port_count[device->node] && !some; port++)
            some = used[by_switch_link(daemon, device, port)];
        if (some)
            by_watch_now(device->watch);
    }
}

static bool is_up(struct by_daemon *daemon, uint32_t node)
{
    const struct by_daemon_switch *device = by_switch_find(daemon, node);

    return device != NULL && device->state == BY_SWITCH_UP;
}

/* Whether a switch that is up reports no carrier at its end of the link. */
static bool end_is_down(struct by_daemon *daemon, uint32_t link, uint32_t node)
{
    const struct by_daemon_switch *device = by_switch_find(daemon, node);
    uint32_t port;

    if (!is_up(daemon, node))
        return false;
    port = by_address_port(&daemon->map, link, node);
    return port < device->counters.ports_count && device->counters.ports[port].down;
}

static void look_at_links(struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    for (uint32_t port = 0; port < daemon->map.port_count[device->node]; port++) {
        uint32_t link = by_switch_link(daemon, device, port);
        const struct by_link *cable = &daemon->topology->links[link];
        bool down = end_is_down(daemon, link, cable->a) || end_is_down(daemon, link, cable->b);

        /* While no switch at its ends answers, its carrier is unknown. */
        if (down == daemon->links[link].down || (!is_up(daemon, cable->a) && !is_up(daemon, cable->b)))
            continue;
        daemon->links[link].down = down;
        daemon->loss.links[link] = down;
        daemon->counts.link_downs += down;
        by_news_tell(daemon->news, down ? BY_NEWS_BAD : BY_NEWS_GOOD, "link %s - %s is %s",
                     daemon->topology->nodes[cable->a].name, daemon->topology->nodes[cable->b].name,
                     down ? "down: no carrier" : "up");
        by_daemon_tell(daemon, &(struct by_daemon_event){.kind = down ? BY_EVENT_LINK_DOWN : BY_EVENT_LINK_UP,
                                                         .link = link});
    }
}

/* Handles an answer. */
static void take_answer(struct by_daemon *daemon, struct by_daemon_switch *device, struct by_beat *beat)
{
    bool was_up = device->state == BY_SWITCH_UP,
         rebooted = device->hello.boot_nonce != 0 && device->hello.boot_nonce != beat->hello.boot_nonce;
    enum by_daemon_event_kind kind = rebooted ? BY_EVENT_SWITCH_REBOOTED : BY_EVENT_SWITCH_UP;

    device->hello = beat->hello;
    device->counters = beat->counters;
    device->chunks = by_switch_chunks(&device->counters);
    if (beat->has_waiting) {
        device->waiting = beat->waiting;
        device->waiting_table = beat->hello.table_hash;
    }
    device->silent_ms = 0;
    device->text[0] = 0;
    device->state = BY_SWITCH_UP;
    daemon->loss.nodes[device->node] = false;
    device->stray_beats = device->image.bytes != NULL && device->hello.table_hash != device->image.hash
                              ? device->stray_beats + 1
                              : 0;
    daemon->counts.switch_reboots += rebooted;
    by_daemon_tell(daemon,
                   &(struct by_daemon_event){.kind = BY_EVENT_ANSWERED, .node = device->node, .beat = beat});
    if (rebooted)
        by_news_tell(daemon->news, BY_NEWS_BAD, "switch %s has restarted and lost its tables", device->name);
    else if (!was_up)
        by_news_tell(daemon->news, BY_NEWS_GOOD, "switch %s is up", device->name);
    if (!was_up || rebooted)
        by_daemon_tell(daemon, &(struct by_daemon_event){.kind = kind, .node = device->node});
    look_at_links(daemon, device);
}

/* Handles a heartbeat without an answer. */
static void take_silence(struct by_daemon *daemon, struct by_daemon_switch *device,
                         const struct by_beat *beat, bool suspected)
{
    uint64_t most = (uint64_t)SILENT_BEATS * daemon->options.heartbeat_ms;

    if (beat->gone)
        most = 0;
    else if (suspected && beat->patience_ms < most)
        most = beat->patience_ms;
    else if (beat->silent_ms >= most && by_paths_need(daemon, device->node))
        most = (uint64_t)NEEDED_BEATS * daemon->options.heartbeat_ms;
    if (device->state == BY_SWITCH_UNKNOWN && most < FIRST_MS &&
        !(beat->gone && by_state_election(daemon->state) != 0))
        most = FIRST_MS;
    device->silent_ms = beat->silent_ms;
    snprintf(device->text, sizeof(device->text), "%s", beat->problem.text);
    if (device->state == BY_SWITCH_DOWN || beat->silent_ms < most)
        return;
    device->state = BY_SWITCH_DOWN;
    daemon->loss.nodes[device->node] = true;
    daemon->counts.switch_downs++;
    if (beat->gone)
        by_news_tell(daemon->news, BY_NEWS_BAD, "switch %s is down: its process has ended: %s", device->name,
                     device->text);
    else
        by_news_tell(daemon->news, BY_NEWS_BAD, "switch %s is down: no answer for %llu ms: %s", device->name,
                     (unsigned long long)beat->silent_ms, device->text);
    by_daemon_tell(daemon,
                   &(struct by_daemon_event){.kind = beat->gone ? BY_EVENT_SWITCH_GONE : BY_EVENT_SWITCH_DOWN,
                                             .node = device->node});
    look_at_links(daemon, device);
}

/* Handles a refusal because of too many requests: the switch is alive, but its counters are
 * unknown. */
static void take_refusal(struct by_daemon_switch *device, const struct by_beat *beat)
{
    if (device->text[0] == 0)
        by_daemon_say("switch %s is alive but does not report its counters: %s", device->name,
                      beat->problem.text);
    snprintf(device->text, sizeof(device->text), "%s", beat->problem.text);
    device->silent_ms = beat->silent_ms;
}

/* Handles counters that the switch has sent because of a carrier. They may precede the first
 * heartbeat after it was down, which then decides. */
static void take_notice(struct by_daemon *daemon, struct by_daemon_switch *device, const struct by_beat *beat)
{
    if (device->state != BY_SWITCH_UP)
        return;
    device->counters = beat->counters;
    device->chunks = by_switch_chunks(&device->counters);
    look_at_links(daemon, device);
}

void by_switches_beat(struct by_daemon *daemon, struct by_beat *beat, bool suspected)
{
    struct by_daemon_switch *device = by_switch_find(daemon, beat->node);

    by_watch_taken(device->watch);
    if (beat->noticed)
        take_notice(daemon, device, beat);
    else if (beat->error == 0)
        take_answer(daemon, device, beat);
    else if (beat->deposed)
        by_daemon_retire(daemon, "switch %s is led by a newer controller (%s): this one %s", device->name,
                         beat->problem.text,
                         daemon->lead != NULL ? "follows now"
                                              : "ends; start it again with --takeover to lead");
    else if (beat->hasty && device->state == BY_SWITCH_UP)
        take_refusal(device, beat);
    else
        take_silence(daemon, device, beat, suspected);
    free(beat);
}
