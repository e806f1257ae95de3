/*
 * The lab's network: a namespace for each node, a veth pair for each link, and addresses and
 * neighbours as in the tables. It uses the batch mode of iproute2, so a fabric with hundreds of
 * links runs one `ip` for each namespace. Switch ports have no IP address, because the kernel must
 * not answer for the switch.
 *
 * Offloads that rewrite or merge frames are turned off with the ethtool ioctl, because the bytes on
 * a cable are counted and no hardware would fill in a checksum. Exception: both ends of the links
 * support GSO batches (--driver gso).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/lab.h"
#include "offload/linux/feature.h"

/* Number of the routing table of a host's interface 0; any unused number works. */
#define TABLE_BASE 1000
/*
 * Base of interface indices. The two ends of a cable must have different indices. Linux treats a
 * pair with equal indices like a device without a lower device and handles its carrier up to a
 * second late (linkwatch_urgent_event() in net/core/link_watch.c); frames sent in that second are
 * lost.
 */
#define INDEX_BASE 1000
/* Name of a bridge. */
#define BRIDGE "br0"
/* Start of the name of a cable that carries a VLAN. */
#define CABLE "cable"
/* " address " or " lladdr " and a MAC address. */
#define MAC_TEXT 32

int lab_net_ip(const char *ns, bool ipv6, const char *batch, size_t bytes)
{
    int ends[2], status = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        if (ns != NULL)
            execlp("ip", "ip", "-n", ns, ipv6 ? "-6" : "-batch", ipv6 ? "-batch" : "-",
                   ipv6 ? "-" : (char *)NULL, (char *)NULL);
        else
            execlp("ip", "ip", "-batch", "-", (char *)NULL);
        fprintf(stderr, "banyan: lab: cannot run `ip`: %s: install iproute2\n", strerror(errno));
        _exit(127);
    }
    close(ends[0]);
    for (size_t done = 0; pid > 0 && done < bytes;) {
        ssize_t count = write(ends[1], batch + done, bytes - done);
        if (count <= 0 && errno != EINTR)
            break; /* `ip` ended early; its exit status is checked below */
        done += count > 0 ? (size_t)count : 0;
    }
    close(ends[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: `ip -batch` failed in %s%s; its reason is above",
                           ns ? "namespace " : "the host", ns ? ns : "");
    return 0;
}

int lab_net_enter(const char *ns)
{
    char path[128];
    int fd, status;

    snprintf(path, sizeof(path), "/run/netns/%.80s", ns);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    status = setns(fd, CLONE_NEWNET);
    close(fd);
    return status;
}

