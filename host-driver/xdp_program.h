/*
 * Our XDP program on one interface: loaded, told what to steer, attached by a link. The kernel
 * detaches it when the link's descriptor is closed, so also when the process is killed: nothing
 * stale can stay. One thread for each object.
 */
#ifndef BY_HOST_XDP_PROGRAM_H
#define BY_HOST_XDP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

struct by_xdp_program {
    struct bpf_object *object;
    int sockets_fd; /* the map from receive queue to AF_XDP socket; owned by `object` */
    int link_fd;
    bool native; /* else generic */
};

struct by_xdp_steer {
    const char *interface;
    unsigned interface_index;
    uint32_t own_ip; /* host order */
    uint16_t udp_port;
    bool frags;       /* frames may be larger than a page */
    const char *mode; /* auto, native or generic */
};

/* 0, or an error with its text; nothing is held then. */
int by_xdp_program_attach(struct by_xdp_program *program, const struct by_xdp_steer *steer);
/* Sends what arrives at `queue` to the AF_XDP socket `fd`. */
int by_xdp_program_add(struct by_xdp_program *program, uint32_t queue, int fd);
/* Also for one that was never attached but is all zero with link_fd -1. */
void by_xdp_program_detach(struct by_xdp_program *program);

#endif
