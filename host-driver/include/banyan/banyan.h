/*
 * libbanyan: collectives that the network computes. A process belongs to a job as one rank; the
 * job's table image, made by the controller for this host, says along which trees the network
 * multicasts and sums. This header needs nothing but the compiler.
 *
 *   banyan_init -> banyan_comm_create -> banyan_allreduce ... -> banyan_comm_destroy ->
 * banyan_finalize
 *
 * or, without blocking, for each operation
 *
 *   banyan_allreduce_init -> banyan_post -> banyan_test | banyan_wait -> (post again ...) ->
 * banyan_free
 *
 * Threads: objects of different contexts, and different communicators of one context, may be used
 * by different threads at the same time. One communicator, with its requests, belongs to one thread
 * at a time. The exceptions say so. Communicators of contexts that share a fabric
 * (banyan_fabric_open) count as one communicator.
 *
 * Errors: every function that can fail returns BANYAN_OK (0) or a negative status;
 * banyan_last_error() then holds a sentence for people that names the object, the limit and the
 * remedy. Outputs are written only on success, unless said otherwise.
 *
 * Order: all ranks of a communicator post the same operations in the same order. Ranks that do not
 * are told (BANYAN_EMISMATCH); no wrong data are delivered.
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

/* The build cares for visibility; this marks what is public. */
#if defined(__GNUC__)
#define BANYAN_API __attribute__((visibility("default")))
#else
#define BANYAN_API
#endif

/* How a function ended. BANYAN_OK is 0, errors are negative. */
typedef enum banyan_status {
    BANYAN_OK = 0,
    BANYAN_EINVAL = -1,        /* an argument is out of its range */
    BANYAN_ENOMEM = -2,        /* there is not enough memory */
    BANYAN_ELIMIT = -3,        /* a limit is exceeded */
    BANYAN_EFORMAT = -4,       /* a table image is malformed */
    BANYAN_ECHECKSUM = -5,     /* a table image is damaged; or data were, where they waited */
    BANYAN_EVERSION = -6,      /* a table image or a config has another version */
    BANYAN_ENOENT = -7,        /* no such file, job, interface or host */
    BANYAN_EEXIST = -8,        /* the object exists already */
    BANYAN_EBUSY = -9,         /* the object is in use */
    BANYAN_EAGAIN = -10,       /* nothing can be done now; try again */
    BANYAN_ETIMEDOUT = -11,    /* no progress within the time limit: a switch or a rank is silent */
    BANYAN_EMISMATCH = -12,    /* the ranks are in different operations */
    BANYAN_EUNSUPPORTED = -13, /* this combination is not supported */
    BANYAN_EPERM = -14,        /* the operating system does not permit it */
    BANYAN_EIO = -15,          /* input or output failed */
    BANYAN_ESTATE = -16,       /* the function is not valid in this state */
    BANYAN_EABORTED = -17,     /* banyan_abort was called */
    BANYAN_ERANGE = -18        /* a number cannot be represented */
} banyan_status_t;

/* Operators. Sums and products of integers wrap. min and max of floats: a NaN in any operand gives
 * NaN, and -0 < +0. */
typedef enum banyan_op {
    BANYAN_SUM = 1,
    BANYAN_PROD = 2,
    BANYAN_MIN = 3,
    BANYAN_MAX = 4,
    BANYAN_BAND = 5, /* the bitwise operators: integers only */
    BANYAN_BOR = 6,
    BANYAN_BXOR = 7
} banyan_op_t;

/* Element types, little-endian in memory. F16 is IEEE 754 binary16; both 16-bit floats accumulate
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

/* Collectives, where one is named by a value. */
typedef enum banyan_collective {
    BANYAN_ALLREDUCE = 1,
    BANYAN_REDUCE_SCATTER = 2,
    BANYAN_ALLGATHER = 3,
    BANYAN_BROADCAST = 4,
    BANYAN_REDUCE = 5,
    BANYAN_BARRIER = 6
} banyan_collective_t;

