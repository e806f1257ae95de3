/*
 * The component for Open MPI 4.1: one module for each communicator. It executes the collectives
 * that libbanyan supports and passes all others to the previously selected module. Open MPI loads
 * it from a folder of mca_base_component_path, which banyan-run sets. Interface:
 * ompi/mca/coll/coll.h, version 2.0.0 for components and 2.3.0 for modules.
 */
#include <ompi_config.h>

#include <mpi.h>

/* This header includes one that Open MPI does not install; only a name in it is used. */
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;

#include <ompi/communicator/communicator.h>
#include <ompi/group/group.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/base/coll_base_util.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/mca/hook/hook.h>
#include <ompi/request/request.h>
#include <opal/runtime/opal_progress.h>

#include "host-driver/plugin/mpi/core.h"
#include "host-driver/plugin/mpi/origin.h"
#include "host-driver/plugin/mpi/shim.h"

/* above all components that use point-to-point messages; below those that only observe */
#define PRIORITY 95

/* X(collective, (parameters,), (arguments,), preparation of `work`). Parameters and arguments are
 * those before the communicator. */
#define TAKEN_LIST(X)                                                                                        \
    X(allgather,                                                                                             \
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,                 \
       MPI_Datatype recv_type, ),                                                                            \
      (send, send_count, send_type, recv, recv_count, recv_type, ),                                          \
      by_shim_allgather(self->at, send, send_count, send_type, recv, recv_count, recv_type, &work))          \
    X(allgatherv,                                                                                            \
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, const int *counts,              \
       const int *places, MPI_Datatype recv_type, ),                                                         \
      (send, send_count, send_type, recv, counts, places, recv_type, ),                                      \
      by_shim_allgatherv(self->at, send, send_count, send_type, recv,                                        \
                         (struct by_shim_counts){.narrow = counts},                                          \
                         (struct by_shim_places){.narrow = places}, recv_type, &work))                       \
    X(allreduce, (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, ),                  \
      (send, recv, count, type, op, ), by_shim_allreduce(self->at, send, recv, count, type, op, &work))      \
    X(barrier, (), (), by_shim_barrier(self->at, &work))                                                     \
    X(bcast, (void *buffer, int count, MPI_Datatype type, int root, ), (buffer, count, type, root, ),        \
      by_shim_bcast(self->at, buffer, count, type, root, &work))                                             \
    X(reduce, (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root, ),           \
      (send, recv, count, type, op, root, ),                                                                 \
      by_shim_reduce(self->at, send, recv, count, type, op, root, &work))                                    \
    X(reduce_scatter, (const void *send, void *recv, const int *counts, MPI_Datatype type, MPI_Op op, ),     \
      (send, recv, counts, type, op, ),                                                                      \
      by_shim_reduce_scatter(self->at, send, recv, (struct by_shim_counts){.narrow = counts}, type, op,      \
                             &work))                                                                         \
    X(reduce_scatter_block, (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, ),       \
      (send, recv, count, type, op, ),                                                                       \
      by_shim_reduce_scatter_block(self->at, send, recv, count, type, op, &work))

/* X(collective, (parameters,), (arguments,), reason): those that stay with MPI, and are counted. */
#define GATHERING()                                                                                          \
    const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,                    \
        MPI_Datatype recv_type
#define EACH(TYPE)                                                                                           \
    const void *send, const int *send_counts, const int *send_places, TYPE send_type, void *recv,            \
        const int *recv_counts, const int *recv_places, TYPE recv_type
#define ONE(at, number, of)                                                                                  \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at), .count = (number), .type = (of)})
#define ALL(at, numbers, where, of)                                                                          \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at),                                                \
                           .counts = {.narrow = (numbers)},                                                  \
                           .places = {.narrow = (where)},                                                    \
                           .type = (of)})
#define TYPED(at, numbers, where, of)                                                                        \
    ((struct by_shim_side){.buffer = (void *)(uintptr_t)(at),                                                \
                           .counts = {.narrow = (numbers)},                                                  \
                           .places = {.narrow = (where)},                                                    \
                           .types = (of)})
/* X(collective, (parameters,), (arguments,), collective of libbanyan, preparation of `work`): those
 * that libbanyan runs if the ranks are connected. */
