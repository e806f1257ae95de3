/* Translates MPI's collectives to libbanyan's; see shim.h. */
#include "host-driver/plugin/mpi/shim.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/types.h"
#include "host-driver/plugin/mpi/work.h"

#define ELEMENTS_MAX (INT64_MAX / 32) /* so that their bytes, at most 16 per element, fit as well */

enum shim_state { NOT_ASKED, ON, OFF };

static struct {
    enum shim_state state;
    int rank, size; /* of MPI_COMM_WORLD */
    uint32_t serves, log;
    uint64_t least;
    uint64_t *counts; /* one per rank */
    MPI_Comm silent;  /* carries no messages */
    int making;       /* `silent` is being created */
    int has_twin;     /* the program has created another communicator of all ranks */
} self;

/* ---- joining and leaving ---- */

void by_shim_idle(void)
{
    MPI_Status status;
    int found;

    /* A probe without a match is the portable way to let MPI progress messages that others wait
     * for. */
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self.silent, &found, &status);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first. */
static int finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    char text[BY_MPI_TEXT_MAX];

    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    by_mpi_tally(text, sizeof(text));
    if (self.rank == 0 && self.log > 0)
        fprintf(stderr, "banyan: MPI: %s\n", text);
    self.state = OFF;
    by_mpi_land();
    by_mpi_part();
    free(self.counts);
    self.counts = NULL;
    return MPI_SUCCESS;
}

static void call_at_finalize(void)
{
    int key;

    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize, &key, NULL) == MPI_SUCCESS)
        PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

typedef int judge_fn(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* One exchange of facts, and the decision. */
static int agree(const struct by_shim_gather *on, judge_fn *judge, const struct by_mpi_facts *mine,
                 char text[BY_MPI_TEXT_MAX])
{
    struct by_mpi_facts *all = calloc((size_t)self.size, sizeof(*all));
    int verdict;

    if (self.counts == NULL)
        self.counts = calloc((size_t)self.size, sizeof(*self.counts));
    if (all == NULL || self.counts == NULL) {
        fprintf(stderr, "banyan: MPI: no memory to agree among %d ranks: %zu bytes\n", self.size,
                (size_t)self.size * sizeof(*all));
        PMPI_Abort(MPI_COMM_WORLD, 3);
        free(all);
        return 0;
    }
    if (on->gather(on, mine, all, (int)sizeof(*mine)) != MPI_SUCCESS) {
        free(all);
        snprintf(text, BY_MPI_TEXT_MAX, "not offloaded: MPI could not exchange the settings of the ranks");
        return 0;
    }
    verdict = judge(all, (uint32_t)self.size, text);
    self.serves = all[0].serves;
    self.least = all[0].least;
    self.log = all[0].log;
    free(all);
    return verdict;
}

/* Creates a communicator with MPI_COMM_WORLD's ranks but without its attributes: MPI_Comm_dup would
 * run the user's copy functions. */
static int make_silent(void)
{
    MPI_Group all;
    int made;

    if (PMPI_Comm_group(MPI_COMM_WORLD, &all) != MPI_SUCCESS)
        return 0;
    self.making = 1;
    made = PMPI_Comm_create(MPI_COMM_WORLD, all, &self.silent) == MPI_SUCCESS;
    self.making = 0;
    PMPI_Group_free(&all);
    return made;
}

/* Lets the ranks of a host find each other, while they join. */
static int gather_places(void *context, const void *mine, void *all, size_t bytes)
{
    const struct by_shim_gather *on = context;

    return on->gather(on, mine, all, (int)bytes) == MPI_SUCCESS ? 0 : -1;
}

/* No rank opens a socket before all ranks have a place; then all ranks join, and the first
 * operation shows whether the switches accept them. */
static int enter(const struct by_shim_gather *on, char text[BY_MPI_TEXT_MAX])
{
    const struct banyan_bootstrap places = {.size = sizeof(places),
                                            .rank = (uint32_t)self.rank,
                                            .rank_count = (uint32_t)self.size,
                                            .context = (void *)(uintptr_t)on,
                                            .allgather = gather_places};
    struct by_mpi_facts mine;

    by_mpi_prepare(&mine, &places);
    if (!agree(on, by_mpi_seat, &mine, text))
        return 0;
    by_mpi_join(&mine);
    if (!agree(on, by_mpi_agree, &mine, text))
        return 0;
    if (!make_silent()) {
        snprintf(text, BY_MPI_TEXT_MAX, "not offloaded: MPI could not create a communicator");
        return 0;
    }
    by_mpi_enter(&mine, by_shim_idle);
    return agree(on, by_mpi_agree, &mine, text);
}

static void start(const struct by_shim_gather *on)
{
    char text[BY_MPI_TEXT_MAX] = "";

    PMPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &self.size);
    self.state = OFF;
    if (enter(on, text))
        self.state = ON;
    if (self.rank == 0 && self.log > 0)
        fprintf(stderr, "banyan: MPI: %s\n", text);
    if (self.state == OFF) {
        by_mpi_land();
        by_mpi_part();
    }
    call_at_finalize();
}

