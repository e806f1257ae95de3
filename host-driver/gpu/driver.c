/* CUDA's driver library; see driver.h. The declarations here describe its binary interface. */
#include "host-driver/gpu/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "host-driver/error.h"

#define ATTRIBUTE_CONTEXT     1
#define ATTRIBUTE_MEMORY_TYPE 2
#define ATTRIBUTE_MANAGED     8
#define MEMORY_DEVICE         2u
#define NOT_READY             600
#define PINNED_PORTABLE       1u
#define STREAM_NON_BLOCKING   1u
#define EVENT_NO_TIMING       2u

/* X(name, type): CUdeviceptr is a 64-bit number, all handles are pointers, every result is an int,
 * 0 is right. */
#define FUNCTION_LIST(X)                                                                                     \
    X(cuPointerGetAttribute, int (*)(void *value, int attribute, uint64_t pointer))                          \
    X(cuGetErrorName, int (*)(int error, const char **name))                                                 \
    X(cuCtxPushCurrent_v2, int (*)(void *context))                                                           \
    X(cuCtxPopCurrent_v2, int (*)(void **context))                                                           \
    X(cuMemHostAlloc, int (*)(void **memory, size_t bytes, unsigned flags))                                  \
    X(cuMemFreeHost, int (*)(void *memory))                                                                  \
    X(cuMemcpyDtoHAsync_v2, int (*)(void *to, uint64_t from, size_t bytes, void *stream))                    \
    X(cuMemcpyHtoDAsync_v2, int (*)(uint64_t to, const void *from, size_t bytes, void *stream))              \
    X(cuStreamCreate, int (*)(void **stream, unsigned flags))                                                \
    X(cuStreamDestroy_v2, int (*)(void *stream))                                                             \
    X(cuStreamSynchronize, int (*)(void *stream))                                                            \
    X(cuEventCreate, int (*)(void **event, unsigned flags))                                                  \
    X(cuEventDestroy_v2, int (*)(void *event))                                                               \
    X(cuEventRecord, int (*)(void *event, void *stream))                                                     \
    X(cuEventQuery, int (*)(void *event))

static struct {
#define X(name, type) __typeof__((type)0) name;
    FUNCTION_LIST(X)
#undef X
} cuda;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool found;
/* Number of libraries that the process had loaded, in total, at the last search for CUDA. */
static atomic_ullong adds_seen;

