/* One rank's part in an attempt to continue calls in another generation; see survive.h. Thread: the
 * communicator's. */
#include "host-driver/survive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-driver/address.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/line.h"
#include "offload/endpoint/resume.h"

int by_survive_check(const uint8_t *image, size_t bytes, const char *where)
{
    struct by_image_limits limits = {0};
    struct by_image_fault fault = {0};
    struct by_image_header header;
    int error = by_image_check(image, bytes, &limits, &fault);

    if (error == 0)
        error = by_image_addresses_check(image, &fault);
    if (error != 0)
        return by_fail(error, "the table from the controller at %s: %s %u: %s (%llu)", where,
                       fault.section != NULL ? fault.section : "image", fault.index,
                       fault.what != NULL ? fault.what : by_error_text(error),
                       (unsigned long long)fault.value);
    by_image_header(image, &header);
    if (header.kind != BY_NODE_HOST)
        return by_fail(BY_EINVAL, "the table from the controller at %s is of switch %s, not of a host", where,
                       header.name);
    return by_image_ports_check(image);
}

void by_survive_own(struct by_survive *survive, uint8_t *image)
{
    free(survive->image);
    survive->image = image;
}

void by_survive_free(struct by_survive *survive)
{
    free(survive->image);
    free(survive->resume_memory);
    free(survive->coming);
    free(survive->message);
    memset(survive, 0, sizeof(*survive));
}

/* ---- start of an attempt ---- */

/* 1 if the address `ip` of table `a` is the address `other` of table `b`. */
static int is_address(const uint8_t *a, uint32_t ip, const uint8_t *b, uint32_t other)
{
    char texts[2][BY_IP_TEXT];

    if (ip == 0 || other == 0)
        return ip == other;
    by_image_ip_text(a, ip, texts[0]);
    by_image_ip_text(b, other, texts[1]);
    return strcmp(texts[0], texts[1]) == 0;
}

/* 1 if two tables have the same cables, so that the transports can stay. The numbers of IPv6
 * addresses must be the same too, because the transports keep them. */
static int same_ports(const uint8_t *a, const uint8_t *b)
{
    struct by_image_header one, other;

    by_image_header(a, &one);
    by_image_header(b, &other);
    if (one.count[BY_SECTION_PORT] != other.count[BY_SECTION_PORT])
        return 0;
    for (uint32_t i = 0; i < one.count[BY_SECTION_PORT]; i++) {
        struct by_image_port left, right;

        by_image_port(a, i, &left);
        by_image_port(b, i, &right);
        if (left.own_ip != right.own_ip || left.peer_ip != right.peer_ip ||
            !is_address(a, left.own_ip, b, right.own_ip) || !is_address(a, left.peer_ip, b, right.peer_ip) ||
            memcmp(left.own_mac, right.own_mac, sizeof(left.own_mac)) != 0 ||
            memcmp(left.peer_mac, right.peer_mac, sizeof(left.peer_mac)) != 0 || left.mtu != right.mtu ||
            left.vlan != right.vlan)
            return 0;
    }
    return 1;
}

int by_survive_check_coming(const struct banyan_comm *comm, uint16_t gen, const uint8_t *image, size_t bytes)
{
    struct by_image_header header;
    struct by_image_job job;
    int error = by_survive_check(image, bytes, "BANYAN_CONTROLLER");

    if (error == 0)
        error = by_image_job_find(image, comm->job.job, &job);
    if (error != 0)
        return error;
    by_image_header(image, &header);
    if (header.node != comm->header.node || job.gen != gen || job.rank != comm->job.rank ||
        job.rank_count != comm->job.rank_count || job.udp_port != comm->job.udp_port ||
        header.payload_max > comm->payload_max || !same_ports(image, comm->image))
        return by_fail(BY_EMISMATCH,
                       "the controller's table for %s in generation %u of job %u has another node, rank, "
                       "port or cable than the active table; end the program, and start it again",
                       comm->header.name, gen, comm->job.job);
    return 0;
}

