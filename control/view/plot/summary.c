/* Divides a fabric into frames of equal parts. See summary.h. */
#include "control/view/plot/summary.h"

#include "control/base/alloc.h"
#include "control/view/plot/classes.h"
#include "control/view/plot/clique.h"
#include "control/view/plot/layout.h"

#define WHOLE_MAX   26u /* most nodes of a frame that is drawn whole */
#define SINGLES_MAX 4u  /* most switches at a frame's top that are drawn one by one */
#define FRAMES_MAX  8u  /* most different parts side by side; the smallest remaining ones are drawn as one */
#define CLASSES_MAX 24u
#define NODES_MIN   101u /* least nodes of a summarised fabric: a picture of every node would be a texture */
/*
 * For a fabric with switches and also many links between hosts: least number of hosts for which a
 * summary is used. In a row these links would be a tangle; in a frame the hosts are on a circle.
 */
#define DIRECT_HOSTS_MIN 10u
#define ROUNDS_MAX       16u

/* Copies of one part: `copies` rows of `size` nodes; the nodes of a column are equal. */
struct summary_part {
    uint32_t copies, size;
    uint32_t *nodes;
};

/* One connected piece that remains without the top. */
struct summary_piece {
    uint64_t signature;
    uint32_t first; /* index into the list `nodes` */
    uint32_t size;
    bool shaded;
};

struct summary_work {
    const struct by_fabric *fabric;
    struct by_summary *summary;
    const uint32_t *levels;
    const uint32_t *class_of;
    uint32_t *first, *next; /* adjacency lists: first[node], next[2 * channel + side] */
    uint32_t *clique;       /* by node: its group of switches; NULL if there are no groups */
    uint32_t *mark;         /* by node: the current split has yet to collect it */
    uint32_t group_room, frame_room;
    uint32_t widest; /* largest number of different parts side by side */
};

static uint32_t add_frame(struct summary_work *work, uint32_t parent, const struct summary_part *part,
                          bool whole)
{
    struct by_summary *summary = work->summary;

    BY_GROW(summary->frames, summary->frame_count, work->frame_room);
    summary->frames[summary->frame_count] =
        (struct by_plot_frame){.parent = parent, .copies = part->copies, .size = part->size, .whole = whole};
    return summary->frame_count++;
}

static uint32_t add_group(struct summary_work *work, uint32_t frame, uint32_t node)
{
    struct by_summary *summary = work->summary;

    BY_GROW(summary->groups, summary->group_count, work->group_room);
    summary->groups[summary->group_count] = (struct by_plot_group){
        .sample = node, .frame = frame, .level = work->levels[node], .shaded = work->fabric->shaded[node]};
    return summary->group_count++;
}

/* Puts the nodes of column `column` of the part, in all copies, into a group. */
static void join_group(struct summary_work *work, uint32_t group, const struct summary_part *part,
                       uint32_t column)
{
    for (uint32_t c = 0; c < part->copies; c++)
        work->summary->group_of[part->nodes[(size_t)c * part->size + column]] = group;
    work->summary->groups[group].count += part->copies;
    work->summary->groups[group].within++;
}

static void draw_whole(struct summary_work *work, uint32_t parent, const struct summary_part *part)
{
    uint32_t frame = add_frame(work, parent, part, true), hosts = 0;

    for (uint32_t k = 0; k < part->size; k++) { /* in the file's order */
        uint32_t i = 0, group;

        for (uint32_t c = 0, rank; c < part->size; c++) {
            rank = 0;
            for (uint32_t d = 0; d < part->size; d++)
                rank += part->nodes[d] < part->nodes[c];
            i = rank == k ? c : i;
        }
        group = add_group(work, frame, part->nodes[i]);

        if (work->fabric->topology->nodes[part->nodes[i]].compute)
            work->summary->groups[group].position = hosts++;
        join_group(work, group, part, i);
    }
}

/* Groups the nodes of level `top` by class; if they are few, each is a group. */
static void draw_top(struct summary_work *work, uint32_t frame, const struct summary_part *part, uint32_t top)
{
    uint32_t tops = 0, *group_of_class = by_alloc(part->size + 1, sizeof(*group_of_class));
    uint32_t *classes = by_alloc(part->size, sizeof(*classes)), count = 0;

    for (uint32_t i = 0; i < part->size; i++)
        tops += work->levels[part->nodes[i]] == top;
    for (uint32_t i = 0; i < part->size; i++) {
        uint32_t node = part->nodes[i], at = 0;

        if (work->levels[node] != top)
            continue;
        while (at < count && classes[at] != work->class_of[node])
            at++;
        if (at == count || tops <= SINGLES_MAX) {
            at = count++;
            classes[at] = work->class_of[node];
            group_of_class[at] = add_group(work, frame, node);
        }
        join_group(work, group_of_class[at], part, i);
    }
    free(classes);
    free(group_of_class);
}

