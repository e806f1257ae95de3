/* Joins facts to cables; see cables.h. Single-threaded. */
#include "control/discover/cables.h"

#include <ctype.h>
#include <string.h>

#include "control/base/alloc.h"

#define UNKNOWN BY_CABLE_UNKNOWN

void by_cables_free(struct by_cables *cables)
{
    free(cables->plain);
    free(cables->cables);
    *cables = (struct by_cables){.facts = NULL};
}

const char *by_cables_name(const struct by_cables *cables, uint32_t node)
{
    uint32_t known = cables->facts->count;

    return node < known ? cables->facts->nodes[node].node : cables->plain[node - known].name;
}

const struct by_facts_interface *by_cables_interface(const struct by_cables *cables,
                                                     const struct by_cable_end *end)
{
    return end->node < cables->facts->count && end->interface != UNKNOWN
               ? &cables->facts->nodes[end->node].interfaces[end->interface]
               : NULL;
}

const struct by_cable *by_cables_at(const struct by_cables *cables, uint32_t node, uint32_t interface,
                                    unsigned *side)
{
    for (uint32_t i = 0; i < cables->count; i++)
        for (unsigned s = 0; s < 2; s++)
            if (cables->cables[i].ends[s].node == node && cables->cables[i].ends[s].interface == interface) {
                *side = s;
                return &cables->cables[i];
            }
    return NULL;
}

bool by_cables_same_name(const char *a, const char *b)
{
    size_t dot_a = strcspn(a, "."), dot_b = strcspn(b, ".");

    if (strcmp(a, b) == 0)
        return true;
    /* An address is no name with a domain. */
    if (isdigit((unsigned char)a[0]) || isdigit((unsigned char)b[0]) || strchr(a, ':') || strchr(b, ':'))
        return false;
    return dot_a == dot_b && strncmp(a, b, dot_a) == 0 && (a[dot_a] == 0 || b[dot_b] == 0);
}

/* Finds the interface of a node that a neighbour's frame came from. */
static uint32_t find_port(const struct by_facts *facts, const struct by_facts_neighbour *neighbour)
{
    uint32_t found = by_facts_find(facts, neighbour->port), count = 0;

    if (found == UNKNOWN && neighbour->description[0] != 0)
        found = by_facts_find(facts, neighbour->description);
    if (found != UNKNOWN || !neighbour->has_mac)
        return found;
    for (uint32_t i = 0; i < facts->interface_count; i++)
        if (facts->interfaces[i].has_mac && memcmp(facts->interfaces[i].mac, neighbour->mac, 6) == 0) {
            found = i;
            count++;
        }
    return count == 1 ? found : UNKNOWN;
}

/* Returns the number of a plain node, which is added when it is new. */
static uint32_t plain_node(struct by_cables *cables, const struct by_facts_neighbour *neighbour)
{
    uint32_t i = 0;

    while (i < cables->plain_count && !by_cables_same_name(cables->plain[i].name, neighbour->node))
        i++;
    if (i == cables->plain_count) {
        BY_GROW(cables->plain, cables->plain_count, cables->plain_room);
        cables->plain[cables->plain_count++] = (struct by_plain_node){.forwards = false};
        snprintf(cables->plain[i].name, sizeof(cables->plain[i].name), "%s", neighbour->node);
    }
    cables->plain[i].forwards |= neighbour->forwards;
    return cables->facts->count + i;
}

/* Finds the end from which a neighbour's frame came: by the node's name, else by the MAC
 * address. */
static struct by_cable_end find_end(struct by_cables *cables, const struct by_facts_neighbour *neighbour)
{
    const struct by_facts_list *facts = cables->facts;
    struct by_cable_end end = {.node = UNKNOWN, .interface = UNKNOWN};
    uint32_t count = 0;

