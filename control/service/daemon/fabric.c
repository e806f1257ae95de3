/* Plans on the remaining part of a fabric. See fabric.h. */
#include "control/service/daemon/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/planner/replan/replan.h"
#include "control/verify/verify.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* The planner's part of the time limit. The rest is for writing down its best plan. */
#define PLANNER_PART 0.8

void by_fabric_loss_init(struct by_fabric_loss *loss, const struct by_topology *topology)
{
    loss->nodes = by_alloc(topology->node_count, sizeof(*loss->nodes));
    loss->links = by_alloc(topology->link_count, sizeof(*loss->links));
}

void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology)
{
    by_fabric_loss_init(to, topology);
    memcpy(to->nodes, from->nodes, topology->node_count * sizeof(*to->nodes));
    for (uint32_t i = 0; i < topology->link_count; i++)
        to->links[i] =
            from->links[i] || from->nodes[topology->links[i].a] || from->nodes[topology->links[i].b];
}

void by_fabric_loss_free(struct by_fabric_loss *loss)
{
    free(loss->nodes);
    free(loss->links);
    *loss = (struct by_fabric_loss){0};
}

/* Marks in `seen` the nodes that working links connect to `first` without the nodes in `out`. */
static void walk(const struct by_topology *topology, uint32_t first, const bool *out,
                 const struct by_fabric_loss *loss, bool *seen)
{
    bool more = true;

    seen[first] = true;
    while (more) { /* repeats at most as often as the longest path; cheap compared with planning */
        more = false;
        for (uint32_t i = 0; i < topology->link_count; i++) {
            uint32_t a = topology->links[i].a, b = topology->links[i].b;

            if (loss->links[i] || out[a] || out[b] || seen[a] == seen[b])
                continue;
            seen[a] = seen[b] = more = true;
        }
    }
}

/* Names the lost parts around the unreachable side: "switch leaf1, link spine0 - leaf2". */
static void name_losses(const struct by_topology *topology, const struct by_fabric_loss *loss,
                        const bool *seen, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < topology->node_count && used + 80 < bytes; i++)
        if (loss->nodes[i])
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %s", used ? ", " : "",
                                     topology->nodes[i].compute ? "host" : "switch", topology->nodes[i].name);
    for (uint32_t i = 0; i < topology->link_count && used + 120 < bytes; i++) {
        uint32_t a = topology->links[i].a, b = topology->links[i].b;

        if (loss->links[i] && !loss->nodes[a] && !loss->nodes[b] && seen[a] != seen[b])
            used += (size_t)snprintf(text + used, bytes - used, "%slink %s - %s", used ? ", " : "",
                                     topology->nodes[a].name, topology->nodes[b].name);
    }
}

static int refuse_cut(const struct by_topology *topology, const struct by_job_spec *spec,
                      const struct by_fabric_loss *loss, uint32_t first, uint32_t apart, const bool *seen,
                      struct by_problem *problem)
{
    uint32_t count = 0;
    char lost[200];

    for (uint32_t i = 0; i < topology->node_count; i++)
        count += by_members_have(topology, spec->member, i) && !seen[i];
    name_losses(topology, loss, seen, lost, sizeof(lost));
    return by_problem_say(
        problem, BY_ENOENT,
        "job %u: no path is left between %s and %s%s: %s%s lost; the job can start again when they are "
        "connected, or without these ranks",
        spec->job, topology->nodes[first].name, topology->nodes[apart].name, count > 1 ? " and others" : "",
        lost[0] ? lost : "every link between them", lost[0] && strchr(lost, ',') ? " are" : " is");
}

