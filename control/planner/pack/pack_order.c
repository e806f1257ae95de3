/*
 * Trees along fixed orders. See pack.h. Each root has a key for each node that grows away from the
 * root: hops first, then some tie-break. At each node, independently of all others, a transport
 * problem over the node's own links decides over which links the trees of each root enter, from
 * nodes of lower key only. Since keys decrease towards the root, the result has no cycles, whatever
 * other nodes decide; with keys of hops alone each tree has minimum height. If a transport problem
 * has no solution, other tie-breaks are tried.
 */
#include "control/planner/pack/pack_order.h"
#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/assert.h"

/* Orders tried (count). */
#define ATTEMPTS_MAX 5u
/* Trees times nodes up to which incomplete trees are completed one by one (count). */
#define UNITS_MAX ((int64_t)24 << 20)
/* On nets of few nodes, which growth packs quickly, the limit on trees is lower (count). */
#define SMALL_NODES     48u
#define SMALL_UNITS_MAX 4096
/* Arcs of a node (count) up to which the parts of an arc are in buckets by the arcs that they may
 * use. */
#define EXACT_ARCS 6u
/* Classes whose levels are read at a time: 64 bytes of keys of a node. */
#define TILE 32u
/* Keys for one hop (count), which leaves room for tie-breaks. */
#define KEY_STEP 8u

/* Finds the hops from each root; false when a distance is too large for a key. */
static bool find_levels(struct by_orders *orders)
{
    const struct by_mesh *net = orders->net;
    uint32_t n = net->node_count, *queue = by_alloc(n, sizeof(*queue));
    bool right = true;

    for (uint32_t c = 0; c < orders->class_count && right; c++) {
        uint16_t *level = orders->levels + (size_t)c * n;
        uint32_t head = 0, tail = 0;

        memset(level, 0xff, n * sizeof(*level));
        level[orders->class_node[c]] = 0;
        queue[tail++] = orders->class_node[c];
        while (head < tail && tail < n) {
            uint32_t node = queue[head++];

            for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
                uint32_t to = net->near[i].node;

                if (level[to] == UINT16_MAX && net->capacity[net->near[i].half ^ 1] > 0) {
                    level[to] = (uint16_t)(level[node] + 1);
                    queue[tail++] = to;
                }
            }
        }
        right = tail == n && level[queue[n - 1]] < UINT16_MAX / KEY_STEP - 4;
    }
    free(queue);
    return right;
}

/* Lengths of links for keys, from LENGTH_MIN to LENGTH_MAX: narrow links are long. */
#define LENGTH_MIN 4u
#define LENGTH_MAX 63u

static uint32_t length_of(const struct by_mesh *net, uint32_t half, int64_t widest)
{
    int64_t length = (int64_t)((__int128)widest * LENGTH_MIN / net->capacity[half]);

    return length < LENGTH_MAX ? (uint32_t)length : LENGTH_MAX;
}

/* Removes a node from the bucket of its distance. */
static bool unlink_node(uint32_t *bucket, uint32_t *next, uint32_t distance, uint32_t node)
{
    for (uint32_t *link = &bucket[distance % (LENGTH_MAX + 1)]; *link; link = &next[*link - 1])
        if (*link == node + 1) {
            *link = next[node];
            return true;
        }
    return false;
}

