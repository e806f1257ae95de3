/*
 * Reads facts about this machine and its interfaces. Checks judge them elsewhere, so tests can use
 * invented facts. Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_MACHINE_H
#define BY_VIEW_DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/discovery.h"

/*
 * Most programs and libraries whose versions are read, and most addresses of an interface (count).
 */
#define BY_PROGRAMS_MAX  8u
#define BY_ADDRESSES_MAX 16u
/* The value is unknown. */
#define BY_UNKNOWN UINT64_MAX

/* A program or library of banyan that was found. */
struct by_doctor_program {
    char path[256];
    char version[24]; /* "" if the file contains none */
};

struct by_doctor_machine {
    uint64_t capabilities; /* effective capabilities: bit 1 << CAP_* */
    uint64_t hugepages, hugepages_free, hugepage_kib;
    uint64_t memlock; /* limit of locked memory in bytes; BY_UNKNOWN: no limit */
    bool has_btf, has_af_xdp;
    unsigned kernel_major, kernel_minor;
    uint64_t jit;                /* net.core.bpf_jit_enable */
    uint64_t rmem_max, wmem_max; /* bytes */
    uint64_t cores, processes;   /* processes: number of banyan processes */
    int64_t unix_s;
    bool is_synchronized; /* the clock is synchronised, or that is unknown */
    uint32_t program_count;
    struct by_doctor_program programs[BY_PROGRAMS_MAX];
};

struct by_interface {
    char name[BY_NAME_MAX + 1];
    bool exists, is_up, has_carrier;
    uint32_t mtu; /* bytes */
    uint8_t mac[6];
    uint32_t address_count;
    uint32_t addresses[BY_ADDRESSES_MAX]; /* in host byte order */
    uint32_t ipv6_count;
    uint8_t ipv6[BY_ADDRESSES_MAX][BY_IPV6_BYTES];
    uint32_t queues;         /* receive queues; 0: unknown */
    uint32_t ring, ring_max; /* receive descriptors: current and maximum; 0: unknown */
    int cuts;                /* 1: GSO batches are cut into frames; 0: sent as a whole; -1: unknown */
    int native_xdp;          /* 1: yes, 0: no, -1: unknown */
    bool has_program;   /* an XDP program is attached; it may take all frames, including answers of peers */
    bool is_strict;     /* the reverse path filter is strict */
    char existing[128]; /* if the interface does not exist: the names of those that do */
};

/* Read all facts. Values that cannot be read are BY_UNKNOWN or false. */
void by_machine_read(struct by_doctor_machine *machine);
void by_interface_read(const char *name, struct by_interface *interface);

/* Result of a query for `ip` at the other end of an interface. */
enum by_peer { BY_PEER_ANSWERS = 1, BY_PEER_SILENT, BY_PEER_KNOWN, BY_PEER_UNSEEN };
/*
 * Sends an ARP request, as any host would, and waits at most `wait_ms`. A switch with a table
 * answers for its ports. Without the right to open raw sockets it reads the kernel's neighbour
 * table instead; the result is KNOWN if the address is there. Sets `mac` for ANSWERS and KNOWN.
 * Addresses are in host byte order; `own_ip` and `own_mac` are the sender's.
 */
enum by_peer by_peer_ask(const char *interface, uint32_t own_ip, const uint8_t own_mac[6], uint32_t ip,
                         unsigned wait_ms, uint8_t mac[6]);
/* The same over IPv6, by a solicitation (RFC 4861); without the right it is UNSEEN. */
enum by_peer by_peer_ask_ipv6(const char *interface, const uint8_t own[BY_IPV6_BYTES],
                              const uint8_t own_mac[6], const uint8_t ipv6[BY_IPV6_BYTES], unsigned wait_ms,
                              uint8_t mac[6]);

#endif
