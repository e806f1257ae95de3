/*
 * libbanyan: collective operations that the network computes. A process is one rank of a job. The
 * job's table image, which the controller makes for this host, lists the trees along which the
 * network replicates and reduces data. This header includes only standard C headers and
 * exchange.h, which declares all-to-all, scatter and gather.
 *
 * Blocking use:
 *
 *   banyan_init -> banyan_comm_create -> banyan_allreduce ... -> banyan_comm_destroy
 *   -> banyan_finalize
 *
 * Non-blocking use, for each operation:
 *
 *   banyan_allreduce_init -> banyan_post -> banyan_test | banyan_wait -> (post again ...)
 *   -> banyan_free
 *
 * Threads: different threads may use objects of different contexts, and different communicators of
 * one context, at the same time. Only one thread at a time may use a communicator and its requests.
 * Exceptions are documented at the functions. Communicators of contexts that share a fabric
 * (banyan_fabric_open) count as one communicator.
 *
 * Errors: every function that can fail returns BANYAN_OK (0) or a negative status. After an error,
 * banyan_last_error() returns a sentence that names the object, the limit and the remedy. Outputs
 * are written only on success, unless documented otherwise.
 *
 * Order: all ranks of a communicator must post the same operations in the same order. Otherwise the
 * operations fail with BANYAN_EMISMATCH; wrong data are never delivered.
 */
#ifndef BANYAN_BANYAN_H
#define BANYAN_BANYAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BANYAN_VERSION_MAJOR 0
#define BANYAN_VERSION_MINOR 1
#define BANYAN_VERSION_PATCH 0
/* What banyan_version() returns for these headers. */
#define BANYAN_VERSION (BANYAN_VERSION_MAJOR * 10000 + BANYAN_VERSION_MINOR * 100 + BANYAN_VERSION_PATCH)

/* Marks public symbols; the build hides all others. */
#if defined(__GNUC__)
#define BANYAN_API __attribute__((visibility("default")))
#else
#define BANYAN_API
#endif

/* Result of a function. BANYAN_OK is 0, errors are negative. */
typedef enum banyan_status {
    BANYAN_OK = 0,
    BANYAN_EINVAL = -1,        /* an argument is out of its range */
    BANYAN_ENOMEM = -2,        /* insufficient memory */
    BANYAN_ELIMIT = -3,        /* a limit is exceeded */
    BANYAN_EFORMAT = -4,       /* malformed table image */
    BANYAN_ECHECKSUM = -5,     /* corrupted table image, or corrupted data in a buffer */
    BANYAN_EVERSION = -6,      /* unsupported version of a table image or a config */
    BANYAN_ENOENT = -7,        /* no such file, job, interface or host */
    BANYAN_EEXIST = -8,        /* the object exists already */
    BANYAN_EBUSY = -9,         /* the object is in use */
    BANYAN_EAGAIN = -10,       /* not possible now; try again */
    BANYAN_ETIMEDOUT = -11,    /* no progress in time: a switch or rank does not respond */
    BANYAN_EMISMATCH = -12,    /* the ranks have posted different operations */
    BANYAN_EUNSUPPORTED = -13, /* this combination is not supported */
    BANYAN_EPERM = -14,        /* the operating system does not permit it */
    BANYAN_EIO = -15,          /* input or output failed */
    BANYAN_ESTATE = -16,       /* the function is not valid in this state */
    BANYAN_EABORTED = -17,     /* banyan_abort was called */
    BANYAN_ERANGE = -18        /* a number cannot be represented */
} banyan_status_t;

/* Operators. Sums and products of integers wrap. For floats, min and max return NaN if any operand
 * is NaN, and treat -0 as less than +0. */
typedef enum banyan_op {
    BANYAN_SUM = 1,
    BANYAN_PROD = 2,
    BANYAN_MIN = 3,
    BANYAN_MAX = 4,
    BANYAN_BAND = 5, /* bitwise operators: integers only */
    BANYAN_BOR = 6,
    BANYAN_BXOR = 7
} banyan_op_t;

/* Element types, little-endian in memory. F16 is IEEE 754 binary16. Both 16-bit floats accumulate
 * in F32. */
