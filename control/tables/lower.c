/*
 * The steps of a lowering: numbers the groups of trees of every job, chooses windows so that every
 * node's slots suffice, and collects relays. emit.c writes the images. Pure except for memory.
 */
#include "control/tables/lower.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/tables/able.h"
#include "control/tables/cable.h"
#include "control/tables/group.h"
#include "control/tables/keyed.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

uint32_t by_lower_payload(uint32_t mtu)
{
    uint32_t headers = BY_LOWER_HEADER_BYTES - 14; /* the MTU does not count the Ethernet header */
    uint32_t payload = mtu > headers ? (mtu - headers) / 64 * 64 : 0;

    return payload > BY_PAYLOAD_MAX ? BY_PAYLOAD_MAX : payload;
}

uint16_t by_lower_udp_port(const struct by_topology *topology, uint16_t job)
{
    uint32_t first =
        topology->site != NULL && topology->site->udp_port != 0 ? topology->site->udp_port : BY_UDP_PORT;

    return (uint16_t)(first + job - 1);
}

static void add_note(struct by_lowering *lowering, const char *text)
{
    lowering->notes = by_realloc(lowering->notes, lowering->note_count + 1, sizeof(char *));
    lowering->notes[lowering->note_count++] = by_copy_text(text);
}

static int check_options(const struct by_lower_options *given, struct by_lower_options *options,
                         struct by_problem *problem)
{
    *options = *given;
    options->window = options->window ? options->window : BY_LOWER_WINDOW;
    options->slots = options->slots ? options->slots : BY_LOWER_SLOTS;
    options->gen = options->gen ? options->gen : 1;
    if ((options->window & (options->window - 1)) != 0 || options->window > BY_WINDOW_MAX)
        return by_problem_say(problem, BY_EINVAL,
                              "a window of %u slots: it must be a power of two, at most %u", options->window,
                              BY_WINDOW_MAX);
    if (options->mtu != 0 && (by_lower_payload(options->mtu) == 0 || options->mtu > 65535))
        return by_problem_say(problem, BY_EINVAL,
                              "an MTU of %u: it must be between 132 (headers and 64 bytes) and 65535",
                              options->mtu);
    return 0;
}

/* Moves one tree, or a half of a pair, into the lowering. */
static void take_tree(struct by_lowering *lowering, uint16_t job, uint32_t number, uint16_t collectives,
                      uint16_t owner, struct by_hops *hops, enum by_half half, uint32_t share)
{
    struct by_lowered_tree *out = &lowering->trees[lowering->tree_count++];
    uint32_t n = lowering->node_count;

    *out = (struct by_lowered_tree){.job = job,
                                    .tree = (uint16_t)number,
                                    .collectives = collectives,
                                    .owner = owner,
                                    .half = (uint8_t)half,
                                    .share = share,
                                    .hop_count = hops->count,
                                    .hops = hops->hop};
    *hops = (struct by_hops){0};
    out->hop_of = by_alloc(n, sizeof(uint32_t));
    memset(out->hop_of, 0xff, n * sizeof(uint32_t));
    for (uint32_t k = 0; k < out->hop_count; k++)
        out->hop_of[out->hops[k].node] = k;
}

/* Moves the trees of a job's groups into the lowering, and numbers them from `number` on. */
static int take_trees(struct by_lowering *lowering, uint16_t job, uint32_t number,
                      struct by_table_groups *groups, struct by_problem *problem)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < groups->count; i++)
        for (uint32_t j = 0; j < groups->groups[i].count; j++)
            count += groups->groups[i].trees[j].down.count > 0 ? 2 : 1;
    if (number + count > BY_TREES_MAX)
        return by_problem_say(
            problem, BY_ELIMIT,
            "job %u has %u trees; a job can have at most %u: plan with a smaller --fixed-k, or fewer "
            "collectives",
            job, number + count, BY_TREES_MAX);
    lowering->trees = by_realloc(lowering->trees, lowering->tree_count + count + 1, sizeof(*lowering->trees));
    for (uint32_t i = 0; i < groups->count; i++) {
        struct by_table_group *group = &groups->groups[i];

        for (uint32_t j = 0; j < group->count; j++) {
            struct by_group_tree *tree = &group->trees[j];
            bool pair = tree->down.count > 0;

            take_tree(lowering, job, number++, group->collectives, group->owner, &tree->hops,
                      pair ? BY_HALF_UP : BY_HALF_NONE, tree->share);
            if (pair)
                take_tree(lowering, job, number++, group->collectives, group->owner, &tree->down,
                          BY_HALF_DOWN, tree->share);
        }
    }
    for (uint32_t i = 0; i < groups->note_count; i++)
        add_note(lowering, groups->notes[i]);
    return 0;
}

