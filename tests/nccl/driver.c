/* NCCL's part in tests of its plugin; see driver.h. */
#include "tests/nccl/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Thread_local char last[1024];
static _Thread_local unsigned lines;

void nccl_logger(int level, unsigned long about, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    (void)about;
    (void)file;
    (void)line;
    va_start(arguments, format);
    vsnprintf(last, sizeof(last), format, arguments);
    va_end(arguments);
    lines++;
    if (getenv("NCCL_DEBUG") != NULL)
        fprintf(stderr, "%s: %s\n", level == BY_NCCL_LOG_WARN ? "warning" : "info", last);
}

const char *nccl_log_last(void)
{
    return last;
}

unsigned nccl_log_count(void)
{
    return lines;
}

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* The tables are alike where their members have the same names. */
#define TAKE(table)                                                                                          \
    do {                                                                                                     \
        driver->devices = (table)->devices;                                                                  \
        driver->accept = (table)->accept;                                                                    \
        driver->add_memory = (table)->add_memory;                                                            \
        driver->add_dma_memory = (table)->add_dma_memory;                                                    \
        driver->remove_memory = (table)->remove_memory;                                                      \
        driver->flush = (table)->flush;                                                                      \
        driver->test = (table)->test;                                                                        \
        driver->close_sender = (table)->close_sender;                                                        \
        driver->close_receiver = (table)->close_receiver;                                                    \
        driver->close_listener = (table)->close_listener;                                                    \
    } while (0)
#define NET(version) ((const struct by_nccl_net_##version *)driver->net)

static void take(struct nccl_driver *driver)
{
    switch (driver->version) {
    case 8:
        TAKE(NET(v8));
        return;
    case 9:
        TAKE(NET(v9));
        return;
    case 10:
        TAKE(NET(v10));
        return;
    case 11:
        TAKE(NET(v11));
        return;
    default:
        TAKE(NET(v12));
    }
}

int nccl_driver_open(struct nccl_driver *driver, int version)
{
    struct by_nccl_config config = {-1};
    char path[4096], name[64];
    ssize_t length;

    memset(driver, 0, sizeof(*driver));
    driver->version = version;
    length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    must(length > 0, "the path of the test is unknown");
    path[length] = 0;
    *strrchr(path, '/') = 0;
    strcat(path, "/../lib/libnccl-net-banyan.so");
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    must(driver->library != NULL, "the plugin cannot be loaded");
    snprintf(name, sizeof(name), "ncclNetPlugin_v%d", version);
    driver->net = dlsym(driver->library, name);
    must(driver->net != NULL, "the plugin lacks a table of messages");
    snprintf(name, sizeof(name), "ncclCollNetPlugin_v%d", version);
    driver->coll = dlsym(driver->library, name);
    take(driver);
    switch (version) {
    case 8:
        return NET(v8)->init(nccl_logger);
    case 9:
        return NET(v9)->init(nccl_logger);
    case 10:
        return NET(v10)->init(nccl_logger, NULL);
    case 11:
        return NET(v11)->init(&driver->context, 7, &config, nccl_logger, NULL);
    default:
        return NET(v12)->init(&driver->context, 7, &config, nccl_logger, NULL);
    }
}

void nccl_driver_close(struct nccl_driver *driver)
{
    if (driver->version == 11)
        must(NET(v11)->finish(driver->context) == BY_NCCL_OK, "finalize failed");
    if (driver->version == 12)
        must(NET(v12)->finish(driver->context) == BY_NCCL_OK, "finalize failed");
    dlclose(driver->library);
}

int nccl_listen(struct nccl_driver *driver, int device, void *handle, void **listener)
{
    switch (driver->version) {
    case 8:
        return NET(v8)->listen(device, handle, listener);
    case 9:
        return NET(v9)->listen(device, handle, listener);
    case 10:
        return NET(v10)->listen(device, handle, listener);
    case 11:
        return NET(v11)->listen(driver->context, device, handle, listener);
    default:
        return NET(v12)->listen(driver->context, device, handle, listener);
    }
}

