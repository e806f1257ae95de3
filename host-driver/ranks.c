/* Opens communicators with several ranks on a host; see ranks.h. */
#include "host-driver/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "host-driver/bootstrap/gather.h"
#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/local/single.h"
#include "host-driver/local/slices.h"

#define RANKS_KEY UINT32_C(0x52000000) /* separates these meetings from those between hosts */

/* How often the loss of a rank is reported to the other hosts, the interval, and the most steps for
 * it. */
#define TELL_TIMES     3u
#define TELL_PAUSE_NS  1000000
#define TELL_STEPS_MAX 64u

/* First exchange: where a rank runs. */
struct ranks_place {
    char host[BY_NAME_MAX + 1]; /* of the table */
    uint8_t pad[2];
    uint16_t seat; /* of a group: of its host in the parent's job */
    int32_t error; /* of a group: it cannot take part */
    int32_t apart; /* the same if the group is on several hosts */
    uint32_t unused;
    uint64_t space; /* by_place_space; 0: it shares no memory */
    uint64_t key;   /* for the socket of the ranks of its host, if it leads them */
    char text[BY_GROUP_TEXT];
    char door[BY_PLACE_TEXT]; /* of rank 0 of a group whose ranks connect: where they meet */
};

/* Of a group: the job that its first rank has received. */
struct ranks_grant {
    int32_t error;
    uint16_t job;
    uint8_t pad[2];
    char text[BY_MEMBER_TEXT_MAX];
};

/* Last exchange: how opening the trees ended at a leader. */
struct ranks_result {
    int32_t error;
    uint16_t host, host_count; /* of the table */
    char text[240];
};

struct by_ranks {
    struct by_gather gather;
    uint32_t rank, rank_count, leader;
    struct ranks_place *place; /* by rank */
    uint64_t deadline_ns;
    struct by_mates mates;
    bool is_group, is_near;
    int listening; /* of a group: the error of its socket for the ranks of this host */
    int refusal;   /* of a group, with `text` */
    char text[BY_MEMBER_TEXT_MAX];
};

void by_ranks_free(struct by_ranks *ranks)
{
    if (ranks == NULL)
        return;
    by_gather_close(&ranks->gather);
    by_mates_close(&ranks->mates);
    free(ranks->place);
    free(ranks);
}

bool by_ranks_lead(const struct by_ranks *ranks)
{
    return ranks == NULL || ranks->leader == ranks->rank;
}

/* Whether the ranks must tell each other where they run. */
static bool is_wanted(struct banyan_comm *comm, uint32_t job)
{
    struct banyan_context *context = comm->context;
    struct by_image_job of;

    if (comm->group != NULL)
        return true;
    if (context->fabric != NULL || context->bootstrap.source == BY_SOURCE_NONE)
        return false;
    if (comm->image == NULL)
        return by_member_wanted(context);
    if (by_image_job_find(comm->image, job, &of) != 0)
        return false; /* opening the trees reports it */
    return by_bootstrap_rank_count(&context->bootstrap, by_clock_ns() + context->stall_ns) > of.rank_count;
}

/* Keeps the reason against a group, which is `error` with the text of the last error, if any. */
static void refuse(struct by_ranks *ranks, int error)
{
    if (error == 0 || ranks->refusal != 0)
        return;
    ranks->refusal = error;
    snprintf(ranks->text, sizeof(ranks->text), "%s", by_fail_text());
}

/* Finds the first rank that cannot take part in the group; `apart`: on several hosts. */
static int find_refusal(const struct by_ranks *ranks, bool apart)
{
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++) {
        const struct ranks_place *place = &ranks->place[rank];
        int error = apart ? place->apart : place->error;

        if (error != 0)
            return by_fail(error, "rank %u on %s: %.239s", rank, place->host, place->text);
    }
    return 0;
}

/* Whether all ranks of the group are on one host of the parent. */
static bool are_together(const struct by_ranks *ranks)
{
    for (uint32_t rank = 1; rank < ranks->rank_count; rank++)
        if (ranks->place[rank].seat != ranks->place[0].seat ||
            strcmp(ranks->place[rank].host, ranks->place[0].host) != 0)
            return false;
    return true;
}