/*
 * In which order the network adds (or multiplies) floats, which rounds at each step. All else is
 * the same in every mode. Rules for NaN, zeros, infinities and overflow, and bounds of the error:
 * docs/arithmetic.md.
 */
typedef enum banyan_mode {
    BANYAN_FAST = 1, /* as contributions arrive: results are the same bits on all ranks, not in all runs */
    BANYAN_DET = 2, /* in the order of the tables: the same bits in all runs on the same tables, if these were
                       made for it (banyan tables --det) */
    BANYAN_EXACT =
        3 /* in none: the same bits on all trees. Sums alone; twice the bytes of f16, bf16 and f32 */
} banyan_mode_t;

/* Where an operation runs. */
typedef enum banyan_path {
    BANYAN_TREES = 1,  /* offloaded: along the trees of the table */
    BANYAN_HOSTS = 2,  /* between the hosts, by messages */
    BANYAN_NOWHERE = 3 /* its post fails */
} banyan_path_t;

struct banyan_fabric;  /* simulated fabric in this process: all hosts and switches of a folder of table images
                        */
struct banyan_context; /* one host: its table image and settings */
struct banyan_comm;    /* one rank of one job */
struct banyan_request; /* one operation, posted once or many times */

/* ---- Library ---- */

/*
 * The version of the library that runs: major * 10000 + minor * 100 + patch; compare with
 * BANYAN_VERSION. Any thread.
 */
BANYAN_API int banyan_version(void);

/*
 * The sentence for a status. Never NULL; static memory. Any thread.
 */
BANYAN_API const char *banyan_strerror(banyan_status_t status);

/*
 * The text of the last error in the calling thread: what failed, the limit, the remedy. "" when
 * nothing has failed yet. The text is the library's and stays until the next error in this thread.
 * Any thread.
 */
BANYAN_API const char *banyan_last_error(void);

/*
 * 1 when `op` on `dtype` can be reduced by the network, else 0 (also for unknown values). Any
 * thread.
 */
BANYAN_API int banyan_supports(banyan_op_t op, banyan_dtype_t dtype);

/*
 * The same in `mode`: 0 also for products of floats in mode BANYAN_EXACT. Any thread.
 */
BANYAN_API int banyan_supports_mode(banyan_mode_t mode, banyan_op_t op, banyan_dtype_t dtype);

/*
 * Bytes of one element of `dtype`; 0 for an unknown one. Any thread.
 */
BANYAN_API size_t banyan_dtype_size(banyan_dtype_t dtype);

/*
 * Names for people and command lines ("sum", "f32"); "?" for an unknown value. Static memory. Any
 * thread.
 */
BANYAN_API const char *banyan_op_name(banyan_op_t op);
BANYAN_API const char *banyan_dtype_name(banyan_dtype_t dtype);
BANYAN_API const char *banyan_mode_name(banyan_mode_t mode);

/*
 * Enumerates the settings: name of the environment variable, default, help, value in force and its
 * origin
 * ("default", "environment" or the path of a file) of setting `index`, counted from 0. Index 0
 * reads the files and the environment anew, and warns on stderr of unknown settings. Each pointer
 * may be NULL when it is not wanted; the texts are the calling thread's until it asks for index 0
 * again. BANYAN_ENOENT beyond the last one (sets no error text); BANYAN_EINVAL when a file has a
 * malformed line or a value is too long. Any thread, as long as nobody changes the environment.
 */
BANYAN_API banyan_status_t banyan_setting(uint32_t index, const char **name, const char **fallback,
                                          const char **help, const char **value, const char **origin);

/* ---- Fabric in this process ---- */

