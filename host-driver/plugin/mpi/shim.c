/* Translates MPI's collectives to libbanyan's; see shim.h. */
#include "host-driver/plugin/mpi/shim.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/types.h"

#define ELEMENTS_MAX (INT64_MAX / 32) /* so that their bytes, at most 16 per element, fit as well */

enum shim_state { NOT_ASKED, ON, OFF };

static struct {
    enum shim_state state;
    int rank, size; /* of MPI_COMM_WORLD */
    uint32_t serves, log;
    uint64_t least;
    uint64_t *counts; /* one per rank */
    MPI_Comm silent;  /* carries no messages */
} self;

/* ---- joining and leaving ---- */

static void idle(void)
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
    made = PMPI_Comm_create(MPI_COMM_WORLD, all, &self.silent) == MPI_SUCCESS;
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
    by_mpi_enter(&mine, idle);
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
    if (self.state == OFF)
        by_mpi_part();
    call_at_finalize();
}

int by_shim_ready(const struct by_shim_gather *on)
{
    if (self.state == NOT_ASKED)
        start(on);
    if (self.state == OFF)
        by_mpi_leave_to_mpi(BY_MPI_OFF);
    return self.state == ON;
}

/* ---- calls ---- */

static int left(enum by_mpi_reason reason)
{
    by_mpi_leave_to_mpi(reason);
    return 0;
}

/* Returns an MPI error code that carries libbanyan's text. */
static int code_of(int status)
{
    static int class = MPI_ERR_LASTCODE;
    char text[MPI_MAX_ERROR_STRING];
    int code = MPI_ERR_OTHER;

    snprintf(text, sizeof(text), "banyan: %s", banyan_last_error());
    if (self.log > 0)
        fprintf(stderr, "%s (MPI rank %d)\n", text, self.rank);
    if (class == MPI_ERR_LASTCODE && PMPI_Add_error_class(&class) != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(class, &code) == MPI_SUCCESS)
        PMPI_Add_error_string(code, text);
    (void)status;
    return code;
}

static int run(const struct by_mpi_call *call, int *code)
{
    int status = by_mpi_run(call, idle);

    *code = status == 0 ? MPI_SUCCESS : code_of(status);
    return 1;
}

static int no_memory(size_t bytes, int *code)
{
    fprintf(stderr, "banyan: no memory for a temporary buffer of %zu bytes (MPI rank %d)\n", bytes,
            self.rank);
    *code = MPI_ERR_NO_MEM;
    return 1;
}

static int64_t count_at(struct by_shim_counts counts, int rank)
{
    return counts.wide != NULL ? counts.wide[rank] : counts.narrow[rank];
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
static int reducible(banyan_collective_t collective, struct by_mpi_call *call, struct by_mpi_shape *shape,
                     int64_t count, MPI_Datatype type, MPI_Op op)
{
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
    *shape = known.shape;
    call->op = known.op;
    call->collective = collective;
    call->dtype = known.dtype;
    call->count = (uint64_t)count * known.each;
    return admitted(collective, call->count * banyan_dtype_size(known.dtype));
}

/* Runs a reduction that sends `sent` and receives `received` elements of the user at this rank,
 * converted if libbanyan lacks their type. */
static int run_shaped(struct by_mpi_call *call, const struct by_mpi_shape *shape, uint64_t sent,
                      uint64_t received, int *code)
{
    unsigned wire = by_mpi_wire_bytes(shape);
    void *recv = call->recv;
    uint8_t *room;

    if (shape->form == BY_MPI_AS_IS)
        return run(call, code);
    room = malloc((sent + received) * wire + 1);
    if (room == NULL)
        return no_memory((sent + received) * wire, code);
    by_mpi_encode(shape, call->send, sent, room);
    call->send = room;
    call->recv = received > 0 ? room + sent * wire : NULL;
    run(call, code);
    if (*code == MPI_SUCCESS && received > 0)
        by_mpi_decode(shape, call->recv, received, recv);
    free(room);
    return 1;
}

int by_shim_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int *code)
{
    struct by_mpi_call call = {.send = send == MPI_IN_PLACE ? recv : send, .recv = recv};
    struct by_mpi_shape shape;

    return reducible(BANYAN_ALLREDUCE, &call, &shape, count, type, op) &&
           run_shaped(&call, &shape, (uint64_t)count, (uint64_t)count, code);
}

int by_shim_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                   int *code)
{
    struct by_mpi_call call = {
        .send = send == MPI_IN_PLACE ? recv : send, .recv = recv, .root = (uint32_t)root};
    struct by_mpi_shape shape;

    if (root < 0 || root >= self.size)
        return 0;
    if (root != self.rank)
        call.recv = NULL;
    return reducible(BANYAN_REDUCE, &call, &shape, count, type, op) &&
           run_shaped(&call, &shape, (uint64_t)count, root == self.rank ? (uint64_t)count : 0, code);
}