int nccl_connect(struct nccl_driver *driver, int device, void *handle, void **sender)
{
    struct by_nccl_config config = {-1};
    void *offload = NULL;

    switch (driver->version) {
    case 8:
        return NET(v8)->connect(device, handle, sender, &offload);
    case 9:
        return NET(v9)->connect(device, handle, sender, &offload);
    case 10:
        return NET(v10)->connect(device, &config, handle, sender, &offload);
    case 11:
        return NET(v11)->connect(driver->context, device, handle, sender, &offload);
    default:
        return NET(v12)->connect(driver->context, device, handle, sender, &offload);
    }
}

int nccl_send(struct nccl_driver *driver, void *sender, void *data, size_t bytes, int tag, void *memory,
              void **request)
{
    switch (driver->version) {
    case 8:
        return NET(v8)->send(sender, data, (int)bytes, tag, memory, request);
    case 9:
        return NET(v9)->send(sender, data, bytes, tag, memory, request);
    case 10:
        return NET(v10)->send(sender, data, bytes, tag, memory, NULL, request);
    case 11:
        return NET(v11)->send(sender, data, bytes, tag, memory, NULL, request);
    default:
        return NET(v12)->send(sender, data, bytes, tag, memory, NULL, request);
    }
}

int nccl_receive(struct nccl_driver *driver, void *receiver, int count, void *data, size_t bytes, int tag,
                 void *memory, void **request)
{
    void *buffers[2] = {data, data}, *memories[2] = {memory, memory}, *events[2] = {NULL, NULL};
    size_t sizes[2] = {bytes, bytes};
    int tags[2] = {tag, tag}, small[2] = {(int)bytes, (int)bytes};

    *request = (void *)1; /* NCCL's hint that a completion is optional */
    switch (driver->version) {
    case 8:
        return NET(v8)->receive(receiver, count, buffers, small, tags, memories, request);
    case 9:
        return NET(v9)->receive(receiver, count, buffers, sizes, tags, memories, request);
    case 10:
        return NET(v10)->receive(receiver, count, buffers, sizes, tags, memories, events, request);
    case 11:
        return NET(v11)->receive(receiver, count, buffers, sizes, tags, memories, events, request);
    default:
        return NET(v12)->receive(receiver, count, buffers, sizes, tags, memories, events, request);
    }
}

#define COPY(from)                                                                                           \
    do {                                                                                                     \
        props->name = (from).name;                                                                           \
        props->memory = (from).memory;                                                                       \
        props->speed_mbps = (from).speed_mbps;                                                               \
        props->comms_max = (from).comms_max;                                                                 \
        props->grouped_receives_max = (from).grouped_receives_max;                                           \
        props->guid = (from).guid;                                                                           \
        props->offload_kind = (from).offload_kind;                                                           \
    } while (0)

int nccl_props(struct nccl_driver *driver, int device, struct by_nccl_props_v12 *props)
{
    struct by_nccl_props_v11 eleven;
    struct by_nccl_props_v8 eight;
    int result;

    memset(props, 0, sizeof(*props));
    memset(&eleven, 0xff, sizeof(eleven));
    if (driver->version == 12)
        return NET(v12)->properties(device, props);
    if (driver->version == 8) {
        result = NET(v8)->properties(device, &eight);
        if (result == BY_NCCL_OK)
            COPY(eight);
        return result;
    }
    if (driver->version == 11)
        result = NET(v11)->properties(device, &eleven);
    else if (driver->version == 10)
        result = NET(v10)->properties(device, &eleven.v9);
    else
        result = NET(v9)->properties(device, &eleven.v9);
    if (result == BY_NCCL_OK) {
        COPY(eleven.v9);
        props->message_bytes_max = eleven.v9.message_bytes_max;
        props->collective_bytes_max = eleven.v9.collective_bytes_max;
        props->parts.count = eleven.v9.parts.count;
    }
    return result;
}

double nccl_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
