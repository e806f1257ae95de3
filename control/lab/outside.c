/*
 * The lab's second network: a bridge that joins the hosts, apart from the links of the fabric, as
 * the management network of a site does. A user's program finds its other ranks there, as under
 * torchrun: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set. Neighbour: net.c.
 */
#include <stdlib.h>

#include "control/lab/lab.h"

/* 100.64.0.0/10 is shared address space (RFC 6598), which tables never use. */
#define NETWORK   0x64400000u
#define PORT_BASE 29500u

static void address(uint32_t rank, char text[20])
{
    uint32_t ip = NETWORK + rank + 1;

    snprintf(text, 20, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

int lab_outside_up(struct lab *lab)
{
    char *batch = NULL, text[20];
    size_t bytes = 0;
    FILE *stream;
    uint32_t rank = 0;
    int status;

    snprintf(lab->outside, sizeof(lab->outside), "lab-%.20s.outside", lab->id);
    status = lab_state_note(lab, "ns %s", lab->outside);
    if (status != 0)
        return status;
    stream = open_memstream(&batch, &bytes);
    fprintf(stream, "netns add %s\n", lab->outside);
    for (uint32_t node = 0; node < lab->topology->node_count; node++)
        if (lab->topology->nodes[node].compute)
            fprintf(stream, "link add out0 netns %s type veth peer name h%u netns %s\n", lab->ns[node],
                    rank++, lab->outside);
    fclose(stream);
    status = lab_net_ip(NULL, batch, bytes);
    free(batch);
    if (status != 0)
        return status;

    stream = open_memstream(&batch, &bytes);
    fprintf(stream, "link add br0 type bridge\nlink set br0 up\n");
    for (uint32_t i = 0; i < rank; i++)
        fprintf(stream, "link set h%u master br0 up\n", i);
    fclose(stream);
    status = lab_net_ip(lab->outside, batch, bytes);
    free(batch);

    rank = 0;
    for (uint32_t node = 0; node < lab->topology->node_count && status == 0; node++) {
        char commands[80];

        if (!lab->topology->nodes[node].compute)
            continue;
        address(rank++, text);
        bytes =
            (size_t)snprintf(commands, sizeof(commands), "addr add %s/10 dev out0\nlink set out0 up\n", text);
        status = lab_net_ip(lab->ns[node], commands, bytes);
    }
    return status;
}

uint32_t lab_outside_environment(const struct lab *lab, uint32_t node, uint32_t job, char texts[6][48],
                                 char *environment[])
{
    uint32_t rank = 0, size = 0;
    char first[20];

    for (uint32_t i = 0; i < lab->topology->node_count; i++) {
        rank += lab->topology->nodes[i].compute && i < node;
        size += lab->topology->nodes[i].compute;
    }
    address(0, first);
    snprintf(texts[0], 48, "RANK=%u", rank);
    snprintf(texts[1], 48, "WORLD_SIZE=%u", size);
    snprintf(texts[2], 48, "MASTER_ADDR=%s", first);
    snprintf(texts[3], 48, "MASTER_PORT=%u", PORT_BASE + job);
    snprintf(texts[4], 48, "GLOO_SOCKET_IFNAME=out0"); /* else its host name selects the interface */
    snprintf(texts[5], 48, "NCCL_SOCKET_IFNAME=out0");
    for (uint32_t i = 0; i < 6; i++)
        environment[i] = texts[i];
    return 6;
}
