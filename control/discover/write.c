/* Makes a topology and a site file; see write.h. Single-threaded. */
#include "control/discover/write.h"

#include <arpa/inet.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/discover/order.h"
#include "control/fabric/build.h"
#include "control/fabric/site.h"
#include "offload/base/errors.h"

#define NONE UINT32_MAX

/* A node of the topology that is made. */
struct write_node {
    const char *name;
    uint32_t number; /* among the facts' nodes, then the plain ones */
    bool compute;
    uint32_t links;
};

struct write_state {
    const struct by_cables *cables;
    const struct by_discovery_options *options;
    struct by_report *report;
    struct by_problem *problem;
    uint32_t count;           /* nodes of facts and plain ones */
    struct write_node *nodes; /* by number; sorted later */
    uint32_t *place;          /* by number: the node's index in the topology, or NONE */
    uint32_t link_count;
    struct by_cable *links;
};

uint32_t by_cable_speed(const struct by_cables *cables, const struct by_cable *cable)
{
    uint32_t speed = 0;

    for (unsigned s = 0; s < 2; s++) {
        const struct by_facts_interface *interface = by_cables_interface(cables, &cable->ends[s]);

        if (interface != NULL && interface->speed_mbps != 0 && (speed == 0 || interface->speed_mbps < speed))
            speed = interface->speed_mbps;
    }
    return speed;
}

uint32_t by_cable_mtu(const struct by_cables *cables, const struct by_cable *cable)
{
    uint32_t mtu = 0;

    for (unsigned s = 0; s < 2; s++) {
        const struct by_facts_interface *interface = by_cables_interface(cables, &cable->ends[s]);

        if (interface != NULL && interface->mtu != 0 && (mtu == 0 || interface->mtu < mtu))
            mtu = interface->mtu;
    }
    return mtu;
}

/* Whether a name is in a list with commas. */
static bool is_listed(const char *list, const char *name)
{
    while (list != NULL && name != NULL && *list) {
        size_t length = strcspn(list, ",");

        if (strlen(name) == length && strncmp(list, name, length) == 0)
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* Adds findings where the two ends of a cable differ. */
static void check_ends(const struct write_state *state, const struct by_cable *cable)
{
    const struct by_facts_interface *a = by_cables_interface(state->cables, &cable->ends[0]);
    const struct by_facts_interface *b = by_cables_interface(state->cables, &cable->ends[1]);
    const char *far = by_cables_name(state->cables, cable->ends[1].node);
    char subject[96], remedy[128];

    if (a == NULL || b == NULL)
        return;
    snprintf(subject, sizeof(subject), "%s %s", by_cables_name(state->cables, cable->ends[0].node), a->name);
    state->report->check = "speed";
    if (a->speed_mbps != 0 && b->speed_mbps != 0 && a->speed_mbps != b->speed_mbps)
        by_report_add(state->report, BY_GRADE_TROUBLE, subject,
                      "compare what `ethtool` reports at both ends; the lower speed is used",
                      "it reports %u Mb/s, and %s of '%s' at the other end %u Mb/s", a->speed_mbps, b->name,
                      far, b->speed_mbps);
    state->report->check = "mtu";
    if (a->mtu != 0 && b->mtu != 0 && a->mtu != b->mtu) {
        snprintf(remedy, sizeof(remedy), "set the same at both: `ip link set IF mtu %u`; the smaller is used",
                 a->mtu > b->mtu ? a->mtu : b->mtu);
        by_report_add(state->report, BY_GRADE_TROUBLE, subject, remedy,
                      "its MTU is %u bytes, and that of %s of '%s' at the other end %u", a->mtu, b->name, far,
                      b->mtu);
    }
}

/* Plain switches with one link lead nowhere: removes them and their links until none is left. */
static void prune(struct write_state *state)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t i = 0; i < state->link_count; i++)
            for (unsigned s = 0; s < 2; s++) {
                const struct by_cable *link = &state->links[i];
                uint32_t node = link->ends[s].node;

                if (node < state->cables->facts->count || state->nodes[node].links > 1)
                    continue;
                state->report->check = "nodes";
                by_report_add(state->report, BY_GRADE_ADVICE, state->nodes[node].name, NULL,
                              "only %s of '%s' leads there: it is left out", link->ends[1 - s].port,
                              by_cables_name(state->cables, link->ends[1 - s].node));
                state->nodes[node].links--;
                state->nodes[link->ends[1 - s].node].links--;
                memmove(&state->links[i], &state->links[i + 1],
                        (--state->link_count - i) * sizeof(state->links[0]));
                again = true;
                break;
            }
    }
}

