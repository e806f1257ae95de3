/* Fabrics built from foreign files. See draft.h. */
#include "control/fabric/import/draft.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/preset/preset.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

static uint64_t hash(const char *text)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        state = (state ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return state;
}

void by_draft_make(struct by_draft *draft, const struct by_import_options *options,
                   struct by_problem *problem)
{
    *draft = (struct by_draft){.options = options, .problem = problem, .slot_count = 1024};
    draft->slots = by_alloc(draft->slot_count, sizeof(*draft->slots));
}

void by_draft_free(struct by_draft *draft)
{
    for (uint32_t i = 0; i < draft->node_count; i++) {
        free(draft->nodes[i].key);
        free(draft->nodes[i].label);
    }
    free(draft->nodes);
    free(draft->links);
    free(draft->slots);
}

static uint32_t *find_slot(const struct by_draft *draft, const char *key)
{
    uint64_t at = hash(key);

    for (;; at++) {
        uint32_t *slot = &draft->slots[at & (draft->slot_count - 1)];

        if (*slot == 0 || strcmp(draft->nodes[*slot - 1].key, key) == 0)
            return slot;
    }
}

uint32_t by_draft_find(const struct by_draft *draft, const char *key)
{
    return *find_slot(draft, key) - 1;
}

uint32_t by_draft_node(struct by_draft *draft, const char *key, const char *label, struct by_place place)
{
    uint32_t *slot = find_slot(draft, key);

    if (*slot)
        return *slot - 1;
    if (draft->node_count >= BY_TOPOLOGY_NODES_MAX) {
        by_problem_set(draft->problem, BY_ELIMIT, place,
                       "the fabric has more than %u nodes; that is the limit", BY_TOPOLOGY_NODES_MAX);
        return UINT32_MAX;
    }
    BY_GROW(draft->nodes, draft->node_count, draft->node_room);
    draft->nodes[draft->node_count] = (struct by_draft_node){.key = by_copy_text(key),
                                                             .label = by_copy_text(label),
                                                             .order = INT64_MAX,
                                                             .file = draft->file,
                                                             .place = place};
    *slot = ++draft->node_count;
    if (draft->node_count > draft->slot_count / 2) {
        free(draft->slots);
        draft->slot_count *= 2;
        draft->slots = by_alloc(draft->slot_count, sizeof(*draft->slots));
        for (uint32_t i = 0; i < draft->node_count; i++)
            *find_slot(draft, draft->nodes[i].key) = i + 1;
    }
    return draft->node_count - 1;
}

int by_draft_link(struct by_draft *draft, uint32_t a, uint32_t b, bool both_ways, struct by_fraction rate,
                  struct by_place place)
{
    if (a == UINT32_MAX || b == UINT32_MAX)
        return BY_ELIMIT;
    if (a == b)
        return BY_DRAFT_REFUSE(draft, place, "a link joins node '%.60s' to itself; remove it",
                               draft->nodes[a].label);
    if (rate.num == 0)
        rate = draft->options->rate;
    if (rate.num == 0)
        return BY_DRAFT_REFUSE(
            draft, place,
            "the file does not state the rate of the link between '%.60s' and '%.60s'; give --rate",
            draft->nodes[a].label, draft->nodes[b].label);
    if (draft->link_count >= BY_DRAFT_LINKS_MAX)
        return by_problem_set(draft->problem, BY_ELIMIT, place,
                              "the fabric has more than %u links; that is the limit", BY_DRAFT_LINKS_MAX);
    BY_GROW(draft->links, draft->link_count, draft->link_room);
    draft->links[draft->link_count++] = (struct by_draft_link){a, b, both_ways, rate, draft->file, place};
    return 0;
}

void by_draft_leave_out(struct by_draft *draft, const char *name)
{
    if (draft->left_out++ == 0)
        snprintf(draft->left_out_name, sizeof(draft->left_out_name), "%s", name);
}

struct by_place by_cursor_place(struct by_draft_cursor *cursor, size_t at)
{
    if (cursor->place.line == 0 || at < cursor->seen) {
        cursor->place = (struct by_place){1, 1};
        cursor->seen = 0;
    }
    for (; cursor->seen < at; cursor->seen++) {
        bool newline = cursor->text[cursor->seen] == '\n';

        cursor->place.column = newline ? 1 : cursor->place.column + 1;
        cursor->place.line += newline;
    }
    return cursor->place;
}

/* ---- names ---- */

/* Writes the label, with every character that is invalid in a name replaced, cut to `bytes_max`. */
static void fit_name(const char *label, size_t bytes_max, char *name)
{
    size_t bytes = 0;

    for (; *label && bytes < bytes_max; label++) {
        bool good = isalnum((unsigned char)*label) || *label == '.' || *label == '_' || *label == '-';

        if (good)
            name[bytes++] = *label;
        else if (bytes > 0 && name[bytes - 1] != '-')
            name[bytes++] = '-';
    }
    while (bytes > 0 && name[bytes - 1] == '-')
        bytes--;
    name[bytes] = '\0';
    if (bytes == 0)
        memcpy(name, "node", sizeof("node"));
}