    for (uint32_t i = 0; i < facts->count && end.node == UNKNOWN; i++)
        if (by_cables_same_name(facts->nodes[i].node, neighbour->node))
            end.node = i;
    for (uint32_t i = 0; i < facts->count && end.node == UNKNOWN; i++)
        for (uint32_t k = 0; k < facts->nodes[i].interface_count && neighbour->has_mac; k++) {
            const struct by_facts_interface *interface = &facts->nodes[i].interfaces[k];

            if (interface->has_mac && memcmp(interface->mac, neighbour->mac, 6) == 0 && count++ == 0)
                end = (struct by_cable_end){.node = i, .interface = k};
        }
    if (count > 1 || end.node == UNKNOWN)
        end = (struct by_cable_end){.node = plain_node(cables, neighbour), .interface = UNKNOWN};
    else if (end.interface == UNKNOWN)
        end.interface = find_port(&facts->nodes[end.node], neighbour);
    if (end.interface != UNKNOWN)
        memcpy(end.port, facts->nodes[end.node].interfaces[end.interface].name, sizeof(end.port));
    else
        memcpy(end.port, neighbour->port, sizeof(end.port));
    return end;
}

static bool same_end(const struct by_cable_end *a, const struct by_cable_end *b)
{
    return a->node == b->node && a->interface == b->interface &&
           (a->interface != UNKNOWN || strcmp(a->port, b->port) == 0);
}

static const char *subject_of(const struct by_cables *cables, const struct by_cable_end *end, char text[96])
{
    snprintf(text, 96, "%s %s", by_cables_name(cables, end->node), end->port);
    return text;
}

/* Whether a cable is the one between two ends, of which `to` may be known less exactly. */
static bool is_between(const struct by_cable *cable, const struct by_cable_end *from,
                       const struct by_cable_end *to)
{
    for (unsigned s = 0; s < 2; s++) {
        const struct by_cable_end *near = &cable->ends[s], *far = &cable->ends[1 - s];

        if (same_end(near, from) &&
            (same_end(far, to) || (far->node == to->node && to->interface == UNKNOWN)))
            return true;
    }
    return false;
}

/* Adds a cable unless it is known. Where an end is known to have another one, adds a finding. */
static void join(struct by_cables *cables, const struct by_cable_end *from, const struct by_cable_end *to,
                 struct by_report *report)
{
    char subject[96];

    for (uint32_t i = 0; i < cables->count; i++)
        if (is_between(&cables->cables[i], from, to))
            return;
    for (uint32_t i = 0; i < 2 * cables->count; i++) {
        const struct by_cable_end *end = &cables->cables[i / 2].ends[i % 2];
        const struct by_cable_end *other = &cables->cables[i / 2].ends[1 - i % 2];

        if (!same_end(end, from) && !same_end(end, to))
            continue;
        by_report_add(
            report, BY_GRADE_TROUBLE, subject_of(cables, from, subject),
            "connect each interface to one other by one cable, without a hub between; after a cable "
            "was moved, repeat this after 20 s",
            "it hears %s of '%s', but %s of '%s' has a cable to %s of '%s'", to->port,
            by_cables_name(cables, to->node), end->port, by_cables_name(cables, end->node), other->port,
            by_cables_name(cables, other->node));
        return;
    }
    BY_GROW(cables->cables, cables->count, cables->room);
    cables->cables[cables->count++] = (struct by_cable){.ends = {*from, *to}};
}

/* Joins what one interface has heard. Those whose interface at the other end is known come first
 * (`exact`), since they may be the cables of which other nodes report less. */
static void join_interface(struct by_cables *cables, uint32_t node, uint32_t index, bool exact,
                           struct by_report *report)
{
    const struct by_facts_interface *interface = &cables->facts->nodes[node].interfaces[index];
    struct by_cable_end from = {.node = node, .interface = index};
    char subject[96];

    memcpy(from.port, interface->name, sizeof(from.port));
    for (uint32_t i = 0; i < interface->neighbour_count; i++) {
        struct by_cable_end to = find_end(cables, &interface->neighbours[i]);

        if ((to.interface != UNKNOWN) != exact)
            continue;
        if (to.node == node) {
            by_report_add(report, BY_GRADE_TROUBLE, subject_of(cables, &from, subject),
                          "pull this cable, or give the nodes different names",
                          "it hears its own node, at %s", to.port);
            continue;
        }
        if (to.node >= cables->facts->count && !cables->plain[to.node - cables->facts->count].forwards)
            continue;
        join(cables, &from, &to, report);
    }
}

/* ---- findings of all nodes ---- */

