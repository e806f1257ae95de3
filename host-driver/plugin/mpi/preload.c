/*
 * The preload library for MPICH. MPI's collectives over MPI_COMM_WORLD, and over communicators of
 * the same ranks, run through libbanyan; unsupported calls run through MPICH's own functions. Load
 * it with LD_PRELOAD or with banyan-run. Handles of other MPIs have a different size, so it refuses
 * to run in a process of another MPI.
 *
 * It overrides every name of a collective: MPI_, PMPI_ and the large counts of each. Ranks of one
 * call may use different names, and MPICH's bindings do: the mpi_f08 binding calls PMPI_Barrier,
 * and others the functions of large counts.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/shim.h"

#define PUBLIC __attribute__((visibility("default")))

/* X(name): functions that are overridden here, and called in MPICH. */
#if MPI_VERSION >= 4
#define LARGE_LIST(X)                                                                                        \
    X(Allreduce_c)                                                                                           \
    X(Reduce_c)                                                                                              \
    X(Reduce_scatter_block_c)                                                                                \
    X(Reduce_scatter_c)                                                                                      \
    X(Bcast_c)                                                                                               \
    X(Allgather_c)                                                                                           \
    X(Allgatherv_c)
#else
#define LARGE_LIST(X)
#endif
#define REAL_LIST(X)                                                                                         \
    X(Init)                                                                                                  \
    X(Init_thread)                                                                                           \
    X(Allreduce)                                                                                             \
    X(Reduce)                                                                                                \
    X(Reduce_scatter_block)                                                                                  \
    X(Reduce_scatter)                                                                                        \
    X(Bcast)                                                                                                 \
    X(Allgather)                                                                                             \
    X(Allgatherv)                                                                                            \
    X(Barrier)                                                                                               \
    LARGE_LIST(X)

/* Aliases: PMPI's names of the functions below. */
#define X(name) extern __typeof__(MPI_##name) PMPI_##name PUBLIC __attribute__((alias("MPI_" #name)));
REAL_LIST(X)
#undef X

static struct {
#define X(name) __typeof__(MPI_##name) *name;
    REAL_LIST(X)
#undef X
} real;

static int key = MPI_KEYVAL_INVALID; /* attribute that caches the result of `fits` */
static const char yes, no;

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
    REAL_LIST(X)
#undef X
}

/* Repeats the lookup if MPI was loaded later, as Python does. */
static void look_again(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    look();
    PMPI_Get_library_version(version, &length);
    if (strstr(version, "MPICH") == NULL || real.Barrier == NULL)
        refuse("an MPI other than MPICH");
}

PUBLIC int MPI_Init(int *argc, char ***argv)
{
    look_again();
    return real.Init(argc, argv);
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    look_again();
    return real.Init_thread(argc, argv, required, provided);
}

static int gather(const struct by_shim_gather *on, const void *mine, void *all, int bytes)
{
    return real.Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, on->comm);
}

/* Accepts communicators with the same ranks in the same order as MPI_COMM_WORLD. If several threads
 * may call at once, accepts only MPI_COMM_WORLD itself, since libbanyan requires one order of calls
 * over all of them. */
static int fits(MPI_Comm comm)
{
    int between = 1, same = MPI_UNEQUAL, level = MPI_THREAD_MULTIPLE, known = 0;
    void *value = NULL;

    if (comm == MPI_COMM_WORLD)
        return 1;
    if (comm == MPI_COMM_NULL)
        return 0;
    if (key == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL) != MPI_SUCCESS)
        return 0;
    if (PMPI_Comm_get_attr(comm, key, &value, &known) == MPI_SUCCESS && known)
        return value == &yes;
    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE && PMPI_Comm_test_inter(comm, &between) == MPI_SUCCESS && !between)
        PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
    value = (void *)(same == MPI_CONGRUENT || same == MPI_IDENT ? &yes : &no);
    PMPI_Comm_set_attr(comm, key, value);
    return value == &yes;
}

static int ready(MPI_Comm comm)
{
    struct by_shim_gather on = {.gather = gather, .comm = comm};

    if (!fits(comm)) {
        by_mpi_leave_to_mpi(BY_MPI_COMMUNICATOR);
        return 0;
    }
    return by_shim_ready(&on);
}

