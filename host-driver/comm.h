/*
 * Internals of contexts, communicators and requests. One thread at a time may use a communicator
 * and everything that belongs to it; only `abort_wanted` and `error` are for any thread.
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
#include "host-driver/local/local.h"
#include "host-driver/member.h"
#include "host-driver/progress.h"
#include "host-driver/settings.h"
#include "offload/wire/member.h"

#define BY_CONTEXT_MAGIC 0x62796378u
#define BY_COMM_MAGIC    0x6279636du
#define BY_REQUEST_MAGIC 0x62797271u

#define BY_COUNTER_NAME_MAX 96u

struct banyan_context {
    uint32_t magic;
    struct by_settings settings;
    struct banyan_fabric *fabric; /* or NULL */
    struct by_fabric_node *node;
    /* how ranks connect that have no table, or a table with too few trees */
    struct by_bootstrap bootstrap;
    atomic_uint meeting_count; /* times that ranks connected so far */
    /* or NULL: nothing is offloaded, `header` holds only the name of the host */
    const uint8_t *image;
    size_t image_bytes;
    uint8_t *image_owned;
    struct by_image_header header;
    uint64_t stall_ns;
    uint64_t absent_ns; /* for ranks that have not called; at least stall_ns */
    char transport[16]; /* auto, afxdp, udp, dpdk, shm */
    uint8_t mode;       /* enum by_mode, the default of requests */
    atomic_uint comm_count;
};

#define BY_GROUP_TEXT 240u

/* A communicator of some ranks of another one, while it opens (group.c). */
struct by_group {
    struct by_bootstrap bootstrap; /* the allgather of its ranks */
    uint16_t parent;               /* the parent's job */
    uint16_t seat;                 /* this rank's host in that job */
    int error;                     /* why this rank cannot take part, with `text`; or 0 */
    int apart;                     /* the same for a group on several hosts only */
    char text[BY_GROUP_TEXT];
    uint8_t hosts[BY_MEMBER_GROUP_BYTES]; /* ranks of the parent's job; known after the first exchange */
    uint32_t host_bytes;
};

struct by_counter {
    char name[BY_COUNTER_NAME_MAX];
    const uint64_t *value;
};

/* Working memory of a request in mode exact. */
struct by_scratch {
    void *memory;
    uint64_t bytes;
};

/* The error with which the controller, or the wait for it, ended all calls. */
struct by_host_verdict {
    int error;      /* 0: none */
    char text[480]; /* each request adds its name */
};

struct banyan_comm {
    uint32_t magic;
    struct banyan_context *context;
    /* The table: the context's or the controller's; NULL: none, `header` then holds the name of the
     * host. */
    const uint8_t *image;
    size_t image_bytes;
    struct by_image_header header;
    uint16_t payload_max;     /* for which the transport was opened */
    struct by_member *member; /* or NULL: without a controller */
    struct by_group *group;   /* or NULL; while a communicator of some ranks of another one opens */
    bool is_group;
    struct by_host_verdict verdict;
    struct by_image_job job;   /* with the host's place in the table */
    uint32_t rank, rank_count; /* of this process; with `local` they differ from those of `job` */
    int sole_fd;               /* holds the job's name on this host (sole.h); or -1 */
    struct by_local *local;    /* or NULL: this rank has its host to itself */
    /* or NULL without a table, when progress is empty; also with `local` at a rank that does not
     * lead its host, when nothing steps its endpoint */
    struct by_transport *transport;
    struct by_progress progress;
    struct by_hosts hosts;
    uint32_t spin_max;     /* empty polls before a sleep */
    uint32_t yield_max;    /* empty polls that yield the core first */
    uint32_t empty_polls;  /* since packets have moved, of waits */
    uint64_t shy_until_ns; /* before this time nothing yields */
    uint64_t linger_ns;
    struct by_counter *counters;
    uint32_t counter_count;
    /* all, including freed ones, which are kept to detect a second free */
    struct banyan_request *requests;
    struct banyan_request *spare_first, *spare_last;
    struct by_host_buffer *buffers; /* banyan_alloc: buffers in ordinary memory */
    struct by_registered *registered;
    struct by_scratch scratch; /* of the last freed request, reused by the next */
    struct by_staging staging;
    atomic_int abort_wanted;
    int wake_fd;      /* readable after banyan_abort, which wakes a sleeping thread */
    atomic_int error; /* first fatal error */
};

enum by_request_state { BY_REQUEST_FREE = 1, BY_REQUEST_READY, BY_REQUEST_RUNNING, BY_REQUEST_ENDED };