/* Finds an unused name, the label or the label with a number, and marks it as used. */
static void take_name(struct by_draft *taken, const char *label, char name[BY_NAME_MAX + 1])
{
    uint32_t first, made;

    fit_name(label, BY_NAME_MAX, name);
    first = by_draft_find(taken, name);
    if (first != UINT32_MAX) {
        char stem[BY_NAME_MAX + 1];

        BY_ASSERT(taken->nodes);
        fit_name(label, BY_NAME_MAX - 8, stem);
        do
            snprintf(name, BY_NAME_MAX + 1, "%.*s-%u", (int)BY_NAME_MAX - 8, stem,
                     (unsigned)taken->nodes[first].order++);
        while (by_draft_find(taken, name) != UINT32_MAX);
    }
    made = by_draft_node(taken, name, "", (struct by_place){0, 0});
    BY_ASSERT(taken->nodes && made < taken->node_count);
    taken->nodes[made].order = 2; /* the next number to try */
}

/* Gives every node that is not left out a unique name, which replaces its label. */
static void fit_names(struct by_draft *draft)
{
    struct by_draft taken;

    by_draft_make(&taken, draft->options, draft->problem);
    for (uint32_t i = 0; i < draft->node_count; i++) {
        struct by_draft_node *node = &draft->nodes[i];
        char name[BY_NAME_MAX + 1];

        if (node->left_out)
            continue;
        take_name(&taken, node->label, name);
        free(node->label);
        node->label = by_copy_text(name);
    }
    by_draft_free(&taken);
}

/* Whether an item of a list names the node, or its class: the name without trailing digits. */
static bool is_named(const char *name, const char *list)
{
    while (list && *list) {
        size_t bytes = strcspn(list, ","), stem = strlen(name);

        if (bytes == stem && strncmp(name, list, bytes) == 0)
            return true;
        while (stem > 0 && isdigit((unsigned char)name[stem - 1]))
            stem--;
        if (bytes == stem && strncmp(name, list, bytes) == 0)
            return true;
        list += bytes + (list[bytes] == ',');
    }
    return false;
}

/* Applies the kinds given by the options. If only one list is given, nodes of unknown kind are of
 * the other kind. */
static int choose_kinds(struct by_draft *draft, size_t *file)
{
    const struct by_import_options *options = draft->options;

    for (uint32_t i = 0; i < draft->node_count; i++) {
        struct by_draft_node *node = &draft->nodes[i];

        if (node->left_out)
            continue;
        if (is_named(node->label, options->switches))
            node->kind = BY_DRAFT_SWITCH;
        else if (is_named(node->label, options->compute))
            node->kind = BY_DRAFT_COMPUTE;
        else if (node->kind == BY_DRAFT_UNKNOWN && !options->switches != !options->compute)
            node->kind = options->switches ? BY_DRAFT_COMPUTE : BY_DRAFT_SWITCH;
        if (node->kind == BY_DRAFT_UNKNOWN) {
            *file = node->file;
            return BY_DRAFT_REFUSE(
                draft, node->place,
                "the file does not state whether '%s' is a switch or a compute node; list one kind with "
                "--switches or --compute",
                node->label);
        }
    }
    return 0;
}

static int compare_pairs(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Lists each pair of linked nodes that are not left out, once from each side, as (node << 32 |
 * neighbour), sorted. */
static uint32_t find_neighbours(const struct by_draft *draft, uint64_t *pairs)
{
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < draft->link_count; i++) {
        const struct by_draft_link *link = &draft->links[i];

        if (draft->nodes[link->a].left_out || draft->nodes[link->b].left_out)
            continue;
        pairs[count++] = (uint64_t)link->a << 32 | link->b;
        pairs[count++] = (uint64_t)link->b << 32 | link->a;
    }
    if (count > 1)
        qsort(pairs, count, sizeof(*pairs), compare_pairs);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || pairs[kept - 1] != pairs[i])
            pairs[kept++] = pairs[i];
    return kept;
}

