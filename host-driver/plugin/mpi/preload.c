/*
 * The preload library for MPICH. MPI's collectives run through libbanyan; unsupported calls run
 * through MPICH's own functions. Load it with LD_PRELOAD or with banyan-run. Handles of other MPIs
 * have a different size, so it refuses to run in a process of another MPI.
 *
 * It overrides every name of a collective: MPI_, PMPI_ and the large counts of each. Ranks of one
 * call may use different names, and MPICH's bindings do: the mpi_f08 binding calls PMPI_Barrier,
 * and others the functions of large counts.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/preload.h"

/* Parameters before the communicator, with the types of counts and of places. */
#define REDUCTION(COUNT, PLACE) (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, )
#define ROOTED_REDUCTION(COUNT, PLACE)                                                                       \
    (const void *send, void *recv, COUNT count, MPI_Datatype type, MPI_Op op, int root, )
#define SCATTER(COUNT, PLACE)                                                                                \
    (const void *send, void *recv, const COUNT counts[], MPI_Datatype type, MPI_Op op, )
#define BROADCAST(COUNT, PLACE) (void *buffer, COUNT count, MPI_Datatype type, int root, )
#define GATHER(COUNT, PLACE)                                                                                 \
    (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,               \
     MPI_Datatype recv_type, )
#define GATHER_V(COUNT, PLACE)                                                                               \
    (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, const COUNT counts[],           \
     const PLACE places[], MPI_Datatype recv_type, )

/* X(blocking, non-blocking, PARAMETERS, (arguments,), check and preparation of `work`): the
 * collectives that are overridden here, and called in MPICH. */
#define COUNTED_LIST(X)                                                                                      \
    X(Allreduce, Iallreduce, REDUCTION, (send, recv, count, type, op, ),                                     \
      by_preload_are_buffers(send, recv, count, type, op) &&                                                 \
          by_shim_allreduce(at, send, recv, count, type, op, &work))                                         \
    X(Reduce, Ireduce, ROOTED_REDUCTION, (send, recv, count, type, op, root, ),                              \
      by_preload_are_rooted(send, recv, count, type, op, root, comm) &&                                      \
          by_shim_reduce(at, send, recv, count, type, op, root, &work))                                      \
    X(Reduce_scatter_block, Ireduce_scatter_block, REDUCTION, (send, recv, count, type, op, ),               \
      by_preload_are_buffers(send, recv, count, type, op) &&                                                 \
          by_shim_reduce_scatter_block(at, send, recv, count, type, op, &work))                              \
    X(Reduce_scatter, Ireduce_scatter, SCATTER, (send, recv, counts, type, op, ),                            \
      counts != NULL && by_preload_are_buffers(send, recv, counts[by_preload_rank(comm)], type, op) &&       \
          by_shim_reduce_scatter(at, send, recv, COUNTS(counts), type, op, &work))                           \
    X(Bcast, Ibcast, BROADCAST, (buffer, count, type, root, ),                                               \
      by_preload_is_buffer(buffer, count, type) && by_shim_bcast(at, buffer, count, type, root, &work))      \
    X(Allgather, Iallgather, GATHER, (send, send_count, send_type, recv, recv_count, recv_type, ),           \
      by_preload_are_blocks(send, send_count, send_type,                                                     \
                            by_preload_place(recv, by_preload_rank(comm) * recv_count, recv_type),           \
                            recv_count, recv_type) &&                                                        \
          by_shim_allgather(at, send, send_count, send_type, recv, recv_count, recv_type, &work))            \
    X(Allgatherv, Iallgatherv, GATHER_V, (send, send_count, send_type, recv, counts, places, recv_type, ),   \
      counts != NULL && places != NULL &&                                                                    \
          by_preload_are_blocks(send, send_count, send_type,                                                 \
                                by_preload_place(recv, places[by_preload_rank(comm)], recv_type),            \
                                counts[by_preload_rank(comm)], recv_type) &&                                 \
          by_shim_allgatherv(at, send, send_count, send_type, recv, COUNTS(counts), PLACES(places),          \
                             recv_type, &work))
#define BARRIER(COUNT, PLACE) ()
#define BARRIER_LIST(X)       X(Barrier, Ibarrier, BARRIER, (), by_shim_barrier(at, &work))

/* X(blocking, non-blocking, PARAMETERS, (arguments,), reason): those that stay with MPI, and are
 * counted. */
#define ROOTED(COUNT, PLACE)                                                                                 \
    (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, COUNT recv_count,               \
     MPI_Datatype recv_type, int root, )