/* Sets the keys to distances by such lengths: a search with a ring of buckets for each root. */
static void find_distances(struct by_orders *orders)
{
    const struct by_mesh *net = orders->net;
    uint32_t n = net->node_count, *next = by_alloc(n, sizeof(*next)), bucket[LENGTH_MAX + 1];
    uint16_t *key = by_alloc(n, sizeof(*key));
    bool *done = by_alloc(n, sizeof(*done));
    int64_t widest = 1;

    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        widest = net->capacity[half] > widest ? net->capacity[half] : widest;
    for (uint32_t c = 0; c < orders->class_count; c++) {
        uint32_t left = n, at = 0;

        memset(key, 0xff, n * sizeof(*key));
        memset(done, 0, n * sizeof(*done));
        memset(bucket, 0,
               /* node + 1, 0 is empty; a node may be in several buckets, the first counts */
               sizeof(bucket));
        key[orders->class_node[c]] = 0;
        for (uint32_t node = orders->class_node[c]; left > 0;) {
            uint32_t idle = 0;

            done[node] = true;
            left--;
            for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
                uint32_t to = net->near[i].node, distance;

                if (done[to] || net->capacity[net->near[i].half ^ 1] == 0)
                    continue;
                distance = at + length_of(net, net->near[i].half ^ 1, widest);
                if (distance >= key[to] || distance >= UINT16_MAX)
                    continue;
                if (key[to] == UINT16_MAX || !unlink_node(bucket, next, key[to], to))
                    BY_ASSERT(key[to] == UINT16_MAX);
                key[to] = (uint16_t)distance;
                next[to] = bucket[distance % (LENGTH_MAX + 1)];
                bucket[distance % (LENGTH_MAX + 1)] = to + 1;
            }
            while (left > 0 && bucket[at % (LENGTH_MAX + 1)] == 0 && idle++ <= LENGTH_MAX)
                at++;
            if (left == 0 || bucket[at % (LENGTH_MAX + 1)] == 0)
                break;
            node = bucket[at % (LENGTH_MAX + 1)] - 1;
            bucket[at % (LENGTH_MAX + 1)] = next[node];
        }
        for (uint32_t i = 0; i < n; i++)
            orders->keys[(size_t)i * orders->class_count + c] = key[i];
    }
    free(next);
    free(key);
    free(done);
}

/*
 * Sets the keys of attempt number `attempt`:
 *
 * - 0: hops;
 * - 1: hops, but the root's neighbours that it can serve alone come before its others;
 * - 2: hops with random tie-breaks that can exceed a hop;
 * - 3: distances in which narrow links are long;
 * - 4: the same with random tie-breaks.
 */
static void find_keys(struct by_orders *orders, uint32_t attempt)
{
    const struct by_mesh *net = orders->net;
    uint32_t n = net->node_count, classes = orders->class_count;
    uint32_t spread = attempt == 2 ? 5 * KEY_STEP / 2 : LENGTH_MIN;

    orders->prng = (struct by_prng){attempt + 1};
    if (attempt >= 3)
        find_distances(orders);
    for (uint32_t first = 0; first < classes && attempt < 3; first += TILE)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t c = first; c < classes && c < first + TILE; c++)
                orders->keys[(size_t)i * classes + c] =
                    (uint16_t)(orders->levels[(size_t)c * n + i] * KEY_STEP);
    for (uint32_t c = 0; c < classes; c++) {
        const uint16_t *level = orders->levels + (size_t)c * n;
        uint16_t *key = orders->keys + c;

        for (uint32_t i = 0; i < n && (attempt == 2 || attempt == 4); i++)
            if (level[i] > 0)
                key[(size_t)i * classes] =
                    (uint16_t)(key[(size_t)i * classes] + by_prng_below(&orders->prng, spread));
        for (uint32_t i = net->first[orders->class_node[c]];
             attempt == 1 && i < net->first[orders->class_node[c] + 1]; i++) {
            const struct by_near *near = &net->near[i];

            if (level[near->node] == 1 &&
                net->capacity[near->half ^ 1] < orders->roots[orders->class_node[c]])
                key[(size_t)near->node * classes]++;
        }
    }
}

static bool may_use(const struct by_orders *orders, uint32_t class, uint32_t arc)
{
    return orders->may[(size_t) class * orders->word_count + arc / 64] >> arc % 64 & 1;
}

/* Finds the arcs that each class may use: those from nodes with lower keys. */
static void find_arcs(struct by_orders *orders, uint32_t node)
{
    size_t classes = orders->class_count, words = (orders->arc_count + 63) / 64;
    const uint16_t *own = orders->keys + node * classes;

    orders->word_count = (uint32_t)words;
    memset(orders->may, 0, classes * words * sizeof(*orders->may));
    for (uint32_t arc = 0; arc < orders->arc_count; arc++) {
        const uint16_t *tail = orders->keys + orders->arc_tail[arc] * classes;
        uint64_t *may = orders->may + arc / 64;

        for (size_t c = 0; c < classes; c++)
            may[c * words] |= (uint64_t)(tail[c] < own[c]) << arc % 64;
    }
}

