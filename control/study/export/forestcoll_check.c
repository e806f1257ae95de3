/*
 * Reads and checks ForestColl's tree XML. A send can happen once its source has the tree's data;
 * every node must receive them exactly once; the trees of each root must carry its whole shard. On
 * a topology, paths must consist of its links and switches, and their loads determine the rate. See
 * forestcoll.h.
 */
#include "control/study/export/forestcoll.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/xml.h"
#include "control/fabric/names.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Most sends of all trees (count). */
#define SENDS_MAX (1u << 26)
#define NONE      UINT32_MAX

struct forestcoll_check_tree {
    uint32_t root;
    int64_t index, chunks, height;
    uint32_t send_first, send_count;
    int line;
};

struct send {
    uint32_t from, to;
    uint32_t path_first, path_count; /* range in `path` */
    int line;
};

struct by_forestcoll {
    unsigned collective;
    int64_t each, total; /* total is -1 if it is not given */
    uint32_t name_count, name_room;
    char **names;
    bool *ends; /* by name: it sends, receives or is a root, so it is a compute node */
    uint32_t slot_count;
    uint32_t *slots; /* hash table: name + 1 */
    uint32_t tree_count, tree_room;
    struct forestcoll_check_tree *trees;
    uint32_t send_count, send_room;
    struct send *sends;
    uint32_t path_count, path_room;
    uint32_t *path;
};

struct by_forestcoll *by_forestcoll_new(void)
{
    struct by_forestcoll *forest = by_alloc(1, sizeof(*forest));

    forest->slot_count = 1024;
    forest->slots = by_alloc(forest->slot_count, sizeof(*forest->slots));
    return forest;
}

void by_forestcoll_free(struct by_forestcoll *forest)
{
    for (uint32_t i = 0; i < forest->name_count; i++)
        free(forest->names[i]);
    free(forest->names);
    free(forest->ends);
    free(forest->slots);
    free(forest->trees);
    free(forest->sends);
    free(forest->path);
    free(forest);
}

/* ---- names ---- */

static uint64_t hash(const char *text, size_t bytes)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        state = (state ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return state;
}

static void rehash(struct by_forestcoll *forest)
{
    free(forest->slots);
    forest->slot_count *= 2;
    forest->slots = by_alloc(forest->slot_count, sizeof(*forest->slots));
    for (uint32_t i = 0; i < forest->name_count; i++) {
        uint64_t at = hash(forest->names[i], strlen(forest->names[i]));

        while (forest->slots[at & (forest->slot_count - 1)])
            at++;
        forest->slots[at & (forest->slot_count - 1)] = i + 1;
    }
}

/*
 * Returns the number of a name, and adds the name if it is new. Returns NONE if there are too many
 * names.
 */
static uint32_t number_of(struct by_forestcoll *forest, const char *text, size_t bytes)
{
    uint64_t at = hash(text, bytes);
    uint32_t found;

    for (;; at++) {
        found = forest->slots[at & (forest->slot_count - 1)];
        if (found == 0)
            break;
        if (strncmp(forest->names[found - 1], text, bytes) == 0 && forest->names[found - 1][bytes] == '\0')
            return found - 1;
    }
    if (forest->name_count >= BY_TOPOLOGY_NODES_MAX)
        return NONE;
    if (forest->name_count == forest->name_room) {
        forest->name_room = forest->name_room ? 2 * forest->name_room : 64;
        forest->names = by_realloc(forest->names, forest->name_room, sizeof(*forest->names));
        forest->ends = by_realloc(forest->ends, forest->name_room, sizeof(*forest->ends));
    }
    forest->names[forest->name_count] = by_copy_part(text, bytes);
    forest->ends[forest->name_count] = false;
    forest->slots[at & (forest->slot_count - 1)] = ++forest->name_count;
    if (forest->name_count > forest->slot_count / 2)
        rehash(forest);
    return forest->name_count - 1;
}

static int read_node(struct by_forestcoll *forest, const struct by_xml_element *element,
                     const char *attribute, uint32_t *node, struct by_problem *problem)
{
    const char *text = by_xml_text(element, attribute);

    if (!text || !*text)
        return by_problem_set(problem, BY_EINVAL, element->place, "<%.40s> has no attribute %s; add it",
                              element->name, attribute);
    *node = number_of(forest, text, strlen(text));
    if (*node == NONE)
        return by_problem_set(problem, BY_ELIMIT, element->place, "the schedule names more than %u nodes",
                              BY_TOPOLOGY_NODES_MAX);
    forest->ends[*node] = true;
    return 0;
}

