/* The agreement of all ranks on CollNet; see admit.h. */
#include "host-driver/plugin/nccl/admit.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAP_MS 2 /* between looks at streams that do not exist yet */

struct round {
    uint32_t rank, ranks;
    uint64_t timeout_ns;
    int *files; /* rank 0: of each other rank; others: [0] is the stream to rank 0 */
};

/* ---- streams ---- */

static int remaining_ms(uint64_t until_ns)
{
    uint64_t now = by_nccl_now();

    return now >= until_ns ? 0 : (int)((until_ns - now) / 1000000u) + 1;
}

/* Moves all bytes, or returns -1 with errno; ETIMEDOUT at the deadline. */
static int move_all(int file, void *data, size_t bytes, short direction, uint64_t until_ns)
{
    char *at = data;

    while (bytes > 0) {
        struct pollfd ready = {.fd = file, .events = direction};
        ssize_t moved = direction == POLLIN ? recv(file, at, bytes, 0) : send(file, at, bytes, MSG_NOSIGNAL);

        if (moved > 0) {
            at += moved;
            bytes -= (size_t)moved;
            continue;
        }
        if (moved == 0)
            errno = ECONNRESET;
        if (moved == 0 || (errno != EAGAIN && errno != EINTR))
            return -1;
        if (remaining_ms(until_ns) == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        poll(&ready, 1, remaining_ms(until_ns));
    }
    return 0;
}

/* Rank 0: a stream from each other rank. The number of a visit is its rank. */
static int await_ranks(struct round *round, struct by_nccl_listener *listener, char *text)
{
    uint64_t until = by_nccl_now() + round->timeout_ns;
    uint32_t arrived = 1;

    while (arrived < round->ranks) {
        uint64_t number;
        int file, step = by_nccl_listener_take(listener, &number, &file);

        if (step > 0 && number > 0 && number < round->ranks && round->files[number] < 0) {
            round->files[number] = file;
            arrived++;
            continue;
        }
        if (step > 0)
            close(file);
        if (step < 0) {
            snprintf(text, BY_NCCL_TEXT_MAX, "rank 0 cannot accept streams");
            return -1;
        }
        if (remaining_ms(until) == 0) {
            uint32_t missing = 1;

            while (round->files[missing] >= 0)
                missing++;
            snprintf(text, BY_NCCL_TEXT_MAX,
                     "rank %u has not connected to rank 0 within BANYAN_TIMEOUT; %u of %u ranks have",
                     missing, arrived, round->ranks);
            return -1;
        }
        poll(NULL, 0, NAP_MS);
    }
    return 0;
}

static int visit_first(struct round *round, const void *handle, char *text)
{
    struct by_nccl_visit *visit;
    int step = -by_nccl_visit_open(handle, BY_NCCL_FOR_COLLECTIVES, round->rank, &visit);

    if (step == 0) {
        while ((step = by_nccl_visit_step(visit, round->files)) == 0)
            poll(NULL, 0, NAP_MS);
        by_nccl_visit_free(visit);
    }
    if (step > 0)
        return 0;
    snprintf(text, BY_NCCL_TEXT_MAX, "rank 0 cannot be reached from rank %u", round->rank);
    return -1;
}

/* Every rank sends the size of its data, and the data; rank 0 answers with those of all ranks. A
 * rank at another step of the agreement has another size, and ends the agreement. */
static int move_sized(int file, void *data, size_t bytes, short direction, uint64_t until_ns)
{
    uint64_t size = bytes;

    if (move_all(file, &size, sizeof(size), direction, until_ns) != 0)
        return -1;
    if (size != bytes) {
        errno = EPROTO;
        return -1;
    }
    return move_all(file, data, bytes, direction, until_ns);
}

/* Every rank gives `bytes` and gets those of all ranks; -1 with a text if a rank does not. */
static int exchange(struct round *round, const void *mine, void *all, size_t bytes, char *text)
{
    uint64_t until = by_nccl_now() + round->timeout_ns;
    char *table = all;
    uint32_t culprit = 0;
    int error = 0;

    if (round->rank == 0)
        memcpy(table, mine, bytes);
    for (uint32_t rank = 1; error == 0 && round->rank == 0 && rank < round->ranks; rank++) {
        culprit = rank;
        error = move_sized(round->files[rank], table + rank * bytes, bytes, POLLIN, until);
    }
    for (uint32_t rank = 1; error == 0 && round->rank == 0 && rank < round->ranks; rank++) {
        culprit = rank;
        error = move_sized(round->files[rank], table, round->ranks * bytes, POLLOUT, until);
    }
    if (round->rank != 0) {
        void *copy = (void *)(uintptr_t)mine; /* send() does not write it */

        error = move_sized(round->files[0], copy, bytes, POLLOUT, until);
        /* rank 0 may wait for the last rank until its own deadline */
        if (error == 0)
            error =
                move_sized(round->files[0], table, round->ranks * bytes, POLLIN, until + round->timeout_ns);
    }
    if (error == 0)
        return 0;
    snprintf(text, BY_NCCL_TEXT_MAX,
             "rank %u gave no answer to rank %u within BANYAN_TIMEOUT, or has ended (%s)", culprit,
             round->rank, strerror(errno));
    return -1;
}

/* ---- facts ---- */

static void set_failed(struct by_nccl_facts *facts, banyan_status_t status)
{
    facts->status = status;
    snprintf(facts->text, sizeof(facts->text), "%s", banyan_last_error());
}

struct meeting {
    struct round *round;
    char text[BY_NCCL_TEXT_MAX];
};

/* For ranks without a table, which libbanyan connects to each other. */
static int allgather(void *context, const void *mine, void *all, size_t bytes)
{
    struct meeting *meeting = context;

    return exchange(meeting->round, mine, all, bytes, meeting->text);
}

static void prepare(const struct round *round, struct meeting *meeting, struct by_nccl_facts *facts,
                    struct banyan_context **context)
{
    struct by_nccl_settings settings = by_nccl_settings();
    struct banyan_bootstrap bootstrap = {.size = sizeof(bootstrap),
                                         .rank = round->rank,
                                         .rank_count = round->ranks,
                                         .context = meeting,
                                         .allgather = allgather};
    struct banyan_config config;
    struct banyan_query query;
    banyan_status_t status;

    memset(facts, 0, sizeof(*facts));
    facts->version = BANYAN_VERSION;
    facts->coll = settings.coll;
    facts->rate = settings.rate;
    facts->rate_latency_ns = settings.rate_latency_ns;
    facts->rank = round->rank;
    gethostname(facts->host, sizeof(facts->host) - 1);
    banyan_config_init(&config);
    config.bootstrap = &bootstrap; /* what a table lacks runs between the hosts */
    status = banyan_init(&config, context);
    if (status != BANYAN_OK) {
        set_failed(facts, status);
        return;
    }
    banyan_query_init(&query);
    status = banyan_context_query(*context, 0, &query);
    if (status == BANYAN_OK) {
        facts->rank = query.rank;
        facts->size = query.rank_count;
        facts->trees = query.path == BANYAN_TREES;
    }
    if (settings.coll == BY_NCCL_COLL_ON || (status == BANYAN_OK && facts->trees))
        return;
    if (status != BANYAN_OK) {
        set_failed(facts, status);
        return;
    }
    facts->status = BANYAN_EUNSUPPORTED;
    snprintf(facts->text, sizeof(facts->text), "no trees for an allreduce: %s", query.reason);
}

/* After the ranks have joined: what can be computed. */
static void complete(struct banyan_comm *comm, struct by_nccl_facts *facts)
{
    struct banyan_query query;

    facts->rank = banyan_comm_rank(comm);
    facts->size = banyan_comm_size(comm);
    facts->mode = banyan_comm_mode(comm);
    banyan_query_init(&query);
    query.count = 1u << 18;
    for (unsigned op = BANYAN_SUM; op <= BANYAN_MAX; op++)
        for (unsigned dtype = BANYAN_I8; dtype <= BANYAN_F64; dtype++) {
            query.op = (banyan_op_t)op;
            query.dtype = (banyan_dtype_t)dtype;
            if (banyan_supports_mode((banyan_mode_t)facts->mode, query.op, query.dtype) &&
                banyan_comm_query(comm, &query) == BANYAN_OK && query.path != BANYAN_NOWHERE)
                facts->reduces[op] |= (uint16_t)(1u << dtype);
        }
    facts->trees = banyan_comm_serves(comm, BANYAN_ALLREDUCE, 0) != 0;
}

int by_nccl_agree(const struct by_nccl_facts *all, uint32_t ranks, char text[BY_NCCL_TEXT_MAX])
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct by_nccl_facts *facts = &all[rank];

        if (facts->status != 0)
            snprintf(text, BY_NCCL_TEXT_MAX, "rank %u on %.63s: %.300s", rank, facts->host, facts->text);
        else if (facts->version != all[0].version)
            snprintf(text, BY_NCCL_TEXT_MAX,
                     "rank %u on %.63s has version %u of libbanyan, rank 0 has %u; install the same version",
                     rank, facts->host, facts->version, all[0].version);
        else if (facts->coll != all[0].coll)
            snprintf(
                text, BY_NCCL_TEXT_MAX,
                "BANYAN_NCCL_COLLNET differs between rank %u on %.63s and rank 0; use the same on all ranks",
                rank, facts->host);
        else if (facts->rate != all[0].rate || facts->rate_latency_ns != all[0].rate_latency_ns)
            snprintf(
                text, BY_NCCL_TEXT_MAX,
                "BANYAN_NCCL_RATE differs between rank %u on %.63s and rank 0; use the same on all ranks",
                rank, facts->host);
        else if ((facts->size == 0) != (all[0].size == 0))
            snprintf(text, BY_NCCL_TEXT_MAX, "rank %u on %.63s has %s table, and rank 0 has %s", rank,
                     facts->host, facts->size == 0 ? "no" : "a", facts->size == 0 ? "one" : "none");
        else if (facts->size != 0 && facts->size != ranks)
            snprintf(
                text, BY_NCCL_TEXT_MAX,
                "the tables are for %u ranks, and NCCL's communicator has %u; a communicator of all hosts of "
                "the job, with one rank on each, can use them",
                facts->size, ranks);
        else if (facts->size != 0 && facts->rank != rank)
            snprintf(
                text, BY_NCCL_TEXT_MAX,
                "NCCL's rank %u of hosts is %.63s, which is rank %u of the tables; start the ranks in the "
                "tables' order",
                rank, facts->host, facts->rank);
        else if (facts->mode != all[0].mode)
            snprintf(text, BY_NCCL_TEXT_MAX,
                     "BANYAN_MODE is %s at rank %u and %s at rank 0; use the same on all "
                     "ranks",
                     banyan_mode_name((banyan_mode_t)facts->mode), rank,
                     banyan_mode_name((banyan_mode_t)all[0].mode));
        else if (memcmp(facts->reduces, all[0].reduces, sizeof(facts->reduces)) != 0 ||
                 facts->trees != all[0].trees)
            snprintf(text, BY_NCCL_TEXT_MAX,
                     "the trees of rank %u on %.63s differ from those of rank 0; push tables that were made "
                     "together",
                     rank, facts->host);
        else
            continue;
        return 0;
    }
    return 1;
}

