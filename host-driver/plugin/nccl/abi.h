/*
 * The binary interface between NCCL and its network plugins, versions 8 to 12, in banyan's own
 * words: only the layout of the structs, the order and arguments of the functions, the numbers and
 * the exported names are NCCL's. NCCL 2.20 introduced version 8, 2.24 version 9, 2.26 version 10,
 * 2.28 version 11 and 2.30 version 12; it looks up the newest version that it supports in a plugin.
 * Enumerations are ints here, as they are in NCCL's calls. Included by the adapters, and by the
 * harness that plays NCCL's part.
 */
#ifndef BY_PLUGIN_NCCL_ABI_H
#define BY_PLUGIN_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Results of every function. */
#define BY_NCCL_OK       0
#define BY_NCCL_SYSTEM   2 /* the operating system refused */
#define BY_NCCL_INTERNAL 3 /* neither the system nor the caller */
#define BY_NCCL_ARGUMENT 4 /* an argument is invalid */
#define BY_NCCL_USAGE    5 /* the caller broke the rules, or a setting is invalid */
#define BY_NCCL_REMOTE   6 /* the peer ended, or does not respond */

#define BY_NCCL_HANDLE_BYTES   128 /* what ranks exchange to connect */
#define BY_NCCL_REQUESTS_MAX   32  /* concurrent requests that NCCL assumes of a connection */
#define BY_NCCL_MEMORY_HOST    1   /* kinds of memory: bits */
#define BY_NCCL_MEMORY_CUDA    2
#define BY_NCCL_LOG_WARN       2
#define BY_NCCL_LOG_INFO       3
#define BY_NCCL_LOG_ABOUT_INIT 0x01 /* subsystems of a line: bits */
#define BY_NCCL_LOG_ABOUT_NET  0x10
#define BY_NCCL_UNKNOWN        (-1) /* of rail and plane */

/* Element types and operators, as NCCL numbers them. */
enum by_nccl_type {
    BY_NCCL_I8 = 0,
    BY_NCCL_U8 = 1,
    BY_NCCL_I32 = 2,
    BY_NCCL_U32 = 3,
    BY_NCCL_I64 = 4,
    BY_NCCL_U64 = 5,
    BY_NCCL_F16 = 6,
    BY_NCCL_F32 = 7,
    BY_NCCL_F64 = 8,
    BY_NCCL_BF16 = 9,
    BY_NCCL_TYPES = 10 /* the first type without an equivalent in banyan */
};
enum by_nccl_op {
    BY_NCCL_SUM = 0,
    BY_NCCL_PROD = 1,
    BY_NCCL_MAX = 2,
    BY_NCCL_MIN = 3,
    BY_NCCL_OPS = 4 /* the first operator without an equivalent in banyan (the average) */
};

typedef void (*by_nccl_logger)(int level, unsigned long about, const char *file, int line, const char *format,
                               ...);
/* NCCL's profiler; the plugin reports no events. */
typedef int (*by_nccl_profiler)(void **event, int type, void *parent, int64_t plugin, void *more);

/* ---- properties of a device ---- */

struct by_nccl_props_v8 {
    char *name;
    char *pci_path; /* below /sys, or NULL */
    uint64_t guid;
    int memory; /* bits BY_NCCL_MEMORY_* */
    int registration_is_global;
    int speed_mbps;
    int port;
    float latency_us;
    int comms_max;
    int grouped_receives_max;
    int offload_kind; /* 0: the host moves the data */
    int offload_version;
};

struct by_nccl_parts_v9 { /* of a virtual device */
    int count;
    int device[4];
};

struct by_nccl_props_v9 { /* also version 10 */
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory;
    int registration_is_global;
    int must_flush;
    int speed_mbps;
    int port;
    float latency_us;
    int comms_max;
    int grouped_receives_max;
    int offload_kind;
    int offload_version;
    struct by_nccl_parts_v9 parts;
    size_t message_bytes_max;
    size_t collective_bytes_max;
};

struct by_nccl_props_v11 {
    struct by_nccl_props_v9 v9;
    int grouped_requests_max;
};

struct by_nccl_parts_v12 {
    int count;
    int device[8];
};

struct by_nccl_props_v12 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int memory;
    int registration_is_global;
    int must_flush;
    int speed_mbps;
    int port;
    float latency_us;
    int comms_max;
    int grouped_receives_max;
    int offload_kind;
    int offload_version;
    struct by_nccl_parts_v12 parts;
    size_t message_bytes_max;
    size_t collective_bytes_max;
    int grouped_requests_max;
    int16_t rail;
    int16_t plane;
};

/* Configuration of a communicator (version 10 and later), and hints about its traffic (11). */
struct by_nccl_config {
    int traffic_class;
};
struct by_nccl_hints {
    int32_t of_senders[4];
    int32_t of_receivers[4];
    uint32_t operation, algorithm, protocol;
};