/* Applies the communicator's error handler. */
static int end(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/* ---- MPICH's argument checks: on a communicator with only this process, the same functions refuse
 * the same arguments and send nothing. Calls with refused arguments go to MPICH, so that the user
 * gets MPICH's error message. */

static MPI_Comm alone = MPI_COMM_NULL;

static int can_check(void)
{
    MPI_Group self;

    if (alone == MPI_COMM_NULL && PMPI_Comm_group(MPI_COMM_SELF, &self) == MPI_SUCCESS) {
        if (PMPI_Comm_create(MPI_COMM_SELF, self, &alone) == MPI_SUCCESS)
            PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
        PMPI_Group_free(&self);
    }
    return alone != MPI_COMM_NULL;
}

/* 0 for NULL, MPI_IN_PLACE and an uncommitted type. A broadcast without other ranks moves
 * nothing. */
static int is_buffer(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    if (buffer == MPI_IN_PLACE)
        return 0;
    return !can_check() || count < 0 || count > INT_MAX ||
           real.Bcast((void *)buffer, (int)count, type, 0, alone) == MPI_SUCCESS;
}

/* Checks both buffers of a reduction on a rank that receives a result. MPICH would copy one to the
 * other here, so its check is used only if they are the same. */
static int are_buffers(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
    if (!is_buffer(recv, count, type) || (send != MPI_IN_PLACE && !is_buffer(send, count, type)))
        return 0;
    return send != recv || count > INT_MAX ||
           real.Allreduce(send, recv, (int)count, type, op, alone) == MPI_SUCCESS;
}

/* Like are_buffers, for an allgather; `own` is the destination of this rank's block. */
static int are_blocks(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *own,
                      MPI_Count recv_count, MPI_Datatype recv_type)
{
    if (!is_buffer(own, recv_count, recv_type) ||
        (send != MPI_IN_PLACE && !is_buffer(send, send_count, send_type)))
        return 0;
    return send != own || send_count > INT_MAX || recv_count > INT_MAX ||
           real.Allgather(send, (int)send_count, send_type, own, (int)recv_count, recv_type, alone) ==
               MPI_SUCCESS;
}

/* Returns element `index` of a buffer; the buffer itself if its type or the communicator is
 * invalid. */
static void *place_of(void *recv, MPI_Aint index, MPI_Datatype type)
{
    MPI_Aint least, extent;

    if (recv == NULL || recv == MPI_IN_PLACE || type == MPI_DATATYPE_NULL ||
        PMPI_Type_get_extent(type, &least, &extent) != MPI_SUCCESS)
        return recv;
    return (char *)recv + index * extent;
}

static int rank_of(MPI_Comm comm)
{
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    return rank;
}

/* ---- the functions */

static int allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm, int *code)
{
    return ready(comm) && are_buffers(send, recv, count, type, op) &&
           by_shim_allreduce(send, recv, count, type, op, code);
}

PUBLIC int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code;

    if (allreduce(send, recv, count, type, op, comm, &code))
        return end(comm, code);
    return real.Allreduce(send, recv, count, type, op, comm);
}

static int reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                  MPI_Comm comm, int *code)
{
    if (!ready(comm))
        return 0;
    if (root == rank_of(comm) ? !are_buffers(send, recv, count, type, op) : !is_buffer(send, count, type))
        return 0;
    return by_shim_reduce(send, recv, count, type, op, root, code);
}

PUBLIC int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm)
{
    int code;

    if (reduce(send, recv, count, type, op, root, comm, &code))
        return end(comm, code);
    return real.Reduce(send, recv, count, type, op, root, comm);
}

static int reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm, int *code)
{
    return ready(comm) && are_buffers(send, recv, count, type, op) &&
           by_shim_reduce_scatter_block(send, recv, count, type, op, code);
}

PUBLIC int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                                    MPI_Comm comm)
{
    int code;

    if (reduce_scatter_block(send, recv, count, type, op, comm, &code))
        return end(comm, code);
    return real.Reduce_scatter_block(send, recv, count, type, op, comm);
}

PUBLIC int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm)
{
    int code;

    if (counts != NULL && ready(comm) && are_buffers(send, recv, counts[rank_of(comm)], type, op) &&
        by_shim_reduce_scatter(send, recv, (struct by_shim_counts){.narrow = counts}, type, op, &code))
        return end(comm, code);
    return real.Reduce_scatter(send, recv, counts, type, op, comm);
}

