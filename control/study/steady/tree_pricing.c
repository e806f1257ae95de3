/* The cheapest reduction tree at given prices. See tree_pricing.h. */
#include "control/study/steady/tree_pricing.h"

#include "control/study/series/rational.h"
#include "offload/base/errors.h"

/* What a hop costs in floating point, where prices of a tree are near 1: of equally cheap paths the
 * shortest is taken. Less than what a better tree must gain (tree_program.c). */
#define HOP 1e-11
/* No cost in floating point is as high. */
#define INFINITE 1e30

/* An arborescence under construction. Its nodes are the members, then those merged from others; 0
 * is the root, a node beyond the target. */
struct by_arborescence {
    uint32_t room, count, member_count;
    uint32_t *members;       /* places; the root is none */
    uint32_t *edge;          /* by two nodes: the members at the ends of the cheapest edge between them */
    uint32_t *chosen;        /* by node: the edge out of it */
    uint32_t *parent;        /* by node: the one into which it was merged */
    bool *alive, *connected; /* by node: not merged; proved to reach the root */
    uint32_t walk_count, *walk;
    uint32_t *entered; /* by value: the place where it is combined, if not at its holder */
};

/* An interval of values that a tree needs at a place. Unless it is a single value it is made at
 * `origin`, of its first `left` values and the rest. */
struct by_tree_step {
    uint32_t first, length, place, origin, left;
};

struct by_tree_pricer {
    const struct by_steady_problem *problem;
    const struct by_platform *platform;
    const struct by_resources *resources;
    uint32_t node_count, value_count;
    const uint32_t *holders;
    bool *computes, *by_size;      /* by node: whether it combines, and the time depends on the size */
    mpq_t *task_time;              /* by node: of one combination, or of one of size 1 */
    uint32_t place_count, *places; /* the nodes that combine, and the target */
    uint32_t target;               /* its place */
    uint32_t size_count;           /* of the messages: by interval; for a commutative operator one */
    mpq_t *sizes;
    bool sizes_differ;
    uint32_t *next;             /* by place and node: the link on the cheapest path to the place */
    struct by_tree_step *steps; /* in order */
    double *cells;              /* memory of the search, which takes as long to get as to fill */
    /* In any order: the places without a value; by place: where the result goes (BY_SERIES_NONE: to
     * the target); by value: where it is combined. */
    uint32_t optional_count, *optional;
    struct by_arborescence tree;
    bool *takes_part;
    uint32_t *sends_to, *entered;
};

/* ---- arborescences: what does not depend on the type of numbers ---- */

static uint32_t edge_between(uint32_t from, uint32_t to)
{
    return from << 16 | to;
}

static void by_arborescence_make(struct by_arborescence *tree, uint32_t places, uint32_t values)
{
    uint32_t room = 2 * (places + 1);

    *tree = (struct by_arborescence){.room = room,
                                     .members = by_alloc(room, sizeof(uint32_t)),
                                     .edge = by_alloc((size_t)room * room, sizeof(uint32_t)),
                                     .chosen = by_alloc(room, sizeof(uint32_t)),
                                     .parent = by_alloc(room, sizeof(uint32_t)),
                                     .alive = by_alloc(room, sizeof(bool)),
                                     .connected = by_alloc(room, sizeof(bool)),
                                     .walk = by_alloc(room, sizeof(uint32_t)),
                                     .entered = by_alloc(values, sizeof(uint32_t))};
}

static void by_arborescence_free(struct by_arborescence *tree)
{
    free(tree->members);
    free(tree->edge);
    free(tree->chosen);
    free(tree->parent);
    free(tree->alive);
    free(tree->connected);
    free(tree->walk);
    free(tree->entered);
}

