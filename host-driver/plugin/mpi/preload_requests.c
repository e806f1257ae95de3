/*
 * Requests of calls that libbanyan executes under MPICH, and the functions of MPI that start, test,
 * wait for and free requests; see preload.h.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "host-driver/plugin/mpi/preload.h"

#define REAL_LIST                                                                                            \
    X(Request_free)                                                                                          \
    X(Request_get_status)                                                                                    \
    X(Start)                                                                                                 \
    X(Startall)                                                                                              \
    X(Test)                                                                                                  \
    X(Testall)                                                                                               \
    X(Testany)                                                                                               \
    X(Testsome)                                                                                              \
    X(Wait)                                                                                                  \
    X(Waitall)                                                                                               \
    X(Waitany)                                                                                               \
    X(Waitsome)

/* Aliases: PMPI's names of the functions below. */
#define X(name) extern __typeof__(MPI_##name) PMPI_##name PUBLIC __attribute__((alias("MPI_" #name)));
REAL_LIST
#undef X

static struct {
#define X(name) __typeof__(MPI_##name) *name;
    REAL_LIST
#undef X
} real;

void by_preload_look_requests(void)
{
#define X(name) *(void **)&real.name = dlsym(RTLD_NEXT, "PMPI_" #name);
    REAL_LIST
#undef X
}

/* Applies the communicator's error handler. */
int by_preload_end(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/* ---- requests: MPICH calls `poll` while it waits for one */

struct preload_request {
    struct preload_request *next;
    struct by_shim_work work;
    MPI_Request handle;
    int code;
    int is_complete; /* MPICH has the completion */
};

/* All of them, until MPICH drops them. */
static struct preload_request *air;
static pthread_mutex_t air_lock = PTHREAD_MUTEX_INITIALIZER;

static int query(void *context, MPI_Status *status)
{
    const struct preload_request *flying = context;

    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return flying->code;
}

static int drop(void *context)
{
    struct preload_request *flying = context, **at = &air;

    pthread_mutex_lock(&air_lock);
    while (*at != NULL && *at != flying)
        at = &(*at)->next;
    if (*at != NULL)
        *at = flying->next;
    pthread_mutex_unlock(&air_lock);
    free(flying); /* with threads, MPICH would wait for itself in calls of types from here */
    return MPI_SUCCESS;
}

/* MPI cancels no collective. */
static int cancel(void *context, int is_complete)
{
    (void)context;
    (void)is_complete;
    return MPI_SUCCESS;
}

static int poll_one(void *context, MPI_Status *status)
{
    struct preload_request *flying = context;

    (void)status;
    if (flying->is_complete)
        return MPI_SUCCESS;
    by_mpi_progress();
    if (!by_mpi_has_ended(&flying->work.flight)) {
        by_shim_idle(); /* MPICH moves no messages between two of these calls */
        return MPI_SUCCESS;
    }
    flying->is_complete = 1;
    flying->code = by_shim_finish(&flying->work);
    by_shim_release(&flying->work);
    return PMPI_Grequest_complete(flying->handle);
}

static int wait_for_all(int count, void **contexts, double timeout, MPI_Status *status)
{
    (void)timeout;
    for (int i = 0; i < count; i++)
        while (!((struct preload_request *)contexts[i])->is_complete)
            poll_one(contexts[i], status);
    return MPI_SUCCESS;
}

int by_preload_begin(const struct by_shim_work *work, MPI_Request *request)
{
    struct preload_request *flying = malloc(sizeof(*flying));
    int code;

    if (flying == NULL)
        return MPI_ERR_NO_MEM;
    *flying = (struct preload_request){.work = *work, .code = MPI_SUCCESS};
    code = PMPIX_Grequest_start(query, drop, cancel, poll_one, wait_for_all, flying, &flying->handle);
    if (code != MPI_SUCCESS) {
        by_shim_release(&flying->work);
        free(flying);
        return code;
    }
    pthread_mutex_lock(&air_lock);
    flying->next = air;
    air = flying;
    pthread_mutex_unlock(&air_lock);
    *request = flying->handle;
    by_shim_keep(&flying->work);
    code = by_shim_start(&flying->work);
    if (code != MPI_SUCCESS) {
        by_shim_release(&flying->work);
        flying->is_complete = 1;
        PMPI_Grequest_complete(flying->handle);
        PMPI_Request_free(request);
    }
    return code;
}

/* ---- persistent requests: the user's handle is a persistent receive of an empty message from this
 * process, which is sent when the call has ended; so every function of MPI accepts it. MPI asks for
 * no progress while it waits for a message, so the functions that wait test in turns, as long as
 * the program has such requests. */

struct preload_standing {
    struct preload_standing *next;
    struct by_shim_work work;
    MPI_Request handle;
    MPI_Comm comm;
    int tag;
    int is_active;
    int code; /* of the last call, until a function of MPI has returned it */
};

static struct preload_standing *standing; /* under air_lock */

static struct preload_standing *find_standing(MPI_Request handle)
{
    struct preload_standing *found = standing;

    while (found != NULL && found->handle != handle)
        found = found->next;
    return found;
}

/* Returns a tag that no other request has; MPI permits at least those up to 32767. */
static int free_tag(void)
{
    static int last;
    const struct preload_standing *other;

    do {
        last = (last + 1) % 32768;
        for (other = standing; other != NULL && other->tag != last;)
            other = other->next;
    } while (other != NULL);
    return last;
}

/* Creates the request of a prepared call. */
int by_preload_stand(const struct by_shim_work *work, MPI_Comm comm, MPI_Request *request)
{
    struct preload_standing *made = malloc(sizeof(*made));
    int code = MPI_ERR_NO_MEM;

    if (made != NULL) {
        *made = (struct preload_standing){.work = *work, .comm = comm, .code = MPI_SUCCESS};
        pthread_mutex_lock(&air_lock);
        made->tag = free_tag();
        pthread_mutex_unlock(&air_lock);
        code = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, made->tag, by_preload_alone(), &made->handle);
    }
    if (code != MPI_SUCCESS) {
        struct by_shim_work unused = *work;

        by_shim_release(&unused);
        free(made);
        return code;
    }
    by_shim_keep(&made->work);
    pthread_mutex_lock(&air_lock);
    made->next = standing;
    standing = made;
    pthread_mutex_unlock(&air_lock);
    *request = made->handle;
    return MPI_SUCCESS;
}