/* Keeps a copy of the attempt's table. */
static int take_coming(struct by_survive *survive, const uint8_t *image, size_t bytes, size_t message_max)
{
    uint8_t *coming = malloc(bytes);
    uint8_t *message = survive->message_room < message_max ? malloc(message_max) : survive->message;

    if (coming == NULL || message == NULL) {
        free(coming);
        if (message != survive->message)
            free(message);
        return by_fail(BY_ENOMEM, "no memory for a table of %zu bytes", bytes);
    }
    if (message != survive->message) {
        free(survive->message);
        survive->message = message;
        survive->message_room = message_max;
    }
    memcpy(coming, image, bytes);
    free(survive->coming);
    survive->coming = coming;
    survive->coming_bytes = bytes;
    return 0;
}

/* Pauses the calls for the attempt `gen`, whose table has been checked. */
static int begin(struct banyan_comm *comm, struct by_survive *survive, uint16_t gen, const uint8_t *image,
                 size_t bytes, uint64_t now_ns)
{
    struct by_endpoint *endpoint = comm->progress.endpoint;
    int error = take_coming(survive, image, bytes, by_resume_message_max(endpoint));
    void *memory;

    if (error != 0)
        return error;
    memory = aligned_alloc(64, (by_resume_size(endpoint) + 63) & ~(size_t)63);
    if (memory == NULL)
        return by_fail(BY_ENOMEM, "no memory to resume the job: %zu bytes", by_resume_size(endpoint));
    free(survive->resume_memory);
    survive->resume_memory = memory;
    survive->resume = NULL;
    error = by_resume_begin(&survive->resume, memory, endpoint, gen);
    if (error != 0)
        return by_fail(error, "job %u cannot continue in generation %u: %s", comm->job.job, gen,
                       by_error_text(error));
    if (!survive->frozen) {
        survive->frozen_ns = now_ns;
        survive->results = by_endpoint_counters(endpoint)->result;
    }
    survive->attempt = gen;
    survive->frozen = true;
    survive->alone = survive->go = survive->quiet = survive->prepared = false;
    survive->level_ns = 0;
    return 0;
}

int by_survive_freeze(struct banyan_comm *comm, struct by_survive *survive,
                      const struct by_member_frame *frame, uint64_t now_ns)
{
    int error = by_survive_check_coming(comm, frame->gen, frame->data, frame->bytes);

    return error != 0 ? error : begin(comm, survive, frame->gen, frame->data, frame->bytes, now_ns);
}

int by_survive_stand(struct banyan_comm *comm, struct by_survive *survive, uint16_t gen, const uint8_t *image,
                     size_t bytes, uint64_t now_ns)
{
    int error = begin(comm, survive, gen, image, bytes, now_ns);

    survive->alone = error == 0;
    by_survive_allow(survive, gen, now_ns); /* the switches have its tables */
    return error;
}

/* ---- messages ---- */

int by_survive_hear(struct banyan_comm *comm, struct by_survive *survive, const struct by_member_frame *frame)
{
    int error = survive->alone ? 0 : by_resume_take(survive->resume, frame->data, frame->bytes);

    if (error != BY_ESTATE)
        return 0;
    return by_fail(error,
                   "job %u cannot continue in generation %u: the states of rank %u and of this rank are too "
                   "far apart; start the job again",
                   comm->job.job, survive->attempt, frame->peer);
}

size_t by_survive_say(struct by_survive *survive, const uint8_t **message, uint16_t *to)
{
    *message = survive->message;
    return survive->resume != NULL && !survive->alone ? by_resume_say(survive->resume, survive->message, to)
                                                      : 0;
}

void by_survive_repeat(struct by_survive *survive)
{
    if (survive->resume != NULL && !survive->alone)
        by_resume_repeat(survive->resume);
}

/* ---- continuing ---- */

void by_survive_allow(struct by_survive *survive, uint16_t gen, uint64_t now_ns)
{
    if (!survive->frozen || survive->go || gen != survive->attempt)
        return;
    survive->go = true;
    survive->go_ns = now_ns;
}

bool by_survive_may_carry(struct by_survive *survive, uint64_t now_ns)
{
    if (!survive->frozen || survive->alone || !by_resume_is_level(survive->resume))
        return false;
    if (survive->level_ns == 0)
        survive->level_ns = now_ns;
    return survive->go;
}

void by_survive_prepare(struct banyan_comm *comm, struct by_survive *survive)
{
    if (!survive->frozen || survive->go || survive->prepared || survive->level_ns == 0)
        return;
    survive->prepared = true;
    by_comm_prepare(comm, survive->resume, survive->coming, survive->coming_bytes);
}