/* Chooses the nodes and links, and sorts links by preference: of hosts first. */
static void choose(struct write_state *state)
{
    const struct by_cables *cables = state->cables;
    uint32_t known = cables->facts->count;

    for (uint32_t i = 0; i < state->count; i++)
        state->nodes[i] = (struct write_node){.name = by_cables_name(cables, i),
                                              .number = i,
                                              .compute = i < known && !cables->facts->nodes[i].is_switch};
    for (uint32_t i = 0; i < cables->count; i++) {
        const struct by_cable *cable = &cables->cables[i];

        if (is_listed(state->options->without, state->nodes[cable->ends[0].node].name) ||
            is_listed(state->options->without, state->nodes[cable->ends[1].node].name))
            continue;
        state->links[state->link_count++] = *cable;
        for (unsigned s = 0; s < 2; s++)
            state->nodes[cable->ends[s].node].links++;
    }
    prune(state);
    for (uint32_t i = 0; i < state->link_count; i++)
        check_ends(state, &state->links[i]);
    state->report->check = "nodes";
    for (uint32_t i = 0; i < known; i++)
        if (state->nodes[i].links == 0 && !is_listed(state->options->without, state->nodes[i].name))
            by_report_add(
                state->report, BY_GRADE_TROUBLE, state->nodes[i].name,
                "check that its interfaces are up (`ip link`), that both ends of its cables were asked "
                "at the same time, and that one of them may send LLDP frames",
                "no cable of it was found: it is left out");
}

static int compare_nodes(const void *left, const void *right)
{
    const struct write_node *a = left, *b = right;

    if (a->compute != b->compute)
        return a->compute ? -1 : 1;
    return strverscmp(a->name, b->name);
}

static uint32_t rank_of(const struct write_state *state, const struct by_cable *link)
{
    uint32_t a = state->place[link->ends[0].node], b = state->place[link->ends[1].node];

    return a < b ? a : b;
}

/* Sorts links by their first node of the topology, then by the interface there; the order of an
 * insertion is stable. */
static void sort_links(struct write_state *state)
{
    for (uint32_t i = 1; i < state->link_count; i++) {
        struct by_cable link = state->links[i];
        uint32_t at = i;

        while (at > 0 && rank_of(state, &state->links[at - 1]) > rank_of(state, &link)) {
            state->links[at] = state->links[at - 1];
            at--;
        }
        state->links[at] = link;
    }
}

/* Adds the nodes to the builder, hosts first, and sets their places. */
static void add_nodes(struct write_state *state, struct by_builder *builder)
{
    struct write_node *sorted = by_alloc(state->count, sizeof(*sorted));
    uint32_t known = state->cables->facts->count;

    memcpy(sorted, state->nodes, state->count * sizeof(*sorted));
    qsort(sorted, state->count, sizeof(*sorted), compare_nodes);
    for (uint32_t i = 0; i < state->count; i++) {
        const struct by_facts *facts =
            sorted[i].number < known ? &state->cables->facts->nodes[sorted[i].number] : NULL;
        struct by_node node = {.name = by_copy_text(sorted[i].name), .compute = sorted[i].compute};

        state->place[sorted[i].number] = NONE;
        if (facts != NULL && facts->is_switch) {
            node.multicast = facts->multicast;
            node.aggregate = facts->aggregate;
        }
        if (sorted[i].links > 0)
            state->place[sorted[i].number] = by_builder_node(builder, &node);
        free(node.name);
    }
    free(sorted);
}

/* Returns the speed of a link in Gb/s; num 0: unknown. */
static struct by_fraction rate_of(const struct write_state *state, const struct by_cable *link)
{
    struct by_fraction rate = {0, 1};
    uint32_t speed = by_cable_speed(state->cables, link);

    if (speed == 0)
        return state->options->rate;
    (void)by_fraction_set(speed, 1000, &rate);
    return rate;
}