static struct by_order_bucket *bucket_of(const struct by_orders *orders, uint32_t arc, uint64_t may)
{
    return &orders->buckets[(size_t)arc * orders->bucket_count + (orders->bucket_count > 1 ? may : 0)];
}

static void add_part(struct by_orders *orders, uint32_t class, uint32_t arc, int64_t amount)
{
    uint64_t may = orders->may[(size_t) class * orders->word_count];
    struct by_order_bucket *bucket = bucket_of(orders, arc, may);

    BY_GROW(orders->parts, orders->part_count, orders->part_room);
    orders->parts[orders->part_count] = (struct by_order_part){class, arc, amount, bucket->first};
    bucket->first = orders->part_count++;
    bucket->may |= may;
}

static void serve(struct by_orders *orders, uint32_t class, uint32_t arc)
{
    int64_t amount = orders->wanted[class];

    amount = amount < orders->arc_left[arc] ? amount : orders->arc_left[arc];
    if (amount == 0)
        return;
    orders->wanted[class] -= amount;
    orders->arc_left[arc] -= amount;
    add_part(orders, class, arc, amount);
}

/* Sets up the arcs into the node. Trees rooted at the arcs' tails are served over them directly. */
static void begin_node(struct by_orders *orders, uint32_t node)
{
    const struct by_mesh *net = orders->net;

    orders->arc_count = orders->part_count = 0;
    for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
        const struct by_near *near = &net->near[i];

        if (net->capacity[near->half] == 0)
            continue;
        orders->arc_half[orders->arc_count] = near->half;
        orders->arc_tail[orders->arc_count] = near->node;
        orders->arc_left[orders->arc_count++] = net->capacity[near->half];
    }
    orders->bucket_count = orders->arc_count <= EXACT_ARCS ? 1u << orders->arc_count : 1;
    for (uint32_t i = 0; i < orders->arc_count * orders->bucket_count; i++)
        orders->buckets[i] = (struct by_order_bucket){UINT32_MAX, 0};
    find_arcs(orders, node);
    for (uint32_t c = 0; c < orders->class_count; c++)
        orders->wanted[c] = orders->class_node[c] == node ? 0 : orders->roots[orders->class_node[c]];
    for (uint32_t arc = 0; arc < orders->arc_count; arc++) {
        uint32_t class = orders->node_class[orders->arc_tail[arc]];

        if (class != UINT32_MAX)
            serve(orders, class, arc);
    }
}

/* Sorts the classes that are not fully served, those with the fewest arcs first. Returns their
 * count. */
static uint32_t sort_waiting(struct by_orders *orders)
{
    uint32_t count = 0, *start = orders->arc_queue; /* free until augmentation */
    uint32_t sorted = 0;

    memset(start, 0, (orders->arc_count + 2) * sizeof(*start));
    for (uint32_t c = 0; c < orders->class_count; c++) {
        uint32_t options = 0;

        if (orders->wanted[c] == 0)
            continue;
        for (uint32_t word = 0; word < orders->word_count; word++)
            options += (uint32_t)__builtin_popcountll(orders->may[(size_t)c * orders->word_count + word]);
        orders->options[c] = options;
        start[options + 1]++;
        count++;
    }
    for (uint32_t i = 0; i <= orders->arc_count; i++)
        start[i + 1] += start[i];
    for (uint32_t c = 0; c < orders->class_count; c++)
        if (orders->wanted[c] > 0) {
            orders->waiting[start[orders->options[c]]++] = c;
            sorted++;
        }
    BY_ASSERT(sorted == count);
    return count;
}

/* Serves a class over the arcs with the most remaining capacity. */
static void serve_greedily(struct by_orders *orders, uint32_t class)
{
    while (orders->wanted[class] > 0) {
        uint32_t best = UINT32_MAX;

        for (uint32_t arc = 0; arc < orders->arc_count; arc++)
            if (orders->arc_left[arc] > 0 &&
                (best == UINT32_MAX || orders->arc_left[arc] > orders->arc_left[best]) &&
                may_use(orders, class, arc))
                best = arc;
        if (best == UINT32_MAX)
            return;
        serve(orders, class, best);
    }
}