/*
 * Builds a fabric in this process from `folder`: every NODE.table in it is a host or a switch,
 * switches run the same engine as real ones, and ports are joined in memory by the addresses in the
 * images. No privileges are needed. Time is simulated, so with faults injected (BANYAN_LOSS,
 * BANYAN_DUP, BANYAN_REORDER, BANYAN_SEED: at the receive side of every node) a run is the same for
 * the same seed. The progress of any communicator moves the whole fabric: post on every rank before
 * you wait for one. Errors: BANYAN_EINVAL, BANYAN_ENOENT (no folder, or no table in it), an image's
 * errors, BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_fabric_open(const char *folder, struct banyan_fabric **fabric);

/*
 * Frees the fabric. BANYAN_EBUSY while a communicator uses it; BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_fabric_close(struct banyan_fabric *fabric);

/*
 * Name of host `index`, counted from 0 in the order of ranks of the fabric; NULL beyond the last.
 * The text lives as long as the fabric.
 */
BANYAN_API const char *banyan_fabric_host(const struct banyan_fabric *fabric, uint32_t index);

/*
 * One direction of a cable of the fabric: names of the sender, its port, the receiver and its port,
 * and what was sent so far (bytes are whole Ethernet frames without preamble and checksum).
 * BANYAN_ENOENT beyond the last `index` (sets no error text).
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
 * Who this process is, from a program that knows: for ranks that meet without a table, or with one
 * that has too few trees (banyan_comm_create). `allgather` gives every rank the `bytes` bytes of
 * all, in the order of ranks: all[rank_count * bytes]. It is called by the first banyan_comm_create
 * of a context that wants it, in its thread, on all ranks; it may block, and returns 0 or, when it
 * has failed, anything else. A program under MPI hands over MPI_Allgather here.
 */
struct banyan_bootstrap {
    size_t size; /* sizeof(struct banyan_bootstrap) */
    uint32_t rank;
    uint32_t rank_count; /* at most 1000 */
    void *context;       /* the first argument of allgather */
    int (*allgather)(void *context, const void *mine, void *all, size_t bytes);
};

/*
 * What banyan_init may be told. Fill it with banyan_config_init, then change what you want; a field
 * left alone means the environment variable of that name, and then the default. The strings are
 * copied.
 */
struct banyan_config {
    size_t size;           /* sizeof(struct banyan_config) of the headers that you compiled with */
    const char *table;     /* this host's table image, or a folder with HOSTNAME.table (BANYAN_TABLE) */
    const char *transport; /* "auto", "afxdp", "udp" or "shm" (BANYAN_TRANSPORT) */
    uint64_t
        timeout_ms; /* an operation without progress for this long fails (BANYAN_TIMEOUT); 0 = not given */
    struct banyan_fabric
        *fabric;      /* run on this fabric in memory; `table` and `transport` are then not used */
    const char *host; /* with `fabric`: this host's name */
    const char
        *mode; /* "fast", "det" or "exact": that of all requests that are not told otherwise (BANYAN_MODE) */
    const char *launcher;                     /* "auto", "env", "pmix", "pmi" or "none" (BANYAN_BOOTSTRAP) */
    const struct banyan_bootstrap *bootstrap; /* or NULL: `launcher` counts; copied */
};

/*
 * Fills `config` with "not given". Any thread.
 */
BANYAN_API void banyan_config_init(struct banyan_config *config);

/*
 * Makes a context: reads settings and the table image. `config` may be NULL. Opens no socket yet.
 * The caller frees it with banyan_finalize. Errors: BANYAN_EINVAL (a setting), BANYAN_EVERSION
 * (config->size), BANYAN_ENOENT and the image's errors, BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_init(const struct banyan_config *config, struct banyan_context **context);

/*
 * Frees the context. BANYAN_EBUSY while communicators exist, BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_finalize(struct banyan_context *context);

/* ---- Communicator ---- */

/*
 * Joins job `job` of the context's table as the rank that the table gives this host: opens the
 * transport and, where this host is an inner node of a tree, starts its engine. `job` 0 means
 * BANYAN_JOB, or else the only job of the table. Not collective: it returns without waiting for
 * other ranks. Where there is no table, or one without trees for some collective, and RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, it is collective: the ranks meet, and what the
 * table does not serve runs between the hosts (BANYAN_FALLBACK). Rank 0 prints one line on stderr
 * saying which transport and trees it uses, and why. Errors: BANYAN_ENOENT (no such job, several
 * jobs, an interface is missing), BANYAN_EBUSY (another process has the address), BANYAN_EPERM,
 * BANYAN_ENOMEM, BANYAN_EIO.
 */
