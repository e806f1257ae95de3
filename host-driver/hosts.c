/* Decides which calls run between hosts, and announces it; see hosts.h. */
#include "host-driver/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/fallback/team.h"
#include "host-driver/fallback/work.h"
#include "host-driver/ranks.h"
#include "offload/wire/types.h"

static int read_way(const struct by_settings *settings, enum by_way *way)
{
    const char *text = settings->value[BY_SETTING_FALLBACK];

    *way = strcmp(text, "circulant") == 0 ? BY_WAY_CIRCULANT
           : strcmp(text, "ring") == 0    ? BY_WAY_RING
           : strcmp(text, "rhd") == 0     ? BY_WAY_CUBE
                                          : 0;
    if (*way != 0 || strcmp(text, "off") == 0)
        return 0;
    return by_fail(BY_EINVAL, "BANYAN_FALLBACK is '%s' (%s); use circulant, ring, rhd or off", text,
                   settings->origin[BY_SETTING_FALLBACK]);
}

static int read_near(const struct by_settings *settings, struct by_fallback_config *config)
{
    const char *text = settings->value[BY_SETTING_NEAR];

    config->single = strcmp(text, "memory") == 0;
    config->shares = config->single || strcmp(text, "pairs") == 0;
    return config->shares || strcmp(text, "tcp") == 0
               ? 0
               : by_fail(BY_EINVAL, "BANYAN_NEAR is '%s' (%s); use memory, pairs or tcp", text,
                         settings->origin[BY_SETTING_NEAR]);
}

bool by_hosts_has_trees(const struct banyan_comm *comm, unsigned collective)
{
    bool rooted = by_collective_is_rooted(collective);

    if (comm->progress.endpoint == NULL)
        return false;
    for (uint32_t root = 0; root < (rooted ? comm->job.rank_count : 1); root++)
        if (!by_endpoint_serves(comm->progress.endpoint, collective, root))
            return false;
    return true;
}

static bool has_all_trees(const struct banyan_comm *comm)
{
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE; collective < BY_COLLECTIVE_COUNT; collective++)
        if (!by_hosts_has_trees(comm, collective))
            return false;
    return true;
}

/* Whether reductions with this operator and type, in the communicator's mode, run between hosts
 * because a node of their trees cannot compute them. */
static bool is_unable(const struct banyan_comm *comm, unsigned collective, unsigned op, unsigned dtype)
{
    const struct by_call call = {.collective = (uint8_t)collective,
                                 .op = (uint8_t)op,
                                 .dtype = (uint8_t)dtype,
                                 .mode = comm->context->mode,
                                 .count = 1};

    return banyan_supports((banyan_op_t)op, (banyan_dtype_t)dtype) && by_work_supports(&call) &&
           !by_endpoint_can(comm->progress.endpoint, &call);
}

/* Finds the first such reduction from *op and *dtype on, of any collective. */
static bool find_unable(const struct banyan_comm *comm, unsigned *op, unsigned *dtype)
{
    static const uint8_t sums[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_REDUCE,
                                   BY_COLLECTIVE_REDUCE_SCATTER};

    if (comm->progress.endpoint == NULL)
        return false;
    for (; *op < BY_OP_COUNT; ++*op, *dtype = 1)
        for (; *dtype < BY_DTYPE_COUNT; ++*dtype)
            for (size_t i = 0; i < sizeof(sums); i++)
                if (by_hosts_has_trees(comm, sums[i]) && is_unable(comm, sums[i], *op, *dtype))
                    return true;
    return false;
}

/* Whether the user has chosen the schedules, and with them that ranks meet. */
static bool is_asked_for(const struct by_settings *settings)
{
    return strcmp(settings->origin[BY_SETTING_FALLBACK], "default") != 0;
}

bool by_hosts_connect_groups(const struct banyan_context *context)
{
    return is_asked_for(&context->settings) &&
           strcmp(context->settings.value[BY_SETTING_FALLBACK], "off") != 0;
}

static bool has_schedule(const struct banyan_context *context)
{
    return context->settings.value[BY_SETTING_SCHEDULE][0] != 0;
}