struct banyan_request {
    uint32_t magic;
    enum by_request_state state;
    struct banyan_comm *comm;
    struct banyan_request *next;  /* list of all requests */
    struct banyan_request *spare; /* list of free requests */
    struct by_call call;
    uint64_t *offsets;         /* what call.offsets points to, or NULL */
    struct by_scratch scratch; /* what call.scratch points to */
    /* or NULL; set while it runs in slices because its buffers are in GPU memory */
    struct by_staged *staged;
    int between_hosts; /* the posted call runs between hosts, and `id` is an id there */
    uint32_t id;
    int posted;           /* at least once */
    uint64_t measured_ns; /* when it was posted, if its duration is reported to the controller; else 0 */
    int result;
    char text[512]; /* of an error */
};

/* comm.c: whether `comm` is a valid communicator. If not, sets the error text for `function`. */
int by_comm_is(const struct banyan_comm *comm, const char *function);
/* comm_open.c: banyan_comm_create with valid arguments, or the same for a group. */
int by_comm_create(struct banyan_context *context, uint32_t job, struct by_group *group,
                   struct banyan_comm **out);
/* comm.c: builds the communicator's list of counters. 0, or an error with its text. */
int by_comm_list_counters(struct banyan_comm *comm);
/* comm.c: fills the configuration of a rank's progress, without injected faults. 0, or an error
 * with its text. */
int by_comm_progress_config(const struct banyan_comm *comm, const uint8_t *image, size_t bytes,
                            struct by_progress_config *config);
/* comm.c: the communicator's current time; simulated on a fabric in memory. */
uint64_t by_comm_now(const struct banyan_comm *comm);
/* comm.c: runs one round of progress. If there is nothing to do, sleeps until `until_ns` (of
 * by_comm_now) at the latest; 0: does not sleep. */
void by_comm_progress(struct banyan_comm *comm, uint64_t until_ns);
/* comm.c: puts a table in force; NULL: none. The table must outlive the communicator or be replaced
 * first. */
void by_comm_image(struct banyan_comm *comm, const uint8_t *image, size_t bytes);
/* Allocates in advance what by_comm_carry needs; it may be called with the same arguments then. */
void by_comm_prepare(struct banyan_comm *comm, const struct by_resume *resume, const uint8_t *image,
                     size_t bytes);
/* comm.c: continues calls on the trees of a new table of this rank, from `resume`, in which all
 * ranks are level. The table must outlive the communicator or be replaced first. 0; on error
 * nothing has changed. */
int by_comm_carry(struct banyan_comm *comm, struct by_resume *resume, const uint8_t *image, size_t bytes);
/* comm.c: ends all calls with `error` and the text, unless they have already been ended. */
void by_comm_end(struct banyan_comm *comm, int error, const char *text);
/* Records a fatal error if it is the first. */
void by_comm_fail(struct banyan_comm *comm, int error);
/* request.c: returns an unused request; NULL: out of memory. */
struct banyan_request *by_request_take(struct banyan_comm *comm);
/* Posts its call; afterwards the state is RUNNING or ENDED. 0, or an error with its text. */
int by_request_start(struct banyan_request *request);
/* Tests whether a running call has ended; stores its result and text. */
void by_request_collect(struct banyan_request *request);
/* Returns the request to the free list. */
void by_request_give(struct banyan_request *request);
/* request.c: sets the error text of a post that failed with `error`, and returns `error`. */
banyan_status_t by_post_failed(const struct banyan_request *request, int error, const char *field);
/* operation.c: makes the call that a query describes, validated except for its buffers. The caller
 * frees `*offsets`. 0, or an error with its text. */
int by_operation_call(const char *name, const struct banyan_comm *comm, const struct banyan_query *query,
                      struct by_call *call, uint64_t **offsets);
/* comm.c: sets the job of a communicator without a table. */
void by_comm_alone(struct banyan_comm *comm, uint32_t rank, uint32_t rank_count, uint32_t job);
/* register.c: releases all registered buffers. */
void by_registered_free(struct banyan_comm *comm);
/* request.c: ends and frees all requests. */
void by_requests_free(struct banyan_comm *comm);
/* buffers.c: frees all buffers of banyan_alloc. */
void by_buffers_free(struct banyan_comm *comm);
/* Returns the bare name of a node, stored in `name` or in the image; "node N" if the image has no
 * name for it. */
const char *by_node_name(const struct banyan_comm *comm, uint16_t node, struct by_image_name *name);
/* describe.c: returns the name of the call's collective. Static memory. */
const char *by_call_name(const struct by_call *call);
/* describe.c: writes a readable reason why `call` ended with `status`. */
void by_describe(const struct banyan_comm *comm, const struct by_call *call,
                 const struct by_call_status *status, char *text, size_t bytes);
/* describe.c: its parts: "allreduce of 10 f32", and the reason. */
void by_describe_call(const struct by_call *call, char *text, size_t bytes);
void by_describe_reason(const struct banyan_comm *comm, const struct by_call *call,
                        const struct by_call_status *status, char *text, size_t bytes);
/* describe.c: prints the line with the transport and trees that a communicator uses. */
void by_announce(const struct banyan_comm *comm);

#endif