typedef enum banyan_dtype {
    BANYAN_I8 = 1,
    BANYAN_U8 = 2,
    BANYAN_I32 = 3,
    BANYAN_U32 = 4,
    BANYAN_I64 = 5,
    BANYAN_U64 = 6,
    BANYAN_F16 = 7,
    BANYAN_BF16 = 8,
    BANYAN_F32 = 9,
    BANYAN_F64 = 10
} banyan_dtype_t;

/* Collectives, for functions that take one as an argument. */
typedef enum banyan_collective {
    BANYAN_ALLREDUCE = 1,
    BANYAN_REDUCE_SCATTER = 2,
    BANYAN_ALLGATHER = 3,
    BANYAN_BROADCAST = 4,
    BANYAN_REDUCE = 5,
    BANYAN_BARRIER = 6,
    /* Each message has one receiver: never along trees, always between the hosts. */
    BANYAN_ALLTOALL = 16,
    BANYAN_SCATTER = 17,
    BANYAN_GATHER = 18
} banyan_collective_t;

/*
 * The order in which the network adds (or multiplies) floats; each step rounds. Everything else is
 * the same in all modes. docs/arithmetic.md defines the rules for NaN, zeros, infinities and
 * overflow, and the error bounds.
 */
typedef enum banyan_mode {
    /* In order of arrival. All ranks get the same bits; two runs may differ. */
    BANYAN_FAST = 1,
    /* In the order that the tables define. All runs on the same tables give the same bits, if
     * the tables were made for it (banyan tables --det). */
    BANYAN_DET = 2,
    /* Independent of order: all trees give the same bits. Sums only; f16, bf16 and f32 send
     * twice the bytes. */
    BANYAN_EXACT = 3
} banyan_mode_t;

/* Where an operation runs. */
typedef enum banyan_path {
    BANYAN_TREES = 1,  /* offloaded: along the trees of the table */
    BANYAN_HOSTS = 2,  /* between the hosts, by messages */
    BANYAN_NOWHERE = 3 /* nowhere: the post fails */
} banyan_path_t;

/* A simulated fabric in this process: all hosts and switches of a folder of table images. */
struct banyan_fabric;
struct banyan_context; /* one host: its table image and settings */
struct banyan_comm;    /* one rank of one job */
struct banyan_request; /* one operation, posted once or many times */

/* ---- Library ---- */

/*
 * Returns the version of the running library: major * 10000 + minor * 100 + patch. Compare it with
 * BANYAN_VERSION. Any thread.
 */
BANYAN_API int banyan_version(void);

/*
 * Returns the sentence that describes a status. Never NULL; static memory. Any thread.
 */
BANYAN_API const char *banyan_strerror(banyan_status_t status);

/*
 * Returns the text of the last error in the calling thread: what failed, the limit and the remedy;
 * "" if no call has failed yet. The library owns the text; it is valid until the next error in this
 * thread. Any thread.
 */
BANYAN_API const char *banyan_last_error(void);

/*
 * Returns 1 if the network can reduce `dtype` with `op`, else 0 (also for unknown values). Any
 * thread.
 */
BANYAN_API int banyan_supports(banyan_op_t op, banyan_dtype_t dtype);

/*
 * Like banyan_supports, for `mode`: also 0 for products of floats in mode BANYAN_EXACT. Any thread.
 */
BANYAN_API int banyan_supports_mode(banyan_mode_t mode, banyan_op_t op, banyan_dtype_t dtype);

/*
 * Returns the size of one element of `dtype` in bytes; 0 for an unknown type. Any thread.
 */
BANYAN_API size_t banyan_dtype_size(banyan_dtype_t dtype);

/*
 * Return the readable name ("sum", "f32") that command lines accept; "?" for an unknown value.
 * Static memory. Any thread.
 */
BANYAN_API const char *banyan_op_name(banyan_op_t op);
BANYAN_API const char *banyan_dtype_name(banyan_dtype_t dtype);
BANYAN_API const char *banyan_mode_name(banyan_mode_t mode);

