/* Requests: a described operation, its posts and its end. Thread: the communicator's. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/member.h"
#include "host-driver/ranks.h"
#include "offload/reduce/exact.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"

#define WAIT_FOREVER_US (UINT64_C(1) << 40) /* 12 days: no sum with a clock overflows */

static int is_request(const struct banyan_request *request, const char *function)
{
    if (request == NULL || request->magic != BY_REQUEST_MAGIC) {
        by_fail(BY_EINVAL, "%s: %s", function,
                request == NULL ? "request is NULL" : "request is not a request");
        return 0;
    }
    if (request->state == BY_REQUEST_FREE) {
        by_fail(BY_EINVAL, "%s: the request was freed already", function);
        return 0;
    }
    return 1;
}

/* ---- create and free ---- */

struct banyan_request *by_request_take(struct banyan_comm *comm)
{
    struct banyan_request *request = comm->spare_first;

    if (request != NULL) {
        comm->spare_first = request->spare;
        if (comm->spare_first == NULL)
            comm->spare_last = NULL;
        return request;
    }
    request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->magic = BY_REQUEST_MAGIC;
    request->comm = comm;
    request->next = comm->requests;
    comm->requests = request;
    return request;
}

/* The communicator keeps one scratch buffer, the largest of those released. */
static void give_scratch(struct banyan_comm *comm, struct by_scratch *scratch)
{
    struct by_scratch less = *scratch;

    if (scratch->bytes > comm->scratch.bytes) {
        less = comm->scratch;
        comm->scratch = *scratch;
    }
    free(less.memory);
    *scratch = (struct by_scratch){0};
}

/* Allocates the call's scratch buffer, if its mode needs one. 0 or BY_ENOMEM. */
static int take_scratch(struct banyan_request *request)
{
    struct banyan_comm *comm = request->comm;
    uint64_t bytes = by_endpoint_scratch(comm->progress.endpoint, &request->call);

    if (request->scratch.bytes < bytes) {
        struct by_scratch own = request->scratch;

        request->scratch = comm->scratch;
        comm->scratch = (struct by_scratch){0};
        give_scratch(comm, &own);
    }
    if (request->scratch.bytes < bytes) {
        give_scratch(comm, &request->scratch);
        request->scratch.memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (request->scratch.memory == NULL)
            return BY_ENOMEM;
        request->scratch.bytes = bytes;
    }
    request->call.scratch = request->scratch.memory;
    return 0;
}

/* Freed requests are reused as late as possible, so that a second free of a handle is detected for
 * as long as possible. */
void by_request_give(struct banyan_request *request)
{
    struct banyan_comm *comm = request->comm;

    give_scratch(comm, &request->scratch);
    free(request->offsets);
    request->offsets = NULL;
    request->state = BY_REQUEST_FREE;
    request->spare = NULL;
    if (comm->spare_last != NULL)
        comm->spare_last->spare = request;
    else
        comm->spare_first = request;
    comm->spare_last = request;
}

static bool is_running(const struct banyan_comm *comm)
{
    for (const struct banyan_request *request = comm->requests; request != NULL; request = request->next)
        if (request->state == BY_REQUEST_RUNNING)
            return true;
    return false;
}

void by_requests_free(struct banyan_comm *comm)
{
    by_staging_abort(comm, BY_EABORTED);
    if (comm->local != NULL && is_running(comm))
        by_local_abort(comm->local, BY_EABORTED, "a rank of this host has left the job during the call");
    if (comm->progress.endpoint != NULL)
        by_endpoint_abort(comm->progress.endpoint);
    if (comm->hosts.fallback != NULL)
        by_fallback_abort(comm->hosts.fallback);
    while (comm->requests != NULL) {
        struct banyan_request *next = comm->requests->next;

        comm->requests->magic = 0;
        free(comm->requests->scratch.memory);
        free(comm->requests->offsets);
        free(comm->requests);
        comm->requests = next;
    }
    free(comm->scratch.memory);
    comm->scratch = (struct by_scratch){0};
    comm->spare_first = comm->spare_last = NULL;
}

banyan_status_t banyan_free(struct banyan_request *request)
{
    if (!is_request(request, "banyan_free"))
        return BANYAN_EINVAL;
    if (request->state == BY_REQUEST_RUNNING)
        return by_fail(BY_EBUSY, "banyan_free: the %s still runs; wait for it first",
                       by_call_name(&request->call));
    by_request_give(request);
    return BANYAN_OK;
}

/* ---- the mode ---- */

static int is_reducing(const struct by_call *call)
{
    return by_collective_reduces(call->collective);
}

