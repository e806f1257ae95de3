/* Settings, log and registered memory of the NCCL plugin; see core.h. Any thread. */
#include "host-driver/plugin/nccl/core.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <banyan/banyan.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct by_nccl_settings current;
static _Atomic(by_nccl_logger) sink;

uint64_t by_nccl_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- log ---- */

static void write_line(int level, const char *format, va_list arguments)
{
    by_nccl_logger logger = atomic_load(&sink);
    char text[2 * BY_NCCL_TEXT_MAX];

    if (logger == NULL)
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    logger(level, BY_NCCL_LOG_ABOUT_INIT | BY_NCCL_LOG_ABOUT_NET, BY_NCCL_NAME, 0, "NET/banyan: %s", text);
}

void by_nccl_log(int level, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(level, format, arguments);
    va_end(arguments);
}

int by_nccl_fail(int result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(BY_NCCL_LOG_WARN, format, arguments);
    va_end(arguments);
    return result;
}

/* ---- settings ---- */

/* "GB/s,us", such as "12.5,30". */
static int take_rate(struct by_nccl_settings *settings, const char *value)
{
    char *end = NULL, *last = NULL;
    double rate = strtod(value, &end), latency = *end == ',' ? strtod(end + 1, &last) : -1;

    if (*value < '0' || *value > '9' || last == NULL || end[1] < '0' || end[1] > '9' || *last != 0 ||
        !(rate >= 0.001 && rate <= 1e5) || !(latency >= 0 && latency <= 1e6))
        return by_nccl_fail(
            BY_NCCL_USAGE,
            "BANYAN_NCCL_RATE is '%s'; state the rate of an allreduce, 0.001 to 100000 GB/s, a "
            "comma and its latency, 0 to 1000000 us, such as 12.5,30",
            value);
    settings->rate = (uint64_t)(rate * 1e9);
    settings->rate_latency_ns = (uint64_t)(latency * 1e3);
    return BY_NCCL_OK;
}

static int take(struct by_nccl_settings *settings, const char *name, const char *value)
{
    static const char *const modes[] = {
        [BY_NCCL_COLL_AUTO] = "auto", [BY_NCCL_COLL_ON] = "on", [BY_NCCL_COLL_OFF] = "off"};

    /* libbanyan has checked the ranges of numbers, but not before this call */
    if (strcmp(name, "BANYAN_NCCL_INTERFACE") == 0) {
        if (strlen(value) >= sizeof(settings->interface))
            return by_nccl_fail(BY_NCCL_USAGE, "BANYAN_NCCL_INTERFACE has more than %zu characters",
                                sizeof(settings->interface) - 1);
        snprintf(settings->interface, sizeof(settings->interface), "%s", value);
    } else if (strcmp(name, "BANYAN_NCCL_STREAMS") == 0) {
        char *end;
        unsigned long number = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end != 0 || number < 1 || number > BY_NCCL_STREAMS_MAX)
            return by_nccl_fail(BY_NCCL_USAGE, "BANYAN_NCCL_STREAMS is '%s'; use 1 to %d", value,
                                BY_NCCL_STREAMS_MAX);
        settings->streams = (unsigned)number;
    } else if (strcmp(name, "BANYAN_NCCL_COLLNET") == 0) {
        for (enum by_nccl_coll_mode mode = BY_NCCL_COLL_AUTO; mode <= BY_NCCL_COLL_OFF; mode++)
            if (strcmp(value, modes[mode]) == 0)
                settings->coll = mode;
        if (settings->coll == 0)
            return by_nccl_fail(BY_NCCL_USAGE, "BANYAN_NCCL_COLLNET is '%s'; use auto, on or off", value);
    } else if (strcmp(name, "BANYAN_NCCL_RATE") == 0 && *value != 0) {
        return take_rate(settings, value);
    } else if (strcmp(name, "BANYAN_TIMEOUT") == 0) {
        double seconds = strtod(value, NULL);

        settings->timeout_ns = seconds > 0 && seconds <= 86400 ? (uint64_t)(seconds * 1e9) : 10000000000u;
    } else if (strcmp(name, "BANYAN_LOG") == 0) {
        settings->log = (unsigned)strtoul(value, NULL, 10);
    }
    return BY_NCCL_OK;
}

