/* Metrics as Prometheus text. See metrics.h; neighbours: status.c, http.c serves them. */
#include "control/service/daemon/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/topology.h"
#include "control/fabric/unit.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/status.h"

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

/* The bytes per second that each link carries, to compare with the bytes counted. */
static void capacity_metrics(const struct by_daemon *daemon, FILE *stream)
{
    static const char *const names[] = {"port_receive_capacity_bytes_per_second",
                                        "port_transmit_capacity_bytes_per_second"};

    for (unsigned sends = 0; sends < 2; sends++) {
        head(stream, names[sends], "gauge", "Bandwidth of the port's link in the topology");
        for (uint32_t i = 0; i < daemon->switch_count; i++) {
            const struct by_daemon_switch *device = &daemon->switches[i];

            for (pb_size_t p = 0; p < device->counters.ports_count; p++) {
                uint32_t link = by_switch_link(daemon, device, p);
                uint32_t from = link == UINT32_MAX || sends
                                    ? device->node
                                    : by_address_peer(daemon->topology, link, device->node);
                double capacity = by_status_capacity(daemon->topology, link, from);

                if (capacity >= 0)
                    switch_line(stream, names[sends], device, "port", device->counters.ports[p].name,
                                capacity);
            }
        }
    }
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
    head(stream, "switch_build_info", "gauge", "1; the version of the switch's software is a label");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].hello.software[0] != 0)
            switch_line(stream, "switch_build_info", &daemon->switches[i], "version",
                        daemon->switches[i].hello.software, 1);
    head(stream, "switch_waiting_trees", "gauge",
         "Trees whose oldest chunk waits for children or the parent");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_waiting_trees", &daemon->switches[i], NULL, NULL,
                    by_status_waiting(&daemon->switches[i]));
    head(stream, "switch_slots", "gauge", "Slots that the switch has");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_slots", &daemon->switches[i], NULL, NULL,
                    daemon->switches[i].hello.slot_count);
    head(stream, "switch_slots_held", "gauge", "Slots that jobs hold");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        switch_line(stream, "switch_slots_held", &daemon->switches[i], NULL, NULL,
                    by_status_held(daemon, daemon->switches[i].node).slots);
    head(stream, "engine_events_total", "counter", "Counters of the engine and the shell");
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        for (pb_size_t c = 0; c < daemon->switches[i].counters.engine_count; c++)
            switch_line(stream, "engine_events_total", &daemon->switches[i], "event",
                        daemon->switches[i].counters.engine[c].name,
                        (double)daemon->switches[i].counters.engine[c].value);
}

