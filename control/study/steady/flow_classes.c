/*
 * Finds classes of alike flows by colour refinement. See flow_classes.h.
 *
 * For each root its node gets a colour of its own, and then every node repeatedly a new one, made
 * of its own and those of its neighbours, until no two nodes are told apart any more. Colours are
 * 64-bit hashes, so those of different roots can be compared. A link is described by the colours
 * that its pairs with all roots have; where that tells links or nodes apart that were alike, all
 * begins again with these descriptions. Hashes decide nothing: the classes are compared member by
 * member at the end.
 */
#include "control/study/steady/flow_classes.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

#define NONE BY_SERIES_NONE

/* ---- numbers for hashes ---- */

/* Numbers distinct keys from 0, in the order in which they occur. */
struct numbering {
    uint32_t count, mask;
    uint32_t *slots; /* key number + 1; 0: free */
    uint64_t *keys;  /* by number */
};

static void numbering_make(struct numbering *numbering)
{
    *numbering = (struct numbering){.mask = 255};
    numbering->slots = by_alloc((size_t)numbering->mask + 1, sizeof(uint32_t));
    numbering->keys = by_alloc((size_t)numbering->mask + 1, sizeof(uint64_t));
}

static void numbering_clear(struct numbering *numbering)
{
    numbering->count = 0;
    memset(numbering->slots, 0, ((size_t)numbering->mask + 1) * sizeof(uint32_t));
}

static void numbering_free(struct numbering *numbering)
{
    free(numbering->slots);
    free(numbering->keys);
}

static uint32_t slot_of(const struct numbering *numbering, uint64_t key)
{
    uint32_t at = (uint32_t)(key >> 20) & numbering->mask;

    while (numbering->slots[at] && numbering->keys[numbering->slots[at] - 1] != key)
        at = (at + 1) & numbering->mask;
    return at;
}

static void numbering_grow(struct numbering *numbering)
{
    numbering->mask = numbering->mask * 2 + 1;
    free(numbering->slots);
    numbering->slots = by_alloc((size_t)numbering->mask + 1, sizeof(uint32_t));
    numbering->keys = by_realloc(numbering->keys, (size_t)numbering->mask + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < numbering->count; i++)
        numbering->slots[slot_of(numbering, numbering->keys[i])] = i + 1;
}

static uint32_t number_of(struct numbering *numbering, uint64_t key)
{
    uint32_t at = slot_of(numbering, key);

    if (numbering->slots[at])
        return numbering->slots[at] - 1;
    if (numbering->count >= numbering->mask / 2) {
        numbering_grow(numbering);
        at = slot_of(numbering, key);
    }
    numbering->keys[numbering->count] = key;
    numbering->slots[at] = ++numbering->count;
    return numbering->count - 1;
}

/* ---- lists of classes ---- */

static void list_make(struct by_class_list *list, size_t things)
{
    *list = (struct by_class_list){.room = 64,
                                   .of = by_alloc(things, sizeof(uint32_t)),
                                   .first = by_alloc(64, sizeof(uint32_t)),
                                   .size = by_alloc(64, sizeof(uint32_t))};
    memset(list->of, 0xff, things * sizeof(uint32_t));
}

static void list_free(struct by_class_list *list)
{
    free(list->of);
    free(list->first);
    free(list->size);
}

/* Puts a thing into `class`, which exists or is the next one. */
static void list_put(struct by_class_list *list, uint32_t thing, uint32_t class)
{
    if (class == list->count) {
        if (list->count == list->room) {
            list->room *= 2;
            list->first = by_realloc(list->first, list->room, sizeof(uint32_t));
            list->size = by_realloc(list->size, list->room, sizeof(uint32_t));
        }
        list->first[class] = thing;
        list->size[class] = 0;
        list->count++;
    }
    list->of[thing] = class;
    list->size[class]++;
}

static void classes_make(struct by_flow_classes *classes, const struct by_flow_pairs *pairs)
{
    list_make(&classes->flows, (size_t)pairs->root_count * pairs->platform->links->count);
    list_make(&classes->places, (size_t)pairs->root_count * pairs->platform->topology->node_count);
    list_make(&classes->resources, pairs->resources->count);
}

