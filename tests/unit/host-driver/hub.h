/*
 * A controller and switches inside a test's process, for ranks that continue after a switch fails:
 * hosts that are each connected to all switches, on a fabric in memory; tables of several
 * generations, each with one switch fewer, or with standbys; and the hub that forwards the ranks'
 * messages.
 * Single-threaded: code that waits calls hub_turn.
 */
#ifndef TESTS_UNIT_HOST_HUB_H
#define TESTS_UNIT_HOST_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include <banyan/banyan.h>

#include "offload/base/prng.h"
#include "offload/wire/member.h"
#include "tests/sim/fabric.h"

#define HUB_HOSTS    4
#define HUB_SWITCHES 3
#define HUB_GENS     4
#define HUB_NODES    (HUB_HOSTS + HUB_SWITCHES)

struct hub_image {
    uint8_t *bytes;
    size_t size;
};

struct hub_peer {
    int fd; /* -1: none */
    uint8_t *in;
    size_t used, room;
    int host; /* -1: no HELLO yet */
    uint16_t carried;
    uint32_t told[BY_MEMBER_MEASURED + 1]; /* number of frames of each type */
    uint32_t stuck;                        /* SUSPECT of a rank that no standby serves */
    uint16_t hello_rank;
};

struct host_driver_hub {
    char folder[64], socket[96];
    int listener; /* -1: no controller */
    struct hub_image image[HUB_GENS + 1][HUB_NODES];
    struct banyan_fabric *fabric;
    struct hub_peer peers[4 * HUB_HOSTS];
    struct by_prng prng;
    unsigned loss; /* lost messages between ranks, of each 16 */
    unsigned heard;
    struct banyan_context *context[HUB_HOSTS];
    struct banyan_comm *comm[HUB_HOSTS];
};

/* Opens tables, switches of generation 1, and a controller. `inner`: from generation 2 on host 0 is
 * the root of the trees over the remaining switches. */
void hub_open(struct host_driver_hub *hub, uint64_t seed, bool inner);
/*
 * The same with standbys. In generation 1 two trees are over switches 0 and 1. The switches also
 * have its standbys: generation 2 over switch 2, and generation 3 over switch 1. Generation 4 is
 * the controller's, over switches 1 and 2. `inner`: host 0 is the root of the trees for calls of
 * generations 2 and 3.
 */
void hub_open_standbys(struct host_driver_hub *hub, uint64_t seed, bool inner);
/* Opens the ranks, with generation 1. */
void hub_join(struct host_driver_hub *hub);
void hub_close(struct host_driver_hub *hub);
/* Runs one round of the controller; switches run with the ranks. */
void hub_turn(struct host_driver_hub *hub);
/* Fails the switch, with all its state. */
void hub_kill(struct host_driver_hub *hub, int which);
/* Loads the tables of a generation into the remaining switches. */
void hub_push(struct host_driver_hub *hub, uint16_t gen);
/* Sends to all connected hosts, with `images` or as a reminder. */
void hub_freeze(struct host_driver_hub *hub, uint16_t gen, bool images);
void hub_go(struct host_driver_hub *hub, uint16_t gen);
/* Sends all connected hosts the standby `gen` of `base`, which replaces the trees with a bit; with
 * `base` itself: its standbys end. */
void hub_standby(struct host_driver_hub *hub, uint16_t gen, uint16_t base, uint8_t replaces);
void hub_fail(struct host_driver_hub *hub, int32_t code, const char *text);
/* Return the hosts that are connected and have sent HELLO, and those that have resumed in a
 * generation. */
int hub_members(const struct host_driver_hub *hub);
int hub_carried(const struct host_driver_hub *hub, uint16_t gen);
/* Fails the controller: all connections end, and it accepts none. */
void hub_stop(struct host_driver_hub *hub);
void hub_start(struct host_driver_hub *hub);
/* Returns a counter of a rank. */
uint64_t hub_counter(const struct host_driver_hub *hub, int rank, const char *name);

#endif