static void check_names(const struct by_facts_list *facts, struct by_report *report)
{
    for (uint32_t i = 0; i < facts->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(facts->nodes[i].node, facts->nodes[k].node) == 0)
                by_report_add(report, BY_GRADE_TROUBLE, facts->nodes[i].node,
                              "give each node a name of its own (--name), and ask each node once",
                              "%s and %s report this name", facts->nodes[k].source, facts->nodes[i].source);
}

static void check_plain(const struct by_cables *cables, struct by_report *report)
{
    for (uint32_t i = 0; i < cables->plain_count; i++)
        if (!cables->plain[i].forwards)
            by_report_add(report, BY_GRADE_UNSEEN, cables->plain[i].name,
                          "ask it too (--host, --to, or a file of its facts)",
                          "it was heard, and its facts are missing: it is left out");
}

/* An address or MAC address of the cables' ends. */
struct cables_owner {
    const char *text; /* an address */
    const uint8_t *mac;
    const char *node, *interface;
};

static int compare_owners(const void *left, const void *right)
{
    const struct cables_owner *a = left, *b = right;

    return a->text != NULL ? strcmp(a->text, b->text) : memcmp(a->mac, b->mac, 6);
}

static void report_twice(struct cables_owner *owners, uint32_t count, struct by_report *report)
{
    char mac[BY_MAC_TEXT_BYTES], subject[96];

    qsort(owners, count, sizeof(*owners), compare_owners);
    for (uint32_t i = 1; i < count; i++) {
        if (compare_owners(&owners[i - 1], &owners[i]) != 0)
            continue;
        snprintf(subject, sizeof(subject), "%s %s", owners[i].node, owners[i].interface);
        by_report_add(report, BY_GRADE_TROUBLE, subject,
                      owners[i].text != NULL ? "give one of them another address"
                                             : "give one of them another MAC address (a copied virtual "
                                               "machine?): `ip link set IF address MAC`",
                      "its address %s is that of %s of '%s', too",
                      owners[i].text != NULL ? owners[i].text : by_mac_write(owners[i].mac, mac),
                      owners[i - 1].interface, owners[i - 1].node);
    }
}

/* Finds addresses and MAC addresses that two ends of cables have. */
static void check_twice(const struct by_cables *cables, struct by_report *report)
{
    struct cables_owner *macs = by_alloc(2 * (size_t)cables->count, sizeof(*macs)), *ips;
    char(*texts)[48] = by_alloc(2 * (size_t)cables->count, sizeof(*texts));
    uint32_t mac_count = 0, ip_count = 0;

    ips = by_alloc(2 * (size_t)cables->count, sizeof(*ips));
    for (uint32_t i = 0; i < 2 * cables->count; i++) {
        const struct by_cable_end *end = &cables->cables[i / 2].ends[i % 2];
        const struct by_facts_interface *interface = by_cables_interface(cables, end);
        const char *node = by_cables_name(cables, end->node);

        if (interface == NULL)
            continue;
        if (interface->has_mac)
            macs[mac_count++] =
                (struct cables_owner){.mac = interface->mac, .node = node, .interface = interface->name};
        if (interface->addresses[0] == 0)
            continue;
        snprintf(texts[ip_count], sizeof(texts[0]), "%.*s", (int)strcspn(interface->addresses, "/ "),
                 interface->addresses);
        ips[ip_count] =
            (struct cables_owner){.text = texts[ip_count], .node = node, .interface = interface->name};
        ip_count++;
    }
    report_twice(macs, mac_count, report);
    report_twice(ips, ip_count, report);
    free(macs);
    free(ips);
    free(texts);
}

void by_cables_find(struct by_cables *cables, const struct by_facts_list *facts, struct by_report *report)
{
    *cables = (struct by_cables){.facts = facts};
    report->check = "nodes";
    check_names(facts, report);
    report->check = "cables";
    /* Whether a plain node forwards is known when all were heard. */
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t node = 0; node < facts->count; node++)
            for (uint32_t i = 0; i < facts->nodes[node].interface_count; i++) {
                const struct by_facts_interface *interface = &facts->nodes[node].interfaces[i];

                for (uint32_t k = 0; pass == 0 && k < interface->neighbour_count; k++)
                    find_end(cables, &interface->neighbours[k]);
                if (pass > 0)
                    join_interface(cables, node, i, pass == 1, report);
            }
    check_plain(cables, report);
    report->check = "addresses";
    check_twice(cables, report);
}