/* Whether the ranks of a group on one host can share memory. 0, or an error with its text. */
static int judge_memory(const struct by_ranks *ranks)
{
    const char *host = ranks->place[0].host;

    if (ranks->rank_count > BY_SINGLE_RANKS_MAX)
        return by_fail(BY_EUNSUPPORTED,
                       "all %u ranks of the communicator run on %s; at most %u ranks share memory",
                       ranks->rank_count, host, BY_SINGLE_RANKS_MAX);
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++) {
        if (ranks->place[rank].space == 0)
            return by_fail(
                BY_EUNSUPPORTED,
                "all %u ranks of the communicator run on %s, and rank %u shares no memory: it is on "
                "a fabric in memory, or BANYAN_NEAR is not memory, or /proc is not mounted",
                ranks->rank_count, host, rank);
        if (ranks->place[rank].space != ranks->place[0].space)
            return by_fail(BY_EUNSUPPORTED,
                           "all %u ranks of the communicator run on %s, but rank %u cannot share memory with "
                           "rank 0: start them as one user, in one network namespace",
                           ranks->rank_count, host, rank);
    }
    return 0;
}

/* Collects the hosts of the group. */
static void list_hosts(const struct by_ranks *ranks, struct by_group *group)
{
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++) {
        uint32_t byte = ranks->place[rank].seat / 8;

        if (byte >= sizeof(group->hosts))
            continue; /* that rank reports it */
        group->hosts[byte] |= (uint8_t)(1u << ranks->place[rank].seat % 8);
        if (byte >= group->host_bytes)
            group->host_bytes = byte + 1;
    }
}

/* Decides what carries the group, or why nothing does. */
static void judge_places(struct by_ranks *ranks, struct by_group *group)
{
    bool together = are_together(ranks);

    group->error = find_refusal(ranks, false);
    if (group->error == 0)
        group->error = together ? judge_memory(ranks) : find_refusal(ranks, true);
    ranks->is_near = together && group->error == 0;
    if (!together)
        list_hosts(ranks, group);
}

/* Keeps an error of this rank, with the text of the last error, for the first exchange. */
static void keep_error(struct by_group *group, int error)
{
    group->error = error;
    if (error != 0)
        snprintf(group->text, sizeof(group->text), "%s", by_fail_text());
}

/* Returns what ranks that share memory have in common; 0: this one shares none. */
static uint64_t space_of(const struct banyan_context *context)
{
    uint64_t space;

    if (context->fabric != NULL || strcmp(context->settings.value[BY_SETTING_NEAR], "memory") != 0 ||
        !by_place_space(&space))
        return 0;
    return space != 0 ? space : 1;
}

static int exchange_places(struct banyan_comm *comm, struct by_ranks *ranks)
{
    struct ranks_place mine = {0};
    int error;

    if (comm->group != NULL) {
        if (comm->group->error == 0 && by_hosts_connect_groups(comm->context))
            keep_error(comm->group, by_bootstrap_offer(&comm->group->bootstrap, mine.door));
        mine.seat = comm->group->seat;
        mine.error = comm->group->error;
        mine.apart = comm->group->apart;
        mine.space = space_of(comm->context);
        snprintf(mine.text, sizeof(mine.text), "%s", comm->group->text);
    }
    snprintf(mine.host, sizeof(mine.host), "%s", comm->header.name);
    ranks->place = calloc(ranks->rank_count, sizeof(*ranks->place));
    if (ranks->place == NULL) {
        by_fail(BY_ENOMEM, "no memory for the places of %u ranks", ranks->rank_count);
        return BY_ENOMEM;
    }
    if (getrandom(&mine.key, sizeof(mine.key), 0) != (ssize_t)sizeof(mine.key))
        return by_fail(BY_EIO, "no random number for the ranks of this host: %s", strerror(errno));
    error = by_gather_run(&ranks->gather, &mine, ranks->place, sizeof(mine), ranks->deadline_ns);
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++)
        ranks->place[rank].host[BY_NAME_MAX] = 0;
    while (error == 0 && strcmp(ranks->place[ranks->leader].host, mine.host) != 0)
        ranks->leader++;
    if (error == 0 && comm->group != NULL) {
        ranks->place[0].door[BY_PLACE_TEXT - 1] = 0;
        judge_places(ranks, comm->group);
        if (comm->group->error == 0 && !ranks->is_near && ranks->place[0].door[0] != 0)
            comm->group->error = by_bootstrap_take(&comm->group->bootstrap, ranks->place[0].door);
        refuse(ranks, comm->group->error);
    }
    return error;
}