/* Returns the most cables between the root and a leaf. */
static uint32_t height_of(const struct by_lowered_tree *tree)
{
    uint32_t *depth = by_alloc(tree->hop_count, sizeof(*depth)), height = 0;

    for (uint32_t i = 1; i < tree->hop_count; i++) {
        depth[i] = depth[tree->hop_of[tree->hops[i].parent]] + tree->hops[i].down_count;
        height = depth[i] > height ? depth[i] : height;
    }
    free(depth);
    return height;
}

/* Whether the root of a tree is a host with one child, so that this child can be the root. */
static bool turns(const struct by_lowering *lowering, const struct by_lowered_tree *tree)
{
    return lowering->topology->nodes[tree->hops[0].node].compute && tree->hops[0].child_count == 2 &&
           tree->hops[1].child_count < BY_FAMILY_MAX;
}

/* Whether ranks can level by a tree: all its inner nodes are switches that add and copy. Hosts load
 * the table of a standby only when they move. */
static bool serves_rounds(const struct by_lowering *lowering, const struct by_lowered_tree *tree)
{
    uint32_t first = turns(lowering, tree);

    for (uint32_t i = first; i < tree->hop_count; i++) {
        const struct by_node *node = &lowering->topology->nodes[tree->hops[i].node];
        uint32_t children = tree->hops[i].child_count + (first == 1 && i == 1);

        if (tree->hops[i].child_count > 0 && node->compute)
            return false;
        if (children > 1 && !(node->multicast && node->aggregate))
            return false;
    }
    return tree->half == BY_HALF_NONE && tree->hop_count > first;
}

/* Adds the tree of rounds of a standby whose trees are those from `first` on. */
static int add_rounds(struct by_lowering *lowering, const struct by_lower_job *job, uint32_t first,
                      struct by_problem *problem)
{
    const struct by_lowered_tree *lowest = NULL;
    uint32_t number = job->first_tree + lowering->tree_count - first, least = UINT32_MAX;
    struct by_hops hops;

    for (uint32_t i = first; i < lowering->tree_count; i++) {
        uint32_t height =
            serves_rounds(lowering, &lowering->trees[i]) ? height_of(&lowering->trees[i]) : UINT32_MAX;

        if (height < least)
            lowest = &lowering->trees[i];
        least = height < least ? height : least;
    }
    if (lowest == NULL)
        return by_problem_say(
            problem, BY_EUNSUPPORTED,
            "job %u: a standby requires a tree that is not one of a pair, whose inner nodes "
            "are switches that both sum and copy",
            job->job);
    if (number >= BY_TREES_MAX)
        return by_problem_say(problem, BY_ELIMIT,
                              "job %u: no number is left for its last tree; the limit is %u", job->job,
                              BY_TREES_MAX);
    hops = by_hops_copy(lowest->hops, lowest->hop_count);
    if (turns(lowering, lowest))
        by_hops_turn(&hops);
    take_tree(lowering, job->job, number, BY_LEAF_ROUNDS, BY_RANK_NONE, &hops, BY_HALF_NONE, 1);
    return 0;
}

/*
 * Numbers the ranks of a job by its first plan. group.c checks that the other plans have the same
 * ranks.
 */
static void number_ranks(struct by_lowering *lowering, const struct by_lower_job *job,
                         struct by_address_map *map)
{
    const bool *member = job->plans[0]->member;

    *map = lowering->map;
    map->rank = by_alloc(lowering->node_count, sizeof(*map->rank));
    map->rank_count = 0;
    for (uint32_t i = 0; i < lowering->node_count; i++)
        map->rank[i] = by_members_have(lowering->topology, member, i) ? map->rank_count++ : UINT32_MAX;
    lowering->ranks[lowering->job_count] = map->rank;
}