#define EXCHANGE_LIST(X)                                                                                     \
    X(alltoall, (GATHERING(), ), (send, send_count, send_type, recv, recv_count, recv_type, ),               \
      BANYAN_ALLTOALL,                                                                                       \
      by_shim_alltoall(self->at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), &work)) \
    X(alltoallv, (EACH(MPI_Datatype), ),                                                                     \
      (send, send_counts, send_places, send_type, recv, recv_counts, recv_places, recv_type, ),              \
      BANYAN_ALLTOALL,                                                                                       \
      by_shim_alltoall(self->at, ALL(send, send_counts, send_places, send_type),                             \
                       ALL(recv, recv_counts, recv_places, recv_type), &work))                               \
    X(alltoallw, (EACH(ompi_datatype_t *const *), ),                                                         \
      (send, send_counts, send_places, send_type, recv, recv_counts, recv_places, recv_type, ),              \
      BANYAN_ALLTOALL,                                                                                       \
      by_shim_alltoall(self->at, TYPED(send, send_counts, send_places, send_type),                           \
                       TYPED(recv, recv_counts, recv_places, recv_type), &work))                             \
    X(gather, (GATHERING(), int root, ), (send, send_count, send_type, recv, recv_count, recv_type, root, ), \
      BANYAN_GATHER,                                                                                         \
      by_shim_gather(self->at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), root, 0,  \
                     &work))                                                                                 \
    X(gatherv,                                                                                               \
      (const void *send, int send_count, MPI_Datatype send_type, void *recv, const int *counts,              \
       const int *places, MPI_Datatype recv_type, int root, ),                                               \
      (send, send_count, send_type, recv, counts, places, recv_type, root, ), BANYAN_GATHER,                 \
      by_shim_gather(self->at, ONE(send, send_count, send_type), ALL(recv, counts, places, recv_type), root, \
                     1, &work))                                                                              \
    X(scatter, (GATHERING(), int root, ),                                                                    \
      (send, send_count, send_type, recv, recv_count, recv_type, root, ), BANYAN_SCATTER,                    \
      by_shim_scatter(self->at, ONE(send, send_count, send_type), ONE(recv, recv_count, recv_type), root, 0, \
                      &work))                                                                                \
    X(scatterv,                                                                                              \
      (const void *send, const int *counts, const int *places, MPI_Datatype send_type, void *recv,           \
       int recv_count, MPI_Datatype recv_type, int root, ),                                                  \
      (send, counts, places, send_type, recv, recv_count, recv_type, root, ), BANYAN_SCATTER,                \
      by_shim_scatter(self->at, ALL(send, counts, places, send_type), ONE(recv, recv_count, recv_type),      \
                      root, 1, &work))
#define PASSED_LIST(X)                                                                                       \
    X(exscan, (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, ),                     \
      (send, recv, count, type, op, ), PREFIX)                                                               \
    X(scan, (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, ),                       \
      (send, recv, count, type, op, ), PREFIX)

#define BARE(...) __VA_ARGS__

/* All slots of modules that are overridden. */
#define FORMS(SLOT, name)   SLOT(name) SLOT(i##name) SLOT(name##_init)
#define FORMS_OF(name, ...) FORMS(SLOT, name)
#define SLOT_LIST           TAKEN_LIST(FORMS_OF) EXCHANGE_LIST(FORMS_OF) PASSED_LIST(FORMS_OF)

/* What handled the calls before. */
struct module {
    mca_coll_base_module_t super;
    struct by_shim_comm *at;
#define SLOT(name)                                                                                           \
    mca_coll_base_module_##name##_fn_t name;                                                                 \
    mca_coll_base_module_t *name##_module;
    SLOT_LIST
#undef SLOT
};

OBJ_CLASS_DECLARATION(module);
typedef struct module module;

static void construct(struct module *self)
{
    self->at = NULL;
#define SLOT(name)                                                                                           \
    self->name = NULL;                                                                                       \
    self->name##_module = NULL;
    SLOT_LIST
#undef SLOT
}

static void destruct(struct module *self)
{
    by_shim_comm_free(self->at);
#define SLOT(name)                                                                                           \
    if (self->name##_module != NULL)                                                                         \
        OBJ_RELEASE(self->name##_module);
    SLOT_LIST
#undef SLOT
}

OBJ_CLASS_INSTANCE(module, mca_coll_base_module_t, construct, destruct);

/* ---- the blocking calls ---- */

static int gather_bytes(const struct by_shim_gather *on, const void *mine, void *all, int bytes)
{
    const struct module *self = on->module;

    return self->allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, on->comm, self->allgather_module);
}

static int exchange_bytes(const struct by_shim_gather *on, banyan_collective_t collective, const void *send,
                          void *recv, int bytes)
{
    const struct module *self = on->module;

    if (collective == BANYAN_ALLTOALL)
        return self->alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, on->comm, self->alltoall_module);
    if (collective == BANYAN_SCATTER)
        return self->scatter(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, on->comm, self->scatter_module);
    return self->gather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, on->comm, self->gather_module);
}