void by_shim_join(const struct by_shim_gather *on)
{
    if (self.state == NOT_ASKED)
        start(on);
}

/* ---- calls ---- */

static int left(enum by_mpi_reason reason)
{
    by_mpi_leave_to_mpi(reason);
    return 0;
}

int by_shim_ready(const struct by_shim_gather *on)
{
    by_shim_join(on);
    return self.state == ON || left(BY_MPI_OFF);
}

void by_shim_twin(void)
{
    if (!self.making)
        self.has_twin = 1;
}

/* The agreement would wait for ranks that may be waiting for what this rank does after its call. */
int by_shim_ready_now(void)
{
    if (self.making)
        return 0; /* a call of the plugin, by way of MPI */
    if (self.state == NOT_ASKED)
        return left(BY_MPI_EARLY);
    if (self.state == ON && self.has_twin)
        return left(BY_MPI_ORDER);
    return self.state == ON || left(BY_MPI_OFF);
}

void by_shim_pass(enum by_mpi_reason reason)
{
    by_mpi_leave_to_mpi(self.state == ON ? reason : BY_MPI_OFF);
}

int by_shim_code(const char *reason)
{
    static int class = MPI_ERR_LASTCODE;
    char text[MPI_MAX_ERROR_STRING];
    int code = MPI_ERR_OTHER;

    snprintf(text, sizeof(text), "banyan: %s", reason);
    if (self.log > 0)
        fprintf(stderr, "%s (MPI rank %d)\n", text, self.rank);
    if (class == MPI_ERR_LASTCODE && PMPI_Add_error_class(&class) != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(class, &code) == MPI_SUCCESS)
        PMPI_Add_error_string(code, text);
    return code;
}

/* Decides from facts that all ranks share whether a call is offloaded. `bytes`: total data. */
static int admitted(banyan_collective_t collective, uint64_t bytes)
{
    if (!(self.serves >> collective & 1))
        return left(BY_MPI_TABLE);
    if (bytes == 0)
        return left(BY_MPI_EMPTY);
    if (bytes < self.least)
        return left(BY_MPI_SMALL);
    return 1;
}

/* For a reduction of `count` elements at each rank: finds the type and operator, or the reason
 * against offload. */
static int reducible(banyan_collective_t collective, struct by_shim_work *work, int64_t count,
                     MPI_Datatype type, MPI_Op op)
{
    struct by_mpi_call *call = &work->flight.call;
    struct by_shim_reduction known;
    enum by_shim_found found;

    if (count < 0)
        return 0; /* MPI reports it to the user */
    if (count > ELEMENTS_MAX)
        return left(BY_MPI_LARGE);
    found = by_shim_find(type, op, &known);
    if (found == BY_SHIM_NO_TYPE)
        return left(BY_MPI_TYPE);
    if (found == BY_SHIM_NO_OP || !by_mpi_reduces(known.op, known.dtype))
        return left(BY_MPI_OPERATOR);
    work->shape = known.shape;
    work->form = known.shape.form == BY_MPI_AS_IS ? BY_SHIM_IN_PLACE : BY_SHIM_SHAPED;
    call->op = known.op;
    call->collective = collective;
    call->dtype = known.dtype;
    call->count = (uint64_t)count * known.each;
    return admitted(collective, call->count * banyan_dtype_size(known.dtype));
}

