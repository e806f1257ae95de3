/*
 * The check that compares what the nodes of a site report with its topology and site files: each
 * link has its cable, at the interfaces that the tables will use, with the speed, MTU, and names
 * that the files state. Neighbours: control/discover finds the cables. See doctor.h.
 * Single-threaded.
 */
#include <string.h>

#include "control/base/alloc.h"
#include "control/discover/cables.h"
#include "control/discover/write.h"
#include "control/fabric/site.h"
#include "control/fabric/unit.h"
#include "control/tables/address.h"
#include "control/view/doctor/doctor.h"

#define UNKNOWN   BY_CABLE_UNKNOWN
#define MEGA_BYTE (INT64_C(1000000) / 8)
#define SUBJECT   96u

struct check_cable {
    const struct by_topology *topology;
    struct by_cables cables;
    struct by_report *report;
    uint32_t *facts; /* by node of the topology: its number among the facts, or UNKNOWN */
};

static const char *name_of(const struct check_cable *check, uint32_t node)
{
    return check->topology->nodes[node].name;
}

static const char *subject_of(const struct check_cable *check, uint32_t node, const char *port,
                              char subject[SUBJECT])
{
    snprintf(subject, SUBJECT, "%s%s%s", name_of(check, node), port[0] ? " " : "", port);
    return subject;
}

/* Counts the links of a node before link `index`: the port of a switch that it has in tables. */
static uint32_t port_of(const struct by_topology *topology, uint32_t node, uint32_t index)
{
    uint32_t port = 0;

    for (uint32_t i = 0; i < index; i++)
        port += topology->links[i].a == node || topology->links[i].b == node;
    return port;
}

/*
 * Finds the interface that a node must have at a link: of a switch the port with the link's number,
 * of a host the one that the site names. The node of the end is UNKNOWN if it was not asked; its
 * interface if no file states one. False if it does not have the interface, after adding a finding.
 */
static bool expect(const struct check_cable *check, uint32_t link, uint32_t node, struct by_cable_end *end)
{
    const struct by_site_end *site = by_site_end(check->topology, link, node);
    const char *stated = site != NULL ? site->interface : "";
    const struct by_facts *facts;
    char subject[SUBJECT];
    uint32_t port;

    *end = (struct by_cable_end){.node = check->facts[node], .interface = UNKNOWN};
    if (end->node == UNKNOWN)
        return true;
    facts = &check->cables.facts->nodes[end->node];
    if (facts->is_switch) {
        port = port_of(check->topology, node, link);
        if (port < facts->interface_count)
            end->interface = port;
        else
            by_report_add(check->report, BY_GRADE_TROUBLE, facts->node,
                          "start banyan-switchd with all its ports, or correct the topology",
                          "it has %u port%s, and the topology more links of it", facts->interface_count,
                          facts->interface_count == 1 ? "" : "s");
    } else if (stated[0] != 0) {
        end->interface = by_facts_find(facts, stated);
        if (end->interface == UNKNOWN)
            by_report_add(check->report, BY_GRADE_TROUBLE, subject_of(check, node, stated, subject),
                          "correct the site file (`ip link` lists the interfaces), or `banyan discover` "
                          "writes it again",
                          "the site names this interface, and the node does not have it");
    } else {
        return true;
    }
    if (end->interface == UNKNOWN)
        return false;
    snprintf(end->port, sizeof(end->port), "%s", facts->interfaces[end->interface].name);
    if (stated[0] == 0 || strcmp(stated, end->port) == 0 || !facts->interfaces[end->interface].is_kernel)
        return true;
    by_report_add(check->report, BY_GRADE_TROUBLE, subject_of(check, node, end->port, subject),
                  "start banyan-switchd with its ports in the order of its links",
                  "it is port %u, for which the site names %s", end->interface, stated);
    return false;
}

static const struct by_cable *find_cable(const struct check_cable *check, const struct by_cable_end *near,
                                         const struct by_cable_end **far)
{
    unsigned side;
    const struct by_cable *cable = by_cables_at(&check->cables, near->node, near->interface, &side);

    *far = cable == NULL ? NULL : &cable->ends[1 - side];
    return cable;
}

