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
    status = lab_net_ip(NULL, false, batch, bytes);
    free(batch);
    if (status != 0)
        return status;

    stream = open_memstream(&batch, &bytes);
    fprintf(stream, "link add br0 type bridge\nlink set br0 up\n");
    for (uint32_t i = 0; i < rank; i++)
        fprintf(stream, "link set h%u master br0 up\n", i);
    fclose(stream);
    status = lab_net_ip(lab->outside, false, batch, bytes);
    free(batch);

    rank = 0;
    for (uint32_t node = 0; node < lab->topology->node_count && status == 0; node++) {
        char commands[80];

        if (!lab->topology->nodes[node].compute)
            continue;
        address(rank++, text);
        bytes =
            (size_t)snprintf(commands, sizeof(commands), "addr add %s/10 dev out0\nlink set out0 up\n", text);
        status = lab_net_ip(lab->ns[node], false, commands, bytes);
    }
    return status;
}

static uint32_t hosts_before(const struct lab *lab, uint32_t node)
{
    uint32_t hosts = 0;

    for (uint32_t i = 0; i < node; i++)
        hosts += lab->topology->nodes[i].compute;
    return hosts;
}

uint32_t lab_ranks_on(const struct lab *lab, uint32_t node)
{
    const char *at = lab->options.ranks_each;

    if (at == NULL)
        return 1;
    for (uint32_t host = hosts_before(lab, node); host > 0 && strchr(at, ',') != NULL; host--)
        at = strchr(at, ',') + 1;
    return (uint32_t)strtoul(at, NULL, 10);
}

int lab_ranks_check(const struct lab *lab)
{
    uint32_t hosts = hosts_before(lab, lab->topology->node_count), given = lab->options.ranks_each_count;

    if (given > 1 && given != hosts)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "--ranks-per-host %.60s: %u numbers for %u hosts; give one number, or one for each host",
            lab->options.ranks_each, given, hosts);
    if (given == 1 && lab->options.ranks_each_sum * hosts > LAB_RANKS_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "--ranks-per-host %.60s: %u ranks on %u hosts; the limit is %u",
                           lab->options.ranks_each, lab->options.ranks_each_sum * hosts, hosts,
                           LAB_RANKS_MAX);
    return 0;
}

uint32_t lab_outside_environment(const struct lab *lab, uint32_t node, uint32_t local, uint32_t job,
                                 char texts[LAB_OUTSIDE_VARIABLES][48], char *environment[])
{
    uint32_t rank = local, size = 0;
    char first[20];

    for (uint32_t i = 0; i < lab->topology->node_count; i++) {
        uint32_t ranks = lab->topology->nodes[i].compute ? lab_ranks_on(lab, i) : 0;

        rank += i < node ? ranks : 0;
        size += ranks;
    }
    address(0, first);
    snprintf(texts[0], 48, "RANK=%u", rank);
    snprintf(texts[1], 48, "WORLD_SIZE=%u", size);
    snprintf(texts[2], 48, "MASTER_ADDR=%s", first);
    snprintf(texts[3], 48, "MASTER_PORT=%u", PORT_BASE + job);
    snprintf(texts[4], 48, "GLOO_SOCKET_IFNAME=out0"); /* else its host name selects the interface */
    snprintf(texts[5], 48, "NCCL_SOCKET_IFNAME=out0");
    snprintf(texts[6], 48, "LOCAL_RANK=%u", local);
    snprintf(texts[7], 48, "LOCAL_WORLD_SIZE=%u", lab_ranks_on(lab, node));
    for (uint32_t i = 0; i < LAB_OUTSIDE_VARIABLES; i++)
        environment[i] = texts[i];
    return LAB_OUTSIDE_VARIABLES;
}
