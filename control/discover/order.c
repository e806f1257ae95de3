/* Orders links by the ports of their switches; see order.h. Pure. */
#include "control/discover/order.h"

#include <string.h>

#include "control/base/alloc.h"

#define NONE UINT32_MAX

/* The links of the ports of one switch. */
struct order_switch {
    uint32_t port_count, next; /* next: the first port whose link is not placed */
    uint32_t *link;            /* by port; NONE: no cable */
};

static bool is_ordered(const struct by_cables *cables, const struct by_cable_end *end)
{
    return end->node < cables->facts->count && cables->facts->nodes[end->node].is_switch &&
           end->interface != BY_CABLE_UNKNOWN;
}

static struct order_switch *open_switches(const struct by_cables *cables, const struct by_cable *links,
                                          uint32_t count)
{
    struct order_switch *switches = by_alloc(cables->facts->count, sizeof(*switches));

    for (uint32_t i = 0; i < cables->facts->count; i++) {
        switches[i].port_count = cables->facts->nodes[i].interface_count;
        switches[i].link = by_alloc(switches[i].port_count, sizeof(uint32_t));
        for (uint32_t k = 0; k < switches[i].port_count; k++)
            switches[i].link[k] = NONE;
    }
    for (uint32_t i = 0; i < count; i++)
        for (unsigned s = 0; s < 2; s++)
            if (is_ordered(cables, &links[i].ends[s]) && switches[links[i].ends[s].node].link != NULL)
                switches[links[i].ends[s].node].link[links[i].ends[s].interface] = i;
    return switches;
}

/* Whether no switch has a port before this link's whose link is still to be placed. */
static bool is_next(const struct by_cables *cables, struct order_switch *switches, const bool *placed,
                    const struct by_cable *links, uint32_t link)
{
    for (unsigned s = 0; s < 2; s++) {
        const struct by_cable_end *end = &links[link].ends[s];
        struct order_switch *at = &switches[end->node];

        if (!is_ordered(cables, end))
            continue;
        while (at->next < at->port_count && (at->link[at->next] == NONE || placed[at->link[at->next]]))
            at->next++;
        if (at->next == at->port_count || at->link[at->next] != link)
            return false;
    }
    return true;
}

/* Adds a finding if the ports of a switch are not those of its links, in their order. */
static void check_switch(const struct by_cables *cables, const struct by_cable *links, uint32_t count,
                         uint32_t node, struct by_report *report)
{
    const struct by_facts *facts = &cables->facts->nodes[node];
    char list[200] = "";
    uint32_t port = 0;
    size_t used = 0;
    bool right = true;

    for (uint32_t i = 0; i < count; i++)
        for (unsigned s = 0; s < 2; s++) {
            const struct by_cable_end *end = &links[i].ends[s];

            if (end->node != node || !is_ordered(cables, end))
                continue;
            right = right && end->interface == port++;
            if (used + strlen(end->port) + 2 < sizeof(list))
                used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? " " : "",
                                         end->port);
        }
    if (!right) {
        char remedy[256];

        snprintf(remedy, sizeof(remedy), "start its banyan-switchd with these ports in this order: %.180s",
                 list);
        by_report_add(
            report, BY_GRADE_TROUBLE, facts->node, remedy,
            "its ports are not in the order of its links, by which tables number them: a port before "
            "others has no cable, or two switches have their common links in different orders");
    }
}

void by_links_order(const struct by_cables *cables, struct by_cable *links, uint32_t count,
                    struct by_report *report)
{
    struct order_switch *switches = open_switches(cables, links, count);
    struct by_cable *sorted = by_alloc(count, sizeof(*sorted));
    bool *placed = by_alloc(count, sizeof(*placed));

    for (uint32_t done = 0; done < count; done++) {
        uint32_t chosen = NONE;

        for (uint32_t i = 0; i < count && chosen == NONE; i++)
            if (!placed[i] && is_next(cables, switches, placed, links, i))
                chosen = i;
        /* The orders of several switches contradict each other: the most preferred link is next.
         * */
        for (uint32_t i = 0; i < count && chosen == NONE; i++)
            if (!placed[i])
                chosen = i;
        placed[chosen] = true;
        sorted[done] = links[chosen];
    }
    memcpy(links, sorted, count * sizeof(*links));
    report->check = "ports";
    for (uint32_t i = 0; i < cables->facts->count; i++) {
        if (cables->facts->nodes[i].is_switch)
            check_switch(cables, links, count, i, report);
        free(switches[i].link);
    }
    free(switches);
    free(sorted);
    free(placed);
}