BANYAN_API banyan_status_t banyan_comm_create(struct banyan_context *context, uint32_t job,
                                              struct banyan_comm **comm);

/*
 * Leaves the job and frees the communicator with all its requests. Operations that still run are
 * aborted. A host that is an inner node of a tree first answers others for BANYAN_LINGER
 * milliseconds of silence, in case its last packets were lost, but never longer than
 * BANYAN_TIMEOUT: it returns whoever is dead. BANYAN_EINVAL for NULL.
 */
BANYAN_API banyan_status_t banyan_comm_destroy(struct banyan_comm *comm);

/*
 * This rank, 0 <= rank < size. 0 for NULL.
 */
BANYAN_API uint32_t banyan_comm_rank(const struct banyan_comm *comm);

/*
 * Ranks of the job (count). 0 for NULL.
 */
BANYAN_API uint32_t banyan_comm_size(const struct banyan_comm *comm);

/*
 * "afxdp", "udp", "shm" or "memory": what moves this communicator's packets; without a table
 * "tcp". Static memory. NULL for NULL.
 */
BANYAN_API const char *banyan_comm_transport(const struct banyan_comm *comm);

/*
 * 1 when this rank's table has trees for `collective` (with `root` as the root of broadcast and
 * reduce; else it is ignored); 0 when a post would fail with BANYAN_EUNSUPPORTED or, where ranks
 * have met, run between the hosts; also for unknown values and NULL. Tables that were made together
 * say the same on all ranks.
 */
BANYAN_API int banyan_comm_serves(const struct banyan_comm *comm, banyan_collective_t collective,
                                  uint32_t root);

/*
 * A question: what would become of an operation, and its answer. Fill it with banyan_query_init (a
 * sum of f32), then change what you want.
 */
struct banyan_query {
    size_t size; /* sizeof(struct banyan_query) of the headers that you compiled with */
    /* The operation, as for its _init function; what it does not have is ignored. */
    banyan_collective_t collective;
    banyan_op_t op;
    banyan_dtype_t dtype;
    banyan_mode_t mode; /* 0: that of the communicator */
    uint32_t root;
    uint64_t count;
    const uint64_t *counts; /* of all ranks, in place of `count`: allgatherv and reduce_scatterv; or NULL */
    /* The answer. */
    uint32_t rank, rank_count; /* of the job */
    banyan_path_t path;
    banyan_status_t status; /* with BANYAN_NOWHERE: what the post returns */
    uint32_t tree_count;    /* with BANYAN_TREES: trees that carry part of it, */
    uint32_t packet_bytes;  /* payload of their largest packet, */
    uint64_t packet_count;  /* packets of data, of which a rank sends each that it has part in, */
    char trees[256];        /* and which they are, for people: the first ones, and their packets */
    uint64_t round_count;   /* with BANYAN_HOSTS, of a communicator: rounds of messages */
    uint64_t predicted_ns;  /* how long it will take, by what the ranks measured when they met; 0: nobody has
                               measured this path */
    char reason[256];       /* why, as a sentence for people */
};

/*
 * Fills `query` with "an allreduce, sum of f32, of 0 elements". Any thread.
 */
BANYAN_API void banyan_query_init(struct banyan_query *query);

/*
 * Answers by what the communicator has: it decides as a post does. Sends nothing; tables that were
 * made together, and the same settings, give all ranks the same path. An operator that the type
 * does not have and the like are errors, as of the _init functions; a mode without such an
 * operation, a table without trees, or with trees whose nodes cannot compute it and no way between
 * the hosts, is an answer (BANYAN_NOWHERE). Errors: BANYAN_EINVAL, BANYAN_EUNSUPPORTED (operator on
 * type), BANYAN_ELIMIT, BANYAN_EVERSION (query->size), BANYAN_ENOMEM.
 */