/*
 * Enumerates the settings, counted from 0. Returns for setting `index` the name of its environment
 * variable, its default, its help text, its current value and the value's origin ("default",
 * "environment" or the path of a file). Index 0 re-reads the files and the environment, and warns
 * on stderr about unknown settings. Each pointer may be NULL. The texts belong to the calling
 * thread and are valid until it passes index 0 again.
 *
 * Errors: BANYAN_ENOENT beyond the last setting (sets no error text); BANYAN_EINVAL if a file has a
 * malformed line or a value is too long. Any thread, provided that no thread changes the
 * environment during the call.
 */
BANYAN_API banyan_status_t banyan_setting(uint32_t index, const char **name, const char **fallback,
                                          const char **help, const char **value, const char **origin);

/* ---- Fabric in this process ---- */

/*
 * Builds a fabric in this process from `folder`. Every NODE.table in the folder is a host or a
 * switch. Switches run the same engine as real switches; ports are joined in memory by the
 * addresses in the images. No privileges are needed. Time is simulated: with injected faults
 * (BANYAN_LOSS, BANYAN_DUP, BANYAN_REORDER and BANYAN_SEED, at the receive side of every node),
 * runs with the same seed are identical. Progress of any communicator advances the whole fabric, so
 * post on every rank before you wait for any of them. Errors: BANYAN_EINVAL, BANYAN_ENOENT (no
 * folder, or no table in it), the errors of an image, BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_fabric_open(const char *folder, struct banyan_fabric **fabric);

/*
 * Frees the fabric. BANYAN_EBUSY while a communicator uses it; BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_fabric_close(struct banyan_fabric *fabric);

/*
 * Returns the name of host `index`, counted from 0 in the fabric's order of ranks; NULL beyond the
 * last host. The text is valid until the fabric is closed.
 */
BANYAN_API const char *banyan_fabric_host(const struct banyan_fabric *fabric, uint32_t index);

/*
 * One direction of a cable of the fabric: the sender and its port, the receiver and its port, and
 * the traffic so far (bytes count whole Ethernet frames without preamble and checksum).
 * banyan_fabric_link returns the direction with number `index`, counted from 0; BANYAN_ENOENT
 * beyond the last one (sets no error text).
 */
struct banyan_link {
    const char *from, *from_port, *to, *to_port;
    uint64_t packets;
    uint64_t bytes;
};
BANYAN_API banyan_status_t banyan_fabric_link(const struct banyan_fabric *fabric, uint32_t index,
                                              struct banyan_link *link);

/* ---- Context ---- */

/*
 * Rank and rank count, supplied by a program that already has them. Ranks use it to connect if they
 * have no table, or a table without trees for some collective (banyan_comm_create).
 *
 * `allgather` collects `bytes` bytes from every rank and returns them to all ranks in rank order:
 * all[rank_count * bytes]. A banyan_comm_create that needs it calls it, once or more, in the
 * calling thread, on all ranks. It may block. It returns 0 on success and any other value on
 * failure. An MPI program can pass MPI_Allgather here.
 */
struct banyan_bootstrap {
    size_t size; /* sizeof(struct banyan_bootstrap) */
    uint32_t rank;
    uint32_t rank_count; /* at most 1000 */
    void *context;       /* the first argument of allgather */
    int (*allgather)(void *context, const void *mine, void *all, size_t bytes);
};

/*
 * Options of banyan_init. Initialise it with banyan_config_init, then set the fields that you need.
 * A field that is not set takes the value of its environment variable, or else the default. Strings
 * are copied.
 */
struct banyan_config {
    /* sizeof(struct banyan_config) of the headers in use */
    size_t size;
    /* this host's table image, or a folder with HOSTNAME.table (BANYAN_TABLE) */
    const char *table;
    /* "auto", "afxdp", "udp", "dpdk" or "shm" (BANYAN_TRANSPORT) */
    const char *transport;
    /* an operation without progress for this long fails (BANYAN_TIMEOUT); 0 = not set */
    uint64_t timeout_ms;
    /* run on this fabric in memory; `table` and `transport` are then ignored */
    struct banyan_fabric *fabric;
    /* with `fabric`: the name of this host */
    const char *host;
    /* default mode of requests: "fast", "det" or "exact" (BANYAN_MODE) */
    const char *mode;
    /* "auto", "env", "pmix", "pmi" or "none" (BANYAN_BOOTSTRAP) */
    const char *launcher;
    /* replaces `launcher`, or NULL; copied. With launcher "none" ranks only find those of their
     * host with it, and nothing runs between the hosts. */
    const struct banyan_bootstrap *bootstrap;
};

