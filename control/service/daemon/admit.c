/* Admission. A job has one range of slots at each node, found by first fit. It keeps the range
 * while its tables are active, so that jobs that begin or end move no other job. See admit.h. */
#include "control/service/daemon/admit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

/* Maximum number of holders that one text names (count). */
#define HOLDERS_MAX 4u
/* Jobs among which by_admit_budget divides the free slots (count). */
#define SHARERS 16u

int by_admit_fabric(const struct by_topology *topology, const struct by_lowering *lowering,
                    const struct by_admit_limits *limits, struct by_problem *problem)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        const char *name = topology->nodes[i].name;
        uint32_t ports = lowering->map.port_count[i];

        if (!by_site_is_switch(topology, i))
            continue;
        if (limits[i].ports > 0 && ports > limits[i].ports)
            return by_problem_say(
                problem, BY_ELIMIT,
                "switch %s has %u ports, and %u links in the fabric: start it with a port for each", name,
                limits[i].ports, ports);
        if (limits[i].payload_max > 0 && lowering->payload_max > limits[i].payload_max)
            return by_problem_say(
                problem, BY_ELIMIT,
                "switch %s accepts chunks of %u bytes, and an MTU of %u carries %u: start banyand with a "
                "smaller --mtu, or the switch with a larger --payload-max",
                name, limits[i].payload_max, lowering->mtu, lowering->payload_max);
    }
    return 0;
}

/* Writes "job 1 holds 4096, job 4 holds 256", the largest first. */

static void name_holders(const struct by_admit_job *others, uint32_t count, uint32_t node, bool entries,
                         char *text, size_t bytes)
{
    bool *told = by_alloc(count, sizeof(*told));
    size_t used = 0;

    text[0] = 0;
    for (uint32_t n = 0; n < HOLDERS_MAX && n < count; n++) {
        uint32_t most = 0, best = 0;

        for (uint32_t i = 0; i < count; i++) {
            const struct by_lower_need *need = &others[i].tables->need[node];
            uint32_t held = entries ? need->entries : need->slots;

            if (!told[i] && held > most) {
                most = held;
                best = i;
            }
        }
        if (most == 0)
            break;
        told[best] = true;
        used += (size_t)snprintf(text + used, bytes - used, "%sjob %u holds %u", used ? ", " : "",
                                 others[best].spec->job, most);
    }
    if (text[0] == 0)
        snprintf(text, bytes, "no other job holds any");
    free(told);
}

/* Finds the first range of `slots` free slots at a node. Returns false when there is none. */
static bool find_place(const struct by_admit_job *others, uint32_t count, uint32_t node, uint32_t slots,
                       uint32_t limit, uint32_t *place)
{
    uint32_t at = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t base = others[i].tables->slot_base[node], held = others[i].tables->need[node].slots;

            if (held == 0 || at + slots <= base || at >= base + held)
                continue;
            at = base + held;
            moved = true;
        }
    }
    *place = at;
    return limit == 0 || (uint64_t)at + slots <= limit;
}

/* Returns the largest smaller window for which every node has room; 0: none. */
static uint32_t find_window(const struct by_topology *topology, const struct by_admit_job *job,
                            const struct by_admit_job *others, uint32_t count,
                            const struct by_admit_limits *limits)
{
    for (uint32_t window = job->tables->window / 2; window > 0; window /= 2) {
        bool fits = true;
        uint32_t place;

        for (uint32_t i = 0; i < topology->node_count && fits; i++)
            fits = topology->nodes[i].compute ||
                   find_place(others, count, i, job->tables->need[i].slots / job->tables->window * window,
                              limits[i].slots, &place);
        if (fits)
            return window;
    }
    return 0;
}

static int check_entries(const struct by_topology *topology, const struct by_admit_job *job,
                         const struct by_admit_job *others, uint32_t count,
                         const struct by_admit_limits *limits, uint32_t node, struct by_problem *problem)
{
    uint32_t need = job->tables->need[node].entries;
    uint64_t held = 0;
    char holders[160];

    for (uint32_t i = 0; i < count; i++)
        held += others[i].tables->need[node].entries;
    if (limits[node].entries == 0 || held + need <= limits[node].entries)
        return 0;
    name_holders(others, count, node, true, holders, sizeof(holders));
    return by_problem_say(
        problem, BY_ELIMIT,
        "job %u: not enough entries on %s: it needs %u; of %u entries %llu are left (%s): end a job, or plan "
        "fewer collectives",
        job->spec->job, topology->nodes[node].name, need, limits[node].entries,
        (unsigned long long)(limits[node].entries - held), holders);
}

static int refuse_slots(const struct by_topology *topology, const struct by_admit_job *job,
                        const struct by_admit_job *others, uint32_t count,
                        const struct by_admit_limits *limits, uint32_t node, uint32_t fits,
                        struct by_problem *problem)
{
    uint64_t held = 0;
    char holders[160], remedy[120];

    for (uint32_t i = 0; i < count; i++)
        held += others[i].tables->need[node].slots;
    name_holders(others, count, node, false, holders, sizeof(holders));
    if (fits > 0)
        snprintf(remedy, sizeof(remedy), "a window of %u would fit", fits);
    else
        snprintf(remedy, sizeof(remedy), "end a job, or start the switch with more --slots");
    return by_problem_say(
        problem, BY_ELIMIT,
        "job %u: not enough slots on %s: it needs %u contiguous ones for a window of %u; of %u slots %llu "
        "are left (%s): %s",
        job->spec->job, topology->nodes[node].name, job->tables->need[node].slots, job->tables->window,
        limits[node].slots, (unsigned long long)(held < limits[node].slots ? limits[node].slots - held : 0),
        holders, remedy);
}