/* Copies the caller's first slots of the job at each node, if given. */
static uint32_t *copy_bases(const struct by_lowering *lowering, const struct by_lower_job *job)
{
    uint32_t *bases = NULL;

    if (job->slot_base != NULL) {
        bases = by_alloc(lowering->node_count, sizeof(*bases));
        memcpy(bases, job->slot_base, lowering->node_count * sizeof(*bases));
    }
    return bases;
}

static int add_job(struct by_lowering *lowering, const struct by_lower_job *job, uint16_t gen,
                   struct by_problem *problem)
{
    struct by_address_map map;
    struct by_table_groups groups;
    uint32_t before = lowering->tree_count;
    int error;

    if (job->job == 0 || job->job >= BY_JOBS_MAX)
        return by_problem_say(problem, BY_EINVAL, "job %u: a job's number is between 1 and %u", job->job,
                              BY_JOBS_MAX - 1);
    if ((job->window & (job->window - 1)) != 0 || job->window > BY_WINDOW_MAX)
        return by_problem_say(problem, BY_EINVAL,
                              "job %u: a window of %u slots: it must be a power of two, at most %u", job->job,
                              job->window, BY_WINDOW_MAX);
    if (job->plan_count == 0)
        return by_problem_say(problem, BY_EINVAL, "job %u has no plan: give at least one", job->job);
    for (uint32_t i = 0; i < lowering->job_count; i++)
        if (lowering->jobs[i].job > job->job ||
            (lowering->jobs[i].job == job->job && lowering->jobs[i].tree_count > job->first_tree))
            return by_problem_say(problem, BY_EINVAL,
                                  "job %u follows job %u: give each job once, in ascending order", job->job,
                                  lowering->jobs[i].job);
    lowering->sharers += job->share > 0;
    if (lowering->sharers > BY_SHARES_MAX)
        return by_problem_say(problem, BY_ELIMIT,
                              "job %u: %u earlier jobs have a share, and a switch supports no more: remove "
                              "the share of one job",
                              job->job, BY_SHARES_MAX);
    number_ranks(lowering, job, &map);
    map.lost_links = job->lost_links;
    error = by_groups_make(&map, job, &groups, problem);
    if (error == 0) {
        error = take_trees(lowering, job->job, job->first_tree, &groups, problem);
        if (by_fraction_compare(groups.part, lowering->part) < 0)
            lowering->part = groups.part;
        by_groups_free(&groups);
    }
    if (error == 0 && job->first_tree > 0)
        error = add_rounds(lowering, job, before, problem);
    if (error != 0) {
        free(map.rank);
        return error;
    }
    for (uint32_t i = before; i < lowering->tree_count; i++)
        lowering->trees[i].window = job->window;
    lowering->slot_base[lowering->job_count] = copy_bases(lowering, job);
    lowering->jobs[lowering->job_count++] = (struct by_image_job){
        .job = job->job,
        .gen = job->gen ? job->gen : gen,
        .share = job->share,
        .rank_count = (uint16_t)map.rank_count,
        .rank = BY_RANK_NONE,
        .tree_count = (uint16_t)(job->first_tree + lowering->tree_count - before),
        .udp_port = by_lower_udp_port(lowering->topology, job->job),
    };
    return 0;
}

/*
 * Needs of one node: slots of jobs with a given window, and slots for each position of the other
 * windows.
 */
struct lower_need {
    uint64_t fixed;
    uint32_t places;
};

/*
 * Counts the needs of every node. `*fullest` receives the node with most slots per position of the
 * windows that are not given.
 */
static struct lower_need *count_needs(const struct by_lowering *lowering, uint32_t *fullest)
{
    struct lower_need *needs = by_alloc(lowering->node_count, sizeof(*needs));

    for (uint32_t i = 0; i < lowering->tree_count; i++)
        for (uint32_t j = 0; j < lowering->trees[i].hop_count; j++) {
            const struct by_hop *hop = &lowering->trees[i].hops[j];
            uint32_t depth = hop->child_count > 0 ? by_lower_depth(lowering, &lowering->trees[i], hop) +
                                                        by_lower_sets(&lowering->trees[i], hop)
                                                  : 0;

            if (lowering->trees[i].window > 0)
                needs[hop->node].fixed += (uint64_t)depth * lowering->trees[i].window;
            else
                needs[hop->node].places += depth;
        }
    *fullest = 0;
    for (uint32_t i = 1; i < lowering->node_count; i++)
        if (needs[i].places > needs[*fullest].places)
            *fullest = i;
    return needs;
}

