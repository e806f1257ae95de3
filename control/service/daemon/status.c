/* The state as JSON. See status.h; neighbours: metrics.c; http.c serves it. */
#include "control/service/daemon/status.h"

#include <inttypes.h>
#include <string.h>

#include "control/base/alloc.h"
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

json_t *by_status_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL)
        return value;
    copy = by_copy_text(text);
    for (char *at = copy; *at != 0; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    value = json_string(copy);
    free(copy);
    return value;
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

uint32_t by_status_waiting(const struct by_daemon_switch *device)
{
    /* A report from before the switch went down, or under another table, concerns trees that are no
     * longer used. */
    return device->state == BY_SWITCH_UP && device->waiting_table == device->hello.table_hash
               ? device->waiting.entries_count
               : 0;
}

json_t *by_status_waits(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < by_status_waiting(device); i++) {
        const by_WaitingEntry *entry = &device->waiting.entries[i];

        json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:s, s:o}", "job", (json_int_t)entry->job,
                                               "tree", (json_int_t)entry->tree, "chunk",
                                               (json_int_t)entry->seq, "waits_for", waits_for(entry->state),
                                               "missing", missing_json(daemon, device, entry)));
    }
    return array;
}

double by_status_capacity(const struct by_topology *topology, uint32_t link, uint32_t from)
{
    uint32_t arc = UINT32_MAX;

    if (link != UINT32_MAX)
        arc = topology->links[link].a == from ? topology->links[link].arc_ab : topology->links[link].arc_ba;
    if (arc == UINT32_MAX || !by_unit_has_bytes(topology->unit))
        return -1;
    return by_fraction_value(by_unit_arc_bytes(topology, arc));
}

/* Returns the bytes per second that a link carries from one of its ends; null if the unit of the
 * topology does not define them. */
static json_t *capacity_json(const struct by_topology *topology, uint32_t link, uint32_t from)
{
    double capacity = by_status_capacity(topology, link, from);

    return capacity >= 0 ? json_real(capacity) : json_null();
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
            json_pack("{s:o, s:s?, s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
                      by_status_text(port->name), "peer",
                      peer != UINT32_MAX ? daemon->topology->nodes[peer].name : NULL, "down", (int)port->down,
                      "rx_capacity", capacity_json(daemon->topology, link, peer), "tx_capacity",
                      capacity_json(daemon->topology, link, device->node), "rx_packets",
                      (json_int_t)port->rx_packets, "rx_bytes", (json_int_t)port->rx_bytes, "tx_packets",
                      (json_int_t)port->tx_packets, "tx_bytes", (json_int_t)port->tx_bytes, "rx_dropped",
                      (json_int_t)port->rx_dropped, "tx_dropped", (json_int_t)port->tx_dropped));
    }
    return array;
}

struct by_lower_need by_status_held(const struct by_daemon *daemon, uint32_t node)
{
    struct by_lower_need held = {0};

    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job *job = daemon->jobs[i];

        if (job->tables == NULL || job->state == BY_JOB_FAILED)
            continue;
        held.slots += job->tables->need[node].slots;
        held.entries += job->tables->need[node].entries;
        for (uint32_t k = 0; k < job->tables->standby_count; k++) {
            held.slots += job->tables->standbys[k]->need[node].slots;
            held.entries += job->tables->standbys[k]->need[node].entries;
        }
    }
    return held;
}

static json_t *switch_json(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    struct by_lower_need held = by_status_held(daemon, device->node);

    return json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I}, s:{s:I, s:I}, s:o, s:o, s:o, s:o}",
        "name", device->name, "state", state_name(device), "address", device->address, "silent_ms",
        (json_int_t)device->silent_ms, "error", device->text[0] ? by_status_text(device->text) : json_null(),
        "software", by_status_text(device->hello.software), "boot", hash_json(device->hello.boot_nonce),
        "table", hash_json(device->hello.table_hash), "table_wanted", hash_json(device->image.hash), "slots",
        "limit", (json_int_t)device->hello.slot_count, "held", (json_int_t)held.slots, "entries", "limit",
        (json_int_t)device->hello.entry_max, "held", (json_int_t)held.entries, "ports",
        ports_json(daemon, device), "engine", by_counters_engine_json(&device->counters), "shares",
        by_counters_shares_json(&device->counters), "waiting", by_status_waits(daemon, device));
}

json_t *by_status_want(const struct by_daemon *daemon, const struct by_job *job, uint32_t index,
                       const struct by_plan **plan)
{
    const struct by_job_want *want = &job->spec.wants[index];

    *plan = job->tables != NULL && index < job->tables->plan_count ? job->tables->plans[index] : NULL;
    return json_pack("{s:s, s:s?}", "collective", by_collective_name(want->collective), "root",
                     want->root >= 0 ? daemon->topology->nodes[want->root].name : NULL);
}

static json_t *plans_json(const struct by_daemon *daemon, const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < job->spec.want_count; i++) {
        const struct by_plan *plan;
        json_t *object = by_status_want(daemon, job, i, &plan);

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

/* Returns the standbys of a job's tables; NULL if there are none. */
static json_t *standbys_json(const struct by_job *job)
{
    uint32_t count = job->tables != NULL ? job->tables->standby_count : 0;
    json_t *array = count > 0 ? json_array() : NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct by_job_tables *standby = job->tables->standbys[i];
        json_t *replaces = json_array();

        for (uint32_t t = 0; standby->replaces != NULL && t < job->tables->lowering->tree_count; t++)
            if (standby->replaces[t])
                json_array_append_new(replaces, json_integer(t));
        json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:o}", "generation", (json_int_t)standby->gen,
                                               "trees", (json_int_t)standby->lowering->tree_count, "window",
                                               (json_int_t)standby->window, "replaces", replaces));
    }
    return array;
}

json_t *by_status_job(struct by_daemon *daemon, const struct by_job *job)
{
    char share[BY_FRACTION_TEXT_BYTES];
    json_t *standbys = standbys_json(job);
    json_t *object =
        json_pack("{s:I, s:s, s:s, s:o, s:I, s:I, s:I, s:s?, s:s, s:o, s:o, s:o}", "job",
                  (json_int_t)job->spec.job, "name", job->spec.name, "state", by_job_state_name(job->state),
                  "text", job->text[0] ? by_status_text(job->text) : json_null(), "generation",
                  (json_int_t)(job->tables ? job->tables->gen : 0), "ranks",
                  (json_int_t)by_job_rank_count(&job->spec, daemon->topology), "window",
                  (json_int_t)(job->tables ? job->tables->window : job->spec.window), "note",
                  job->tables && job->tables->note[0] ? job->tables->note : NULL, "share",
                  by_fraction_text(job->spec.share, share), "plans", plans_json(daemon, job), "held",
                  held_json(daemon, job), "hosts", hosts_json(daemon, job));

    if (standbys != NULL)
        json_object_set_new(object, "standbys", standbys);
    return object;
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