/* Sets the reason why this call cannot run in its mode. */
static banyan_status_t mode_failed(const struct banyan_request *request)
{
    const struct by_call *call = &request->call;
    const char *name = by_call_name(call);

    if (by_reduction_dtype(call->mode, call->op, call->dtype) == 0)
        return by_fail(BY_EUNSUPPORTED,
                       "%s: mode %s does not support %s of %s, which depends on the order; use mode det or "
                       "fast (banyan_request_mode, BANYAN_MODE)",
                       name, by_mode_name(call->mode), by_op_name(call->op), by_dtype_name(call->dtype));
    if (by_dtype_bytes(call->dtype) == 2 && request->comm->rank_count > BY_EXACT_HALF_RANKS_MAX)
        return by_fail(BY_EUNSUPPORTED,
                       "%s: mode %s adds %s over at most %u ranks, and the job has %u; use f32, or mode det",
                       name, by_mode_name(call->mode), by_dtype_name(call->dtype), BY_EXACT_HALF_RANKS_MAX,
                       request->comm->rank_count);
    return by_fail(
        BY_EUNSUPPORTED,
        "%s: in mode %s the ranks first agree on scales by an allreduce, for which the table of %s holds "
        "no trees; plan allreduce too, and make tables of all plans",
        name, by_mode_name(call->mode), request->comm->header.name);
}

/* Sets the reason why this call cannot run on its trees. */
static banyan_status_t tree_failed(const struct banyan_request *request)
{
    const struct by_call *call = &request->call;
    const char *name = by_call_name(call), *op = by_op_name(call->op);
    const char *dtype = by_dtype_name(call->dtype), *host = request->comm->header.name;

    if (call->mode == BY_MODE_DET && by_reduction_is_ordered(call->op, call->dtype))
        return by_fail(
            BY_EUNSUPPORTED,
            "%s: nodes of its trees have no slots for %s of %s in mode det, according to the table of %s; "
            "make the tables with banyan tables --det, and push them; with BANYAN_MODE=det, and where "
            "ranks can meet (BANYAN_BOOTSTRAP), it runs between hosts",
            name, op, dtype, host);
    return by_fail(
        BY_EUNSUPPORTED,
        "%s: nodes of its trees cannot compute %s of %s in mode %s, according to the table of %s; use "
        "another operator or type%s",
        name, op, dtype, by_mode_name(call->mode), host,
        by_reduction_dtype(call->mode, call->op, call->dtype) != call->dtype
            ? ", or another mode: this one sends integers, and maxima of u32"
            : "; where ranks can meet (BANYAN_BOOTSTRAP) it runs between hosts");
}

banyan_status_t banyan_request_mode(struct banyan_request *request, banyan_mode_t mode)
{
    struct by_call wanted;

    if (!is_request(request, "banyan_request_mode"))
        return BANYAN_EINVAL;
    if (mode < BANYAN_FAST || mode > BANYAN_EXACT)
        return by_fail(BY_EINVAL, "banyan_request_mode: mode %d is unknown; see banyan_mode_t", (int)mode);
    if (request->state == BY_REQUEST_RUNNING)
        return by_fail(BY_EBUSY, "banyan_request_mode: the %s still runs; wait for it first",
                       by_call_name(&request->call));
    wanted = request->call;
    wanted.mode = (uint8_t)mode;
    if (is_reducing(&wanted) && by_reduction_dtype(wanted.mode, wanted.op, wanted.dtype) == 0) {
        struct banyan_request tried = {.comm = request->comm, .call = wanted};

        return mode_failed(&tried);
    }
    request->call.mode = (uint8_t)mode;
    return BANYAN_OK;
}

/* ---- post, test, wait ---- */

/* An operation without data ends when it is posted, on all ranks alike. */
static int is_empty(const struct by_call *call)
{
    if (by_exchange_is(call->collective) && call->offsets != NULL)
        return false; /* other ranks may have data */
    return call->count == 0 && call->collective != BY_COLLECTIVE_BARRIER;
}

