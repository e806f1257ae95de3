/* Memory of samples, and rates between two samples. See view.h. */
#include "control/view/top/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"

struct by_top_switch *by_top_add_switch(struct by_top_view *view, const char *name)
{
    struct by_top_switch *device;

    BY_GROW(view->switches, view->switch_count, view->switch_room);
    device = &view->switches[view->switch_count++];
    *device = (struct by_top_switch){.state = "unknown"};
    snprintf(device->name, sizeof(device->name), "%.47s", name);
    return device;
}

struct by_top_job *by_top_add_job(struct by_top_view *view, uint32_t job)
{
    struct by_top_job *row;

    for (uint32_t i = 0; i < view->job_count; i++)
        if (view->jobs[i].job == job)
            return &view->jobs[i];
    BY_GROW(view->jobs, view->job_count, view->job_room);
    row = &view->jobs[view->job_count++];
    *row = (struct by_top_job){.job = job};
    return row;
}

struct by_top_port *by_top_add_port(struct by_top_switch *device)
{
    device->ports = by_realloc(device->ports, device->port_count + 1, sizeof(*device->ports));
    memset(&device->ports[device->port_count], 0, sizeof(*device->ports));
    return &device->ports[device->port_count++];
}

struct by_top_wait *by_top_add_wait(struct by_top_switch *device)
{
    device->waits = by_realloc(device->waits, device->wait_count + 1, sizeof(*device->waits));
    memset(&device->waits[device->wait_count], 0, sizeof(*device->waits));
    return &device->waits[device->wait_count++];
}

static const struct by_top_port *find_port(const struct by_top_switch *device, const char *name)
{
    for (uint32_t i = 0; device != NULL && i < device->port_count; i++)
        if (strcmp(device->ports[i].name, name) == 0)
            return &device->ports[i];
    return NULL;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void age(struct by_top_switch *device, const struct by_top_switch *old)
{
    for (uint32_t i = 0; old != NULL && i < device->wait_count; i++) {
        struct by_top_wait *wait = &device->waits[i];

        for (uint32_t j = 0; j < old->wait_count; j++)
            if (old->waits[j].job == wait->job && old->waits[j].tree == wait->tree &&
                old->waits[j].chunk == wait->chunk)
                wait->is_old = true;
    }
}

static void rate_shares(struct by_top_view *view, const struct by_top_view *before, double seconds)
{
    for (uint32_t i = 0; i < view->job_count; i++)
        for (uint32_t j = 0; j < before->job_count; j++) {
            struct by_top_job *job = &view->jobs[i];
            const struct by_top_job *was = &before->jobs[j];

            if (job->job != was->job)
                continue;
            job->share_rate = rate(job->share_bytes, was->share_bytes, seconds);
            job->held_rate = rate(job->share_held, was->share_held, seconds);
            job->dropped_rate = rate(job->share_dropped, was->share_dropped, seconds);
        }
}

void by_top_add_share(struct by_top_view *view, uint32_t number, double share, uint64_t bytes, uint64_t held,
                      uint64_t dropped)
{
    struct by_top_job *job;

    if (number == 0)
        return;
    job = by_top_add_job(view, number);
    job->share = share;
    job->share_bytes += bytes;
    job->share_held += held;
    job->share_dropped += dropped;
}

void by_top_rates(struct by_top_view *view, const struct by_top_view *before)
{
    double seconds = (double)(view->time_ns - before->time_ns) / 1e9;

    rate_shares(view, before, seconds);
    for (uint32_t i = 0; i < view->switch_count; i++) {
        struct by_top_switch *device = &view->switches[i];
        const struct by_top_switch *old = NULL;

        for (uint32_t j = 0; j < before->switch_count; j++)
            if (strcmp(before->switches[j].name, device->name) == 0 &&
                before->switches[j].boot == device->boot)
                old = &before->switches[j];
        age(device, old);
        for (uint32_t j = 0; j < device->port_count; j++) {
            struct by_top_port *port = &device->ports[j];
            const struct by_top_port *was = find_port(old, port->name);

            if (was == NULL)
                continue;
            port->rx_rate = rate(port->rx_bytes, was->rx_bytes, seconds);
            port->tx_rate = rate(port->tx_bytes, was->tx_bytes, seconds);
            port->drop_rate = rate(port->dropped, was->dropped, seconds);
        }
    }
}

void by_top_view_free(struct by_top_view *view)
{
    for (uint32_t i = 0; i < view->switch_count; i++) {
        free(view->switches[i].ports);
        free(view->switches[i].waits);
    }
    free(view->switches);
    free(view->jobs);
    *view = (struct by_top_view){0};
}
