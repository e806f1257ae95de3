/*
 * A controller and switches inside a test's process, for ranks that go on when a switch dies: hosts
 * that are each cabled to all switches, over UDP on the loopback interface, tables of several
 * generations of which each has one switch less, and the hub that carries what ranks tell each
 * other. Single-threaded: who waits turns.
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
#define HUB_GENS     3
#define HUB_NODES    (HUB_HOSTS + HUB_SWITCHES)

struct hub_image {
    uint8_t *bytes;
    size_t size;
};

struct hub_peer {
    int fd; /* or -1 */
    uint8_t *in;
    size_t used, room;
    int host; /* -1: has not said HELLO */
    uint16_t carried;
    uint32_t told[BY_MEMBER_BYE + 1]; /* frames of each type */
};

struct host_driver_hub {
    char folder[64], socket[96];
    int listener; /* or -1: no controller */
    struct hub_image image[HUB_GENS + 1][HUB_NODES];
    struct banyan_fabric *fabric;
    struct hub_peer peers[4 * HUB_HOSTS];
    struct by_prng prng;
    unsigned loss; /* of 16 messages between ranks, so many are lost */
    unsigned heard;
    struct banyan_context *context[HUB_HOSTS];
    struct banyan_comm *comm[HUB_HOSTS];
};

/* Tables, switches of generation 1, a controller. `inner`: from generation 2 on host 0 is the root
 * of the trees, over the switches that are left. */
void hub_open(struct host_driver_hub *hub, uint64_t seed, bool inner);
/* The ranks, from generation 1. */
void hub_join(struct host_driver_hub *hub);
void hub_close(struct host_driver_hub *hub);
/* One round of the controller; switches move with the ranks. */
void hub_turn(struct host_driver_hub *hub);
/* The switch dies, with all it held. */
void hub_kill(struct host_driver_hub *hub, int which);
/* The switches that live get the tables of a generation. */
void hub_push(struct host_driver_hub *hub, uint16_t gen);
/* To all that are connected; with `images` or as a reminder. */
void hub_freeze(struct host_driver_hub *hub, uint16_t gen, bool images);
void hub_go(struct host_driver_hub *hub, uint16_t gen);
void hub_fail(struct host_driver_hub *hub, int32_t code, const char *text);
/* Hosts that are connected and have said HELLO; those that have gone on in a generation. */
int hub_members(const struct host_driver_hub *hub);
int hub_carried(const struct host_driver_hub *hub, uint16_t gen);
/* The controller dies: all connections end, and none is taken. */
void hub_stop(struct host_driver_hub *hub);
void hub_start(struct host_driver_hub *hub);
/* A counter of a rank. */
uint64_t hub_counter(const struct host_driver_hub *hub, int rank, const char *name);

#endif
