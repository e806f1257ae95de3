/* Communicators: one rank of one job, its transport and its progress. See comm.h for threads. */
#include "host-driver/comm.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"

#define SLEEP_MAX_NS BY_MESH_SLEEP_NS /* maximum time of one sleep, regardless of timers */
/* A yield that takes longer (ns) has given a whole time slice to a computing process. For SHY_NS
 * (ns) afterwards this thread sleeps without yielding, since a sleeper is woken soon. */
#define YIELD_MOST_NS 1000000u
#define SHY_NS        30000000u
#define COPY_POLL_NS  20000u /* interval at which a sleep polls for the end of a GPU copy */

int by_comm_is(const struct banyan_comm *comm, const char *function)
{
    if (comm != NULL && comm->magic == BY_COMM_MAGIC)
        return 1;
    by_fail(BY_EINVAL, "%s: %s", function, comm == NULL ? "comm is NULL" : "comm is not a communicator");
    return 0;
}

/* ---- counters ---- */

static void add_counter(struct banyan_comm *comm, const char *group, const char *part, const char *name,
                        const uint64_t *value)
{
    struct by_counter *counter = &comm->counters[comm->counter_count++];

    snprintf(counter->name, sizeof(counter->name), "%s/%s%s%s", group, part, part[0] != 0 ? "/" : "", name);
    counter->value = value;
}

/* Names and addresses of all counters. The list must not change when calls continue with other
 * parts. A host may get an engine then, so with a controller the counters of an engine are always
 * listed. */