#define GATHER_TO(COUNT, PLACE)                                                                              \
    (const void *send, COUNT send_count, MPI_Datatype send_type, void *recv, const COUNT counts[],           \
     const PLACE places[], MPI_Datatype recv_type, int root, )
#define SCATTER_FROM(COUNT, PLACE)                                                                           \
    (const void *send, const COUNT counts[], const PLACE places[], MPI_Datatype send_type, void *recv,       \
     COUNT recv_count, MPI_Datatype recv_type, int root, )
#define EACH(COUNT, PLACE)                                                                                   \
    (const void *send, const COUNT send_counts[], const PLACE send_places[], MPI_Datatype send_type,         \
     void *recv, const COUNT recv_counts[], const PLACE recv_places[], MPI_Datatype recv_type, )
#define EACH_TYPED(COUNT, PLACE)                                                                             \
    (const void *send, const COUNT send_counts[], const PLACE send_places[], const MPI_Datatype send_type[], \
     void *recv, const COUNT recv_counts[], const PLACE recv_places[], const MPI_Datatype recv_type[], )
#define ONE(at, number, of)                                                                                  \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at), .count = (number), .type = (of)})
#define ALL(at, numbers, where, of)                                                                          \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at),                                                \
                           .counts = COUNTS(numbers),                                                        \
                           .places = PLACES(where),                                                          \
                           .type = (of)})
#define TYPED(at, numbers, where, of)                                                                        \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at),                                                \
                           .counts = COUNTS(numbers),                                                        \
                           .places = PLACES(where),                                                          \
                           .types = (of)})
/* X(blocking, non-blocking, PARAMETERS, (arguments,), collective of libbanyan, check and
 * preparation of `work`): those that libbanyan runs if the ranks are connected. */
#define EXCHANGE_LIST(X)                                                                                     \
    X(Alltoall, Ialltoall, GATHER, (send, send_count, send_type, recv, recv_count, recv_type, ),             \
      BANYAN_ALLTOALL,                                                                                       \
      by_preload_are_sides(send, send_count, send_type, recv, recv_count, recv_type) &&                      \
          by_shim_alltoall(at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), &work))   \
    X(Alltoallv, Ialltoallv, EACH,                                                                           \
      (send, send_counts, send_places, send_type, recv, recv_counts, recv_places, recv_type, ),              \
      BANYAN_ALLTOALL,                                                                                       \
      recv_counts != NULL && recv_places != NULL &&                                                          \
          (send == MPI_IN_PLACE || (send_counts != NULL && send_places != NULL)) &&                          \
          by_preload_are_sides(send, 0, send_type, recv, 0, recv_type) &&                                    \
          by_shim_alltoall(at, ALL(send, send_counts, send_places, send_type),                               \
                           ALL(recv, recv_counts, recv_places, recv_type), &work))                           \
    X(Alltoallw, Ialltoallw, EACH_TYPED,                                                                     \
      (send, send_counts, send_places, send_type, recv, recv_counts, recv_places, recv_type, ),              \
      BANYAN_ALLTOALL,                                                                                       \
      recv_counts != NULL && recv_places != NULL && recv_type != NULL && send != recv &&                     \
          (send == MPI_IN_PLACE || (send_counts != NULL && send_places != NULL && send_type != NULL)) &&     \
          by_preload_are_typed(at, TYPED(recv, recv_counts, recv_places, recv_type)) &&                      \
          (send == MPI_IN_PLACE ||                                                                           \
           by_preload_are_typed(at, TYPED(send, send_counts, send_places, send_type))) &&                    \
          by_shim_alltoall(at, TYPED(send, send_counts, send_places, send_type),                             \
                           TYPED(recv, recv_counts, recv_places, recv_type), &work))                         \
    X(Gather, Igather, ROOTED, (send, send_count, send_type, recv, recv_count, recv_type, root, ),           \
      BANYAN_GATHER,                                                                                         \
      by_preload_is_root_side(recv, recv_count, recv_type, root, comm) &&                                    \
          by_preload_is_own_side(send, send_count, send_type, root, comm) &&                                 \
          by_shim_gather(at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), root, 0,    \
                         &work))                                                                             \
    X(Gatherv, Igatherv, GATHER_TO, (send, send_count, send_type, recv, counts, places, recv_type, root, ),  \
      BANYAN_GATHER,                                                                                         \
      by_preload_is_own_side(send, send_count, send_type, root, comm) &&                                     \
          (root != by_preload_rank(comm) || (counts != NULL && places != NULL)) &&                           \
          by_preload_is_root_side(recv, 0, recv_type, root, comm) &&                                         \
          by_shim_gather(at, ONE(send, send_count, send_type), ALL(recv, counts, places, recv_type), root,   \
                         1, &work))                                                                          \
    X(Scatter, Iscatter, ROOTED, (send, send_count, send_type, recv, recv_count, recv_type, root, ),         \
      BANYAN_SCATTER,                                                                                        \
      by_preload_is_root_side(send, send_count, send_type, root, comm) &&                                    \
          by_preload_is_own_side(recv, recv_count, recv_type, root, comm) &&                                 \
          by_shim_scatter(at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), root, 0,   \
                          &work))                                                                            \
    X(Scatterv, Iscatterv, SCATTER_FROM,                                                                     \
      (send, counts, places, send_type, recv, recv_count, recv_type, root, ), BANYAN_SCATTER,                \
      by_preload_is_own_side(recv, recv_count, recv_type, root, comm) &&                                     \
          (root != by_preload_rank(comm) || (counts != NULL && places != NULL)) &&                           \
          by_preload_is_root_side(send, 0, send_type, root, comm) &&                                         \
          by_shim_scatter(at, ALL(send, counts, places, send_type), ONE(recv, recv_count, recv_type), root,  \
                          1, &work))