BANYAN_API banyan_status_t banyan_comm_query(const struct banyan_comm *comm, struct banyan_query *query);

/*
 * The same before there is a communicator: by the table, job `job` as for banyan_comm_create, and
 * the settings. Opens nothing and meets nobody, so that what ranks measure when they meet is not
 * known yet. Errors: those of both. Any thread.
 */
BANYAN_API banyan_status_t banyan_context_query(struct banyan_context *context, uint32_t job,
                                                struct banyan_query *query);

/*
 * The mode that requests of this communicator begin with: that of its context. BANYAN_FAST for
 * NULL.
 */
BANYAN_API banyan_mode_t banyan_comm_mode(const struct banyan_comm *comm);

/*
 * The first fatal error of the communicator, BANYAN_OK while there is none: found by any operation
 * or by banyan_abort. After one, posts fail with BANYAN_ESTATE. Any thread.
 */
BANYAN_API banyan_status_t banyan_comm_async_error(const struct banyan_comm *comm);

/*
 * Ends all operations of the communicator with BANYAN_EABORTED, at the next test or wait; a wait
 * that sleeps wakes at once. Destroy is the only thing to do with the communicator then. Any
 * thread, and signal handlers.
 */
BANYAN_API banyan_status_t banyan_abort(struct banyan_comm *comm);

/*
 * Brings the pages of a buffer into memory and keeps them there until it is deregistered or the
 * communicator destroyed, so that no operation waits for the system to find them. No buffer needs
 * it: operations take any memory. Pages that two registered buffers share are let go of with the
 * first of them. Errors: BANYAN_EINVAL (NULL, 0 bytes, no memory of this process), BANYAN_EEXIST (a
 * buffer that begins there is registered), BANYAN_ENOENT (none is), BANYAN_ENOMEM and BANYAN_EPERM
 * (the system's limit of locked memory).
 */
BANYAN_API banyan_status_t banyan_register(struct banyan_comm *comm, void *buffer, size_t bytes);
BANYAN_API banyan_status_t banyan_deregister(struct banyan_comm *comm, void *buffer);

/*
 * Counter `index`, counted from 0: a name like "port/eth0/rx_bytes", "endpoint/retx",
 * "engine/contrib", and its value since the communicator was made. The name lives as long as the
 * communicator. BANYAN_ENOENT beyond the last (sets no error text).
 */
BANYAN_API banyan_status_t banyan_comm_counter(const struct banyan_comm *comm, uint32_t index,
                                               const char **name, uint64_t *value);

/*
 * A buffer of at least `bytes`, on a page's start, in *memory. Where this host shares memory with
 * its switches (transport "shm"), they read what is sent from it in place; other buffers are copied
 * first. Elsewhere, and beyond BANYAN_ARENA, it is plain memory: right for all buffers of
 * operations. The caller gives it back by banyan_dealloc; what is left goes with the communicator.
 * Errors: BANYAN_ENOMEM, BANYAN_EINVAL (NULL). Thread: that of the communicator.
 */
BANYAN_API banyan_status_t banyan_alloc(struct banyan_comm *comm, size_t bytes, void **memory);

/*
 * Gives back a buffer of banyan_alloc, which no operation uses any more. BANYAN_EINVAL when it is
 * none of this communicator's. Thread: that of the communicator.
 */
BANYAN_API banyan_status_t banyan_dealloc(struct banyan_comm *comm, void *memory);

/* ---- Operations ---- */