/*
 * Marks every field of `config` as not set. Any thread.
 */
BANYAN_API void banyan_config_init(struct banyan_config *config);

/*
 * Creates a context: reads the settings and the table image. `config` may be NULL. Opens no socket.
 * The caller frees the context with banyan_finalize. Errors: BANYAN_EINVAL (a setting),
 * BANYAN_EVERSION (config->size), BANYAN_ENOENT and the errors of an image, BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_init(const struct banyan_config *config, struct banyan_context **context);

/*
 * Frees the context. BANYAN_EBUSY while communicators exist, BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_finalize(struct banyan_context *context);

/* ---- Communicator ---- */

/*
 * Joins job `job` of the context's table, as the rank that the table assigns to this host. Opens
 * the transport and, if this host is an inner node of a tree, starts its engine. Job 0 means
 * BANYAN_JOB, or else the only job of the table.
 *
 * The call is not collective: it returns without waiting for other ranks. It is collective if there
 * is no table, the table has no trees for some collective, or BANYAN_FALLBACK is set, and RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set. The ranks then connect to each other, and
 * operations without trees run between the hosts (BANYAN_FALLBACK).
 *
 * Several ranks may run on a host of the table: if the launcher reports more ranks than the table
 * has hosts, the call is collective as well, and the ranks find those of their host. These share
 * memory, and the first of them uses the trees as that host. The rank and the number of ranks are
 * then those of the launcher, in any layout; each host of the table must have a rank.
 *
 * Rank 0 prints one line on stderr with the transport and the trees in use, and the reason.
 *
 * Errors: BANYAN_ENOENT (no such job, several jobs, or an interface is missing), BANYAN_EBUSY
 * (another process uses the address), BANYAN_EPERM, BANYAN_ENOMEM, BANYAN_EIO.
 */
BANYAN_API banyan_status_t banyan_comm_create(struct banyan_context *context, uint32_t job,
                                              struct banyan_comm **comm);

/* The color of a rank that is in no group. */
#define BANYAN_UNDEFINED (-32766)

/*
 * Creates communicators of some ranks of another one: the ranks with the same `color`, which is 0
 * or more, in the order of `key`; ranks with equal keys keep their order. A rank with the color
 * BANYAN_UNDEFINED takes part in the call, and gets NULL in *comm.
 *
 * Collective over `parent`: all its ranks call it at the same place in the order of their calls on
 * `parent`. If all ranks of a new communicator run on one host, they share its memory (at most 64,
 * BANYAN_NEAR); alltoallv, scatterv and gatherv are refused there. Otherwise it requires a
 * controller (BANYAN_CONTROLLER), which makes trees for the hosts of each new communicator: a job
 * of its own, with slots of its own in the switches, as many as are free. Several ranks may run on
 * a host, in any layout; they share memory then, as they do where the order is not that of the
 * tables. Its calls have an order of their own. The controller takes the slots back when all ranks
 * have called banyan_comm_destroy, or have ended.
 *
 * A program that waits on one communicator does not move packets of others. If a host may be an
 * inner node of a tree (a fabric whose switches do not sum), such a program calls
 * banyan_comm_progress for them now and then.
 *
 * Errors, the same with the same text on all ranks of a group: BANYAN_EUNSUPPORTED (no controller,
 * or ranks of one host that cannot share memory), BANYAN_ELIMIT and BANYAN_ESTATE (not enough
 * slots, or the controller's limit of jobs), BANYAN_ENOENT (the controller does not have the
 * parent's job), BANYAN_ETIMEDOUT (the controller does not answer within half of BANYAN_TIMEOUT),
 * and those of banyan_comm_create and of an allreduce over `parent`. The parent remains usable
 * after a refusal.
 */
BANYAN_API banyan_status_t banyan_comm_split(struct banyan_comm *parent, int color, int key,
                                             struct banyan_comm **comm);