#define PASSED_LIST(X)                                                                                       \
    X(Exscan, Iexscan, REDUCTION, (send, recv, count, type, op, ), PREFIX)                                   \
    X(Scan, Iscan, REDUCTION, (send, recv, count, type, op, ), PREFIX)

#define BARE(...) __VA_ARGS__
#define COUNTS(counts)                                                                                       \
    _Generic(*(counts), int                                                                                  \
             : (struct by_shim_counts){.narrow = (const void *)(counts)}, default                            \
             : (struct by_shim_counts){.wide = (const void *)(counts)})
#define PLACES(places)                                                                                       \
    _Generic(*(places), int                                                                                  \
             : (struct by_shim_places){.narrow = (const void *)(places)}, default                            \
             : (struct by_shim_places){.wide = (const void *)(places)})

/* X(function, (parameters), (arguments)): functions that make a communicator. */
#define MAKER_LIST(X)                                                                                        \
    X(Comm_dup, (MPI_Comm comm, MPI_Comm * made), (comm, made))                                              \
    X(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * made), (comm, info, made))               \
    X(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm * made), (comm, group, made))                   \
    X(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),                          \
      (comm, group, tag, made))                                                                              \
    X(Comm_split, (MPI_Comm comm, int color, int order, MPI_Comm *made), (comm, color, order, made))         \
    X(Comm_split_type, (MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm *made),                  \
      (comm, type, order, info, made))                                                                       \
    X(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))                        \
    X(Cart_create,                                                                                           \
      (MPI_Comm comm, int axes, const int sizes[], const int periods[], int reorder, MPI_Comm *made),        \
      (comm, axes, sizes, periods, reorder, made))                                                           \
    X(Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *made), (comm, kept, made))                       \
    X(Graph_create,                                                                                          \
      (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),         \
      (comm, nodes, index, edges, reorder, made))                                                            \
    X(Dist_graph_create,                                                                                     \
      (MPI_Comm comm, int count, const int sources[], const int degrees[], const int targets[],              \
       const int weights[], MPI_Info info, int reorder, MPI_Comm *made),                                     \
      (comm, count, sources, degrees, targets, weights, info, reorder, made))                                \
    X(Dist_graph_create_adjacent,                                                                            \
      (MPI_Comm comm, int in_count, const int sources[], const int in_weights[], int out_count,              \
       const int targets[], const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made),            \
      (comm, in_count, sources, in_weights, out_count, targets, out_weights, info, reorder, made))