int by_nccl_start(by_nccl_logger logger)
{
    struct by_nccl_settings settings = {0};
    const char *name, *value;
    banyan_status_t status;
    int result = BY_NCCL_OK;

    if (logger != NULL)
        atomic_store(&sink, logger);
    if (banyan_version() != BANYAN_VERSION)
        return by_nccl_fail(
            BY_NCCL_USAGE,
            "the plugin was built for version %d of libbanyan and has loaded version %d; install "
            "both from one build",
            BANYAN_VERSION, banyan_version());
    for (uint32_t i = 0; result == BY_NCCL_OK; i++) {
        status = banyan_setting(i, &name, NULL, NULL, &value, NULL);
        if (status == BANYAN_ENOENT)
            break;
        if (status != BANYAN_OK)
            return by_nccl_fail(BY_NCCL_USAGE, "%s", banyan_last_error());
        result = take(&settings, name, value);
    }
    if (result != BY_NCCL_OK)
        return result;
    pthread_mutex_lock(&lock);
    current = settings;
    pthread_mutex_unlock(&lock);
    return BY_NCCL_OK;
}

struct by_nccl_settings by_nccl_settings(void)
{
    struct by_nccl_settings copy;

    pthread_mutex_lock(&lock);
    copy = current;
    pthread_mutex_unlock(&lock);
    return copy;
}

/* ---- registered memory ---- */

static void *number_of(const struct by_nccl_memories *memories, unsigned index)
{
    return (void *)((uintptr_t)memories->ranges[index].generation << 16 | (index + 1));
}

/* The place of a number, or NULL if it is not registered. */
static struct by_nccl_range *find(const struct by_nccl_memories *memories, void *memory)
{
    uintptr_t number = (uintptr_t)memory;
    unsigned index = (unsigned)(number & 0xffff) - 1;

    if (index >= memories->count || memories->ranges[index].start == NULL ||
        memories->ranges[index].generation != number >> 16)
        return NULL;
    return &memories->ranges[index];
}

int by_nccl_memory_add(struct by_nccl_memories *memories, void *data, size_t bytes, int kind, void **memory)
{
    unsigned at = 0;

    if (kind != BY_NCCL_MEMORY_HOST)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "memory of kind %d cannot be registered; the plugin supports host "
                            "memory (kind 1) only, as its properties state",
                            kind);
    if (data == NULL || memory == NULL || bytes > UINTPTR_MAX - (uintptr_t)data)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "%zu bytes at %p are not a range of memory", bytes, data);
    while (at < memories->count && memories->ranges[at].start != NULL)
        at++;
    if (at == memories->count) {
        unsigned more = memories->count == 0 ? 16 : 2 * memories->count;
        struct by_nccl_range *ranges;

        if (memories->count >= BY_NCCL_MEMORIES_MAX)
            return by_nccl_fail(BY_NCCL_SYSTEM,
                                "%d buffers of this connection are registered, which is the limit",
                                BY_NCCL_MEMORIES_MAX);
        ranges = realloc(memories->ranges, more * sizeof(*ranges));
        if (ranges == NULL)
            return by_nccl_fail(BY_NCCL_SYSTEM, "insufficient memory for %u registrations", more);
        memset(ranges + memories->count, 0, (more - memories->count) * sizeof(*ranges));
        memories->ranges = ranges;
        memories->count = more;
    }
    memories->ranges[at].start = data;
    memories->ranges[at].bytes = bytes;
    memories->ranges[at].generation++;
    *memory = number_of(memories, at);
    return BY_NCCL_OK;
}

int by_nccl_memory_remove(struct by_nccl_memories *memories, void *memory)
{
    struct by_nccl_range *range = find(memories, memory);

    if (range == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "%p is not a registered buffer of this connection", memory);
    range->start = NULL;
    return BY_NCCL_OK;
}

void by_nccl_memories_free(struct by_nccl_memories *memories)
{
    free(memories->ranges);
    memories->ranges = NULL;
    memories->count = 0;
}

int by_nccl_memory_holds(const struct by_nccl_memories *memories, void *memory, const void *data,
                         size_t bytes)
{
    const struct by_nccl_range *range = find(memories, memory);
    uintptr_t start, at = (uintptr_t)data;

    if (bytes == 0)
        return 1;
    if (range == NULL)
        return 0;
    start = (uintptr_t)range->start;
    return at >= start && bytes <= range->bytes && at - start <= range->bytes - bytes;
}