/* Prepares a reduction of elements that are used as they are or travel as others. */
static int prepare_shaped(struct by_shim_work *work)
{
    return by_shim_prepare(work, (work->sent + work->got) * by_mpi_wire_bytes(&work->shape));
}

int by_shim_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                      struct by_shim_work *work)
{
    *work = (struct by_shim_work){.send = send == MPI_IN_PLACE ? recv : send,
                                  .recv = recv,
                                  .sent = (uint64_t)count,
                                  .got = (uint64_t)count};
    return reducible(BANYAN_ALLREDUCE, work, count, type, op) && prepare_shaped(work);
}

int by_shim_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                   struct by_shim_work *work)
{
    int is_root = root == self.rank;

    *work = (struct by_shim_work){.send = send == MPI_IN_PLACE ? recv : send,
                                  .recv = is_root ? recv : NULL,
                                  .sent = (uint64_t)count,
                                  .got = is_root ? (uint64_t)count : 0,
                                  .flight.call.root = (uint32_t)root};
    if (root < 0 || root >= self.size)
        return 0;
    return reducible(BANYAN_REDUCE, work, count, type, op) && prepare_shaped(work);
}

/* A reduce-scatter of `sent` elements, of which `own` for this rank; `own_bytes` as libbanyan has
 * them. */
static int prepare_scatter(struct by_shim_work *work, const void *send, void *recv, uint64_t sent,
                           uint64_t own, uint64_t own_bytes)
{
    work->send = send == MPI_IN_PLACE ? recv : send;
    work->recv = recv;
    work->sent = sent;
    work->got = own;
    if (work->form == BY_SHIM_SHAPED || send != MPI_IN_PLACE)
        return prepare_shaped(work);
    /* MPI requires the result at the start of the input, which still holds another rank's share
     * that must be sent. */
    work->form = BY_SHIM_MOVED;
    work->got = own_bytes;
    return by_shim_prepare(work, own_bytes);
}

int by_shim_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                 struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;

    *work = (struct by_shim_work){0};
    if (count > ELEMENTS_MAX / self.size)
        return left(BY_MPI_LARGE);
    if (!reducible(BANYAN_REDUCE_SCATTER, work, count * self.size, type, op))
        return 0;
    call->count /= (uint64_t)self.size;
    return prepare_scatter(work, send, recv, (uint64_t)count * (uint64_t)self.size, (uint64_t)count,
                           call->count * banyan_dtype_size(call->dtype));
}

int by_shim_reduce_scatter(const void *send, void *recv, struct by_shim_counts counts, MPI_Datatype type,
                           MPI_Op op, struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    int64_t sum = 0;

    *work = (struct by_shim_work){0};
    for (int r = 0; r < self.size; r++) {
        int64_t count = by_shim_count_at(counts, r);

        if (count < 0)
            return 0; /* MPI reports it to the user */
        if (count > ELEMENTS_MAX - sum)
            return left(BY_MPI_LARGE);
        sum += count;
    }
    if (!reducible(BANYAN_REDUCE_SCATTER, work, sum, type, op))
        return 0;
    for (int r = 0; r < self.size; r++)
        self.counts[r] = (uint64_t)by_shim_count_at(counts, r) * (call->count / (uint64_t)sum);
    call->counts = self.counts;
    return prepare_scatter(work, send, recv, (uint64_t)sum, (uint64_t)by_shim_count_at(counts, self.rank),
                           self.counts[self.rank] * banyan_dtype_size(call->dtype));
}

int by_shim_barrier(struct by_shim_work *work)
{
    *work = (struct by_shim_work){.form = BY_SHIM_IN_PLACE, .flight.call.collective = BANYAN_BARRIER};
    if (!(self.serves >> BANYAN_BARRIER & 1))
        return left(BY_MPI_TABLE);
    return by_shim_prepare(work, 0);
}

/* ---- copies of bytes, independent of types ---- */

/* Returns the bytes in `count` elements; -1 if MPI must decide. */
static int64_t carried(int64_t count, MPI_Datatype type)
{
    MPI_Count size;

    if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return -1;
    return size > 0 && count > INT64_MAX / size ? INT64_MAX : count * size;
}

