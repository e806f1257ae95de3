/*
 * The XDP program on one interface: loading, configuration, and attachment by a link. The kernel
 * detaches the program when the link's descriptor is closed, so also when the process is killed: no
 * stale program can remain. One thread per object.
 */
#ifndef BY_HOST_XDP_PROGRAM_H
#define BY_HOST_XDP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

struct by_xdp_program {
    struct bpf_object *object;
    int sockets_fd; /* map from receive queue to AF_XDP socket; owned by `object` */
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

/* Loads and attaches the program. 0, or an error with its text; nothing is held after an error. */
int by_xdp_program_attach(struct by_xdp_program *program, const struct by_xdp_steer *steer);
/* Directs packets that arrive at `queue` to the AF_XDP socket `fd`. */
int by_xdp_program_add(struct by_xdp_program *program, uint32_t queue, int fd);
/* Detaches the program; also accepts a zeroed object with link_fd -1. */
void by_xdp_program_detach(struct by_xdp_program *program);

#endif
