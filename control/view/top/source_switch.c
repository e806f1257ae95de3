/*
 * Fills a view from switches that are queried one by one, for fabrics without a controller. See
 * source.h. Tables are needed for the names of jobs and neighbours; each is read once for each
 * hash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/unit.h"
#include "control/service/controller/http.h"
#include "control/tables/address.h"
#include "control/view/top/source.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"

/* Delay before a switch that did not answer is queried again (ns). */
#define RETRY_NS UINT64_C(2000000000)
/* Timeout for banyand (ms); it answers from memory. */
#define STATUS_MS 3000u

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Writes a node's name if there is a topology, else its number. */
static void node_text(const struct by_topology *topology, uint32_t node, char *text, size_t bytes)
{
    if (topology != NULL && node < topology->node_count)
        snprintf(text, bytes, "%.40s", topology->nodes[node].name);
    else
        snprintf(text, bytes, "node %u", node);
}

/* Names the missing children of an entry. */
static void missing_text(const uint8_t *image, const by_WaitingEntry *waiting,
                         const struct by_topology *topology, struct by_top_wait *wait)
{
    struct by_image_header header = {0};
    size_t used = 0;

    if (image != NULL)
        by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;

        by_image_entry(image, i, &entry);
        for (uint32_t bit = 0; entry.job == waiting->job && entry.tree == waiting->tree &&
                               bit < entry.child_count && bit < BY_CHILDREN_MAX;
             bit++) {
            struct by_image_child child;
            char name[BY_TOP_NAME];

            by_image_child(image, entry.first_child + bit, &child);
            if (!(waiting->missing >> bit & 1) || used + BY_TOP_NAME > sizeof(wait->missing))
                continue;
            node_text(topology, child.node, name, sizeof(name));
            used += (size_t)snprintf(wait->missing + used, sizeof(wait->missing) - used, "%s%s",
                                     used ? ", " : "", name);
        }
    }
    if (used == 0)
        snprintf(wait->missing, sizeof(wait->missing), "its parent");
}

static void read_jobs(const uint8_t *image, struct by_top_view *view)
{
    struct by_image_header header;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        struct by_image_job record;
        struct by_top_job *job;
        uint32_t slots = 0;

        if (by_image_job_is_standby(image, i))
            continue;
        by_image_job(image, i, &record);
        job = by_top_add_job(view, record.job);
        if (job->state[0] != 0 && job->generation != record.gen)
            snprintf(job->text, sizeof(job->text), "switches have generations %u and %u", job->generation,
                     record.gen);
        snprintf(job->state, sizeof(job->state), "loaded");
        job->generation = record.gen > job->generation ? record.gen : job->generation;
        job->ranks = record.rank_count;
        for (uint32_t j = 0; j < header.count[BY_SECTION_ENTRY]; j++) {
            struct by_image_entry entry;

            by_image_entry(image, j, &entry);
            slots += entry.job == record.job ? by_image_entry_slots(&entry) : 0;
        }
        job->slots = slots > job->slots ? slots : job->slots;
    }
}

/* Sets the capacities of a link in both directions, as seen from `node` (bytes per second). */
static void read_capacity(const struct by_topology *topology, uint32_t node, const char *peer,
                          struct by_top_port *port)
{
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];
        double capacity = by_fraction_value(by_unit_arc_bytes(topology, i));

        if (arc->from == node && strcmp(topology->nodes[arc->to].name, peer) == 0)
            port->tx_capacity = capacity;
        if (arc->to == node && strcmp(topology->nodes[arc->from].name, peer) == 0)
            port->rx_capacity = capacity;
    }
}

static void read_ports(struct by_top_switch *device, const by_CountersReply *counters, const uint8_t *image,
                       const struct by_topology *topology)
{
    struct by_image_header header = {0};

    if (image != NULL)
        by_image_header(image, &header);
    for (pb_size_t i = 0; i < counters->ports_count; i++) {
        const by_PortCounters *from = &counters->ports[i];
        struct by_top_port *port = by_top_add_port(device);

        snprintf(port->name, sizeof(port->name), "%.47s", from->name);
        port->is_down = from->down;
        port->rx_bytes = from->rx_bytes;
        port->tx_bytes = from->tx_bytes;
        port->dropped = from->rx_dropped + from->tx_dropped;
        if (i < header.count[BY_SECTION_PORT]) {
            struct by_image_port record;

            by_image_port(image, i, &record);
            node_text(topology, record.peer_node, port->peer, sizeof(port->peer));
            if (topology != NULL)
                read_capacity(topology, header.node, port->peer, port);
        }
    }
}