int by_admit_slots(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   uint32_t *fits, struct by_problem *problem)
{
    uint32_t *bases = job->tables->slot_base;
    int error = 0;

    *fits = 0;
    for (uint32_t i = 0; i < topology->node_count && error == 0; i++) {
        uint32_t slots = job->tables->need[i].slots;

        if (topology->nodes[i].compute || job->tables->need[i].entries == 0)
            continue; /* a host's process has its own engine */
        error = check_entries(topology, job, others, count, limits, i, problem);
        if (error == 0 && !find_place(others, count, i, slots, limits[i].slots, &bases[i])) {
            *fits = find_window(topology, job, others, count, limits);
            error = refuse_slots(topology, job, others, count, limits, i, *fits, problem);
        }
    }
    return error;
}

uint32_t by_admit_budget(const struct by_topology *topology, const struct by_admit_job *others,
                         uint32_t count, const struct by_admit_limits *limits)
{
    uint32_t window = BY_LOWER_WINDOW;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint64_t held = 0;

        if (topology->nodes[i].compute || limits[i].slots == 0)
            continue;
        for (uint32_t k = 0; k < count; k++)
            held += others[k].tables->need[i].slots;
        while (window > BY_ADMIT_WINDOW_LEAST && held + (uint64_t)window * SHARERS > limits[i].slots)
            window /= 2;
    }
    return window;
}

/* Writes "job 1 holds 3/4" for the jobs that use the link, and their sum to `*held`. */
static int sum_shares(const struct by_admit_job *others, uint32_t count, uint32_t link,
                      struct by_fraction *held, char *text, size_t bytes)
{
    char number[BY_FRACTION_TEXT_BYTES];
    size_t used = 0;

    *held = (struct by_fraction){0, 1};
    text[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct by_fraction share = others[i].spec->share;

        if (!others[i].tables->uses_link[link] || share.num == 0)
            continue;
        if (by_fraction_add(*held, share, held) != 0)
            return BY_ERANGE;
        if (used + 60 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%sjob %u holds %s", used ? ", " : "",
                                     others[i].spec->job, by_fraction_text(share, number));
    }
    return 0;
}

/* Writes "job 1, job 2, job 5, job 7 and 60 more": jobs with a share. Returns their number. */
static uint32_t name_sharers(const struct by_admit_job *others, uint32_t count, char *text, size_t bytes)
{
    uint32_t found = 0;
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        if (others[i].spec->share.num > 0 && found++ < HOLDERS_MAX)
            used += (size_t)snprintf(text + used, bytes - used, "%sjob %u", used ? ", " : "",
                                     others[i].spec->job);
    if (found > HOLDERS_MAX)
        snprintf(text + used, bytes - used, " and %u more", found - HOLDERS_MAX);
    return found;
}

/* The table of every switch contains all jobs, wherever their trees are, so the switch with the
 * lowest limit decides. */
static int check_sharers(const struct by_topology *topology, const struct by_admit_job *job,
                         const struct by_admit_job *others, uint32_t count,
                         const struct by_admit_limits *limits, struct by_problem *problem)
{
    char holders[100];
    uint32_t found = name_sharers(others, count, holders, sizeof(holders));

    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t most = limits[i].shares > 0 ? limits[i].shares : BY_SHARES_MAX;

        if (by_site_is_switch(topology, i) && found >= most)
            return by_problem_say(
                problem, BY_ELIMIT,
                "job %u: no share is left on %s, which supports %u (held by %s): end a job, or create this "
                "one without --share",
                job->spec->job, topology->nodes[i].name, most, holders);
    }
    return 0;
}

int by_admit_share(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   struct by_problem *problem)
{
    struct by_fraction share = job->spec->share, held, left;
    char holders[200], asked[BY_FRACTION_TEXT_BYTES], rest[BY_FRACTION_TEXT_BYTES];

    if (share.num > 0 && check_sharers(topology, job, others, count, limits, problem) != 0)
        return BY_ELIMIT;
    for (uint32_t i = 0; i < topology->link_count && share.num > 0; i++) {
        const char *a = topology->nodes[topology->links[i].a].name,
                   *b = topology->nodes[topology->links[i].b].name;

        if (!job->tables->uses_link[i])
            continue;
        if (sum_shares(others, count, i, &held, holders, sizeof(holders)) != 0 ||
            by_fraction_subtract((struct by_fraction){1, 1}, held, &left) != 0)
            return by_problem_say(problem, BY_ERANGE,
                                  "job %u: the sum of the shares of link %s - %s exceeds 63 bits: use "
                                  "simpler fractions",
                                  job->spec->job, a, b);
        if (by_fraction_compare(share, left) <= 0)
            continue;
        by_fraction_text(share, asked);
        return by_problem_say(problem, BY_ELIMIT,
                              "job %u: link %s - %s: a share of %s is requested, and %s is left (%s): %s%s%s",
                              job->spec->job, a, b, asked, by_fraction_text(left, rest), holders,
                              left.num > 0 ? "a share of " : "end a job", left.num > 0 ? rest : "",
                              left.num > 0 ? " would fit" : "");
    }
    return 0;
}