/* X(name) for every function above, and those of their own. */
#if MPI_VERSION >= 4
#define NAME_LARGE(X, name)      X(name##_c)
#define NAME_PERSISTENT(X, name) X(name##_init)
#else
#define NAME_LARGE(X, name)
#define NAME_PERSISTENT(X, name)
#endif
#define NAME(name, iname, parameters, arguments, way) X(name) X(iname) NAME_PERSISTENT(X, name)
#define NAME_COUNTED(name, iname, parameters, arguments, ...)                                                \
    NAME(name, iname, parameters, arguments, 0)                                                              \
    NAME_LARGE(X, name) NAME_LARGE(X, iname) NAME_LARGE(X, name##_init)
#define NAME_MAKER(name, parameters, arguments) X(name)
#define REAL_LIST                                                                                            \
    X(Init)                                                                                                  \
    X(Init_thread)                                                                                           \
    X(Comm_idup)                                                                                             \
    MAKER_LIST(NAME_MAKER)                                                                                   \
    COUNTED_LIST(NAME_COUNTED)                                                                               \
    EXCHANGE_LIST(NAME_COUNTED)                                                                              \
    PASSED_LIST(NAME_COUNTED)                                                                                \
    BARRIER_LIST(NAME)

/* Aliases: PMPI's names of the functions below. */
#define X(name) extern __typeof__(MPI_##name) PMPI_##name PUBLIC __attribute__((alias("MPI_" #name)));
REAL_LIST
#undef X

static struct {
#define X(name) __typeof__(MPI_##name) *name;
    REAL_LIST
#undef X
} real;

static int key = MPI_KEYVAL_INVALID; /* attribute with the by_shim_comm of a communicator */
static struct by_shim_comm *world;

static void refuse(const char *what)
{
    fprintf(stderr,
            "banyan: libbanyan-mpich.so was preloaded into a program of %s; run it without LD_PRELOAD, or "
            "under banyan-run, which selects the right plugin\n",
            what);
    _exit(3);
}

__attribute__((constructor)) static void look(void)
{
    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL)
        refuse("Open MPI");
#define X(name) *(void **)&real.name = dlsym(RTLD_NEXT, "PMPI_" #name);
    REAL_LIST
#undef X
    by_preload_look_checks();
    by_preload_look_requests();
}

#define ANY_NAME "PMPI_Get_library_version"

/* Makes the functions of MPI visible here. Python loads its modules, and MPI with them, in a scope
 * of their own. */
static void show_mpi(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    struct link_map *object = NULL;

    if (dlsym(RTLD_DEFAULT, ANY_NAME) != NULL || program == NULL)
        return;
    dlinfo(program, RTLD_DI_LINKMAP, &object);
    for (; object != NULL; object = object->l_next) {
        void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
        void *found = handle != NULL ? dlsym(handle, ANY_NAME) : NULL;
        Dl_info at;

        /* `object` may only depend on the library that has them */
        if (found != NULL && dladdr(found, &at) != 0)
            dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
        if (handle != NULL)
            dlclose(handle);
        if (found != NULL)
            return;
    }
}

/* Repeats the lookup if MPI was loaded later, as Python does. */
static void look_again(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    show_mpi();
    look();
    if (dlsym(RTLD_DEFAULT, ANY_NAME) != NULL)
        PMPI_Get_library_version(version, &length);
    if (strstr(version, "MPICH") == NULL || real.Barrier == NULL)
        refuse("an MPI other than MPICH");
}

static int gather(const struct by_shim_gather *on, const void *mine, void *all, int bytes)
{
    return real.Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, on->comm);
}

static int exchange(const struct by_shim_gather *on, banyan_collective_t collective, const void *send,
                    void *recv, int bytes)
{
    if (collective == BANYAN_ALLTOALL)
        return real.Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, on->comm);
    return (collective == BANYAN_SCATTER ? real.Scatter : real.Gather)(send, bytes, MPI_BYTE, recv, bytes,
                                                                       MPI_BYTE, 0, on->comm);
}

static int spread(const struct by_shim_gather *on, void *whole, int bytes, MPI_Request *request)
{
    return real.Ibcast(whole, bytes, MPI_BYTE, 0, on->comm, request);
}

static struct by_shim_gather over(MPI_Comm comm, int is_now)
{
    return (struct by_shim_gather){
        .gather = gather, .exchange = exchange, .spread = spread, .comm = comm, .is_now = is_now};
}

static int forget(MPI_Comm comm, int number, void *value, void *extra)
{
    (void)comm;
    (void)number;
    (void)extra;
    by_shim_comm_free(value);
    return MPI_SUCCESS;
}

static struct by_shim_comm *make(MPI_Comm comm)
{
    enum by_shim_kind kind = BY_SHIM_WORLD;
    int between = 1, same = MPI_UNEQUAL, rank = 0, size = 1;

    if (comm != MPI_COMM_WORLD) {
        PMPI_Comm_test_inter(comm, &between);
        if (!between)
            PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
        kind = between                                      ? BY_SHIM_INTER
               : same == MPI_CONGRUENT || same == MPI_IDENT ? BY_SHIM_TWIN
                                                            : BY_SHIM_PART;
    }
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    return by_shim_comm_new(kind, rank, size);
}

