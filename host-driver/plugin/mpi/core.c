/* The communicator of libbanyan in an MPI process; see core.h. */
#include "host-driver/plugin/mpi/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/plugin/mpi/flight.h"
#include "host-driver/plugin/mpi/kept.h"

#define RANKS_MAX 1000u /* of a job with several on a host (banyan_bootstrap) */

static struct banyan_context *context;
static struct by_mpi_lane world;
static uint64_t offloaded[BANYAN_GATHER + 1];
static uint64_t left[BY_MPI_REASON_COUNT];

static const char *const collective_name[BANYAN_GATHER + 1] = {
    [BANYAN_ALLREDUCE] = "allreduce", [BANYAN_REDUCE_SCATTER] = "reduce-scatter",
    [BANYAN_ALLGATHER] = "allgather", [BANYAN_BROADCAST] = "broadcast",
    [BANYAN_REDUCE] = "reduce",       [BANYAN_BARRIER] = "barrier",
    [BANYAN_ALLTOALL] = "all-to-all", [BANYAN_SCATTER] = "scatter",
    [BANYAN_GATHER] = "gather",
};
static const char *const reason_text[BY_MPI_REASON_COUNT] = {
#define X(name, text) [BY_MPI_##name] = (text),
    BY_MPI_REASON_LIST(X)
#undef X
};

/* What users must know of sums of floats. */
static const char *const order_text[] = {
    [BANYAN_FAST] = "sums of floats in order of arrival (BANYAN_MODE=det: the same in each run)",
    [BANYAN_DET] = "sums of floats are the same in each run",
    [BANYAN_EXACT] = "sums of floats do not depend on their order",
};

struct sentence {
    char *at;
    size_t room;
};

static void add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct sentence *sentence, const char *format, ...)
{
    va_list arguments;
    int wrote;

    va_start(arguments, format);
    wrote = vsnprintf(sentence->at, sentence->room, format, arguments);
    va_end(arguments);
    if (wrote < 0)
        return;
    if ((size_t)wrote >= sentence->room)
        wrote = sentence->room > 0 ? (int)sentence->room - 1 : 0;
    sentence->at += wrote;
    sentence->room -= (size_t)wrote;
}

/* ---- agreement ---- */

static void fail(struct by_mpi_facts *facts, banyan_status_t status)
{
    facts->status = status;
    snprintf(facts->text, sizeof(facts->text), "%s", banyan_last_error());
}

/* Reads a setting as an integer; -1 if it is not one. */
static long long setting_of(const char *wanted)
{
    const char *name, *value;

    for (uint32_t i = 0; banyan_setting(i, &name, NULL, NULL, &value, NULL) == BANYAN_OK; i++) {
        if (strcmp(name, wanted) == 0) {
            char *end;
            long long number = strtoll(value, &end, 10);

            return *value != 0 && *end == 0 && number >= 0 ? number : -1;
        }
    }
    return -1;
}

/* Returns a setting's value; "" if there is none of this name. */
static const char *text_of(const char *wanted)
{
    const char *name, *value;

    for (uint32_t i = 0; banyan_setting(i, &name, NULL, NULL, &value, NULL) == BANYAN_OK; i++)
        if (strcmp(name, wanted) == 0)
            return value;
    return "";
}

uint64_t by_mpi_timeout_ns(void)
{
    return (uint64_t)(strtod(text_of("BANYAN_TIMEOUT"), NULL) * 1e9);
}

/* Whether the user has left the setting alone. */
static uint32_t is_default(const char *wanted)
{
    const char *name, *origin;

    for (uint32_t i = 0; banyan_setting(i, &name, NULL, NULL, NULL, &origin) == BANYAN_OK; i++)
        if (strcmp(name, wanted) == 0)
            return strcmp(origin, "default") == 0;
    return 0;
}

/* A call of MPI waits for ranks that compute as long as they do. Launchers end programs of which a
 * rank has ended. */
static void wait_as_mpi_does(void)
{
    if (is_default("BANYAN_TIMEOUT") && is_default("BANYAN_WAIT"))
        setenv("BANYAN_WAIT", "31536000", 1); /* a year, the maximum */
}