static void fill_counters(struct banyan_comm *comm)
{
    static const struct by_engine_counters none;
    const struct by_engine_counters *engine =
        comm->progress.engine != NULL ? by_engine_counters(comm->progress.engine) : &none;
    uint32_t port_count = comm->transport != NULL ? comm->transport->port_count : 0;

    comm->counter_count = 0;
    if (comm->hosts.fallback != NULL) {
#define X(field, help)                                                                                       \
    add_counter(comm, "hosts", "", #field, &by_fallback_counters(comm->hosts.fallback)->field);
        BY_FALLBACK_COUNTER_LIST(X)
#undef X
#define X(field, help)                                                                                       \
    add_counter(comm, "schedule", "", #field, &by_fallback_schedule_counters(comm->hosts.fallback)->field);
        BY_SCHEDULE_COUNTER_LIST(X)
#undef X
    }
    if (comm->progress.endpoint == NULL)
        return;
    for (uint32_t i = 0; i < port_count; i++) {
        struct by_image_port port;

        by_image_port(comm->image, i, &port);
#define X(field, help) add_counter(comm, "port", port.name, #field, &comm->transport->ports[i].field);
        BY_PORT_COUNTER_LIST(X)
#undef X
    }
#define X(field, help)                                                                                       \
    add_counter(comm, "endpoint", "", #field, &by_endpoint_counters(comm->progress.endpoint)->field);
    BY_ENDPOINT_COUNTER_LIST(X)
#undef X
    if (comm->progress.engine != NULL || comm->member != NULL) {
#define X(field, help) add_counter(comm, "engine", "", #field, &engine->field);
        BY_ENGINE_COUNTER_LIST(X)
#undef X
    }
    add_counter(comm, "fault", "", "dropped", &comm->progress.faults.dropped);
    add_counter(comm, "fault", "", "doubled", &comm->progress.faults.doubled);
    add_counter(comm, "fault", "", "delayed", &comm->progress.faults.delayed);
}

int by_comm_list_counters(struct banyan_comm *comm)
{
#define X(name, help) +1
    uint32_t per_port = 0 BY_PORT_COUNTER_LIST(X);
    uint32_t others = 3 BY_ENDPOINT_COUNTER_LIST(X) BY_ENGINE_COUNTER_LIST(X) BY_FALLBACK_COUNTER_LIST(X)
        BY_SCHEDULE_COUNTER_LIST(X);
#undef X
    uint32_t port_count = comm->transport != NULL ? comm->transport->port_count : 0;

    comm->counters = calloc(per_port * port_count + others, sizeof(*comm->counters));
    if (comm->counters == NULL)
        return by_fail(BY_ENOMEM, "no memory for the counters of job %u", comm->job.job);
    fill_counters(comm);
    return 0;
}

banyan_status_t banyan_comm_counter(const struct banyan_comm *comm, uint32_t index, const char **name,
                                    uint64_t *value)
{
    if (!by_comm_is(comm, "banyan_comm_counter"))
        return BANYAN_EINVAL;
    if (index >= comm->counter_count)
        return BANYAN_ENOENT;
    if (name != NULL)
        *name = comm->counters[index].name;
    if (value != NULL)
        *value = *comm->counters[index].value;
    return BANYAN_OK;
}

/* ---- tables ---- */

void by_comm_image(struct banyan_comm *comm, const uint8_t *image, size_t bytes)
{
    comm->image = image;
    comm->image_bytes = bytes;
    if (image != NULL)
        by_image_header(image, &comm->header);
    else
        comm->header = comm->context->header;
}

/* Whether the table states of all trees of a job that their queues mark packets. */
static bool queues_mark(const uint8_t *image, uint16_t job)
{
    struct by_image_header header;
    bool marks = true;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_LEAF]; i++) {
        struct by_image_leaf leaf;

        by_image_leaf(image, i, &leaf);
        marks &= leaf.job != job || (leaf.modes & BY_LEAF_MARKS) != 0;
    }
    return marks;
}

/* The configuration of a rank's parts, without injected faults. */
int by_comm_progress_config(const struct banyan_comm *comm, const uint8_t *image, size_t bytes,
                            struct by_progress_config *config)
{
    const char *congestion = comm->context->settings.value[BY_SETTING_CONGESTION];
    bool stated = strcmp(congestion, "auto") == 0, marked = strcmp(congestion, "marks") == 0;
    uint64_t inflight;
    int error = by_settings_number(&comm->context->settings, BY_SETTING_INFLIGHT, UINT32_MAX, &inflight);

    if (error != 0)
        return error;
    if (!stated && !marked && strcmp(congestion, "losses") != 0)
        return by_fail(BY_EINVAL, "BANYAN_CONGESTION is '%s'; use auto, losses or marks", congestion);
    *config = (struct by_progress_config){
        .image = image,
        .image_bytes = bytes,
        .job = comm->job.job,
        .stall_ns = comm->context->stall_ns + (comm->local != NULL ? BY_LOCAL_GRACE_NS / 2 : 0),
        .absent_ns = comm->context->absent_ns,
        .inflight_max = inflight > 0 ? (uint32_t)inflight : comm->transport->inflight_max,
        .batch = comm->transport->batch,
        .resume = comm->member != NULL,
        .shared = comm->transport->shared,
        .marked = marked || (stated && queues_mark(image, comm->job.job)),
    };
    return 0;
}

void by_comm_prepare(struct banyan_comm *comm, const struct by_resume *resume, const uint8_t *image,
                     size_t bytes)
{
    struct by_progress_config config;

    if (by_comm_progress_config(comm, image, bytes, &config) == 0)
        by_progress_prepare(&comm->progress, &config, resume);
}

int by_comm_carry(struct banyan_comm *comm, struct by_resume *resume, const uint8_t *image, size_t bytes)
{
    struct by_progress_config config;
    int error = by_comm_progress_config(comm, image, bytes, &config);

    if (error == 0)
        error = by_progress_carry(&comm->progress, &config, resume);
    if (error != 0)
        return error;
    by_comm_image(comm, image, bytes);
    (void)by_image_job_find(image, comm->job.job, &comm->job);
    fill_counters(comm);
    return 0;
}

void by_comm_alone(struct banyan_comm *comm, uint32_t rank, uint32_t rank_count, uint32_t job)
{
    comm->job.job = (uint16_t)(job > 0 ? job : 1);
    comm->job.rank = (uint16_t)rank;
    comm->job.rank_count = (uint16_t)rank_count;
    comm->rank = rank;
    comm->rank_count = rank_count;
}

uint32_t banyan_comm_rank(const struct banyan_comm *comm)
{
    return by_comm_is(comm, "banyan_comm_rank") ? comm->rank : 0;
}

uint32_t banyan_comm_size(const struct banyan_comm *comm)
{
    return by_comm_is(comm, "banyan_comm_size") ? comm->rank_count : 0;
}

int banyan_comm_serves(const struct banyan_comm *comm, banyan_collective_t collective, uint32_t root)
{
    if (!by_comm_is(comm, "banyan_comm_serves") || comm->progress.endpoint == NULL)
        return 0;
    if (comm->local != NULL && by_collective_is_rooted((unsigned)collective)) {
        if (root >= comm->rank_count)
            return 0;
        root = by_local_seats(comm->local)->host_of[root];
    }
    return by_endpoint_serves(comm->progress.endpoint, (unsigned)collective, root);
}

const char *banyan_comm_transport(const struct banyan_comm *comm)
{
    if (!by_comm_is(comm, "banyan_comm_transport"))
        return NULL;
    if (comm->transport == NULL)
        return comm->local != NULL ? "ranks" : by_hosts_share(comm) ? "host" : "tcp";
    return comm->transport->ops->name;
}

banyan_mode_t banyan_comm_mode(const struct banyan_comm *comm)
{
    return by_comm_is(comm, "banyan_comm_mode") ? (banyan_mode_t)comm->context->mode : BANYAN_FAST;
}

banyan_status_t banyan_comm_async_error(const struct banyan_comm *comm)
{
    if (!by_comm_is(comm, "banyan_comm_async_error"))
        return BANYAN_EINVAL;
    return (banyan_status_t)atomic_load(&comm->error);
}

banyan_status_t banyan_abort(struct banyan_comm *comm)
{
    const uint64_t one = 1;
    int kept = errno;

    if (!by_comm_is(comm, "banyan_abort"))
        return BANYAN_EINVAL;
    atomic_store(&comm->abort_wanted, 1);
    /* the counter is full, so it is already readable; a signal handler must preserve errno */
    if (write(comm->wake_fd, &one, sizeof(one)) < 0)
        errno = kept;
    return BANYAN_OK;
}

void by_comm_fail(struct banyan_comm *comm, int error)
{
    int none = 0;

    atomic_compare_exchange_strong(&comm->error, &none, error);
}

void by_comm_end(struct banyan_comm *comm, int error, const char *text)
{
    if (comm->verdict.error != 0 || atomic_load(&comm->error) != 0)
        return;
    comm->verdict.error = error;
    snprintf(comm->verdict.text, sizeof(comm->verdict.text), "%s", text);
    by_staging_abort(comm, error);
    if (comm->local != NULL)
        by_local_abort(comm->local, error, text);
    if (comm->progress.endpoint != NULL)
        by_endpoint_abort(comm->progress.endpoint);
    if (comm->hosts.fallback != NULL)
        by_fallback_abort(comm->hosts.fallback);
    by_comm_fail(comm, error);
}

/* ---- progress ---- */

static void sleep_until(struct banyan_comm *comm, uint64_t now_ns, uint64_t deadline_ns)
{
    uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct pollfd fds[BY_TRANSPORT_FDS_MAX + BY_MATES_FDS + BY_FALLBACK_FDS + BY_MEMBER_FDS + 1];
    struct timespec wait;
    uint32_t count = 0, member;

    if (wait_ns > SLEEP_MAX_NS)
        wait_ns = SLEEP_MAX_NS;
    wait.tv_sec = (time_t)(wait_ns / 1000000000u);
    wait.tv_nsec = (long)(wait_ns % 1000000000u);
    if (comm->transport != NULL)
        count = comm->transport->ops->fds(comm->transport, fds);
    if (comm->local != NULL)
        count += by_local_fds(comm->local, fds + count);
    if (comm->hosts.fallback != NULL)
        count += by_fallback_fds(comm->hosts.fallback, fds + count);
    member = count;
    count += by_member_fds(comm, fds + count);
    /* After an abort the descriptor is readable, so the sleep ends at once and the next step ends
     * the operations. */
    fds[count++] = (struct pollfd){.fd = comm->wake_fd, .events = POLLIN};
    if (ppoll(fds, count, &wait, NULL) > 0 && count > member + 1 && fds[member].revents != 0)
        by_member_woken(comm);
}

/* Steps the trees and the hosts, whichever this communicator has. What moves ends the empty
 * polls. */
static uint64_t step_all(struct banyan_comm *comm, uint64_t now_ns)
{
    uint64_t moved = by_member_step(comm, now_ns);

    if (comm->transport != NULL)
        moved += by_progress_step(&comm->progress, now_ns);
    if (comm->local != NULL)
        moved += by_local_step(comm->local, now_ns);
    if (comm->hosts.fallback != NULL)
        moved += by_fallback_step(comm->hosts.fallback, now_ns);
    if (moved > 0)
        comm->empty_polls = 0;
    return moved;
}

static uint64_t deadline_of(const struct banyan_comm *comm)
{
    uint64_t trees = comm->transport != NULL ? by_progress_deadline(&comm->progress) : UINT64_MAX;
    uint64_t hosts = comm->hosts.fallback != NULL ? by_fallback_deadline(comm->hosts.fallback) : UINT64_MAX;

    uint64_t local = comm->local != NULL ? by_local_deadline(comm->local) : UINT64_MAX;
    uint64_t member = by_member_deadline(comm);

    member = local < member ? local : member;
    hosts = trees < hosts ? trees : hosts;
    return member < hosts ? member : hosts;
}

/* Polls. If it may block: yields for a while if the transport asks for it, polls some more, and
 * then sleeps until a packet or a timer. A wait of several calls (slices of a wait in MPI) does so
 * once. With more processes than cores, the time that one process saves is computing time for
 * another. Yields stop as soon as one gives a whole time slice to a
 * computing process: the scheduler wakes a sleeper soon after the next packet, because it has
 * unused time. */
static void progress_wire(struct banyan_comm *comm, uint64_t until_ns)
{
    for (;;) {
        uint64_t now_ns = by_clock_ns();

        if (step_all(comm, now_ns) > 0 || until_ns <= now_ns)
            return;
        if (comm->empty_polls < comm->yield_max && now_ns >= comm->shy_until_ns) {
            sched_yield();
            if (by_clock_ns() - now_ns > YIELD_MOST_NS)
                comm->shy_until_ns = by_clock_ns() + SHY_NS;
        } else if (comm->empty_polls >= comm->spin_max) {
            uint64_t deadline_ns = deadline_of(comm);

            sleep_until(comm, now_ns, deadline_ns < until_ns ? deadline_ns : until_ns);
            step_all(comm, by_clock_ns());
            return;
        }
        comm->empty_polls++;
    }
}

uint64_t by_comm_now(const struct banyan_comm *comm)
{
    return comm->context->fabric != NULL ? by_fabric_now(comm->context->fabric) : by_clock_ns();
}

void by_comm_progress(struct banyan_comm *comm, uint64_t until_ns)
{
    if (atomic_load_explicit(&comm->abort_wanted, memory_order_relaxed) && atomic_load(&comm->error) == 0) {
        by_staging_abort(comm, BY_EABORTED);
        if (comm->local != NULL)
            by_local_abort(comm->local, BY_EABORTED, "banyan_abort was called at another rank of this host");
        if (comm->progress.endpoint != NULL)
            by_endpoint_abort(comm->progress.endpoint);
        if (comm->hosts.fallback != NULL)
            by_fallback_abort(comm->hosts.fallback);
        by_comm_fail(comm, BY_EABORTED);
        return;
    }
    if (until_ns > 0 && by_staging_busy(comm)) {
        uint64_t soon_ns = by_comm_now(comm) + COPY_POLL_NS;

        until_ns = until_ns < soon_ns ? until_ns : soon_ns;
    }
    if (comm->context->fabric != NULL) {
        by_member_step(comm, by_clock_ns());
        by_fabric_step(comm->context->fabric, until_ns);
    } else {
        progress_wire(comm, until_ns);
    }
    by_staging_step(comm);
}
