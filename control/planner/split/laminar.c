/* Laminar families of tight sets, and their pieces. See laminar.h; tight.c finds the tight sets. */
#include "control/planner/split/laminar.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

void by_laminar_make(struct by_laminar *laminar, const struct by_mesh *net, const int64_t *capacity,
                     const int64_t *roots, const bool *member, const bool *compute)
{
    uint32_t n = net->node_count;
    bool *touched = by_alloc(n, sizeof(*touched));
    struct by_laminar_group *top;

    *laminar = (struct by_laminar){
        .net = net, .capacity = capacity, .roots = roots, .member = member, .compute = compute};
    laminar->child_of = by_alloc(n, sizeof(*laminar->child_of));
    BY_GROW(laminar->groups, laminar->group_count, laminar->group_room);
    top = &laminar->groups[laminar->group_count++];
    *top = (struct by_laminar_group){0};
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        if (capacity[half] > 0)
            touched[net->tail[half]] = touched[by_mesh_head(net, half)] = true;
    top->children = by_alloc(n, sizeof(*top->children));
    top->nodes = by_alloc(n, sizeof(*top->nodes));
    for (uint32_t i = 0; i < n; i++) {
        laminar->total += roots[i];
        if (touched[i] || roots[i] > 0 || member[i])
            top->children[top->child_count++] = top->nodes[top->node_count++] = i;
    }
    top->roots = laminar->total;
    free(touched);
}

void by_laminar_free(struct by_laminar *laminar)
{
    for (uint32_t i = 0; i < laminar->group_count; i++) {
        free(laminar->groups[i].children);
        free(laminar->groups[i].nodes);
    }
    free(laminar->groups);
    free(laminar->child_of);
    *laminar = (struct by_laminar){0};
}

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

uint32_t by_laminar_sort(uint32_t *ids, uint32_t count)
{
    uint32_t kept = 0;

    if (count > 1)
        qsort(ids, count, sizeof(*ids), compare_numbers);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || ids[kept - 1] != ids[i])
            ids[kept++] = ids[i];
    return kept;
}

uint32_t by_laminar_insert(struct by_laminar *laminar, uint32_t group, const uint32_t *children,
                           uint32_t count)
{
    uint32_t n = laminar->net->node_count, number = laminar->group_count, kept = 0, next = 0;
    struct by_laminar_group *made, *parent;

    BY_GROW(laminar->groups, laminar->group_count, laminar->group_room);
    made = &laminar->groups[laminar->group_count++];
    parent = &laminar->groups[group];
    *made = (struct by_laminar_group){.parent = group, .child_count = count};
    made->children = by_alloc(count, sizeof(*made->children));
    memcpy(made->children, children, count * sizeof(*children));
    for (uint32_t i = 0; i < count; i++)
        made->node_count += children[i] < n ? 1 : laminar->groups[children[i] - n].node_count;
    made->nodes = by_alloc(made->node_count, sizeof(*made->nodes));
    made->node_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (children[i] < n) {
            made->nodes[made->node_count++] = children[i];
            made->roots += laminar->roots[children[i]];
        } else {
            struct by_laminar_group *inner = &laminar->groups[children[i] - n];

            inner->parent = number;
            memcpy(made->nodes + made->node_count, inner->nodes, inner->node_count * sizeof(*inner->nodes));
            made->node_count += inner->node_count;
            made->roots += inner->roots;
        }
    }
    qsort(made->nodes, made->node_count, sizeof(*made->nodes), compare_numbers);
    for (uint32_t i = 0; i < parent->child_count; i++) {
        if (next < count && parent->children[i] == children[next])
            next++;
        else
            parent->children[kept++] = parent->children[i];
    }
    BY_ASSERT(next == count && kept == parent->child_count - count);
    parent->children[kept++] = n + number; /* the highest id so far, so the order is kept */
    parent->child_count = kept;
    return number;
}

/* Records for every node inside the group its position in the piece. */
static void place_nodes(struct by_laminar *laminar, const struct by_laminar_group *group)
{
    uint32_t n = laminar->net->node_count;

    for (uint32_t i = 0; i < group->child_count; i++) {
        uint32_t child = group->children[i];

        if (child < n) {
            laminar->child_of[child] = i;
            continue;
        }
        for (uint32_t j = 0; j < laminar->groups[child - n].node_count; j++)
            laminar->child_of[laminar->groups[child - n].nodes[j]] = i;
    }
}