/* ---- reading ---- */

static int read_algorithm(struct by_forestcoll *forest, const struct by_xml_element *element,
                          struct by_problem *problem)
{
    const char *collective = by_xml_text(element, "coll");
    int error = by_xml_integer(element, "nchunkspernode", 1, INT32_MAX, &forest->each, problem);

    forest->total = -1;
    if (!error && by_xml_text(element, "nchunks"))
        error = by_xml_integer(element, "nchunks", 1, INT64_MAX, &forest->total, problem);
    forest->collective = collective ? by_collective_from_name(collective) : BY_COLLECTIVE_ALLGATHER;
    if (!error && (forest->collective == 0 || forest->collective == BY_COLLECTIVE_BARRIER))
        error = by_problem_set(
            problem, BY_EINVAL, element->place,
            "coll is '%.40s'; it must be allgather, reduce-scatter, allreduce, broadcast or reduce",
            collective);
    return error;
}

static int read_tree(struct by_forestcoll *forest, const struct by_xml_element *element,
                     struct by_problem *problem)
{
    struct forestcoll_check_tree tree = {.send_first = forest->send_count, .line = element->place.line};
    int error = read_node(forest, element, "root", &tree.root, problem);

    if (!error)
        error = by_xml_integer(element, "index", 0, INT32_MAX, &tree.index, problem);
    if (!error)
        error = by_xml_integer(element, "nchunks", 1, INT32_MAX, &tree.chunks, problem);
    if (!error)
        error = by_xml_integer(element, "height", 0, INT32_MAX, &tree.height, problem);
    if (error)
        return error;
    BY_GROW(forest->trees, forest->tree_count, forest->tree_room);
    forest->trees[forest->tree_count++] = tree;
    return 0;
}

/*
 * Returns the length of the next name of a path. Commas separate names, except inside parentheses:
 * "(0, 'GPU', 1)".
 */
static size_t name_bytes(const char *text)
{
    size_t bytes = 0;
    int depth = 0;

    for (; text[bytes] && (text[bytes] != ',' || depth > 0); bytes++)
        depth += text[bytes] == '(' ? 1 : text[bytes] == ')' ? -1 : 0;
    return bytes;
}

static int read_path(struct by_forestcoll *forest, const struct by_xml_element *element, struct send *send,
                     struct by_problem *problem)
{
    const char *text = by_xml_text(element, "path");

    send->path_first = forest->path_count;
    while (text && *text) {
        size_t bytes = name_bytes(text);
        uint32_t node = number_of(forest, text, bytes);

        if (node == NONE || forest->path_count >= SENDS_MAX)
            return by_problem_set(problem, BY_ELIMIT, element->place, "the paths name more than %u nodes",
                                  node == NONE ? BY_TOPOLOGY_NODES_MAX : SENDS_MAX);
        BY_GROW(forest->path, forest->path_count, forest->path_room);
        forest->path[forest->path_count++] = node;
        text += bytes + (text[bytes] == ',');
    }
    send->path_count = forest->path_count - send->path_first;
    if (send->path_count < 2 || forest->path[send->path_first] != send->from ||
        forest->path[forest->path_count - 1] != send->to)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "the path of the send from %.60s to %.60s does not lead from one to the other",
                              forest->names[send->from], forest->names[send->to]);
    return 0;
}

static int read_send(struct by_forestcoll *forest, const struct by_xml_element *element,
                     struct by_problem *problem)
{
    struct send send = {.line = element->place.line};
    int error = read_node(forest, element, "src", &send.from, problem);

    if (!error)
        error = read_node(forest, element, "dst", &send.to, problem);
    if (!error)
        error = read_path(forest, element, &send, problem);
    if (!error && forest->send_count >= SENDS_MAX)
        error = by_problem_set(problem, BY_ELIMIT, element->place, "the schedule has more than %u sends",
                               SENDS_MAX);
    if (error)
        return error;
    BY_GROW(forest->sends, forest->send_count, forest->send_room);
    forest->sends[forest->send_count++] = send;
    forest->trees[forest->tree_count - 1].send_count++;
    return 0;
}

int by_forestcoll_start(struct by_forestcoll *forest, const struct by_xml_element *element,
                        struct by_problem *problem)
{
    static const char *const names[] = {"Algo", "tree", "send"};

    if (element->depth > 2 || strcmp(element->name, names[element->depth]) != 0)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "<%.40s> does not belong here; a forest is <Algo> with <tree> with <send>",
                              element->name);
    return element->depth == 0   ? read_algorithm(forest, element, problem)
           : element->depth == 1 ? read_tree(forest, element, problem)
                                 : read_send(forest, element, problem);
}