banyan_status_t by_post_failed(const struct banyan_request *request, int error, const char *field)
{
    const char *name = by_call_name(&request->call);

    switch (error) {
    case BY_EAGAIN:
        return by_fail(error, "%s: %u operations are running, which is the limit; wait for one", name,
                       BY_CALLS_MAX);
    case BY_EUNSUPPORTED:
        if (by_exchange_is(request->call.collective) && request->comm->is_group &&
            by_hosts_share(request->comm))
            return by_fail(error,
                           "%s: the %u ranks of the communicator share memory on %s, which carries "
                           "only shares of equal size; use the form without counts",
                           name, request->comm->rank_count, request->comm->header.name);
        if (by_exchange_is(request->call.collective))
            return by_fail(
                error,
                "%s: it runs only between hosts, and the ranks of %s are not connected; where they "
                "can meet (BANYAN_BOOTSTRAP), setting BANYAN_FALLBACK connects them; on a fabric in memory "
                "they do not meet",
                name, request->comm->header.name);
        if (field != NULL && strcmp(field, "mode") == 0)
            return mode_failed(request);
        if (field != NULL && strcmp(field, "tree") == 0)
            return tree_failed(request);
        if (field != NULL && strcmp(field, "ranks") == 0)
            return by_fail(error,
                           "%s: mode %s does not add %s where several ranks share a host; use mode det or "
                           "fast, or start one rank on each host",
                           name, by_mode_name(request->call.mode), by_dtype_name(request->call.dtype));
        if (request->between_hosts)
            return by_fail(error, "%s: mode %s of %s of %s does not run between hosts; use det or fast", name,
                           by_mode_name(request->call.mode), by_op_name(request->call.op),
                           by_dtype_name(request->call.dtype));
        return by_fail(error,
                       "%s: the table of %s holds no trees for it; plan it too, and make tables of all plans",
                       name, request->comm->header.name);
    default:
        return by_fail(error, "%s: %s%s%s", name, by_error_text(error), field != NULL ? ": " : "",
                       field != NULL ? field : "");
    }
}

static int post_to_trees(struct banyan_request *request, const char **field)
{
    struct banyan_comm *comm = request->comm;
    struct by_endpoint *endpoint = comm->progress.endpoint;

    if (comm->local != NULL) {
        uint64_t offsets[BY_PEERS_MAX + 1];
        struct by_call outer;
        int error =
            by_endpoint_refusal(endpoint, by_ranks_outer(comm, &request->call, &outer, offsets), field);

        if (error != 0)
            return error;
        error = by_local_post(comm->local, &request->call, &request->id);
        *field = error == BY_ESTATE ? by_local_text(comm->local) : "ranks";
        return error;
    }
    if (take_scratch(request) != 0) {
        *field = "memory of the mode";
        return BY_ENOMEM;
    }
    return by_endpoint_post(endpoint, &request->call, &request->id, field);
}

int by_request_start(struct banyan_request *request)
{
    const char *field = NULL;
    struct banyan_comm *comm = request->comm;
    enum by_hosts_why why;
    int error;

    if (is_empty(&request->call)) {
        request->state = BY_REQUEST_ENDED;
        return 0;
    }
    request->between_hosts = by_hosts_serve(comm, &request->call, &why);
    if (request->between_hosts && why == BY_HOSTS_UNABLE)
        by_hosts_say_unable(comm, &request->call);
    if (request->between_hosts)
        error = by_fallback_post(comm->hosts.fallback, &request->call, &request->id);
    else
        error = by_exchange_is(request->call.collective) ? BY_EUNSUPPORTED : post_to_trees(request, &field);
    if (error != 0)
        return by_post_failed(request, error, field);
    request->state = BY_REQUEST_RUNNING;
    return 0;
}

/* Sets the reason why an exchange, which is not staged, cannot be posted now. 0: it can. */
static int refuse_staging(struct banyan_request *request)
{
    if (by_staging_is_gpu(request))
        return by_fail(BY_EUNSUPPORTED, "%s: a buffer is in GPU memory; copy it to the host's first",
                       by_call_name(&request->call));
    if (request->comm->staging.first != NULL)
        return by_fail(BY_EAGAIN, "%s: an operation on a large buffer, or on a GPU, still runs; wait for it",
                       by_call_name(&request->call));
    return by_request_start(request);
}

banyan_status_t banyan_post(struct banyan_request *request)
{
    struct banyan_comm *comm;
    int error;

    if (!is_request(request, "banyan_post"))
        return BANYAN_EINVAL;
    comm = request->comm;
    if (request->state == BY_REQUEST_RUNNING)
        return by_fail(BY_EBUSY, "banyan_post: the %s still runs; wait for it first",
                       by_call_name(&request->call));
    error = atomic_load(&comm->error);
    if (error != 0)
        return by_fail(BY_ESTATE, "banyan_post: the communicator of job %u has failed: %s; destroy it",
                       comm->job.job, comm->verdict.error != 0 ? comm->verdict.text : by_error_text(error));
    request->result = 0;
    request->text[0] = 0;
    request->measured_ns = by_member_measures(comm) ? by_clock_ns() : 0;
    if (!is_empty(&request->call) && by_staging_wanted(request))
        error = by_exchange_is(request->call.collective) ? refuse_staging(request) : by_staging_post(request);
    else
        error = by_request_start(request);
    if (error != 0)
        return (banyan_status_t)error;
    request->posted = 1;
    return BANYAN_OK;
}

/* Ends the request if its call has ended. Returns whether that was an error, which needs a text. */
static bool has_failed(struct banyan_request *request, int result)
{
    if (result == BY_EAGAIN)
        return false;
    request->state = BY_REQUEST_ENDED;
    request->result = result;
    return result != 0;
}

