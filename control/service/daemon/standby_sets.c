/* The choice of standbys. See standby_sets.h. */
#include "control/service/daemon/standby_sets.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/ahead_plans.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"

/* Whether recovery needs the room of the change, or the daemon ends. */
static bool is_stopped(const struct by_apart *apart)
{
    struct pollfd fds[2] = {{.fd = apart->stop_fd, .events = POLLIN},
                            {.fd = apart->yield_fd, .events = POLLIN}};

    for (unsigned i = 0; i < 2; i++)
        if (fds[i].fd <= 0)
            fds[i].fd = -1;
    return poll(fds, 2, 0) > 0;
}

static bool *mark_of(const struct by_topology *topology, struct by_fabric_loss *loss, uint32_t part)
{
    return part < topology->node_count ? &loss->nodes[part] : &loss->links[part - topology->node_count];
}

/* Whether a part is lost, itself or with a node at its end. */
static bool is_lost(const struct by_topology *topology, const struct by_fabric_loss *loss, uint32_t part)
{
    const struct by_link *link;

    if (part < topology->node_count)
        return loss->nodes[part];
    link = &topology->links[part - topology->node_count];
    return loss->links[part - topology->node_count] || loss->nodes[link->a] || loss->nodes[link->b];
}

static bool has_path(const struct by_standby_sets *sets, const struct by_fabric_loss *loss)
{
    struct by_topology *part = NULL;
    struct by_problem ignored = {0};

    if (by_fabric_part(sets->topology, &sets->job->spec, loss, &part, &ignored) != 0)
        return false;
    by_topology_free(part);
    return true;
}

/* Whether the tables use a part. */
static bool uses(const struct by_topology *topology, const struct by_job_tables *tables, uint32_t part)
{
    struct by_fabric_loss one;
    bool hit;

    by_fabric_loss_init(&one, topology);
    *mark_of(topology, &one, part) = true;
    hit = by_fabric_is_hit(topology, tables, &one);
    by_fabric_loss_free(&one);
    return hit;
}

int by_standby_sets_find(struct by_standby_sets *sets, struct by_problem *problem)
{
    const struct by_topology *topology = sets->topology;
    struct by_fabric_loss loss;
    int error = 0;

    by_fabric_loss_copy(&loss, sets->loss, topology);
    for (uint32_t part = 0; part < topology->node_count + topology->link_count && error == 0; part++) {
        bool *mark = mark_of(topology, &loss, part);

        if (is_stopped(sets->apart))
            error = by_problem_say(problem, BY_EABORTED, "another change is more urgent");
        if (*mark || (part < topology->node_count && !by_site_is_switch(topology, part)) ||
            !uses(topology, sets->job->tables, part))
            continue;
        *mark = true;
        if (has_path(sets, &loss)) {
            BY_GROW(sets->parts, sets->part_count, sets->room);
            sets->parts[sets->part_count++] = part;
        }
        *mark = false;
    }
    by_fabric_loss_free(&loss);
    sets->covered = by_alloc(sets->part_count + 1, sizeof(*sets->covered));
    return error;
}

/* Returns how many parts that no set avoids yet are out with this loss. */
static uint32_t count_new(const struct by_standby_sets *sets, const struct by_fabric_loss *loss)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sets->part_count; i++)
        count += !sets->covered[i] && is_lost(sets->topology, loss, sets->parts[i]);
    return count;
}

/*
 * Adds parts that no set avoids yet to the loss, as long as there is a path, until its share is
 * reached: what is left, divided by the number of sets. Returns how many parts were added, without
 * those that went with them; `most` limits them.
 */
static uint32_t grow(const struct by_standby_sets *sets, uint32_t left, uint32_t most,
                     struct by_fabric_loss *loss)
{
    uint32_t goal = (sets->part_count - sets->covered_count + left - 1) / left, added = 0;

    for (uint32_t i = 0; i < sets->part_count && added < most && count_new(sets, loss) < goal; i++) {
        bool *mark = mark_of(sets->topology, loss, sets->parts[i]);

        if (sets->covered[i] || is_lost(sets->topology, loss, sets->parts[i]) || is_stopped(sets->apart))
            continue;
        *mark = true;
        if (has_path(sets, loss))
            added++;
        else
            *mark = false;
    }
    return added;
}