/* ---- execution ---- */

/* Memory for one tree, by node. */
struct forestcoll_check_walk {
    uint32_t *arrival; /* the send that brings the tree's data, or NONE */
    uint32_t *first;   /* [names + 1]: first send of each source */
    uint32_t *order;   /* sends, sorted by source */
    uint32_t *depth;
    uint32_t *queue;
};

static int refuse(const struct by_forestcoll *forest, const struct forestcoll_check_tree *tree, int line,
                  struct by_problem *problem, const char *what, uint32_t node)
{
    return by_problem_set(problem, BY_EINVAL, (struct by_place){line, 1}, "tree %lld of root %.80s: %.80s %s",
                          (long long)tree->index, forest->names[tree->root], forest->names[node], what);
}

/*
 * Explains sends that cannot happen: names the circle in which they wait, or the source that
 * receives no data.
 */
static int explain_stuck(const struct by_forestcoll *forest, const struct forestcoll_check_tree *tree,
                         const struct forestcoll_check_walk *walk, uint32_t node, struct by_problem *problem)
{
    uint32_t count = 0, first;
    char text[240];
    size_t at = 0;

    /* Following the arrivals backwards ends at a node without data, or in a circle. */
    for (uint32_t steps = 0; steps <= forest->name_count; steps++) {
        if (walk->arrival[node] == NONE)
            return refuse(forest, tree, tree->line, problem, "sends but never receives the data", node);
        node = forest->sends[walk->arrival[node]].from;
    }
    first = node;
    do {
        if (count < 5 && at < sizeof(text))
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.50s", count ? " waits for " : "",
                                   forest->names[node]);
        count++;
        node = forest->sends[walk->arrival[node]].from;
    } while (node != first);
    return by_problem_set(problem, BY_EINVAL, (struct by_place){forest->sends[walk->arrival[first]].line, 1},
                          "tree %lld of root %.60s: cyclic wait of %u nodes: %s%s waits for the first",
                          (long long)tree->index, forest->names[tree->root], count, text,
                          count > 5 ? " ..." : "");
}

static void sort_sends(const struct by_forestcoll *forest, const struct forestcoll_check_tree *tree,
                       struct forestcoll_check_walk *walk)
{
    memset(walk->first, 0, ((size_t)forest->name_count + 2) * sizeof(*walk->first));
    for (uint32_t s = 0; s < tree->send_count; s++)
        walk->first[forest->sends[tree->send_first + s].from + 2]++;
    for (uint32_t i = 0; i < forest->name_count; i++)
        walk->first[i + 2] += walk->first[i + 1];
    for (uint32_t s = 0; s < tree->send_count; s++)
        walk->order[walk->first[forest->sends[tree->send_first + s].from + 1]++] = tree->send_first + s;
}

static int run_tree(const struct by_forestcoll *forest, const struct forestcoll_check_tree *tree,
                    struct forestcoll_check_walk *walk, struct by_problem *problem)
{
    uint32_t head = 0, tail = 0, height = 0;

    memset(walk->arrival, 0xff, forest->name_count * sizeof(*walk->arrival));
    memset(walk->depth, 0xff, forest->name_count * sizeof(*walk->depth));
    for (uint32_t s = tree->send_first; s < tree->send_first + tree->send_count; s++) {
        const struct send *send = &forest->sends[s];

        if (send->to == tree->root || walk->arrival[send->to] != NONE)
            return refuse(forest, tree, send->line, problem, "receives the same data twice", send->to);
        walk->arrival[send->to] = s;
    }
    sort_sends(forest, tree, walk);
    walk->depth[tree->root] = 0;
    walk->queue[tail++] = tree->root;
    while (head < tail) {
        uint32_t node = walk->queue[head++];

        height = walk->depth[node] > height ? walk->depth[node] : height;
        for (uint32_t i = walk->first[node]; i < walk->first[node + 1]; i++) {
            uint32_t to = forest->sends[walk->order[i]].to;

            walk->depth[to] = walk->depth[node] + 1;
            walk->queue[tail++] = to;
        }
    }
    for (uint32_t s = tree->send_first; s < tree->send_first + tree->send_count; s++)
        if (walk->depth[forest->sends[s].from] == NONE)
            return explain_stuck(forest, tree, walk, forest->sends[s].from, problem);
    for (uint32_t i = 0; i < forest->name_count; i++)
        if (forest->ends[i] && walk->depth[i] == NONE)
            return refuse(forest, tree, tree->line, problem, "never receives the data", i);
    if (tree->height != height)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){tree->line, 1},
                              "tree %lld of root %.80s is %u high, the file states %lld",
                              (long long)tree->index, forest->names[tree->root], height,
                              (long long)tree->height);
    return 0;
}