/*
 * Like banyan_comm_split with one color and the order of `parent`: the same ranks, with an order of
 * calls of their own.
 */
BANYAN_API banyan_status_t banyan_comm_dup(struct banyan_comm *parent, struct banyan_comm **comm);

/*
 * Creates one communicator of some ranks of `parent`. Collective over these ranks alone: `ranks`
 * gives this rank's place among them, and an allgather over them, which is called three times, in
 * the calling thread. Only reads from `parent`, so another thread may use it meanwhile. Otherwise
 * as banyan_comm_split. An MPI program can pass MPI_Allgather over the communicator that it has.
 */
BANYAN_API banyan_status_t banyan_comm_create_group(struct banyan_comm *parent,
                                                    const struct banyan_bootstrap *ranks,
                                                    struct banyan_comm **comm);

/*
 * Moves packets of the communicator without waiting, whether or not it has running operations.
 * BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_comm_progress(struct banyan_comm *comm);

/*
 * Leaves the job and frees the communicator with all its requests. Aborts operations that still
 * run. If this host is an inner node of a tree, it first answers other nodes until they have been
 * silent for BANYAN_LINGER milliseconds, in case its last packets were lost. This lasts at most
 * BANYAN_TIMEOUT, even if peers have failed. BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_comm_destroy(struct banyan_comm *comm);

/*
 * Returns this rank, 0 <= rank < size. 0 for NULL.
 */
BANYAN_API uint32_t banyan_comm_rank(const struct banyan_comm *comm);

/*
 * Returns the number of ranks of the job. 0 for NULL.
 */
BANYAN_API uint32_t banyan_comm_size(const struct banyan_comm *comm);

/*
 * Returns the name of the transport that moves this communicator's packets: "afxdp", "udp",
 * "dpdk", "shm" or "memory"; "ranks" if another rank of the host moves them; without a table "tcp",
 * or "host" if all ranks share memory on one host. Static memory. NULL for NULL.
 */
BANYAN_API const char *banyan_comm_transport(const struct banyan_comm *comm);

/*
 * Returns 1 if this rank's table has trees for `collective`, else 0 (also for unknown values and
 * NULL). `root` is the root of a broadcast or reduce; other collectives ignore it. Without trees,
 * the operation runs between the hosts if the ranks are connected; otherwise its post fails with
 * BANYAN_EUNSUPPORTED. Tables that were made together give the same answer on all ranks.
 */
BANYAN_API int banyan_comm_serves(const struct banyan_comm *comm, banyan_collective_t collective,
                                  uint32_t root);

/*
 * Describes an operation, and receives the path that it would take. Initialise it with
 * banyan_query_init (a sum of f32), then set the fields that you need.
 */
struct banyan_query {
    /* sizeof(struct banyan_query) of the headers in use */
    size_t size;
    /* Input: the operation, as for its _init function. Fields that the operation does not use are
     * ignored. */
    banyan_collective_t collective;
    banyan_op_t op;
    banyan_dtype_t dtype;
    /* 0: the communicator's mode */
    banyan_mode_t mode;
    uint32_t root;
    uint64_t count;
    /* Counts of all ranks instead of `count`, for allgatherv and reduce_scatterv; or NULL. */
    const uint64_t *counts;
    /* Output: rank and rank_count are those of the job. */
    uint32_t rank, rank_count;
    banyan_path_t path;
    /* with BANYAN_NOWHERE: the status that the post would return */
    banyan_status_t status;
    /* with BANYAN_TREES: number of trees that carry a part of the operation */
    uint32_t tree_count;
    /* with BANYAN_TREES: payload of their largest packet */
    uint32_t packet_bytes;
    /* with BANYAN_TREES: data packets; a rank sends each packet in which it takes part */
    uint64_t packet_count;
    /* with BANYAN_TREES: readable list of the first trees and their packets */
    char trees[256];
    /* with BANYAN_HOSTS, of a communicator: rounds of messages */
    uint64_t round_count;
    /* Predicted duration, from the ranks' measurements when they connected; 0: not measured. */
    uint64_t predicted_ns;
    /* readable sentence with the reason for the path */
    char reason[256];
};

/*
 * Initialises `query` with an allreduce, sum of f32, of 0 elements. Any thread.
 */
