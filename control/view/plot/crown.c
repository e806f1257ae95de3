/* Merges equal branches of a tree and draws the tree from left to right. See crown.h. */
#include "control/view/plot/crown.h"

#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/classes.h"
#include "control/view/plot/color.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/svg.h"

#define TWIGS_MAX 40u /* above this number, branches are compared by kind only */
#define STEP_X    190.0
#define STEP_Y    30.0
#define VIA_BYTES 64

/* Nodes of the tree that are drawn as one. */
struct twig {
    uint32_t sample, count, parent;
    double x, y;
    char via[VIA_BYTES]; /* switches between the parent and this node */
};

struct crown_branch {
    uint64_t key;
    uint32_t node;
};

struct by_crown {
    const struct by_fabric *fabric;
    const struct by_tree *tree;
    uint32_t *first, *next; /* linked lists of children: first[node], next[node] */
    uint32_t *edge;         /* by node: the edge from its parent */
    uint64_t *key;          /* by node */
    struct twig *twigs;
    uint32_t twig_count, twig_room;
    double rows, width;
};

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static uint64_t stem_hash(const struct by_crown *crown, uint32_t node, uint64_t hash)
{
    const char *name = crown->fabric->topology->nodes[node].name;

    for (uint32_t i = 0; i < by_stem_bytes(name); i++)
        hash = mix(hash * 31 + (unsigned char)name[i] + 1);
    return hash;
}

/*
 * Computes keys from the leaves inwards. With `whole`, a key includes the branches below the node.
 */
static void find_keys(struct by_crown *crown, bool whole)
{
    const struct by_plan *plan = crown->fabric->plan;
    uint64_t *below = by_alloc(crown->fabric->topology->node_count, sizeof(*below));

    for (uint32_t e = crown->tree->edge_count; e-- > 0;) {
        struct by_path path = by_plan_edge(plan, crown->tree, e);
        uint32_t child = path.nodes[path.node_count - 1];
        uint64_t hash = 7;

        for (uint32_t i = 1; i < path.node_count; i++)
            hash = stem_hash(crown, path.nodes[i], hash);
        crown->key[child] = whole ? mix(hash + below[child]) : hash;
        below[path.nodes[0]] += mix(crown->key[child]);
    }
    free(below);
}

static int by_key(const void *left, const void *right)
{
    const struct crown_branch *x = left, *y = right;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Writes the kinds of the switches on the way to `node`: "via pcie, nic". */
static void tell_way(const struct by_crown *crown, uint32_t node, char via[VIA_BYTES])
{
    struct by_path path = by_plan_edge(crown->fabric->plan, crown->tree, crown->edge[node]);
    size_t at = 0;

    via[0] = 0;
    for (uint32_t i = 1; i + 1 < path.node_count && at < VIA_BYTES; i++) {
        const char *name = crown->fabric->topology->nodes[path.nodes[i]].name;

        at += (size_t)snprintf(via + at, VIA_BYTES - at, "%s%.*s", at ? ", " : "via ",
                               (int)by_stem_bytes(name), name);
    }
}

/* Makes a twig of equal nodes, and recursively of their children. Stops beyond TWIGS_MAX twigs. */
static void grow(struct by_crown *crown, uint32_t parent, const struct crown_branch *alike, uint32_t count)
{
    uint32_t twig = crown->twig_count, children = 0, room = 0;
    struct crown_branch *branches = NULL;

    if (twig > TWIGS_MAX)
        return;
    BY_GROW(crown->twigs, crown->twig_count, crown->twig_room);
    crown->twigs[crown->twig_count++] =
        (struct twig){.sample = alike[0].node, .count = count, .parent = parent};
    if (parent != UINT32_MAX)
        tell_way(crown, alike[0].node, crown->twigs[twig].via);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t child = crown->first[alike[i].node]; child != UINT32_MAX; child = crown->next[child]) {
            BY_GROW(branches, children, room);
            branches[children++] = (struct crown_branch){crown->key[child], child};
        }
    if (children)
        qsort(branches, children, sizeof(*branches), by_key);
    for (uint32_t i = 0, start = 0; i < children; i++)
        if (i + 1 == children || branches[i + 1].key != branches[i].key) {
            grow(crown, twig, branches + start, i + 1 - start);
            start = i + 1;
        }
    free(branches);
}

static void place(struct by_crown *crown)
{
    uint32_t *children = by_alloc(crown->twig_count, sizeof(*children));
    double *low = by_alloc(crown->twig_count, sizeof(*low)),
           *high = by_alloc(crown->twig_count, sizeof(*high));

    for (uint32_t t = 0; t < crown->twig_count; t++) {
        struct twig *twig = &crown->twigs[t];

        twig->x = twig->parent == UINT32_MAX ? 18 : crown->twigs[twig->parent].x + STEP_X;
        crown->width = fmax(crown->width, twig->x + 150);
        if (twig->parent != UINT32_MAX)
            children[twig->parent]++;
    }
    for (uint32_t t = 0; t < crown->twig_count; t++) /* depth-first, so leaves are in order */
        if (children[t] == 0)
            crown->twigs[t].y = STEP_Y * (crown->rows++ + 0.7);
    for (uint32_t t = crown->twig_count; t-- > 0;) {
        struct twig *twig = &crown->twigs[t];
        uint32_t p = twig->parent;

        if (children[t])
            twig->y = (low[t] + high[t]) / 2;
        if (p == UINT32_MAX)
            continue;
        high[p] = fmax(high[p], twig->y);
        low[p] = low[p] > 0 ? fmin(low[p], twig->y) : twig->y;
    }
    free(children);
    free(low);
    free(high);
}