/* Orients the links as the topology does, and adds them to the builder. */
static int add_links(struct write_state *state, struct by_builder *builder)
{
    for (uint32_t i = 0; i < state->link_count; i++) {
        struct by_cable *link = &state->links[i];
        struct by_fraction rate = rate_of(state, link);

        if (state->place[link->ends[0].node] > state->place[link->ends[1].node])
            *link = (struct by_cable){.ends = {link->ends[1], link->ends[0]}};
        if (rate.num == 0)
            return by_problem_say(
                state->problem, BY_EINVAL,
                "no end of the cable from %s of '%s' to '%s' reports its speed: state that of "
                "such cables with --rate",
                link->ends[0].port, by_cables_name(state->cables, link->ends[0].node),
                by_cables_name(state->cables, link->ends[1].node));
        by_builder_link(builder, state->place[link->ends[0].node], state->place[link->ends[1].node], true,
                        rate, (struct by_place){0, 0});
    }
    return 0;
}

static int build(struct write_state *state, struct by_discovery *discovery)
{
    struct by_builder *builder = by_builder_new(state->options->name, "Gb/s");
    int error;

    add_nodes(state, builder);
    sort_links(state);
    by_links_order(state->cables, state->links, state->link_count, state->report);
    error = add_links(state, builder);
    if (error == 0)
        error = by_builder_finish(builder, &discovery->topology, state->problem);
    by_builder_free(builder);
    return error;
}

int by_discovery_make(struct by_discovery *discovery, const struct by_cables *cables,
                      const struct by_discovery_options *options, struct by_report *report,
                      struct by_problem *problem)
{
    struct write_state state = {.cables = cables, .options = options, .report = report, .problem = problem};
    int error;

    *discovery = (struct by_discovery){.topology = NULL};
    state.count = cables->facts->count + cables->plain_count;
    state.nodes = by_alloc(state.count, sizeof(*state.nodes));
    state.place = by_alloc(state.count, sizeof(*state.place));
    state.links = by_alloc(cables->count, sizeof(*state.links));
    choose(&state);
    if (state.link_count == 0)
        error = by_problem_say(problem, BY_EINVAL,
                               "no cable was found between %u nodes: name both ends (--host, --to, files of "
                               "facts), and ask them at the same time",
                               cables->facts->count);
    else
        error = build(&state, discovery);
    free(state.nodes);
    free(state.place);
    if (error != 0) {
        free(state.links);
        return error;
    }
    discovery->links = state.links;
    discovery->link_count = state.link_count;
    return 0;
}

void by_discovery_free(struct by_discovery *discovery)
{
    by_topology_free(discovery->topology);
    free(discovery->links);
    *discovery = (struct by_discovery){.topology = NULL};
}

/* ---- the site ---- */

/* Reads the first IPv4 address and its prefix length; false if there is none. */
static bool first_ipv4(const struct by_facts_interface *interface, uint32_t *ip, unsigned *prefix)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (interface == NULL || sscanf(interface->addresses, "%15[0-9.]/%u", text, prefix) != 2 ||
        inet_pton(AF_INET, text, &address) != 1)
        return false;
    *ip = ntohl(address.s_addr);
    return true;
}

/* Finds the address of an end: its own, or the only other one of its neighbour's subnet of two
 * addresses (RFC 3021). */
static bool find_address(const struct by_facts_interface *own, const struct by_facts_interface *other,
                         uint32_t *ip)
{
    unsigned prefix;

    if (first_ipv4(own, ip, &prefix))
        return true;
    if (!first_ipv4(other, ip, &prefix) || prefix < 30 || prefix > 31)
        return false;
    *ip ^= prefix == 31 ? 1 : 3; /* of a /30, the hosts are 1 and 2 */
    return true;
}

/* Reads the first IPv6 address, which is not link-local, and its prefix length; false if there is
 * none. */
static bool first_ipv6(const struct by_facts_interface *interface, uint8_t ipv6[BY_IPV6_BYTES],
                       unsigned *prefix)
{
    const char *at = interface != NULL ? interface->addresses : "";

    for (; *at != 0; at += strcspn(at, " "), at += strspn(at, " ")) {
        char text[INET6_ADDRSTRLEN];

        if (sscanf(at, "%45[0-9a-f:.]/%u", text, prefix) == 2 && inet_pton(AF_INET6, text, ipv6) == 1 &&
            by_ipv6_kind(ipv6) == BY_IPV6_UNICAST)
            return true;
    }
    return false;
}