/*
 * Whether every node has enough slots if all windows that are not given are `window`; else *node is
 * one that has not.
 */
static bool windows_fit(const struct lower_need *needs, uint32_t count, uint32_t window, uint32_t slots,
                        uint32_t *node)
{
    for (uint32_t i = 0; i < count; i++)
        if (needs[i].fixed + (uint64_t)needs[i].places * window > slots) {
            *node = i;
            return false;
        }
    return true;
}

/*
 * Chooses the windows that are not given. They are the same for all trees and nodes, because a tree
 * is as slow as its smallest window.
 */
static int set_windows(struct by_lowering *lowering, const struct by_lower_options *options,
                       struct by_problem *problem)
{
    uint32_t node, full, window = options->window;
    struct lower_need *needs = count_needs(lowering, &full);
    /* A tree counts as often as it needs slots. */
    const char *pairs = options->det ? " (for --det counted once for every two children)" : "";
    char text[300];

    node = full;
    if (needs[full].places > BY_ENTRIES_MAX ||
        !windows_fit(needs, lowering->node_count, 1, options->slots, &node)) {
        by_problem_say(problem, BY_ELIMIT,
                       "'%s' is in %u trees%s and has %u slots%s: raise --slots, or plan with a smaller "
                       "--fixed-k, or fewer collectives",
                       lowering->topology->nodes[node].name, needs[node].places, pairs, options->slots,
                       needs[node].fixed > 0 ? ", some of which jobs with their own windows use" : "");
        free(needs);
        return BY_ELIMIT;
    }
    while (!windows_fit(needs, lowering->node_count, window, options->slots, &node))
        window /= 2;
    if (window < options->window) {
        snprintf(text, sizeof(text),
                 "windows are %u slots instead of %u, because '%s' is in %u trees%s and has %u slots: raise "
                 "--slots for more",
                 window, options->window, lowering->topology->nodes[node].name, needs[node].places, pairs,
                 options->slots);
        add_note(lowering, text);
    }
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        if (lowering->trees[i].window == 0)
            lowering->trees[i].window = window;
    lowering->window = window;
    for (uint32_t i = 0; i < lowering->node_count; i++) {
        uint64_t slots = needs[i].fixed + (uint64_t)needs[i].places * window;

        lowering->slots = slots > lowering->slots ? (uint32_t)slots : lowering->slots;
    }
    free(needs);
    return 0;
}

/* Adds the relays along one direction of a path of `count` cables that starts at `from`. */
static void add_relays(struct by_lowering *lowering, const struct by_lowered_tree *tree, uint32_t from,
                       const struct by_hop_step *way, uint32_t count, uint32_t *room)
{
    const struct by_topology *topology = lowering->topology;

    for (uint32_t i = 0; i + 1 < count; i++) {
        if (by_site_runs(topology, way[i].to) != BY_SITE_BANYAN)
            continue;
        BY_GROW(lowering->relays, lowering->relay_count, *room);
        lowering->relays[lowering->relay_count++] = (struct by_lowered_relay){
            .node = way[i].to,
            .job = tree->job,
            .tree = tree->tree,
            .src_ip = by_address_ip(topology, way[0].link, from),
            .dst_ip = by_address_ip(topology, way[count - 1].link, way[count - 1].to),
            .port = (uint16_t)by_address_port(&lowering->map, way[i + 1].link, way[i].to),
            .from = (uint16_t)by_address_port(&lowering->map, way[i].link, way[i].to),
        };
    }
}

static int order_relays(const void *a, const void *b)
{
    const struct by_lowered_relay *x = a, *y = b;
    uint64_t high_x = (uint64_t)x->node << 32 | (uint32_t)x->job << 16 | x->tree;
    uint64_t high_y = (uint64_t)y->node << 32 | (uint32_t)y->job << 16 | y->tree;
    uint64_t low_x = (uint64_t)x->src_ip << 32 | x->dst_ip, low_y = (uint64_t)y->src_ip << 32 | y->dst_ip;

    if (high_x != high_y)
        return high_x < high_y ? -1 : 1;
    return low_x < low_y ? -1 : low_x > low_y;
}