/* Resets all merges. */
static void by_arborescence_start(struct by_arborescence *tree)
{
    tree->count = tree->member_count;
    memset(tree->connected, 0, tree->room * sizeof(*tree->connected));
    for (uint32_t i = 0; i < tree->count; i++) {
        tree->alive[i] = true;
        tree->parent[i] = BY_SERIES_NONE;
        for (uint32_t j = 0; j < tree->count; j++)
            tree->edge[(size_t)i * tree->room + j] = edge_between(i, j);
    }
    tree->connected[0] = true;
}

/* Makes members of the places with values, and of those without that are in `set`. */
static void by_arborescence_choose(struct by_tree_pricer *pricer, uint32_t set)
{
    struct by_arborescence *tree = &pricer->tree;

    tree->member_count = 1;
    for (uint32_t p = 0, option = 0; p < pricer->place_count; p++) {
        bool optional = option < pricer->optional_count && pricer->optional[option] == p;

        if (optional ? set >> option & 1 : pricer->computes[pricer->places[p]])
            tree->members[tree->member_count++] = p;
        option += optional;
    }
}

/* Keeps the arborescence as the best so far. The edge out of merged nodes replaces the one that was
 * chosen for the node where it starts. */
static void by_arborescence_keep(struct by_tree_pricer *pricer)
{
    struct by_arborescence *tree = &pricer->tree;

    for (uint32_t merged = tree->count; merged-- > tree->member_count;) {
        uint32_t node = tree->chosen[merged] >> 16;

        while (tree->parent[node] != merged)
            node = tree->parent[node];
        tree->chosen[node] = tree->chosen[merged];
    }
    memset(pricer->takes_part, 0, pricer->place_count * sizeof(*pricer->takes_part));
    for (uint32_t i = 1; i < tree->member_count; i++) {
        uint32_t to = tree->chosen[i] & 0xffff;

        pricer->takes_part[tree->members[i]] = true;
        pricer->sends_to[tree->members[i]] = to ? tree->members[to] : BY_SERIES_NONE;
    }
    memcpy(pricer->entered, tree->entered, pricer->value_count * sizeof(*pricer->entered));
}

/* ---- floating point ---- */

static double *numbers_new_guess(size_t count)
{
    return by_alloc(count, sizeof(double));
}

static void numbers_free_guess(double *numbers, size_t count)
{
    (void)count;
    free(numbers);
}

static double *cells_new_guess(struct by_tree_pricer *pricer, size_t count)
{
    if (!pricer->cells)
        pricer->cells = by_alloc(count, sizeof(*pricer->cells));
    return pricer->cells;
}

static void cells_free_guess(double *cells, size_t count)
{
    (void)cells;
    (void)count;
}

static void lower_guess(double *restrict least, const double *a, const double *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double sum = a[i] + b[i];

        least[i] = sum < least[i] ? sum : least[i]; /* without a jump */
    }
}

static void lower_by_guess(double *restrict least, const double *a, const double *b, uint32_t count)
{
    double first = *a;

    for (uint32_t i = 0; i < count; i++) {
        double sum = first + b[i];

        least[i] = sum < least[i] ? sum : least[i];
    }
}

#define NUMBER           double
#define NAMED(name)      name##_guess
#define NUMBER_NEW(a)    double a = 0
#define NUMBER_DROP(a)   ((void)(a))
#define NUMBER_INIT(a)   ((a) = 0)
#define NUMBER_CLEAR(a)  ((void)(a))
#define SET(a, b)        ((a) = (b))
#define SUM(a, b, c)     ((a) = (b) + (c))
#define TAKE(a, b)       ((a) -= (b))
#define PRODUCT(a, b, c) ((a) = (b) * (c))
#define LESS(a, b)       ((a) < (b))
#include "control/study/steady/tree_pricing.inc.h"
#include "control/study/steady/tree_sets.inc.h"
#undef NUMBER
#undef NAMED
#undef NUMBER_NEW
#undef NUMBER_DROP
#undef NUMBER_INIT
#undef NUMBER_CLEAR
#undef SET
#undef SUM
#undef TAKE
#undef PRODUCT
#undef LESS

/* ---- integers ---- */