/* Reads the settings; *wanted: this communicator's calls may run between hosts. */
static int settle(struct banyan_comm *comm, bool *wanted)
{
    const struct banyan_context *context = comm->context;
    const char *small = context->settings.value[BY_SETTING_SMALL];
    struct by_hosts *hosts = &comm->hosts;
    unsigned op = 1, dtype = 1;
    int error = read_way(&context->settings, &hosts->way);

    /* a measurement takes longer than it takes to make a communicator of some ranks */
    hosts->by_time = strcmp(small, "auto") == 0 && !comm->is_group;
    if (error == 0 && strcmp(small, "auto") != 0)
        error = by_settings_number(&context->settings, BY_SETTING_SMALL, UINT32_MAX, &hosts->small_bytes);
    if (error != 0)
        return error;
    if (has_schedule(context) && !comm->is_group &&
        (hosts->way == 0 || context->fabric != NULL || context->bootstrap.source == BY_SOURCE_NONE ||
         context->bootstrap.places_only))
        return by_fail(BY_EINVAL,
                       "BANYAN_SCHEDULE requires ranks that meet, on hosts: set RANK, WORLD_SIZE, "
                       "MASTER_ADDR and MASTER_PORT or use a launcher (BANYAN_BOOTSTRAP), and leave "
                       "BANYAN_FALLBACK on");
    if (comm->image == NULL && hosts->way == 0)
        return by_fail(BY_EINVAL, "BANYAN_TABLE is not set and BANYAN_FALLBACK is off; set BANYAN_TABLE, or "
                                  "choose a BANYAN_FALLBACK");
    if (comm->is_group) {
        *wanted = comm->group->bootstrap.meeting.wanted;
        return *wanted && hosts->way == 0
                   ? by_fail(BY_EMISMATCH,
                             "BANYAN_FALLBACK is off at rank %u of the communicator, and not at "
                             "rank 0; set it alike on all ranks",
                             comm->rank)
                   : 0;
    }
    *wanted =
        context->bootstrap.source != BY_SOURCE_NONE && !context->bootstrap.places_only && hosts->way != 0 &&
        context->fabric == NULL &&
        (comm->image == NULL || has_schedule(context) || is_asked_for(&context->settings) || hosts->by_time ||
         hosts->small_bytes > 0 || !has_all_trees(comm) || find_unable(comm, &op, &dtype));
    return 0;
}

static struct by_bootstrap *bootstrap_of(const struct banyan_comm *comm)
{
    return comm->is_group ? &comm->group->bootstrap : &comm->context->bootstrap;
}

/* The bootstrap must number the ranks as the table does. */
static int check_meeting(const struct banyan_comm *comm)
{
    const struct by_meeting *meeting = &bootstrap_of(comm)->meeting;

    if (comm->image == NULL || (meeting->rank == comm->rank && meeting->rank_count == comm->rank_count))
        return 0;
    return by_fail(BY_EMISMATCH,
                   "%s%u of %s%u, but the table of %s specifies rank %u of %u in job %u; start the ranks in "
                   "the tables' order",
                   meeting->ip_count > 0 ? "the launcher reports rank " : "RANK ", meeting->rank,
                   meeting->ip_count > 0 ? "" : "WORLD_SIZE ", meeting->rank_count, comm->header.name,
                   comm->rank, comm->rank_count, comm->job.job);
}

int by_hosts_open(struct banyan_comm *comm)
{
    struct banyan_context *context = comm->context;
    struct by_fallback_config config = {.meeting = &bootstrap_of(comm)->meeting,
                                        .stall_ns = context->stall_ns,
                                        .absent_ns = context->absent_ns};
    bool wanted = false;
    int error = settle(comm, &wanted);

    if (error != 0 || !wanted)
        return error;
    error = by_bootstrap_join(bootstrap_of(comm), by_clock_ns() + context->stall_ns);
    if (error == 0)
        error = check_meeting(comm);
    if (error != 0)
        return error;
    config.way = comm->hosts.way;
    config.reach = config.meeting->rank_count <= BY_MESH_ALL_MAX ? BY_REACH_ALL : BY_REACH_SCHEDULES;
    error = read_near(&context->settings, &config);
    config.single = config.single && comm->image == NULL; /* with a table the ranks are on several hosts */
    if (error != 0)
        return error;
    /* The communicators of a job connect one after another, at the same address; the key separates
     * them. Those of some ranks have an address of their own. */
    config.key = (uint32_t)comm->job.job << 16;
    if (!comm->is_group)
        config.key ^= atomic_fetch_add(&context->meeting_count, 1);
    if (!comm->is_group && has_schedule(context))
        config.schedules = context->settings.value[BY_SETTING_SCHEDULE];
    error = by_fallback_open(&config, &comm->hosts.fallback);
    comm->hosts.ready = error == 0;
    return error;
}