/* As find_address, for IPv6: the subnet of two addresses is a /127 (RFC 6164). */
static bool find_ipv6(const struct by_facts_interface *own, const struct by_facts_interface *other,
                      uint8_t ipv6[BY_IPV6_BYTES])
{
    unsigned prefix;

    if (first_ipv6(own, ipv6, &prefix))
        return true;
    if (!first_ipv6(other, ipv6, &prefix) || prefix != 127)
        return false;
    ipv6[BY_IPV6_BYTES - 1] ^= 1;
    return true;
}

/* Writes the address of an end: of IPv4 where either end has one, else of IPv6 where both ends have
 * one, because the ends of a link have addresses of one family. False if there is none. */
static bool address_of(const struct by_facts_interface *own, const struct by_facts_interface *other,
                       char text[INET6_ADDRSTRLEN])
{
    uint8_t ipv6[BY_IPV6_BYTES];
    struct in_addr address;
    uint32_t ip;

    if (find_address(own, other, &ip)) {
        address.s_addr = htonl(ip);
        return inet_ntop(AF_INET, &address, text, INET6_ADDRSTRLEN) != NULL;
    }
    return !find_address(other, own, &ip) && find_ipv6(other, own, ipv6) && find_ipv6(own, other, ipv6) &&
           inet_ntop(AF_INET6, ipv6, text, INET6_ADDRSTRLEN) != NULL;
}

/* Whether Linux accepts the text as the name of an interface, as a site file must have it. */
static bool is_interface(const char *name)
{
    return name[0] != 0 && strlen(name) < BY_INTERFACE_BYTES && strpbrk(name, "/:?\"\\ ") == NULL;
}

static void write_end(const struct by_cables *cables, const struct by_cable *link, unsigned side,
                      FILE *stream)
{
    const struct by_cable_end *end = &link->ends[side];
    const struct by_facts_interface *own = by_cables_interface(cables, end);
    const struct by_facts_interface *other = by_cables_interface(cables, &link->ends[1 - side]);
    const char *comma = "";
    char mac[BY_MAC_TEXT_BYTES], address[INET6_ADDRSTRLEN];

    fputc('{', stream);
    if ((own == NULL || own->is_kernel) && is_interface(end->port)) {
        fprintf(stream, "\"interface\": \"%s\"", end->port);
        comma = ", ";
    }
    if (address_of(own, other, address)) {
        fprintf(stream, "%s\"address\": \"%s\"", comma, address);
        comma = ", ";
    }
    if (own != NULL && own->has_mac)
        fprintf(stream, "%s\"mac\": \"%s\"", comma, by_mac_write(own->mac, mac));
    fputc('}', stream);
}

/* Counts the links before link `index` between the same two nodes. */
static uint32_t number_of(const struct by_topology *topology, uint32_t index)
{
    const struct by_link *link = &topology->links[index];
    uint32_t number = 0;

    for (uint32_t i = 0; i < index; i++)
        number += topology->links[i].a == link->a && topology->links[i].b == link->b;
    return number;
}

void by_discovery_write_site(const struct by_discovery *discovery, const struct by_cables *cables,
                             FILE *stream)
{
    const struct by_topology *topology = discovery->topology;

    fputs("{\"format\": \"banyan-site-1\",", stream);
    fputs("\n \"links\": [", stream);
    for (uint32_t i = 0; i < discovery->link_count; i++) {
        const struct by_cable *link = &discovery->links[i];
        uint32_t mtu = by_cable_mtu(cables, link), number = number_of(topology, i);

        fprintf(stream, "%s\n  {\"between\": [\"%s\", \"%s\"]", i > 0 ? "," : "",
                topology->nodes[topology->links[i].a].name, topology->nodes[topology->links[i].b].name);
        if (number > 0)
            fprintf(stream, ", \"number\": %u", number);
        if (mtu >= BY_SITE_MTU_MIN)
            fprintf(stream, ", \"mtu\": %u", mtu);
        fputs(",\n   \"ends\": [", stream);
        write_end(cables, link, 0, stream);
        fputs(",\n            ", stream);
        write_end(cables, link, 1, stream);
        fputs("]}", stream);
    }
    fputs("\n ]}\n", stream);
}
