/* Loads and attaches offload/xdp/steer.bpf.c, whose object is embedded here. See xdp_program.h. */
#include "host-driver/xdp_program.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/error.h"
#include "offload/linux/object.h"

/* BY_XDP_OBJECT is the object's path, from module.mk. */
BY_OBJECT(by_xdp_object, BY_XDP_OBJECT);

/* The program's constants, in the order of their definition. */
struct constants {
    uint32_t own_ip;
    uint32_t udp_port;
};

static int load(struct by_xdp_program *program, const struct by_xdp_steer *steer)
{
    struct constants constants = {htonl(steer->own_ip), htons(steer->udp_port)};
    const char *chosen = steer->frags ? "by_steer_frags" : "by_steer";
    struct bpf_program *each;
    int error;

    program->object = by_object_open(by_xdp_object, by_xdp_object_end);
    if (program->object == NULL)
        return by_fail(BY_EIO, "the XDP program cannot be read: %s", strerror(errno));
    bpf_object__for_each_program(each, program->object)
        bpf_program__set_autoload(each, strcmp(bpf_program__name(each), chosen) == 0);
    error = by_object_constants(program->object, &constants, sizeof(constants));
    if (error != 0)
        return by_fail(BY_EIO, "the XDP program's constants cannot be set: %s", strerror(-error));
    error = bpf_object__load(program->object);
    if (error != 0)
        return by_fail(error == -EPERM || error == -EACCES ? BY_EPERM : BY_EIO,
                       "the XDP program cannot be loaded: %s; it requires CAP_NET_ADMIN and CAP_BPF (root)",
                       strerror(-error));
    program->sockets_fd = bpf_object__find_map_fd_by_name(program->object, "by_sockets");
    return program->sockets_fd >= 0 ? 0 : by_fail(BY_EIO, "the XDP program has no map of sockets");
}

static int attach_as(struct by_xdp_program *program, const struct by_xdp_steer *steer, bool native)
{
    struct bpf_link_create_opts options = {.sz = sizeof(options),
                                           .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE};
    const char *name = steer->frags ? "by_steer_frags" : "by_steer";
    struct bpf_program *chosen = bpf_object__find_program_by_name(program->object, name);
    int fd;

    if (chosen == NULL)
        return -ENOENT;
    fd = bpf_link_create(bpf_program__fd(chosen), (int)steer->interface_index, BPF_XDP, &options);
    if (fd < 0)
        return fd;
    program->link_fd = fd;
    program->native = native;
    return 0;
}

static int attach(struct by_xdp_program *program, const struct by_xdp_steer *steer)
{
    int error = -EOPNOTSUPP;

    if (strcmp(steer->mode, "generic") != 0)
        error = attach_as(program, steer, true);
    if (error != 0 && error != -EBUSY && error != -EEXIST && strcmp(steer->mode, "native") != 0)
        error = attach_as(program, steer, false);
    if (error == 0)
        return 0;
    if (error == -EBUSY || error == -EEXIST)
        return by_fail(BY_EBUSY, "%s has an XDP program already (ip link show %s); detach it, or use udp",
                       steer->interface, steer->interface);
    return by_fail(error == -EPERM ? BY_EPERM : BY_EUNSUPPORTED, "%s accepts no XDP program in %s mode: %s",
                   steer->interface, strcmp(steer->mode, "auto") == 0 ? "native or generic" : steer->mode,
                   strerror(-error));
}

int by_xdp_program_attach(struct by_xdp_program *program, const struct by_xdp_steer *steer)
{
    libbpf_print_fn_t before = libbpf_set_print(by_object_be_silent);
    int error;

    memset(program, 0, sizeof(*program));
    program->link_fd = -1;
    error = load(program, steer);
    if (error == 0)
        error = attach(program, steer);
    libbpf_set_print(before);
    if (error != 0)
        by_xdp_program_detach(program);
    return error;
}

int by_xdp_program_add(struct by_xdp_program *program, uint32_t queue, int fd)
{
    if (bpf_map_update_elem(program->sockets_fd, &queue, &fd, BPF_ANY) == 0)
        return 0;
    return by_fail(BY_EIO, "the socket of receive queue %u cannot be registered: %s", queue, strerror(errno));
}

void by_xdp_program_detach(struct by_xdp_program *program)
{
    if (program->link_fd >= 0)
        close(program->link_fd);
    program->link_fd = -1;
    if (program->object != NULL)
        bpf_object__close(program->object);
    program->object = NULL;
}