static int spread_bytes(const struct by_shim_gather *on, void *whole, int bytes, MPI_Request *request)
{
    const struct module *self = on->module;

    return self->ibcast(whole, bytes, MPI_BYTE, 0, on->comm, request, self->ibcast_module);
}

/* Whether Open MPI itself makes the call that returns to `caller`, for example to agree on the
 * number of a new communicator: in its library, but not in the function of this collective. -1:
 * unknown. */
static int is_own(const char *collective, const void *caller)
{
    return by_mpi_is_apart((const void *)(uintptr_t)ompi_group_compare, caller, collective);
}

static struct by_shim_gather over(ompi_communicator_t *comm, mca_coll_base_module_t *base, int is_now,
                                  int is_own)
{
    return (struct by_shim_gather){.gather = gather_bytes,
                                   .exchange = exchange_bytes,
                                   .spread = spread_bytes,
                                   .comm = comm,
                                   .module = base,
                                   .is_now = is_now,
                                   .is_own = is_own};
}

static int ready(ompi_communicator_t *comm, mca_coll_base_module_t *base, int is_own)
{
    struct by_shim_gather on = over(comm, base, 0, is_own);

    return by_shim_ready(((struct module *)base)->at, &on);
}

/* The same for a call that must not wait for other ranks. */
static int ready_now(ompi_communicator_t *comm, mca_coll_base_module_t *base, int is_own)
{
    struct by_shim_gather on = over(comm, base, 1, is_own);

    return by_shim_ready_now(((struct module *)base)->at, &on);
}

static int exchanges(ompi_communicator_t *comm, mca_coll_base_module_t *base, banyan_collective_t collective,
                     int is_now, int is_own)
{
    struct by_shim_gather on = over(comm, base, is_now, is_own);

    return by_shim_exchanges(((struct module *)base)->at, &on, collective);
}

static int run(const struct module *self, struct by_shim_work *work)
{
    work->flight.is_own = self->at->is_own;
    return by_shim_run(work);
}

#define IS_OWN(name) is_own(#name, __builtin_return_address(0))
#define X(name, parameters, arguments, preparation)                                                          \
    static int name(BARE parameters ompi_communicator_t *comm, mca_coll_base_module_t *base)                 \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (ready(comm, base, IS_OWN(name)) && preparation)                                                  \
            return run(self, &work);                                                                         \
        return self->name(BARE arguments comm, self->name##_module);                                         \
    }
TAKEN_LIST(X)
#undef X
#define X(name, parameters, arguments, collective, preparation)                                              \
    static int name(BARE parameters ompi_communicator_t *comm, mca_coll_base_module_t *base)                 \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (exchanges(comm, base, collective, 0, IS_OWN(name)) && preparation)                               \
            return run(self, &work);                                                                         \
        return self->name(BARE arguments comm, self->name##_module);                                         \
    }
EXCHANGE_LIST(X)
#undef X

/* ---- requests ---- */

/* MPI keeps types and operators of the user in the base of a request. */
struct component_request {
    ompi_coll_base_nbc_request_t super;
    struct component_request *next;
    struct by_shim_work work;
};

OBJ_CLASS_DECLARATION(component_request);
typedef struct component_request component_request;
OBJ_CLASS_INSTANCE(component_request, ompi_coll_base_nbc_request_t, NULL, NULL);

/* Calls under way, and those that have ended and are not completed. */
static struct {
    opal_mutex_t lock;
    struct component_request *first;
    int is_registered;
} air = {.lock = OPAL_MUTEX_STATIC_INIT};

static struct component_request *take_ended(void)
{
    struct component_request **at = &air.first, *found;

    opal_mutex_lock(&air.lock);
    while (*at != NULL && !by_mpi_has_ended(&(*at)->work.flight))
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    opal_mutex_unlock(&air.lock);
    return found;
}

/* Open MPI calls it while it waits for anything. */
static int progress(void)
{
    struct component_request *ended;
    int count = 0;

    if (air.first == NULL)
        return 0;
    by_mpi_progress();
    while ((ended = take_ended()) != NULL) {
        ompi_request_t *request = &ended->super.super;

        request->req_status.MPI_ERROR = by_shim_finish(&ended->work);
        ompi_request_complete(request, true);
        count++;
    }
    return count;
}

