/*
 * The searches of tree_pricing.c, once for floating point and once for exact integers. The includer
 * defines
 * - NUMBER, an array element, and NAMED(name), a name for it;
 * - NUMBER_NEW(a) and NUMBER_DROP(a), which declare and free a local number;
 * - SET(a, b); SUM(a, b, c): a = b + c; TAKE(a, b): a -= b; PRODUCT(a, b, c): a = b c;
 * - LESS(a, b);
 * - NAMED(numbers_new), NAMED(numbers_free): arrays; NAMED(cells_new), NAMED(cells_free): a large
 *   one;
 * - NAMED(lower)(least, a, b, count): least[i] = min(least[i], a[i] + b[i]); NAMED(lower_by): the
 *   same with one number for a.
 * One thread for each pricer.
 */

/* What things cost. */
struct NAMED(costs) {
    NUMBER *length; /* by link: of a message of size 1 */
    NUMBER *task;   /* by node: of a combination, times a size or `unit` */
    NUMBER *size;   /* by interval; for a commutative operator one */
    NUMBER unit;    /* the factor of `task` where the size does not matter */
    NUMBER infinite;
};

/* Sets `distance` (by place and node) to the least cost of moving a message of size 1 to a place,
 * and pricer->next to the link to take. */
static void NAMED(find_routes)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs, NUMBER *distance)
{
    const struct by_links *links = pricer->platform->links;
    uint32_t n = pricer->node_count;
    NUMBER_NEW(sum);

    for (uint32_t p = 0; p < pricer->place_count; p++) {
        NUMBER *to_place = distance + (size_t)p * n;
        uint32_t *next = pricer->next + (size_t)p * n;
        bool changed = true;

        for (uint32_t i = 0; i < n; i++) {
            SET(to_place[i], costs->infinite);
            next[i] = BY_SERIES_NONE;
        }
        TAKE(to_place[pricer->places[p]], costs->infinite);
        while (changed) {
            changed = false;
            for (uint32_t l = 0; l < links->count; l++) {
                SUM(sum, to_place[links->to[l]], costs->length[l]);
                if (!LESS(sum, to_place[links->from[l]]))
                    continue;
                SET(to_place[links->from[l]], sum);
                next[links->from[l]] = l;
                changed = true;
            }
        }
    }
    NUMBER_DROP(sum);
}

static void NAMED(task_cost)(const struct by_tree_pricer *pricer, struct NAMED(costs) * costs, uint32_t node,
                             uint32_t size, NUMBER *cost)
{
    if (pricer->by_size[node])
        PRODUCT(*cost, costs->task[node], costs->size[size]);
    else
        PRODUCT(*cost, costs->task[node], costs->unit);
}

/* ---- in the operator's order ---- */

struct NAMED(intervals) {
    NUMBER *distance; /* by place and node */
    NUMBER *cost;     /* by interval and place: of having it there */
    NUMBER *made;     /* by place: of making the current one there */
    NUMBER *moved;    /* by two places: of moving the current one from the first to the second */
};

static NUMBER *NAMED(cost_of)(const struct by_tree_pricer *pricer, const struct NAMED(intervals) * work,
                              uint32_t length, uint32_t first)
{
    return work->cost +
           (size_t)by_partials_interval(pricer->value_count, length, first) * pricer->place_count;
}

/* Returns the length of the left part in split number `k` of an interval: the middle ones first. */
static uint32_t NAMED(split)(uint32_t length, uint32_t k)
{
    return k % 2 ? length / 2 - k / 2 : length / 2 + k / 2;
}

/* Sets `made` to the least cost of making an interval of two, at each place. */
static void NAMED(make_interval)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs,
                                 struct NAMED(intervals) * work, uint32_t length, uint32_t first)
{
    uint32_t places = pricer->place_count;
    uint32_t number = by_partials_interval(pricer->value_count, length, first);
    NUMBER_NEW(task);

    for (uint32_t p = 0; p < places; p++)
        SET(work->made[p], costs->infinite);
    for (uint32_t k = 1; k < length; k++)
        NAMED(lower)
    (work->made, NAMED(cost_of)(pricer, work, k, first), NAMED(cost_of)(pricer, work, length - k, first + k),
     places);
    for (uint32_t p = 0; p < places; p++) {
        if (!pricer->computes[pricer->places[p]]) {
            SET(work->made[p], costs->infinite);
            continue;
        }
        NAMED(task_cost)(pricer, costs, pricer->places[p], number, &task);
        SUM(work->made[p], work->made[p], task);
    }
    NUMBER_DROP(task);
}

/* Moves an interval that was made to each place. A place to which it is moved more cheaply than it
 * is made there is no origin of further moves. */
