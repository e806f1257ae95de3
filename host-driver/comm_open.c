/* Opens and closes communicators. See comm.h for threads. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/ranks.h"
#include "host-driver/sole.h"

/* Empty polls that yield to the other ranks of the host, which may share this core. */
#define SHARED_YIELDS 50u

static int open_transport(struct banyan_comm *comm)
{
    struct banyan_context *context = comm->context;
    struct by_transport_config config = {
        .image = comm->image,
        .image_bytes = comm->image_bytes,
        .udp_port = comm->job.udp_port,
        .payload_max = comm->header.payload_max,
        .settings = &context->settings,
        .quiet = comm->is_group,
    };

    comm->payload_max = comm->header.payload_max;
    if (context->fabric != NULL)
        return by_fabric_join(context->fabric, context->node, comm->job.udp_port, &comm->progress,
                              &comm->transport);
    return by_transport_open(&config, context->transport, &comm->transport);
}

/* Another program of the job may not run on this host; in a fabric in memory there are no others.
 */
static int take_job(struct banyan_comm *comm)
{
    struct by_image_port port = {.own_ip = 0};

    if (comm->context->fabric != NULL)
        return 0;
    if (comm->header.count[BY_SECTION_PORT] > 0)
        by_image_port(comm->image, 0, &port);
    return by_sole_begin(comm->job.job, port.own_ip, comm->job.udp_port, &comm->sole_fd);
}

static int open_progress(struct banyan_comm *comm)
{
    struct by_progress_config config;
    int error = by_comm_progress_config(comm, comm->image, comm->image_bytes, &config);

    if (error == 0)
        error = by_faults_read(&comm->context->settings, comm->header.node, &config.fault);
    return error != 0 ? error : by_progress_open(&comm->progress, &config, comm->transport);
}

static int open_trees(struct banyan_comm *comm, uint32_t job)
{
    int error = by_image_job_find(comm->image, job, &comm->job);

    comm->rank = comm->job.rank;
    comm->rank_count = comm->job.rank_count;
    if (error == 0)
        error = take_job(comm);
    if (error == 0)
        error = open_transport(comm);
    return error != 0 ? error : open_progress(comm);
}

/* Without a table the job consists of the ranks that connect. */
static int open_alone(struct banyan_comm *comm, uint32_t job)
{
    struct by_bootstrap *bootstrap = &comm->context->bootstrap;
    int error = by_bootstrap_join(bootstrap, by_clock_ns() + comm->context->stall_ns);

    if (error == 0)
        by_comm_alone(comm, bootstrap->meeting.rank, bootstrap->meeting.rank_count, job);
    return error;
}

/* Opens the parts that the first rank of each host has. */
static int open_host(struct banyan_comm *comm, uint32_t job)
{
    int error = by_member_open(comm, job);

    if (error != 0)
        return error;
    return comm->image != NULL ? open_trees(comm, job) : open_alone(comm, job);
}

/* The first rank of a group on several hosts requests a job for these; the others then join it. */
static int open_group(struct banyan_comm *comm, struct by_ranks *ranks, uint32_t *job)
{
    bool near = by_ranks_are_near(ranks), asks = ranks != NULL && by_ranks_is_first(ranks) && !near;
    int error = by_ranks_refusal(ranks);

    if (error == 0 && asks)
        error = open_host(comm, 0);
    error = by_ranks_grant(comm, ranks, error, job);
    if (error == 0 && !near && !asks && by_ranks_lead(ranks))
        error = open_host(comm, *job);
    return error;
}

static int open_all(struct banyan_comm *comm, uint32_t wanted)
{
    const struct by_settings *settings = &comm->context->settings;
    uint64_t job = wanted;
    uint64_t spin, linger_ms;
    struct by_ranks *ranks;
    uint32_t number;
    int error = 0;

    if (job == 0 && comm->group == NULL)
        error = by_settings_number(settings, BY_SETTING_JOB, BY_JOBS_MAX - 1, &job);
    if (error == 0)
        error = by_settings_number(settings, BY_SETTING_SPIN, BY_SETTING_SPIN_MAX, &spin);
    if (error == 0)
        error = by_settings_number(settings, BY_SETTING_LINGER, BY_SETTING_LINGER_MAX, &linger_ms);
    if (error != 0)
        return error;
    comm->spin_max = (uint32_t)spin;
    comm->linger_ns = linger_ms * 1000000u;
    if (comm->group != NULL)
        by_comm_image(comm, NULL, 0);
    else
        by_comm_image(comm, comm->context->image, comm->context->image_bytes);
    number = (uint32_t)job;
    error = by_ranks_meet(comm, number, &ranks);
    if (error != 0)
        return error;
    if (comm->group != NULL)
        error = open_group(comm, ranks, &number);
    else if (by_ranks_lead(ranks))
        error = open_host(comm, number);
    error = by_ranks_connect(comm, ranks, number, error);
    if (error == 0 && comm->hosts.fallback == NULL)
        error = by_hosts_open(comm);
    if (error == 0)
        error = by_staging_open(comm);
    if (error == 0)
        comm->yield_max = comm->local != NULL || by_hosts_share(comm) ? SHARED_YIELDS : 0;
    if (error == 0 && comm->transport != NULL && comm->transport->yields > comm->yield_max)
        comm->yield_max = comm->transport->yields;
    if (error == 0)
        by_member_ready(comm);
    return error != 0 ? error : by_comm_list_counters(comm);
}

