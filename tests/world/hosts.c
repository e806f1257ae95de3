/* Hosts of the world: libbanyan's connection to the controller (member.c, line.c, survive.c), its
 * communicator and progress, and the real endpoint. The transport is the world's cables. A host's
 * process opens the job, runs operations whose sums are known, and leaves. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host-driver/comm.h"
#include "host-driver/image_file.h"
#include "host-driver/transport.h"
#include "offload/base/errors.h"
#include "tests/world/world.h"

#define ELEMENTS_MAX 600u

/* The memory of a process. */
struct world_run {
    struct banyan_context context;
    struct banyan_comm comm;
    struct by_transport transport;
    struct world_host *host;
    struct world_packet *taken; /* until rx_done */
    int32_t send[ELEMENTS_MAX], receive[ELEMENTS_MAX];
};

/* ---- the transport ---- */

void world_host_arrive(struct world_host *host, struct world_packet *packet)
{
    packet->next = NULL;
    if (host->run == NULL || host->ready_fd < 0) {
        free(packet);
        return;
    }
    if (host->first == NULL)
        host->first = packet;
    else
        host->last->next = packet;
    host->last = packet;
    host->packets++;
    vm_ready_changed(host->ready_fd);
}

static void drop_packets(struct world_packet **list)
{
    while (*list != NULL) {
        struct world_packet *next = (*list)->next;

        free(*list);
        *list = next;
    }
}

static uint32_t rx(struct by_transport *transport, struct by_rx packets[BY_RX_BATCH])
{
    struct world_run *run = (struct world_run *)((char *)transport - offsetof(struct world_run, transport));
    struct world_host *host = run->host;
    uint32_t count = 0;

    while (count < BY_RX_BATCH && host->first != NULL) {
        struct world_packet *packet = host->first;

        host->first = packet->next;
        host->packets--;
        packet->next = run->taken;
        run->taken = packet;
        transport->ports[packet->port].rx_packets++;
        packets[count++] = (struct by_rx){.data = packet->data,
                                          .bytes = packet->bytes,
                                          .port = packet->port,
                                          .src_ip = packet->src_ip,
                                          .dst_ip = packet->dst_ip,
                                          .ecn = packet->ecn};
    }
    return count;
}

static void rx_done(struct by_transport *transport)
{
    struct world_run *run = (struct world_run *)((char *)transport - offsetof(struct world_run, transport));

    drop_packets(&run->taken);
}

static void tx(struct by_transport *transport, const struct by_tx *const *packets, uint32_t count,
               const struct by_rx *rx_packets)
{
    struct world_run *run = (struct world_run *)((char *)transport - offsetof(struct world_run, transport));

    if (run->host->process.zombie)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct by_tx *packet = packets[i];

        transport->ports[packet->port].tx_packets++;
        if (packet->kind == BY_TX_RELAY)
            world_relay(run->host->node, packet, &rx_packets[packet->rx_index]);
        else
            world_send(run->host->node, packet);
    }
}

static uint32_t fds(struct by_transport *transport, struct pollfd *entries)
{
    const struct world_run *run =
        (const struct world_run *)((const char *)transport - offsetof(struct world_run, transport));

    entries[0] = (struct pollfd){.fd = run->host->ready_fd, .events = POLLIN};
    return 1;
}

static const struct by_transport_ops ops = {
    .name = "world", .rx = rx, .rx_done = rx_done, .tx = tx, .fds = fds, .close = NULL, .readdress = NULL};

/* ---- operations ---- */

/* A value that shows rank, element, operation and run. */
static int32_t value_of(uint32_t rank, uint32_t element, uint32_t op, uint32_t turn)
{
    return (int32_t)((rank + 1) * 1000003u + element * 7919u + op * 104729u + turn * 611953u);
}

static int fail(struct world_host *host, int error, const char *text)
{
    host->error = error;
    snprintf(host->text, sizeof(host->text), "%s", text);
    return error;
}

static bool is_sum(const struct world_run *run, uint32_t count, uint32_t op)
{
    const struct world_host *host = run->host;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t sum = 0;

        for (uint32_t rank = 0; rank < host->rank_count; rank++)
            sum += (uint32_t)value_of(rank, i, op, host->turn);
        if (run->receive[i] != (int32_t)sum)
            return false;
    }
    return true;
}

/* An operation takes at most the stall time after its last progress. Recovery, which pauses it, may
 * begin again; more than this is a hang. */
static void look_at_time(struct world_host *host)
{
    if (host->op_ns > 0 && vm.now_ns - host->op_ns > 4 * world.stall_ns)
        vm_violate("%s: an operation of job %u has neither ended nor failed after %.1f s", host->name,
                   host->job, (double)(vm.now_ns - host->op_ns) / 1e9);
}