/* ---- messages between two ranks ---- */

struct by_nccl_net_v8 {
    const char *name;
    int (*init)(by_nccl_logger logger);
    int (*devices)(int *count);
    int (*properties)(int device, struct by_nccl_props_v8 *props);
    int (*listen)(int device, void *handle, void **listener);
    int (*connect)(int device, void *handle, void **sender, void **offload);
    int (*accept)(void *listener, void **receiver, void **offload);
    int (*add_memory)(void *comm, void *data, size_t bytes, int kind, void **memory);
    int (*add_dma_memory)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                          void **memory);
    int (*remove_memory)(void *comm, void *memory);
    int (*send)(void *sender, void *data, int bytes, int tag, void *memory, void **request);
    int (*receive)(void *receiver, int count, void **data, int *bytes, int *tags, void **memory,
                   void **request);
    int (*flush)(void *receiver, int count, void **data, int *bytes, void **memory, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_sender)(void *sender);
    int (*close_receiver)(void *receiver);
    int (*close_listener)(void *listener);
    int (*offload_memory)(void *comm, void *memory, void **offload);
    int (*consumed)(void *receiver, int count, void *request);
};

struct by_nccl_net_v9 {
    const char *name;
    int (*init)(by_nccl_logger logger);
    int (*devices)(int *count);
    int (*properties)(int device, struct by_nccl_props_v9 *props);
    int (*listen)(int device, void *handle, void **listener);
    int (*connect)(int device, void *handle, void **sender, void **offload);
    int (*accept)(void *listener, void **receiver, void **offload);
    int (*add_memory)(void *comm, void *data, size_t bytes, int kind, void **memory);
    int (*add_dma_memory)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                          void **memory);
    int (*remove_memory)(void *comm, void *memory);
    int (*send)(void *sender, void *data, size_t bytes, int tag, void *memory, void **request);
    int (*receive)(void *receiver, int count, void **data, size_t *bytes, int *tags, void **memory,
                   void **request);
    int (*flush)(void *receiver, int count, void **data, int *bytes, void **memory, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_sender)(void *sender);
    int (*close_receiver)(void *receiver);
    int (*close_listener)(void *listener);
    int (*offload_memory)(void *comm, void *memory, void **offload);
    int (*consumed)(void *receiver, int count, void *request);
    int (*make_virtual)(int *device, struct by_nccl_parts_v9 *parts);
};

struct by_nccl_net_v10 {
    const char *name;
    int (*init)(by_nccl_logger logger, by_nccl_profiler profiler);
    int (*devices)(int *count);
    int (*properties)(int device, struct by_nccl_props_v9 *props);
    int (*listen)(int device, void *handle, void **listener);
    int (*connect)(int device, struct by_nccl_config *config, void *handle, void **sender, void **offload);
    int (*accept)(void *listener, void **receiver, void **offload);
    int (*add_memory)(void *comm, void *data, size_t bytes, int kind, void **memory);
    int (*add_dma_memory)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                          void **memory);
    int (*remove_memory)(void *comm, void *memory);
    int (*send)(void *sender, void *data, size_t bytes, int tag, void *memory, void *event, void **request);
    int (*receive)(void *receiver, int count, void **data, size_t *bytes, int *tags, void **memory,
                   void **events, void **request);
    int (*flush)(void *receiver, int count, void **data, int *bytes, void **memory, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_sender)(void *sender);
    int (*close_receiver)(void *receiver);
    int (*close_listener)(void *listener);
    int (*offload_memory)(void *comm, void *memory, void **offload);
    int (*consumed)(void *receiver, int count, void *request);
    int (*make_virtual)(int *device, struct by_nccl_parts_v9 *parts);
};