/* Returns the state of a communicator, which it makes at the first call; NULL: an invalid one, or
 * no memory. */
static struct by_shim_comm *at_of(MPI_Comm comm)
{
    struct by_shim_comm *at = NULL;
    int known = 0;

    if (comm == MPI_COMM_WORLD) {
        if (world == NULL)
            world = make(comm);
        return world;
    }
    if (comm == MPI_COMM_NULL)
        return NULL;
    if (key == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL) != MPI_SUCCESS)
        return NULL;
    if (PMPI_Comm_get_attr(comm, key, (void *)&at, &known) == MPI_SUCCESS && known)
        return at;
    at = make(comm);
    if (at != NULL && PMPI_Comm_set_attr(comm, key, at) != MPI_SUCCESS) {
        by_shim_comm_free(at);
        at = NULL;
    }
    return at;
}

static int ready(struct by_shim_comm *at, MPI_Comm comm)
{
    struct by_shim_gather on = over(comm, 0);

    return by_shim_ready(at, &on);
}

/* The same for a call that must not wait for other ranks. */
static int ready_now(struct by_shim_comm *at, MPI_Comm comm)
{
    struct by_shim_gather on = over(comm, 1);

    return by_shim_ready_now(at, &on);
}

static int exchanges(struct by_shim_comm *at, MPI_Comm comm, banyan_collective_t collective, int is_now)
{
    struct by_shim_gather on = over(comm, is_now);

    return by_shim_exchanges(at, &on, collective);
}

/* ---- the functions */

#define OVERRIDE(name, parameters, arguments, way)                                                           \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm)                                                     \
    {                                                                                                        \
        struct by_shim_comm *at = at_of(comm);                                                               \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (way)                                                                                             \
            return by_preload_end(comm, by_shim_run(&work));                                                 \
        return real.name(BARE arguments comm);                                                               \
    }
#define OVERRIDE_NOW(name, parameters, arguments, way)                                                       \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm, MPI_Request *request)                               \
    {                                                                                                        \
        struct by_shim_comm *at = at_of(comm);                                                               \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (request != NULL && way)                                                                          \
            return by_preload_end(comm, by_preload_begin(&work, request));                                   \
        return real.name(BARE arguments comm, request);                                                      \
    }
#define X(name, iname, parameters, arguments, preparation)                                                   \
    OVERRIDE(name, parameters(int, int), arguments, ready(at, comm) && preparation)                          \
    OVERRIDE_NOW(iname, parameters(int, int), arguments, ready_now(at, comm) && preparation)