void lab_net_delete(const char *ns)
{
    char path[160];
    pid_t pid;

    snprintf(path, sizeof(path), "/run/netns/%.120s", ns);
    if (access(path, F_OK) != 0)
        return;
    pid = fork();
    if (pid == 0) {
        execlp("ip", "ip", "netns", "delete", ns, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Names a namespace lab-ID-NODE if the node's name is usable, else by its number. */
static void name_namespace(const struct lab *lab, uint32_t node, char name[80])
{
    const char *text = lab->topology->nodes[node].name;
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

    if (text[plain] == 0)
        snprintf(name, 80, "lab-%.20s-%.47s", lab->id, text);
    else
        snprintf(name, 80, "lab-%.20s-%u", lab->id, node);
}

int lab_net_namespaces(struct lab *lab)
{
    char *batch = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&batch, &bytes);
    int status = 0;

    lab->ns = by_alloc(lab->topology->node_count, sizeof(*lab->ns));
    for (uint32_t i = 0; i < lab->topology->node_count && status == 0; i++) {
        name_namespace(lab, i, lab->ns[i]);
        status = lab_state_note(lab, "ns %s", lab->ns[i]);
        fprintf(stream, "netns add %s\n", lab->ns[i]);
    }
    fclose(stream);
    if (status == 0)
        status = lab_net_ip(NULL, false, batch, bytes);
    free(batch);
    return status;
}

/* Writes " WORD MAC" for an end of a link; nothing if its neighbours learn the MAC address. */
static char *mac_text(const struct lab *lab, const char *word, uint32_t link, uint32_t node,
                      char text[MAC_TEXT])
{
    uint8_t mac[6];

    text[0] = 0;
    if (by_address_mac(lab->topology, link, node, mac))
        snprintf(text, MAC_TEXT, " %s %02x:%02x:%02x:%02x:%02x:%02x", word, mac[0], mac[1], mac[2], mac[3],
                 mac[4], mac[5]);
    return text;
}

/* Returns the MTU of a node's end of a link: the site's, else that of the tables. */
static uint32_t mtu_of(const struct lab *lab, uint32_t link, uint32_t node)
{
    const struct by_site_end *end = by_site_end(lab->topology, link, node);

    return end != NULL && end->mtu != 0 ? end->mtu : lab->lowering->mtu;
}

void lab_net_cable(const struct lab *lab, uint32_t link, uint32_t node, char name[16])
{
    if (by_address_vlan(lab->topology, link) != 0)
        snprintf(name, 16, CABLE "%u", link);
    else
        by_address_interface(&lab->lowering->map, link, node, name);
}

/* Adds the interface of a VLAN at a node's end of a link; the cable's own interface is called CABLE
 * and the number of the link. */
static void add_vlan(const struct lab *lab, FILE *stream, uint32_t link, uint32_t node, const char *name)
{
    uint16_t vlan = by_address_vlan(lab->topology, link);
    char mac[MAC_TEXT];

    if (vlan != 0)
        fprintf(stream,
                "link add link " CABLE "%u name %s%s type vlan id %u\nlink set " CABLE "%u arp off up\n",
                link, name, mac_text(lab, "address", link, node, mac), vlan, link);
}

static int add_cables(struct lab *lab)
{
    const struct by_topology *topology = lab->topology;
    char *batch = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&batch, &bytes);
    int status;

    for (uint32_t i = 0; i < topology->link_count; i++) {
        uint32_t a = topology->links[i].a, b = topology->links[i].b;
        char name_a[16], name_b[16], mac_a[MAC_TEXT], mac_b[MAC_TEXT];
        lab_net_cable(lab, i, a, name_a);
        lab_net_cable(lab, i, b, name_b);
        fprintf(stream,
                "link add %s index %u mtu %u%s numtxqueues 1 numrxqueues 1 netns %s type veth "
                "peer name %s index %u mtu %u%s numtxqueues 1 numrxqueues 1 netns %s\n",
                name_a, INDEX_BASE + 2 * i, mtu_of(lab, i, a), mac_text(lab, "address", i, a, mac_a),
                lab->ns[a], name_b, INDEX_BASE + 2 * i + 1, mtu_of(lab, i, b),
                mac_text(lab, "address", i, b, mac_b), lab->ns[b]);
    }
    fclose(stream);
    status = lab_net_ip(NULL, false, batch, bytes);
    free(batch);
    return status;
}

/* Gives a node's end of a link its address, a route to the other end, and that end's MAC address
 * unless it is learned. The kernel forgets the route of an IPv6 address with a peer when the
 * carrier of its interface changes, so there the route is one of its own. */
static void add_address(const struct lab *lab, FILE *stream, uint32_t link, uint32_t node, const char *name)
{
    const struct by_topology *topology = lab->topology;
    uint32_t peer = by_address_peer(topology, link, node);
    char own[BY_ADDRESS_TEXT], other[BY_ADDRESS_TEXT], mac[MAC_TEXT];

    by_address_of(topology, link, node, own);
    by_address_of(topology, link, peer, other);
    if (by_ipv6_is(by_address_ip(topology, link, node)))
        fprintf(stream, "addr add %s/128 dev %s nodad\nlink set %s up\nroute add %s/128 dev %s\n", own, name,
                name, other, name);
    else
        fprintf(stream, "addr add %s peer %s dev %s\nlink set %s up\n", own, other, name, name);
    if (mac_text(lab, "lladdr", link, peer, mac)[0] != 0)
        fprintf(stream, "neigh replace %s%s dev %s nud permanent\n", other, mac, name);
}

/*
 * Configures one interface of a host: an address, the neighbour across the cable unless its MAC
 * address is learned, and a routing table, so that packets from this address leave by this
 * interface, also to nodes behind the switch there. Behind a bridge, all receivers are neighbours.
 */
static void configure_host(const struct lab *lab, FILE *stream, FILE *rules, uint32_t node, uint32_t port,
                           const char *name)
{
    const struct by_topology *topology = lab->topology;
    uint32_t link = by_address_link(&lab->lowering->map, node, port);
    uint32_t peer = by_address_peer(topology, link, node);
    char own[BY_ADDRESS_TEXT], other[BY_ADDRESS_TEXT], way[BY_ADDRESS_TEXT + 16] = "";
    bool ipv6 = by_ipv6_is(by_address_ip(topology, link, node));
    const char *all = ipv6 ? "::/0" : "default";

    by_address_of(topology, link, node, own);
    by_address_of(topology, link, peer, other);
    if (by_site_runs(topology, peer) == BY_SITE_BRIDGE) {
        fprintf(stream, "addr add %s/%u dev %s%s\nlink set %s up\n", own, ipv6 ? 128u : 32u, name,
                ipv6 ? " nodad" : "", name);
    } else {
        add_address(lab, stream, link, node, name);
        snprintf(way, sizeof(way), " via %s%s", other, ipv6 ? " onlink" : "");
    }
    fprintf(stream, "route add %s%s dev %s table %u\n", all, way, name, TABLE_BASE + port);
    fprintf(ipv6 ? rules : stream, "rule add from %s lookup %u\n", own, TABLE_BASE + port);
    if (port == 0)
        fprintf(stream, "route add %s%s dev %s\n", all, way, name);
}

/* Configures one interface of a node that does not run banyan: a router has an address and a route
 * to the other end, a bridge has the interface as its port. */
static void configure_plain(const struct lab *lab, FILE *stream, uint32_t node, uint32_t port,
                            const char *name)
{
    const struct by_topology *topology = lab->topology;
    uint32_t link = by_address_link(&lab->lowering->map, node, port);

    if (by_site_runs(topology, node) == BY_SITE_BRIDGE)
        fprintf(stream, "link set %s master %s up\n", name, BRIDGE);
    else
        add_address(lab, stream, link, node, name);
}

/* Sets, for each node, the link by which shortest paths from it to `to` begin; UINT32_MAX: none. */
static void find_ways(const struct by_topology *topology, uint32_t to, uint32_t *first, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;

    memset(first, 0xff, topology->node_count * sizeof(*first));
    for (queue[tail++] = to; head < tail; head++)
        for (uint32_t i = 0; i < topology->link_count; i++) {
            const struct by_link *link = &topology->links[i];
            uint32_t near = queue[head], far = link->a == near ? link->b : link->a;

            if ((link->a != near && link->b != near) || far == to || first[far] != UINT32_MAX)
                continue;
            first[far] = i;
            queue[tail++] = far;
        }
}

/* Gives a router routes to the addresses of all links that it is not at, by shortest paths. */
static void route(const struct lab *lab, FILE *stream, uint32_t node)
{
    const struct by_topology *topology = lab->topology;
    uint32_t *first = by_alloc(topology->node_count, sizeof(*first)),
             *queue = by_alloc(topology->node_count, sizeof(*queue));

    for (uint32_t i = 0; i < 2 * topology->link_count; i++) {
        uint32_t end = i % 2 == 0 ? topology->links[i / 2].a : topology->links[i / 2].b,
                 before = by_address_peer(topology, i / 2, end);
        char to[BY_ADDRESS_TEXT], via[BY_ADDRESS_TEXT], name[16];

        if (end == node || before == node)
            continue;
        find_ways(topology, before, first, queue);
        if (first[node] == UINT32_MAX)
            continue;
        by_address_interface(&lab->lowering->map, first[node], node, name);
        fprintf(stream, "route replace %s via %s dev %s onlink\n", by_address_of(topology, i / 2, end, to),
                by_address_of(topology, first[node], by_address_peer(topology, first[node], node), via),
                name);
    }
    free(first);
    free(queue);
}

/* Configures a node: its interfaces, and the bridge of a node that bridges. */
static int configure(struct lab *lab, uint32_t node)
{
    const struct by_topology *topology = lab->topology;
    enum by_site_runs runs = by_site_runs(topology, node);
    char *batch = NULL, *rules = NULL;
    size_t bytes = 0, rule_bytes = 0;
    FILE *stream = open_memstream(&batch, &bytes), *ipv6 = open_memstream(&rules, &rule_bytes);
    int status;

    fprintf(stream, "link set lo up\n");
    if (runs == BY_SITE_BRIDGE)
        fprintf(stream, "link add %s type bridge stp_state 0 mcast_snooping 0\nlink set %s up\n", BRIDGE,
                BRIDGE);
    for (uint32_t port = 0; port < lab->lowering->map.port_count[node]; port++) {
        char name[16], cable[16];

        by_address_interface(&lab->lowering->map, by_address_link(&lab->lowering->map, node, port), node,
                             name);
        lab_net_cable(lab, by_address_link(&lab->lowering->map, node, port), node, cable);
        if (!by_site_is_switch(topology, node))
            add_vlan(lab, stream, by_address_link(&lab->lowering->map, node, port), node, name);
        if (topology->nodes[node].compute)
            configure_host(lab, stream, ipv6, node, port, name);
        else if (runs != BY_SITE_BANYAN)
            configure_plain(lab, stream, node, port, name);
        else
            fprintf(stream, "link set %s arp off up\n", cable);
    }
    if (runs == BY_SITE_ROUTER)
        route(lab, stream, node);
    fclose(stream);
    fclose(ipv6);
    status = lab_net_ip(lab->ns[node], false, batch, bytes);
    if (status == 0 && rule_bytes > 0)
        status = lab_net_ip(lab->ns[node], true, rules, rule_bytes);
    free(batch);
    free(rules);
    return status;
}

void lab_net_setting(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return; /* a kernel without this feature needs no setting */
    if (write(fd, value, strlen(value)) < 0)
        fprintf(stderr, "banyan: lab: %s: %s\n", path, strerror(errno));
    close(fd);
}

void lab_net_offload(int fd, const char *interface, uint32_t command, bool on)
{
    struct ethtool_value value = {.cmd = command, .data = on};
    struct ifreq request = {.ifr_data = (char *)&value};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    /* Errors are ignored: a kernel that cannot set an offload does not have it. */
    (void)ioctl(fd, SIOCETHTOOL, &request);
}

/* Turns IPv6 on where the kernel must speak it, hosts and routers with such addresses, without the
 * messages of autoconfiguration, which would count as bytes on the cables. */
static void set_ipv6(const struct lab *lab, uint32_t node)
{
    bool wanted = by_site_book(lab->topology).count > 0 && !by_site_is_switch(lab->topology, node) &&
                  by_site_runs(lab->topology, node) != BY_SITE_BRIDGE;
    static const struct {
        const char *name, *value;
    } settings[] = {
        {"disable_ipv6", "0"}, {"router_solicitations", "0"}, {"accept_ra", "0"}, {"accept_dad", "0"}};
    char path[128];

    for (unsigned i = 0; i < (wanted ? 4 : 1); i++)
        for (unsigned all = 0; all < 2; all++) {
            snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", all ? "all" : "default",
                     settings[i].name);
            lab_net_setting(path, wanted ? settings[i].value : "1");
        }
    lab_net_setting("/proc/sys/net/ipv6/conf/all/forwarding",
                    wanted && by_site_runs(lab->topology, node) == BY_SITE_ROUTER ? "1" : "0");
}