static mpz_t *numbers_new_exact(size_t count)
{
    return by_integers_new(count);
}

static void numbers_free_exact(mpz_t *numbers, size_t count)
{
    by_integers_free(numbers, count);
}

static mpz_t *cells_new_exact(struct by_tree_pricer *pricer, size_t count)
{
    (void)pricer;
    return numbers_new_exact(count);
}

static void cells_free_exact(mpz_t *cells, size_t count)
{
    numbers_free_exact(cells, count);
}

static void lower_exact(mpz_t *least, mpz_t *a, mpz_t *b, uint32_t count)
{
    mpz_t sum;

    mpz_init(sum);
    for (uint32_t i = 0; i < count; i++) {
        mpz_add(sum, a[i], b[i]);
        if (mpz_cmp(sum, least[i]) < 0)
            mpz_swap(least[i], sum);
    }
    mpz_clear(sum);
}

static void lower_by_exact(mpz_t *least, mpz_t *a, mpz_t *b, uint32_t count)
{
    mpz_t sum;

    mpz_init(sum);
    for (uint32_t i = 0; i < count; i++) {
        mpz_add(sum, *a, b[i]);
        if (mpz_cmp(sum, least[i]) < 0)
            mpz_swap(least[i], sum);
    }
    mpz_clear(sum);
}

#define NUMBER      mpz_t
#define NAMED(name) name##_exact
#define NUMBER_NEW(a)                                                                                        \
    mpz_t a;                                                                                                 \
    mpz_init(a)
#define NUMBER_DROP(a)   mpz_clear(a)
#define NUMBER_INIT(a)   mpz_init(a)
#define NUMBER_CLEAR(a)  mpz_clear(a)
#define SET(a, b)        mpz_set(a, b)
#define SUM(a, b, c)     mpz_add(a, b, c)
#define TAKE(a, b)       mpz_sub(a, a, b)
#define PRODUCT(a, b, c) mpz_mul(a, b, c)
#define LESS(a, b)       (mpz_cmp(a, b) < 0)
#include "control/study/steady/tree_pricing.inc.h"
#include "control/study/steady/tree_sets.inc.h"

/* ---- the problem ---- */

static void list_times(struct by_tree_pricer *pricer)
{
    uint32_t n = pricer->node_count;
    mpq_t one;

    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    pricer->computes = by_alloc(n, sizeof(*pricer->computes));
    pricer->by_size = by_alloc(n, sizeof(*pricer->by_size));
    pricer->task_time = by_rationals_new(n);
    for (uint32_t i = 0; i < n; i++) {
        pricer->computes[i] = by_platform_computes(pricer->platform, i);
        if (!pricer->computes[i])
            continue;
        pricer->by_size[i] = !pricer->platform->topology->nodes[i].has_task_time;
        by_platform_task_time(pricer->platform, i, one, pricer->task_time[i]);
    }
    mpq_clear(one);
}

/* Lists the places, and those that hold no value. */
static void list_places(struct by_tree_pricer *pricer)
{
    uint32_t n = pricer->node_count;
    bool *holds = by_alloc(n, sizeof(*holds));

    for (uint32_t i = 0; i < pricer->value_count; i++)
        holds[pricer->holders[i]] = true;
    pricer->places = by_alloc(n, sizeof(*pricer->places));
    pricer->optional = by_alloc(n, sizeof(*pricer->optional));
    for (uint32_t i = 0; i < n; i++) {
        if (i == pricer->problem->targets[0])
            pricer->target = pricer->place_count;
        else if (!pricer->computes[i])
            continue;
        if (pricer->computes[i] && !holds[i])
            pricer->optional[pricer->optional_count++] = pricer->place_count;
        pricer->places[pricer->place_count++] = i;
    }
    free(holds);
}

/* Lists the sizes of all intervals, which with a commutative operator stand for all sets from their
 * first to their last value. */