static void collect_relays(struct by_lowering *lowering)
{
    uint32_t room = 0;

    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        for (uint32_t j = 1; j < tree->hop_count; j++) {
            const struct by_hop *hop = &tree->hops[j];
            add_relays(lowering, tree, hop->parent, hop->down, hop->down_count, &room);
            add_relays(lowering, tree, hop->node, hop->up, hop->up_count, &room);
        }
    }
    if (lowering->relay_count > 0)
        qsort(lowering->relays, lowering->relay_count, sizeof(*lowering->relays), order_relays);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    /* FNV-1a, 64 bits. */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/*
 * Refuses a host that forwards for one job while it is a rank of another: its program would have to
 * take part in both.
 */
static int check_relays(const struct by_lowering *lowering, struct by_problem *problem)
{
    for (uint32_t i = 0; i < lowering->relay_count; i++)
        for (uint32_t j = 0; j < lowering->job_count; j++)
            if (lowering->ranks[j][lowering->relays[i].node] != UINT32_MAX)
                return by_problem_say(
                    problem, BY_EUNSUPPORTED,
                    "'%s' would forward for job %u and is a rank of job %u: hosts cannot do "
                    "both; plan job %u without it",
                    lowering->topology->nodes[lowering->relays[i].node].name, lowering->relays[i].job,
                    lowering->jobs[j].job, lowering->relays[i].job);
    return 0;
}

static uint32_t index_of(const struct by_lowering *lowering, uint16_t job)
{
    uint32_t i = 0;

    while (i + 1 < lowering->job_count && lowering->jobs[i].job != job)
        i++;
    return i;
}

struct by_lower_need by_lowering_tree_need(const struct by_lowering *lowering,
                                           const struct by_lowered_tree *tree, uint32_t node)
{
    uint32_t index = tree->hop_of[node];
    const struct by_hop *hop = index != BY_LOWER_NODE_NONE ? &tree->hops[index] : NULL;

    if (hop == NULL || hop->child_count == 0)
        return (struct by_lower_need){0};
    return (struct by_lower_need){1, tree->window *
                                         (by_lower_depth(lowering, tree, hop) + by_lower_sets(tree, hop))};
}

struct by_lower_need by_lowering_need(const struct by_lowering *lowering, uint16_t job, uint32_t node)
{
    struct by_lower_need need = {0};

    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        struct by_lower_need one = {0};

        if (tree->job == job)
            one = by_lowering_tree_need(lowering, tree, node);
        need.entries += one.entries;
        need.slots += one.slots;
    }
    return need;
}

uint32_t by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node)
{
    return lowering->ranks[index_of(lowering, job)][node];
}

uint32_t by_lowering_rank_count(const struct by_lowering *lowering, uint16_t job)
{
    return lowering->jobs[index_of(lowering, job)].rank_count;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    uint8_t bytes[8];

    by_put64(bytes, number);
    return mix(hash, bytes, sizeof(bytes));
}

/*
 * Returns a hash of what was lowered: jobs, generation, trees with their cables, sizes. It is the
 * same on all nodes, and never 0.
 */
static uint64_t cookie_of(const struct by_lowering *lowering)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < lowering->node_count; i++)
        hash = mix(hash, lowering->topology->nodes[i].name, strlen(lowering->topology->nodes[i].name) + 1);
    hash = mix_number(hash, (uint64_t)lowering->window << 32 | lowering->payload_max);
    if (lowering->det)
        hash = mix_number(hash, BY_MODE_DET);
    for (uint32_t i = 0; i < lowering->job_count; i++)
        hash = mix_number(hash, (uint64_t)lowering->jobs[i].job << 16 | lowering->jobs[i].gen);
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        hash = mix_number(hash, (uint64_t)tree->job << 48 | (uint64_t)tree->collectives << 32 | tree->share);
        hash = mix_number(hash, (uint64_t)tree->half << 16 | tree->owner);
        if (tree->window != lowering->window)
            hash = mix_number(hash, tree->window);
        if (tree->ops != BY_LOWER_OPS || tree->dtypes != BY_LOWER_DTYPES)
            hash = mix_number(hash, (uint64_t)tree->ops << 16 | tree->dtypes);
        for (uint32_t j = 0; j < tree->hop_count; j++) {
            hash = mix_number(hash, (uint64_t)tree->hops[j].node << 32 | tree->hops[j].parent);
            for (uint32_t k = 0; k < tree->hops[j].down_count; k++)
                hash = mix_number(hash, tree->hops[j].down[k].link);
            for (uint32_t k = 0; k < tree->hops[j].up_count; k++)
                hash = mix_number(hash, tree->hops[j].up[k].link);
        }
    }
    return hash ? hash : 1;
}