/* Whether the user has set BANYAN_FALLBACK, to other than off. */
static uint32_t has_fallback(void)
{
    return !is_default("BANYAN_FALLBACK") && strcmp(text_of("BANYAN_FALLBACK"), "off") != 0;
}

/* The collectives that run over trees, or through the memory of the one host of all ranks. */
static uint32_t served(const struct banyan_comm *comm)
{
    int single = strcmp(banyan_comm_transport(comm), "host") == 0;
    uint32_t mask = 0;

    for (unsigned c = BANYAN_ALLREDUCE; c <= BANYAN_BARRIER; c++) {
        uint32_t roots = c == BANYAN_BROADCAST || c == BANYAN_REDUCE ? banyan_comm_size(comm) : 1, root = 0;

        while (root < roots && !single && banyan_comm_serves(comm, (banyan_collective_t)c, root))
            root++;
        if (single || root == roots)
            mask |= 1u << c;
    }
    for (unsigned c = BANYAN_ALLTOALL; c <= BANYAN_GATHER; c++) {
        struct banyan_query query;

        banyan_query_init(&query);
        query.collective = (banyan_collective_t)c;
        query.count = 1;
        if (banyan_comm_query(comm, &query) == BANYAN_OK && query.path == BANYAN_HOSTS)
            mask |= 1u << c;
    }
    return mask;
}

/* Finds the operators and types that the tables support in every reducing collective with trees. */
static void find_reduces(struct by_mpi_lane *lane)
{
    static const banyan_collective_t reducing[] = {BANYAN_ALLREDUCE, BANYAN_REDUCE_SCATTER, BANYAN_REDUCE};
    struct banyan_query query;

    banyan_query_init(&query);
    query.count = 1;
    for (unsigned op = BANYAN_SUM; op <= BANYAN_BXOR; op++)
        for (unsigned dtype = BANYAN_I8; dtype <= BANYAN_F64; dtype++) {
            int able =
                banyan_supports_mode(banyan_comm_mode(lane->comm), (banyan_op_t)op, (banyan_dtype_t)dtype);

            query.op = (banyan_op_t)op;
            query.dtype = (banyan_dtype_t)dtype;
            for (size_t i = 0; able && i < sizeof(reducing) / sizeof(reducing[0]); i++) {
                query.collective = reducing[i];
                if (lane->serves >> reducing[i] & 1)
                    able = banyan_comm_query(lane->comm, &query) == BANYAN_OK && query.path != BANYAN_NOWHERE;
            }
            lane->reduces[op] |= (uint16_t)((unsigned)able << dtype);
        }
}

/* Fills what the trees of the lane can do. */
static void describe(struct by_mpi_lane *lane)
{
    lane->serves = served(lane->comm);
    find_reduces(lane);
}

void by_mpi_prepare(struct by_mpi_facts *facts, const struct banyan_bootstrap *places)
{
    struct banyan_config config;
    struct banyan_query query;
    banyan_status_t status;
    long long least, log, after;

    memset(facts, 0, sizeof(*facts));
    facts->version = BANYAN_VERSION;
    if (strcmp(text_of("BANYAN_NEAR"), "memory") != 0 || !by_place_space(&facts->space))
        facts->space = 0;
    gethostname(facts->host, sizeof(facts->host) - 1);
    log = setting_of("BANYAN_LOG");
    facts->log = log < 0 ? 1 : (uint32_t)log;
    least = setting_of("BANYAN_MPI_LEAST");
    if (least < 0) {
        facts->status = BANYAN_EINVAL;
        snprintf(facts->text, sizeof(facts->text), "BANYAN_MPI_LEAST must be a whole number of bytes");
        return;
    }
    facts->least = (uint64_t)least;
    after = setting_of("BANYAN_MPI_AFTER");
    if (after < 0 || after > UINT32_MAX) {
        facts->status = BANYAN_EINVAL;
        snprintf(facts->text, sizeof(facts->text), "BANYAN_MPI_AFTER must be a whole number of calls");
        return;
    }
    facts->after = (uint32_t)after;
    facts->controlled = text_of("BANYAN_CONTROLLER")[0] != 0;
    facts->timed = strcmp(text_of("BANYAN_SMALL"), "auto") == 0;
    facts->ordered = strcmp(text_of("BANYAN_MPI_PERSISTENT"), "ordered") == 0;
    if (!facts->ordered && strcmp(text_of("BANYAN_MPI_PERSISTENT"), "off") != 0) {
        facts->status = BANYAN_EINVAL;
        snprintf(facts->text, sizeof(facts->text), "BANYAN_MPI_PERSISTENT is '%.60s'; use off or ordered",
                 text_of("BANYAN_MPI_PERSISTENT"));
        return;
    }
    banyan_config_init(&config);
    facts->connects = has_fallback() && places->rank_count <= RANKS_MAX;
    if (!facts->connects)
        config.launcher = "none"; /* MPI executes what the table does not support */
    config.bootstrap = places->rank_count <= RANKS_MAX ? places : NULL;
    wait_as_mpi_does();
    status = banyan_init(&config, &context);
    if (status != BANYAN_OK) {
        fail(facts, status);
        return;
    }
    banyan_query_init(&query);
    /* by_mpi_join reports the reason, if it is an error */
    if (banyan_context_query(context, 0, &query) != BANYAN_OK)
        return;
    facts->rank = query.rank;
    facts->size = query.rank_count;
}