/* Finds the nodes that the job cannot use: lost, idle, or cut off. */
static int find_lost(const struct by_topology *topology, const struct by_job_spec *spec,
                     const struct by_fabric_loss *loss, bool *out, struct by_problem *problem)
{
    bool *seen = by_alloc(topology->node_count, sizeof(*seen));
    uint32_t first = UINT32_MAX, apart = UINT32_MAX;
    int error = 0;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        out[i] = loss->nodes[i] || by_members_idle(topology, spec->member, i);
        if (by_members_have(topology, spec->member, i) && !out[i] && first == UINT32_MAX)
            first = i;
    }
    if (first != UINT32_MAX)
        walk(topology, first, out, loss, seen);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (by_members_have(topology, spec->member, i) && !seen[i] && apart == UINT32_MAX)
            apart = i;
        out[i] |= !seen[i];
    }
    if (apart != UINT32_MAX)
        error = refuse_cut(topology, spec, loss, first != UINT32_MAX ? first : apart, apart, seen, problem);
    free(seen);
    return error;
}

int by_fabric_part(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, struct by_topology **part, struct by_problem *problem)
{
    bool *out = by_alloc(topology->node_count, sizeof(*out));
    int error = find_lost(topology, spec, loss, out, problem);

    *part = NULL;
    if (error == 0)
        error = by_topology_without(topology, loss->links, out, part, problem);
    free(out);
    return error;
}

/* Lists the ranks in the plan if the whole fabric has other hosts as well. */
static void name_ranks(const struct by_topology *topology, const struct by_topology *part,
                       struct by_plan *plan)
{
    if (plan->member != NULL || by_topology_compute_count(part) == by_topology_compute_count(topology))
        return;
    plan->member = by_alloc(part->node_count, sizeof(*plan->member));
    for (uint32_t i = 0; i < part->node_count; i++)
        plan->member[i] = part->nodes[i].compute;
}

/* The part of the fabric, and the members in its numbers. */
struct fabric_part {
    struct by_topology *topology;
    bool *member; /* NULL: all compute nodes */
};

/* The order of one plan, for the process that makes it. */
struct fabric_order {
    const struct by_topology *topology;
    const struct fabric_part *part;
    const struct by_job_want *want;
    const struct by_plan *from; /* the previous plan, or NULL */
    uint32_t limit_ms;
};

static int64_t node_of(const struct by_topology *part, const struct by_topology *topology, int64_t node)
{
    return node < 0 ? -1 : by_topology_find(part, topology->nodes[node].name);
}

/* Checks the text of a plan with the verifier on the part, and parses it on the whole fabric. */
static int take_plan(const struct by_topology *topology, const struct by_topology *part, const char *text,
                     size_t bytes, unsigned collective, struct by_plan **plan, struct by_problem *problem)
{
    struct by_verify_report report = {0};
    int error = by_verify_text(part, text, bytes, &report, problem);

    if (error == 0 && report.verdict == BY_VERDICT_INVALID)
        error = by_problem_say(problem, BY_EFORMAT, "%s: the new plan is INVALID: %.300s",
                               by_collective_name(collective), report.reason);
    if (error == 0)
        error = by_plan_parse(text, bytes, topology, plan, problem);
    return error;
}

/* Makes one plan on the part. */
static int make_plan(const struct fabric_order *order, struct by_plan **made, struct by_problem *problem)
{
    const struct fabric_part *part = order->part;
    struct by_plan_options options = {.collective = order->want->collective,
                                      .root = node_of(part->topology, order->topology, order->want->root),
                                      .member = part->member,
                                      .in_network = true,
                                      .time_limit_s = order->limit_ms / 1000.0 * PLANNER_PART};
    struct by_replan_report report;
    struct by_problem ignored = {0};

    if (order->from != NULL && part->member == NULL && order->from->member == NULL &&
        by_replan(order->topology, order->from, part->topology, true, options.time_limit_s, made, &report,
                  &ignored) == 0)
        return 0;
    return by_plan_make(part->topology, &options, made, problem);
}

/* Makes a plan and writes its text; runs in a separate process. */
static int write_plan(void *context, FILE *out, struct by_problem *problem)
{
    const struct fabric_order *order = context;
    struct by_plan *made = NULL;
    int error = make_plan(order, &made, problem);

    if (error != 0)
        return error;
    name_ranks(order->topology, order->part->topology, made);
    error = by_plan_write(made, order->part->topology, out);
    by_plan_free(made);
    return error == 0 ? 0 : by_problem_say(problem, error, "no memory for the text of a plan");
}