/* ---- rounds ---- */

/* One round: 1 if all ranks agree. */
static int agree(struct round *round, struct by_nccl_facts *mine, struct by_nccl_facts *all, char *text)
{
    if (exchange(round, mine, all, sizeof(*mine), text) != 0)
        return 0;
    return by_nccl_agree(all, round->ranks, text);
}

/* The first operation of all ranks, which detects tables left over from an earlier run. */
static banyan_status_t enter(struct banyan_comm *comm)
{
    float one = 1, sum = 0;
    banyan_status_t status = banyan_allreduce(comm, &one, &sum, 1, BANYAN_F32, BANYAN_SUM);

    return status;
}

static void describe(struct by_nccl_admission *admission, const struct by_nccl_facts *all, uint32_t ranks)
{
    snprintf(admission->text, sizeof(admission->text), "used: %u ranks, %s, transport %s, mode %s", ranks,
             all[0].trees ? "in the trees of the table" : "between the hosts, without switches",
             banyan_comm_transport(admission->comm), banyan_mode_name((banyan_mode_t)all[0].mode));
}

/* Three rounds: what each rank has, what it has joined, and the first operation. */
static int run_rounds(struct round *round, struct by_nccl_facts *all, struct by_nccl_admission *admission,
                      char *text)
{
    struct meeting meeting = {.round = round};
    struct by_nccl_facts mine;
    banyan_status_t status;

    prepare(round, &meeting, &mine, &admission->context);
    if (!agree(round, &mine, all, text))
        return 0;
    status = banyan_comm_create(admission->context, 0, &admission->comm);
    if (status == BANYAN_OK)
        complete(admission->comm, &mine);
    else
        set_failed(&mine, status);
    if (!agree(round, &mine, all, text))
        return 0;
    status = enter(admission->comm);
    if (status != BANYAN_OK)
        set_failed(&mine, status);
    if (!agree(round, &mine, all, text))
        return 0;
    memcpy(admission->reduces, all[0].reduces, sizeof(admission->reduces));
    describe(admission, all, round->ranks);
    return 1;
}