static const uint32_t *sort_classes;

static int by_class(const void *left, const void *right)
{
    uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;

    if (sort_classes[x] != sort_classes[y])
        return sort_classes[x] < sort_classes[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sorts equal pieces together, otherwise in the file's order. */
static int by_signature(const void *left, const void *right)
{
    const struct summary_piece *x = left, *y = right;

    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->signature != y->signature)
        return x->signature < y->signature ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * Collects the marked nodes that are connected to `start`, and unmarks them. Returns their count.
 */
static uint32_t collect(struct summary_work *work, uint32_t start, uint32_t *nodes)
{
    const struct by_plot_channel *channels = work->fabric->channels;
    uint32_t head = 0, tail = 0;

    nodes[tail++] = start;
    work->mark[start] = 0;
    while (head < tail) {
        uint32_t node = nodes[head++];

        for (uint32_t i = work->first[node]; i != UINT32_MAX; i = work->next[i]) {
            uint32_t other = i % 2 ? channels[i / 2].a : channels[i / 2].b;

            if (work->mark[other] && (!work->clique || work->clique[other] == work->clique[node])) {
                work->mark[other] = 0;
                nodes[tail++] = other;
            }
        }
    }
    return tail;
}

/*
 * Splits all copies into connected pieces without the nodes of level `top`, and along groups of
 * switches. `nodes` has room for all nodes.
 */
static uint32_t find_pieces(struct summary_work *work, const struct summary_part *part, uint32_t top,
                            struct summary_piece *pieces, uint32_t *nodes)
{
    uint32_t count = 0, used = 0;

    for (size_t i = 0; i < (size_t)part->copies * part->size; i++)
        work->mark[part->nodes[i]] = work->levels[part->nodes[i]] != top;
    for (size_t i = 0; i < (size_t)part->copies * part->size; i++) {
        struct summary_piece *piece = &pieces[count];

        if (!work->mark[part->nodes[i]])
            continue;
        *piece = (struct summary_piece){.first = used, .signature = 0xcbf29ce484222325u};
        piece->size = collect(work, part->nodes[i], nodes + used);
        sort_classes = work->class_of;
        qsort(nodes + used, piece->size, sizeof(*nodes), by_class);
        for (uint32_t k = 0; k < piece->size; k++) {
            piece->signature = (piece->signature + work->class_of[nodes[used + k]] + 1) * 0x9e3779b97f4a7c15u;
            piece->signature ^= piece->signature >> 29;
            piece->shaded |= work->fabric->shaded[nodes[used + k]];
        }
        used += piece->size;
        count++;
    }
    qsort(pieces, count, sizeof(*pieces), by_signature);
    return count;
}

static void take_apart(struct summary_work *work, uint32_t parent, const struct summary_part *part);

/* A run of equal pieces. */
struct summary_run {
    uint32_t first, count; /* range of pieces */
    uint64_t weight;       /* total number of nodes; shaded runs have a higher weight than all others */
    uint64_t order;        /* the first node; single nodes come after parts */
};

static int by_weight(const void *left, const void *right)
{
    const struct summary_run *x = left, *y = right;

    return x->weight > y->weight ? -1 : x->weight < y->weight ? 1 : x->order < y->order ? -1 : 1;
}

static int by_order(const void *left, const void *right)
{
    const struct summary_run *x = left, *y = right;

    return x->order < y->order ? -1 : x->order > y->order;
}

/* Draws single nodes that are equal as one group. */
static void draw_singles(struct summary_work *work, uint32_t parent, const struct summary_part *part)
{
    uint32_t frame = add_frame(work, parent, part, false);
    uint32_t number = add_group(work, frame, part->nodes[0]);
    struct by_plot_group *group = &work->summary->groups[number];

    for (uint32_t c = 0; c < part->copies; c++)
        work->summary->group_of[part->nodes[c]] = number;
    group->count = part->copies;
    group->within = part->copies / work->summary->frames[parent].copies;
    work->summary->frames[frame].bare = true;
}

static void draw_run(struct summary_work *work, uint32_t frame, const struct summary_run *run,
                     const struct summary_piece *pieces, const uint32_t *nodes)
{
    struct summary_part part = {.copies = run->count, .size = pieces[run->first].size};

    part.nodes = by_alloc((size_t)part.copies * part.size, sizeof(*part.nodes));
    for (uint32_t c = 0; c < run->count; c++)
        memcpy(part.nodes + (size_t)c * part.size, nodes + pieces[run->first + c].first,
               part.size * sizeof(*part.nodes));
    if (part.size == 1)
        draw_singles(work, frame, &part);
    else
        take_apart(work, frame, &part);
    free(part.nodes);
}

/* Draws the remaining pieces as one group for each level. */
static void draw_rest(struct summary_work *work, uint32_t frame, const struct summary_run *runs,
                      uint32_t run_count, const struct summary_piece *pieces, const uint32_t *nodes)
{
    for (uint32_t r = 0; r < run_count; r++)
        for (uint32_t i = runs[r].first; i < runs[r].first + runs[r].count; i++)
            for (uint32_t k = 0; k < pieces[i].size; k++) {
                uint32_t node = nodes[pieces[i].first + k], group = 0;
                struct by_summary *summary = work->summary;

                while (group < summary->group_count &&
                       !(summary->groups[group].mixed && summary->groups[group].frame == frame &&
                         summary->groups[group].level == work->levels[node]))
                    group++;
                if (group == summary->group_count) {
                    group = add_group(work, frame, node);
                    summary->groups[group].mixed = true;
                }
                summary->groups[group].count++;
                summary->groups[group].within++;
                summary->group_of[node] = group;
            }
}

static void take_apart(struct summary_work *work, uint32_t parent, const struct summary_part *part)
{
    size_t all = (size_t)part->copies * part->size;
    struct summary_piece *pieces;
    struct summary_run *runs;
    uint32_t *nodes, top = 0, piece_count, run_count = 0, frame, kept;
    bool groups = work->clique && parent == UINT32_MAX;

    if (part->size <= WHOLE_MAX) {
        draw_whole(work, parent, part);
        return;
    }
    for (uint32_t i = 0; i < part->size; i++)
        top = work->levels[part->nodes[i]] > top ? work->levels[part->nodes[i]] : top;
    frame = add_frame(work, parent, part, false);
    if (groups)
        top = UINT32_MAX; /* no node is above them */
    else
        draw_top(work, frame, part, top);
    if (top == 0)
        return;
    pieces = by_alloc(all, sizeof(*pieces));
    nodes = by_alloc(all, sizeof(*nodes));
    runs = by_alloc(all, sizeof(*runs));
    piece_count = find_pieces(work, part, top, pieces, nodes);
    for (uint32_t i = 0; i < piece_count; i++) {
        if (i == 0 || pieces[i].size != pieces[i - 1].size || pieces[i].signature != pieces[i - 1].signature)
            runs[run_count++] = (struct summary_run){
                .first = i, .order = nodes[pieces[i].first] | (pieces[i].size == 1 ? (uint64_t)1 << 32 : 0)};
        runs[run_count - 1].count++;
        runs[run_count - 1].weight += pieces[i].size;
        runs[run_count - 1].weight |= pieces[i].shaded ? (uint64_t)1 << 40 : 0;
    }
    work->widest = run_count > work->widest ? run_count : work->widest;
    qsort(runs, run_count, sizeof(*runs), by_weight);
    kept = run_count > FRAMES_MAX ? FRAMES_MAX - 1 : run_count;
    qsort(runs, kept, sizeof(*runs), by_order);
    for (uint32_t r = 0; r < kept; r++)
        draw_run(work, frame, &runs[r], pieces, nodes);
    draw_rest(work, frame, runs + kept, run_count - kept, pieces, nodes);
    free(runs);
    free(nodes);
    free(pieces);
}

/* A channel that is to be put into a bundle. */
struct summary_end {
    uint32_t a, b, channel;
    unsigned turned;
    bool apart;
};

static int by_ends(const void *left, const void *right)
{
    const struct summary_end *x = left, *y = right;

    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->apart - y->apart;
}

static void add_way(struct by_bundle *bundle, unsigned way, double capacity, double load)
{
    double part = capacity > 0 ? load / capacity : 0;

    if (capacity <= 0)
        return;
    if (bundle->way[way].count++ == 0)
        bundle->way[way].part_min = bundle->way[way].part_max = part;
    bundle->way[way].part_min = part < bundle->way[way].part_min ? part : bundle->way[way].part_min;
    bundle->way[way].part_max = part > bundle->way[way].part_max ? part : bundle->way[way].part_max;
    bundle->way[way].part_sum += part;
    if (bundle->capacity_max <= 0 || capacity < bundle->capacity_min)
        bundle->capacity_min = capacity;
    bundle->capacity_max = capacity > bundle->capacity_max ? capacity : bundle->capacity_max;
}

/* Puts every channel into the bundle of its two groups. */
static void find_bundles(const struct summary_work *work)
{
    struct by_summary *summary = work->summary;
    const struct by_fabric *fabric = summary->fabric;
    struct summary_end *ends = by_alloc(fabric->channel_count, sizeof(*ends));

    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        uint32_t x = fabric->channels[c].a, y = fabric->channels[c].b;
        uint32_t a = summary->group_of[x], b = summary->group_of[y];

        ends[c] = (struct summary_end){a > b ? b : a, a > b ? a : b, c, a > b,
                                       work->clique && work->clique[x] != work->clique[y]};
    }
    qsort(ends, fabric->channel_count, sizeof(*ends), by_ends);
    summary->bundles = by_alloc(fabric->channel_count, sizeof(*summary->bundles));
    for (uint32_t i = 0; i < fabric->channel_count; i++) {
        const struct by_plot_channel *channel = &fabric->channels[ends[i].channel];
        struct by_bundle *bundle;

        if (i == 0 || by_ends(&ends[i - 1], &ends[i]) != 0)
            summary->bundles[summary->bundle_count++] =
                (struct by_bundle){.a = ends[i].a, .b = ends[i].b, .apart = ends[i].apart};
        bundle = &summary->bundles[summary->bundle_count - 1];
        bundle->count++;
        for (unsigned way = 0; way < 2; way++)
            add_way(bundle, way ^ ends[i].turned, channel->capacity[way], channel->load[way]);
    }
    free(ends);
}

static void find_neighbours(struct summary_work *work)
{
    const struct by_fabric *fabric = work->fabric;

    work->first = by_alloc(fabric->topology->node_count, sizeof(*work->first));
    work->next = by_alloc(2 * (size_t)fabric->channel_count, sizeof(*work->next));
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        work->first[n] = UINT32_MAX;
    for (uint32_t i = 0; i < 2 * fabric->channel_count; i++) {
        uint32_t node = i % 2 ? fabric->channels[i / 2].b : fabric->channels[i / 2].a;

        work->next[i] = work->first[node];
        work->first[node] = i;
    }
}

/*
 * Divides the fabric with the classes of `rounds` rounds; returns the largest number of different
 * parts in a frame.
 */
static uint32_t build(struct summary_work *work, uint32_t rounds, uint32_t *made)
{
    struct by_summary *summary = work->summary;
    struct summary_part part = {.copies = 1, .size = work->fabric->topology->node_count};
    struct by_classes classes;

    by_classes_find(work->fabric, work->levels, rounds, CLASSES_MAX, &classes);
    *made = classes.rounds;
    work->class_of = classes.of;
    work->widest = 0;
    summary->group_count = summary->frame_count = 0;
    part.nodes = by_alloc(part.size, sizeof(*part.nodes));
    for (uint32_t n = 0; n < part.size; n++)
        part.nodes[n] = n;
    take_apart(work, UINT32_MAX, &part);
    free(part.nodes);
    free(classes.of);
    return work->widest;
}

bool by_summary_suits(const struct by_fabric *fabric)
{
    const struct by_topology *topology = fabric->topology;
    uint32_t hosts = by_topology_compute_count(topology), direct = 0;

    for (uint32_t c = 0; c < fabric->channel_count; c++)
        direct +=
            topology->nodes[fabric->channels[c].a].compute && topology->nodes[fabric->channels[c].b].compute;
    return topology->node_count >= NODES_MIN ||
           (hosts < topology->node_count && hosts >= DIRECT_HOSTS_MIN && 2 * direct >= hosts);
}

struct by_summary *by_summary_make(const struct by_fabric *fabric)
{
    struct by_summary *summary = by_alloc(1, sizeof(*summary));
    uint32_t *levels = by_layout_levels(fabric), rounds = ROUNDS_MAX;
    struct summary_work work = {.fabric = fabric, .summary = summary, .levels = levels};

    summary->fabric = fabric;
    summary->group_of = by_alloc(fabric->topology->node_count, sizeof(*summary->group_of));
    work.mark = by_alloc(fabric->topology->node_count, sizeof(*work.mark));
    find_neighbours(&work);
    work.clique = by_alloc(fabric->topology->node_count, sizeof(*work.clique));
    if (by_clique_find(fabric, levels, work.clique) == 0) {
        free(work.clique);
        work.clique = NULL;
    }
    /*
     * With fewer rounds, fewer parts differ: reduce the rounds until the different parts fit side
     * by side.
     */
    while (build(&work, rounds, &rounds) > FRAMES_MAX && rounds > 0)
        rounds--;
    find_bundles(&work);
    by_summary_place(summary);
    free(work.clique);
    free(work.mark);
    free(work.first);
    free(work.next);
    free(levels);
    return summary;
}

void by_summary_free(struct by_summary *summary)
{
    if (summary == NULL)
        return;
    free(summary->groups);
    free(summary->bundles);
    free(summary->frames);
    free(summary->group_of);
    free(summary);
}