/* Augments along the path found: each part moves to the next arc. */
static void push_back(struct by_orders *orders, uint32_t class, uint32_t free_arc)
{
    int64_t amount = orders->wanted[class];
    uint32_t arc = free_arc;

    amount = amount < orders->arc_left[arc] ? amount : orders->arc_left[arc];
    for (; orders->arc_before[arc] != UINT32_MAX; arc = orders->arc_before[arc])
        if (orders->parts[orders->arc_part[arc]].amount < amount)
            amount = orders->parts[orders->arc_part[arc]].amount;
    orders->arc_left[free_arc] -= amount;
    for (arc = free_arc; orders->arc_before[arc] != UINT32_MAX; arc = orders->arc_before[arc]) {
        struct by_order_part *part = &orders->parts[orders->arc_part[arc]];
        uint32_t moved = part->class;

        part->amount -= amount;
        add_part(orders, moved, arc, amount);
    }
    orders->wanted[class] -= amount;
    add_part(orders, class, arc, amount);
}

/* Returns a bit for each of the first 64 arcs that has not been seen. */
static uint64_t unseen(const struct by_orders *orders)
{
    uint64_t set = 0;

    for (uint32_t arc = 0; arc < orders->arc_count && arc < 64; arc++)
        set |= (uint64_t)(orders->arc_seen[arc] != orders->stamp) << arc;
    return set;
}

/* Marks the arcs to which the part may move and that have not been seen. Returns the new end of the
 * queue. */
static uint32_t see_part(struct by_orders *orders, uint32_t number, uint32_t tail)
{
    const struct by_order_part *part = &orders->parts[number];

    for (uint32_t other = 0; other < orders->arc_count; other++)
        if (orders->arc_seen[other] != orders->stamp && may_use(orders, part->class, other)) {
            orders->arc_seen[other] = orders->stamp;
            orders->arc_before[other] = part->arc;
            orders->arc_part[other] = number;
            orders->arc_queue[tail++] = other;
        }
    return tail;
}

/* Forgets the parts that have moved from the front of a list. Returns the first that has not. */
static uint32_t first_of(struct by_orders *orders, uint32_t *link)
{
    while (*link != UINT32_MAX && orders->parts[*link].amount == 0)
        *link = orders->parts[*link].next;
    return *link;
}

/* Sees the arcs to which parts of the arc may move. All classes of a bucket may use the same arcs,
 * so its latest part is enough. */
static uint32_t see_buckets(struct by_orders *orders, uint32_t arc, uint32_t tail)
{
    struct by_order_bucket *buckets = bucket_of(orders, arc, 0);
    uint32_t latest[1u << EXACT_ARCS], count = 0;
    uint64_t new_arcs = unseen(orders);

    for (uint32_t may = 1; may < orders->bucket_count; may++) {
        uint32_t part = (may & new_arcs) != 0 ? first_of(orders, &buckets[may].first) : UINT32_MAX;
        uint32_t place = count;

        if (part == UINT32_MAX)
            continue;
        for (; place > 0 && latest[place - 1] < part; place--)
            latest[place] = latest[place - 1];
        latest[place] = part;
        count++;
    }
    for (uint32_t i = 0; i < count; i++)
        tail = see_part(orders, latest[i], tail);
    return tail;
}

/* The same, where all parts of an arc are in one bucket. */
static uint32_t see_list(struct by_orders *orders, uint32_t arc, uint32_t tail)
{
    struct by_order_bucket *bucket = bucket_of(orders, arc, 0);
    uint64_t may = 0;

    if (orders->arc_count <= 64 && (bucket->may & unseen(orders)) == 0)
        return tail;
    for (uint32_t *link = &bucket->first; first_of(orders, link) != UINT32_MAX;
         link = &orders->parts[*link].next) {
        may |= orders->may[(size_t)orders->parts[*link].class * orders->word_count];
        tail = see_part(orders, *link, tail);
        if (tail == orders->arc_count)
            return tail;
    }
    bucket->may = may;
    return tail;
}

