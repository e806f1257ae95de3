/*
 * The kernel's part of a switch (offload/xdp): its program for a port, run on each frame without a
 * port. It must relay exactly the frames that the engine relays, with the same bytes and port, and
 * leave all others to the engine. Requires root; without it, or on a kernel without support, the
 * trace runs without this shell.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/xdp_state.h"
#include "offload/table/image.h"
#include "offload/wire/frame.h"
#include "tests/trace/trace.h"

/* The interface on which a program appears to run: loopback. */
#define LOOPBACK 1u

static struct by_xdp *xdp;
static struct by_image_port ports[TRACE_PORTS];
static struct by_batch_port addresses[BY_XDP_PORTS_MAX];
static int program;

int trace_kernel_open(const uint8_t *image)
{
    const struct by_xdp_config config = {.entry_count = 16, .relay_count = 16, .relays = true};
    const struct bpf_program *found;

    if (geteuid() != 0 || by_xdp_open(&xdp, &config) != 0)
        return 0;
    for (uint32_t i = 0; i < TRACE_PORTS; i++) {
        const struct bpf_devmap_val out = {.ifindex = LOOPBACK};

        by_image_port(image, i, &ports[i]);
        addresses[i] = (struct by_batch_port){.addressed = true, .reach = BY_REACH_PEER};
        memcpy(addresses[i].mac, ports[i].own_mac, BY_MAC_BYTES);
        memcpy(addresses[i].peer_mac, ports[i].peer_mac, BY_MAC_BYTES);
        xdp->interface[i] = LOOPBACK;
        xdp->ready_ports |= UINT64_C(1) << i;
        if (bpf_map_update_elem(xdp->out, &i, &out, BPF_ANY) != 0)
            abort();
    }
    by_xdp_load(xdp, image, addresses);
    found = bpf_object__find_program_by_name(xdp->object, "by_port");
    program = found ? bpf_program__fd(found) : -1;
    return 1;
}

void trace_kernel_close(void)
{
    by_xdp_close(xdp);
    xdp = NULL;
}

/* Returns the port for which the program has counted a frame since the last call. */
static unsigned counted_port(void)
{
    static uint64_t before[TRACE_PORTS];
    unsigned port = TRACE_PORTS;

    for (unsigned i = 0; i < TRACE_PORTS; i++) {
        struct by_xdp_port_counts counts;

        by_xdp_read_port(xdp, i, &counts);
        if (counts.tx_packets != before[i])
            port = i;
        before[i] = counts.tx_packets;
    }
    return port;
}

int trace_kernel_step(const struct trace_frame *in, struct trace_out *out)
{
    const struct by_image_port *port = &ports[in->port];
    struct by_xdp_inside inside = {.port = in->port, .addressed = 1};
    struct trace_frame *to = &out->frame[0];
    uint8_t before[TRACE_FRAME_MAX];
    uint32_t interface = LOOPBACK;
    struct bpf_test_run_opts run = {.sz = sizeof run,
                                    .data_in = before,
                                    .data_size_in = (uint32_t)in->bytes,
                                    .data_out = to->data,
                                    .data_size_out = sizeof to->data,
                                    .repeat = 1};

    out->count = 0;
    memcpy(inside.own_mac, port->own_mac, sizeof inside.own_mac);
    memcpy(before, in->data, in->bytes);
    if (bpf_map_update_elem(xdp->inside, &interface, &inside, BPF_ANY) != 0 ||
        bpf_prog_test_run_opts(program, &run) != 0) {
        fprintf(stderr, "trace: the kernel does not run the program on %zu bytes\n", in->bytes);
        exit(1);
    }
    if (run.retval == XDP_PASS)
        return run.data_size_out == in->bytes && memcmp(to->data, in->data, in->bytes) == 0;
    to->port = counted_port();
    to->bytes = run.data_size_out;
    out->count = 1;
    return run.retval == XDP_REDIRECT && to->port < TRACE_PORTS;
}