/* A reduce-scatter that gives this rank `own` elements of the `sent` elements. */
static int scatter(struct by_mpi_call *call, const struct by_mpi_shape *shape, uint64_t sent, uint64_t own,
                   int *code)
{
    size_t bytes = own * banyan_dtype_size(call->dtype);
    void *recv = call->recv;
    int taken;

    if (shape->form != BY_MPI_AS_IS) {
        if (call->send == MPI_IN_PLACE)
            call->send = recv;
        return run_shaped(call, shape, sent, own, code);
    }
    if (call->send != MPI_IN_PLACE)
        return run(call, code);
    /* MPI requires the result at the start of the input, which still holds another rank's share
     * that must be sent. */
    call->send = recv;
    call->recv = malloc(bytes > 0 ? bytes : 1);
    if (call->recv == NULL)
        return no_memory(bytes, code);
    taken = run(call, code);
    if (*code == MPI_SUCCESS)
        memcpy(recv, call->recv, bytes);
    free(call->recv);
    return taken;
}

int by_shim_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                 int *code)
{
    struct by_mpi_call call = {.send = send, .recv = recv};
    struct by_mpi_shape shape;

    if (count > ELEMENTS_MAX / self.size)
        return left(BY_MPI_LARGE);
    if (!reducible(BANYAN_REDUCE_SCATTER, &call, &shape, count * self.size, type, op))
        return 0;
    call.count /= (uint64_t)self.size;
    return scatter(&call, &shape, (uint64_t)count * (uint64_t)self.size, call.count, code);
}

int by_shim_reduce_scatter(const void *send, void *recv, struct by_shim_counts counts, MPI_Datatype type,
                           MPI_Op op, int *code)
{
    struct by_mpi_call call = {.send = send, .recv = recv, .counts = self.counts};
    struct by_mpi_shape shape;
    int64_t sum = 0;

    for (int r = 0; r < self.size; r++) {
        int64_t count = count_at(counts, r);

        if (count < 0)
            return 0; /* MPI reports it to the user */
        if (count > ELEMENTS_MAX - sum)
            return left(BY_MPI_LARGE);
        sum += count;
    }
    if (!reducible(BANYAN_REDUCE_SCATTER, &call, &shape, sum, type, op))
        return 0;
    for (int r = 0; r < self.size; r++)
        self.counts[r] = (uint64_t)count_at(counts, r) * (call.count / (uint64_t)sum);
    return scatter(&call, &shape, (uint64_t)sum, self.counts[self.rank], code);
}

int by_shim_barrier(int *code)
{
    struct by_mpi_call call = {.collective = BANYAN_BARRIER};

    if (!(self.serves >> BANYAN_BARRIER & 1))
        return left(BY_MPI_TABLE);
    return run(&call, code);
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

/* Packs at most INT_MAX bytes, so a larger count can only be of empty elements. */
static int pack(const void *from, int64_t count, MPI_Datatype type, void *to, int bytes)
{
    int at = 0;

    return bytes == 0 ? MPI_SUCCESS : PMPI_Pack(from, (int)count, type, to, bytes, &at, MPI_COMM_SELF);
}

static int unpack(const void *from, int bytes, void *to, int64_t count, MPI_Datatype type)
{
    int at = 0;

    return bytes == 0 ? MPI_SUCCESS : PMPI_Unpack(from, bytes, &at, to, (int)count, type, MPI_COMM_SELF);
}

int by_shim_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, int *code)
{
    struct by_mpi_call call = {
        .collective = BANYAN_BROADCAST, .dtype = BANYAN_U8, .op = BANYAN_BOR, .recv = buffer};
    int64_t bytes = carried(count, type);

    if (bytes < 0 || root < 0 || root >= self.size)
        return 0;
    if (bytes > INT_MAX)
        return left(BY_MPI_LARGE);
    if (!admitted(BANYAN_BROADCAST, (uint64_t)bytes))
        return 0;
    call.root = (uint32_t)root;
    call.count = (uint64_t)bytes;
    if (is_plain(type))
        return run(&call, code);
    call.recv = malloc((size_t)bytes);
    if (call.recv == NULL)
        return no_memory((size_t)bytes, code);
    *code = root == self.rank ? pack(buffer, count, type, call.recv, (int)bytes) : MPI_SUCCESS;
    if (*code == MPI_SUCCESS)
        run(&call, code);
    if (*code == MPI_SUCCESS && root != self.rank)
        *code = unpack(call.recv, (int)bytes, buffer, count, type);
    free(call.recv);
    return 1;
}