/* Finds an arc that becomes free for the class when parts of others move; false when
 * there is none. */
static bool augment(struct by_orders *orders, uint32_t class)
{
    uint32_t head = 0, tail = 0;

    orders->stamp++;
    for (uint32_t arc = 0; arc < orders->arc_count; arc++)
        if (may_use(orders, class, arc)) {
            orders->arc_seen[arc] = orders->stamp;
            orders->arc_before[arc] = UINT32_MAX;
            orders->arc_queue[tail++] = arc;
        }
    while (head < tail) {
        uint32_t arc = orders->arc_queue[head++];

        if (orders->arc_left[arc] > 0) {
            push_back(orders, class, arc);
            return true;
        }
        if (tail < orders->arc_count)
            tail = orders->bucket_count > 1 ? see_buckets(orders, arc, tail) : see_list(orders, arc, tail);
    }
    return false;
}

static void add_extra(struct by_orders *orders, uint32_t class, uint32_t node, uint32_t half, int64_t amount)
{
    BY_GROW(orders->extras, orders->extra_count, orders->extra_room);
    orders->extras[orders->extra_count] =
        (struct by_order_extra){node, half, amount, orders->first_extra[class]};
    orders->first_extra[class] = orders->extra_count++;
}

/* Records the decision at the node: the largest part as the main one, others as extras. A missing
 * part has no half. */
static void keep_node(struct by_orders *orders, uint32_t node)
{
    uint32_t *main = orders->main + (size_t)node * orders->class_count;
    int64_t *most = orders->wanted;

    for (uint32_t c = 0; c < orders->class_count; c++) {
        main[c] = BY_UNIT_MISSING;
        if (most[c] > 0) {
            add_extra(orders, c, node, BY_UNIT_MISSING, most[c]);
            orders->missing += most[c];
            most[c] = 0;
        }
    }
    for (uint32_t p = 0; p < orders->part_count; p++) {
        const struct by_order_part *part = &orders->parts[p];

        if (part->amount > most[part->class]) {
            most[part->class] = part->amount;
            main[part->class] = orders->arc_half[part->arc];
        }
    }
    for (uint32_t p = 0; p < orders->part_count; p++) {
        const struct by_order_part *part = &orders->parts[p];

        if (part->amount > 0 && main[part->class] != orders->arc_half[part->arc])
            add_extra(orders, part->class, node, orders->arc_half[part->arc], part->amount);
    }
}

static void solve_node(struct by_orders *orders, uint32_t node)
{
    uint32_t count;

    begin_node(orders, node);
    count = sort_waiting(orders);
    for (uint32_t i = 0; i < count; i++)
        serve_greedily(orders, orders->waiting[i]);
    for (uint32_t i = 0; i < count; i++)
        while (orders->wanted[orders->waiting[i]] > 0)
            if (!augment(orders, orders->waiting[i]))
                break;
    keep_node(orders, node);
}

/* Solves the problem at all nodes; gives up when more than `limit` trees are missing somewhere, or
 * when the deadline has passed. */
static void solve(struct by_orders *orders, int64_t limit)
{
    orders->extra_count = 0;
    orders->missing = 0;
    for (uint32_t c = 0; c < orders->class_count; c++)
        orders->first_extra[c] = UINT32_MAX;
    for (uint32_t node = 0; node < orders->net->node_count && orders->missing <= limit && !orders->late;
         node++) {
        solve_node(orders, node);
        orders->late = by_plan_late(orders->deadline);
    }
}