/* Returns one whose call has ended, and marks it inactive; NULL: none. */
static struct preload_standing *take_standing(void)
{
    struct preload_standing *found;

    pthread_mutex_lock(&air_lock);
    found = standing;
    while (found != NULL && !(found->is_active && by_mpi_has_ended(&found->work.flight)))
        found = found->next;
    if (found != NULL)
        found->is_active = 0;
    pthread_mutex_unlock(&air_lock);
    return found;
}

static void complete_standing(void)
{
    struct preload_standing *ended;

    if (standing == NULL)
        return;
    by_mpi_progress();
    while ((ended = take_standing()) != NULL) {
        ended->code = by_shim_finish(&ended->work);
        PMPI_Send(NULL, 0, MPI_BYTE, 0, ended->tag, by_preload_alone());
    }
}

/* Reports the first error of the calls behind these requests, once. */
static int settle(int count, const MPI_Request *requests, int code)
{
    for (int i = 0; standing != NULL && code == MPI_SUCCESS && i < count; i++) {
        struct preload_standing *one;

        pthread_mutex_lock(&air_lock);
        one = find_standing(requests[i]);
        pthread_mutex_unlock(&air_lock);
        if (one == NULL || one->is_active || one->code == MPI_SUCCESS)
            continue;
        code = one->code;
        one->code = MPI_SUCCESS;
        PMPI_Comm_call_errhandler(one->comm, code);
    }
    return code;
}