/* Leaves out switches with at most one neighbour, repeatedly. */
static void prune(struct by_draft *draft)
{
    uint64_t *pairs = by_alloc(2 * (size_t)draft->link_count, sizeof(*pairs));
    uint32_t *first = by_alloc((size_t)draft->node_count + 1, sizeof(*first)),
             count = find_neighbours(draft, pairs);
    uint32_t *left = by_alloc(draft->node_count, sizeof(*left));
    uint32_t *queue = by_alloc(draft->node_count, sizeof(*queue)), head = 0, tail = 0;

    for (uint32_t i = 0; i < count; i++)
        first[(pairs[i] >> 32) + 1]++;
    for (uint32_t i = 0; i < draft->node_count; i++) {
        left[i] = first[i + 1];
        first[i + 1] += first[i];
        if (draft->nodes[i].kind == BY_DRAFT_SWITCH && !draft->nodes[i].left_out && left[i] <= 1)
            queue[tail++] = i;
    }
    while (head < tail) {
        uint32_t node = queue[head++];

        draft->nodes[node].left_out = true;
        by_draft_leave_out(draft, draft->nodes[node].label);
        for (uint32_t i = first[node]; i < first[node + 1]; i++) {
            uint32_t other = (uint32_t)pairs[i];

            if (draft->nodes[other].kind == BY_DRAFT_SWITCH && !draft->nodes[other].left_out &&
                left[other]-- == 2)
                queue[tail++] = other;
        }
    }
    free(pairs);
    free(first);
    free(left);
    free(queue);
}

/* ---- order ---- */

struct place_in_order {
    const struct by_draft_node *node;
    uint32_t number;
    bool sort;
};

/* Compares names in natural order: digits by their value. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            size_t left, right;

            while (*a == '0' && isdigit((unsigned char)a[1]))
                a++;
            while (*b == '0' && isdigit((unsigned char)b[1]))
                b++;
            left = strspn(a, "0123456789");
            right = strspn(b, "0123456789");
            if (left != right)
                return left < right ? -1 : 1;
            if (strncmp(a, b, left) != 0)
                return strncmp(a, b, left);
            a += left;
            b += right;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int compare_places(const void *left, const void *right)
{
    const struct place_in_order *a = left, *b = right;

    if (a->node->kind != b->node->kind)
        return a->node->kind < b->node->kind ? -1 : 1;
    if (a->node->order != b->node->order)
        return a->node->order < b->node->order ? -1 : 1;
    if (a->sort && compare_names(a->node->label, b->node->label) != 0)
        return compare_names(a->node->label, b->node->label);
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Adds the nodes to the builder, compute nodes first; `index` (by draft node) receives their
 * indices. */
static void add_nodes(const struct by_draft *draft, struct by_builder *builder, uint32_t *index)
{
    struct place_in_order *places = by_alloc(draft->node_count, sizeof(*places));
    uint32_t count = 0;

    for (uint32_t i = 0; i < draft->node_count; i++)
        if (!draft->nodes[i].left_out)
            places[count++] = (struct place_in_order){&draft->nodes[i], i, draft->sort};
    if (count > 1)
        qsort(places, count, sizeof(*places), compare_places);
    for (uint32_t i = 0; i < count; i++) {
        const struct by_draft_node *from = places[i].node;
        bool compute = from->kind == BY_DRAFT_COMPUTE;
        struct by_node node = {.name = from->label,
                               .compute = compute,
                               .multicast = from->multicast && !compute,
                               .aggregate = from->aggregate && !compute,
                               .aggregate_rate = {0, 1}};

        index[places[i].number] = by_builder_node(builder, &node);
    }
    free(places);
}

/* Makes a name valid in a topology file: if it is not UTF-8, as in some old files, its bytes above
 * ASCII are replaced. The caller frees it. */
static char *fit_fabric_name(const char *given)
{
    char *name = by_copy_text(given);
    json_t *string = json_string(given);

    for (char *c = name; !string && *c; c++)
        *c = (unsigned char)*c < 0x80 ? *c : '_';
    json_decref(string);
    return name;
}

int by_draft_finish(struct by_draft *draft, struct by_topology **topology, struct by_import_report *report)
{
    char *name = fit_fabric_name(draft->options->name ? draft->options->name : draft->name);
    struct by_builder *builder;
    uint32_t *index;
    size_t file = draft->file;
    int error;

    fit_names(draft);
    error = choose_kinds(draft, &file);
    draft->file = (uint32_t)file;
    if (error) {
        free(name);
        return error;
    }
    if (draft->prune)
        prune(draft);
    report->left_out = draft->left_out;
    snprintf(report->left_out_name, sizeof(report->left_out_name), "%s", draft->left_out_name);
    builder = by_builder_new(name, "GB/s");
    free(name);
    index = by_alloc(draft->node_count, sizeof(*index));
    add_nodes(draft, builder, index);
    for (uint32_t i = 0; i < draft->link_count; i++) {
        const struct by_draft_link *link = &draft->links[i];

        if (!draft->nodes[link->a].left_out && !draft->nodes[link->b].left_out)
            by_builder_link(builder, index[link->a], index[link->b], link->both_ways, link->rate,
                            link->place);
    }
    error = by_builder_finish(builder, topology, draft->problem);
    if (!error && draft->options->capable) {
        error = by_capable_choose(*topology, draft->options->capable, draft->problem);
        if (error) {
            by_topology_free(*topology);
            *topology = NULL;
        }
    }
    free(index);
    by_builder_free(builder);
    return error;
}