BANYAN_API void banyan_query_init(struct banyan_query *query);

/*
 * Predicts the path of an operation with the same decision as a post. Sends nothing. If all ranks
 * have tables that were made together and the same settings, they get the same path. Arguments that
 * an _init function refuses are errors, such as an operator that the type does not support. Other
 * obstacles give BANYAN_OK with path BANYAN_NOWHERE:
 *
 * - a mode without this operation
 * - a table without trees for it
 * - trees whose nodes cannot compute it, and no connections between the hosts
 *
 * Errors: BANYAN_EINVAL, BANYAN_EUNSUPPORTED (operator on type), BANYAN_ELIMIT, BANYAN_EVERSION
 * (query->size), BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_comm_query(const struct banyan_comm *comm, struct banyan_query *query);

/*
 * Like banyan_comm_query, before a communicator exists: uses the table, job `job` as in
 * banyan_comm_create, and the settings. Opens nothing and contacts no rank, so there are no
 * measurements yet, and ranks are hosts of the table. Errors: the errors of both functions. Any
 * thread.
 */
BANYAN_API banyan_status_t banyan_context_query(struct banyan_context *context, uint32_t job,
                                                struct banyan_query *query);

/*
 * Returns the default mode of this communicator's requests, which is the mode of its context.
 * BANYAN_FAST for NULL.
 */
BANYAN_API banyan_mode_t banyan_comm_mode(const struct banyan_comm *comm);

/*
 * Returns the first fatal error of the communicator, raised by an operation or by banyan_abort;
 * BANYAN_OK if there is none. After such an error, posts fail with BANYAN_ESTATE. Any thread.
 */
BANYAN_API banyan_status_t banyan_comm_async_error(const struct banyan_comm *comm);

/*
 * Ends all operations of the communicator with BANYAN_EABORTED at the next test or wait, and wakes
 * a sleeping wait immediately. Afterwards the communicator can only be destroyed. Any thread, and
 * signal handlers.
 */
BANYAN_API banyan_status_t banyan_abort(struct banyan_comm *comm);

/*
 * Loads the pages of a buffer into memory and locks them until the buffer is deregistered or the
 * communicator is destroyed, so that operations cause no page faults. Registration is optional:
 * operations accept any memory. Pages that two registered buffers share are unlocked when the first
 * of the two is deregistered. Errors: BANYAN_EINVAL (NULL, 0 bytes, or not memory of this process),
 * BANYAN_EEXIST (a buffer with this start is already registered), BANYAN_ENOENT (none is),
 * BANYAN_ENOMEM and BANYAN_EPERM (the system's limit of locked memory).
 */
BANYAN_API banyan_status_t banyan_register(struct banyan_comm *comm, void *buffer, size_t bytes);
BANYAN_API banyan_status_t banyan_deregister(struct banyan_comm *comm, void *buffer);

/*
 * Returns the name and value of counter `index`, counted from 0. Names look like
 * "port/eth0/rx_bytes", "endpoint/retx" or "engine/contrib"; values count since the communicator
 * was created. The name is valid until the communicator is destroyed. BANYAN_ENOENT beyond the last
 * counter (sets no error text).
 */
BANYAN_API banyan_status_t banyan_comm_counter(const struct banyan_comm *comm, uint32_t index,
                                               const char **name, uint64_t *value);

/*
 * Allocates a page-aligned buffer of at least `bytes` in *memory. If this host shares memory with
 * its switches (transport "shm"), the switches read sent data in place from it; data in other
 * buffers are copied first. With other transports, and beyond BANYAN_ARENA, it is ordinary memory.
 * All operations accept it as a buffer. The caller frees it with banyan_dealloc; the communicator
 * frees the rest. Errors: BANYAN_ENOMEM, BANYAN_EINVAL (NULL). Thread: the communicator's.
 */
BANYAN_API banyan_status_t banyan_alloc(struct banyan_comm *comm, size_t bytes, void **memory);

/*
 * Frees a buffer of banyan_alloc that no operation uses. BANYAN_EINVAL if the buffer does not
 * belong to this communicator. Thread: the communicator's.
 */
