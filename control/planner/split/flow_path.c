/*
 * The physical paths behind logical capacity. See flow_path.h. Within a piece, a "thread" is a path
 * with an amount, from the node that a half leaves to the node that a half enters; joins make
 * threads longer. A thread that starts or ends outside its piece waits on the list of the half by
 * which it crosses the border, until the surrounding piece uses that half.
 */
#include "control/planner/split/flow_path.h"

#include "control/base/alloc.h"
#include "control/planner/pack/tree.h"
#include "offload/base/assert.h"

#define NONE UINT32_MAX
/* Size of the table of times_joined, as a power of 2. */
#define JOINED_BITS 18

struct thread {
    uint32_t path;
    uint32_t next; /* next thread of the same list */
    int64_t amount;
};

/* A thread between two children of a group, to be continued into flow paths. */
struct whole {
    uint32_t thread;
    uint32_t group;
    uint32_t half; /* of the group's contraction */
};

struct weaver {
    struct by_laminar *laminar;
    const struct by_merge_group *groups;
    struct whole *wholes;
    uint32_t whole_count, whole_room;
    struct by_paths *paths;
    struct thread *threads;
    uint32_t thread_count, thread_room;
    uint32_t *leaving;  /* by half: threads in the piece of its tail that end with it */
    uint32_t *entering; /* by half: threads in the piece of its head that start with it */
    bool *removed;      /* by node */
    uint32_t *group_of; /* by node: the smallest group around it */
    uint16_t *joined;
    /* The current piece. */
    const struct by_piece *piece;
    uint32_t *first, *last; /* [from * count + to]: lists of threads */
    uint32_t *taken_path[2], taken_count[2], taken_room[2];
    int64_t *taken[2];
    /* Finished flow paths. */
    struct by_merge_flow_path *flow_paths;
    uint32_t flow_path_count, flow_path_room;
    uint32_t *nodes; /* a path under construction, which grows in both directions from the middle */
    uint32_t *used, used_count, used_room;
};

static uint32_t new_thread(struct weaver *weaver, uint32_t path, int64_t amount)
{
    BY_GROW(weaver->threads, weaver->thread_count, weaver->thread_room);
    weaver->threads[weaver->thread_count] = (struct thread){path, NONE, amount};
    return weaver->thread_count++;
}

/* Appends a thread to the list between two local nodes. */
static void append(struct weaver *weaver, uint32_t from, uint32_t to, uint32_t path, int64_t amount)
{
    size_t at = (size_t)from * weaver->piece->count + to;
    uint32_t thread = new_thread(weaver, path, amount);

    BY_ASSERT(weaver->first && weaver->last);
    if (weaver->first[at] == NONE)
        weaver->first[at] = thread;
    else
        weaver->threads[weaver->last[at]].next = thread;
    weaver->last[at] = thread;
}

/* Removes `amount` from a list, from all its threads in proportion. Rounding remainders are taken
 * from the largest first. Fills taken[side]. */