/* Runs in a child inside the namespace: changes the settings that `ip` cannot change. */
static int prepare_inside(const struct lab *lab, uint32_t node)
{
    /* A GSO batch that is cut needs a checksum. The link computes it, as a NIC would. */
    static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM,
                                        ETHTOOL_SRXCSUM};
    bool xdp = strcmp(lab->options.driver, "xdp") == 0;
    bool offload_sums = xdp || lab_has_gso(&lab->options);
    bool whole = lab_has_gso(&lab->options) && !lab->options.cut;
    char path[128];
    int fd;

    if (lab_net_enter(lab->ns[node]) != 0) {
        fprintf(stderr, "banyan: lab: namespace %s: %s\n", lab->ns[node], strerror(errno));
        return 1;
    }
    set_ipv6(lab, node);
    lab_net_setting("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
    lab_net_setting("/proc/sys/net/ipv4/conf/default/rp_filter", "0");
    lab_net_setting("/proc/sys/net/ipv4/ip_forward",
                    by_site_runs(lab->topology, node) == BY_SITE_ROUTER ? "1" : "0");
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (uint32_t port = 0; port < lab->lowering->map.port_count[node]; port++) {
        char name[16];
        lab_net_cable(lab, by_address_link(&lab->lowering->map, node, port), node, name);
        for (size_t i = 0; !whole && i < (offload_sums ? 3 : 5); i++)
            lab_net_offload(fd, name, commands[i], false);
        /*
         * Frames that an XDP program redirects to a veth arrive only if the other end receives
         * frames one by one, by NAPI; GRO turns NAPI on.
         */
        if (xdp)
            lab_net_offload(fd, name, ETHTOOL_SGRO, true);
        if (lab->options.cut)
            (void)by_feature_set(fd, name, BY_FEATURE_UDP_SEGMENTS, false);
        snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
        lab_net_setting(path, "0");
    }
    close(fd);
    return 0;
}