COUNTED_LIST(X)
BARRIER_LIST(X)
#undef X
#if MPI_VERSION >= 4
#define X(name, iname, parameters, arguments, preparation)                                                   \
    OVERRIDE(name##_c, parameters(MPI_Count, MPI_Aint), arguments, ready(at, comm) && preparation)           \
    OVERRIDE_NOW(iname##_c, parameters(MPI_Count, MPI_Aint), arguments, ready_now(at, comm) && preparation)
COUNTED_LIST(X)
#undef X
#endif

#define X(name, iname, parameters, arguments, collective, preparation)                                       \
    OVERRIDE(name, parameters(int, int), arguments, exchanges(at, comm, collective, 0) && preparation)       \
    OVERRIDE_NOW(iname, parameters(int, int), arguments, exchanges(at, comm, collective, 1) && preparation)
EXCHANGE_LIST(X)
#undef X
#if MPI_VERSION >= 4
#define X(name, iname, parameters, arguments, collective, preparation)                                       \
    OVERRIDE(name##_c, parameters(MPI_Count, MPI_Aint), arguments,                                           \
             exchanges(at, comm, collective, 0) && preparation)                                              \
    OVERRIDE_NOW(iname##_c, parameters(MPI_Count, MPI_Aint), arguments,                                      \
                 exchanges(at, comm, collective, 1) && preparation)
EXCHANGE_LIST(X)
#undef X
#endif

#define OVERRIDE_PERSISTENT(name, parameters, arguments, way)                                                \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm, MPI_Info info, MPI_Request *request)                \
    {                                                                                                        \
        struct by_shim_comm *at = at_of(comm);                                                               \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (request != NULL && by_shim_persists(at) && way)                                                  \
            return by_preload_end(comm, by_preload_stand(&work, comm, request));                             \
        return real.name(BARE arguments comm, info, request);                                                \
    }
#if MPI_VERSION >= 4
#define X(name, iname, parameters, arguments, preparation)                                                   \
    OVERRIDE_PERSISTENT(name##_init, parameters(int, int), arguments, ready_now(at, comm) && preparation)
COUNTED_LIST(X)
BARRIER_LIST(X)
#undef X
#define X(name, iname, parameters, arguments, preparation)                                                   \
    OVERRIDE_PERSISTENT(name##_init_c, parameters(MPI_Count, MPI_Aint), arguments,                           \
                        ready_now(at, comm) && preparation)
COUNTED_LIST(X)
#undef X
#define X(name, iname, parameters, arguments, collective, preparation)                                       \
    OVERRIDE_PERSISTENT(name##_init, parameters(int, int), arguments,                                        \
                        exchanges(at, comm, collective, 1) && preparation)                                   \
    OVERRIDE_PERSISTENT(name##_init_c, parameters(MPI_Count, MPI_Aint), arguments,                           \
                        exchanges(at, comm, collective, 1) && preparation)
EXCHANGE_LIST(X)
#undef X
#endif

/* ---- calls that stay with MPI */

static void pass(MPI_Comm comm, enum by_mpi_reason reason)
{
    by_shim_pass(at_of(comm), reason);
}

#define PASS(name, parameters, arguments, reason)                                                            \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm)                                                     \
    {                                                                                                        \
        pass(comm, BY_MPI_##reason);                                                                         \
        return real.name(BARE arguments comm);                                                               \
    }
#define PASS_NOW(name, parameters, arguments, reason)                                                        \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm, MPI_Request *request)                               \
    {                                                                                                        \
        pass(comm, BY_MPI_##reason);                                                                         \
        return real.name(BARE arguments comm, request);                                                      \
    }
#define PASS_PERSISTENT(name, parameters, arguments)                                                         \
    PUBLIC int MPI_##name(BARE parameters MPI_Comm comm, MPI_Info info, MPI_Request *request)                \
    {                                                                                                        \
        pass(comm, BY_MPI_PERSISTENT);                                                                       \
        return real.name(BARE arguments comm, info, request);                                                \
    }
#define X(name, iname, parameters, arguments, reason)                                                        \
    PASS(name, parameters(int, int), arguments, reason)                                                      \
    PASS_NOW(iname, parameters(int, int), arguments, reason)
PASSED_LIST(X)
#undef X
#if MPI_VERSION >= 4
#define X(name, iname, parameters, arguments, reason)                                                        \
    PASS(name##_c, parameters(MPI_Count, MPI_Aint), arguments, reason)                                       \
    PASS_NOW(iname##_c, parameters(MPI_Count, MPI_Aint), arguments, reason)
PASSED_LIST(X)
#undef X
#define X(name, iname, parameters, arguments, ...)                                                           \
    PASS_PERSISTENT(name##_init, parameters(int, int), arguments)                                            \
    PASS_PERSISTENT(name##_init_c, parameters(MPI_Count, MPI_Aint), arguments)
PASSED_LIST(X)
#undef X
#endif

/* ---- communicators of all ranks are found when they are made: all ranks do that at the same place
 * in the order of their calls */

#define X(name, parameters, arguments)                                                                       \
    PUBLIC int MPI_##name parameters                                                                         \
    {                                                                                                        \
        int code = real.name arguments;                                                                      \
                                                                                                             \
        if (code == MPI_SUCCESS && made != NULL)                                                             \
            at_of(*made);                                                                                    \
        return code;                                                                                         \
    }
MAKER_LIST(X)
#undef X

/* The new communicator is not usable yet. */
PUBLIC int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    const struct by_shim_comm *at = at_of(comm);

    if (at != NULL && (at->kind == BY_SHIM_WORLD || at->kind == BY_SHIM_TWIN))
        by_shim_twin();
    return real.Comm_idup(comm, made, request);
}

/* ---- the start: ranks agree here, since a first call that must not wait for other ranks cannot
 * agree */

static void join(void)
{
    struct by_shim_gather on = over(MPI_COMM_WORLD, 0);

    by_shim_join(&on);
}

PUBLIC int MPI_Init(int *argc, char ***argv)
{
    int code;

    look_again();
    code = real.Init(argc, argv);
    if (code == MPI_SUCCESS)
        join();
    return code;
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code;

    look_again();
    code = real.Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        join();
    return code;
}
