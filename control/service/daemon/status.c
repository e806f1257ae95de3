/* Status and metrics. See status.h; neighbour: http.c serves them. */
#include "control/service/daemon/status.h"

#include <inttypes.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/fabric/topology.h"
#include "control/fabric/unit.h"
#include "control/service/controller/counters.h"

static const char *state_name(const struct by_daemon_switch *device)
{
    static const char *const names[] = {
        [BY_SWITCH_UNKNOWN] = "unknown", [BY_SWITCH_UP] = "up", [BY_SWITCH_DOWN] = "down"};

    return names[device->state];
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return hash ? json_string(text) : json_null();
}

static json_t *fraction_json(struct by_fraction value)
{
    return json_pack("{s:I, s:I, s:f}", "num", (json_int_t)value.num, "den", (json_int_t)value.den, "value",
                     by_fraction_value(value));
}

/* What a chunk waits for, from the engine's state: contributions of children, or the result of the
 * parent. */
static const char *waits_for(uint32_t state)
{
    return state == 2 ? "children" : state == 3 ? "parent" : "nothing";
}

/* Returns the names of the missing children of an entry. */
static json_t *missing_json(const struct by_daemon *daemon, const struct by_daemon_switch *device,
                            const by_WaitingEntry *waiting)
{
    json_t *names = json_array();
    struct by_image_header header;

    if (device->image.bytes == NULL || device->image.hash != device->hello.table_hash)
        return names;
    by_image_header(device->image.bytes, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;

        by_image_entry(device->image.bytes, i, &entry);
        for (uint32_t bit = 0; entry.job == waiting->job && entry.tree == waiting->tree &&
                               bit < entry.child_count && bit < BY_CHILDREN_MAX;
             bit++) {
            struct by_image_child child;

            by_image_child(device->image.bytes, entry.first_child + bit, &child);
            if (waiting->missing >> bit & 1 && child.node < daemon->topology->node_count)
                json_array_append_new(names, json_string(daemon->topology->nodes[child.node].name));
        }
    }
    return names;
}

static json_t *waiting_json(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    json_t *array = json_array();
    /* A report from before the switch went down, or under another table, concerns trees that are no
     * longer used. */
    bool is_now = device->state == BY_SWITCH_UP && device->waiting_table == device->hello.table_hash;

    for (pb_size_t i = 0; is_now && i < device->waiting.entries_count; i++) {
        const by_WaitingEntry *entry = &device->waiting.entries[i];

        json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:s, s:o}", "job", (json_int_t)entry->job,
                                               "tree", (json_int_t)entry->tree, "chunk",
                                               (json_int_t)entry->seq, "waits_for", waits_for(entry->state),
                                               "missing", missing_json(daemon, device, entry)));
    }
    return array;
}

/* Returns the bytes per second that a link carries from one of its ends; null if the unit of the
 * topology does not define them. */
static json_t *capacity_json(const struct by_topology *topology, uint32_t link, uint32_t from)
{
    uint32_t arc = UINT32_MAX;

    if (link != UINT32_MAX)
        arc = topology->links[link].a == from ? topology->links[link].arc_ab : topology->links[link].arc_ba;
    if (arc == UINT32_MAX || !by_unit_has_bytes(topology->unit))
        return json_null();
    return json_real(by_fraction_value(by_unit_arc_bytes(topology, arc)));
}

static json_t *ports_json(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    json_t *array = json_array();

    for (pb_size_t i = 0; i < device->counters.ports_count; i++) {
        const by_PortCounters *port = &device->counters.ports[i];
        uint32_t link = by_switch_link(daemon, device, i);
        uint32_t peer =
            link != UINT32_MAX ? by_address_peer(daemon->topology, link, device->node) : UINT32_MAX;

        json_array_append_new(
            array,
            json_pack("{s:s, s:s?, s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "name", port->name, "peer",
                      peer != UINT32_MAX ? daemon->topology->nodes[peer].name : NULL, "down", (int)port->down,
                      "rx_capacity", capacity_json(daemon->topology, link, peer), "tx_capacity",
                      capacity_json(daemon->topology, link, device->node), "rx_packets",
                      (json_int_t)port->rx_packets, "rx_bytes", (json_int_t)port->rx_bytes, "tx_packets",
                      (json_int_t)port->tx_packets, "tx_bytes", (json_int_t)port->tx_bytes, "rx_dropped",
                      (json_int_t)port->rx_dropped, "tx_dropped", (json_int_t)port->tx_dropped));
    }
    return array;
}

/* Returns the slots and entries that jobs hold at a node. */
static struct by_lower_need held_at(const struct by_daemon *daemon, uint32_t node)
{
    struct by_lower_need held = {0};

    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job *job = daemon->jobs[i];