void by_mpi_join(struct by_mpi_facts *facts)
{
    banyan_status_t status = banyan_comm_create(context, 0, &world.comm);

    if (status != BANYAN_OK) {
        fail(facts, status);
        return;
    }
    describe(&world);
    facts->rank = banyan_comm_rank(world.comm);
    facts->size = banyan_comm_size(world.comm);
    facts->serves = world.serves;
    facts->mode = banyan_comm_mode(world.comm);
    memcpy(facts->reduces, world.reduces, sizeof(facts->reduces));
}

struct by_mpi_lane *by_mpi_world(void)
{
    return &world;
}

/* How a rank has come to a communicator of some ranks. */
struct outcome {
    int32_t status;
    uint32_t kept; /* lanes of freed communicators that it has */
    uint64_t id;   /* of rank 0: of the lane */
    char text[BY_MPI_TEXT_MAX];
};

/* Slots that kept lanes have given back are free when all hosts have left, and banyand has made
 * new tables: so often, and with such pauses, the ranks request the job. */
#define TRIES    4
#define PAUSE_NS 50000000

/* Returns the first outcome that is not good, and its text; 0 if all are. */
static int judge(const struct outcome *all, uint32_t count, char text[BY_MPI_TEXT_MAX])
{
    for (uint32_t rank = 0; rank < count; rank++)
        if (all[rank].status != 0) {
            snprintf(text, BY_MPI_TEXT_MAX, "%s", all[rank].text);
            return all[rank].status;
        }
    return 0;
}

int by_mpi_revive(const struct banyan_bootstrap *ranks, struct by_mpi_lane *lane, uint32_t alive, int *few)
{
    struct by_mpi_lane *own[BY_MPI_OFFER_MAX];
    struct by_mpi_offer mine = {.alive = alive}, *all = calloc(ranks->rank_count, sizeof(*all));
    uint32_t count = by_mpi_lanes_borrow(lane->member, lane->size, own);
    uint64_t id = 0;

    for (uint32_t i = 0; i < count; i++)
        mine.id[i] = own[i]->id;
    *few = 0;
    /* without memory no other rank gets an answer, and the program ends */
    if (all != NULL && ranks->allgather(ranks->context, &mine, all, sizeof(mine)) == 0)
        id = by_mpi_offer_choose(all, ranks->rank_count, few);
    free(all);
    by_mpi_lanes_return(own, count, id, lane);
    return id != 0;
}