void by_nccl_admit(void *handles[], uint32_t ranks, uint32_t rank, struct by_nccl_listener *listener,
                   struct by_nccl_admission *admission)
{
    struct round round = {.rank = rank, .ranks = ranks, .timeout_ns = by_nccl_settings().timeout_ns};
    struct by_nccl_facts *all = calloc(ranks, sizeof(*all));
    char text[BY_NCCL_TEXT_MAX] = "insufficient memory";
    int good = 0;

    memset(admission, 0, sizeof(*admission));
    round.files = malloc(ranks * sizeof(*round.files));
    for (uint32_t i = 0; round.files != NULL && i < ranks; i++)
        round.files[i] = -1;
    if (all != NULL && round.files != NULL)
        good =
            (rank == 0 ? await_ranks(&round, listener, text) : visit_first(&round, handles[0], text)) == 0 &&
            run_rounds(&round, all, admission, text);
    for (uint32_t i = 0; round.files != NULL && i < ranks; i++)
        if (round.files[i] >= 0)
            close(round.files[i]);
    free(round.files);
    free(all);
    if (good)
        return;
    snprintf(admission->text, sizeof(admission->text), "not used: %s", text);
    if (admission->comm != NULL)
        banyan_comm_destroy(admission->comm);
    if (admission->context != NULL)
        banyan_finalize(admission->context);
    admission->comm = NULL;
    admission->context = NULL;
}