static int check_shares(const struct by_forestcoll *forest, uint64_t *total, struct by_problem *problem)
{
    bool shared = by_collective_is_sharded(forest->collective);
    int64_t *sum = by_alloc(forest->name_count, sizeof(*sum));
    uint32_t roots = 0;
    int error = 0;

    *total = 0;
    for (uint32_t t = 0; t < forest->tree_count && !error; t++) {
        const struct forestcoll_check_tree *tree = &forest->trees[t];

        roots += sum[tree->root] == 0;
        sum[tree->root] += tree->chunks;
        *total += (uint64_t)tree->chunks;
    }
    for (uint32_t i = 0; i < forest->name_count && !error; i++)
        if (shared && forest->ends[i] && sum[i] != forest->each)
            error = by_problem_set(problem, BY_EINVAL, (struct by_place){1, 1},
                                   "the trees of %.80s carry %lld chunks of its shard, which has %lld",
                                   forest->names[i], (long long)sum[i], (long long)forest->each);
    if (!error && !shared && forest->collective != BY_COLLECTIVE_ALLREDUCE && roots != 1)
        error =
            by_problem_set(problem, BY_EINVAL, (struct by_place){1, 1}, "%s has one root, the trees have %u",
                           by_collective_name(forest->collective), roots);
    if (!error && forest->total >= 0 && (uint64_t)forest->total != *total)
        error = by_problem_set(problem, BY_EINVAL, (struct by_place){1, 1},
                               "the trees carry %llu chunks, the file states %lld",
                               (unsigned long long)*total, (long long)forest->total);
    free(sum);
    return error;
}

/* ---- on a topology ---- */

struct wire {
    uint32_t from, to;
    int64_t capacity, load;
};

static int compare_wires(const void *left, const void *right)
{
    const struct wire *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Adds load to the link from one node to another; returns false if there is no link. */
static bool load_wire(struct wire *wires, uint32_t count, uint32_t from, uint32_t to, int64_t chunks)
{
    struct wire key = {from, to, 0, 0};
    struct wire *found = bsearch(&key, wires, count, sizeof(*wires), compare_wires);

    return found && !__builtin_add_overflow(found->load, chunks, &found->load);
}

static uint32_t make_wires(const struct by_topology *topology, struct wire *wires)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < topology->arc_count; i++)
        wires[i] = (struct wire){topology->arcs[i].from, topology->arcs[i].to, topology->arcs[i].capacity, 0};
    if (topology->arc_count > 1)
        qsort(wires, topology->arc_count, sizeof(*wires), compare_wires);
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        if (kept > 0 && compare_wires(&wires[kept - 1], &wires[i]) == 0)
            wires[kept - 1].capacity += wires[i].capacity;
        else
            wires[kept++] = wires[i];
    }
    return kept;
}

static int load_send(const struct by_forestcoll *forest, const struct by_topology *topology,
                     const int64_t *node_of, const struct forestcoll_check_tree *tree,
                     const struct send *send, struct wire *wires, uint32_t wire_count,
                     struct by_problem *problem)
{
    bool down = by_collective_way(forest->collective) != BY_DATA_UP;
    bool up = by_collective_way(forest->collective) != BY_DATA_DOWN;

    for (uint32_t i = 0; i < send->path_count; i++) {
        uint32_t name = forest->path[send->path_first + i];
        int64_t node = node_of[name], next;

        if (node < 0)
            return by_problem_set(problem, BY_EINVAL, (struct by_place){send->line, 1},
                                  "the path names '%.80s', which is not a node of the topology",
                                  forest->names[name]);
        if (topology->nodes[node].compute != (i == 0 || i + 1 == send->path_count))
            return by_problem_set(
                problem, BY_EINVAL, (struct by_place){send->line, 1},
                "the path passes '%.80s': it must lead from compute node to compute node through "
                "switches",
                forest->names[name]);
        if (i + 1 == send->path_count)
            break;
        next = node_of[forest->path[send->path_first + i + 1]];
        if (next < 0)
            continue;
        if ((down && !load_wire(wires, wire_count, (uint32_t)node, (uint32_t)next, tree->chunks)) ||
            (up && !load_wire(wires, wire_count, (uint32_t)next, (uint32_t)node, tree->chunks)))
            return by_problem_set(problem, BY_EINVAL, (struct by_place){send->line, 1},
                                  "the topology has no link between '%.80s' and '%.80s' in the direction "
                                  "of the data",
                                  topology->nodes[node].name, topology->nodes[next].name);
    }
    return 0;
}