static void collect_from_hosts(struct banyan_request *request)
{
    const struct by_fallback *fallback = request->comm->hosts.fallback;
    int result = by_fallback_test(request->comm->hosts.fallback, request->id);

    if (!has_failed(request, result))
        return;
    snprintf(request->text, sizeof(request->text), "%s %s, rank %u of %u: %s: %s",
             by_call_name(&request->call), by_fallback_connects(fallback) ? "between hosts" : "on one host",
             request->comm->rank, request->comm->rank_count, by_error_text(result),
             by_fallback_text(fallback));
    by_comm_fail(request->comm, result);
}

static void collect_from_local(struct banyan_request *request)
{
    struct by_local *local = request->comm->local;
    int result = by_local_test(local, request->id);

    if (!has_failed(request, result))
        return;
    by_describe_call(&request->call, request->text, sizeof(request->text));
    by_append(request->text, sizeof(request->text), ": %s", by_local_text(local));
    by_comm_fail(request->comm, result);
}

static void collect(struct banyan_request *request)
{
    struct by_call_status status = {0};
    int result;

    if (request->state != BY_REQUEST_RUNNING)
        return;
    if (request->staged != NULL) {
        by_staging_step(request->comm);
        return;
    }
    if (request->between_hosts) {
        collect_from_hosts(request);
        return;
    }
    if (request->comm->local != NULL) {
        collect_from_local(request);
        return;
    }
    result = by_endpoint_test(request->comm->progress.endpoint, request->id, &status);
    if (!has_failed(request, result))
        return;
    status.error = result;
    if (result == BY_EABORTED && request->comm->verdict.error != 0) {
        request->result = result = request->comm->verdict.error;
        snprintf(request->text, sizeof(request->text), "%s: %s", by_call_name(&request->call),
                 request->comm->verdict.text);
    } else {
        by_describe(request->comm, &request->call, &status, request->text, sizeof(request->text));
    }
    by_comm_fail(request->comm, result);
}

void by_request_collect(struct banyan_request *request)
{
    collect(request);
    if (request->measured_ns == 0 || request->state != BY_REQUEST_ENDED)
        return;
    if (request->result == 0)
        by_member_measure(request->comm, &request->call, by_clock_ns() - request->measured_ns);
    request->measured_ns = 0;
}

static banyan_status_t result_of(const struct banyan_request *request)
{
    return request->result == 0 ? BANYAN_OK : by_fail(request->result, "%s", request->text);
}

banyan_status_t banyan_test(struct banyan_request *request, int *done)
{
    if (!is_request(request, "banyan_test"))
        return BANYAN_EINVAL;
    if (done == NULL)
        return by_fail(BY_EINVAL, "banyan_test: done is NULL");
    *done = 0;
    if (!request->posted)
        return by_fail(BY_ESTATE, "banyan_test: the %s was never posted", by_call_name(&request->call));
    if (request->state == BY_REQUEST_RUNNING) {
        by_comm_progress(request->comm, 0);
        by_request_collect(request);
    }
    if (request->state == BY_REQUEST_RUNNING)
        return BANYAN_OK;
    *done = 1;
    return result_of(request);
}

banyan_status_t banyan_wait_for(struct banyan_request *request, uint64_t microseconds, int *done)
{
    uint64_t end_ns;

    if (!is_request(request, "banyan_wait_for"))
        return BANYAN_EINVAL;
    if (done == NULL)
        return by_fail(BY_EINVAL, "banyan_wait_for: done is NULL");
    *done = 0;
    if (!request->posted)
        return by_fail(BY_ESTATE, "banyan_wait_for: the %s was never posted", by_call_name(&request->call));
    end_ns = by_comm_now(request->comm) +
             (microseconds < WAIT_FOREVER_US ? microseconds : WAIT_FOREVER_US) * 1000u;
    if (request->state == BY_REQUEST_RUNNING)
        by_request_collect(request);
    while (request->state == BY_REQUEST_RUNNING) {
        by_comm_progress(request->comm, end_ns);
        by_request_collect(request);
        if (by_comm_now(request->comm) >= end_ns)
            break;
    }
    if (request->state == BY_REQUEST_RUNNING)
        return BANYAN_OK;
    *done = 1;
    return result_of(request);
}

banyan_status_t banyan_wait(struct banyan_request *request)
{
    if (!is_request(request, "banyan_wait"))
        return BANYAN_EINVAL;
    if (!request->posted)
        return by_fail(BY_ESTATE, "banyan_wait: the %s was never posted", by_call_name(&request->call));
    if (request->state == BY_REQUEST_RUNNING)
        by_request_collect(request);
    while (request->state == BY_REQUEST_RUNNING) {
        by_comm_progress(request->comm, UINT64_MAX);
        by_request_collect(request);
    }
    return result_of(request);
}
