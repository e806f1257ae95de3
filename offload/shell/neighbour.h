/*
 * The neighbours of a switch whose MAC addresses are learned by ARP (RFC 826): the other ends of
 * its cables, or the receivers behind a bridge. Keeps what is known of each, and when it must be
 * asked again; and for which receivers behind this switch it answers at a bridge. Neighbours:
 * batch.c sends the requests and hands over what it receives. Pure; one thread.
 */
#ifndef BY_SHELL_NEIGHBOUR_H
#define BY_SHELL_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/wire/frame.h"

/* Neighbours with learned addresses (count); packets for further ones cannot be sent. */
#define BY_NEIGHBOURS_MAX 512u
/* Interval of requests to a neighbour that has not answered (ns): first, and after
 * BY_NEIGHBOUR_QUICK of them. */
#define BY_NEIGHBOUR_SOON_NS 100000000u
#define BY_NEIGHBOUR_SLOW_NS 1000000000u
#define BY_NEIGHBOUR_QUICK   10u
/* Unanswered requests after which a neighbour is reported as silent (count): about 3 seconds. */
#define BY_NEIGHBOUR_TRIES 12u
/* Interval of requests to a neighbour that answers (ns). */
#define BY_NEIGHBOUR_AGAIN_NS UINT64_C(30000000000)
/* Maximum requests of one round (count). */
#define BY_NEIGHBOUR_BURST 16u

struct by_shell_neighbour {
    uint32_t ip;
    uint16_t port;
    uint8_t mac[BY_MAC_BYTES];
    bool known;     /* `mac` is valid: it has answered */
    bool silent;    /* it has not answered the last BY_NEIGHBOUR_TRIES requests */
    bool listed;    /* by the table that is being loaded */
    bool elsewhere; /* another worker asks it, as long as this one has heard an answer */
    uint8_t tries;  /* requests since the last answer */
    uint64_t due_ns;
};

/* A receiver behind this switch for which it answers ARP at a port: packets for it are relayed. */
struct by_neighbour_proxy {
    uint32_t ip;
    uint16_t port;
};

struct by_neighbours {
    uint32_t count, proxy_count;
    uint64_t due_ns;                                 /* of the first that must be asked; UINT64_MAX: none */
    struct by_shell_neighbour at[BY_NEIGHBOURS_MAX]; /* sorted by port and address */
    struct by_neighbour_proxy proxy[BY_NEIGHBOURS_MAX];
};

/*
 * Replaces the neighbours by those of a checked `image`, except on the ports in `exempt` (bit 1 <<
 * port). Addresses that are known stay known; all are asked for at once, because the port may have
 * another VLAN. Those at the ports in `elsewhere` are asked by another worker, whose answers this
 * one gets too; they are asked here only if none has come for BY_NEIGHBOUR_SLOW_NS.
 */
void by_neighbours_load(struct by_neighbours *neighbours, const uint8_t *image, uint64_t exempt,
                        uint64_t elsewhere, uint64_t now_ns);
/* Returns a neighbour, or NULL if the table has none with this address at this port. */
struct by_shell_neighbour *by_neighbours_find(struct by_neighbours *neighbours, uint16_t port, uint32_t ip);
/* Whether the switch answers ARP at `port` for `ip`: on a port to a bridge, the receivers of relays
 * that begin there (RFC 1027). */
bool by_neighbours_proxy(const struct by_neighbours *neighbours, uint16_t port, uint32_t ip);
/* Notes that a neighbour is alive at `mac`, the address of one station. */
void by_neighbours_hear(struct by_neighbours *neighbours, struct by_shell_neighbour *neighbour,
                        const uint8_t mac[BY_MAC_BYTES], uint64_t now_ns);
/* Returns the next neighbour from index `*from` on that must be asked now, and counts the request;
 * NULL if there are no more. */
struct by_shell_neighbour *by_neighbours_ask(struct by_neighbours *neighbours, uint32_t *from,
                                             uint64_t now_ns);
/* Sets due_ns after a series of requests. */
void by_neighbours_settle(struct by_neighbours *neighbours);

#endif