/* Whether no host has several ranks. */
static bool is_spread(const struct by_ranks *ranks)
{
    for (uint32_t rank = 1; rank < ranks->rank_count; rank++)
        for (uint32_t other = 0; other < rank; other++)
            if (strcmp(ranks->place[rank].host, ranks->place[other].host) == 0)
                return false;
    return true;
}

int by_ranks_meet(struct banyan_comm *comm, uint32_t job, struct by_ranks **out)
{
    struct banyan_context *context = comm->context;
    struct by_ranks *ranks;
    int error;

    *out = NULL;
    if (!is_wanted(comm, job))
        return 0;
    ranks = calloc(1, sizeof(*ranks));
    if (ranks == NULL)
        return by_fail(BY_ENOMEM, "no memory to find the ranks of this host");
    by_mates_init(&ranks->mates);
    ranks->is_group = comm->group != NULL;
    ranks->deadline_ns = by_clock_ns() + context->stall_ns;
    error = by_gather_open(&ranks->gather, ranks->is_group ? &comm->group->bootstrap : &context->bootstrap,
                           RANKS_KEY ^ job << 16 ^ atomic_fetch_add(&context->meeting_count, 1),
                           ranks->deadline_ns);
    if (error == 0) {
        ranks->rank = ranks->gather.rank;
        ranks->rank_count = ranks->gather.rank_count;
        error = exchange_places(comm, ranks);
    }
    if (error == 0 && !ranks->is_group && is_spread(ranks)) {
        by_ranks_free(ranks);
        return 0;
    }
    if (error == 0 && by_ranks_lead(ranks)) {
        error = by_mates_listen(&ranks->mates, ranks->place[ranks->rank].key);
        if (ranks->is_group) {
            ranks->listening = error;
            error = 0;
        }
    }
    if (error != 0) {
        by_ranks_free(ranks);
        return error;
    }
    *out = ranks;
    return 0;
}

/* ---- a group */

bool by_ranks_is_first(const struct by_ranks *ranks)
{
    return ranks->rank == 0;
}

bool by_ranks_are_near(const struct by_ranks *ranks)
{
    return ranks != NULL && ranks->is_near;
}

int by_ranks_refusal(const struct by_ranks *ranks)
{
    return ranks->refusal != 0 ? by_fail(ranks->refusal, "%s", ranks->text) : 0;
}

int by_ranks_grant(struct banyan_comm *comm, struct by_ranks *ranks, int error, uint32_t *job)
{
    struct ranks_grant mine = {.error = error, .job = comm->job.job};
    struct ranks_grant *all = calloc(ranks->rank_count, sizeof(*all));
    int failed;

    if (all == NULL)
        return by_fail(BY_ENOMEM, "no memory for the job of %u ranks", ranks->rank_count);
    if (error != 0)
        snprintf(mine.text, sizeof(mine.text), "%s", by_fail_text());
    /* the first rank may have waited for the controller */
    failed =
        by_gather_run(&ranks->gather, &mine, all, sizeof(mine), by_clock_ns() + 2 * comm->context->stall_ns);
    *job = all[0].job;
    all[0].text[sizeof(all[0].text) - 1] = 0;
    if (failed == 0 && all[0].error != 0) {
        failed = by_fail(all[0].error, "%s", all[0].text);
        refuse(ranks, failed);
    }
    free(all);
    return failed;
}

int by_ranks_stand_by(const struct banyan_bootstrap *all)
{
    static const size_t bytes[] = {sizeof(struct ranks_place), sizeof(struct ranks_grant),
                                   sizeof(struct ranks_result)};
    const union {
        struct ranks_place place;
        struct ranks_grant grant;
        struct ranks_result result;
    } none = {0};

    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
        if (all->allgather(all->context, &none, NULL, bytes[i]) != 0)
            return BY_EIO; /* the text of the call over the parent */
    return 0;
}

/* ---- the trees of the leader */