void by_flow_classes_free(struct by_flow_classes *classes)
{
    list_free(&classes->flows);
    list_free(&classes->places);
    list_free(&classes->resources);
}

void by_flow_classes_single(struct by_flow_classes *classes, const struct by_flow_pairs *pairs)
{
    const struct by_links *links = pairs->platform->links;
    uint32_t n = pairs->platform->topology->node_count;

    classes_make(classes, pairs);
    for (uint32_t r = 0; r < pairs->root_count; r++) {
        for (uint32_t v = 0; v < n && !pairs->idle[r]; v++)
            if (v != pairs->roots[r])
                list_put(&classes->places, r * n + v, classes->places.count);
        for (uint32_t l = 0; l < links->count && !pairs->idle[r]; l++)
            if (links->to[l] != pairs->roots[r])
                list_put(&classes->flows, r * links->count + l, classes->flows.count);
    }
    for (uint32_t i = 0; i < pairs->resources->count; i++)
        list_put(&classes->resources, i, i);
}

/* ---- colours ---- */

struct colours {
    const struct by_flow_pairs *pairs;
    uint32_t n;
    uint64_t *node, *link;      /* descriptions, the same for all roots */
    uint64_t *pair;             /* by root and node: its colour for this root */
    uint64_t *sum;              /* by node */
    struct numbering numbering; /* counts distinct colours */
};

static uint32_t distinct(struct colours *colours, const uint64_t *values, uint32_t count)
{
    numbering_clear(&colours->numbering);
    for (uint32_t i = 0; i < count; i++)
        number_of(&colours->numbering, values[i]);
    return colours->numbering.count;
}

static uint64_t link_colour(const struct colours *colours, uint32_t root, uint32_t link)
{
    const struct by_links *links = colours->pairs->platform->links;
    const uint64_t *pair = colours->pair + (size_t)root * colours->n;

    return by_prng_mix(pair[links->from[link]] + by_prng_mix(pair[links->to[link]] + colours->link[link]));
}

/*
 * Colours the nodes for one root until no round tells more of them apart. Afterwards every colour
 * also contains all the others: then two roots with a common colour have all colours in common, and
 * further rounds would not tell them apart either.
 */
static void refine(struct colours *colours, uint32_t root)
{
    const struct by_flow_pairs *pairs = colours->pairs;
    const struct by_links *links = pairs->platform->links;
    uint64_t *of = colours->pair + (size_t)root * colours->n, all = 0;
    uint32_t count = 0, before;

    for (uint32_t v = 0; v < colours->n; v++) {
        struct by_fraction size = pairs->sizes[(size_t)root * colours->n + v];

        of[v] =
            by_prng_mix(colours->node[v] + by_prng_mix((uint64_t)size.num + by_prng_mix((uint64_t)size.den)));
    }
    of[pairs->roots[root]] = by_prng_mix(~of[pairs->roots[root]]);
    do {
        before = count;
        memset(colours->sum, 0, colours->n * sizeof(*colours->sum));
        for (uint32_t l = 0; l < links->count; l++) {
            colours->sum[links->from[l]] += by_prng_mix(of[links->to[l]] + colours->link[l]);
            colours->sum[links->to[l]] += by_prng_mix(of[links->from[l]] ^ ~colours->link[l]);
        }
        for (uint32_t v = 0; v < colours->n; v++)
            of[v] = by_prng_mix(of[v] + by_prng_mix(colours->sum[v]));
        count = distinct(colours, of, colours->n);
    } while (count > before);
    for (uint32_t v = 0; v < colours->n; v++)
        all += by_prng_mix(of[v]);
    for (uint32_t v = 0; v < colours->n; v++)
        of[v] = by_prng_mix(of[v] + all);
}

/*
 * Describes nodes and links by their colours for all roots. Returns whether this tells more of them
 * apart than before.
 */