static void take(struct weaver *weaver, uint32_t from, uint32_t to, int64_t amount, int side)
{
    size_t at = (size_t)from * weaver->piece->count + to;
    int64_t total = 0, left = amount;
    uint32_t count = 0;

    BY_ASSERT(weaver->first && weaver->threads);
    while (weaver->first[at] != NONE && weaver->threads[weaver->first[at]].amount == 0)
        weaver->first[at] = weaver->threads[weaver->first[at]].next;
    for (uint32_t i = weaver->first[at]; i != NONE; i = weaver->threads[i].next)
        total += weaver->threads[i].amount;
    BY_ASSERT(total >= amount);
    for (uint32_t i = weaver->first[at]; i != NONE; i = weaver->threads[i].next) {
        struct thread *thread = &weaver->threads[i];

        if (thread->amount == 0)
            continue;
        if (count == weaver->taken_room[side]) {
            weaver->taken_room[side] = count ? count * 2 : 16;
            weaver->taken[side] =
                by_realloc(weaver->taken[side], weaver->taken_room[side], sizeof(*weaver->taken[side]));
            weaver->taken_path[side] = by_realloc(weaver->taken_path[side], weaver->taken_room[side],
                                                  sizeof(*weaver->taken_path[side]));
        }
        BY_ASSERT(weaver->taken[side] && weaver->taken_path[side]);
        weaver->taken_path[side][count] = i;
        weaver->taken[side][count] = (int64_t)((__int128)thread->amount * amount / total);
        left -= weaver->taken[side][count++];
    }
    while (left > 0) { /* rounding remainders, largest first */
        uint32_t best = NONE;
        int64_t most = -1;

        for (uint32_t i = 0; i < count; i++) {
            int64_t has = weaver->threads[weaver->taken_path[side][i]].amount;
            int64_t rest = (int64_t)((__int128)has * amount - (__int128)weaver->taken[side][i] * total);

            if (weaver->taken[side][i] < has && rest > most) {
                most = rest;
                best = i;
            }
        }
        BY_ASSERT(best != NONE);
        weaver->taken[side][best]++;
        left--;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t thread = weaver->taken_path[side][i];

        weaver->threads[thread].amount -= weaver->taken[side][i];
        weaver->taken_path[side][i] = weaver->threads[thread].path;
    }
    weaver->taken_count[side] = count;
}

/* Returns the path of `head` followed by `tail`, which starts where `head` ends. */
static uint32_t join_paths(struct weaver *weaver, uint32_t head, uint32_t tail)
{
    struct by_path a = by_paths_get(weaver->paths, head), b = by_paths_get(weaver->paths, tail);
    uint32_t count = a.node_count + b.node_count - 1, nodes[64],
             *all = count <= 64 ? nodes : by_alloc(count, 4);
    uint32_t path;

    memcpy(all, a.nodes, a.node_count * sizeof(*all));
    memcpy(all + a.node_count, b.nodes + 1, (b.node_count - 1) * sizeof(*all));
    path = by_paths_add(weaver->paths, all, count);
    if (all != nodes)
        free(all);
    return path;
}

static void join(struct weaver *weaver, const struct by_join *wanted)
{
    uint32_t i = 0, j = 0;

    take(weaver, wanted->from, wanted->through, wanted->amount, 0);
    take(weaver, wanted->through, wanted->to, wanted->amount, 1);
    while (i < weaver->taken_count[0] && j < weaver->taken_count[1] && wanted->from != wanted->to) {
        int64_t amount =
            weaver->taken[0][i] < weaver->taken[1][j] ? weaver->taken[0][i] : weaver->taken[1][j];

        if (amount > 0)
            append(weaver, wanted->from, wanted->to,
                   join_paths(weaver, weaver->taken_path[0][i], weaver->taken_path[1][j]), amount);
        weaver->taken[0][i] -= amount;
        weaver->taken[1][j] -= amount;
        i += weaver->taken[0][i] == 0;
        j += j < weaver->taken_count[1] && weaver->taken[1][j] == 0;
    }
}

static uint32_t half_between(const struct weaver *weaver, uint32_t from, uint32_t to)
{
    uint32_t half = by_mesh_find(weaver->laminar->net, from, to);

    BY_ASSERT(half != NONE);
    return half;
}

static uint32_t half_path(struct weaver *weaver, uint32_t half)
{
    uint32_t nodes[2] = {weaver->laminar->net->tail[half], by_mesh_head(weaver->laminar->net, half)};

    return by_paths_add(weaver->paths, nodes, 2);
}

/* Puts every half that touches the piece on its list. */
static void begin_piece(struct weaver *weaver)
{
    const struct by_laminar *laminar = weaver->laminar;
    const struct by_mesh *net = laminar->net;
    const struct by_laminar_group *group = &laminar->groups[weaver->piece->group];

    for (uint32_t i = 0; i < group->node_count; i++) {
        uint32_t node = group->nodes[i], at = laminar->child_of[node];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            const struct by_near *near = &net->near[j];
            uint32_t other = laminar->child_of[near->node];

            if (other == at)
                continue;
            if (laminar->capacity[near->half] > 0)
                append(weaver, other, at, half_path(weaver, near->half), laminar->capacity[near->half]);
            if (other == weaver->piece->outside && laminar->capacity[near->half ^ 1] > 0)
                append(weaver, at, other, half_path(weaver, near->half ^ 1),
                       laminar->capacity[near->half ^ 1]);
        }
    }
}

