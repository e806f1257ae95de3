/*
 * The exported tables of the messages, ncclNetPlugin_v8 to _v12: NCCL's arguments in the form of
 * each version become calls of net.h. NCCL chooses the newest table that it supports. Any thread.
 */
#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/device.h"
#include "host-driver/plugin/nccl/net.h"
#include "host-driver/plugin/nccl/versions.h"

/* ---- calls that are alike in several versions ---- */

static int init_v10(by_nccl_logger logger, by_nccl_profiler profiler)
{
    (void)profiler;
    return by_nccl_init(logger);
}

static int init_v11(void **context, uint64_t comm_id, struct by_nccl_config *config, by_nccl_logger logger,
                    by_nccl_profiler profiler)
{
    (void)comm_id;
    (void)config;
    (void)profiler;
    if (context != NULL)
        *context = &by_nccl_context;
    return by_nccl_init(logger);
}

static int devices(int *count)
{
    if (count == NULL)
        return BY_NCCL_ARGUMENT;
    *count = by_nccl_device_count();
    return BY_NCCL_OK;
}

static int listen_v11(void *context, int device, void *handle, void **listener)
{
    (void)context;
    return by_nccl_listen(device, handle, listener);
}

static int check_device(int device)
{
    return by_nccl_device_at(device) != NULL
               ? BY_NCCL_OK
               : by_nccl_fail(BY_NCCL_ARGUMENT, "device %d does not exist; there are %d devices", device,
                              by_nccl_device_count());
}

/* The kernel's routes select the interface; `device` only has to exist. */
static int connect_v8(int device, void *handle, void **sender, void **offload)
{
    int result = check_device(device);

    (void)offload;
    return result != BY_NCCL_OK ? result : by_nccl_connect(handle, sender);
}

static int connect_v10(int device, struct by_nccl_config *config, void *handle, void **sender, void **offload)
{
    (void)config;
    return connect_v8(device, handle, sender, offload);
}

static int connect_v11(void *context, int device, void *handle, void **sender, void **offload)
{
    (void)context;
    return connect_v8(device, handle, sender, offload);
}

static int accept_any(void *listener, void **receiver, void **offload)
{
    (void)offload;
    return receiver == NULL ? BY_NCCL_ARGUMENT : by_nccl_accept(listener, receiver);
}

static int send_v9(void *sender, void *data, size_t bytes, int tag, void *memory, void **request)
{
    return request == NULL ? BY_NCCL_ARGUMENT : by_nccl_send(sender, data, bytes, tag, memory, request);
}

static int send_v8(void *sender, void *data, int bytes, int tag, void *memory, void **request)
{
    if (bytes < 0)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "a message of %d bytes cannot be sent", bytes);
    return send_v9(sender, data, (size_t)bytes, tag, memory, request);
}

static int send_v10(void *sender, void *data, size_t bytes, int tag, void *memory, void *event,
                    void **request)
{
    (void)event;
    return send_v9(sender, data, bytes, tag, memory, request);
}

static int receive_v9(void *receiver, int count, void **data, size_t *bytes, int *tags, void **memory,
                      void **request)
{
    if (count != 1 || data == NULL || bytes == NULL || tags == NULL || memory == NULL || request == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "a receive of %d buffers is not supported; the limit, which the "
                            "properties state, is 1",
                            count);
    return by_nccl_receive(receiver, data[0], bytes[0], tags[0], memory[0], request);
}

static int receive_v8(void *receiver, int count, void **data, int *bytes, int *tags, void **memory,
                      void **request)
{
    size_t size;

    if (bytes == NULL || bytes[0] < 0)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "a receive has no size, or a negative one");
    size = (size_t)bytes[0];
    return receive_v9(receiver, count, data, &size, tags, memory, request);
}

static int receive_v10(void *receiver, int count, void **data, size_t *bytes, int *tags, void **memory,
                       void **events, void **request)
{
    (void)events;
    return receive_v9(receiver, count, data, bytes, tags, memory, request);
}

/* Host memory needs no flush: the request is complete, which NULL means. */
static int flush(void *receiver, int count, void **data, int *bytes, void **memory, void **request)
{
    (void)receiver;
    (void)count;
    (void)data;
    (void)bytes;
    (void)memory;
    if (request == NULL)
        return BY_NCCL_ARGUMENT;
    *request = NULL;
    return BY_NCCL_OK;
}

static int hint(void *context, struct by_nccl_hints *hints)
{
    (void)context;
    (void)hints;
    return BY_NCCL_OK;
}

/* ---- tables ---- */

/* What is the same function in all versions, by its name. Functions that no device of the plugin
 * needs, such as those of virtual devices, are NULL, which NCCL checks. */
#define COMMON                                                                                               \
    .name = BY_NCCL_NAME, .devices = devices, .accept = accept_any, .add_memory = by_nccl_add_memory,        \
    .add_dma_memory = by_nccl_refuse_dma, .remove_memory = by_nccl_remove_memory, .flush = flush,            \
    .test = by_nccl_test, .close_sender = by_nccl_close_sender, .close_receiver = by_nccl_close_receiver,    \
    .close_listener = by_nccl_close_listener

const struct by_nccl_net_v8 ncclNetPlugin_v8 = {
    COMMON,
    .init = by_nccl_init,
    .properties = by_nccl_props_v8,
    .listen = by_nccl_listen,
    .connect = connect_v8,
    .send = send_v8,
    .receive = receive_v8,
};

const struct by_nccl_net_v9 ncclNetPlugin_v9 = {
    COMMON,
    .init = by_nccl_init,
    .properties = by_nccl_props_v9,
    .listen = by_nccl_listen,
    .connect = connect_v8,
    .send = send_v9,
    .receive = receive_v9,
};

const struct by_nccl_net_v10 ncclNetPlugin_v10 = {
    COMMON,
    .init = init_v10,
    .properties = by_nccl_props_v9,
    .listen = by_nccl_listen,
    .connect = connect_v10,
    .send = send_v10,
    .receive = receive_v10,
};

const struct by_nccl_net_v11 ncclNetPlugin_v11 = {
    COMMON,
    .init = init_v11,
    .properties = by_nccl_props_v11,
    .listen = listen_v11,
    .connect = connect_v11,
    .send = send_v10,
    .receive = receive_v10,
    .finish = by_nccl_finish,
    .hint = hint,
};

const struct by_nccl_net_v12 ncclNetPlugin_v12 = {
    COMMON,
    .init = init_v11,
    .properties = by_nccl_props_v12,
    .listen = listen_v11,
    .connect = connect_v11,
    .send = send_v10,
    .receive = receive_v10,
    .finish = by_nccl_finish,
    .hint = hint,
};