static void list_sizes(struct by_tree_pricer *pricer)
{
    uint32_t count = pricer->value_count;

    pricer->size_count = count * (count + 1) / 2;
    pricer->sizes = by_rationals_new(pricer->size_count);
    for (uint32_t length = 1, number = 0; length <= count; length++)
        for (uint32_t first = 0; first + length <= count; first++, number++) {
            by_steady_message_size(pricer->problem, first, first + length - 1, pricer->sizes[number]);
            pricer->sizes_differ |= !mpq_equal(pricer->sizes[number], pricer->sizes[0]);
        }
}

/* Checks that arborescences are all trees of a commutative operator. */
static int check_any_order(const struct by_tree_pricer *pricer, struct by_problem *trouble)
{
    const struct by_topology *topology = pricer->platform->topology;
    uint32_t count = pricer->value_count;

    if (pricer->sizes_differ)
        return by_problem_say(trouble, BY_ELIMIT,
                              "%u values of a commutative operator have partial results of different sizes; "
                              "the limit is then %u values: give all one --size, or leave out --commutative",
                              count, BY_STEADY_COMMUTATIVE_MAX);
    for (uint32_t i = 0; i < pricer->optional_count; i++) {
        uint32_t node = pricer->places[pricer->optional[i]];

        if (mpq_sgn(pricer->task_time[node]) != 0)
            return by_problem_say(trouble, BY_ELIMIT,
                                  "'%s' takes time to combine and holds none of the %u values of a "
                                  "commutative operator; the limit is then %u values: leave out "
                                  "--commutative, or the node's time",
                                  topology->nodes[node].name, count, BY_STEADY_COMMUTATIVE_MAX);
    }
    if (pricer->optional_count > BY_STEADY_OPTIONAL_MAX)
        return by_problem_say(trouble, BY_ELIMIT,
                              "%u nodes combine and hold none of the %u values of a commutative operator; "
                              "the limit is %u such nodes, or %u values: leave out --commutative, or let "
                              "fewer switches aggregate",
                              pricer->optional_count, count, BY_STEADY_OPTIONAL_MAX,
                              BY_STEADY_COMMUTATIVE_MAX);
    return 0;
}

struct by_tree_pricer *by_tree_pricer_new(const struct by_steady_problem *problem,
                                          const struct by_platform *platform,
                                          const struct by_resources *resources, struct by_problem *trouble)
{
    struct by_tree_pricer *pricer = by_alloc(1, sizeof(*pricer));
    uint32_t places;

    *pricer = (struct by_tree_pricer){.problem = problem,
                                      .platform = platform,
                                      .resources = resources,
                                      .node_count = platform->topology->node_count,
                                      .value_count = problem->holder_count,
                                      .holders = problem->holders};
    list_times(pricer);
    list_places(pricer);
    list_sizes(pricer);
    places = pricer->place_count;
    if (problem->commutative && check_any_order(pricer, trouble) != 0) {
        by_tree_pricer_free(pricer);
        return NULL;
    }
    if (places > BY_STEADY_PLACES_MAX) {
        by_problem_say(trouble, BY_ELIMIT,
                       "%u nodes combine; the limit is %u for %u values: reduce fewer values, or let fewer "
                       "nodes combine",
                       places, BY_STEADY_PLACES_MAX, problem->holder_count);
        by_tree_pricer_free(pricer);
        return NULL;
    }
    pricer->next = by_alloc((size_t)places * pricer->node_count, sizeof(uint32_t));
    if (problem->commutative) {
        by_arborescence_make(&pricer->tree, places, pricer->value_count);
        pricer->takes_part = by_alloc(places, sizeof(bool));
        pricer->sends_to = by_alloc(places, sizeof(uint32_t));
        pricer->entered = by_alloc(pricer->value_count, sizeof(uint32_t));
    } else {
        pricer->steps = by_alloc((size_t)2 * pricer->value_count, sizeof(*pricer->steps));
    }
    return pricer;
}