/* Adds a thread to the list of a half. */
static void hang(struct weaver *weaver, uint32_t *list, uint32_t thread)
{
    weaver->threads[thread].next = *list;
    *list = thread;
}

static void note_whole(struct weaver *weaver, uint32_t thread, uint32_t group, uint32_t from, uint32_t to)
{
    const struct by_contraction *contraction = weaver->groups[group].contraction;
    uint32_t half = by_mesh_find(contraction->net, contraction->slot[from], contraction->slot[to]);

    BY_ASSERT(half != NONE);
    BY_GROW(weaver->wholes, weaver->whole_count, weaver->whole_room);
    weaver->wholes[weaver->whole_count++] = (struct whole){thread, group, half};
}

/* Sorts the threads that remain after the joins: threads across the border go to the list of their
 * half; the others become flow paths later. */
static void end_piece(struct weaver *weaver)
{
    uint32_t count = weaver->piece->count, outside = weaver->piece->outside;

    BY_ASSERT(weaver->first && weaver->threads);
    for (uint32_t from = 0; from < count; from++)
        for (uint32_t to = 0; to < count; to++)
            for (uint32_t i = weaver->first[(size_t)from * count + to], next; i != NONE; i = next) {
                struct by_path path = by_paths_get(weaver->paths, weaver->threads[i].path);

                next = weaver->threads[i].next;
                if (weaver->threads[i].amount == 0)
                    continue;
                if (from != outside && to != outside)
                    note_whole(weaver, i, weaver->piece->group, from, to);
                else if (path.node_count > 2 && to == outside)
                    hang(weaver,
                         &weaver->leaving[half_between(weaver, path.nodes[path.node_count - 2],
                                                       path.nodes[path.node_count - 1])],
                         i);
                else if (path.node_count > 2)
                    hang(weaver, &weaver->entering[half_between(weaver, path.nodes[0], path.nodes[1])], i);
            }
}

/* Processes a piece with joins. */
static void weave_piece(struct weaver *weaver, uint32_t group, const struct by_flow_path_joins *joins)
{
    struct by_piece piece;
    size_t cells;

    by_piece_make(weaver->laminar, group, &piece);
    weaver->piece = &piece;
    cells = (size_t)piece.count * piece.count;
    weaver->first = by_alloc(cells, sizeof(*weaver->first));
    weaver->last = by_alloc(cells, sizeof(*weaver->last));
    memset(weaver->first, 0xff, cells * sizeof(*weaver->first));
    begin_piece(weaver);
    for (uint32_t i = 0; i < joins->count; i++)
        if (joins->joins[i].amount > 0)
            join(weaver, &joins->joins[i]);
    end_piece(weaver);
    free(weaver->first);
    free(weaver->last);
    weaver->piece = NULL;
    by_piece_free(&piece);
}

/* Processes a piece without joins: each half between two of its children is a thread. */
static void weave_halves(struct weaver *weaver, uint32_t number)
{
    struct by_laminar *laminar = weaver->laminar;
    const struct by_mesh *net = laminar->net;
    const struct by_laminar_group *group = &laminar->groups[number];
    uint32_t n = net->node_count;

    for (uint32_t i = 0; i < n; i++)
        laminar->child_of[i] = NONE;
    for (uint32_t i = 0; i < group->child_count; i++) {
        uint32_t child = group->children[i];

        if (child < n)
            laminar->child_of[child] = i;
        for (uint32_t j = 0; child >= n && j < laminar->groups[child - n].node_count; j++)
            laminar->child_of[laminar->groups[child - n].nodes[j]] = i;
    }
    for (uint32_t i = 0; i < group->node_count; i++) {
        uint32_t node = group->nodes[i];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            const struct by_near *near = &net->near[j];
            uint32_t other = laminar->child_of[near->node];

            if (other != NONE && other != laminar->child_of[node] && laminar->capacity[near->half] > 0)
                note_whole(weaver,
                           new_thread(weaver, half_path(weaver, near->half), laminar->capacity[near->half]),
                           number, other, laminar->child_of[node]);
        }
    }
}