static bool describe(struct colours *colours)
{
    const struct by_flow_pairs *pairs = colours->pairs;
    uint32_t links = pairs->platform->links->count, n = colours->n;
    uint32_t before = distinct(colours, colours->node, n) + distinct(colours, colours->link, links);
    uint64_t *link = by_alloc(links, sizeof(*link));

    memset(colours->sum, 0, n * sizeof(*colours->sum));
    for (uint32_t r = 0; r < pairs->root_count; r++) {
        if (pairs->idle[r])
            continue;
        for (uint32_t l = 0; l < links; l++)
            link[l] += by_prng_mix(link_colour(colours, r, l));
        for (uint32_t v = 0; v < n; v++)
            colours->sum[v] += by_prng_mix(colours->pair[(size_t)r * n + v]);
    }
    for (uint32_t l = 0; l < links; l++)
        colours->link[l] = by_prng_mix(colours->link[l] + link[l]);
    for (uint32_t v = 0; v < n; v++)
        colours->node[v] = by_prng_mix(colours->node[v] + colours->sum[v]);
    free(link);
    return distinct(colours, colours->node, n) + distinct(colours, colours->link, links) > before;
}

static void colours_make(struct colours *colours, const struct by_flow_pairs *pairs)
{
    const struct by_platform *platform = pairs->platform;
    uint32_t n = platform->topology->node_count;

    *colours = (struct colours){.pairs = pairs,
                                .n = n,
                                .node = by_alloc(n, sizeof(uint64_t)),
                                .link = by_alloc(platform->links->count, sizeof(uint64_t)),
                                .pair = by_alloc((size_t)pairs->root_count * n, sizeof(uint64_t)),
                                .sum = by_alloc(n, sizeof(uint64_t))};
    numbering_make(&colours->numbering);
    for (uint32_t v = 0; v < n; v++)
        colours->node[v] = by_prng_mix(1 + by_series_shares(platform->topology, platform->ports, v));
    for (uint32_t l = 0; l < platform->links->count; l++)
        colours->link[l] = by_prng_mix((uint64_t)platform->links->capacity[l]);
}

static void colours_free(struct colours *colours)
{
    free(colours->node);
    free(colours->link);
    free(colours->pair);
    free(colours->sum);
    numbering_free(&colours->numbering);
}

static int colours_settle(struct colours *colours)
{
    const struct by_flow_pairs *pairs = colours->pairs;

    do {
        for (uint32_t r = 0; r < pairs->root_count; r++) {
            if (by_plan_late(pairs->deadline))
                return BY_ETIMEDOUT;
            if (!pairs->idle[r])
                refine(colours, r);
        }
    } while (describe(colours));
    return 0;
}

static void number_resources(struct by_class_list *list, struct colours *colours)
{
    const struct by_resources *resources = colours->pairs->resources;
    uint64_t *colour = by_alloc(resources->count, sizeof(*colour));

    for (uint32_t v = 0; v < colours->n; v++) {
        const uint32_t of[] = {resources->sends[v], resources->receives[v], resources->computes[v]};

        for (uint32_t k = 0; k < 3; k++)
            if (of[k] != NONE)
                colour[of[k]] = by_prng_mix(colours->node[v] + k);
    }
    for (uint32_t l = 0; l < colours->pairs->platform->links->count; l++)
        if (resources->link[l] != NONE)
            colour[resources->link[l]] = by_prng_mix(~colours->link[l]);
    numbering_clear(&colours->numbering);
    for (uint32_t i = 0; i < resources->count; i++)
        list_put(list, i, number_of(&colours->numbering, colour[i]));
    free(colour);
}

/* Makes the classes of equal colours. */
static void classes_number(struct by_flow_classes *classes, struct colours *colours)
{
    const struct by_flow_pairs *pairs = colours->pairs;
    const struct by_links *links = pairs->platform->links;
    uint32_t n = colours->n;

    numbering_clear(&colours->numbering);
    for (uint32_t r = 0; r < pairs->root_count; r++)
        for (uint32_t v = 0; v < n && !pairs->idle[r]; v++)
            if (v != pairs->roots[r])
                list_put(&classes->places, r * n + v,
                         number_of(&colours->numbering, colours->pair[(size_t)r * n + v]));
    numbering_clear(&colours->numbering);
    for (uint32_t r = 0; r < pairs->root_count; r++)
        for (uint32_t l = 0; l < links->count && !pairs->idle[r]; l++)
            if (links->to[l] != pairs->roots[r])
                list_put(&classes->flows, r * links->count + l,
                         number_of(&colours->numbering, link_colour(colours, r, l)));
    number_resources(&classes->resources, colours);
}