int by_hosts_expect(struct banyan_comm *comm)
{
    int error = settle(comm, &comm->hosts.ready);

    return error == 0 && comm->hosts.ready && comm->context->bootstrap.joined ? check_meeting(comm) : error;
}

void by_hosts_close(struct banyan_comm *comm)
{
    by_fallback_close(comm->hosts.fallback);
    comm->hosts.fallback = NULL;
    comm->hosts.ready = false;
}

/* Compares both predictions; their inputs are equal at all ranks. */
static bool is_sooner(const struct banyan_comm *comm, const struct by_call *call, uint64_t bytes)
{
    const struct by_hosts *hosts = &comm->hosts;
    const struct by_tree_time *tree = &hosts->tree[call->collective];
    unsigned __int128 trees_ps =
        (unsigned __int128)tree->latency_ns * 1000u + (unsigned __int128)bytes * tree->gap_ps;

    return tree->latency_ns > 0 &&
           (unsigned __int128)by_work_predict_ns(by_fallback_team(hosts->fallback), call, NULL) * 1000u <
               trees_ps;
}

static bool serve_tree_call(const struct banyan_comm *comm, const struct by_call *call,
                            enum by_hosts_why *why)
{
    bool sharded = by_collective_is_sharded(call->collective);
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);
    enum by_hosts_why reason = BY_HOSTS_TREES;
    uint64_t offsets[BY_PEERS_MAX + 1];
    struct by_call outer;
    const struct by_call *seen = by_ranks_outer(comm, call, &outer, offsets);

    if (sharded && call->offsets == NULL)
        bytes *= comm->rank_count;
    if (comm->progress.endpoint == NULL)
        reason = BY_HOSTS_NO_TABLE;
    else if (!by_endpoint_serves_call(comm->progress.endpoint, seen))
        reason = BY_HOSTS_NO_TREES;
    else if (by_work_supports(call) && !by_endpoint_can(comm->progress.endpoint, seen))
        reason = BY_HOSTS_UNABLE;
    else if (comm->hosts.ready && by_work_supports(call) && comm->hosts.small_bytes > 0 &&
             bytes <= comm->hosts.small_bytes)
        reason = BY_HOSTS_SMALL;
    else if (comm->hosts.fallback != NULL && by_work_supports(call) && is_sooner(comm, call, bytes))
        reason = BY_HOSTS_SOONER;
    if (why != NULL)
        *why = reason;
    return comm->hosts.ready && reason != BY_HOSTS_TREES;
}

bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call, enum by_hosts_why *why)
{
    if (comm->hosts.fallback != NULL && by_fallback_is_scheduled(comm->hosts.fallback, call)) {
        if (why != NULL)
            *why = BY_HOSTS_SCHEDULE;
        return true;
    }
    if (by_exchange_is(call->collective)) {
        if (why != NULL)
            *why = comm->progress.endpoint == NULL ? BY_HOSTS_NO_TABLE : BY_HOSTS_NO_TREES;
        return comm->hosts.ready &&
               (comm->hosts.fallback == NULL || by_fallback_connects(comm->hosts.fallback) ||
                by_fallback_is_single(comm->hosts.fallback, call));
    }
    return serve_tree_call(comm, call, why);
}

bool by_hosts_share(const struct banyan_comm *comm)
{
    static const struct by_call barrier = {.collective = BY_COLLECTIVE_BARRIER};

    return comm->hosts.fallback != NULL && by_fallback_is_single(comm->hosts.fallback, &barrier);
}

/* Separator between two reasons. */
static const char *between(const char *text)
{
    return text[0] == 0 ? "" : ", and ";
}

/* Adds the reductions that nodes cannot compute, by operator. */
static void add_unable(const struct banyan_comm *comm, char *why, size_t bytes)
{
    unsigned op = 1, dtype = 1, last = 0;

    for (; find_unable(comm, &op, &dtype); dtype++) {
        if (last == 0)
            by_append(why, bytes,
                      "%sreductions that nodes of the trees cannot compute in mode %s:", between(why),
                      by_mode_name(comm->context->mode));
        by_append(why, bytes, op != last ? "%s%s of %s" : "%s%s%s", last == 0 ? " " : ", ",
                  op != last ? by_op_name(op) : "", by_dtype_name(dtype));
        last = op;
    }
    if (last != 0 && comm->context->mode == BY_MODE_DET)
        by_append(why, bytes, " (banyan tables --det gives them slots)");
}