static void close_all(struct banyan_comm *comm)
{
    by_requests_free(comm);
    by_registered_free(comm);
    by_hosts_close(comm);
    free(comm->counters);
    by_buffers_free(comm);
    by_progress_close(&comm->progress);
    if (comm->transport != NULL)
        comm->transport->ops->close(comm->transport);
    by_member_close(comm);
    by_local_close(comm->local);
    if (comm->sole_fd >= 0)
        close(comm->sole_fd);
    if (comm->wake_fd >= 0)
        close(comm->wake_fd);
    comm->magic = 0;
    free(comm);
}

int by_comm_create(struct banyan_context *context, uint32_t job, struct by_group *group,
                   struct banyan_comm **out)
{
    struct banyan_comm *comm;
    int error;

    comm = calloc(1, sizeof(*comm));
    if (comm == NULL)
        return by_fail(BY_ENOMEM, "no memory for a communicator: %zu bytes", sizeof(*comm));
    comm->context = context;
    comm->group = group;
    comm->is_group = group != NULL;
    comm->sole_fd = -1;
    atomic_init(&comm->abort_wanted, 0);
    atomic_init(&comm->error, 0);
    comm->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = comm->wake_fd >= 0
                ? open_all(comm, job)
                : by_fail(BY_EIO, "cannot create the event for banyan_abort: %s", strerror(errno));
    if (error != 0) {
        close_all(comm);
        return error;
    }
    comm->magic = BY_COMM_MAGIC;
    comm->group = NULL;
    error = by_hosts_measure(comm);
    if (error != 0) {
        close_all(comm);
        return error;
    }
    atomic_fetch_add(&context->comm_count, 1);
    by_announce(comm);
    *out = comm;
    return 0;
}

banyan_status_t banyan_comm_create(struct banyan_context *context, uint32_t job, struct banyan_comm **out)
{
    if (context == NULL || context->magic != BY_CONTEXT_MAGIC || out == NULL)
        return by_fail(BY_EINVAL, "banyan_comm_create: %s is NULL", out == NULL ? "comm" : "context");
    return (banyan_status_t)by_comm_create(context, job, NULL, out);
}

/* If an inner node leaves while the last results of other nodes are lost, these cannot be
 * retransmitted. So it answers until it receives no more requests. The silence must be longer than
 * the longest interval between two retransmissions, which grows only if packets are lost. */
static void linger(struct banyan_comm *comm)
{
    uint64_t quiet_since = by_clock_ns(), begin_ns = quiet_since;

    if (comm->progress.engine == NULL || comm->context->fabric != NULL || atomic_load(&comm->error) != 0)
        return;
    while (!atomic_load(&comm->abort_wanted)) {
        int clean = by_engine_counters(comm->progress.engine)->duplicate == 0 &&
                    by_endpoint_counters(comm->progress.endpoint)->retx == 0;
        struct pollfd fds[BY_TRANSPORT_FDS_MAX];

        /* After the time limit of an operation, a node that still asks has failed. */
        if (by_clock_ns() - quiet_since >= (clean ? comm->linger_ns / 10 : comm->linger_ns) ||
            by_clock_ns() - begin_ns >= comm->context->stall_ns)
            return;
        by_member_step(comm, by_clock_ns());
        if (by_progress_step(&comm->progress, by_clock_ns()) > 0)
            quiet_since = by_clock_ns();
        else
            poll(fds, comm->transport->ops->fds(comm->transport, fds), 10);
    }
}

banyan_status_t banyan_comm_destroy(struct banyan_comm *comm)
{
    struct banyan_context *context;

    if (!by_comm_is(comm, "banyan_comm_destroy"))
        return BANYAN_EINVAL;
    context = comm->context;
    linger(comm);
    close_all(comm);
    atomic_fetch_sub(&context->comm_count, 1);
    return BANYAN_OK;
}
