/*
 * The network of a lab with a schedule: hosts and routers. Each end of a cable has an address. Each
 * path has two more: one of its sender, from which its connections come, and one of its receiver,
 * to which they lead. All nodes on the path have a route to both, so that data takes the path and
 * acknowledgements take it back. Neighbours: net.c, wire.c; see ways.h.
 *
 * With a rate a cable is two veth pairs, whose inner ends are in the namespace of the wires.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/ways.h"

/* Addresses of ends of cables, of senders and of receivers, from 10.0.0.0/8. */
#define END_BASE      0x0a000001u
#define RECEIVER_BASE 0x0a800001u
#define SENDER_BASE   0x0ac00001u
/* Base of interface indices, which differ at the two ends of a pair; see net.c. */
#define INDEX_BASE 1000u
/* Start of the name of an interface of a node; the number of its cable follows. */
#define LINK "link"

#define ADDRESS_TEXT 16

static char *text_of(uint32_t ip, char text[ADDRESS_TEXT])
{
    snprintf(text, ADDRESS_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return text;
}

uint32_t lab_routes_address(uint32_t path)
{
    return RECEIVER_BASE + path;
}

/* The cables: without wires a veth pair, else one for each end. */
static int add_cables(struct lab *lab)
{
    const struct lab_series *series = lab->series;
    uint32_t mtu = lab->options.lower.mtu;
    char *batch = NULL, name[16];
    size_t bytes = 0;
    FILE *stream = open_memstream(&batch, &bytes);
    int status;

    for (uint32_t w = 0; w < 2 * series->cable_count; w++) {
        const char *ns = lab->ns[series->ways[w].from];

        lab_wire_name(w, name);
        if (lab->wires[0] != 0)
            fprintf(stream,
                    "link add " LINK "%u index %u mtu %u numtxqueues 1 numrxqueues 1 netns %s type veth "
                    "peer name %s index %u mtu %u numtxqueues 1 numrxqueues 1 netns %s\n",
                    w / 2, INDEX_BASE + 2 * w, mtu, ns, name, INDEX_BASE + 2 * w + 1, mtu, lab->wires);
        else if (w % 2 == 0)
            fprintf(stream,
                    "link add " LINK "%u index %u mtu %u numtxqueues 1 numrxqueues 1 netns %s type veth "
                    "peer name " LINK "%u index %u mtu %u numtxqueues 1 numrxqueues 1 netns %s\n",
                    w / 2, INDEX_BASE + w, mtu, ns, w / 2, INDEX_BASE + w + 1, mtu,
                    lab->ns[series->ways[w].to]);
    }
    fclose(stream);
    status = lab_net_ip(NULL, false, batch, bytes);
    free(batch);
    return status;
}

/* Turns off what would merge or cut frames, so that they have the MTU. `fd` is a socket in the
 * namespace. */
static void set_offloads(int fd, const char *interface)
{
    static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        lab_net_offload(fd, interface, commands[i], false);
}

/* Hosts use CUBIC, whatever this machine uses, so that results do not depend on it. Where the
 * kernel does not let a namespace choose it, they use Reno, which resembles it when a round trip is
 * short. */
const char *lab_routes_congestion(void)
{
    char text[256] = "";
    FILE *stream = fopen("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "re");
    bool found = false;

    while (stream != NULL && !found && fscanf(stream, "%255s", text) == 1)
        found = strcmp(text, "cubic") == 0;
    if (stream != NULL)
        fclose(stream);
    return found ? "cubic" : "reno";
}

/* Runs in a child: changes the settings in the namespace of a node that `ip` cannot change. */
static int prepare_inside(const struct lab *lab, uint32_t node)
{
    const struct lab_series *series = lab->series;
    bool host = lab->topology->nodes[node].compute;
    char text[96];
    int fd;

    if (lab_net_enter(lab->ns[node]) != 0) {
        fprintf(stderr, "banyan: lab: namespace %s: %s\n", lab->ns[node], strerror(errno));
        return 1;
    }
    lab_net_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    lab_net_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    lab_net_setting("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
    lab_net_setting("/proc/sys/net/ipv4/conf/default/rp_filter", "0");
    lab_net_setting("/proc/sys/net/ipv4/ip_forward", host ? "0" : "1");
    if (host)
        lab_net_setting("/proc/sys/net/ipv4/tcp_congestion_control", lab_routes_congestion());
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (uint32_t w = 0; w < 2 * series->cable_count; w++) {
        if (series->ways[w].from != node)
            continue;
        snprintf(text, sizeof(text), LINK "%u", w / 2);
        set_offloads(fd, text);
        snprintf(text, sizeof(text), "/proc/sys/net/ipv4/conf/" LINK "%u/rp_filter", w / 2);
        lab_net_setting(text, "0");
    }
    close(fd);
    return 0;
}

/* The same in the namespace of the wires, whose kernel must not send anything itself. */
static int prepare_wires(const struct lab *lab, uint32_t node)
{
    char name[16];
    int fd;

    (void)node;
    if (lab_net_enter(lab->wires) != 0) {
        fprintf(stderr, "banyan: lab: namespace %s: %s\n", lab->wires, strerror(errno));
        return 1;
    }
    lab_net_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    lab_net_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (uint32_t w = 0; w < 2 * lab->series->cable_count; w++) {
        lab_wire_name(w, name);
        set_offloads(fd, name);
    }
    close(fd);
    return 0;
}

/* Adds the addresses and routes of a path, each to the commands of its node. */
static void add_path(const struct lab_series *series, uint32_t p, FILE **commands)
{
    const struct by_moves_path *path = &series->moves.paths[p];
    char sender[ADDRESS_TEXT], receiver[ADDRESS_TEXT], via[ADDRESS_TEXT];
    uint32_t last = path->node_count - 1;

    text_of(SENDER_BASE + p, sender);
    text_of(series->addresses[p], receiver);
    fprintf(commands[path->nodes[0]], "addr add %s/32 dev lo\n", sender);
    fprintf(commands[path->nodes[last]], "addr add %s/32 dev lo\n", receiver);
    for (uint32_t i = 0; i < last; i++) {
        uint32_t way = lab_way_find(series, path->nodes[i], path->nodes[i + 1]);

        fprintf(commands[path->nodes[i]], "route add %s via %s dev " LINK "%u onlink%s%s\n", receiver,
                text_of(END_BASE + (way ^ 1), via), way / 2, i == 0 ? " src " : "", i == 0 ? sender : "");
        fprintf(commands[path->nodes[i + 1]], "route add %s via %s dev " LINK "%u onlink\n", sender,
                text_of(END_BASE + way, via), way / 2);
    }
}

/* Configures all nodes, with one `ip` for each. */
static int configure(struct lab *lab)
{
    const struct lab_series *series = lab->series;
    uint32_t n = lab->topology->node_count;
    FILE **commands = by_alloc(n, sizeof(FILE *));
    char **batches = by_alloc(n, sizeof(char *)), own[ADDRESS_TEXT], other[ADDRESS_TEXT];
    size_t *bytes = by_alloc(n, sizeof(*bytes));
    int status = 0;

    for (uint32_t i = 0; i < n; i++) {
        commands[i] = open_memstream(&batches[i], &bytes[i]);
        fprintf(commands[i], "link set lo up\n");
    }
    for (uint32_t w = 0; w < 2 * series->cable_count; w++)
        fprintf(commands[series->ways[w].from],
                "addr add %s peer %s dev " LINK "%u\nlink set " LINK "%u up\n", text_of(END_BASE + w, own),
                text_of(END_BASE + (w ^ 1), other), w / 2, w / 2);
    for (uint32_t p = 0; p < series->moves.path_count; p++)
        add_path(series, p, commands);
    for (uint32_t i = 0; i < n; i++) {
        fclose(commands[i]);
        if (status == 0)
            status = lab_stopping ? BY_EXIT_ENVIRONMENT : lab_net_ip(lab->ns[i], false, batches[i], bytes[i]);
        free(batches[i]);
    }
    free(commands);
    free(batches);
    free(bytes);
    return status;
}

/* Sets the interfaces of the wires up; they have no addresses. */
static int raise_wires(struct lab *lab)
{
    char *batch = NULL, name[16];
    size_t bytes = 0;
    FILE *stream = open_memstream(&batch, &bytes);
    int status;

    for (uint32_t w = 0; w < 2 * lab->series->cable_count; w++) {
        lab_wire_name(w, name);
        fprintf(stream, "link set %s arp off up\n", name);
    }
    fclose(stream);
    status = lab_net_ip(lab->wires, false, batch, bytes);
    free(batch);
    return status;
}

static int add_wires(struct lab *lab)
{
    char command[96];
    int status;

    snprintf(lab->wires, sizeof(lab->wires), "lab-%.20s.wires", lab->id);
    status = lab_state_note(lab, "ns %s", lab->wires);
    if (status != 0)
        return status;
    snprintf(command, sizeof(command), "netns add %s\n", lab->wires);
    return lab_net_ip(NULL, false, command, strlen(command));
}

int lab_routes_up(struct lab *lab)
{
    int status;

    lab_progress(lab, "making %u namespaces and %u cables", lab->topology->node_count,
                 lab->series->cable_count);
    status = lab_net_namespaces(lab);
    if (status == 0 && lab->options.rate > 0)
        status = add_wires(lab);
    if (status == 0)
        status = add_cables(lab);
    for (uint32_t i = 0; i < lab->topology->node_count && status == 0; i++)
        status = lab_stopping ? BY_EXIT_ENVIRONMENT : lab_net_inside(lab, i, prepare_inside);
    if (status == 0 && lab->wires[0] != 0)
        status = lab_net_inside(lab, 0, prepare_wires);
    if (status == 0 && lab->wires[0] != 0)
        status = raise_wires(lab);
    if (status == 0)
        status = configure(lab);
    return status == 0 ? lab_outside_up(lab) : status;
}

/* Runs in a child: reads what the interfaces of a node have sent, /proc/net/dev. */
static int count_inside(const struct lab *lab, uint32_t node)
{
    struct lab_series *series = lab->series;
    char line[512];
    FILE *stream;

    if (lab_net_enter(lab->ns[node]) != 0)
        return 1;
    stream = fopen("/proc/self/net/dev", "re");
    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        uint64_t bytes, frames;
        uint32_t cable;

        if (sscanf(line, " " LINK "%" SCNu32 ": %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &cable,
                   &bytes, &frames) != 3 ||
            cable >= series->cable_count)
            continue;
        for (uint32_t w = 2 * cable; w < 2 * cable + 2; w++)
            if (series->ways[w].from == node) {
                series->ways[w].bytes = bytes;
                series->ways[w].frames = frames;
            }
    }
    if (stream != NULL)
        fclose(stream);
    return 0;
}

void lab_routes_count(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->topology->node_count; i++)
        (void)lab_net_inside(lab, i, count_inside);
}