void by_tree_pricer_free(struct by_tree_pricer *pricer)
{
    if (!pricer)
        return;
    by_rationals_free(pricer->task_time, pricer->node_count);
    by_rationals_free(pricer->sizes, pricer->size_count);
    by_arborescence_free(&pricer->tree);
    free(pricer->computes);
    free(pricer->by_size);
    free(pricer->places);
    free(pricer->optional);
    free(pricer->next);
    free(pricer->steps);
    free(pricer->cells);
    free(pricer->takes_part);
    free(pricer->sends_to);
    free(pricer->entered);
    free(pricer);
}

/* ---- prices ---- */

bool by_tree_pricer_guess(struct by_tree_pricer *pricer, const double *prices)
{
    const struct by_resources *resources = pricer->resources;
    const struct by_links *links = pricer->platform->links;
    uint32_t n = pricer->node_count;
    struct costs_guess costs = {.length = numbers_new_guess(links->count),
                                .task = numbers_new_guess(n),
                                .size = numbers_new_guess(pricer->size_count),
                                .unit = 1,
                                .infinite = INFINITE};
    double *distance = numbers_new_guess((size_t)pricer->place_count * n);
    bool right;

    for (uint32_t l = 0; l < links->count; l++) {
        uint32_t rows[3] = {resources->sends[links->from[l]], resources->receives[links->to[l]],
                            resources->link[l]};

        for (unsigned i = 0; i < 3; i++)
            if (rows[i] != BY_SERIES_NONE)
                costs.length[l] += prices[rows[i]];
        costs.length[l] = costs.length[l] * mpq_get_d(pricer->platform->cost[l]) + HOP;
    }
    for (uint32_t i = 0; i < n; i++)
        if (pricer->computes[i])
            costs.task[i] = prices[resources->computes[i]] * mpq_get_d(pricer->task_time[i]);
    for (uint32_t i = 0; i < pricer->size_count; i++)
        costs.size[i] = mpq_get_d(pricer->sizes[i]);
    find_routes_guess(pricer, &costs, distance);
    right = (pricer->problem->commutative ? find_set_guess : find_ordered_guess)(pricer, &costs, distance);
    free(distance);
    free(costs.length);
    free(costs.task);
    free(costs.size);
    return right;
}

/* Sets the costs of links and combinations as rationals. */
static void price_resources(const struct by_tree_pricer *pricer, const mpq_t *prices, mpq_t *length,
                            mpq_t *task)
{
    const struct by_resources *resources = pricer->resources;
    const struct by_links *links = pricer->platform->links;

    for (uint32_t l = 0; l < links->count; l++) {
        uint32_t rows[3] = {resources->sends[links->from[l]], resources->receives[links->to[l]],
                            resources->link[l]};

        for (unsigned i = 0; i < 3; i++)
            if (rows[i] != BY_SERIES_NONE)
                mpq_add(length[l], length[l], prices[rows[i]]);
        mpq_mul(length[l], length[l], pricer->platform->cost[l]);
    }
    for (uint32_t i = 0; i < pricer->node_count; i++)
        if (pricer->computes[i])
            mpq_mul(task[i], prices[resources->computes[i]], pricer->task_time[i]);
}

/* Sets `to` to the integers `from` x `scale` x 2^bits. Raises `*most` to the bits of the
 * longest. */
static void scale_numbers(const mpq_t *from, uint32_t count, const mpz_t scale, size_t bits, mpz_t *to,
                          size_t *most)
{
    for (uint32_t i = 0; i < count; i++) {
        mpz_divexact(to[i], scale, mpq_denref(from[i]));
        mpz_mul(to[i], to[i], mpq_numref(from[i]));
        mpz_mul_2exp(to[i], to[i], bits);
        if (mpz_sizeinbase(to[i], 2) > *most)
            *most = mpz_sizeinbase(to[i], 2);
    }
}

/* Converts prices to integers with a common denominator. Below their last bit is room for the
 * number of hops of a tree, each as long as its message. */