/* Describes an end that should be there: "p0 of 'leaf0'", or "'leaf0'" alone. */
static const char *end_text(const struct check_cable *check, uint32_t node, const struct by_cable_end *end,
                            char text[SUBJECT])
{
    if (end->interface != UNKNOWN)
        snprintf(text, SUBJECT, "%s of '%s'", end->port, name_of(check, node));
    else
        snprintf(text, SUBJECT, "'%s'", name_of(check, node));
    return text;
}

/* Compares the cable at `near` of node `a` with the link that leads to `far` of node `b`.
 * Returns the cable if it is right. */
static const struct by_cable *check_cable(const struct check_cable *check, uint32_t a,
                                          const struct by_cable_end *near, uint32_t b,
                                          const struct by_cable_end *far)
{
    const struct by_cable_end *got, *there;
    const struct by_cable *cable = find_cable(check, near, &got);
    char subject[SUBJECT], place[SUBJECT], remedy[256];

    end_text(check, b, far, place);
    if (cable == NULL) {
        snprintf(
            remedy, sizeof(remedy),
            "plug it in at both ends; if it is, see `ip link` there, and ask both ends at one time (--host)");
        by_report_add(check->report, BY_GRADE_TROUBLE, subject_of(check, a, near->port, subject), remedy,
                      "no cable was found here, and the topology has one to %s", place);
        return NULL;
    }
    if (by_cables_same_name(by_cables_name(&check->cables, got->node), name_of(check, b)) &&
        (far->interface == UNKNOWN || got->interface == UNKNOWN || got->interface == far->interface))
        return cable;
    snprintf(remedy, sizeof(remedy), "move its other end to %.80s, or correct the files", place);
    if (far->interface != UNKNOWN && find_cable(check, far, &there) != NULL)
        snprintf(remedy, sizeof(remedy),
                 "exchange its other end with that of the cable from %.47s of '%.47s', or correct the files",
                 there->port, by_cables_name(&check->cables, there->node));
    by_report_add(check->report, BY_GRADE_TROUBLE, subject_of(check, a, near->port, subject), remedy,
                  "its cable leads to %s of '%s', and should lead to %s", got->port,
                  by_cables_name(&check->cables, got->node), place);
    return NULL;
}

/* Compares the speed of a cable with the bandwidth of its link, exactly. */
static void check_speed(const struct check_cable *check, uint32_t link, const struct by_cable *cable,
                        const char *subject)
{
    const struct by_link *at = &check->topology->links[link];
    uint32_t speed = by_cable_speed(&check->cables, cable);
    struct by_fraction have = {(int64_t)speed * MEGA_BYTE, 1}, want, megabits;
    char text[BY_FRACTION_TEXT_BYTES];
    int order;

    want = by_unit_arc_bytes(check->topology, at->arc_ab != UINT32_MAX ? at->arc_ab : at->arc_ba);
    if (speed == 0 || want.num == 0 ||
        by_fraction_divide(want, (struct by_fraction){MEGA_BYTE, 1}, &megabits) != 0)
        return;
    order = by_fraction_compare(have, want);
    by_fraction_text(megabits, text);
    if (order < 0)
        by_report_add(
            check->report, BY_GRADE_TROUBLE, subject,
            "replace cable or card (`ethtool` shows both ends), or correct the topology, and plan again",
            "its cable has %u Mb/s, and the topology %s Mb/s: plans overload it", speed, text);
    else if (order > 0)
        by_report_add(check->report, BY_GRADE_ADVICE, subject, "correct the topology, and plan again",
                      "its cable has %u Mb/s, and the topology only %s Mb/s", speed, text);
}

/* Whether a list of addresses with prefix lengths has this one. */
static bool has_address(const char *list, const char *address)
{
    size_t length = strlen(address);

    for (const char *at = list; (at = strstr(at, address)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[length] == '/' || at[length] == 0))
            return true;
    return false;
}

