/* Implements fake_cuda.h: a driver library without a GPU. */
#include "tests/unit/host-driver/gpu/fake_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OK         0
#define INVALID    1
#define NO_CONTEXT 201
#define NOT_READY  600
#define LOST       700
#define RANGES_MAX 64
#define COPIES_MAX 4096
#define POLLS      3 /* queries until a copy is complete */

struct range {
    uint8_t *device, *alias; /* device: inaccessible; alias: destination of the copies */
    size_t bytes;
};
struct copy {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
    int device_reads;
};
struct stream {
    struct copy copies[COPIES_MAX];
    unsigned begun, done;
};
struct event {
    struct stream *stream;
    unsigned at, polls;
};

static struct range ranges[RANGES_MAX];
static struct fake_counts counts;
static int device_context, copies_left = -1;

/* The functions that the library provides to its loader. */
fake_take_fn fake_take;
fake_give_fn fake_give;
fake_write_fn fake_write;
fake_read_fn fake_read;
fake_counts_fn fake_counts;
fake_fail_fn fake_fail;
int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer);
int cuGetErrorName(int error, const char **name);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
int cuMemFreeHost(void *memory);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);

static struct range *range_of(const void *pointer, size_t bytes)
{
    for (int i = 0; i < RANGES_MAX; i++) {
        uintptr_t at = (uintptr_t)pointer, begin = (uintptr_t)ranges[i].device;

        if (begin != 0 && at >= begin && at + bytes <= begin + ranges[i].bytes)
            return &ranges[i];
    }
    return NULL;
}

static uint8_t *alias_of(const void *pointer, size_t bytes)
{
    const struct range *range = range_of(pointer, bytes);

    return range == NULL ? NULL : range->alias + ((uintptr_t)pointer - (uintptr_t)range->device);
}

void *fake_take(size_t bytes)
{
    struct range *range = ranges;
    int fd = memfd_create("device", MFD_CLOEXEC);

    while (range->device != NULL)
        range++;
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        abort();
    range->bytes = bytes;
    range->device = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    range->alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (range->device == MAP_FAILED || range->alias == MAP_FAILED)
        abort();
    counts.device++;
    return range->device;
}

void fake_give(void *device)
{
    struct range *range = range_of(device, 0);

    munmap(range->device, range->bytes);
    munmap(range->alias, range->bytes);
    memset(range, 0, sizeof(*range));
    counts.device--;
}

void fake_write(void *device, const void *from, size_t bytes)
{
    memcpy(alias_of(device, bytes), from, bytes);
}

void fake_read(void *to, const void *device, size_t bytes)
{
    memcpy(to, alias_of(device, bytes), bytes);
}

void fake_counts(struct fake_counts *out)
{
    *out = counts;
}

void fake_fail(int copies)
{
    copies_left = copies;
}

/* ---- the interface */

int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer)
{
    const struct range *range = range_of((const void *)(uintptr_t)pointer, 0);
    unsigned number = attribute == 2 ? 2 : 0;
    void *context = &device_context;

    if (range == NULL)
        return INVALID;
    if (attribute == 1)
        memcpy(value, &context, sizeof(context));
    else
        memcpy(value, &number, sizeof(number));
    return OK;
}

int cuGetErrorName(int error, const char **name)
{
    *name = error == LOST ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return OK;
}

int cuCtxPushCurrent_v2(void *context)
{
    counts.contexts++;
    return context == &device_context ? OK : INVALID;
}

int cuCtxPopCurrent_v2(void **context)
{
    counts.contexts--;
    *context = &device_context;
    return OK;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (counts.contexts != 1)
        return NO_CONTEXT;
    *memory = malloc(bytes);
    memset(*memory, 0xa5, bytes);
    counts.pinned++;
    return OK;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    counts.pinned--;
    return OK;
}

static int begin(struct stream *stream, const struct copy *copy)
{
    if (counts.contexts != 1)
        return NO_CONTEXT;
    if (copy->to == NULL || copy->from == NULL || stream->begun == COPIES_MAX)
        return INVALID;
    if (copies_left == 0)
        return LOST;
    if (copies_left > 0)
        copies_left--;
    counts.overlapped += stream->begun > stream->done;
    counts.bytes += copy->bytes;
    stream->copies[stream->begun++] = *copy;
    return OK;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    counts.copies_in++;
    return begin(stream, &(struct copy){to, alias_of((const void *)(uintptr_t)from, bytes), bytes, 1});
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    counts.copies_out++;
    return begin(stream, &(struct copy){alias_of((const void *)(uintptr_t)to, bytes), from, bytes, 0});
}

static void run(struct stream *stream, unsigned until)
{
    for (; stream->done < until; stream->done++)
        memcpy(stream->copies[stream->done].to, stream->copies[stream->done].from,
               stream->copies[stream->done].bytes);
}

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof(struct stream));
    counts.streams++;
    return counts.contexts == 1 ? OK : NO_CONTEXT;
}

int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    counts.streams--;
    return OK;
}

int cuStreamSynchronize(void *stream)
{
    run(stream, ((struct stream *)stream)->begun);
    return OK;
}

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(struct event));
    counts.events++;
    return counts.contexts == 1 ? OK : NO_CONTEXT;
}

int cuEventDestroy_v2(void *event)
{
    free(event);
    counts.events--;
    return OK;
}

int cuEventRecord(void *event, void *stream)
{
    *(struct event *)event = (struct event){stream, ((struct stream *)stream)->begun, 0};
    return counts.contexts == 1 ? OK : NO_CONTEXT;
}

int cuEventQuery(void *event)
{
    struct event *e = event;

    if (counts.contexts != 1)
        return NO_CONTEXT;
    if (e->stream == NULL)
        return OK;
    if (e->polls++ < POLLS)
        return NOT_READY;
    run(e->stream, e->at);
    return OK;
}