int lab_net_inside(const struct lab *lab, uint32_t node, int (*work)(const struct lab *lab, uint32_t node))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(work(lab, node));
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: cannot prepare namespace %s", lab->ns[node]);
    return 0;
}

int lab_net_up(struct lab *lab)
{
    int status;

    lab_progress(lab, "making %u namespaces and %u cables", lab->topology->node_count,
                 lab->topology->link_count);
    status = lab_net_namespaces(lab);
    if (status == 0)
        status = add_cables(lab);
    for (uint32_t i = 0; i < lab->topology->node_count && status == 0; i++) {
        if (lab_stopping)
            return BY_EXIT_ENVIRONMENT;
        status = lab_net_inside(lab, i, prepare_inside);
        if (status == 0)
            status = configure(lab, i);
    }
    if (status == 0 && lab->options.command != NULL)
        status = lab_outside_up(lab);
    return status;
}

void lab_net_down(struct lab *lab)
{
    for (uint32_t i = 0; lab->ns != NULL && i < lab->topology->node_count; i++)
        if (lab->ns[i][0] != 0)
            lab_net_delete(lab->ns[i]);
    free(lab->ns);
    lab->ns = NULL;
    if (lab->outside[0] != 0)
        lab_net_delete(lab->outside);
    lab->outside[0] = 0;
    if (lab->wires[0] != 0)
        lab_net_delete(lab->wires);
    lab->wires[0] = 0;
}