void by_top_read_switch(struct by_top_view *view, const char *name, const by_HelloReply *hello,
                        const by_CountersReply *counters, const by_WaitingReply *waiting,
                        const uint8_t *image, const struct by_topology *topology)
{
    struct by_top_switch *device = by_top_add_switch(view, name);

    snprintf(device->state, sizeof(device->state), "up");
    if (hello->table_hash == 0)
        snprintf(device->text, sizeof(device->text), "no table is active");
    else if (hello->validated_hash != 0)
        snprintf(device->text, sizeof(device->text), "a push is open");
    device->boot = hello->boot_nonce;
    device->slots = hello->slot_count;
    device->slots_held = hello->slots_used;
    device->entries = hello->entry_max;
    device->entries_held = hello->entry_count;
    read_ports(device, counters, image, topology);
    for (pb_size_t i = 0; i < counters->shares_count; i++)
        by_top_add_share(view, counters->shares[i].job, (double)counters->shares[i].share / BY_SHARE_ONE,
                         counters->shares[i].rx_bytes, counters->shares[i].held, counters->shares[i].dropped);
    for (pb_size_t i = 0; i < waiting->entries_count; i++) {
        struct by_top_wait *wait = by_top_add_wait(device);

        wait->job = waiting->entries[i].job;
        wait->tree = waiting->entries[i].tree;
        wait->chunk = waiting->entries[i].seq;
        missing_text(image, &waiting->entries[i], topology, wait);
    }
    if (image != NULL)
        read_jobs(image, view);
    for (uint32_t i = 0; i < device->port_count; i++)
        view->down_links += device->ports[i].is_down;
}

/* Reads the target's table if its hash has changed. */
static int renew_image(struct by_top_target *target, const by_HelloReply *hello, struct by_problem *problem)
{
    int error = 0;

    if (hello->table_hash != 0 && hello->table_hash == target->hash)
        return 0;
    free(target->image);
    target->image = NULL;
    target->hash = 0;
    if (hello->table_hash != 0)
        error = by_session_read(target->session, &target->image, &target->bytes, problem);
    if (error == 0 && target->image != NULL && by_image_check(target->image, target->bytes, NULL, NULL) != 0)
        error = by_problem_say(problem, BY_EFORMAT, "this version cannot read its table");
    if (error == 0)
        target->hash = hello->table_hash;
    return error;
}

static int visit(struct by_top_source *source, struct by_top_target *target, struct by_top_view *view,
                 struct by_problem *problem)
{
    by_CountersReply *counters = calloc(1, sizeof(*counters));
    by_WaitingReply *waiting = calloc(1, sizeof(*waiting));
    by_HelloReply hello = {0};
    int error = counters && waiting ? 0 : BY_ENOMEM;

    if (error == 0 && target->session == NULL)
        error = by_session_open(target->address, &source->access, &target->session, problem);
    if (error == 0)
        error = by_session_hello(target->session, &hello, problem);
    if (error == 0)
        error = by_session_counters(target->session, counters, problem);
    if (error == 0)
        error = by_session_waiting(target->session, waiting, problem);
    if (error == 0)
        error = renew_image(target, &hello, problem);
    if (error == 0)
        by_top_read_switch(view, target->name, &hello, counters, waiting, target->image, source->topology);
    free(counters);
    free(waiting);
    return error;
}

static void sample_target(struct by_top_source *source, struct by_top_target *target,
                          struct by_top_view *view)
{
    struct by_problem problem = {0};
    struct by_top_switch *device;

    if (now_ns() >= target->retry_ns) {
        if (visit(source, target, view, &problem) == 0)
            return;
        by_session_close(target->session);
        target->session = NULL;
        target->retry_ns = now_ns() + RETRY_NS;
        snprintf(target->text, sizeof(target->text), "%.150s", problem.text);
    }
    device = by_top_add_switch(view, target->name);
    snprintf(device->state, sizeof(device->state), "down");
    snprintf(device->text, sizeof(device->text), "%s", target->text);
}

int by_top_sample(struct by_top_source *source, struct by_top_view *view, struct by_problem *problem)
{
    char *text = NULL;
    int status = 0, error;

    *view = (struct by_top_view){0};
    if (source->http == NULL) {
        for (uint32_t i = 0; i < source->target_count; i++)
            sample_target(source, &source->targets[i], view);
        view->time_ns = now_ns();
        snprintf(view->title, sizeof(view->title), "%.90s", source->topology ? source->topology->name : "");
        snprintf(view->source, sizeof(view->source), "switches, queried directly");
        return 0;
    }
    error = by_http_ask(source->http, "GET", "/v1/status", NULL, STATUS_MS, &status, &text, problem);
    if (error != 0)
        return error;
    view->time_ns = now_ns();
    if (status != 200)
        error =
            by_problem_say(problem, BY_EFORMAT, "%s: GET /v1/status: %d: check that banyand listens there",
                           source->http, status);
    else
        error = by_top_read_status(text, view, problem);
    free(text);
    return error;
}

void by_top_source_close(struct by_top_source *source)
{
    for (uint32_t i = 0; i < source->target_count; i++) {
        by_session_close(source->targets[i].session);
        free(source->targets[i].name);
        free(source->targets[i].address);
        free(source->targets[i].image);
    }
    free(source->targets);
}