/*
 * Describe an operation; nothing is sent before banyan_post. Counts are elements, n =
 * banyan_comm_size. Buffers are the caller's, are aligned as C wants it for the type, and must not
 * change (send) or be read (recv) between the post and its end. send and recv may overlap only "in
 * place", as said. The request is freed by banyan_free, or with the communicator. A request
 * describes one operation and may be posted again and again, one post at a time. Errors:
 * BANYAN_EINVAL (a NULL, a root that is no rank, an overlap), BANYAN_EUNSUPPORTED (operator on
 * type), BANYAN_ENOMEM.
 *
 * - allreduce: send[count] of all, reduced, to recv[count] of all. In place: send == recv.
 * - reduce_scatter: send[n * count] of all, reduced; rank r's share, the elements [r * count,
 *   (r + 1) * count), to its recv[count]. In place: recv == send + r * count; other shares stay as
 *   they were.
 * - reduce_scatterv: the same where rank r's share has counts[r] elements and begins behind those
 *   of the ranks before it. In place: recv is where send has the share.
 * - allgather: send[count] of each, one behind the other in the order of ranks, to recv[n * count]
 *   of all. In place: send == recv + r * count.
 * - allgatherv: the same where rank r gives counts[r] elements. In place: send is where recv has
 *   the share.
 * - broadcast: buffer[count] of root to buffer[count] of all.
 * - reduce: send[count] of all, reduced, to recv[count] of root. In place: send == recv. recv is
 *   not used at other ranks; it may be NULL there.
 * - barrier: ends when all ranks have entered.
 *
 * Results are the same bits on all ranks. `counts` has n elements, the same at all ranks; it is
 * copied, and any of them may be 0: the buffer of such a share may be NULL. With equal counts the
 * operation is the one without v. Plans for such shares: banyan plan --shares.
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
 * Sets the mode of a request that is not running; else it is banyan_comm_mode(). All ranks must
 * take the same (BANYAN_EMISMATCH of the operation names those that did not). Of no effect where
 * nothing is reduced. Errors: BANYAN_EUNSUPPORTED (banyan_supports_mode), BANYAN_EBUSY,
 * BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_request_mode(struct banyan_request *request, banyan_mode_t mode);

/*
 * Starts the operation and returns at once. Operations of a communicator run in the order of their
 * posts and overlap in time. A sum of floats in mode BANYAN_EXACT takes memory (about twice the
 * elements of f32, once those of f64), which the next such request uses again, and counts as two
 * operations. Errors: BANYAN_EBUSY (this request is posted already), BANYAN_EAGAIN (64 operations
 * run; wait for one), BANYAN_ESTATE (the communicator has failed, see banyan_comm_async_error),
 * BANYAN_EUNSUPPORTED (the table has no trees for this, or says that their nodes cannot compute it,
 * and ranks have not met to do it between hosts; the mode has no such operation, or not on so many
 * ranks), BANYAN_ENOMEM, BANYAN_EINVAL (NULL or freed).
 */
BANYAN_API banyan_status_t banyan_post(struct banyan_request *request);

/*
 * Moves packets without blocking, and says whether the operation has ended: *done = 1 and the
 * operation's result is returned, else *done = 0 and BANYAN_OK. After an end, and before the next
 * post, it returns that result again. *done is written in every case but BANYAN_EINVAL. Errors
 * besides the result: BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_test(struct banyan_request *request, int *done);

/*
 * Moves packets until the operation has ended and returns its result; sleeps when there is nothing
 * to move. Errors: BANYAN_ETIMEDOUT (the text names the switch or the rank), BANYAN_EMISMATCH,
 * BANYAN_EUNSUPPORTED (a node cannot compute it, such as mode BANYAN_DET without slots for it in
 * the table), BANYAN_EABORTED, BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_wait(struct banyan_request *request);

/*
 * The same for at most `microseconds`: for those who have other things to move as well; the time is
 * that of the fabric where it is simulated. *done = 1 and the operation's result is returned when
 * it has ended, else *done = 0 and BANYAN_OK. *done is written in every case but BANYAN_EINVAL.
 * Errors besides the result: BANYAN_ESTATE (never posted), BANYAN_EINVAL.
 */
BANYAN_API banyan_status_t banyan_wait_for(struct banyan_request *request, uint64_t microseconds, int *done);

/*
 * Frees a request that is not running. BANYAN_EBUSY while it runs; BANYAN_EINVAL for NULL, or when
 * it was freed already.
 */
BANYAN_API banyan_status_t banyan_free(struct banyan_request *request);

/*
 * The same operations, blocking: init, post, wait, free. Errors of all of these.
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

#endif