static int load(void *library)
{
#define X(name, type)                                                                                        \
    cuda.name = (__typeof__(cuda.name))dlsym(library, #name);                                                \
    if (cuda.name == NULL)                                                                                   \
        return by_fail(BY_EVERSION, "the CUDA driver library has no %s; set BANYAN_GPU=off", #name);
    FUNCTION_LIST(X)
#undef X
    atomic_store(&found, true);
    return 0;
}

static int adds_of(struct dl_phdr_info *info, size_t bytes, void *adds)
{
    (void)bytes;
    *(unsigned long long *)adds = info->dlpi_adds;
    return 1; /* equal for every library */
}

/* Whether the process has loaded a library since the last call. A search by name reads the linker's
 * cache and folders, which takes 20 us, and every operation asks for it. */
static bool has_grown(void)
{
    unsigned long long adds = 0;

    dl_iterate_phdr(adds_of, &adds);
    return atomic_exchange(&adds_seen, adds) != adds;
}

int by_gpu_find(const char *path)
{
    void *library;
    int error = 0;

    if (atomic_load(&found) || (path[0] == 0 && !has_grown()))
        return 0;
    pthread_mutex_lock(&lock);
    library =
        path[0] != 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL && !atomic_load(&found))
        error = load(library);
    else if (library == NULL && path[0] != 0)
        error = by_fail(BY_ENOENT, "BANYAN_CUDA_LIBRARY: %s", dlerror());
    pthread_mutex_unlock(&lock);
    return error;
}

void *by_gpu_context_of(const void *pointer)
{
    uint64_t address = (uintptr_t)pointer;
    void *context = NULL;
    unsigned type = 0, managed = 0;

    if (pointer == NULL || !atomic_load(&found) ||
        cuda.cuPointerGetAttribute(&type, ATTRIBUTE_MEMORY_TYPE, address) != 0 || type != MEMORY_DEVICE)
        return NULL;
    if (cuda.cuPointerGetAttribute(&managed, ATTRIBUTE_MANAGED, address) == 0 && managed != 0)
        return NULL;
    if (cuda.cuPointerGetAttribute(&context, ATTRIBUTE_CONTEXT, address) != 0)
        return NULL;
    return context;
}

static int fail(int status, const char *what)
{
    const char *name = NULL;

    if (cuda.cuGetErrorName(status, &name) != 0 || name == NULL)
        name = "an unknown error";
    return by_fail(BY_EIO, "CUDA: %s failed: %s (%d)", what, name, status);
}

/* Runs a CUDA call with `context` as the thread's current one, and restores the previous one. */
#define IN_CONTEXT(context_, status, call)                                                                   \
    do {                                                                                                     \
        void *was_;                                                                                          \
                                                                                                             \
        (status) = cuda.cuCtxPushCurrent_v2(context_);                                                       \
        if ((status) == 0) {                                                                                 \
            (status) = cuda.call;                                                                            \
            cuda.cuCtxPopCurrent_v2(&was_);                                                                  \
        }                                                                                                    \
    } while (0)

int by_gpu_lane_open(struct by_gpu_lane *lane, void *context)
{
    int status;

    lane->context = context;
    lane->stream = NULL;
    IN_CONTEXT(context, status, cuStreamCreate(&lane->stream, STREAM_NON_BLOCKING));
    return status == 0 ? 0 : fail(status, "cuStreamCreate");
}

void by_gpu_lane_close(struct by_gpu_lane *lane)
{
    int status = 0;

    if (lane->stream == NULL)
        return;
    /* the buffers are released next */
    IN_CONTEXT(lane->context, status, cuStreamSynchronize(lane->stream));
    IN_CONTEXT(lane->context, status, cuStreamDestroy_v2(lane->stream));
    lane->stream = NULL;
    (void)status;
}

int by_gpu_pinned_take(void *context, size_t bytes, void **memory)
{
    int status;

    IN_CONTEXT(context, status, cuMemHostAlloc(memory, bytes, PINNED_PORTABLE));
    return status == 0 ? 0 : fail(status, "cuMemHostAlloc");
}

void by_gpu_pinned_give(void *context, void *memory)
{
    int status;

    if (memory != NULL)
        IN_CONTEXT(context, status, cuMemFreeHost(memory));
}

int by_gpu_event_open(void *context, void **event)
{
    int status;

    IN_CONTEXT(context, status, cuEventCreate(event, EVENT_NO_TIMING));
    return status == 0 ? 0 : fail(status, "cuEventCreate");
}

void by_gpu_event_close(void *context, void *event)
{
    int status;

    if (event != NULL)
        IN_CONTEXT(context, status, cuEventDestroy_v2(event));
}

int by_gpu_copy_in(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes)
{
    int status;

    IN_CONTEXT(lane->context, status, cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, bytes, lane->stream));
    return status == 0 ? 0 : fail(status, "cuMemcpyDtoHAsync");
}

int by_gpu_copy_out(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes)
{
    int status;

    IN_CONTEXT(lane->context, status, cuMemcpyHtoDAsync_v2((uintptr_t)to, from, bytes, lane->stream));
    return status == 0 ? 0 : fail(status, "cuMemcpyHtoDAsync");
}

int by_gpu_mark(const struct by_gpu_lane *lane, void *event)
{
    int status;

    IN_CONTEXT(lane->context, status, cuEventRecord(event, lane->stream));
    return status == 0 ? 0 : fail(status, "cuEventRecord");
}

int by_gpu_happened(void *context, void *event)
{
    int status;

    IN_CONTEXT(context, status, cuEventQuery(event));
    return status == 0 ? 0 : status == NOT_READY ? BY_EAGAIN : fail(status, "cuEventQuery");
}