/* What the plans of a job promise: the proven bound, and the rate of its trees. */
static void plan_metrics(const struct by_daemon *daemon, FILE *stream)
{
    static const char *const names[] = {"job_optimum_bytes_per_second", "job_achieved_bytes_per_second"};
    static const char *const texts[] = {"Proven bound of the algorithm bandwidth on the fabric as it is",
                                        "Algorithm bandwidth of the trees of the job's plan"};

    for (unsigned which = 0; which < 2; which++) {
        head(stream, names[which], "gauge", texts[which]);
        for (uint32_t i = 0; i < daemon->job_count; i++) {
            const struct by_job *job = daemon->jobs[i];

            for (uint32_t w = 0; job->tables != NULL && w < job->tables->plan_count; w++) {
                const struct by_plan *plan = job->tables->plans[w];
                struct by_fraction bytes;

                if (plan == NULL || w >= job->spec.want_count ||
                    by_unit_bytes(plan->unit, which ? plan->achieved : plan->optimum, &bytes) != 0)
                    continue;
                fprintf(stream, "banyan_%s{job=\"%u\",collective=\"%s\"} %.17g\n", names[which],
                        job->spec.job, by_collective_name(job->spec.wants[w].collective),
                        by_fraction_value(bytes));
            }
        }
    }
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

static void latency_lines(FILE *stream, uint32_t job, uint32_t collective, const struct by_latency *latency)
{
    const char *name = by_collective_name(collective);
    uint64_t count = 0;

    for (uint32_t i = 0; i < BY_LATENCY_CLASSES; i++) {
        char limit[32] = "+Inf";

        if (i + 1 < BY_LATENCY_CLASSES)
            snprintf(limit, sizeof(limit), "%g", (double)by_latency_limit_ns(i) / 1e9);
        count += latency->of_class[i];
        fprintf(stream,
                "banyan_job_operation_seconds_bucket{job=\"%u\",collective=\"%s\",le=\"%s\"} %" PRIu64 "\n",
                job, name, limit, count);
    }
    fprintf(stream, "banyan_job_operation_seconds_sum{job=\"%u\",collective=\"%s\"} %.17g\n", job, name,
            (double)latency->duration_ns / 1e9);
    fprintf(stream, "banyan_job_operation_seconds_count{job=\"%u\",collective=\"%s\"} %" PRIu64 "\n", job,
            name, latency->operations);
}

/* What the ranks report of their operations; of collectives that have run. */
static void operation_metrics(const struct by_daemon *daemon, FILE *stream)
{
    for (unsigned which = 0; which < 2; which++) {
        if (which == 0)
            head(stream, "job_operation_seconds", "histogram", "Durations of operations at all ranks");
        else
            head(stream, "job_operation_bytes_total", "counter",
                 "Data of operations at all ranks, as in algorithm bandwidth");
        for (uint32_t i = 0; i < daemon->job_count; i++)
            for (uint32_t c = 1; c < BY_COLLECTIVE_COUNT; c++) {
                const struct by_latency *latency = by_latency_of(daemon->jobs[i], c);

                if (latency == NULL || latency->operations == 0)
                    continue;
                if (which == 0)
                    latency_lines(stream, daemon->jobs[i]->spec.job, c, latency);
                else
                    fprintf(stream,
                            "banyan_job_operation_bytes_total{job=\"%u\",collective=\"%s\"} %" PRIu64 "\n",
                            daemon->jobs[i]->spec.job, by_collective_name(c), latency->bytes);
            }
    }
}

static void plain(FILE *stream, const char *name, const char *type, const char *text, double value)
{
    head(stream, name, type, text);
    fprintf(stream, "banyan_%s %.17g\n", name, value);
}

static void own_metrics(FILE *stream, bool leads)
{
    head(stream, "build_info", "gauge", "1; the version of banyand is a label");
    fprintf(stream, "banyan_build_info{version=\"%s\"} 1\n", BY_VERSION);
    plain(stream, "leads", "gauge", "1 while this banyand controls the fabric, 0 while it follows or starts",
          leads);
}

void by_metrics_follower(const char *leader, bool store_answers, FILE *stream)
{
    own_metrics(stream, false);
    plain(stream, "store_up", "gauge", "1 if the shared store answered this follower's last look",
          store_answers);
    if (leader[0] == 0)
        return;
    head(stream, "follows", "gauge", "1; the leader that was seen last is a label");
    fprintf(stream, "banyan_follows{");
    label(stream, "leader", leader);
    fprintf(stream, "} 1\n");
}

void by_metrics_write(struct by_daemon *daemon, FILE *stream)
{
    uint32_t links = 0;

    own_metrics(stream, daemon->start == NULL);
    for (uint32_t i = 0; i < daemon->topology->link_count; i++)
        links += daemon->links[i].down;
    switch_metrics(daemon, stream);
    port_metrics_of(daemon, stream);
    capacity_metrics(daemon, stream);
    share_metrics_of(daemon, stream);
    job_metrics(daemon, stream);
    plan_metrics(daemon, stream);
    operation_metrics(daemon, stream);
    plain(stream, "links_down", "gauge", "Links without a carrier", links);
    plain(stream, "link_downs_total", "counter", "Links that went down", (double)daemon->counts.link_downs);
    plain(stream, "swallows_total", "counter", "Links and switches found to drop packets silently",
          (double)daemon->counts.swallows);
    plain(stream, "switch_downs_total", "counter", "Switches that stopped answering",
          (double)daemon->counts.switch_downs);
    plain(stream, "switch_reboots_total", "counter", "Switches that answered after a restart",
          (double)daemon->counts.switch_reboots);
    plain(stream, "standby_moves_total", "counter",
          "Times that the ranks of a job moved to a standby by themselves", (double)daemon->counts.moves);
    plain(stream, "pushes_total", "counter", "Two-phase pushes", (double)daemon->counts.pushes);
    plain(stream, "push_errors_total", "counter", "Pushes that failed", (double)daemon->counts.push_errors);
    plain(stream, "push_seconds_total", "counter", "Total time of pushes", daemon->counts.push_seconds);
    plain(stream, "plan_seconds_total", "counter", "Total time of planning, verifying and lowering",
          daemon->counts.plan_seconds);
}