/* Orders a plan and reads the result. */
static int order_plan(struct fabric_order *order, const struct by_apart *apart, uint16_t job,
                      struct by_plan **plan, struct by_problem *problem)
{
    const char *name = by_collective_name(order->want->collective);
    struct by_problem inner = {0};
    char *text;
    size_t bytes;
    int error = by_apart_run(apart, write_plan, order, &text, &bytes, &inner);

    if (error == BY_ETIMEDOUT)
        return by_problem_say(
            problem, error,
            "job %u: no plan of %s within %u s: allow more time with --plan-limit, or give the job fewer "
            "ranks",
            job, name, apart->limit_ms / 1000);
    if (error == BY_EABORTED || error == BY_EIO)
        return by_problem_say(problem, error, "job %u: the plan of %s: %.300s", job, name, inner.text);
    *problem = inner;
    if (error == 0)
        error = take_plan(order->topology, order->part->topology, text, bytes, order->want->collective, plan,
                          problem);
    free(text);
    return error;
}

/* Takes the plan that was made before, if it is valid. */
static bool take_made(const struct fabric_order *order, const struct by_fabric_text *made,
                      struct by_plan **plan)
{
    struct by_problem ignored = {0};

    return made != NULL && take_plan(order->topology, order->part->topology, made->text, made->bytes,
                                     order->want->collective, plan, &ignored) == 0;
}

static void note_price(struct by_job_tables *tables, const struct by_plan *plan)
{
    if (tables->note[0] == 0 && by_fraction_compare(plan->achieved, plan->optimum) < 0)
        snprintf(tables->note, sizeof(tables->note), "%s reaches %.3g of %.3g %s",
                 by_collective_name(plan->collective), by_fraction_value(plan->achieved),
                 by_fraction_value(plan->optimum), plan->unit);
}

/* Returns the members in the numbers of the part; NULL when they are all its compute nodes. */
static bool *map_members(const struct by_topology *topology, const struct by_job_spec *spec,
                         const struct by_topology *part)
{
    bool *member;

    if (spec->member == NULL && by_topology_compute_count(part) == by_topology_compute_count(topology))
        return NULL;
    member = by_alloc(part->node_count, sizeof(*member));
    for (uint32_t i = 0; i < topology->node_count; i++) {
        int64_t node = by_members_have(topology, spec->member, i) ? node_of(part, topology, i) : -1;

        if (node >= 0)
            member[node] = true;
    }
    return member;
}

/* The order of a want, with the previous plan if `from` has one. */
static struct fabric_order order_of(const struct by_topology *topology, const struct by_job_spec *spec,
                                    const struct fabric_part *part, const struct by_job_tables *from,
                                    uint32_t want, uint32_t limit_ms)
{
    return (struct fabric_order){.topology = topology,
                                 .part = part,
                                 .want = &spec->wants[want],
                                 .from = from != NULL && want < from->plan_count ? from->plans[want] : NULL,
                                 .limit_ms = limit_ms};
}

int by_fabric_plan(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, const struct by_job_tables *from,
                   const struct by_fabric_text *made, const struct by_apart *apart,
                   struct by_job_tables *tables, struct by_problem *problem)
{
    struct fabric_part part = {0};
    int error = by_fabric_part(topology, spec, loss, &part.topology, problem);

    if (error != 0)
        return error;
    part.member = map_members(topology, spec, part.topology);
    tables->plans = by_alloc(spec->want_count, sizeof(struct by_plan *));
    tables->ahead = made != NULL;
    for (uint32_t i = 0; i < spec->want_count && error == 0; i++) {
        struct fabric_order order = order_of(topology, spec, &part, from, i, apart->limit_ms);

        if (!take_made(&order, made != NULL ? &made[i] : NULL, &tables->plans[i])) {
            tables->ahead = false;
            error = order_plan(&order, apart, spec->job, &tables->plans[i], problem);
        }
        if (error != 0)
            break;
        BY_ASSERT(tables->plans[i] != NULL);
        tables->plan_count++;
        note_price(tables, tables->plans[i]);
    }
    by_topology_free(part.topology);
    free(part.member);
    return error;
}