/* ---- the exact check ---- */

/* Lists of links by node: those of node v are list[first[v]] to list[first[v + 1] - 1]. */
struct incidence {
    uint32_t *first, *list;
};

static void incidence_make(struct incidence *incidence, const uint32_t *ends, uint32_t links, uint32_t n)
{
    uint32_t *fill = by_alloc((size_t)n + 1, sizeof(*fill));

    incidence->first = by_alloc((size_t)n + 1, sizeof(uint32_t));
    incidence->list = by_alloc(links, sizeof(uint32_t));
    for (uint32_t l = 0; l < links; l++)
        incidence->first[ends[l] + 1]++;
    for (uint32_t v = 0; v < n; v++)
        fill[v + 1] = incidence->first[v + 1] += incidence->first[v];
    for (uint32_t l = 0; l < links; l++)
        incidence->list[fill[ends[l]]++] = l;
    free(fill);
}

static void incidence_free(struct incidence *incidence)
{
    free(incidence->first);
    free(incidence->list);
}

struct class_check {
    const struct by_flow_classes *classes;
    const struct by_flow_pairs *pairs;
    struct incidence out, in;
    uint32_t *link_of; /* by resource: its link, if it is one */
    int64_t *balance;  /* by class of flows: members counted so far; 0 between two comparisons */
};

/* Adds `step` for a flow. With a step of 0: whether its class is balanced; clears it. */
static bool tally(struct class_check *check, size_t flow, int64_t step)
{
    uint32_t class = check->classes->flows.of[flow];
    bool even = class == NONE || check->balance[class] == 0;

    if (class != NONE)
        check->balance[class] = step ? check->balance[class] + step : 0;
    return even;
}

/* The same for all flows of `root` on the links of `node` in a list. */
static bool tally_links(struct class_check *check, const struct incidence *links, uint32_t root,
                        uint32_t node, int64_t step)
{
    size_t first = (size_t)root * check->pairs->platform->links->count;
    bool even = true;

    for (uint32_t i = links->first[node]; i < links->first[node + 1]; i++)
        even &= tally(check, first + links->list[i], step);
    return even;
}

/* The same for the flows of all roots that a resource carries. */
static bool tally_resource(struct class_check *check, uint32_t number, int64_t step)
{
    const struct by_steady_resource *resource = &check->pairs->resources->list[number];
    size_t links = check->pairs->platform->links->count;
    bool even = true;

    for (uint32_t r = 0; r < check->pairs->root_count; r++) {
        if (resource->kind == BY_SERIES_SENDS)
            even &= tally_links(check, &check->out, r, resource->node, step);
        else if (resource->kind == BY_SERIES_RECEIVES)
            even &= tally_links(check, &check->in, r, resource->node, step);
        else if (resource->kind == BY_SERIES_LINK)
            even &= tally(check, r * links + check->link_of[number], step);
    }
    return even;
}

/* Whether two places have as many links of each class of flows, in one direction. */
static bool same_links(struct class_check *check, const struct incidence *links, uint32_t place,
                       uint32_t other)
{
    uint32_t n = check->pairs->platform->topology->node_count;
    bool even;

    tally_links(check, links, place / n, place % n, 1);
    tally_links(check, links, other / n, other % n, -1);
    even = tally_links(check, links, place / n, place % n, 0);
    return tally_links(check, links, other / n, other % n, 0) && even;
}

