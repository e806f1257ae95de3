/*
 * The component for Open MPI 4.1: one module for MPI_COMM_WORLD and for each communicator of the
 * same ranks. It executes the collectives that libbanyan supports and passes all others to the
 * previously selected module. Open MPI loads it from a folder of mca_base_component_path, which
 * banyan-run sets. Interface: ompi/mca/coll/coll.h, version 2.0.0 for components and 2.3.0 for
 * modules.
 */
#include <ompi_config.h>

#include <mpi.h>

#include <ompi/communicator/communicator.h>
#include <ompi/group/group.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/coll.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/shim.h"

/* above all components that use point-to-point messages; below those that only observe */
#define PRIORITY 95

/* X(collective): the blocking collectives that a module overrides. */
#define TAKEN_LIST(X)                                                                                        \
    X(allgather)                                                                                             \
    X(allgatherv)                                                                                            \
    X(allreduce)                                                                                             \
    X(barrier)                                                                                               \
    X(bcast)                                                                                                 \
    X(reduce)                                                                                                \
    X(reduce_scatter)                                                                                        \
    X(reduce_scatter_block)

struct module {
    mca_coll_base_module_t super;
#define X(name)                                                                                              \
    mca_coll_base_module_##name##_fn_t name;                                                                 \
    mca_coll_base_module_t *name##_module;
    TAKEN_LIST(X)
#undef X
};

OBJ_CLASS_DECLARATION(module);
typedef struct module module;

static void construct(struct module *self)
{
#define X(name)                                                                                              \
    self->name = NULL;                                                                                       \
    self->name##_module = NULL;
    TAKEN_LIST(X)
#undef X
}

static void destruct(struct module *self)
{
#define X(name)                                                                                              \
    if (self->name##_module != NULL)                                                                         \
        OBJ_RELEASE(self->name##_module);
    TAKEN_LIST(X)
#undef X
}

OBJ_CLASS_INSTANCE(module, mca_coll_base_module_t, construct, destruct);

static int gather(const struct by_shim_gather *on, const void *mine, void *all, int bytes)
{
    const struct module *self = on->module;

    return self->allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, on->comm, self->allgather_module);
}

static int ready(ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    struct by_shim_gather on = {.gather = gather, .comm = comm, .module = base};

    return by_shim_ready(&on);
}

static int allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                     ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) && by_shim_allreduce(send, recv, count, type, op, &code))
        return code;
    return self->allreduce(send, recv, count, type, op, comm, self->allreduce_module);
}

static int reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                  ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) && by_shim_reduce(send, recv, count, type, op, root, &code))
        return code;
    return self->reduce(send, recv, count, type, op, root, comm, self->reduce_module);
}

static int reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                                ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) && by_shim_reduce_scatter_block(send, recv, count, type, op, &code))
        return code;
    return self->reduce_scatter_block(send, recv, count, type, op, comm, self->reduce_scatter_block_module);
}

static int reduce_scatter(const void *send, void *recv, const int *counts, MPI_Datatype type, MPI_Op op,
                          ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) &&
        by_shim_reduce_scatter(send, recv, (struct by_shim_counts){.narrow = counts}, type, op, &code))
        return code;
    return self->reduce_scatter(send, recv, counts, type, op, comm, self->reduce_scatter_module);
}

static int bcast(void *buffer, int count, MPI_Datatype type, int root, ompi_communicator_t *comm,
                 mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) && by_shim_bcast(buffer, count, type, root, &code))
        return code;
    return self->bcast(buffer, count, type, root, comm, self->bcast_module);
}

static int allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                     MPI_Datatype recv_type, ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) &&
        by_shim_allgather(send, send_count, send_type, recv, recv_count, recv_type, &code))
        return code;
    return self->allgather(send, send_count, send_type, recv, recv_count, recv_type, comm,
                           self->allgather_module);
}

static int allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int *counts,
                      const int *places, MPI_Datatype recv_type, ompi_communicator_t *comm,
                      mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    const struct by_shim_counts each = {.narrow = counts};
    const struct by_shim_places where = {.narrow = places};
    int code;

    if (ready(comm, base) &&
        by_shim_allgatherv(send, send_count, send_type, recv, each, where, recv_type, &code))
        return code;
    return self->allgatherv(send, send_count, send_type, recv, counts, places, recv_type, comm,
                            self->allgatherv_module);
}

static int barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const struct module *self = (struct module *)base;
    int code;

    if (ready(comm, base) && by_shim_barrier(&code))
        return code;
    return self->barrier(comm, self->barrier_module);
}

/* Modules of lower priority are already enabled: calls are passed back to theirs. */
static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    struct module *self = (struct module *)base;

#define X(name)                                                                                              \
    if (comm->c_coll->coll_##name == NULL || comm->c_coll->coll_##name##_module == NULL)                     \
        return OMPI_ERR_NOT_FOUND;                                                                           \
    self->name = comm->c_coll->coll_##name;                                                                  \
    self->name##_module = comm->c_coll->coll_##name##_module;                                                \
    OBJ_RETAIN(self->name##_module);
    TAKEN_LIST(X)
#undef X
    return OMPI_SUCCESS;
}

/* Accepts communicators with the same ranks in the same order as MPI_COMM_WORLD. If several threads
 * may call at once, accepts only MPI_COMM_WORLD itself, since libbanyan requires one order of calls
 * over all of them. */
static int fits(ompi_communicator_t *comm)
{
    int same = MPI_UNEQUAL;

    if (comm == &ompi_mpi_comm_world.comm)
        return 1;
    if (ompi_mpi_thread_multiple || OMPI_COMM_IS_INTER(comm))
        return 0;
    ompi_group_compare(comm->c_local_group, ompi_mpi_comm_world.comm.c_local_group, &same);
    return same == MPI_IDENT;
}

static mca_coll_base_module_t *query(ompi_communicator_t *comm, int *priority)
{
    struct module *self;

    if (!fits(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    self = OBJ_NEW(module);
    if (self == NULL)
        return NULL;
    *priority = PRIORITY;
    self->super.coll_module_enable = enable;
#define X(name) self->super.coll_##name = name;
    TAKEN_LIST(X)
#undef X
    return &self->super;
}

static int init(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    return OMPI_SUCCESS;
}

OMPI_MODULE_DECLSPEC extern const mca_coll_base_component_2_0_0_t mca_coll_banyan_component;

const mca_coll_base_component_2_0_0_t mca_coll_banyan_component = {
    .collm_version =
        {
            MCA_COLL_BASE_VERSION_2_0_0,
            .mca_component_name = "banyan",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = init,
    .collm_comm_query = query,
};