static int post(void *context, const struct by_call *call, uint32_t *id)
{
    const struct banyan_comm *comm = context;
    const char *field = NULL;

    return by_endpoint_post(comm->progress.endpoint, call, id, &field);
}

static int test(void *context, uint32_t id, const struct by_call *call, char *text, size_t bytes)
{
    const struct banyan_comm *comm = context;
    struct by_call_status status = {0};
    int result = by_endpoint_test(comm->progress.endpoint, id, &status);

    if (result == 0 || result == BY_EAGAIN)
        return result;
    status.error = result;
    if (result == BY_EABORTED && comm->verdict.error != 0) {
        snprintf(text, bytes, "%s", comm->verdict.text);
        return comm->verdict.error;
    }
    by_describe_reason(comm, call, &status, text, bytes);
    return result;
}

/* Reports the loss several times, because packets may be lost. */
static void tell(void *context, uint32_t rank, uint8_t fate)
{
    const struct timespec pause = {.tv_nsec = TELL_PAUSE_NS};
    struct banyan_comm *comm = context;

    for (unsigned i = 0; i < TELL_TIMES && comm->progress.endpoint != NULL; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        by_endpoint_tell_lost(comm->progress.endpoint, rank, fate);
        for (unsigned step = 0; step < TELL_STEPS_MAX && by_progress_step(&comm->progress, by_clock_ns()) > 0;
             step++)
            ;
    }
}

static void end(void *context)
{
    struct banyan_comm *comm = context;

    if (comm->progress.endpoint != NULL)
        by_endpoint_abort(comm->progress.endpoint);
}

/* A rank that does not lead takes the leader's table, for queries only: nothing steps its
 * endpoint. */
static int follow(struct banyan_comm *comm, const struct by_mates *mates, uint32_t job)
{
    const uint8_t *image = by_mates_image(mates);
    struct by_endpoint_config config = {.image = image, .image_bytes = mates->head->image_bytes};
    size_t bytes;
    int error;

    by_comm_image(comm, image, config.image_bytes); /* the leader has checked it */
    error = by_image_job_find(image, job, &comm->job);
    if (error != 0)
        return error;
    config.job = comm->job.job;
    bytes = by_endpoint_size(&config);
    comm->progress.endpoint_memory = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    if (comm->progress.endpoint_memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for the endpoint of %s: %zu bytes", comm->header.name, bytes);
    error = by_endpoint_init(&comm->progress.endpoint, comm->progress.endpoint_memory, bytes, &config);
    return error == 0 ? 0
                      : by_fail(error, "the endpoint of %s cannot start: %s", comm->header.name,
                                by_error_text(error));
}

/* ---- the second exchange */

/* Fills `host_of` from the results of all leaders, or reports the first error. */
static int judge(const struct by_ranks *ranks, const struct ranks_result *result, uint16_t *host_of,
                 uint32_t *host_count)
{
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++)
        if (result[rank].error != 0)
            return by_fail(result[rank].error, "rank %u on %s: %.239s", rank, ranks->place[rank].host,
                           result[rank].text);
    *host_count = result[0].host_count; /* rank 0 leads its host */
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++) {
        uint32_t leader = 0;

        while (strcmp(ranks->place[leader].host, ranks->place[rank].host) != 0)
            leader++;
        host_of[rank] = result[leader].host;
        if (result[leader].host_count != *host_count)
            return by_fail(
                BY_EMISMATCH,
                "the table of %s has %u hosts, that of %s has %u; use tables that were made together",
                ranks->place[leader].host, result[leader].host_count, ranks->place[0].host, *host_count);
    }
    return 0;
}

static int exchange_results(struct banyan_comm *comm, struct by_ranks *ranks, int error, uint16_t *host_of,
                            uint32_t *host_count)
{
    struct ranks_result mine = {.error = error,
                                .host = ranks->is_near ? 0 : comm->job.rank,
                                .host_count = ranks->is_near ? 1 : comm->job.rank_count};
    struct ranks_result *all = calloc(ranks->rank_count, sizeof(*all));
    int failed;

    if (all == NULL)
        return by_fail(BY_ENOMEM, "no memory for the results of %u ranks", ranks->rank_count);
    if (error != 0)
        snprintf(mine.text, sizeof(mine.text), "%s", by_fail_text());
    /* a leader may have waited for its switch, or for the controller, as long as all others */
    failed =
        by_gather_run(&ranks->gather, &mine, all, sizeof(mine), by_clock_ns() + 2 * comm->context->stall_ns);
    if (failed == 0)
        failed = ranks->refusal != 0 ? by_ranks_refusal(ranks) : judge(ranks, all, host_of, host_count);
    free(all);
    return failed;
}