void by_hosts_say_unable(struct banyan_comm *comm, const struct by_call *call)
{
    int level = atoi(comm->context->settings.value[BY_SETTING_LOG]);
    unsigned said = comm->hosts.said | 1u << comm->context->mode;

    if ((said >> call->mode & 1) || level < 1 || (level < 2 && comm->rank != 0))
        return;
    comm->hosts.said = (uint8_t)(said | 1u << call->mode);
    fprintf(stderr,
            "banyan: job %u rank %u of %u (%s): not offloaded: %s of %s in mode %s, which nodes of the trees "
            "cannot compute, runs between hosts over TCP%s\n",
            comm->job.job, comm->rank, comm->rank_count, comm->header.name, by_op_name(call->op),
            by_dtype_name(call->dtype), by_mode_name(call->mode),
            call->mode == BY_MODE_DET ? " (banyan tables --det gives them slots)" : "");
}

/* Adds the calls that are faster between hosts. */
static void add_times(const struct banyan_comm *comm, char *why, size_t bytes)
{
    const char *before = "";
    bool any = false;

    for (unsigned c = BY_COLLECTIVE_ALLREDUCE; c < BY_COLLECTIVE_COUNT; c++)
        any = any || comm->hosts.tree[c].latency_ns > 0;
    if (!any)
        return;
    by_append(why, bytes, "%scalls that are faster this way than over the trees, which take ", between(why));
    for (unsigned c = BY_COLLECTIVE_ALLREDUCE; c < BY_COLLECTIVE_COUNT; c++) {
        const struct by_tree_time *tree = &comm->hosts.tree[c];

        if (tree->latency_ns == 0)
            continue;
        by_append(why, bytes, "%s%.1f us", before, (double)tree->latency_ns / 1e3);
        if (c != BY_COLLECTIVE_BARRIER)
            by_append(why, bytes, " and %.3f ns a byte", (double)tree->gap_ps / 1e3);
        by_append(why, bytes, " for %s", by_collective_name(c));
        before = ", ";
    }
    by_append(why, bytes, " (BANYAN_SMALL)");
}

void by_hosts_announce(const struct banyan_comm *comm)
{
    const struct by_settings *settings = &comm->context->settings;
    const struct by_team *team = by_fallback_team(comm->hosts.fallback);
    const char *before = "the table lacks some trees; ";
    char why[1024] = "", scheduled[512];

    if (!by_fallback_connects(comm->hosts.fallback)) {
        fprintf(stderr,
                "banyan: rank %u of %u of a communicator on %s: through memory that its ranks share\n",
                comm->rank, comm->rank_count, comm->header.name);
        return;
    }
    if (comm->image == NULL)
        by_append(why, sizeof(why), "%s; all collectives",
                  strcmp(settings->value[BY_SETTING_OFFLOAD], "off") == 0 ? "BANYAN_OFFLOAD is off"
                                                                          : "BANYAN_TABLE is not set");
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE;
         comm->image != NULL && collective < BY_COLLECTIVE_COUNT; collective++)
        if (!by_hosts_has_trees(comm, collective)) {
            by_append(why, sizeof(why), "%s%s", before, by_collective_name(collective));
            before = ", ";
        }
    if (comm->image != NULL)
        add_unable(comm, why, sizeof(why));
    add_times(comm, why, sizeof(why));
    if (comm->image != NULL && comm->hosts.small_bytes > 0)
        by_append(why, sizeof(why), "%sat most %llu bytes (BANYAN_SMALL)", between(why),
                  (unsigned long long)comm->hosts.small_bytes);
    if (why[0] == 0)
        by_append(why, sizeof(why), "all-to-all, scatter and gather (BANYAN_FALLBACK)");
    by_fallback_describe_schedules(comm->hosts.fallback, scheduled, sizeof(scheduled));
    fprintf(
        stderr,
        "banyan: job %u rank %u of %u (%s): not offloaded: %s run %s, by %s schedules%s; a message takes "
        "%.1f us and %.3f ns a byte\n",
        comm->job.job, comm->rank, comm->rank_count, comm->header.name, why,
        by_hosts_share(comm)
            ? "through memory that all ranks share on this host, all-to-all, scatter and gather between them"
            : "between hosts over TCP",
        by_way_name(team->way), scheduled, (double)team->latency_ns / 1e3, (double)team->gap_ps / 1e3);
}