static void NAMED(move_interval)(struct by_tree_pricer *pricer, struct NAMED(intervals) * work, NUMBER *cost)
{
    uint32_t places = pricer->place_count, least = 0;

    for (uint32_t p = 0; p < places; p++) {
        SET(cost[p], work->made[p]);
        if (LESS(work->made[p], work->made[least]))
            least = p;
    }
    for (uint32_t i = 0; i < places; i++) {
        uint32_t origin = i == 0 ? least : i <= least ? i - 1 : i; /* the cheapest one first */

        if (!LESS(cost[origin], work->made[origin]))
            NAMED(lower_by)(cost, &work->made[origin], work->moved + (size_t)origin * places, places);
    }
}

/* Prices moves for the size of an interval. */
static void NAMED(set_moved)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs,
                             struct NAMED(intervals) * work, uint32_t number)
{
    uint32_t places = pricer->place_count;

    for (uint32_t p = 0; p < places; p++)
        for (uint32_t q = 0; q < places; q++)
            PRODUCT(work->moved[(size_t)p * places + q],
                    work->distance[(size_t)q * pricer->node_count + pricer->places[p]], costs->size[number]);
}

/* Decides where an interval that is needed at a place is made, and of which parts: as the costs
 * were found. */
static void NAMED(decide)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs,
                          struct NAMED(intervals) * work, struct by_tree_step *step)
{
    uint32_t places = pricer->place_count;
    NUMBER_NEW(sum);
    NUMBER_NEW(least);

    if (pricer->sizes_differ)
        NAMED(set_moved)
    (pricer, costs, work, by_partials_interval(pricer->value_count, step->length, step->first));
    NAMED(make_interval)(pricer, costs, work, step->length, step->first);
    step->origin = step->place;
    SET(least, work->made[step->place]);
    for (uint32_t p = 0; p < places; p++) {
        SUM(sum, work->made[p], work->moved[(size_t)p * places + step->place]);
        if (LESS(sum, least)) {
            SET(least, sum);
            step->origin = p;
        }
    }
    SET(least, costs->infinite);
    for (uint32_t k = 1; k < step->length; k++) {
        uint32_t left = NAMED(split)(step->length, k);

        SUM(sum, NAMED(cost_of)(pricer, work, left, step->first)[step->origin],
            NAMED(cost_of)(pricer, work, step->length - left, step->first + left)[step->origin]);
        if (LESS(sum, least)) {
            SET(least, sum);
            step->left = left;
        }
    }
    NUMBER_DROP(sum);
    NUMBER_DROP(least);
}

/* Lists the intervals of the cheapest tree from the whole result on: each comes before its
 * parts. */
static void NAMED(list_steps)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs,
                              struct NAMED(intervals) * work)
{
    uint32_t count = 1;

    pricer->steps[0] =
        (struct by_tree_step){.first = 0, .length = pricer->value_count, .place = pricer->target};
    for (uint32_t i = 0; i < count; i++) {
        struct by_tree_step *step = &pricer->steps[i];

        if (step->length == 1)
            continue;
        NAMED(decide)(pricer, costs, work, step);
        pricer->steps[count++] =
            (struct by_tree_step){.first = step->first, .length = step->left, .place = step->origin};
        pricer->steps[count++] = (struct by_tree_step){
            .first = step->first + step->left, .length = step->length - step->left, .place = step->origin};
    }
}

/* Fills pricer->steps. */
static bool NAMED(find_ordered)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs, NUMBER *distance)
{
    uint32_t places = pricer->place_count, count = pricer->value_count;
    size_t cells = (size_t)count * (count + 1) / 2 * places;
    struct NAMED(intervals) work = {.distance = distance,
                                    .cost = NAMED(cells_new)(pricer, cells),
                                    .made = NAMED(numbers_new)(places),
                                    .moved = NAMED(numbers_new)((size_t)places * places)};
    bool right;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t p = 0; p < places; p++)
            PRODUCT(work.cost[(size_t)i * places + p],
                    distance[(size_t)p * pricer->node_count + pricer->holders[i]], costs->size[i]);
    for (uint32_t length = 2, number = count; length <= count; length++)
        for (uint32_t first = 0; first + length <= count; first++, number++) {
            if (number == count || pricer->sizes_differ)
                NAMED(set_moved)(pricer, costs, &work, number);
            NAMED(make_interval)(pricer, costs, &work, length, first);
            NAMED(move_interval)(pricer, &work, NAMED(cost_of)(pricer, &work, length, first));
        }
    right = LESS(work.cost[cells - places + pricer->target], costs->infinite);
    if (right)
        NAMED(list_steps)(pricer, costs, &work);
    NAMED(cells_free)(work.cost, cells);
    NAMED(numbers_free)(work.made, places);
    NAMED(numbers_free)(work.moved, (size_t)places * places);
    return right;
}