/* Whether each rank has its host to itself, and the order of the ranks is that of the table. */
static bool is_plain(const struct by_ranks *ranks, const uint16_t *host_of, uint32_t host_count)
{
    for (uint32_t rank = 0; rank < ranks->rank_count; rank++)
        if (host_of[rank] != rank)
            return false;
    return host_count == ranks->rank_count;
}

static int open_local(struct banyan_comm *comm, struct by_ranks *ranks, const uint16_t *host_of,
                      uint32_t host_count, uint32_t job)
{
    const struct by_local_config config = {.net = {comm, post, test, tell, end},
                                           .stall_ns = comm->context->absent_ns,
                                           .host = comm->context->header.name};
    uint64_t key = ranks->place[ranks->leader].key;
    uint64_t deadline_ns = by_clock_ns() + comm->context->stall_ns;
    struct by_seats seats;
    int error = by_seats_make(&seats, host_of, ranks->rank_count, host_count, ranks->rank);

    if (error != 0)
        return error;
    error = by_ranks_lead(ranks)
                ? by_mates_admit(&ranks->mates, &seats, key, comm->image, comm->image_bytes, deadline_ns)
                : by_mates_join(&ranks->mates, &seats, key, deadline_ns);
    if (error == 0 && !by_ranks_lead(ranks))
        error = follow(comm, &ranks->mates, job);
    if (error != 0) {
        by_seats_free(&seats);
        return error;
    }
    comm->rank = ranks->rank;
    comm->rank_count = ranks->rank_count;
    if (by_ranks_lead(ranks))
        by_endpoint_set_stall(comm->progress.endpoint, comm->context->stall_ns + BY_LOCAL_GRACE_NS / 2);
    return by_local_open(&comm->local, &seats, &ranks->mates, &config);
}

/* Connects the ranks of a group on one host through its memory. */
static int open_near(struct banyan_comm *comm, struct by_ranks *ranks)
{
    struct by_single *single = NULL;
    int error = by_single_open(&single, &ranks->mates, ranks->place[0].key, ranks->rank, ranks->rank_count,
                               by_clock_ns() + comm->context->stall_ns);

    if (error != 0)
        return error;
    by_comm_alone(comm, ranks->rank, ranks->rank_count, comm->group->parent);
    error = by_fallback_open_single(&comm->hosts.fallback, single, ranks->rank, ranks->rank_count,
                                    comm->context->stall_ns, comm->context->absent_ns);
    comm->hosts.ready = error == 0;
    return error;
}

int by_ranks_connect(struct banyan_comm *comm, struct by_ranks *ranks, uint32_t job, int error)
{
    uint16_t *host_of;
    uint32_t host_count = 0;

    if (ranks == NULL)
        return error;
    host_of = calloc(ranks->rank_count, sizeof(*host_of));
    if (error == 0)
        error = ranks->listening;
    if (error == 0 && ranks->is_near)
        error = open_near(comm, ranks);
    if (host_of == NULL)
        error = by_fail(BY_ENOMEM, "no memory for the hosts of %u ranks", ranks->rank_count);
    else
        error = exchange_results(comm, ranks, error, host_of, &host_count);
    if (error == 0 && host_of != NULL && !ranks->is_near &&
        !(ranks->is_group && is_plain(ranks, host_of, host_count)))
        error = open_local(comm, ranks, host_of, host_count, job);
    free(host_of);
    by_ranks_free(ranks);
    return error;
}

const struct by_call *by_ranks_outer(const struct banyan_comm *comm, const struct by_call *call,
                                     struct by_call *outer, uint64_t *offsets)
{
    if (comm->local == NULL)
        return call;
    by_slices_whole(call, by_local_seats(comm->local), outer, offsets);
    return outer;
}