static int operate(struct world_run *run, uint32_t op)
{
    struct world_host *host = run->host;
    struct banyan_comm *comm = &run->comm;
    uint32_t count = 1 + (host->turn * 31 + op * 17) % ELEMENTS_MAX, id;
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_I32,
                           .mode = BY_MODE_FAST,
                           .count = count,
                           .send = run->send,
                           .recv = run->receive};
    struct by_call_status status = {0};
    const char *field = "";
    int error;

    for (uint32_t i = 0; i < count; i++)
        run->send[i] = value_of(host->rank, i, op, host->turn);
    memset(run->receive, 0, sizeof(run->receive));
    error = by_endpoint_post(comm->progress.endpoint, &call, &id, &field);
    if (error != 0)
        return fail(host, error, field);
    host->op_ns = vm.now_ns;
    world.counts.operations++;
    do {
        uint16_t gen = comm->job.gen;

        by_comm_progress(comm, by_comm_now(comm) + VM_S);
        if (host->process.zombie)
            return fail(host, BY_EABORTED, "killed");
        if (comm->job.gen != gen)
            world_claim(comm->image, host->name);
        look_at_time(host);
        error = vm.failed ? BY_EABORTED : by_endpoint_test(comm->progress.endpoint, id, &status);
    } while (error == BY_EAGAIN);
    host->op_ns = 0;
    if (error != 0)
        return fail(host, error, comm->verdict.error != 0 ? comm->verdict.text : by_error_text(error));
    if (!is_sum(run, count, op))
        vm_violate("%s: operation %u of job %u, generation %u, has a wrong sum", host->name, op, host->job,
                   comm->job.gen);
    return 0;
}

static void pause_for(struct world_run *run, uint64_t until_ns)
{
    while (vm_time() < until_ns && !run->host->process.zombie && !vm.failed)
        by_comm_progress(&run->comm, by_comm_now(&run->comm) + (until_ns - vm_time()));
}

static int open_job(struct world_run *run)
{
    struct banyan_comm *comm = &run->comm;
    struct by_progress_config config;
    int error = by_member_open(comm, run->host->job);

    if (error == 0 && run->host->process.zombie)
        error = BY_EABORTED;
    if (error == 0)
        error = by_image_job_find(comm->image, run->host->job, &comm->job);
    if (error != 0)
        return error;
    if (world.jobs[run->host->job - 1].members_drawn != run->host->members_drawn)
        return by_fail(BY_EABORTED, "another job has its number");
    world_claim(comm->image, run->host->name);
    comm->payload_max = comm->header.payload_max;
    run->transport = (struct by_transport){.ops = &ops, .port_count = comm->header.count[BY_SECTION_PORT]};
    comm->transport = &run->transport;
    error = by_comm_progress_config(comm, comm->image, comm->image_bytes, &config);
    if (error == 0)
        error = by_progress_open(&comm->progress, &config, comm->transport);
    if (error == 0)
        error = by_comm_list_counters(comm);
    if (error == 0)
        by_member_ready(comm);
    return error;
}

static void run_host(void *context)
{
    struct world_host *host = context;
    struct world_run *run = calloc(1, sizeof(*run));
    struct banyan_comm *comm;
    int error;

    if (run == NULL)
        abort();
    comm = &run->comm;
    run->host = host;
    host->run = run;
    host->ready_fd = vm_ready_open(&host->packets);
    snprintf(run->context.settings.value[BY_SETTING_CONTROLLER], BY_SETTING_BYTES_MAX, "unix:/w/members");
    snprintf(run->context.settings.value[BY_SETTING_INFLIGHT], BY_SETTING_BYTES_MAX, "0");
    snprintf(run->context.settings.value[BY_SETTING_CONGESTION], BY_SETTING_BYTES_MAX, "auto");
    snprintf(run->context.settings.value[BY_SETTING_LOG], BY_SETTING_BYTES_MAX, "0");
    run->context.stall_ns = world.stall_ns;
    snprintf(run->context.header.name, sizeof(run->context.header.name), "%s", host->name);
    comm->context = &run->context;
    comm->header = run->context.header;
    comm->wake_fd = eventfd(0, 0);
    error = open_job(run);
    if (error != 0 && !host->process.zombie)
        fail(host, error, by_fail_text());
    vm_trace("%s: job %u %s", host->name, host->job, error == 0 ? "opened" : host->text);
    for (uint32_t op = 0; op < host->ops && error == 0 && !vm.failed; op++) {
        error = operate(run, op);
        if (error == 0) {
            host->done++;
            pause_for(run, vm_time() + vm_draw(300 * VM_MS));
        }
    }
    if (error == 0 && comm->verdict.error != 0)
        error = fail(host, comm->verdict.error, comm->verdict.text);
    /* A sum that others still need passes through this host, if it is a node of a tree. */
    if (error == 0)
        pause_for(run, vm_time() + 500 * VM_MS);
    if (!host->process.zombie)
        vm_trace("%s: ran %u of %u operations%s%s", host->name, host->done, host->ops, error != 0 ? ": " : "",
                 error != 0 ? host->text : "");
    by_member_close(comm);
    by_progress_close(&comm->progress);
    free(comm->counters);
    close(comm->wake_fd);
    vm_ready_close(host->ready_fd);
    host->ready_fd = -1;
    drop_packets(&host->first);
    drop_packets(&run->taken);
    host->packets = 0;
    host->op_ns = 0;
    host->run = NULL;
    free(run);
}

void world_host_start(struct world_host *host, uint16_t job, uint32_t op_count, uint32_t turn)
{
    if (host->run != NULL)
        return;
    host->job = job;
    host->ops = op_count;
    host->turn = turn;
    host->done = 0;
    host->error = 0;
    host->text[0] = 0;
    host->process = (struct vm_process){0};
    vm_trace("%s starts for job %u", host->name, job);
    vm_process_start(&host->process, host->name, run_host, host);
}

void world_host_kill(struct world_host *host)
{
    if (host->run != NULL)
        vm_process_kill(&host->process);
}