static void make_net(struct by_laminar *laminar, const struct by_laminar_group *group, struct by_piece *piece)
{
    const struct by_mesh *net = laminar->net;
    struct by_mesh_arc *arcs = NULL;
    uint32_t count = 0, room = 0;

    for (uint32_t i = 0; i < group->node_count; i++) {
        uint32_t node = group->nodes[i], at = laminar->child_of[node];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            const struct by_near *near = &net->near[j];
            uint32_t other = laminar->child_of[near->node];

            if (other == at)
                continue;
            if (laminar->capacity[near->half] > 0) {
                BY_GROW(arcs, count, room);
                arcs[count++] = (struct by_mesh_arc){other, at, laminar->capacity[near->half]};
            }
            if (other == piece->outside && laminar->capacity[near->half ^ 1] > 0) {
                BY_GROW(arcs, count, room);
                arcs[count++] = (struct by_mesh_arc){at, other, laminar->capacity[near->half ^ 1]};
            }
        }
    }
    piece->net = by_mesh_new(piece->count, arcs, count);
    piece->net->deadline = laminar->net->deadline;
    free(arcs);
}

void by_piece_make(struct by_laminar *laminar, uint32_t number, struct by_piece *piece)
{
    const struct by_laminar_group *group = &laminar->groups[number];
    uint32_t n = laminar->net->node_count;

    *piece = (struct by_piece){.group = number, .outside = UINT32_MAX, .total = laminar->total};
    piece->count = group->child_count + (number != 0);
    if (number != 0)
        piece->outside = group->child_count;
    piece->ids = by_alloc(piece->count, sizeof(*piece->ids));
    piece->roots = by_alloc(piece->count, sizeof(*piece->roots));
    piece->kind = by_alloc(piece->count, sizeof(*piece->kind));
    for (uint32_t i = 0; i < group->child_count; i++) {
        uint32_t child = group->children[i];

        piece->ids[i] = child;
        piece->roots[i] = child < n ? laminar->roots[child] : laminar->groups[child - n].roots;
        piece->kind[i] = child >= n                ? BY_PIECE_GROUP
                         : laminar->compute[child] ? BY_PIECE_COMPUTE
                         : laminar->member[child]  ? BY_PIECE_SWITCH
                                                   : BY_PIECE_REMOVED;
    }
    for (uint32_t i = 0; i < n; i++)
        laminar->child_of[i] = piece->outside;
    place_nodes(laminar, group);
    if (number != 0) {
        piece->ids[piece->outside] = UINT32_MAX;
        piece->roots[piece->outside] = laminar->total - group->roots;
        piece->kind[piece->outside] = BY_PIECE_OUTSIDE;
    }
    make_net(laminar, group, piece);
}

void by_piece_free(struct by_piece *piece)
{
    free(piece->ids);
    free(piece->roots);
    free(piece->kind);
    by_mesh_free(piece->net);
    *piece = (struct by_piece){0};
}

bool by_piece_equal(const struct by_piece *a, const struct by_piece *b)
{
    uint32_t halves = 2 * a->net->pair_count;

    return a->count == b->count && a->outside == b->outside && a->net->pair_count == b->net->pair_count &&
           memcmp(a->kind, b->kind, a->count * sizeof(*a->kind)) == 0 &&
           memcmp(a->roots, b->roots, a->count * sizeof(*a->roots)) == 0 &&
           memcmp(a->net->tail, b->net->tail, halves * sizeof(*a->net->tail)) == 0 &&
           memcmp(a->net->capacity, b->net->capacity, halves * sizeof(*a->net->capacity)) == 0;
}

uint64_t by_piece_hash(const struct by_piece *piece)
{
    uint64_t hash = piece->count;

    for (uint32_t i = 0; i < piece->count; i++)
        hash = (hash ^ (uint64_t)piece->roots[i] ^ (uint64_t)piece->kind[i] << 56) * 0x9e3779b97f4a7c15u;
    for (uint32_t half = 0; half < 2 * piece->net->pair_count; half++) {
        hash = (hash ^ piece->net->tail[half]) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ (uint64_t)piece->net->capacity[half]) * 0xc2b2ae3d27d4eb4fu;
        hash ^= hash >> 29;
    }
    return hash;
}