static void costs_make(const struct by_tree_pricer *pricer, const mpq_t *prices, struct costs_exact *costs)
{
    uint32_t n = pricer->node_count, links = pricer->platform->links->count;
    mpq_t *length = by_rationals_new(links), *task = by_rationals_new(n);
    size_t size_bits = 1, bits = 1, hop_bits = 9; /* a tree has at most 127 moves */
    mpz_t scale, tasks;

    *costs = (struct costs_exact){.length = numbers_new_exact(links),
                                  .task = numbers_new_exact(n),
                                  .size = numbers_new_exact(pricer->size_count)};
    mpz_inits(costs->unit, costs->infinite, scale, tasks, NULL);
    by_lp_denominator(pricer->sizes, pricer->size_count, costs->unit);
    scale_numbers(pricer->sizes, pricer->size_count, costs->unit, 0, costs->size, &size_bits);
    for (uint32_t left = n; left > 0; left /= 2)
        hop_bits++;
    hop_bits += size_bits;
    price_resources(pricer, prices, length, task);
    by_lp_denominator(length, links, scale);
    by_lp_denominator(task, n, tasks);
    mpz_lcm(scale, scale, tasks);
    scale_numbers(length, links, scale, hop_bits, costs->length, &bits);
    scale_numbers(task, n, scale, hop_bits, costs->task, &bits);
    for (uint32_t l = 0; l < links; l++)
        mpz_add_ui(costs->length[l], costs->length[l], 1);
    mpz_set_ui(costs->infinite, 1);
    mpz_mul_2exp(costs->infinite, costs->infinite, bits + size_bits + 64);
    mpz_clears(scale, tasks, NULL);
    by_rationals_free(length, links);
    by_rationals_free(task, n);
}

bool by_tree_pricer_find(struct by_tree_pricer *pricer, const mpq_t *prices)
{
    size_t cells = (size_t)pricer->place_count * pricer->node_count;
    mpz_t *distance = numbers_new_exact(cells);
    struct costs_exact costs;
    bool right;

    costs_make(pricer, prices, &costs);
    find_routes_exact(pricer, &costs, distance);
    right = (pricer->problem->commutative ? find_set_exact : find_ordered_exact)(pricer, &costs, distance);
    numbers_free_exact(distance, cells);
    numbers_free_exact(costs.length, pricer->platform->links->count);
    numbers_free_exact(costs.task, pricer->node_count);
    numbers_free_exact(costs.size, pricer->size_count);
    mpz_clears(costs.unit, costs.infinite, NULL);
    return right;
}

/* ---- trees ---- */

/* Adds the transfers of a message from a node to a place. */
static void push_path(const struct by_tree_pricer *pricer, uint32_t message, uint32_t node, uint32_t place,
                      struct by_steady_lane *lane)
{
    const struct by_links *links = pricer->platform->links;

    while (node != pricer->places[place]) {
        uint32_t link = pricer->next[(size_t)place * pricer->node_count + node];

        node = links->to[link];
        by_lane_push(lane,
                     (struct by_series_task){.message = message, .node = links->from[link], .to = node});
    }
}

static void push_combination(struct by_partials *partials, uint32_t node, uint64_t left, uint64_t right,
                             struct by_steady_lane *lane)
{
    uint32_t parts[2] = {by_partials_add(partials, left), by_partials_add(partials, right)};
    bool swapped = (left & -left) > (right & -right);

    by_lane_push(lane, (struct by_series_task){.message = by_partials_add(partials, left | right),
                                               .node = node,
                                               .to = BY_SERIES_NONE,
                                               .left = parts[swapped],
                                               .right = parts[!swapped]});
}

static void turn_round(struct by_series_task *tasks, uint32_t first, uint32_t end)
{
    for (; first + 1 < end; first++, end--) {
        struct by_series_task task = tasks[first];

        tasks[first] = tasks[end - 1];
        tasks[end - 1] = task;
    }
}

