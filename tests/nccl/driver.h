/*
 * NCCL's part in tests of its plugin: loads libnccl-net-banyan.so as NCCL does, by dlopen and the
 * name of a table, and calls any version of the interface through one set of functions. Adds no
 * checks of its own: results are those of the plugin. Any thread, if the plugin permits.
 */
#ifndef BY_TESTS_NCCL_DRIVER_H
#define BY_TESTS_NCCL_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "host-driver/plugin/nccl/abi.h"

#define NCCL_VERSION_FIRST 8
#define NCCL_VERSION_LAST  12

struct nccl_driver {
    int version;
    void *library;
    void *context, *coll_context;
    const void *net, *coll; /* tables of this version */
    int (*devices)(int *count);
    int (*accept)(void *listener, void **receiver, void **offload);
    int (*add_memory)(void *comm, void *data, size_t bytes, int kind, void **memory);
    int (*add_dma_memory)(void *comm, void *data, size_t bytes, int kind, uint64_t offset, int file,
                          void **memory);
    int (*remove_memory)(void *comm, void *memory);
    int (*flush)(void *receiver, int count, void **data, int *bytes, void **memory, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_sender)(void *sender);
    int (*close_receiver)(void *receiver);
    int (*close_listener)(void *listener);
};

/* Loads the plugin beside the test program and initialises the version; a result of abi.h. Fails
 * the process if the library or the table is missing. */
int nccl_driver_open(struct nccl_driver *driver, int version);
void nccl_driver_close(struct nccl_driver *driver);

/* Seconds of a clock that only runs forward. */
double nccl_now(void);

int nccl_listen(struct nccl_driver *driver, int device, void *handle, void **listener);
int nccl_connect(struct nccl_driver *driver, int device, void *handle, void **sender);
int nccl_send(struct nccl_driver *driver, void *sender, void *data, size_t bytes, int tag, void *memory,
              void **request);
int nccl_receive(struct nccl_driver *driver, void *receiver, int count, void *data, size_t bytes, int tag,
                 void *memory, void **request);

/* The properties in the form of the newest version; what a version lacks is 0. */
int nccl_props(struct nccl_driver *driver, int device, struct by_nccl_props_v12 *props);

/* What the plugin gets as NCCL's logger. NCCL_DEBUG in the environment prints the lines. */
void nccl_logger(int level, unsigned long about, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The last line that the plugin logged in this thread, and how many lines. */
const char *nccl_log_last(void);
unsigned nccl_log_count(void);

#endif