/* Compares what the site states of an end with the interface. */
static void check_names(const struct check_cable *check, uint32_t link, uint32_t node,
                        const struct by_cable_end *end)
{
    const struct by_facts_interface *interface = by_cables_interface(&check->cables, end);
    const struct by_site_end *site = by_site_end(check->topology, link, node);
    char subject[SUBJECT], ip[BY_ADDRESS_TEXT], macs[2][BY_MAC_TEXT_BYTES], remedy[192];

    if (interface == NULL || site == NULL)
        return;
    subject_of(check, node, end->port, subject);
    by_address_of(check->topology, link, node, ip);
    snprintf(remedy, sizeof(remedy), "`ip address add %s/LENGTH dev %s`, or correct the site file", ip,
             end->port);
    if (site->ip != 0 && check->topology->nodes[node].compute && !has_address(interface->addresses, ip))
        by_report_add(check->report, BY_GRADE_TROUBLE, subject, remedy,
                      "the site gives it the address %s, and it has %s", ip,
                      interface->addresses[0] != 0 ? interface->addresses : "none");
    if (site->mac_from == BY_SITE_MAC_STATED && interface->has_mac &&
        memcmp(site->mac, interface->mac, 6) != 0)
        by_report_add(check->report, BY_GRADE_TROUBLE, subject,
                      "correct the site file (`banyan discover` writes it again), and make new tables",
                      "its MAC address is %s, and the site states %s", by_mac_write(interface->mac, macs[0]),
                      by_mac_write(site->mac, macs[1]));
}

static void check_mtu(const struct check_cable *check, uint32_t link, const struct by_cable *cable)
{
    uint32_t stated = by_site_mtu(check->topology, link);

    for (unsigned s = 0; s < 2; s++) {
        const struct by_facts_interface *own = by_cables_interface(&check->cables, &cable->ends[s]);
        const struct by_facts_interface *other = by_cables_interface(&check->cables, &cable->ends[1 - s]);
        const char *node = by_cables_name(&check->cables, cable->ends[s].node);
        char subject[SUBJECT], remedy[128];
        uint32_t want = stated;

        if (own == NULL || own->mtu == 0)
            continue;
        if (want == 0 && other != NULL)
            want = other->mtu;
        snprintf(subject, sizeof(subject), "%s %s", node, own->name);
        snprintf(remedy, sizeof(remedy),
                 "`ip link set %s mtu %u`, or a smaller one at the other end and in the site "
                 "file",
                 own->name, want);
        if (own->mtu < want)
            by_report_add(check->report, BY_GRADE_TROUBLE, subject, remedy, "its MTU is %u bytes, and %s %u",
                          own->mtu, stated != 0 ? "the site states" : "that of the other end is", want);
    }
}

static void check_link(const struct check_cable *check, uint32_t link)
{
    const struct by_link *at = &check->topology->links[link];
    struct by_cable_end ends[2];
    const struct by_cable *cable = NULL;
    char subject[SUBJECT], place[SUBJECT];

    if (!expect(check, link, at->a, &ends[0]) || !expect(check, link, at->b, &ends[1]))
        return;
    if (ends[0].interface != UNKNOWN)
        cable = check_cable(check, at->a, &ends[0], at->b, &ends[1]);
    else if (ends[1].interface != UNKNOWN)
        cable = check_cable(check, at->b, &ends[1], at->a, &ends[0]);
    else
        by_report_add(check->report, BY_GRADE_UNSEEN, subject_of(check, at->a, "", subject),
                      "ask them (--host, --to, --facts), and state their interfaces in a site file",
                      "its link to %s was not compared: no end is known",
                      end_text(check, at->b, &ends[1], place));
    if (cable == NULL)
        return;
    subject_of(check, ends[0].interface != UNKNOWN ? at->a : at->b,
               ends[0].interface != UNKNOWN ? ends[0].port : ends[1].port, subject);
    by_report_add(check->report, BY_GRADE_OK, subject, NULL, "its cable is that of the topology");
    check_speed(check, link, cable, subject);
    check_mtu(check, link, cable);
    check_names(check, link, at->a, &ends[0]);
    check_names(check, link, at->b, &ends[1]);
}

void by_check_cables(struct by_doctor *doctor)
{
    const struct by_topology *topology = doctor->fabric.topology;
    struct check_cable check = {.topology = topology, .report = &doctor->report};

    if (topology == NULL)
        return;
    by_cables_find(&check.cables, &doctor->fabric.facts, &doctor->report);
    doctor->report.check = "cables";
    check.facts = by_alloc(topology->node_count, sizeof(*check.facts));
    for (uint32_t i = 0; i < topology->node_count; i++) {
        check.facts[i] = UNKNOWN;
        for (uint32_t k = 0; k < doctor->fabric.facts.count; k++)
            if (strcmp(doctor->fabric.facts.nodes[k].node, topology->nodes[i].name) == 0)
                check.facts[i] = k;
    }
    for (uint32_t i = 0; i < topology->link_count; i++)
        check_link(&check, i);
    free(check.facts);
    by_cables_free(&check.cables);
}
