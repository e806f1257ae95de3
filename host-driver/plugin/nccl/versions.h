/* What the adapters of both interfaces share: the properties of a device in the form of each
 * version, and calls that the plugin answers without a connection. */
#ifndef BY_PLUGIN_NCCL_VERSIONS_H
#define BY_PLUGIN_NCCL_VERSIONS_H

#include "host-driver/plugin/nccl/abi.h"

/* Reads the settings and finds the devices. A result of abi.h. */
int by_nccl_init(by_nccl_logger logger);

int by_nccl_props_v8(int device, struct by_nccl_props_v8 *props);
int by_nccl_props_v9(int device, struct by_nccl_props_v9 *props);
int by_nccl_props_v11(int device, struct by_nccl_props_v11 *props);
int by_nccl_props_v12(int device, struct by_nccl_props_v12 *props);

/* Memory of a DMA buffer is on a device, which the plugin does not support. */
int by_nccl_refuse_dma(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                       void **memory);

/* NCCL's context of a communicator: the plugin keeps nothing there. */
int by_nccl_finish(void *context);
extern char by_nccl_context;

#endif