/* One request for a job. *again: it is refused, and some ranks have kept lanes. */
static int create(const struct banyan_bootstrap *ranks, struct by_mpi_lane *lane, int *again,
                  char text[BY_MPI_TEXT_MAX])
{
    struct outcome mine = {.status = banyan_comm_create_group(world.comm, ranks, &lane->comm)};
    struct outcome *all = calloc(ranks->rank_count, sizeof(*all));
    int status;

    *again = 0;
    if (mine.status != 0) {
        snprintf(mine.text, sizeof(mine.text), "%s", banyan_last_error());
        mine.kept = by_mpi_lanes_drop();
    }
    if (getrandom(&mine.id, sizeof(mine.id), 0) != (ssize_t)sizeof(mine.id) || mine.id == 0)
        mine.id = (uint64_t)(uintptr_t)lane;
    if (all == NULL || ranks->allgather(ranks->context, &mine, all, sizeof(mine)) != 0) {
        snprintf(text, BY_MPI_TEXT_MAX, "MPI could not exchange how the ranks came to the communicator");
        status = BANYAN_EIO;
    } else {
        status = judge(all, ranks->rank_count, text);
        lane->id = all[0].id;
        for (uint32_t rank = 0; rank < ranks->rank_count; rank++)
            *again |= (status == BANYAN_ELIMIT || status == BANYAN_ESTATE) && all[rank].kept > 0;
    }
    free(all);
    if (status != 0 && lane->comm != NULL) {
        banyan_comm_destroy(lane->comm);
        lane->comm = NULL;
    }
    return status;
}

int by_mpi_branch(const struct banyan_bootstrap *ranks, struct by_mpi_lane *lane, char text[BY_MPI_TEXT_MAX])
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int status, again, few, tries = 0, has_dropped = 0;

    if (lane->member != NULL && by_mpi_revive(ranks, lane, 0, &few))
        return BANYAN_OK;
    for (;;) {
        status = create(ranks, lane, &again, text);
        has_dropped |= again;
        if ((status != BANYAN_ELIMIT && status != BANYAN_ESTATE) || !has_dropped || ++tries == TRIES)
            break;
        nanosleep(&pause, NULL);
    }
    if (status == 0)
        describe(lane);
    lane->is_near = status == 0 && strcmp(banyan_comm_transport(lane->comm), "host") == 0;
    return status;
}

/* Finds the first rank that cannot offload, or whose position differs from the tables. */
static int refuse(const struct by_mpi_facts *all, uint32_t count, uint32_t rank, struct sentence *sentence)
{
    const struct by_mpi_facts *facts = &all[rank];

    if (facts->status != 0)
        add(sentence, "rank %u on %s: %s", rank, facts->host, facts->text);
    else if (facts->version != all[0].version)
        add(sentence, "rank %u on %s has version %u of the plugin, rank 0 has %u; install the same version",
            rank, facts->host, facts->version, all[0].version);
    else if (facts->connects != all[0].connects)
        add(sentence, "BANYAN_FALLBACK is %s at rank %u and %s at rank 0; set it on all ranks, or on none",
            facts->connects ? "set" : "not set", rank, all[0].connects ? "set" : "not set");
    else if (facts->ordered != all[0].ordered)
        add(sentence, "BANYAN_MPI_PERSISTENT is %s at rank %u and %s at rank 0; use the same on all ranks",
            facts->ordered ? "ordered" : "off", rank, all[0].ordered ? "ordered" : "off");
    else if (facts->timed != all[0].timed)
        add(sentence, "BANYAN_SMALL is %sauto at rank %u and %sauto at rank 0; use the same on all ranks",
            facts->timed ? "" : "not ", rank, all[0].timed ? "" : "not ");
    else if (facts->size == 0)
        return 0;
    else if (facts->size > count)
        add(sentence,
            "the tables are for %u ranks, but MPI runs %u; start at least one rank on each host of the job",
            facts->size, count);
    else if (facts->size == count && facts->rank != rank)
        add(sentence,
            "MPI's rank %u runs on %s, which is rank %u of the tables; start the ranks in the tables' order "
            "(mpirun --host ...)",
            rank, facts->host, facts->rank);
    else if (facts->least != all[0].least)
        add(sentence,
            "BANYAN_MPI_LEAST is %" PRIu64 " at rank %u and %" PRIu64 " at rank 0; use the same on all ranks",
            facts->least, rank, all[0].least);
    else if (facts->after != all[0].after)
        add(sentence, "BANYAN_MPI_AFTER is %u at rank %u and %u at rank 0; use the same on all ranks",
            facts->after, rank, all[0].after);
    else if (facts->mode != all[0].mode)
        add(sentence, "BANYAN_MODE is %s at rank %u and %s at rank 0; use the same on all ranks",
            banyan_mode_name((banyan_mode_t)facts->mode), rank, banyan_mode_name((banyan_mode_t)all[0].mode));
    else if (facts->serves != all[0].serves)
        add(sentence, "the tables of rank %u on %s serve other collectives than those of rank 0", rank,
            facts->host);
    else if (memcmp(facts->reduces, all[0].reduces, sizeof(facts->reduces)) != 0)
        add(sentence,
            "the trees in the tables of rank %u on %s compute other operators or types than those of rank 0; "
            "push tables that were made together",
            rank, facts->host);
    else
        return 0;
    return 1;
}