PUBLIC int MPI_Start(MPI_Request *request)
{
    struct preload_standing *one;
    int code;

    pthread_mutex_lock(&air_lock);
    one = request != NULL ? find_standing(*request) : NULL;
    pthread_mutex_unlock(&air_lock);
    if (one == NULL || one->is_active)
        return real.Start(request);
    code = by_shim_start(&one->work);
    if (code == MPI_SUCCESS)
        code = real.Start(request);
    pthread_mutex_lock(&air_lock);
    one->is_active = code == MPI_SUCCESS;
    pthread_mutex_unlock(&air_lock);
    return by_preload_end(one->comm, code);
}

PUBLIC int MPI_Startall(int count, MPI_Request requests[])
{
    int code = MPI_SUCCESS;

    if (standing == NULL || requests == NULL)
        return real.Startall(count, requests);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = MPI_Start(&requests[i]);
    return code;
}

PUBLIC int MPI_Request_free(MPI_Request *request)
{
    struct preload_standing **at = &standing, *one;

    pthread_mutex_lock(&air_lock);
    while (request != NULL && *at != NULL && (*at)->handle != *request)
        at = &(*at)->next;
    one = request != NULL ? *at : NULL;
    if (one != NULL && !one->is_active)
        *at = one->next;
    pthread_mutex_unlock(&air_lock);
    if (one != NULL && one->is_active) { /* an error of the program, which its call outlives */
        PMPI_Comm_call_errhandler(one->comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    if (one != NULL) {
        by_shim_release(&one->work);
        free(one);
    }
    return real.Request_free(request);
}

/* Tests once, or until the wait is over. */
#define TESTED(test, arguments, count, requests, going_on)                                                   \
    do {                                                                                                     \
        complete_standing();                                                                                 \
        code = real.test arguments;                                                                          \
    } while (code == MPI_SUCCESS && (going_on));                                                             \
    return settle(count, requests, code)

PUBLIC int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int code, flag = 0;

    if (standing == NULL || request == NULL)
        return real.Wait(request, status);
    TESTED(Test, (request, &flag, status), 1, request, !flag);
}

PUBLIC int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int code, flag = 0;

    if (standing == NULL || requests == NULL)
        return real.Waitall(count, requests, statuses);
    TESTED(Testall, (count, requests, &flag, statuses), count, requests, !flag);
}

PUBLIC int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    int code, flag = 0;

    if (standing == NULL || requests == NULL)
        return real.Waitany(count, requests, index, status);
    TESTED(Testany, (count, requests, index, &flag, status), count, requests, !flag);
}

PUBLIC int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    int code;

    if (standing == NULL || requests == NULL || done == NULL)
        return real.Waitsome(count, requests, done, indices, statuses);
    TESTED(Testsome, (count, requests, done, indices, statuses), count, requests, *done == 0);
}

PUBLIC int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int code;

    TESTED(Test, (request, flag, status), request != NULL, request, 0);
}

PUBLIC int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    int code;

    TESTED(Testall, (count, requests, flag, statuses), requests != NULL ? count : 0, requests, 0);
}

PUBLIC int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    int code;

    TESTED(Testany, (count, requests, index, flag, status), requests != NULL ? count : 0, requests, 0);
}

PUBLIC int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    int code;

    TESTED(Testsome, (count, requests, done, indices, statuses), requests != NULL ? count : 0, requests, 0);
}
#undef TESTED

/* Here MPICH does not ask `poll_one`. */
PUBLIC int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct preload_request *flying;

    pthread_mutex_lock(&air_lock);
    flying = air;
    while (flying != NULL && flying->handle != request)
        flying = flying->next;
    pthread_mutex_unlock(&air_lock);
    if (flying != NULL)
        poll_one(flying, NULL);
    complete_standing();
    return real.Request_get_status(request, flag, status);
}