static int release(ompi_request_t **handle)
{
    struct component_request *request = (struct component_request *)*handle;

    if (!REQUEST_COMPLETE(*handle))
        return MPI_ERR_REQUEST;
    by_shim_release(&request->work);
    OMPI_REQUEST_FINI(*handle);
    OBJ_RELEASE(request);
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* Starts a call, whose request is the user's. */
static int take_off(struct component_request *request)
{
    ompi_request_t *base = &request->super.super;
    int code = by_shim_start(&request->work);

    if (code != MPI_SUCCESS)
        return code;
    base->req_complete = REQUEST_PENDING;
    base->req_state = OMPI_REQUEST_ACTIVE;
    opal_mutex_lock(&air.lock);
    request->next = air.first;
    air.first = request;
    if (!air.is_registered)
        air.is_registered = opal_progress_register(progress) == OPAL_SUCCESS;
    opal_mutex_unlock(&air.lock);
    return OMPI_SUCCESS;
}

/* MPI_Start and MPI_Startall of persistent requests. */
static int start_all(size_t count, ompi_request_t **handles)
{
    int code = OMPI_SUCCESS;

    for (size_t i = 0; i < count && code == OMPI_SUCCESS; i++)
        code = take_off((struct component_request *)handles[i]);
    return code;
}

static struct component_request *make(const struct by_shim_work *work, ompi_communicator_t *comm,
                                      bool is_persistent)
{
    struct component_request *request = OBJ_NEW(component_request);
    ompi_request_t *base = &request->super.super;

    if (request == NULL)
        return NULL;
    request->work = *work;
    OMPI_REQUEST_INIT(base, is_persistent);
    base->req_type = OMPI_REQUEST_COLL;
    base->req_start = start_all;
    base->req_free = release;
    base->req_mpi_object.comm = comm;
    base->req_status = (ompi_status_public_t){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
    by_shim_keep(&request->work);
    return request;
}

static int begin(const struct module *self, struct by_shim_work *work, ompi_communicator_t *comm,
                 ompi_request_t **handle)
{
    struct component_request *request;
    int code;

    work->flight.is_own = self->at->is_own;
    request = make(work, comm, false);
    code = request != NULL ? take_off(request) : MPI_ERR_NO_MEM;

    if (code == MPI_SUCCESS)
        *handle = &request->super.super;
    else if (request != NULL) {
        by_shim_release(&request->work);
        OBJ_RELEASE(request);
    }
    return code;
}

/* A persistent request, which the user starts. */
static int stand(const struct by_shim_work *work, ompi_communicator_t *comm, ompi_request_t **handle)
{
    struct component_request *request = make(work, comm, true);

    if (request == NULL)
        return MPI_ERR_NO_MEM;
    *handle = &request->super.super;
    return OMPI_SUCCESS;
}

#define X(name, parameters, arguments, preparation)                                                          \
    static int i##name(BARE parameters ompi_communicator_t *comm, ompi_request_t **handle,                   \
                       mca_coll_base_module_t *base)                                                         \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (ready_now(comm, base, IS_OWN(name)) && preparation)                                              \
            return begin(self, &work, comm, handle);                                                         \
        return self->i##name(BARE arguments comm, handle, self->i##name##_module);                           \
    }
TAKEN_LIST(X)
#undef X
#define X(name, parameters, arguments, collective, preparation)                                              \
    static int i##name(BARE parameters ompi_communicator_t *comm, ompi_request_t **handle,                   \
                       mca_coll_base_module_t *base)                                                         \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (exchanges(comm, base, collective, 1, IS_OWN(name)) && preparation)                               \
            return begin(self, &work, comm, handle);                                                         \
        return self->i##name(BARE arguments comm, handle, self->i##name##_module);                           \
    }
EXCHANGE_LIST(X)
#undef X

#define PERSISTENT(name, parameters, arguments, ready, preparation)                                          \
    static int name##_init(BARE parameters ompi_communicator_t *comm, struct ompi_info_t *info,              \
                           ompi_request_t **handle, mca_coll_base_module_t *base)                            \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
        struct by_shim_work work;                                                                            \
                                                                                                             \
        if (by_shim_persists(self->at) && (ready) && (preparation))                                          \
            return stand(&work, comm, handle);                                                               \
        return self->name##_init(BARE arguments comm, info, handle, self->name##_init_module);               \
    }
#define X(name, parameters, arguments, preparation)                                                          \
    PERSISTENT(name, parameters, arguments, ready_now(comm, base, 0), preparation)
TAKEN_LIST(X)
#undef X
#define X(name, parameters, arguments, collective, preparation)                                              \
    PERSISTENT(name, parameters, arguments, exchanges(comm, base, collective, 1, 0), preparation)
EXCHANGE_LIST(X)
#undef X
#undef PERSISTENT

/* ---- calls that stay with MPI ---- */