static int has_rank(const struct by_mpi_facts *all, uint32_t count, uint32_t host)
{
    for (uint32_t rank = 0; rank < count; rank++)
        if (all[rank].rank == host)
            return 1;
    return 0;
}

/* Finds the first host of the tables without a rank. */
static int lack_rank(const struct by_mpi_facts *all, uint32_t count, struct sentence *sentence)
{
    for (uint32_t rank = 0; rank < count; rank++)
        if (all[rank].size == 0 || all[rank].size > count || all[rank].status != 0)
            return 0;
    for (uint32_t host = 0; host < all[0].size; host++) {
        if (has_rank(all, count, host))
            continue;
        add(sentence,
            "none of the %u ranks runs on host %u of the %u hosts in the tables; start at least one rank on "
            "each (Open MPI: mpirun --map-by ppr:N:node; MPICH: mpirun -ppn N)",
            count, host, all[0].size);
        return 1;
    }
    return 0;
}

static uint32_t count_hosts(const struct by_mpi_facts *all, uint32_t count)
{
    uint32_t hosts = 0;

    for (uint32_t rank = 0; rank < count; rank++) {
        uint32_t other = 0;

        while (strcmp(all[other].host, all[rank].host) != 0)
            other++;
        hosts += other == rank;
    }
    return hosts;
}

int by_mpi_seat(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX])
{
    struct sentence sentence = {text, BY_MPI_TEXT_MAX};

    add(&sentence, "not offloaded: ");
    if (lack_rank(all, count, &sentence))
        return 0;
    for (uint32_t rank = 0; rank < count; rank++)
        if (refuse(all, count, rank, &sentence))
            return 0;
    return 1;
}

int by_mpi_agree(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX])
{
    struct sentence sentence = {text, BY_MPI_TEXT_MAX};
    const char *between = "";

    add(&sentence, "not offloaded: ");
    for (uint32_t rank = 0; rank < count; rank++)
        if (refuse(all, count, rank, &sentence))
            return 0;
    if (count < 2) {
        add(&sentence, "the job has only one rank");
        return 0;
    }
    if (all[0].serves == 0) {
        add(&sentence, "the tables have no trees");
        return 0;
    }
    sentence = (struct sentence){text, BY_MPI_TEXT_MAX};
    add(&sentence, "offloaded: ");
    for (unsigned c = BANYAN_ALLREDUCE; c <= BANYAN_GATHER; c++) {
        if (!(all[0].serves >> c & 1))
            continue;
        add(&sentence, "%s%s", between, collective_name[c]);
        between = ", ";
    }
    add(&sentence, "; %u ranks", count);
    if (count_hosts(all, count) < count)
        add(&sentence, " on %u hosts", count_hosts(all, count));
    if (all[0].least > 0)
        add(&sentence, ", from %" PRIu64 " bytes", all[0].least);
    add(&sentence, "; %s", order_text[all[0].mode]);
    between = "; left to MPI, as nodes of the trees cannot compute it: ";
    for (unsigned op = BANYAN_SUM; op <= BANYAN_BXOR; op++)
        for (unsigned dtype = BANYAN_I8; dtype <= BANYAN_F64; dtype++) {
            if ((all[0].reduces[op] >> dtype & 1) ||
                !banyan_supports_mode((banyan_mode_t)all[0].mode, (banyan_op_t)op, (banyan_dtype_t)dtype))
                continue;
            add(&sentence, "%s%s of %s", between, banyan_op_name((banyan_op_t)op),
                banyan_dtype_name((banyan_dtype_t)dtype));
            between = ", ";
        }
    return 1;
}

