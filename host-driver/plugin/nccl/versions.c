/* Properties of devices in the form of each version of NCCL's interface; see versions.h. */
#include "host-driver/plugin/nccl/versions.h"

#include <string.h>

#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/device.h"
#include "host-driver/plugin/nccl/net.h"

#define COMMS_MAX 65536

char by_nccl_context;

int by_nccl_init(by_nccl_logger logger)
{
    int result = by_nccl_start(logger);

    return result != BY_NCCL_OK ? result : by_nccl_devices_find();
}

int by_nccl_finish(void *context)
{
    (void)context;
    return BY_NCCL_OK;
}

int by_nccl_refuse_dma(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                       void **memory)
{
    (void)comm;
    (void)data;
    (void)bytes;
    (void)kind;
    (void)offset;
    (void)file;
    (void)memory;
    return by_nccl_fail(BY_NCCL_ARGUMENT,
                        "memory of a DMA buffer cannot be registered; the plugin supports host "
                        "memory (kind 1) only, as its properties state");
}

static const struct by_nccl_device *device_of(int index, const void *props)
{
    const struct by_nccl_device *device = by_nccl_device_at(index);

    if (device == NULL || props == NULL)
        by_nccl_fail(BY_NCCL_ARGUMENT, "device %d does not exist; there are %d devices", index,
                     by_nccl_device_count());
    return props == NULL ? NULL : device;
}

/* The members that all versions have, in structs whose other members differ. NCCL declares the
 * texts without const, and does not write them. */
#define FILL(props, device)                                                                                  \
    do {                                                                                                     \
        memset((props), 0, sizeof(*(props)));                                                                \
        (props)->name = (char *)(uintptr_t)(device)->name;                                                   \
        (props)->pci_path = (device)->pci_path[0] != 0 ? (char *)(uintptr_t)(device)->pci_path : NULL;       \
        (props)->guid = (device)->guid;                                                                      \
        (props)->memory = BY_NCCL_MEMORY_HOST;                                                               \
        (props)->speed_mbps = (device)->speed_mbps;                                                          \
        (props)->comms_max = COMMS_MAX;                                                                      \
        (props)->grouped_receives_max = 1;                                                                   \
    } while (0)

#define FILL_V9(props, index)                                                                                \
    do {                                                                                                     \
        (props)->parts.count = 1;                                                                            \
        (props)->parts.device[0] = (index);                                                                  \
        (props)->message_bytes_max = BY_NCCL_MESSAGE_BYTES_MAX;                                              \
        (props)->collective_bytes_max = BY_NCCL_MESSAGE_BYTES_MAX;                                           \
    } while (0)

int by_nccl_props_v8(int index, struct by_nccl_props_v8 *props)
{
    const struct by_nccl_device *device = device_of(index, props);

    if (device == NULL)
        return BY_NCCL_ARGUMENT;
    FILL(props, device);
    return BY_NCCL_OK;
}

int by_nccl_props_v9(int index, struct by_nccl_props_v9 *props)
{
    const struct by_nccl_device *device = device_of(index, props);

    if (device == NULL)
        return BY_NCCL_ARGUMENT;
    FILL(props, device);
    FILL_V9(props, index);
    return BY_NCCL_OK;
}

int by_nccl_props_v11(int index, struct by_nccl_props_v11 *props)
{
    if (props == NULL)
        return BY_NCCL_ARGUMENT;
    memset(props, 0, sizeof(*props));
    props->grouped_requests_max = 1;
    return by_nccl_props_v9(index, &props->v9);
}

int by_nccl_props_v12(int index, struct by_nccl_props_v12 *props)
{
    const struct by_nccl_device *device = device_of(index, props);

    if (device == NULL)
        return BY_NCCL_ARGUMENT;
    FILL(props, device);
    FILL_V9(props, index);
    props->grouped_requests_max = 1;
    props->rail = BY_NCCL_UNKNOWN;
    props->plane = BY_NCCL_UNKNOWN;
    return BY_NCCL_OK;
}
