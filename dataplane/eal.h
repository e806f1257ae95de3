/*
 * DPDK's environment: how this process starts and leaves it. Once for each process, from the main
 * thread.
 */
#ifndef BY_DATAPLANE_EAL_H
#define BY_DATAPLANE_EAL_H

#include <stdbool.h>
#include <stddef.h>

struct by_eal_config {
    const char *name; /* of the switch: part of the file prefix, under which dpdk-telemetry.py finds it */
    const char *const *pci; /* addresses to probe; no other PCI device is touched */
    unsigned pci_count;
    unsigned port_count; /* of all ports: what packet buffers will need */
    char **extra;        /* the user's own EAL arguments */
    unsigned extra_count;
    bool no_huge; /* do not use hugepages even where there are some */
};

/*
 * Starts the EAL: in memory (no files but the telemetry socket), on hugepages where enough are
 * free, else without, which is said in one line. The calling thread keeps the CPUs that it was
 * allowed. 0, BY_EINVAL (an argument that EAL refuses) or BY_EIO, reported.
 */
int by_eal_start(const struct by_eal_config *config);
/* Leaves the EAL and removes what it put below /var/run/dpdk. */
void by_eal_stop(void);
/*
 * Zeroed memory, 64-byte aligned, or NULL. With `device` real devices can read it: it comes from
 * DPDK's heap, so that there must be enough hugepages. Else it is taken page by page as it is
 * touched.
 */
void *by_eal_memory(const char *what, size_t bytes, bool device);
/* The same without a device, and with a descriptor by which other processes can read it, but not
 * write. */
void *by_eal_memory_shared(size_t bytes, int *fd);
void by_eal_memory_free(void *memory, size_t bytes, bool device);

#endif