        if (job->tables == NULL || job->state == BY_JOB_FAILED)
            continue;
        held.slots += job->tables->need[node].slots;
        held.entries += job->tables->need[node].entries;
    }
    return held;
}

static json_t *switch_json(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    struct by_lower_need held = held_at(daemon, device->node);

    return json_pack(
        "{s:s, s:s, s:s, s:I, s:s?, s:s, s:o, s:o, s:o, s:{s:I, s:I}, s:{s:I, s:I}, s:o, s:o, s:o, s:o}",
        "name", device->name, "state", state_name(device), "address", device->address, "silent_ms",
        (json_int_t)device->silent_ms, "error", device->text[0] ? device->text : NULL, "software",
        device->hello.software, "boot", hash_json(device->hello.boot_nonce), "table",
        hash_json(device->hello.table_hash), "table_wanted", hash_json(device->image.hash), "slots", "limit",
        (json_int_t)device->hello.slot_count, "held", (json_int_t)held.slots, "entries", "limit",
        (json_int_t)device->hello.entry_max, "held", (json_int_t)held.entries, "ports",
        ports_json(daemon, device), "engine", by_counters_engine_json(&device->counters), "shares",
        by_counters_shares_json(&device->counters), "waiting", waiting_json(daemon, device));
}

static json_t *plans_json(const struct by_daemon *daemon, const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < job->spec.want_count; i++) {
        const struct by_job_want *want = &job->spec.wants[i];
        const struct by_plan *plan =
            job->tables != NULL && i < job->tables->plan_count ? job->tables->plans[i] : NULL;
        json_t *object = json_pack("{s:s, s:s?}", "collective", by_collective_name(want->collective), "root",
                                   want->root >= 0 ? daemon->topology->nodes[want->root].name : NULL);

        if (plan != NULL) {
            json_object_set_new(object, "optimum", fraction_json(plan->optimum));
            json_object_set_new(object, "achieved", fraction_json(plan->achieved));
            json_object_set_new(object, "unit", json_string(plan->unit));
            json_object_set_new(object, "trees", json_integer(plan->tree_count));
        }
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *held_json(const struct by_daemon *daemon, const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < daemon->switch_count && job->tables != NULL; i++) {
        struct by_lower_need need = job->tables->need[daemon->switches[i].node];

        if (need.entries > 0)
            json_array_append_new(array,
                                  json_pack("{s:s, s:I, s:I}", "switch", daemon->switches[i].name, "slots",
                                            (json_int_t)need.slots, "entries", (json_int_t)need.entries));
    }
    return array;
}

static json_t *hosts_json(const struct by_daemon *daemon, const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < daemon->topology->node_count; i++)
        if (by_members_have(daemon->topology, job->spec.member, i))
            json_array_append_new(array, json_string(daemon->topology->nodes[i].name));
    return array;
}

json_t *by_status_job(struct by_daemon *daemon, const struct by_job *job)
{
    char share[BY_FRACTION_TEXT_BYTES];

    return json_pack("{s:I, s:s, s:s, s:s?, s:I, s:I, s:I, s:s?, s:s, s:o, s:o, s:o}", "job",
                     (json_int_t)job->spec.job, "name", job->spec.name, "state",
                     by_job_state_name(job->state), "text", job->text[0] ? job->text : NULL, "generation",
                     (json_int_t)(job->tables ? job->tables->gen : 0), "ranks",
                     (json_int_t)by_job_rank_count(&job->spec, daemon->topology), "window",
                     (json_int_t)(job->tables ? job->tables->window : job->spec.window), "note",
                     job->tables && job->tables->note[0] ? job->tables->note : NULL, "share",
                     by_fraction_text(job->spec.share, share), "plans", plans_json(daemon, job), "held",
                     held_json(daemon, job), "hosts", hosts_json(daemon, job));
}

json_t *by_status_json(struct by_daemon *daemon)
{
    json_t *switches = json_array(), *jobs = json_array(), *links = json_array();
    char election[24];

    for (uint32_t i = 0; i < daemon->switch_count; i++)
        json_array_append_new(switches, switch_json(daemon, &daemon->switches[i]));
    for (uint32_t i = 0; i < daemon->job_count; i++)
        json_array_append_new(jobs, by_status_job(daemon, daemon->jobs[i]));
    for (uint32_t i = 0; i < daemon->topology->link_count; i++) {
        const struct by_link *link = &daemon->topology->links[i];

        if (daemon->links[i].down)
            json_array_append_new(links, json_pack("{s:s, s:s}", "a", daemon->topology->nodes[link->a].name,
                                                   "b", daemon->topology->nodes[link->b].name));
    }
    snprintf(election, sizeof(election), "%" PRIu64, daemon->election_id);
    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o, s:o}", "version", BY_VERSION, "topology",
                     daemon->topology->name, "election_id", election, "leads", (int)(daemon->start == NULL),
                     "changing", (int)(daemon->change != NULL), "switches", switches, "links_down", links,
                     "jobs", jobs);
}

