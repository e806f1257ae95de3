/*
 * Inside of contexts, communicators and requests. A communicator with all that hangs on it belongs
 * to one thread at a time; `abort` and `error` alone are for any thread.
 */
#ifndef BY_HOST_COMM_H
#define BY_HOST_COMM_H

#include <stdatomic.h>
#include <stdint.h>

#include <banyan/banyan.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/error.h"
#include "host-driver/fabric.h"
#include "host-driver/gpu/staged.h"
#include "host-driver/hosts.h"
#include "host-driver/member.h"
#include "host-driver/progress.h"
#include "host-driver/settings.h"

#define BY_CONTEXT_MAGIC 0x62796378u
#define BY_COMM_MAGIC    0x6279636du
#define BY_REQUEST_MAGIC 0x62797271u

#define BY_COUNTER_NAME_MAX 96u

struct banyan_context {
    uint32_t magic;
    struct by_settings settings;
    struct banyan_fabric *fabric; /* or NULL */
    struct by_fabric_node *node;
    struct by_bootstrap bootstrap; /* how ranks meet that have no table, or one with too few trees */
    atomic_uint meeting_count;     /* meetings so far */
    const uint8_t *image;          /* or NULL: nothing is offloaded, `header` has but the host's name */
    size_t image_bytes;
    uint8_t *image_owned;
    struct by_image_header header;
    uint64_t stall_ns;
    char transport[16]; /* auto, afxdp, udp, shm */
    uint8_t mode;       /* enum by_mode, of requests */
    atomic_uint comm_count;
};

struct by_counter {
    char name[BY_COUNTER_NAME_MAX];
    const uint64_t *value;
};

/* Memory of a request in mode exact. */
struct by_scratch {
    void *memory;
    uint64_t bytes;
};

/* What the controller, or the wait for it, ended all calls with. */
struct by_host_verdict {
    int error;      /* 0: nothing */
    char text[480]; /* a request adds its name */
};

struct banyan_comm {
    uint32_t magic;
    struct banyan_context *context;
    /* The table: the context's, or what the controller has given; NULL: none, `header` has the
     * host's name.
     */
    const uint8_t *image;
    size_t image_bytes;
    struct by_image_header header;
    uint16_t payload_max;     /* for which the transport was opened */
    struct by_member *member; /* or NULL: no controller */
    struct by_host_verdict verdict;
    struct by_image_job job;
    struct by_transport *transport; /* or NULL, without a table; then progress is empty */
    struct by_progress progress;
    struct by_hosts hosts;
    uint32_t spin_max;     /* empty polls before a sleep */
    uint32_t yield_max;    /* those in which others may run */
    uint64_t shy_until_ns; /* before that nobody yields */
    uint64_t linger_ns;
    struct by_counter *counters;
    uint32_t counter_count;
    struct banyan_request *requests; /* all, also the free ones: kept so that a second free is seen */
    struct banyan_request *spare_first, *spare_last;
    struct by_host_buffer *buffers; /* of banyan_alloc, those that are plain memory */
    struct by_registered *registered;
    struct by_scratch scratch; /* of the request that was freed last, for the next one */
    struct by_staging staging;
    atomic_int abort_wanted;
    int wake_fd;      /* readable once banyan_abort was called, so that who sleeps wakes */
    atomic_int error; /* the first fatal one */
};

enum by_request_state { BY_REQUEST_FREE = 1, BY_REQUEST_READY, BY_REQUEST_RUNNING, BY_REQUEST_ENDED };

struct banyan_request {
    uint32_t magic;
    enum by_request_state state;
    struct banyan_comm *comm;
    struct banyan_request *next;  /* of all */
    struct banyan_request *spare; /* of the free ones */
    struct by_call call;
    uint64_t *offsets;         /* what call.offsets points to, or NULL */
    struct by_scratch scratch; /* what call.scratch points to */
    struct by_staged *staged;  /* while it runs in slices, as its buffers are a GPU's; or NULL */
    int between_hosts;         /* the posted call runs there, and `id` is theirs */
    uint32_t id;
    int posted; /* at least once */
    int result;
    char text[512]; /* of a failed result */
};

/* comm.c: whether `comm` is a communicator; else sets the error text of `function`. */
int by_comm_is(const struct banyan_comm *comm, const char *function);
/* comm.c: makes the list of its counters. 0, or an error with its text. */
int by_comm_list_counters(struct banyan_comm *comm);
/* comm.c: fills the configuration of a rank's progress, without injected faults. 0, or an error
 * with its text. */
int by_comm_progress_config(const struct banyan_comm *comm, const uint8_t *image, size_t bytes,
                            struct by_progress_config *config);
/* comm.c: the time of a communicator, simulated on a fabric in memory. */
uint64_t by_comm_now(const struct banyan_comm *comm);
/* comm.c: one round of progress; sleeps, when there is nothing to do, until `until_ns` (of
 * by_comm_now) at the latest. 0: does not sleep. */
void by_comm_progress(struct banyan_comm *comm, uint64_t until_ns);
/* comm.c: the table that is in force from now on; NULL: none. It must outlive the communicator, or
 * its successor. */
void by_comm_image(struct banyan_comm *comm, const uint8_t *image, size_t bytes);
/* comm.c: calls go on in the trees of a table that is this rank's, by `resume`, whose ranks are all
 * level. The table must outlive the communicator, or its successor. 0; else all is as it was. */
int by_comm_carry(struct banyan_comm *comm, struct by_resume *resume, const uint8_t *image, size_t bytes);
/* comm.c: ends all calls with `error` and the text, unless something has ended them before. */
void by_comm_end(struct banyan_comm *comm, int error, const char *text);
/* Notes a fatal error, if it is the first. */
void by_comm_fail(struct banyan_comm *comm, int error);
/* request.c: a request that is not in use, or NULL: no memory. */
struct banyan_request *by_request_take(struct banyan_comm *comm);
/* Posts its call; the state is RUNNING or ENDED then. 0, or an error with its text. */
int by_request_start(struct banyan_request *request);
/* Asks whether a call that runs has ended; keeps its result and the text. */
void by_request_collect(struct banyan_request *request);
/* Gives it back. */
void by_request_give(struct banyan_request *request);
/* request.c: sets the error text of a post that ended with `error`, and returns that. */
banyan_status_t by_post_failed(const struct banyan_request *request, int error, const char *field);
/* operation.c: the call that a query asks about, checked but for its buffers. `*offsets` is the
 * caller's to free. 0, or an error with its text. */
int by_operation_call(const char *name, const struct banyan_comm *comm, const struct banyan_query *query,
                      struct by_call *call, uint64_t **offsets);
/* comm.c: the job of a communicator without a table. */
void by_comm_alone(struct banyan_comm *comm, uint32_t rank, uint32_t rank_count, uint32_t job);
/* register.c: lets go of all registered buffers. */
void by_registered_free(struct banyan_comm *comm);
/* request.c: ends and frees all requests. */
void by_requests_free(struct banyan_comm *comm);
/* buffers.c: frees what banyan_alloc gave. */
void by_buffers_free(struct banyan_comm *comm);
/* The bare name of a node, in `name` or in what it holds; "node N" when the image does not name it.
 */
const char *by_node_name(const struct banyan_comm *comm, uint16_t node, struct by_image_name *name);
/* describe.c: writes for people why `call` ended with `status`. */
void by_describe(const struct banyan_comm *comm, const struct by_call *call,
                 const struct by_call_status *status, char *text, size_t bytes);
/* describe.c: the line that says over what a communicator runs. */
void by_announce(const struct banyan_comm *comm);

#endif