/* Whether all places of a class have the same row of the program. */
static bool check_places(struct class_check *check)
{
    const struct by_class_list *places = &check->classes->places;
    uint32_t n = check->pairs->platform->topology->node_count;

    for (uint32_t p = 0; p < check->pairs->root_count * n; p++) {
        const struct by_fraction *size = &check->pairs->sizes[p], *other;
        uint32_t first;

        if (places->of[p] == NONE)
            continue;
        first = places->first[places->of[p]];
        other = &check->pairs->sizes[first];
        if (p != first &&
            (size->num != other->num || (size->num != 0 && size->den != other->den) ||
             !same_links(check, &check->in, p, first) || !same_links(check, &check->out, p, first)))
            return false;
    }
    return true;
}

static bool check_resources(struct class_check *check)
{
    const struct by_class_list *resources = &check->classes->resources;
    const struct by_steady_resource *list = check->pairs->resources->list;
    bool even = true;

    for (uint32_t i = 0; i < check->pairs->resources->count && even; i++) {
        uint32_t first = resources->first[resources->of[i]];

        tally_resource(check, i, 1);
        tally_resource(check, first, -1);
        even = tally_resource(check, i, 0) && list[i].kind == list[first].kind;
        even = tally_resource(check, first, 0) && even;
    }
    return even;
}

static bool same_resource(const struct class_check *check, uint32_t resource, uint32_t other)
{
    const uint32_t *of = check->classes->resources.of;

    return (resource == NONE) == (other == NONE) && (resource == NONE || of[resource] == of[other]);
}

/* Whether all flows of a class have the same column of the program. */
static bool check_flows(const struct class_check *check)
{
    const struct by_class_list *flows = &check->classes->flows;
    const struct by_links *links = check->pairs->platform->links;
    const struct by_resources *resources = check->pairs->resources;
    const uint32_t *places = check->classes->places.of;
    size_t n = check->pairs->platform->topology->node_count;
    bool same = true;

    for (uint32_t p = 0; p < check->pairs->root_count * links->count && same; p++) {
        uint32_t first = flows->of[p] == NONE ? p : flows->first[flows->of[p]];
        uint32_t l = p % links->count, k = first % links->count;
        size_t at = p / links->count * n, to = first / links->count * n;

        same = links->capacity[l] == links->capacity[k] &&
               places[at + links->from[l]] == places[to + links->from[k]] &&
               places[at + links->to[l]] == places[to + links->to[k]] &&
               same_resource(check, resources->sends[links->from[l]], resources->sends[links->from[k]]) &&
               same_resource(check, resources->receives[links->to[l]], resources->receives[links->to[k]]) &&
               same_resource(check, resources->link[l], resources->link[k]);
    }
    return same;
}

/* Whether the classes are equitable: all rows of a class have the same numbers in the columns of
 * each class, and all columns of a class in the rows of each class. */
static bool is_equitable(const struct by_flow_classes *classes, const struct by_flow_pairs *pairs)
{
    const struct by_links *links = pairs->platform->links;
    uint32_t n = pairs->platform->topology->node_count;
    struct class_check check = {
        .classes = classes, .pairs = pairs, .balance = by_alloc(classes->flows.count, sizeof(int64_t))};
    bool even;

    incidence_make(&check.out, links->from, links->count, n);
    incidence_make(&check.in, links->to, links->count, n);
    check.link_of = by_alloc(pairs->resources->count, sizeof(uint32_t));
    for (uint32_t l = 0; l < links->count; l++)
        if (pairs->resources->link[l] != NONE)
            check.link_of[pairs->resources->link[l]] = l;
    even = check_flows(&check) && check_places(&check) && check_resources(&check);
    incidence_free(&check.out);
    incidence_free(&check.in);
    free(check.link_of);
    free(check.balance);
    return even;
}

int by_flow_classes_find(struct by_flow_classes *classes, const struct by_flow_pairs *pairs)
{
    struct colours colours;
    int error;

    classes_make(classes, pairs);
    colours_make(&colours, pairs);
    error = colours_settle(&colours);
    if (!error)
        classes_number(classes, &colours);
    colours_free(&colours);
    if (!error && !is_equitable(classes, pairs)) {
        by_flow_classes_free(classes);
        by_flow_classes_single(classes, pairs);
    }
    return error;
}