/* ---- metrics ---- */

static void head(FILE *stream, const char *name, const char *type, const char *text)
{
    fprintf(stream, "# HELP banyan_%s %s\n# TYPE banyan_%s %s\n", name, text, name, type);
}

/* Writes a label. Backslashes and quotes in its value are escaped; a newline, which names never
 * contain, becomes a space. */
static void label(FILE *stream, const char *key, const char *value)
{
    fprintf(stream, "%s=\"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fputc('\\', stream);
        fputc(*value == '\n' ? ' ' : *value, stream);
    }
    fputc('"', stream);
}

static void switch_line(FILE *stream, const char *metric, const struct by_daemon_switch *device,
                        const char *key, const char *value, double number)
{
    fprintf(stream, "banyan_%s{", metric);
    label(stream, "switch", device->name);
    if (key != NULL && value != NULL) {
        fputc(',', stream);
        label(stream, key, value);
    }
    fprintf(stream, "} %.17g\n", number);
}

struct port_metric {
    const char *name, *text;
    size_t offset; /* of a uint64_t in by_PortCounters */
};

static const struct port_metric port_metrics[] = {
    {"port_receive_bytes_total", "Bytes of frames received", offsetof(by_PortCounters, rx_bytes)},
    {"port_receive_packets_total", "Frames received", offsetof(by_PortCounters, rx_packets)},
    {"port_receive_dropped_total", "Frames lost before they reached the switch",
     offsetof(by_PortCounters, rx_dropped)},
    {"port_transmit_bytes_total", "Bytes of frames sent", offsetof(by_PortCounters, tx_bytes)},
    {"port_transmit_packets_total", "Frames sent", offsetof(by_PortCounters, tx_packets)},
    {"port_transmit_dropped_total", "Frames that the port did not accept",
     offsetof(by_PortCounters, tx_dropped)},
};

static void port_metrics_of(const struct by_daemon *daemon, FILE *stream)
{
    for (size_t m = 0; m < sizeof(port_metrics) / sizeof(port_metrics[0]); m++) {
        head(stream, port_metrics[m].name, "counter", port_metrics[m].text);
        for (uint32_t i = 0; i < daemon->switch_count; i++) {
            const struct by_daemon_switch *device = &daemon->switches[i];

            for (pb_size_t p = 0; p < device->counters.ports_count; p++) {
                const by_PortCounters *port = &device->counters.ports[p];
                uint64_t value;

                memcpy(&value, (const char *)port + port_metrics[m].offset, sizeof(value));
                switch_line(stream, port_metrics[m].name, device, "port", port->name, (double)value);
            }
        }
    }
    head(stream, "port_up", "gauge", "1 when the port has a carrier");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        for (pb_size_t p = 0; p < daemon->switches[i].counters.ports_count; p++)
            switch_line(stream, "port_up", &daemon->switches[i], "port",
                        daemon->switches[i].counters.ports[p].name,
                        !daemon->switches[i].counters.ports[p].down);
}

struct share_metric {
    const char *name, *text;
    size_t offset; /* of a uint64_t in by_ShareCounters */
};

static const struct share_metric share_metrics[] = {
    {"share_receive_bytes_total", "Bytes received of a job at ports with a rate, on the cable",
     offsetof(by_ShareCounters, rx_bytes)},
    {"share_transmit_bytes_total", "Bytes sent of a job at ports with a rate, on the cable",
     offsetof(by_ShareCounters, tx_bytes)},
    {"share_held_total", "Packets delayed because their job exceeded its share",
     offsetof(by_ShareCounters, held)},
    {"share_dropped_total", "Packets dropped because their job far exceeded its share",
     offsetof(by_ShareCounters, dropped)},
};

/* Job 0 stands for all jobs without a share. */
static void share_metrics_of(const struct by_daemon *daemon, FILE *stream)
{
    for (size_t m = 0; m < sizeof(share_metrics) / sizeof(share_metrics[0]); m++) {
        head(stream, share_metrics[m].name, "counter", share_metrics[m].text);
        for (uint32_t i = 0; i < daemon->switch_count; i++)
            for (pb_size_t s = 0; s < daemon->switches[i].counters.shares_count; s++) {
                const by_ShareCounters *share = &daemon->switches[i].counters.shares[s];
                char job[16];
                uint64_t value;

                memcpy(&value, (const char *)share + share_metrics[m].offset, sizeof(value));
                snprintf(job, sizeof(job), "%u", (unsigned)share->job);
                switch_line(stream, share_metrics[m].name, &daemon->switches[i], "job", job, (double)value);
            }
    }
}