static int find_rate(const struct by_topology *topology, const struct wire *wires, uint32_t count,
                     uint64_t total, struct by_check_report *report, struct by_problem *problem)
{
    const struct wire *tightest = NULL;

    for (uint32_t i = 0; i < count; i++)
        if (wires[i].load > 0 && (!tightest || (__int128)wires[i].capacity * tightest->load <
                                                   (__int128)tightest->capacity * wires[i].load))
            tightest = &wires[i];
    if (!tightest)
        return 0;
    if (by_fraction_set((__int128)tightest->capacity * total, (__int128)tightest->load * topology->scale,
                        &report->rate) != 0)
        return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                              "the rate needs more than 63 bits");
    report->has_rate = true;
    return 0;
}

static int check_on_topology(const struct by_forestcoll *forest, const struct by_topology *topology,
                             uint64_t total, struct by_check_report *report, struct by_problem *problem)
{
    struct wire *wires = by_alloc(topology->arc_count, sizeof(*wires));
    int64_t *node_of = by_alloc(forest->name_count, sizeof(*node_of));
    uint32_t count = make_wires(topology, wires);
    struct by_names *names = by_names_new(topology);
    int error = 0;

    for (uint32_t i = 0; i < forest->name_count; i++)
        node_of[i] = by_names_find(names, forest->names[i], strlen(forest->names[i]));
    by_names_free(names);
    if (report->rank_count != by_topology_compute_count(topology))
        error =
            by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                           "the schedule has %u nodes that send or receive, the topology %u compute nodes",
                           report->rank_count, by_topology_compute_count(topology));
    for (uint32_t t = 0; t < forest->tree_count; t++)
        for (uint32_t s = 0; s < forest->trees[t].send_count && !error; s++)
            error = load_send(forest, topology, node_of, &forest->trees[t],
                              &forest->sends[forest->trees[t].send_first + s], wires, count, problem);
    if (!error)
        error = find_rate(topology, wires, count, total, report, problem);
    free(wires);
    free(node_of);
    return error;
}

static int run_trees(const struct by_forestcoll *forest, struct by_problem *problem)
{
    struct forestcoll_check_walk walk = {.arrival = by_alloc(forest->name_count, sizeof(uint32_t)),
                                         .first = by_alloc((size_t)forest->name_count + 2, sizeof(uint32_t)),
                                         .order = by_alloc(forest->send_count, sizeof(uint32_t)),
                                         .depth = by_alloc(forest->name_count, sizeof(uint32_t)),
                                         .queue = by_alloc((size_t)forest->name_count + 1, sizeof(uint32_t))};
    int error = 0;

    for (uint32_t t = 0; t < forest->tree_count && !error; t++)
        error = run_tree(forest, &forest->trees[t], &walk, problem);
    free(walk.arrival);
    free(walk.first);
    free(walk.order);
    free(walk.depth);
    free(walk.queue);
    return error;
}

int by_forestcoll_check(struct by_forestcoll *forest, const struct by_topology *topology,
                        struct by_check_report *report, struct by_problem *problem)
{
    uint64_t total = 0;
    int error;

    if (forest->tree_count == 0)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0}, "the file has no trees");
    *report = (struct by_check_report){.format = "ForestColl",
                                       .collective = forest->collective,
                                       .step_count = forest->send_count,
                                       .unit_count = forest->tree_count};
    for (uint32_t i = 0; i < forest->name_count; i++)
        report->rank_count += forest->ends[i];
    error = run_trees(forest, problem);
    for (uint32_t t = 0; t < forest->tree_count && !error; t++)
        if (forest->trees[t].height > report->depth) /* run_trees has checked it */
            report->depth = (uint32_t)forest->trees[t].height;
    for (uint32_t i = 0; i < forest->send_count; i++)
        if (forest->sends[i].path_count > report->path_hops + 1)
            report->path_hops = forest->sends[i].path_count - 1;
    report->depth *= by_collective_way(forest->collective) == BY_DATA_BOTH ? 2 : 1;
    if (!error)
        error = check_shares(forest, &total, problem);
    report->chunk_count = total;
    if (!error && topology)
        error = check_on_topology(forest, topology, total, report, problem);
    return error;
}