/* How often a node has been joined to a distant group, from a table of counts in which collisions
 * are rare. */
static uint16_t *times_joined(struct weaver *weaver, uint32_t node, uint32_t far)
{
    uint64_t key = ((uint64_t)node << 32 | far) * 0x9e3779b97f4a7c15u;

    return &weaver->joined[key >> (64 - JOINED_BITS)];
}

/*
 * Among the threads that wait on a half's list, chooses the one whose other end has been joined
 * least often to the group beyond. Each node of a group then has its own path to each other group,
 * and trees need no detour. Used threads are dropped.
 */
static uint32_t choose_waiting(struct weaver *weaver, uint32_t *list, bool leaving, uint32_t far)
{
    uint32_t best = NONE, least = UINT32_MAX, *link = list;

    while (*link != NONE) {
        struct thread *thread = &weaver->threads[*link];
        uint32_t end;

        if (thread->amount == 0) {
            *link = thread->next;
            continue;
        }
        end = leaving ? by_paths_from(weaver->paths, thread->path) : by_paths_to(weaver->paths, thread->path);
        if (*times_joined(weaver, end, far) < least) {
            least = *times_joined(weaver, end, far);
            best = *link;
        }
        link = &thread->next;
    }
    BY_ASSERT(best != NONE);
    *times_joined(weaver,
                  leaving ? by_paths_from(weaver->paths, weaver->threads[best].path)
                          : by_paths_to(weaver->paths, weaver->threads[best].path),
                  far) += 1;
    return best;
}

/* Adds a part to the path under construction: a thread that waits on a half's list. */
static uint32_t use_waiting(struct weaver *weaver, bool leaving, uint32_t from, uint32_t to, uint32_t far)
{
    uint32_t half = half_between(weaver, from, to);
    uint32_t thread =
        choose_waiting(weaver, leaving ? &weaver->leaving[half] : &weaver->entering[half], leaving, far);

    BY_GROW(weaver->used, weaver->used_count, weaver->used_room);
    weaver->used[weaver->used_count++] = thread;
    return thread;
}

/* The smallest group around a node, which counts as one place for distant nodes. */
static uint32_t far_group(const struct weaver *weaver, uint32_t node)
{
    return weaver->group_of[node];
}

/* Extends the path in nodes[*begin..*end) at both ends until it joins nodes that remain. */
static void extend(struct weaver *weaver, uint32_t *begin, uint32_t *end)
{
    uint32_t *nodes = weaver->nodes;
    uint32_t before = far_group(weaver, nodes[*begin]), behind = far_group(weaver, nodes[*end - 1]);
    struct by_path path;

    while (weaver->removed[nodes[*begin]]) {
        path = by_paths_get(
            weaver->paths,
            weaver->threads[use_waiting(weaver, true, nodes[*begin], nodes[*begin + 1], behind)].path);
        *begin -= path.node_count - 2;
        memcpy(nodes + *begin, path.nodes, (path.node_count - 2) * sizeof(*nodes));
    }
    while (weaver->removed[nodes[*end - 1]]) {
        path = by_paths_get(
            weaver->paths,
            weaver->threads[use_waiting(weaver, false, nodes[*end - 2], nodes[*end - 1], before)].path);
        memcpy(nodes + *end, path.nodes + 2, (path.node_count - 2) * sizeof(*nodes));
        *end += path.node_count - 2;
    }
}

