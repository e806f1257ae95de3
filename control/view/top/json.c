/* A view as JSON; see draw.h. */
#include <jansson.h>
#include <stdio.h>

#include "control/view/top/draw.h"

static json_t *ports_json(const struct by_top_switch *device)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < device->port_count; i++) {
        const struct by_top_port *port = &device->ports[i];

        json_array_append_new(
            array, json_pack("{s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f}", "name", port->name, "peer",
                             port->peer, "down", (int)port->is_down, "rx_bytes_per_second", port->rx_rate,
                             "tx_bytes_per_second", port->tx_rate, "dropped_per_second", port->drop_rate,
                             "rx_capacity", port->rx_capacity, "tx_capacity", port->tx_capacity));
    }
    return array;
}

static json_t *waits_json(const struct by_top_switch *device)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < device->wait_count; i++) {
        const struct by_top_wait *wait = &device->waits[i];

        json_array_append_new(array,
                              json_pack("{s:I, s:I, s:I, s:b, s:s}", "job", (json_int_t)wait->job, "tree",
                                        (json_int_t)wait->tree, "chunk", (json_int_t)wait->chunk, "old",
                                        (int)wait->is_old, "missing", wait->missing));
    }
    return array;
}

void by_top_json(const struct by_top_view *view, FILE *stream)
{
    json_t *switches = json_array(), *jobs = json_array(), *root;

    for (uint32_t i = 0; i < view->switch_count; i++) {
        const struct by_top_switch *device = &view->switches[i];

        json_array_append_new(switches,
                              json_pack("{s:s, s:s, s:s, s:{s:I, s:I}, s:{s:I, s:I}, s:o, s:o}", "name",
                                        device->name, "state", device->state, "text", device->text, "slots",
                                        "limit", (json_int_t)device->slots, "held",
                                        (json_int_t)device->slots_held, "entries", "limit",
                                        (json_int_t)device->entries, "held", (json_int_t)device->entries_held,
                                        "ports", ports_json(device), "waiting", waits_json(device)));
    }
    for (uint32_t i = 0; i < view->job_count; i++) {
        const struct by_top_job *job = &view->jobs[i];

        json_array_append_new(jobs, json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
                                              "job", (json_int_t)job->job, "name", job->name, "state",
                                              job->state, "text", job->text, "generation",
                                              (json_int_t)job->generation, "ranks", (json_int_t)job->ranks,
                                              "slots", (json_int_t)job->slots, "share", job->share,
                                              "share_bytes_per_second", job->share_rate, "held_per_second",
                                              job->held_rate, "share_dropped_per_second", job->dropped_rate));
    }
    root = json_pack("{s:s, s:s, s:b, s:o, s:o}", "topology", view->title, "source", view->source, "changing",
                     (int)view->is_changing, "switches", switches, "jobs", jobs);
    json_dumpf(root, stream, JSON_INDENT(2));
    fputc('\n', stream);
    json_decref(root);
}