struct gathering {
    const void *send;
    int64_t send_count;
    MPI_Datatype send_type;
    void *recv;
    /* of each rank's block; */
    int64_t recv_count;
    /* or, unless NULL, of all ranks, */
    struct by_shim_counts counts;
    /* and the positions of their blocks, in elements */
    struct by_shim_places places;
    MPI_Datatype recv_type;
    MPI_Aint extent; /* of recv_type */
    int64_t size;    /* bytes of data in one of its elements */
};

static int is_unequal(const struct gathering *g)
{
    return g->counts.narrow != NULL || g->counts.wide != NULL;
}

static int64_t count_of(const struct gathering *g, int rank)
{
    return is_unequal(g) ? count_at(g->counts, rank) : g->recv_count;
}

/* Returns a position in elements. */
static int64_t place_at(const struct gathering *g, int rank)
{
    if (!is_unequal(g))
        return rank * g->recv_count;
    return g->places.wide != NULL ? g->places.wide[rank] : g->places.narrow[rank];
}

static void *place_of(const struct gathering *g, int rank)
{
    return (char *)g->recv + place_at(g, rank) * g->extent;
}

/* Returns the elements of all ranks before `rank`. -1: a count is negative, which MPI reports to
 * the user. */
static int64_t count_before(const struct gathering *g, int rank)
{
    int64_t sum = 0;

    for (int r = 0; r < rank; r++) {
        int64_t count = count_of(g, r);

        if (count < 0)
            return -1;
        sum = count > ELEMENTS_MAX - sum ? ELEMENTS_MAX : sum + count;
    }
    return sum;
}

static int in_order(const struct gathering *g)
{
    int64_t sum = 0;

    for (int r = 0; is_unequal(g) && r < self.size; sum += count_of(g, r++))
        if (place_at(g, r) != sum)
            return 0;
    return 1;
}

/* Uses temporary buffers: `whole` for the blocks of all ranks, with the own block packed into its
 * place. */
static int gather_packed(const struct gathering *g, struct by_mpi_call *call, char *whole, int *code)
{
    char *mine = whole + count_before(g, self.rank) * g->size;
    int bytes = (int)(count_of(g, self.rank) * g->size);

    if (g->send == MPI_IN_PLACE)
        *code = pack(place_of(g, self.rank), count_of(g, self.rank), g->recv_type, mine, bytes);
    else
        *code = pack(g->send, g->send_count, g->send_type, mine, bytes);
    call->send = mine;
    call->recv = whole;
    if (*code == MPI_SUCCESS)
        run(call, code);
    for (int r = 0; r < self.size && *code == MPI_SUCCESS; r++) {
        bytes = (int)(count_of(g, r) * g->size);
        if (r != self.rank || g->send != MPI_IN_PLACE)
            *code = unpack(whole, bytes, place_of(g, r), count_of(g, r), g->recv_type);
        whole += bytes;
    }
    return 1;
}

static int gather(struct gathering *g, int *code)
{
    struct by_mpi_call call = {.collective = BANYAN_ALLGATHER, .dtype = BANYAN_U8, .op = BANYAN_BOR};
    int64_t count = count_before(g, self.size), bytes;
    MPI_Aint least;
    char *whole;

    g->size = carried(1, g->recv_type);
    if (count < 0 || g->size < 0 || PMPI_Type_get_extent(g->recv_type, &least, &g->extent) != MPI_SUCCESS)
        return 0;
    if (g->size > 0 && count > INT_MAX / g->size)
        return left(BY_MPI_LARGE);
    bytes = count * g->size;
    if (!admitted(BANYAN_ALLGATHER, (uint64_t)bytes))
        return 0;
    call.count = (uint64_t)(g->recv_count * g->size);
    /* Ranks may use different types for the same block, so only bytes are comparable. */
    for (int r = 0; is_unequal(g) && r < self.size; r++)
        self.counts[r] = (uint64_t)(count_of(g, r) * g->size);
    call.counts = is_unequal(g) ? self.counts : NULL;
    if (is_plain(g->recv_type) && in_order(g) && (g->send == MPI_IN_PLACE || is_plain(g->send_type))) {
        call.send = g->send == MPI_IN_PLACE ? place_of(g, self.rank) : g->send;
        call.recv = g->recv;
        return run(&call, code);
    }
    whole = malloc((size_t)bytes);
    if (whole == NULL)
        return no_memory((size_t)bytes, code);
    gather_packed(g, &call, whole, code);
    free(whole);
    return 1;
}

int by_shim_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                      MPI_Count recv_count, MPI_Datatype recv_type, int *code)
{
    struct gathering g = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .recv = recv,
                          .recv_count = recv_count,
                          .recv_type = recv_type};

    return gather(&g, code);
}

int by_shim_allgatherv(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                       struct by_shim_counts counts, struct by_shim_places places, MPI_Datatype recv_type,
                       int *code)
{
    struct gathering g = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .recv = recv,
                          .recv_type = recv_type,
                          .counts = counts,
                          .places = places};

    return gather(&g, code);
}