/* Turns a thread into flow paths, each with the largest amount that all parts of its path have. */
static void continue_thread(struct weaver *weaver, const struct whole *whole, uint32_t room)
{
    uint32_t thread = whole->thread;

    while (weaver->threads[thread].amount > 0) {
        uint32_t id = weaver->threads[thread].path;
        struct by_path path = by_paths_get(weaver->paths, id);
        int64_t amount = weaver->threads[thread].amount;
        uint32_t begin = room, end = room + path.node_count, count;

        memcpy(weaver->nodes + begin, path.nodes, path.node_count * sizeof(*path.nodes));
        weaver->used_count = 0;
        extend(weaver, &begin, &end);
        for (uint32_t i = 0; i < weaver->used_count; i++)
            if (weaver->threads[weaver->used[i]].amount < amount)
                amount = weaver->threads[weaver->used[i]].amount;
        for (uint32_t i = 0; i < weaver->used_count; i++)
            weaver->threads[weaver->used[i]].amount -= amount;
        weaver->threads[thread].amount -= amount;
        count = by_tree_cut_loops(weaver->nodes + begin, end - begin);
        if (weaver->used_count > 0 || count < end - begin)
            id = by_paths_add(weaver->paths, weaver->nodes + begin, count);
        BY_GROW(weaver->flow_paths, weaver->flow_path_count, weaver->flow_path_room);
        weaver->flow_paths[weaver->flow_path_count++] = (struct by_merge_flow_path){
            weaver->nodes[begin], weaver->nodes[begin + count - 1], amount, id, count - 1, whole->group,
            whole->half};
    }
}

static void weaver_make(struct weaver *weaver, struct by_laminar *laminar, struct by_paths *paths)
{
    uint32_t n = laminar->net->node_count, halves = 2 * laminar->net->pair_count;

    *weaver = (struct weaver){.laminar = laminar, .paths = paths};
    weaver->leaving = by_alloc(halves, sizeof(*weaver->leaving));
    weaver->entering = by_alloc(halves, sizeof(*weaver->entering));
    memset(weaver->leaving, 0xff, halves * sizeof(*weaver->leaving));
    memset(weaver->entering, 0xff, halves * sizeof(*weaver->entering));
    weaver->removed = by_alloc(n, sizeof(*weaver->removed));
    for (uint32_t i = 0; i < n; i++)
        weaver->removed[i] = !laminar->member[i];
    weaver->group_of = by_alloc(n, sizeof(*weaver->group_of));
    for (uint32_t g = 0; g < laminar->group_count; g++)
        for (uint32_t i = 0; i < laminar->groups[g].child_count; i++)
            if (laminar->groups[g].children[i] < n)
                weaver->group_of[laminar->groups[g].children[i]] = g;
    weaver->joined = by_alloc((size_t)1 << JOINED_BITS, sizeof(*weaver->joined));
}

static void weaver_free(struct weaver *weaver)
{
    for (int side = 0; side < 2; side++) {
        free(weaver->taken_path[side]);
        free(weaver->taken[side]);
    }
    free(weaver->threads);
    free(weaver->wholes);
    free(weaver->leaving);
    free(weaver->entering);
    free(weaver->removed);
    free(weaver->group_of);
    free(weaver->joined);
    free(weaver->nodes);
    free(weaver->used);
}

struct by_merge_flow_path *by_flow_path_make(struct by_laminar *laminar,
                                             const struct by_flow_path_joins *joins,
                                             const struct by_merge_group *groups, struct by_paths *paths,
                                             uint32_t *count)
{
    uint32_t longest = 2, room;
    struct weaver weaver;

    weaver_make(&weaver, laminar, paths);
    weaver.groups = groups;
    for (uint32_t group = 0; group < laminar->group_count; group++) {
        if (joins[group].count > 0)
            weave_piece(&weaver, group, &joins[group]);
        else
            weave_halves(&weaver, group);
    }
    for (uint32_t i = 0; i < paths->count; i++)
        longest = by_paths_hops(paths, i) + 1 > longest ? by_paths_hops(paths, i) + 1 : longest;
    room = longest * (laminar->group_count + 1);
    weaver.nodes = by_alloc(3 * (size_t)room, sizeof(*weaver.nodes));
    for (uint32_t i = 0; i < weaver.whole_count; i++)
        continue_thread(&weaver, &weaver.wholes[i], room);
    *count = weaver.flow_path_count;
    weaver_free(&weaver);
    return weaver.flow_paths;
}