/* ---- calls ---- */

int by_mpi_request(const struct by_mpi_lane *lane, const struct by_mpi_call *call,
                   struct banyan_request **request)
{
    struct banyan_comm *comm = lane->comm;

    switch (call->collective) {
    case BANYAN_ALLREDUCE:
        return banyan_allreduce_init(comm, call->send, call->recv, call->count, call->dtype, call->op,
                                     request);
    case BANYAN_REDUCE_SCATTER:
        if (call->counts != NULL)
            return banyan_reduce_scatterv_init(comm, call->send, call->recv, call->counts, call->dtype,
                                               call->op, request);
        return banyan_reduce_scatter_init(comm, call->send, call->recv, call->count, call->dtype, call->op,
                                          request);
    case BANYAN_ALLGATHER:
        if (call->counts != NULL)
            return banyan_allgatherv_init(comm, call->send, call->recv, call->counts, call->dtype, request);
        return banyan_allgather_init(comm, call->send, call->recv, call->count, call->dtype, request);
    case BANYAN_BROADCAST:
        return banyan_broadcast_init(comm, call->recv, call->count, call->dtype, call->root, request);
    case BANYAN_REDUCE:
        return banyan_reduce_init(comm, call->send, call->recv, call->count, call->dtype, call->op,
                                  call->root, request);
    case BANYAN_BARRIER:
        return banyan_barrier_init(comm, request);
    case BANYAN_ALLTOALL:
        if (call->is_unequal)
            return banyan_alltoallv_init(comm, call->send, call->shares[0], call->shares[1], call->recv,
                                         call->shares[2], call->shares[3], call->dtype, request);
        return banyan_alltoall_init(comm, call->send, call->recv, call->count, call->dtype, request);
    case BANYAN_SCATTER:
        if (call->is_unequal)
            return banyan_scatterv_init(comm, call->send, call->shares[0], call->shares[1], call->recv,
                                        call->count, call->dtype, call->root, request);
        return banyan_scatter_init(comm, call->send, call->recv, call->count, call->dtype, call->root,
                                   request);
    case BANYAN_GATHER:
        if (call->is_unequal)
            return banyan_gatherv_init(comm, call->send, call->count, call->recv, call->shares[2],
                                       call->shares[3], call->dtype, call->root, request);
        return banyan_gather_init(comm, call->send, call->recv, call->count, call->dtype, call->root,
                                  request);
    }
    return BANYAN_EINVAL;
}

int by_mpi_reduces(const struct by_mpi_lane *lane, banyan_op_t op, banyan_dtype_t dtype)
{
    return lane->reduces[op] >> dtype & 1;
}

/* ---- statistics ---- */

void by_mpi_count(banyan_collective_t collective)
{
    offloaded[collective]++;
}

void by_mpi_leave_to_mpi(enum by_mpi_reason reason)
{
    left[reason]++;
}

static uint64_t list(struct sentence *sentence, const uint64_t *counts, const char *const *names,
                     unsigned first, unsigned end)
{
    const char *before = " (";
    uint64_t sum = 0;

    for (unsigned i = first; i < end; i++)
        sum += counts[i];
    add(sentence, "%" PRIu64, sum);
    for (unsigned i = first; i < end; i++) {
        if (counts[i] == 0)
            continue;
        add(sentence, "%s%s %" PRIu64, before, names[i], counts[i]);
        before = ", ";
    }
    if (sum > 0)
        add(sentence, ")");
    return sum;
}

void by_mpi_tally(char *text, size_t bytes)
{
    struct sentence sentence = {text, bytes};

    list(&sentence, offloaded, collective_name, BANYAN_ALLREDUCE, BANYAN_GATHER + 1);
    add(&sentence, " calls offloaded, ");
    list(&sentence, left, reason_text, 0, BY_MPI_REASON_COUNT);
    add(&sentence, " left to MPI");
}

void by_mpi_part(void)
{
    if (world.comm != NULL)
        banyan_comm_destroy(world.comm);
    if (context != NULL)
        banyan_finalize(context);
    world = (struct by_mpi_lane){0};
    context = NULL;
}