int by_survive_carry(struct banyan_comm *comm, struct by_survive *survive)
{
    int error = by_comm_carry(comm, survive->resume, survive->coming, survive->coming_bytes);

    if (error != 0)
        return error;
    if (comm->transport->ops->readdress != NULL)
        comm->transport->ops->readdress(comm->transport, survive->coming);
    by_survive_own(survive, survive->coming);
    survive->coming = NULL;
    survive->frozen = false;
    survive->quiet = true;
    survive->carried_ns = by_comm_now(comm);
    if (survive->alone)
        survive->level_ns = survive->carried_ns;
    return 0;
}

/* Returns the seconds from the pause to `at_ns`, for printing. */
static double seconds_since(const struct by_survive *survive, uint64_t at_ns)
{
    return (double)(at_ns - survive->frozen_ns) / 1e9;
}

/* Prints the log line: how long no chunk of this rank completed. */
static void tell(const struct banyan_comm *comm, const struct by_survive *survive, uint64_t now_ns)
{
    int level = atoi(comm->context->settings.value[BY_SETTING_LOG]);
    struct timespec now;

    if (level < 1 || (level < 2 && comm->job.rank != 0))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr,
            "banyan: job %u rank %u of %u (%s): continues in %sgeneration %u; made no progress for %.3f s "
            "(level after %.3f s, tables after %.3f s, new trees after %.3f s), first chunk at %lld.%03ld\n",
            comm->job.job, comm->job.rank, comm->job.rank_count, comm->header.name,
            survive->alone ? "standby " : "", comm->job.gen, seconds_since(survive, now_ns),
            seconds_since(survive, survive->level_ns), seconds_since(survive, survive->go_ns),
            seconds_since(survive, survive->carried_ns), (long long)now.tv_sec, now.tv_nsec / 1000000);
}

/* The part of by_survive_watch for a move to a standby. The other ranks may compute, so it waits as
 * for ranks that have not called. */
static int watch_move(const struct banyan_comm *comm, const struct by_survive *survive,
                      const struct by_host_line *line, uint64_t now_ns)
{
    if (now_ns - survive->frozen_ns < comm->context->absent_ns)
        return 0;
    return by_fail(
        BY_ETIMEDOUT,
        "job %u has waited for %g s to continue in standby generation %u: not all ranks have "
        "moved to it, or a part of the network that it uses has failed too, and the controller at "
        "%s %s%s; do all processes still run and call banyan?",
        comm->job.job, (double)comm->context->absent_ns / 1e9, survive->attempt, line->where,
        line->up ? "has not supplied other tables" : "is not connected: ", line->up ? "" : line->why);
}

int by_survive_watch(struct banyan_comm *comm, struct by_survive *survive, const struct by_host_line *line,
                     uint64_t now_ns)
{
    uint32_t rank;

    if (survive->quiet && by_endpoint_counters(comm->progress.endpoint)->result != survive->results) {
        survive->quiet = false;
        tell(comm, survive, now_ns);
    }
    if (!survive->frozen || now_ns - survive->frozen_ns < comm->context->stall_ns)
        return 0;
    if (survive->alone)
        return watch_move(comm, survive, line, now_ns);
    rank = by_resume_awaited(survive->resume);
    if (line->up && rank != BY_RANK_NONE && now_ns - survive->frozen_ns < comm->context->absent_ns)
        return 0;
    if (!line->up)
        return by_fail(
            BY_ETIMEDOUT,
            "job %u has waited for %g s to continue in generation %u, but the controller at %s is not "
            "connected: %s; restart banyand",
            comm->job.job, (double)comm->context->stall_ns / 1e9, survive->attempt, line->where, line->why);
    if (rank != BY_RANK_NONE)
        return by_fail(BY_ETIMEDOUT,
                       "job %u has waited for %g s to continue in generation %u: rank %u has not reported "
                       "its state; does its process still run and call banyan?",
                       comm->job.job, (double)comm->context->stall_ns / 1e9, survive->attempt, rank);
    return by_fail(BY_ETIMEDOUT,
                   "job %u has waited for %g s to continue in generation %u: the controller at %s has not "
                   "confirmed that all switches have their tables; see banyand's log",
                   comm->job.job, (double)comm->context->stall_ns / 1e9, survive->attempt, line->where);
}
