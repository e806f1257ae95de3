/*
 * Fills a view from the status of banyand (GET /v1/status). See source.h. Missing fields stay
 * empty, so statuses of other versions are shown as far as possible.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/build.h"
#include "control/view/top/source.h"
#include "offload/base/errors.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Joins an array of names: "host2, host3". */
static void join(const json_t *names, char *text, size_t bytes)
{
    const json_t *name;
    size_t index, used = 0;

    text[0] = 0;
    json_array_foreach(names, index, name)
    {
        if (used + BY_TOP_NAME < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%.40s", used ? ", " : "",
                                     json_string_value(name) ? json_string_value(name) : "?");
        else if (index + 1 == json_array_size(names))
            snprintf(text + used, bytes - used, ", ...");
    }
}

static void read_ports(const json_t *array, struct by_top_switch *device)
{
    const json_t *row;
    size_t index;

    json_array_foreach(array, index, row)
    {
        struct by_top_port *port = by_top_add_port(device);

        snprintf(port->name, sizeof(port->name), "%.47s", text_of(row, "name"));
        snprintf(port->peer, sizeof(port->peer), "%.47s", text_of(row, "peer"));
        port->is_down = json_is_true(json_object_get(row, "down"));
        port->rx_bytes = number_of(row, "rx_bytes");
        port->tx_bytes = number_of(row, "tx_bytes");
        port->dropped = number_of(row, "rx_dropped") + number_of(row, "tx_dropped");
        port->rx_capacity = json_number_value(json_object_get(row, "rx_capacity"));
        port->tx_capacity = json_number_value(json_object_get(row, "tx_capacity"));
    }
}

static void read_waits(const json_t *array, struct by_top_switch *device)
{
    const json_t *row;
    size_t index;

    json_array_foreach(array, index, row)
    {
        struct by_top_wait *wait = by_top_add_wait(device);

        wait->job = (uint32_t)number_of(row, "job");
        wait->tree = (uint32_t)number_of(row, "tree");
        wait->chunk = (uint32_t)number_of(row, "chunk");
        join(json_object_get(row, "missing"), wait->missing, sizeof(wait->missing));
        if (wait->missing[0] == 0)
            snprintf(wait->missing, sizeof(wait->missing), "its %.20s", text_of(row, "waits_for"));
    }
}

static void read_switch(const json_t *row, struct by_top_view *view)
{
    struct by_top_switch *device = by_top_add_switch(view, text_of(row, "name"));
    const json_t *slots = json_object_get(row, "slots"), *entries = json_object_get(row, "entries"), *share;
    size_t index;

    snprintf(device->state, sizeof(device->state), "%.15s", text_of(row, "state"));
    device->boot = strtoull(text_of(row, "boot"), NULL, 16);
    device->slots = (uint32_t)number_of(slots, "limit");
    device->slots_held = (uint32_t)number_of(slots, "held");
    device->entries = (uint32_t)number_of(entries, "limit");
    device->entries_held = (uint32_t)number_of(entries, "held");
    if (strcmp(device->state, "up") != 0)
        snprintf(device->text, sizeof(device->text), "%.150s", text_of(row, "error"));
    else if (strcmp(text_of(row, "table"), text_of(row, "table_wanted")) != 0)
        snprintf(device->text, sizeof(device->text), "its table is not the expected one");
    read_ports(json_object_get(row, "ports"), device);
    read_waits(json_object_get(row, "waiting"), device);
    json_array_foreach(json_object_get(row, "shares"), index, share)
    {
        by_top_add_share(view, (uint32_t)number_of(share, "job"),
                         json_number_value(json_object_get(share, "share")), number_of(share, "rx_bytes"),
                         number_of(share, "held"), number_of(share, "dropped"));
    }
}

static void read_job(const json_t *row, struct by_top_view *view)
{
    struct by_top_job *job = by_top_add_job(view, (uint32_t)number_of(row, "job"));
    const json_t *held;
    size_t index;

    snprintf(job->name, sizeof(job->name), "%.47s", text_of(row, "name"));
    snprintf(job->state, sizeof(job->state), "%.15s", text_of(row, "state"));
    snprintf(job->text, sizeof(job->text), "%.150s", text_of(row, "text"));
    job->generation = (uint32_t)number_of(row, "generation");
    job->ranks = (uint32_t)number_of(row, "ranks");
    json_array_foreach(json_object_get(row, "held"), index, held)
    {
        if (number_of(held, "slots") > job->slots)
            job->slots = (uint32_t)number_of(held, "slots");
    }
}

int by_top_read_status(const char *text, struct by_top_view *view, struct by_problem *problem)
{
    json_error_t fault;
    json_t *root = json_loads(text, 0, &fault);
    const json_t *row;
    size_t index;

    if (!json_is_object(root)) {
        json_decref(root);
        return by_problem_say(problem, BY_EFORMAT, "the status is not banyand's: %s",
                              root ? "not an object" : fault.text);
    }
    if (json_is_true(json_object_get(root, "follows"))) {
        int error = by_problem_say(problem, BY_EAGAIN,
                                   "this banyand follows: %.200s; add the leader's address to --controller",
                                   text_of(root, "text"));

        json_decref(root);
        return error;
    }
    snprintf(view->title, sizeof(view->title), "%.90s", text_of(root, "topology"));
    snprintf(view->source, sizeof(view->source), "banyand %.20s%s", text_of(root, "version"),
             json_is_false(json_object_get(root, "leads")) ? ", not leading yet" : "");
    view->is_changing = json_is_true(json_object_get(root, "changing"));
    view->down_links = (uint32_t)json_array_size(json_object_get(root, "links_down"));
    json_array_foreach(json_object_get(root, "switches"), index, row)
    {
        read_switch(row, view);
    }
    json_array_foreach(json_object_get(root, "jobs"), index, row)
    {
        read_job(row, view);
    }
    json_decref(root);
    return 0;
}