/* Versions 11 and 12 differ in the structs behind `properties` and `make_virtual` only. */
#define BY_NCCL_NET_TABLE(version, props_type, parts_type)                                                   \
    struct by_nccl_net_##version {                                                                           \
        const char *name;                                                                                    \
        int (*init)(void **context, uint64_t comm_id, struct by_nccl_config *config, by_nccl_logger logger,  \
                    by_nccl_profiler profiler);                                                              \
        int (*devices)(int *count);                                                                          \
        int (*properties)(int device, props_type *props);                                                    \
        int (*listen)(void *context, int device, void *handle, void **listener);                             \
        int (*connect)(void *context, int device, void *handle, void **sender, void **offload);              \
        int (*accept)(void *listener, void **receiver, void **offload);                                      \
        int (*add_memory)(void *comm, void *data, size_t bytes, int kind, void **memory);                    \
        int (*add_dma_memory)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,     \
                              void **memory);                                                                \
        int (*remove_memory)(void *comm, void *memory);                                                      \
        int (*send)(void *sender, void *data, size_t bytes, int tag, void *memory, void *event,              \
                    void **request);                                                                         \
        int (*receive)(void *receiver, int count, void **data, size_t *bytes, int *tags, void **memory,      \
                       void **events, void **request);                                                       \
        int (*flush)(void *receiver, int count, void **data, int *bytes, void **memory, void **request);     \
        int (*test)(void *request, int *done, int *bytes);                                                   \
        int (*close_sender)(void *sender);                                                                   \
        int (*close_receiver)(void *receiver);                                                               \
        int (*close_listener)(void *listener);                                                               \
        int (*offload_memory)(void *comm, void *memory, void **offload);                                     \
        int (*consumed)(void *receiver, int count, void *request);                                           \
        int (*make_virtual)(int *device, parts_type *parts);                                                 \
        int (*finish)(void *context);                                                                        \
        int (*hint)(void *context, struct by_nccl_hints *hints);                                             \
    }
BY_NCCL_NET_TABLE(v11, struct by_nccl_props_v11, struct by_nccl_parts_v9);
BY_NCCL_NET_TABLE(v12, struct by_nccl_props_v12, struct by_nccl_parts_v12);

/* ---- collectives ---- */

struct by_nccl_piece_v8 { /* a part of a buffer */
    void *memory;
    void *data;
    uint32_t bytes;
};
struct by_nccl_piece { /* version 9 and later */
    void *memory;
    void *data;
    size_t bytes;
};

/* What every version has, in this order; the arguments that differ are parameters. */
#define BY_NCCL_COLL_MEMBERS(count_type, piece_type)                                                         \
    int (*connect)(void *handles[], int ranks, int rank, void *listener, void **coll);                       \
    int (*supports)(int type, int op, int *supported);                                                       \
    int (*add_memory)(void *coll, void *data, size_t bytes, int kind, void **memory);                        \
    int (*add_dma_memory)(void *coll, void *data, size_t bytes, int kind, uint64_t offset, int file,         \
                          void **memory);                                                                    \
    int (*remove_memory)(void *coll, void *memory);                                                          \
    int (*allreduce)(void *coll, void *send, void *recv, count_type count, int type, int op,                 \
                     void *send_memory, void *recv_memory, void **request);                                  \
    int (*allgather)(void *coll, void *send, int pieces, piece_type *recv, size_t rank_bytes,                \
                     size_t window_offset, size_t window_bytes, void *send_memory, void **request);          \
    int (*reduce_scatter)(void *coll, int pieces, piece_type *send, void *recv, size_t rank_bytes,           \
                          size_t window_offset, size_t window_bytes, int type, int op, void *recv_memory,    \
                          void **request);                                                                   \
    int (*flush)(void *coll, void *data, int bytes, void *memory, void **request);                           \
    int (*test)(void *request, int *done, int *bytes);                                                       \
    int (*close)(void *coll);                                                                                \
    int (*close_listener)(void *listener)

struct by_nccl_coll_v8 {
    const char *name;
    int (*init)(by_nccl_logger logger);
    int (*devices)(int *count);
    int (*properties)(int device, struct by_nccl_props_v8 *props);
    int (*listen)(int device, void *handle, void **listener);
    BY_NCCL_COLL_MEMBERS(int, struct by_nccl_piece_v8);
};

struct by_nccl_coll_v9 { /* also version 10 */
    const char *name;
    int (*init)(by_nccl_logger logger);
    int (*devices)(int *count);
    int (*properties)(int device, struct by_nccl_props_v9 *props);
    int (*listen)(int device, void *handle, void **listener);
    BY_NCCL_COLL_MEMBERS(size_t, struct by_nccl_piece);
    int (*make_virtual)(int *device, struct by_nccl_parts_v9 *parts);
};

#define BY_NCCL_COLL_TABLE(version, props_type, parts_type)                                                  \
    struct by_nccl_coll_##version {                                                                          \
        const char *name;                                                                                    \
        int (*init)(void **context, uint64_t comm_id, by_nccl_logger logger);                                \
        int (*devices)(int *count);                                                                          \
        int (*properties)(int device, props_type *props);                                                    \
        int (*listen)(void *context, int device, void *handle, void **listener);                             \
        BY_NCCL_COLL_MEMBERS(size_t, struct by_nccl_piece);                                                  \
        int (*make_virtual)(int *device, parts_type *parts);                                                 \
        int (*finish)(void *context);                                                                        \
    }
BY_NCCL_COLL_TABLE(v11, struct by_nccl_props_v11, struct by_nccl_parts_v9);
BY_NCCL_COLL_TABLE(v12, struct by_nccl_props_v12, struct by_nccl_parts_v12);

#endif