/* Elements of a named type are contiguous; those of other types may not be, and are packed. */
static int is_plain(MPI_Datatype type)
{
    int integers, addresses, types, combiner;

    return PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED && by_shim_type_is_dense(type);
}

int by_shim_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    int64_t bytes = carried(count, type);

    *work = (struct by_shim_work){.form = BY_SHIM_IN_PLACE,
                                  .recv = buffer,
                                  .got = (uint64_t)count,
                                  .type = type,
                                  .is_root = root == self.rank};
    if (bytes < 0 || root < 0 || root >= self.size)
        return 0;
    if (bytes > INT_MAX)
        return left(BY_MPI_LARGE);
    if (!admitted(BANYAN_BROADCAST, (uint64_t)bytes))
        return 0;
    *call = (struct by_mpi_call){.collective = BANYAN_BROADCAST,
                                 .dtype = BANYAN_U8,
                                 .op = BANYAN_BOR,
                                 .root = (uint32_t)root,
                                 .count = (uint64_t)bytes};
    if (!is_plain(type))
        work->form = BY_SHIM_PACKED;
    return by_shim_prepare(work, (size_t)bytes);
}

/* Whether the blocks follow each other in the order of ranks. */
static int in_order(const struct by_shim_gathering *g)
{
    int64_t sum = 0;

    for (int r = 0; r < self.size; sum += by_shim_count_of(g, r++))
        if (by_shim_place_at(g, r) != sum)
            return 0;
    return 1;
}

static int gather(struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    struct by_shim_gathering *g = &work->gathering;
    int64_t count = by_shim_count_before(g, self.size, ELEMENTS_MAX), bytes;
    int is_unequal = g->counts.narrow != NULL || g->counts.wide != NULL;
    MPI_Aint least;

    g->rank = self.rank;
    g->ranks = self.size;
    g->size = carried(1, g->recv_type);
    if (count < 0 || g->size < 0 || PMPI_Type_get_extent(g->recv_type, &least, &g->extent) != MPI_SUCCESS)
        return 0;
    if (g->size > 0 && count > INT_MAX / g->size)
        return left(BY_MPI_LARGE);
    bytes = count * g->size;
    if (!admitted(BANYAN_ALLGATHER, (uint64_t)bytes))
        return 0;
    /* Ranks may use different types for the same block, so only bytes are comparable. */
    for (int r = 0; is_unequal && r < self.size; r++)
        self.counts[r] = (uint64_t)(by_shim_count_of(g, r) * g->size);
    *call = (struct by_mpi_call){.collective = BANYAN_ALLGATHER,
                                 .dtype = BANYAN_U8,
                                 .op = BANYAN_BOR,
                                 .count = (uint64_t)(g->recv_count * g->size),
                                 .counts = is_unequal ? self.counts : NULL};
    work->form = BY_SHIM_GATHERED;
    if (is_plain(g->recv_type) && in_order(g) && (g->send == MPI_IN_PLACE || is_plain(g->send_type))) {
        work->form = BY_SHIM_IN_PLACE;
        work->send = g->send == MPI_IN_PLACE ? by_shim_place_of(g, self.rank) : g->send;
        work->recv = g->recv;
    }
    return by_shim_prepare(work, (size_t)bytes);
}

int by_shim_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                      MPI_Count recv_count, MPI_Datatype recv_type, struct by_shim_work *work)
{
    *work = (struct by_shim_work){.gathering = {.send = send,
                                                .send_count = send_count,
                                                .send_type = send_type,
                                                .recv = recv,
                                                .recv_count = recv_count,
                                                .recv_type = recv_type}};
    return gather(work);
}

int by_shim_allgatherv(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                       struct by_shim_counts counts, struct by_shim_places places, MPI_Datatype recv_type,
                       struct by_shim_work *work)
{
    *work = (struct by_shim_work){.gathering = {.send = send,
                                                .send_count = send_count,
                                                .send_type = send_type,
                                                .recv = recv,
                                                .recv_type = recv_type,
                                                .counts = counts,
                                                .places = places}};
    return gather(work);
}