BANYAN_API banyan_status_t banyan_dealloc(struct banyan_comm *comm, void *memory);

/* ---- Operations ---- */

/*
 * Describe an operation; banyan_post starts it. Counts are in elements; n = banyan_comm_size. The
 * caller owns the buffers and aligns them as C requires for the type. Between the post and the end
 * of the operation, send buffers must not change and recv buffers must not be read. send and recv
 * may overlap only in place, as listed below. The caller frees the request with banyan_free, or the
 * communicator frees it. A request may be posted many times, one post at a time. Errors:
 * BANYAN_EINVAL (a NULL, an invalid root, an overlap), BANYAN_EUNSUPPORTED (operator on type),
 * BANYAN_ENOMEM.
 *
 * - allreduce: reduces send[count] of all ranks into recv[count] of all ranks. In place: send ==
 *   recv.
 * - reduce_scatter: reduces send[n * count] of all ranks. Rank r receives the elements [r * count,
 *   (r + 1) * count) in its recv[count]. In place: recv == send + r * count; the other shares keep
 *   their values.
 * - reduce_scatterv: like reduce_scatter, but the share of rank r has counts[r] elements and starts
 *   after the shares of the ranks before it. In place: recv is the address of the share in send.
 * - allgather: concatenates send[count] of all ranks in rank order into recv[n * count] of all
 *   ranks. In place: send == recv + r * count.
 * - allgatherv: like allgather, but rank r sends counts[r] elements. In place: send is the address
 *   of the share in recv.
 * - broadcast: copies buffer[count] of root to buffer[count] of all ranks.
 * - reduce: reduces send[count] of all ranks into recv[count] of root. In place: send == recv.
 *   Other ranks do not use recv; it may be NULL there.
 * - barrier: ends when all ranks have entered it.
 *
 * All ranks receive the same bits. `counts` has n elements, which must be the same on all ranks; it
 * is copied. An element may be 0; the buffer of an empty share may be NULL. With equal counts the
 * operation is identical to the one without v. `banyan plan --shares` makes plans for unequal
 * shares.
 */
BANYAN_API banyan_status_t banyan_allreduce_init(struct banyan_comm *comm, const void *send, void *recv,
                                                 uint64_t count, banyan_dtype_t dtype, banyan_op_t op,
                                                 struct banyan_request **request);
BANYAN_API banyan_status_t banyan_reduce_scatter_init(struct banyan_comm *comm, const void *send, void *recv,
                                                      uint64_t count, banyan_dtype_t dtype, banyan_op_t op,
                                                      struct banyan_request **request);
BANYAN_API banyan_status_t banyan_allgather_init(struct banyan_comm *comm, const void *send, void *recv,
                                                 uint64_t count, banyan_dtype_t dtype,
                                                 struct banyan_request **request);
BANYAN_API banyan_status_t banyan_reduce_scatterv_init(struct banyan_comm *comm, const void *send, void *recv,
                                                       const uint64_t *counts, banyan_dtype_t dtype,
                                                       banyan_op_t op, struct banyan_request **request);
BANYAN_API banyan_status_t banyan_allgatherv_init(struct banyan_comm *comm, const void *send, void *recv,
                                                  const uint64_t *counts, banyan_dtype_t dtype,
                                                  struct banyan_request **request);
BANYAN_API banyan_status_t banyan_broadcast_init(struct banyan_comm *comm, void *buffer, uint64_t count,
                                                 banyan_dtype_t dtype, uint32_t root,
                                                 struct banyan_request **request);
BANYAN_API banyan_status_t banyan_reduce_init(struct banyan_comm *comm, const void *send, void *recv,
                                              uint64_t count, banyan_dtype_t dtype, banyan_op_t op,
                                              uint32_t root, struct banyan_request **request);
BANYAN_API banyan_status_t banyan_barrier_init(struct banyan_comm *comm, struct banyan_request **request);