int by_fabric_texts(const struct by_topology *topology, const struct by_job_spec *spec,
                    const struct by_fabric_loss *loss, const struct by_job_tables *from, uint32_t limit_ms,
                    struct by_fabric_text *texts, struct by_problem *problem)
{
    struct fabric_part part = {0};
    int error = by_fabric_part(topology, spec, loss, &part.topology, problem);

    if (error != 0)
        return error;
    part.member = map_members(topology, spec, part.topology);
    for (uint32_t i = 0; i < spec->want_count && error == 0; i++) {
        struct fabric_order order = order_of(topology, spec, &part, from, i, limit_ms);
        FILE *out = by_text_open(&texts[i].text, &texts[i].bytes);

        error = write_plan(&order, out, problem);
        fclose(out);
    }
    by_topology_free(part.topology);
    free(part.member);
    return error;
}

static void mark_way(const struct by_hop_step *way, uint32_t count, bool *uses_link)
{
    for (uint32_t i = 0; i < count; i++)
        uses_link[way[i].link] = true;
}

/* Records what admission, and the search for affected jobs after a failure, need of the lowered
 * trees. */
static void measure(const struct by_topology *topology, struct by_job_tables *tables)
{
    const struct by_lowering *lowering = tables->lowering;

    tables->uses_link = by_alloc(topology->link_count, sizeof(*tables->uses_link));
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        for (uint32_t j = 0; j < lowering->trees[i].hop_count; j++) {
            const struct by_hop *hop = &lowering->trees[i].hops[j];

            mark_way(hop->down, hop->down_count, tables->uses_link);
            mark_way(hop->up, hop->up_count, tables->uses_link);
        }
    tables->need = by_alloc(topology->node_count, sizeof(*tables->need));
    for (uint32_t i = 0; i < topology->node_count; i++)
        tables->need[i] = by_lowering_need(lowering, lowering->jobs[0].job, i);
}

int by_fabric_lower(const struct by_topology *topology, uint16_t job, const struct by_lower_options *options,
                    struct by_job_tables *tables, struct by_problem *problem)
{
    struct by_lower_job lower = {.job = job,
                                 .plan_count = tables->plan_count,
                                 .plans = (const struct by_plan *const *)tables->plans,
                                 .gen = tables->gen,
                                 .first_tree = tables->first_tree,
                                 .window = tables->window,
                                 .lost_links = tables->lost_links,
                                 .secret = tables->secret};
    struct by_lower_options alone = *options;
    int error;

    if (tables->window > 0)
        alone.slots = UINT32_MAX; /* admission checks each switch */
    by_lowering_free(tables->lowering);
    free(tables->uses_link);
    free(tables->need);
    tables->lowering = NULL;
    tables->uses_link = NULL;
    tables->need = NULL;
    error = by_lower(topology, &lower, 1, &alone, &tables->lowering, problem);
    if (error != 0)
        return error;
    if (tables->slot_base == NULL)
        tables->slot_base = by_alloc(topology->node_count, sizeof(*tables->slot_base));
    if (tables->window == 0)
        tables->window = tables->lowering->window;
    measure(topology, tables);
    return 0;
}

bool by_fabric_is_hit(const struct by_topology *topology, const struct by_job_tables *tables,
                      const struct by_fabric_loss *loss)
{
    for (uint32_t i = 0; i < topology->link_count; i++)
        if (tables->uses_link[i] &&
            (loss->links[i] || loss->nodes[topology->links[i].a] || loss->nodes[topology->links[i].b]))
            return true;
    return false;
}