/* Adds the tasks backwards from the result, then turns them round. */
static void build_ordered(const struct by_tree_pricer *pricer, struct by_partials *partials,
                          struct by_steady_lane *lane)
{
    uint32_t start = lane->task_count, n = pricer->value_count;

    for (uint32_t i = 0; i < 2 * n - 1; i++) {
        const struct by_tree_step *step = &pricer->steps[i];
        uint32_t before = lane->task_count, rest = step->length - step->left;

        push_path(pricer, by_partials_interval(n, step->length, step->first),
                  step->length > 1 ? pricer->places[step->origin] : pricer->holders[step->first], step->place,
                  lane);
        turn_round(lane->tasks, before, lane->task_count);
        if (step->length > 1)
            push_combination(partials, pricer->places[step->origin],
                             partials->values[by_partials_interval(n, step->left, step->first)],
                             partials->values[by_partials_interval(n, rest, step->first + step->left)], lane);
    }
    turn_round(lane->tasks, start, lane->task_count);
}

/* The values at a place while a tree of sets is built, and how many places will send there. */
struct tree_pricing_stock {
    uint32_t count, waits;
    uint64_t sets[2 * BY_SERIES_VALUES_MAX];
};

/* Combines all values of a place in pairs, so that the tree is low, and sends the result. */
static void empty_stock(const struct by_tree_pricer *pricer, struct tree_pricing_stock *stocks,
                        uint32_t place, struct by_partials *partials, struct by_steady_lane *lane)
{
    struct tree_pricing_stock *stock = &stocks[place];
    uint32_t to = pricer->sends_to[place], at = 0;

    for (; at + 1 < stock->count; at += 2) {
        push_combination(partials, pricer->places[place], stock->sets[at], stock->sets[at + 1], lane);
        stock->sets[stock->count++] = stock->sets[at] | stock->sets[at + 1];
    }
    if (at < stock->count)
        push_path(pricer, by_partials_add(partials, stock->sets[at]), pricer->places[place],
                  to == BY_SERIES_NONE ? pricer->target : to, lane);
    if (to == BY_SERIES_NONE)
        return;
    stocks[to].waits--;
    if (at < stock->count)
        stocks[to].sets[stocks[to].count++] = stock->sets[at];
}

static void build_any_order(const struct by_tree_pricer *pricer, struct by_partials *partials,
                            struct by_steady_lane *lane)
{
    struct tree_pricing_stock *stocks = by_alloc(pricer->place_count, sizeof(*stocks));
    uint32_t *place_of = by_alloc(pricer->node_count, sizeof(*place_of)), left = 0;

    for (uint32_t p = 0; p < pricer->place_count; p++) {
        place_of[pricer->places[p]] = p;
        left += pricer->takes_part[p];
        if (pricer->takes_part[p] && pricer->sends_to[p] != BY_SERIES_NONE)
            stocks[pricer->sends_to[p]].waits++;
    }
    for (uint32_t i = 0; i < pricer->value_count; i++) {
        bool stays = pricer->computes[pricer->holders[i]];
        struct tree_pricing_stock *stock = &stocks[stays ? place_of[pricer->holders[i]] : pricer->entered[i]];

        stock->sets[stock->count++] = UINT64_C(1) << i;
        if (!stays)
            push_path(pricer, by_partials_add(partials, UINT64_C(1) << i), pricer->holders[i],
                      pricer->entered[i], lane);
    }
    while (left > 0) { /* each round empties at least one: the tree has no circles */
        for (uint32_t p = 0; p < pricer->place_count; p++) {
            if (!pricer->takes_part[p] || stocks[p].waits != 0)
                continue;
            empty_stock(pricer, stocks, p, partials, lane);
            stocks[p].waits = UINT32_MAX;
            left--;
        }
    }
    free(stocks);
    free(place_of);
}

void by_tree_pricer_build(struct by_tree_pricer *pricer, struct by_partials *partials,
                          struct by_steady_lane *lane)
{
    (pricer->problem->commutative ? build_any_order : build_ordered)(pricer, partials, lane);
}
