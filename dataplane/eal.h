/*
 * DPDK's environment (EAL): start and shutdown in this process. Once per process, from the main
 * thread.
 */
#ifndef BY_DATAPLANE_EAL_H
#define BY_DATAPLANE_EAL_H

#include <stdbool.h>
#include <stddef.h>

struct by_eal_config {
    /* of the switch: part of the file prefix, under which dpdk-telemetry.py finds it */
    const char *name;
    const char *const *pci; /* addresses to probe; no other PCI device is touched */
    unsigned pci_count;
    unsigned port_count; /* number of all ports; determines the need for packet buffers */
    char **extra;        /* the user's own EAL arguments */
    unsigned extra_count;
    bool no_huge; /* do not use hugepages even if there are some */
};

/*
 * Starts the EAL in memory (no files but the telemetry socket). Uses hugepages if enough are free;
 * otherwise runs without them and prints one line. The calling thread keeps its CPU affinity. 0,
 * BY_EINVAL (an argument that EAL refuses) or BY_EIO, reported.
 */
int by_eal_start(const struct by_eal_config *config);
/* Shuts the EAL down and removes its files below /var/run/dpdk. */
void by_eal_stop(void);
/*
 * Allocates zeroed memory, 64-byte aligned, or returns NULL. With `device` real devices can read
 * it: it comes from DPDK's heap and requires enough hugepages. Without, its pages are allocated on
 * first touch.
 */
void *by_eal_memory(const char *what, size_t bytes, bool device);
/* Like by_eal_memory without `device`, and returns a descriptor through which other processes can
 * read the memory, but not write it. */
void *by_eal_memory_shared(size_t bytes, int *fd);
void by_eal_memory_free(void *memory, size_t bytes, bool device);

#endif