static void switch_metrics(const struct by_daemon *daemon, FILE *stream)
{
    head(stream, "switch_up", "gauge", "1 when the switch answers");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_up", &daemon->switches[i], NULL, NULL,
                    daemon->switches[i].state == BY_SWITCH_UP);
    head(stream, "switch_silence_seconds", "gauge",
         "Seconds since the last answer, 0 while the switch answers");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_silence_seconds", &daemon->switches[i], NULL, NULL,
                    (double)daemon->switches[i].silent_ms / 1e3);
    head(stream, "switch_slots", "gauge", "Slots that the switch has");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_slots", &daemon->switches[i], NULL, NULL,
                    daemon->switches[i].hello.slot_count);
    head(stream, "switch_slots_held", "gauge", "Slots that jobs hold");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_slots_held", &daemon->switches[i], NULL, NULL,
                    held_at(daemon, daemon->switches[i].node).slots);
    head(stream, "engine_events_total", "counter", "Counters of the engine and the shell");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        for (pb_size_t c = 0; c < daemon->switches[i].counters.engine_count; c++)
            switch_line(stream, "engine_events_total", &daemon->switches[i], "event",
                        daemon->switches[i].counters.engine[c].name,
                        (double)daemon->switches[i].counters.engine[c].value);
}

static void job_metrics(const struct by_daemon *daemon, FILE *stream)
{
    static const enum by_job_state states[] = {BY_JOB_STARTING, BY_JOB_RUNNING, BY_JOB_RECOVERING,
                                               BY_JOB_FAILED, BY_JOB_ENDING};

    head(stream, "job_state", "gauge", "1 for the current state of the job");
    for (uint32_t i = 0; i < daemon->job_count; i++)
        for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++)
            fprintf(stream, "banyan_job_state{job=\"%u\",state=\"%s\"} %d\n", daemon->jobs[i]->spec.job,
                    by_job_state_name(states[s]), daemon->jobs[i]->state == states[s]);
    head(stream, "job_generation", "gauge", "Generation of the job's tables, 0 without tables");
    for (uint32_t i = 0; i < daemon->job_count; i++)
        fprintf(stream, "banyan_job_generation{job=\"%u\"} %u\n", daemon->jobs[i]->spec.job,
                daemon->jobs[i]->tables ? (unsigned)daemon->jobs[i]->tables->gen : 0u);
    head(stream, "job_ranks", "gauge", "Ranks of the job");
    for (uint32_t i = 0; i < daemon->job_count; i++)
        fprintf(stream, "banyan_job_ranks{job=\"%u\"} %u\n", daemon->jobs[i]->spec.job,
                by_job_rank_count(&daemon->jobs[i]->spec, daemon->topology));
}

static void plain(FILE *stream, const char *name, const char *type, const char *text, double value)
{
    head(stream, name, type, text);
    fprintf(stream, "banyan_%s %.17g\n", name, value);
}

void by_status_metrics(struct by_daemon *daemon, FILE *stream)
{
    uint32_t links = 0;

    for (uint32_t i = 0; i < daemon->topology->link_count; i++)
        links += daemon->links[i].down;
    switch_metrics(daemon, stream);
    port_metrics_of(daemon, stream);
    share_metrics_of(daemon, stream);
    job_metrics(daemon, stream);
    plain(stream, "links_down", "gauge", "Links without a carrier", links);
    plain(stream, "link_downs_total", "counter", "Links that went down", (double)daemon->counts.link_downs);
    plain(stream, "swallows_total", "counter", "Links and switches found to drop packets silently",
          (double)daemon->counts.swallows);
    plain(stream, "switch_downs_total", "counter", "Switches that stopped answering",
          (double)daemon->counts.switch_downs);
    plain(stream, "switch_reboots_total", "counter", "Switches that answered after a restart",
          (double)daemon->counts.switch_reboots);
    plain(stream, "pushes_total", "counter", "Two-phase pushes", (double)daemon->counts.pushes);
    plain(stream, "push_errors_total", "counter", "Pushes that failed", (double)daemon->counts.push_errors);
    plain(stream, "push_seconds_total", "counter", "Total time of pushes", daemon->counts.push_seconds);
    plain(stream, "plan_seconds_total", "counter", "Total time of planning, verifying and lowering",
          daemon->counts.plan_seconds);
}