struct by_crown *by_crown_make(const struct by_fabric *fabric, uint32_t tree)
{
    struct by_crown *crown = by_alloc(1, sizeof(*crown));
    uint32_t count = fabric->topology->node_count;
    struct crown_branch root;

    crown->fabric = fabric;
    crown->tree = &fabric->plan->trees[tree];
    crown->first = by_alloc(count, sizeof(*crown->first));
    crown->next = by_alloc(count, sizeof(*crown->next));
    crown->edge = by_alloc(count, sizeof(*crown->edge));
    crown->key = by_alloc(count, sizeof(*crown->key));
    memset(crown->first, 0xff, count * sizeof(*crown->first));
    for (uint32_t e = 0; e < crown->tree->edge_count; e++) {
        struct by_path path = by_plan_edge(fabric->plan, crown->tree, e);
        uint32_t child = path.nodes[path.node_count - 1];

        crown->edge[child] = e;
        crown->next[child] = crown->first[path.nodes[0]];
        crown->first[path.nodes[0]] = child;
    }
    root = (struct crown_branch){0, crown->tree->root};
    for (int whole = 1; whole >= 0; whole--) {
        crown->twig_count = 0;
        find_keys(crown, whole);
        grow(crown, UINT32_MAX, &root, 1);
        if (crown->twig_count <= TWIGS_MAX)
            break;
    }
    place(crown);
    return crown;
}

void by_crown_free(struct by_crown *crown)
{
    if (crown == NULL)
        return;
    free(crown->first);
    free(crown->next);
    free(crown->edge);
    free(crown->key);
    free(crown->twigs);
    free(crown);
}

void by_crown_size(const struct by_crown *crown, double *width, double *height)
{
    *width = crown->width;
    *height = STEP_Y * (crown->rows + 0.6);
}

static void twig_text(const struct by_crown *crown, const struct twig *twig, char text[BY_LABEL_BYTES + 16])
{
    char label[BY_LABEL_BYTES];

    by_layout_label(crown->fabric->topology->nodes[twig->sample].name, label);
    if (twig->count > 1 && by_stem_bytes(label) < strlen(label))
        label[by_stem_bytes(label)] = 0;
    snprintf(text, BY_LABEL_BYTES + 16, twig->count > 1 ? "%s \xc3\x97%u" : "%s", label, twig->count);
}

static double label_width(const struct by_crown *crown, const struct twig *twig)
{
    char text[BY_LABEL_BYTES + 16];

    twig_text(crown, twig, text);
    return by_layout_text_width(text, 11.5);
}

static void draw_twig(const struct by_crown *crown, const struct twig *twig, FILE *out)
{
    enum by_symbol kind = by_fabric_symbol(crown->fabric, twig->sample);
    char text[BY_LABEL_BYTES + 16];
    struct by_svg_text style = {.size = 11.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .halo = 1};

    twig_text(crown, twig, text);
    by_symbol_draw(out, kind, twig->x, twig->y, kind == BY_SYMBOL_HOST ? 8 : 9,
                   kind == BY_SYMBOL_HOST ? 8 : 7);
    style.bold = twig->parent == UINT32_MAX;
    by_svg_text(out, twig->x + 13, twig->y + 4, &style, text);
}

void by_crown_draw(const struct by_crown *crown, FILE *out)
{
    bool down, up;

    by_fabric_flow(crown->fabric, crown->tree, &down, &up);
    for (uint32_t t = 1; t < crown->twig_count; t++) {
        const struct twig *twig = &crown->twigs[t], *parent = &crown->twigs[twig->parent];
        double x0 = parent->x + 18 + label_width(crown, parent), x1 = twig->x - 9;

        fprintf(out,
                "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
                "stroke-width=\"%.1f\"/>\n",
                x0, parent->y, x0 + 30, parent->y, x0 + 10, twig->y, x0 + 44, twig->y, by_tree_color(0),
                1.4 + 0.5 * log2(twig->count));
        fprintf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n", x0 + 44, twig->y,
                x1, by_tree_color(0), 1.4 + 0.5 * log2(twig->count));
        if (down)
            by_svg_arrow(out, (struct by_point){x1 + 1, twig->y}, (struct by_point){1, 0}, 10,
                         by_tree_color(0));
        if (up)
            by_svg_arrow(out, (struct by_point){x0 + 40, twig->y}, (struct by_point){-1, 0}, 10,
                         by_tree_color(0));
        if (twig->via[0])
            by_svg_text(out, (x0 + 40 + x1) / 2, twig->y - 6,
                        &(struct by_svg_text){
                            .size = 9.5, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_MUTED, .halo = 1},
                        twig->via);
    }
    for (uint32_t t = 0; t < crown->twig_count; t++)
        draw_twig(crown, &crown->twigs[t], out);
}