/* Decides whether the images of hosts can contain all trees completely. */
static void count_hops(struct by_lowering *lowering)
{
    uint64_t hops = 0;
    char text[160];

    for (uint32_t i = 0; i < lowering->tree_count; i++)
        hops += by_lower_hop_records(&lowering->trees[i]);
    lowering->brief = hops > BY_LOWER_HOPS_MAX;
    if (!lowering->brief || lowering->bare)
        return;
    snprintf(text, sizeof(text),
             "%" PRIu64
             " hops in all trees, more than the %u that hosts' tables hold: their errors name only "
             "neighbours",
             hops, BY_LOWER_HOPS_MAX);
    add_note(lowering, text);
}

int by_lower(const struct by_topology *topology, const struct by_lower_job *jobs, uint32_t job_count,
             const struct by_lower_options *given, struct by_lowering **result, struct by_problem *problem)
{
    struct by_lowering *lowering = by_alloc(1, sizeof(*lowering));
    struct by_lower_options options;
    int error = check_options(given, &options, problem);

    lowering->topology = topology;
    lowering->node_count = topology->node_count;
    lowering->part = (struct by_fraction){1, 1};
    lowering->jobs = by_alloc(job_count, sizeof(*lowering->jobs));
    lowering->ranks = by_alloc(job_count, sizeof(*lowering->ranks));
    lowering->slot_base = by_alloc(job_count, sizeof(*lowering->slot_base));
    if (error == 0)
        error = by_address_map_make(topology, &lowering->map, problem);
    lowering->det = options.det;
    lowering->bare = options.bare;
    for (uint32_t i = 0; i < job_count && error == 0; i++)
        error = add_job(lowering, &jobs[i], options.gen, problem);
    if (error == 0)
        error = by_lower_check_ways(lowering, problem);
    if (error == 0)
        error = by_lower_set_mtu(lowering, options.mtu, problem);
    if (error == 0)
        count_hops(lowering);
    if (error == 0)
        error = set_windows(lowering, &options, problem);
    if (error == 0) {
        for (uint32_t i = 0; i < lowering->tree_count; i++)
            by_lower_able(lowering, &lowering->trees[i]);
        for (uint32_t i = 0; i < lowering->tree_count; i++)
            if (lowering->trees[i].half == BY_HALF_UP)
                by_lower_able_pair(&lowering->trees[i], &lowering->trees[i + 1]);
        collect_relays(lowering);
        error = check_relays(lowering, problem);
    }
    if (error != 0) {
        by_lowering_free(lowering);
        return error;
    }
    lowering->cookie = cookie_of(lowering);
    if (options.cover != 0) {
        lowering->keys = by_alloc(job_count, sizeof(*lowering->keys));
        for (uint32_t i = 0; i < job_count; i++) {
            by_lower_key(&options, &lowering->jobs[i], jobs[i].secret, &lowering->keys[i]);
            lowering->keys[i].place =
                i > 0 && jobs[i - 1].job == jobs[i].job ? (uint8_t)(lowering->keys[i - 1].place + 1) : 0;
        }
    }
    *result = lowering;
    return 0;
}

void by_lowering_free(struct by_lowering *lowering)
{
    if (lowering == NULL)
        return;
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        struct by_hops hops = {.count = lowering->trees[i].hop_count, .hop = lowering->trees[i].hops};
        by_hops_free(&hops);
        free(lowering->trees[i].hop_of);
    }
    for (uint32_t i = 0; i < lowering->note_count; i++)
        free(lowering->notes[i]);
    by_address_map_free(&lowering->map);
    for (uint32_t i = 0; i < lowering->job_count; i++) {
        free(lowering->ranks[i]);
        free(lowering->slot_base[i]);
    }
    free(lowering->ranks);
    free(lowering->slot_base);
    if (lowering->keys != NULL)
        explicit_bzero(lowering->keys, lowering->job_count * sizeof(*lowering->keys));
    free(lowering->keys);
    free(lowering->notes);
    free(lowering->trees);
    free(lowering->relays);
    free(lowering->jobs);
    free(lowering);
}