PUBLIC int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code;

    if (ready(comm) && is_buffer(buffer, count, type) && by_shim_bcast(buffer, count, type, root, &code))
        return end(comm, code);
    return real.Bcast(buffer, count, type, root, comm);
}

static int allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                     MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm, int *code)
{
    return ready(comm) &&
           are_blocks(send, send_count, send_type, place_of(recv, rank_of(comm) * recv_count, recv_type),
                      recv_count, recv_type) &&
           by_shim_allgather(send, send_count, send_type, recv, recv_count, recv_type, code);
}

PUBLIC int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                         MPI_Datatype recv_type, MPI_Comm comm)
{
    int code;

    if (allgather(send, send_count, send_type, recv, recv_count, recv_type, comm, &code))
        return end(comm, code);
    return real.Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

PUBLIC int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                          const int counts[], const int places[], MPI_Datatype recv_type, MPI_Comm comm)
{
    const struct by_shim_counts each = {.narrow = counts};
    const struct by_shim_places where = {.narrow = places};
    int code;

    if (counts != NULL && places != NULL && ready(comm) &&
        are_blocks(send, send_count, send_type, place_of(recv, places[rank_of(comm)], recv_type),
                   counts[rank_of(comm)], recv_type) &&
        by_shim_allgatherv(send, send_count, send_type, recv, each, where, recv_type, &code))
        return end(comm, code);
    return real.Allgatherv(send, send_count, send_type, recv, counts, places, recv_type, comm);
}

PUBLIC int MPI_Barrier(MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_barrier(&code))
        return end(comm, code);
    return real.Barrier(comm);
}

/* ---- large counts */

#if MPI_VERSION >= 4
PUBLIC int MPI_Allreduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm)
{
    int code;

    if (allreduce(send, recv, count, type, op, comm, &code))
        return end(comm, code);
    return real.Allreduce_c(send, recv, count, type, op, comm);
}

PUBLIC int MPI_Reduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                        MPI_Comm comm)
{
    int code;

    if (reduce(send, recv, count, type, op, root, comm, &code))
        return end(comm, code);
    return real.Reduce_c(send, recv, count, type, op, root, comm);
}

PUBLIC int MPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                                      MPI_Op op, MPI_Comm comm)
{
    int code;

    if (reduce_scatter_block(send, recv, count, type, op, comm, &code))
        return end(comm, code);
    return real.Reduce_scatter_block_c(send, recv, count, type, op, comm);
}

PUBLIC int MPI_Reduce_scatter_c(const void *send, void *recv, const MPI_Count counts[], MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm)
{
    int code;

    if (counts != NULL && ready(comm) && are_buffers(send, recv, counts[rank_of(comm)], type, op) &&
        by_shim_reduce_scatter(send, recv, (struct by_shim_counts){.wide = counts}, type, op, &code))
        return end(comm, code);
    return real.Reduce_scatter_c(send, recv, counts, type, op, comm);
}

PUBLIC int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code;

    if (ready(comm) && is_buffer(buffer, count, type) && by_shim_bcast(buffer, count, type, root, &code))
        return end(comm, code);
    return real.Bcast_c(buffer, count, type, root, comm);
}

PUBLIC int MPI_Allgather_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                           MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
    int code;

    if (allgather(send, send_count, send_type, recv, recv_count, recv_type, comm, &code))
        return end(comm, code);
    return real.Allgather_c(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

PUBLIC int MPI_Allgatherv_c(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                            const MPI_Count counts[], const MPI_Aint places[], MPI_Datatype recv_type,
                            MPI_Comm comm)
{
    const struct by_shim_counts each = {.wide = counts};
    const struct by_shim_places where = {.wide = places};
    int code;

    if (counts != NULL && places != NULL && ready(comm) &&
        are_blocks(send, send_count, send_type, place_of(recv, places[rank_of(comm)], recv_type),
                   counts[rank_of(comm)], recv_type) &&
        by_shim_allgatherv(send, send_count, send_type, recv, each, where, recv_type, &code))
        return end(comm, code);
    return real.Allgatherv_c(send, send_count, send_type, recv, counts, places, recv_type, comm);
}
#endif
