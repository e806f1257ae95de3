/*
 * What this machine and its interfaces are: facts that are read here and judged elsewhere, so that
 * a test can make them up. Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_MACHINE_H
#define BY_VIEW_DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/limits.h"

/* Programs and libraries whose versions are looked at, and addresses of an interface (count). */
#define BY_PROGRAMS_MAX  8u
#define BY_ADDRESSES_MAX 16u
/* Where a number is not known. */
#define BY_UNKNOWN UINT64_MAX

/* A program or library of banyan's that was found. */
struct by_doctor_program {
    char path[256];
    char version[24]; /* "" when the file tells none */
};

struct by_doctor_machine {
    uint64_t capabilities; /* effective ones: bit 1 << CAP_* */
    uint64_t hugepages, hugepages_free, hugepage_kib;
    uint64_t memlock; /* bytes that may be locked; BY_UNKNOWN: without limit */
    bool has_btf, has_af_xdp;
    unsigned kernel_major, kernel_minor;
    uint64_t jit;                /* net.core.bpf_jit_enable */
    uint64_t rmem_max, wmem_max; /* bytes */
    uint64_t cores, processes;   /* processes: of banyan */
    int64_t unix_s;
    bool is_synchronized; /* somebody keeps the clock right, or that is not known */
    uint32_t program_count;
    struct by_doctor_program programs[BY_PROGRAMS_MAX];
};

struct by_interface {
    char name[BY_NAME_MAX + 1];
    bool exists, is_up, has_carrier;
    uint32_t mtu; /* bytes */
    uint8_t mac[6];
    uint32_t address_count;
    uint32_t addresses[BY_ADDRESSES_MAX]; /* host order */
    uint32_t queues;                      /* to receive; 0 when it is not known */
    uint32_t ring, ring_max;              /* receive descriptors, and how many it may have; 0: not known */
    int cuts;                             /* 1: trains leave as frames; 0: as a whole; -1: not known */
    int native_xdp;                       /* 1, 0, -1: not known */
    bool has_program;                     /* for XDP: it may take all frames, answers of peers too */
    bool is_strict;                       /* its reverse path filter is */
    char existing[128];                   /* when it does not exist: those that do */
};

/* Reads all; what cannot be read is BY_UNKNOWN or no. */
void by_machine_read(struct by_doctor_machine *machine);
void by_interface_read(const char *name, struct by_interface *interface);

/* Who answers for `ip` at the other end of an interface. */
enum by_peer { BY_PEER_ANSWERS = 1, BY_PEER_SILENT, BY_PEER_KNOWN, BY_PEER_UNSEEN };
/*
 * Asks by ARP, as any host would, for at most `wait_ms`; a switch with a table answers for its
 * ports. Without the right to raw sockets the neighbour table is looked at: KNOWN when it has the
 * address. `mac` is filled in for ANSWERS and KNOWN. Addresses are in host order; `own_ip` and
 * `own_mac` say who asks.
 */
enum by_peer by_peer_ask(const char *interface, uint32_t own_ip, const uint8_t own_mac[6], uint32_t ip,
                         unsigned wait_ms, uint8_t mac[6]);

#endif
