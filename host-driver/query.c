/*
 * Predicts the path of an operation: on which trees, or between the hosts, and why; or why it would
 * fail. A post decides with the same code (hosts.c, offload/endpoint). Any thread, for a context;
 * for a communicator, its own thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/fallback/team.h"
#include "host-driver/fallback/work.h"
#include "host-driver/image_file.h"
#include "host-driver/ranks.h"

void banyan_query_init(struct banyan_query *query)
{
    if (query == NULL)
        return;
    memset(query, 0, sizeof(*query));
    query->size = sizeof(*query);
    query->collective = BANYAN_ALLREDUCE;
    query->op = BANYAN_SUM;
    query->dtype = BANYAN_F32;
}

/* Lists the trees that carry the call, and the neighbour on each. */
static void list_trees(const struct banyan_comm *comm, const struct by_call *call, struct banyan_query *query)
{
    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_LEAF]; i++) {
        struct by_image_name name;
        struct by_image_leaf leaf;
        uint64_t chunks;

        by_image_leaf(comm->image, i, &leaf);
        if (leaf.job != comm->job.job)
            continue;
        chunks = by_endpoint_chunks(comm->progress.endpoint, call, leaf.tree);
        if (chunks == 0)
            continue;
        query->tree_count++;
        query->packet_count += chunks;
        if (query->packet_bytes < leaf.payload_max)
            query->packet_bytes = leaf.payload_max;
        if (query->tree_count <= 4)
            by_append(query->trees, sizeof(query->trees), "%stree %u by %s: %llu",
                      query->tree_count > 1 ? ", " : "", leaf.tree,
                      leaf.parent_port == BY_PORT_LOCAL ? "this host"
                                                        : by_node_name(comm, leaf.parent_node, &name),
                      (unsigned long long)chunks);
    }
    if (query->tree_count > 4)
        by_append(query->trees, sizeof(query->trees), ", and %u more", query->tree_count - 4);
}

static void say_refusal(const struct banyan_comm *comm, const struct by_call *call, int error,
                        const char *field, int between_hosts, struct banyan_query *query)
{
    struct banyan_request tried = {
        .comm = (struct banyan_comm *)(uintptr_t)comm, .call = *call, .between_hosts = between_hosts};
    char kept[BY_ERROR_TEXT_MAX];

    /* Restore this thread's last error afterwards: nothing has failed. */
    snprintf(kept, sizeof(kept), "%s", by_fail_text());
    query->path = BANYAN_NOWHERE;
    query->status = by_post_failed(&tried, error, field);
    snprintf(query->reason, sizeof(query->reason), "%s", by_fail_text());
    by_fail(0, "%s", kept);
}

static void say_hosts(const struct banyan_comm *comm, const struct by_call *call, enum by_hosts_why why,
                      struct banyan_query *query)
{
    const struct by_hosts *hosts = &comm->hosts;
    const struct by_tree_time *tree;
    const char *name = by_call_name(call);

    query->path = BANYAN_HOSTS;
    switch (why) {
    case BY_HOSTS_NO_TABLE:
        snprintf(query->reason, sizeof(query->reason), "this rank has no table");
        break;
    case BY_HOSTS_UNABLE:
        snprintf(query->reason, sizeof(query->reason),
                 "nodes of its trees cannot compute %s of %s in mode %s, according to the table of %s",
                 by_op_name(call->op), by_dtype_name(call->dtype), by_mode_name(call->mode),
                 comm->header.name);
        break;
    case BY_HOSTS_SMALL:
        snprintf(query->reason, sizeof(query->reason), "it has at most %llu bytes (BANYAN_SMALL)",
                 (unsigned long long)hosts->small_bytes);
        break;
    case BY_HOSTS_SOONER:
        tree = &hosts->tree[call->collective];
        snprintf(query->reason, sizeof(query->reason),
                 "it is faster this way than over the trees, which take %.1f us and %.3f ns a byte "
                 "(BANYAN_SMALL=auto)",
                 (double)tree->latency_ns / 1e3, (double)tree->gap_ps / 1e3);
        break;
    case BY_HOSTS_SCHEDULE:
        snprintf(query->reason, sizeof(query->reason), "a schedule of BANYAN_SCHEDULE executes it over TCP");
        return;
    case BY_HOSTS_TREES:
    case BY_HOSTS_NO_TREES:
    default:
        snprintf(query->reason, sizeof(query->reason), "the table of %s holds no trees for %s",
                 comm->header.name, name);
        break;
    }
    if (hosts->fallback != NULL && by_fallback_is_single(hosts->fallback, call)) {
        by_append(query->reason, sizeof(query->reason), "; all ranks share memory on one host");
        return;
    }
    by_append(query->reason, sizeof(query->reason), "; %s schedules over TCP", by_way_name(hosts->way));
    if (hosts->fallback != NULL)
        query->predicted_ns =
            by_work_predict_ns(by_fallback_team(hosts->fallback), call, &query->round_count);
}