#define PASS(name, parameters, arguments, reason)                                                            \
    static int name(BARE parameters ompi_communicator_t *comm, mca_coll_base_module_t *base)                 \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
                                                                                                             \
        by_shim_pass(self->at, BY_MPI_##reason);                                                             \
        return self->name(BARE arguments comm, self->name##_module);                                         \
    }                                                                                                        \
    static int i##name(BARE parameters ompi_communicator_t *comm, ompi_request_t **handle,                   \
                       mca_coll_base_module_t *base)                                                         \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
                                                                                                             \
        by_shim_pass(self->at, BY_MPI_##reason);                                                             \
        return self->i##name(BARE arguments comm, handle, self->i##name##_module);                           \
    }
#define PASS_PERSISTENT(name, parameters, arguments, ...)                                                    \
    static int name##_init(BARE parameters ompi_communicator_t *comm, struct ompi_info_t *info,              \
                           ompi_request_t **handle, mca_coll_base_module_t *base)                            \
    {                                                                                                        \
        const struct module *self = (struct module *)base;                                                   \
                                                                                                             \
        by_shim_pass(self->at, BY_MPI_PERSISTENT);                                                           \
        return self->name##_init(BARE arguments comm, info, handle, self->name##_init_module);               \
    }
PASSED_LIST(PASS)
PASSED_LIST(PASS_PERSISTENT)
#undef PASS
#undef PASS_PERSISTENT

/* ---- modules ---- */

/* Modules of lower priority are already enabled: calls are passed back to theirs. */
static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    struct module *self = (struct module *)base;

#define SLOT(name)                                                                                           \
    if (comm->c_coll->coll_##name == NULL || comm->c_coll->coll_##name##_module == NULL)                     \
        return OMPI_ERR_NOT_FOUND;                                                                           \
    self->name = comm->c_coll->coll_##name;                                                                  \
    self->name##_module = comm->c_coll->coll_##name##_module;                                                \
    OBJ_RETAIN(self->name##_module);
    SLOT_LIST
#undef SLOT
    return OMPI_SUCCESS;
}

static enum by_shim_kind kind_of(ompi_communicator_t *comm)
{
    int same = MPI_UNEQUAL;

    if (comm == &ompi_mpi_comm_world.comm)
        return BY_SHIM_WORLD;
    ompi_group_compare(comm->c_local_group, ompi_mpi_comm_world.comm.c_local_group, &same);
    return same == MPI_IDENT ? BY_SHIM_TWIN : BY_SHIM_PART;
}

static mca_coll_base_module_t *query(ompi_communicator_t *comm, int *priority)
{
    struct by_shim_comm *at;
    struct module *self;

    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    at = by_shim_comm_new(kind_of(comm), ompi_comm_rank(comm), ompi_comm_size(comm));
    self = at != NULL ? OBJ_NEW(module) : NULL;
    if (self == NULL) {
        by_shim_out_of_memory("a communicator");
        by_shim_comm_free(at);
        return NULL;
    }
    self->at = at;
    *priority = PRIORITY;
    self->super.coll_module_enable = enable;
#define SLOT(name) self->super.coll_##name = name;
    SLOT_LIST
#undef SLOT
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

/* ---- the end of MPI_Init, and the begin of MPI_Finalize ---- */

/* Ranks agree here, since a first call that must not wait for other ranks cannot agree. */
static void agree(int argc, char **argv, int requested, int *provided)
{
    mca_coll_base_module_t *base = ompi_mpi_comm_world.comm.c_coll->coll_barrier_module;
    const struct by_shim_gather on = over(MPI_COMM_WORLD, base, 0, is_own("", NULL));

    (void)argc;
    (void)argv;
    (void)requested;
    (void)provided;
    if (base != NULL && base->coll_barrier == barrier)
        by_shim_join(&on);
}

/* Open MPI unloads this library before it ends. */
static void forget(void)
{
    opal_mutex_lock(&air.lock);
    if (air.is_registered)
        opal_progress_unregister(progress);
    air.is_registered = 0;
    opal_mutex_unlock(&air.lock);
}

OMPI_MODULE_DECLSPEC extern const ompi_hook_base_component_1_0_0_t mca_hook_banyan_component;

/* Open MPI finds it under the second name of this library. */
const ompi_hook_base_component_1_0_0_t mca_hook_banyan_component = {
    .hookm_version =
        {
            OMPI_HOOK_BASE_VERSION_1_0_0,
            .mca_component_name = "banyan",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        },
    .hookm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .hookm_mpi_init_bottom = agree,
    .hookm_mpi_finalize_top = forget,
};
