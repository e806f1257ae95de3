/*
 * The preload for MPICH: MPI's collectives over MPI_COMM_WORLD, and over communicators of the same ranks,
 * through libbanyan; all else, and what it cannot serve, through the PMPI functions. LD_PRELOAD it, or let
 * banyan-run do so. Handles of another MPI have another size, so it refuses to live in a process of one.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/shim.h"

#define PUBLIC __attribute__((visibility("default")))

static int key = MPI_KEYVAL_INVALID; /* of the attribute that keeps what `fits` found */
static const char yes, no;

static void refuse(const char *what)
{
    fprintf(
        stderr,
        "banyan: libbanyan-mpich.so was preloaded into a program of %s; run it without LD_PRELOAD, or under "
        "banyan-run, which takes the plugin that fits\n",
        what);
    _exit(3);
}

__attribute__((constructor)) static void look(void)
{
    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL)
        refuse("Open MPI");
}

/* An MPI that was loaded later, as Python does. */
static void look_again(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    look();
    PMPI_Get_library_version(version, &length);
    if (strstr(version, "MPICH") == NULL)
        refuse("an MPI that is no MPICH");
}

PUBLIC int MPI_Init(int *argc, char ***argv)
{
    look_again();
    return PMPI_Init(argc, argv);
}

PUBLIC int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    look_again();
    return PMPI_Init_thread(argc, argv, required, provided);
}

static int gather(const struct by_shim_gather *on, const void *mine, void *all, int bytes)
{
    return PMPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, on->comm);
}

/* The same ranks in the same order as MPI_COMM_WORLD; where several threads may call at once, that alone,
 * since libbanyan wants one order of calls over all. */
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

/* What the communicator wants done with an error. */
static int end(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

PUBLIC int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_allreduce(send, recv, count, type, op, &code))
        return end(comm, code);
    return PMPI_Allreduce(send, recv, count, type, op, comm);
}

PUBLIC int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_reduce(send, recv, count, type, op, root, &code))
        return end(comm, code);
    return PMPI_Reduce(send, recv, count, type, op, root, comm);
}

PUBLIC int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                                    MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_reduce_scatter_block(send, recv, count, type, op, &code))
        return end(comm, code);
    return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}

PUBLIC int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm)
{
    int code;

    if (counts != NULL && ready(comm) && by_shim_reduce_scatter(send, recv, counts, type, op, &code))
        return end(comm, code);
    return PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
}

PUBLIC int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_bcast(buffer, count, type, root, &code))
        return end(comm, code);
    return PMPI_Bcast(buffer, count, type, root, comm);
}

PUBLIC int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                         MPI_Datatype recv_type, MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_allgather(send, send_count, send_type, recv, recv_count, recv_type, &code))
        return end(comm, code);
    return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

PUBLIC int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                          const int counts[], const int places[], MPI_Datatype recv_type, MPI_Comm comm)
{
    int code;

    if (counts != NULL && places != NULL && ready(comm) &&
        by_shim_allgatherv(send, send_count, send_type, recv, counts, places, recv_type, &code))
        return end(comm, code);
    return PMPI_Allgatherv(send, send_count, send_type, recv, counts, places, recv_type, comm);
}

PUBLIC int MPI_Barrier(MPI_Comm comm)
{
    int code;

    if (ready(comm) && by_shim_barrier(&code))
        return end(comm, code);
    return PMPI_Barrier(comm);
}