static void orders_make(struct by_orders *orders, const struct by_mesh *net, const int64_t *roots)
{
    uint32_t n = net->node_count, degree = 0;
    size_t cells;

    *orders = (struct by_orders){.net = net, .roots = roots, .prng = {1}};
    orders->class_node = by_alloc(n, sizeof(*orders->class_node));
    orders->node_class = by_alloc(n, sizeof(*orders->node_class));
    for (uint32_t i = 0; i < n; i++) {
        orders->node_class[i] = UINT32_MAX;
        if (roots[i] > 0) {
            orders->node_class[i] = orders->class_count;
            orders->class_node[orders->class_count++] = i;
        }
        degree = net->first[i + 1] - net->first[i] > degree ? net->first[i + 1] - net->first[i] : degree;
    }
    cells = (size_t)n * orders->class_count;
    orders->levels = by_alloc(cells, sizeof(*orders->levels));
    orders->keys = by_alloc(cells, sizeof(*orders->keys));
    orders->main = by_alloc(cells, sizeof(*orders->main));
    orders->first_extra = by_alloc(orders->class_count, sizeof(*orders->first_extra));
    orders->wanted = by_alloc(orders->class_count, sizeof(*orders->wanted));
    orders->waiting = by_alloc(orders->class_count, sizeof(*orders->waiting));
    orders->options = by_alloc(orders->class_count, sizeof(*orders->options));
    orders->arc_half = by_alloc(degree, sizeof(*orders->arc_half));
    orders->arc_tail = by_alloc(degree, sizeof(*orders->arc_tail));
    orders->arc_left = by_alloc(degree, sizeof(*orders->arc_left));
    orders->buckets = by_alloc((size_t)degree << EXACT_ARCS, sizeof(*orders->buckets));
    orders->may = by_alloc((size_t)orders->class_count * ((degree + 63) / 64), sizeof(*orders->may));
    orders->arc_seen = by_alloc(degree, sizeof(*orders->arc_seen));
    orders->arc_before = by_alloc(degree, sizeof(*orders->arc_before));
    orders->arc_part = by_alloc(degree, sizeof(*orders->arc_part));
    orders->arc_queue = by_alloc(degree + 2, sizeof(*orders->arc_queue));
}

static void orders_free(struct by_orders *orders)
{
    free(orders->class_node);
    free(orders->node_class);
    free(orders->levels);
    free(orders->keys);
    free(orders->main);
    free(orders->first_extra);
    free(orders->extras);
    free(orders->wanted);
    free(orders->waiting);
    free(orders->options);
    free(orders->arc_half);
    free(orders->arc_tail);
    free(orders->arc_left);
    free(orders->buckets);
    free(orders->may);
    free(orders->arc_seen);
    free(orders->arc_before);
    free(orders->arc_part);
    free(orders->arc_queue);
    free(orders->parts);
}

/* Completes the best attempt tree by tree. */
static bool repair(struct by_orders *orders, struct by_packing *packing)
{
    struct by_units units = {0};
    int64_t count = 0;
    bool found;

    for (uint32_t c = 0; c < orders->class_count; c++)
        if (__builtin_add_overflow(count, orders->roots[orders->class_node[c]], &count))
            return false;
    if (count > UNITS_MAX / orders->net->node_count ||
        (orders->net->node_count <= SMALL_NODES && count > SMALL_UNITS_MAX))
        return false;
    units.count = (uint32_t)count;
    by_order_units(orders, &units);
    found = by_pack_repair(&units, orders->deadline);
    if (found)
        by_order_write_units(orders, &units, packing);
    free(units.root);
    free(units.parent);
    return found;
}

bool by_pack_order(const struct by_mesh *net, const int64_t *roots, double deadline,
                   struct by_packing *packing)
{
    struct by_orders orders;
    bool found = false;

    orders_make(&orders, net, roots);
    orders.deadline = deadline;
    if (find_levels(&orders)) {
        uint32_t attempt, best = 0;
        int64_t least = INT64_MAX;

        for (attempt = 0; attempt < ATTEMPTS_MAX && !found && !orders.late; attempt++) {
            find_keys(&orders, attempt);
            solve(&orders, least);
            if (orders.missing < least) {
                least = orders.missing;
                best = attempt;
            }
            found = orders.missing == 0 && !orders.late;
        }
        if (!found && !orders.late) {
            find_keys(&orders, best);
            solve(&orders, INT64_MAX);
            found = !orders.late && repair(&orders, packing);
        } else if (found) {
            by_order_write(&orders, packing);
        }
    }
    orders_free(&orders);
    return found;
}