/* Plans and lowers the trees of a set without these parts. */
static int fill(const struct by_standby_sets *sets, const struct by_fabric_loss *grown,
                struct by_job_tables *tables, struct by_problem *problem)
{
    const struct by_topology *topology = sets->topology;
    const struct by_job_tables *base = sets->job->tables;
    struct by_fabric_loss loss;
    int error;

    by_fabric_loss_copy(&loss, grown, topology);
    tables->window = base->window < BY_STANDBY_WINDOW ? base->window : BY_STANDBY_WINDOW;
    tables->lost_links = by_alloc(topology->link_count, sizeof(*tables->lost_links));
    memcpy(tables->lost_links, loss.links, topology->link_count * sizeof(*tables->lost_links));
    error = by_lower_draw(tables->secret, problem);
    if (error == 0)
        error =
            by_fabric_plan(topology, &sets->job->spec, &loss, base,
                           by_ahead_find(sets->job->ahead, topology, &loss), sets->apart, tables, problem);
    if (error == 0)
        error = by_fabric_lower(topology, sets->job->spec.job, sets->lower, tables, problem);
    by_fabric_loss_free(&loss);
    return error;
}

int by_standby_sets_make(const struct by_standby_sets *sets, uint32_t left, uint16_t gen,
                         const struct by_job_tables *last, struct by_job_tables **result,
                         struct by_problem *problem)
{
    /* If the trees without many parts do not serve, one part is tried. */
    static const uint32_t most[] = {UINT32_MAX, 1};
    uint32_t first_tree = last->first_tree + last->lowering->tree_count;
    int error = BY_EUNSUPPORTED;

    *result = NULL;
    if (first_tree >= BY_TREES_MAX)
        return by_problem_say(problem, BY_ELIMIT, "no number of a tree is left");
    for (unsigned i = 0; i < 2 && error != 0 && error != BY_ENOENT && error != BY_EABORTED; i++) {
        struct by_job_tables *tables = by_alloc(1, sizeof(*tables));
        struct by_fabric_loss loss;

        tables->gen = gen;
        tables->first_tree = (uint16_t)first_tree;
        by_fabric_loss_copy(&loss, sets->loss, sets->topology);
        if (grow(sets, left, most[i], &loss) > 0)
            error = fill(sets, &loss, tables, problem);
        else
            error = BY_ENOENT;
        by_fabric_loss_free(&loss);
        if (error == 0)
            *result = tables;
        else
            by_job_tables_free(tables);
    }
    return error;
}

/* Marks the links of a way. */
static void mark_way(const struct by_hop_step *way, uint32_t count, bool *links)
{
    for (uint32_t i = 0; i < count; i++)
        links[way[i].link] = true;
}

/* Whether a set avoids all those parts of a tree in use that can be avoided, and there are any.
 * `avoids`: by index of the part. */
static bool replaces(const struct by_standby_sets *sets, const struct by_lowered_tree *tree,
                     const bool *avoids)
{
    const struct by_topology *topology = sets->topology;
    struct by_job_tables alone = {.uses_link = by_alloc(topology->link_count, sizeof(bool))};
    bool some = false, all = true;

    for (uint32_t i = 0; i < tree->hop_count; i++) {
        mark_way(tree->hops[i].down, tree->hops[i].down_count, alone.uses_link);
        mark_way(tree->hops[i].up, tree->hops[i].up_count, alone.uses_link);
    }
    for (uint32_t i = 0; i < sets->part_count && all; i++) {
        if (!uses(topology, &alone, sets->parts[i]))
            continue;
        some = true;
        all = avoids[i];
    }
    free(alone.uses_link);
    return some && all;
}

void by_standby_sets_take(struct by_standby_sets *sets, struct by_job_tables *tables)
{
    const struct by_lowering *base = sets->job->tables->lowering;
    bool *avoids = by_alloc(sets->part_count + 1, sizeof(*avoids));

    for (uint32_t i = 0; i < sets->part_count; i++) {
        avoids[i] = !uses(sets->topology, tables, sets->parts[i]);
        sets->covered_count += avoids[i] && !sets->covered[i];
        sets->covered[i] |= avoids[i];
    }
    tables->replaces = by_alloc(base->tree_count, sizeof(*tables->replaces));
    for (uint32_t i = 0; i < base->tree_count; i++)
        tables->replaces[i] = replaces(sets, &base->trees[i], avoids);
    free(avoids);
}

void by_standby_sets_free(struct by_standby_sets *sets)
{
    free(sets->parts);
    free(sets->covered);
    sets->parts = NULL;
    sets->covered = NULL;
}