static void answer(const struct banyan_comm *comm, const struct by_call *call, struct banyan_query *query)
{
    const struct by_tree_time *tree;
    enum by_hosts_why why;
    const char *field = NULL;
    uint64_t offsets[BY_PEERS_MAX + 1];
    struct by_call outer;
    const struct by_call *seen;
    int error;

    query->status = BANYAN_OK;
    query->rank = comm->rank;
    query->rank_count = comm->rank_count;
    query->tree_count = 0;
    query->packet_count = query->round_count = query->predicted_ns = 0;
    query->packet_bytes = 0;
    query->reason[0] = query->trees[0] = 0;
    if (by_hosts_serve(comm, call, &why)) {
        if (!by_work_supports(call))
            say_refusal(comm, call, BY_EUNSUPPORTED, NULL, 1, query);
        else
            say_hosts(comm, call, why, query);
        return;
    }
    if (by_exchange_is(call->collective)) {
        say_refusal(comm, call, BY_EUNSUPPORTED, NULL, 0, query);
        return;
    }
    tree = &comm->hosts.tree[call->collective];
    seen = by_ranks_outer(comm, call, &outer, offsets);
    error = comm->progress.endpoint != NULL ? by_endpoint_refusal(comm->progress.endpoint, seen, &field)
                                            : BY_EUNSUPPORTED;
    if (error == 0 && comm->local != NULL && by_local_refuses(call)) {
        error = BY_EUNSUPPORTED;
        field = "ranks";
    }
    if (error != 0) {
        say_refusal(comm, call, error, field, 0, query);
        return;
    }
    query->path = BANYAN_TREES;
    list_trees(comm, seen, query);
    if (tree->latency_ns > 0)
        query->predicted_ns =
            tree->latency_ns + query->packet_count * query->packet_bytes * tree->gap_ps / 1000u;
    snprintf(query->reason, sizeof(query->reason), "the table of %s has trees for it", comm->header.name);
}

static int ask(const char *function, const struct banyan_comm *comm, struct banyan_query *query)
{
    struct by_call call;
    uint64_t *offsets;
    int error = by_operation_call(function, comm, query, &call, &offsets);

    if (error != 0)
        return error;
    answer(comm, &call, query);
    free(offsets);
    return 0;
}

static int check_query(const char *function, const struct banyan_query *query)
{
    if (query == NULL)
        return by_fail(BY_EINVAL, "%s: query is NULL", function);
    if (query->size != sizeof(*query))
        return by_fail(BY_EVERSION, "%s: query.size is %zu, this library expects %zu; call banyan_query_init",
                       function, query->size, sizeof(*query));
    return 0;
}

banyan_status_t banyan_comm_query(const struct banyan_comm *comm, struct banyan_query *query)
{
    int error;

    if (comm == NULL || comm->magic != BY_COMM_MAGIC)
        return by_fail(BY_EINVAL, "banyan_comm_query: %s",
                       comm == NULL ? "comm is NULL" : "comm is not a communicator");
    error = check_query("banyan_comm_query", query);
    return (banyan_status_t)(error != 0 ? error : ask("banyan_comm_query", comm, query));
}

/* Without a table: sets the rank and the rank count, as far as they are known. */
static int expect_ranks(struct banyan_comm *comm, uint32_t job)
{
    const struct by_bootstrap *bootstrap = &comm->context->bootstrap;

    if (bootstrap->source == BY_SOURCE_CALLER && !bootstrap->places_only)
        by_comm_alone(comm, bootstrap->caller.rank, bootstrap->caller.rank_count, job);
    else if (bootstrap->joined)
        by_comm_alone(comm, bootstrap->meeting.rank, bootstrap->meeting.rank_count, job);
    else
        return by_fail(BY_ESTATE, "without a table the ranks are known only after they have met; create the "
                                  "communicator, then call banyan_comm_query");
    return 0;
}

/* Builds a communicator with only the parts on which the decision depends. */
static int expect_comm(struct banyan_context *context, uint32_t wanted, struct banyan_comm *comm,
                       void **memory)
{
    struct by_endpoint_config config = {.image = context->image, .image_bytes = context->image_bytes};
    uint64_t job = wanted;
    size_t bytes;
    int error = 0;

    comm->context = context;
    by_comm_image(comm, context->image, context->image_bytes);
    if (job == 0)
        error = by_settings_number(&context->settings, BY_SETTING_JOB, BY_JOBS_MAX - 1, &job);
    if (error != 0)
        return error;
    if (context->image == NULL) {
        error = expect_ranks(comm, (uint32_t)job);
        return error != 0 ? error : by_hosts_expect(comm);
    }
    error = by_image_job_find(context->image, (uint32_t)job, &comm->job);
    if (error != 0)
        return error;
    comm->rank = comm->job.rank;
    comm->rank_count = comm->job.rank_count;
    config.job = comm->job.job;
    bytes = by_endpoint_size(&config);
    if (bytes == 0)
        return by_fail(BY_ENOENT, "according to its table, %s is in no tree of job %u", context->header.name,
                       comm->job.job);
    *memory = aligned_alloc(64, bytes);
    if (*memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for the endpoint of %s: %zu bytes", context->header.name, bytes);
    error = by_endpoint_init(&comm->progress.endpoint, *memory, bytes, &config);
    if (error != 0)
        return by_fail(error, "the endpoint of %s cannot start: %s", context->header.name,
                       by_error_text(error));
    return by_hosts_expect(comm);
}

banyan_status_t banyan_context_query(struct banyan_context *context, uint32_t job, struct banyan_query *query)
{
    struct banyan_comm *comm;
    void *memory = NULL;
    int error;

    if (context == NULL || context->magic != BY_CONTEXT_MAGIC)
        return by_fail(BY_EINVAL, "banyan_context_query: %s",
                       context == NULL ? "context is NULL" : "context is not a context");
    error = check_query("banyan_context_query", query);
    if (error != 0)
        return (banyan_status_t)error;
    comm = calloc(1, sizeof(*comm));
    if (comm == NULL)
        return by_fail(BY_ENOMEM, "no memory for a query: %zu bytes", sizeof(*comm));
    error = expect_comm(context, job, comm, &memory);
    if (error == 0)
        error = ask("banyan_context_query", comm, query);
    free(memory);
    free(comm);
    return (banyan_status_t)error;
}