/*
 * Sets the mode of a request that is not running. The default is banyan_comm_mode(). All ranks must
 * set the same mode; otherwise the operation fails with BANYAN_EMISMATCH, and the error text names
 * the ranks that differ. Has no effect on operations without a reduction. Errors:
 * BANYAN_EUNSUPPORTED (banyan_supports_mode), BANYAN_EBUSY, BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_request_mode(struct banyan_request *request, banyan_mode_t mode);

/*
 * Starts the operation and returns immediately. Operations of a communicator run in the order of
 * their posts and overlap in time. A sum of floats in mode BANYAN_EXACT allocates memory (about
 * twice the size of the data for f32, once for f64), which the next such request reuses, and
 * counts as two operations.
 *
 * Errors:
 *
 * - BANYAN_EBUSY: this request is already posted.
 * - BANYAN_EAGAIN: 64 operations are running; wait for one.
 * - BANYAN_ESTATE: the communicator has failed, see banyan_comm_async_error.
 * - BANYAN_EUNSUPPORTED: the table has no trees for the operation, or their nodes cannot compute
 *   it, and the ranks are not connected to run it between the hosts; or the mode does not support
 *   the operation, or not on so many ranks.
 * - BANYAN_ENOMEM.
 * - BANYAN_EINVAL: NULL, or a freed request.
 */
BANYAN_API banyan_status_t banyan_post(struct banyan_request *request);

/*
 * Moves packets without blocking, and tests whether the operation has ended. If it has, sets *done
 * = 1 and returns its result; else sets *done = 0 and returns BANYAN_OK. Until the next post,
 * further calls return the same result. *done is written except with BANYAN_EINVAL. Errors besides
 * the result: BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_test(struct banyan_request *request, int *done);

/*
 * Moves packets until the operation has ended, and returns its result. Sleeps while there is
 * nothing to move. Errors: BANYAN_ETIMEDOUT (the text names the switch or the rank),
 * BANYAN_EMISMATCH, BANYAN_EUNSUPPORTED (a node cannot compute it, for example mode BANYAN_DET
 * without slots for it in the table), BANYAN_EABORTED, BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_wait(struct banyan_request *request);

/*
 * Like banyan_wait, for at most `microseconds`; for programs with other work to do. On a simulated
 * fabric the time is simulated time. If the operation has ended, sets *done = 1 and returns its
 * result; else sets *done = 0 and returns BANYAN_OK. *done is written except with BANYAN_EINVAL.
 * Errors besides the result: BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_wait_for(struct banyan_request *request, uint64_t microseconds, int *done);

/*
 * Frees a request that is not running. BANYAN_EBUSY while it runs; BANYAN_EINVAL for NULL, or for a
 * request that is already freed.
 */
BANYAN_API banyan_status_t banyan_free(struct banyan_request *request);

/*
 * Blocking forms: init, post, wait and free in one call. Errors: the errors of all four.
 */
BANYAN_API banyan_status_t banyan_allreduce(struct banyan_comm *comm, const void *send, void *recv,
                                            uint64_t count, banyan_dtype_t dtype, banyan_op_t op);
BANYAN_API banyan_status_t banyan_reduce_scatter(struct banyan_comm *comm, const void *send, void *recv,
                                                 uint64_t count, banyan_dtype_t dtype, banyan_op_t op);
BANYAN_API banyan_status_t banyan_allgather(struct banyan_comm *comm, const void *send, void *recv,
                                            uint64_t count, banyan_dtype_t dtype);
BANYAN_API banyan_status_t banyan_reduce_scatterv(struct banyan_comm *comm, const void *send, void *recv,
                                                  const uint64_t *counts, banyan_dtype_t dtype,
                                                  banyan_op_t op);
BANYAN_API banyan_status_t banyan_allgatherv(struct banyan_comm *comm, const void *send, void *recv,
                                             const uint64_t *counts, banyan_dtype_t dtype);
BANYAN_API banyan_status_t banyan_broadcast(struct banyan_comm *comm, void *buffer, uint64_t count,
                                            banyan_dtype_t dtype, uint32_t root);
BANYAN_API banyan_status_t banyan_reduce(struct banyan_comm *comm, const void *send, void *recv,
                                         uint64_t count, banyan_dtype_t dtype, banyan_op_t op, uint32_t root);
BANYAN_API banyan_status_t banyan_barrier(struct banyan_comm *comm);

#ifdef __cplusplus
}
#endif

#include <banyan/exchange.h>

#endif
