/*
 * Messages between two ranks: what every version of NCCL's interface calls, through the adapters in
 * net_versions.c. A connection carries messages in one direction over several TCP streams, in
 * order. A message is a header of 16 bytes on stream 0, and its data, split evenly over the
 * streams. A message waits in the sender's and the kernel's buffers until the receiver posts a
 * receive. No function blocks; `test` moves the data.
 *
 * All functions return a result of abi.h. Any thread; see core.h.
 */
#ifndef BY_PLUGIN_NCCL_NET_H
#define BY_PLUGIN_NCCL_NET_H

#include <stddef.h>

#include "host-driver/plugin/nccl/abi.h"

#define BY_NCCL_MESSAGE_BYTES_MAX ((size_t)1 << 30) /* `test` reports sizes as int */

int by_nccl_listen(int device, void *handle, void **listener);

/* *sender or *receiver is NULL, with BY_NCCL_OK, until the connection is complete: call again. */
int by_nccl_connect(void *handle, void **sender);
int by_nccl_accept(void *listener, void **receiver);

int by_nccl_add_memory(void *comm, void *data, size_t bytes, int kind, void **memory);
int by_nccl_remove_memory(void *comm, void *memory);

/* *request is NULL, with BY_NCCL_OK, if BY_NCCL_REQUESTS_MAX are in progress: call again. */
int by_nccl_send(void *sender, void *data, size_t bytes, int tag, void *memory, void **request);
int by_nccl_receive(void *receiver, void *data, size_t bytes, int tag, void *memory, void **request);

int by_nccl_test(void *request, int *done, int *bytes);
int by_nccl_close_sender(void *sender);
int by_nccl_close_receiver(void *receiver);
int by_nccl_close_listener(void *listener);

#endif
