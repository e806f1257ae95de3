/*
 * The output of lldpctl -f json (or json0): the neighbours on each interface of one node. There is
 * one file per node, named after it (NAME.json), typically collected by a loop over ssh. A link
 * between two nodes that both have a file is listed twice. Since port names may differ between a
 * node's own view and the name that it announces, the links of two nodes are counted on both sides
 * and the larger count is used. See import.h.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/import/draft.h"
#include "control/fabric/import/lldp_json.h"
#include "offload/base/errors.h"

/* Maximum size of a node's file (bytes): thousands of neighbours. As objects in memory it is about
 * twenty times as large. */
#define FILE_BYTES_MAX ((size_t)8 << 20)

/* A neighbour on an interface of a node. */
struct sight {
    uint32_t from, to;
    struct by_fraction rate; /* num 0: unknown */
    uint32_t file;
    struct by_place place;
};

struct import_lldp_reader {
    struct by_draft *draft;
    const char *text;
    size_t bytes;
    size_t at; /* offset up to which keys were searched, since they are searched in order */
    struct by_draft_cursor cursor;
    uint32_t node;
    uint32_t sight_count, sight_room;
    struct sight *sights;
};

/* Finds the position of a key after the previous one, which is precise enough for
 * error messages. */
static struct by_place find_place(struct import_lldp_reader *reader, const char *key)
{
    size_t bytes = strlen(key);

    for (size_t at = reader->at; at + bytes + 2 <= reader->bytes; at++)
        if (reader->text[at] == '"' && memcmp(reader->text + at + 1, key, bytes) == 0 &&
            reader->text[at + 1 + bytes] == '"') {
            reader->at = at + 1;
            return by_cursor_place(&reader->cursor, at);
        }
    reader->at = reader->bytes; /* the key is written with escapes: no more positions in this file */
    return (struct by_place){0, 0};
}

/* ---- one neighbour ---- */

/* Returns GB/s from the start of a MAU type, such as "100GbaseCR4 - ...", "10GigBaseSR - ...",
 * "2p5GigT", "1000BaseTFD - ...": a number, in Gb/s when a G follows, else in Mb/s. */
static struct by_fraction read_speed(const char *text)
{
    struct by_fraction rate = {0, 1};
    int64_t whole = 0, tenths = 0;

    if (!text || !isdigit((unsigned char)*text))
        return rate;
    for (; isdigit((unsigned char)*text) && whole < 1000000; text++)
        whole = 10 * whole + (*text - '0');
    if ((*text == 'p' || *text == '.') && isdigit((unsigned char)text[1])) {
        tenths = text[1] - '0';
        text += 2;
    }
    if (by_fraction_set((__int128)(10 * whole + tenths) * (tolower((unsigned char)*text) == 'g' ? 1000 : 1),
                        80000, &rate) != 0)
        rate = (struct by_fraction){0, 1};
    return rate;
}

/* Finds a node. Names are compared without their domain: hosts announce full names, files have
 * short ones. */
static uint32_t find_node(struct import_lldp_reader *reader, const char *name, struct by_place place)
{
    char label[128];

    snprintf(label, sizeof(label), "%s", name);
    if (!isdigit((unsigned char)label[0]) && !strchr(label, ':'))
        label[strcspn(label, ".")] = '\0';
    return by_draft_node(reader->draft, label, label, place);
}

static int take_sight(void *context, const struct by_lldp_sight *from)
{
    struct import_lldp_reader *reader = context;
    struct sight sight = {
        .from = reader->node, .file = reader->draft->file, .place = find_place(reader, from->interface)};

    if (!from->node)
        return BY_DRAFT_REFUSE(
            reader->draft, sight.place,
            "interface '%.40s' has a neighbour without a chassis: is the file the output of `lldpctl "
            "-f json`?",
            from->interface);
    sight.to = find_node(reader, from->node, sight.place);
    if (sight.to == UINT32_MAX)
        return BY_ELIMIT;
    if (sight.to == reader->node)
        return BY_DRAFT_REFUSE(reader->draft, sight.place,
                               "interface '%.40s' has its own node '%.60s' as a neighbour", from->interface,
                               from->node);
    /* A node that reports forwarding in any file is a switch. */
    if (from->forwards)
        reader->draft->nodes[sight.to].kind = BY_DRAFT_SWITCH;
    else if (reader->draft->nodes[sight.to].kind == BY_DRAFT_UNKNOWN)
        reader->draft->nodes[sight.to].kind = BY_DRAFT_COMPUTE;
    sight.rate = read_speed(from->speed);
    BY_GROW(reader->sights, reader->sight_count, reader->sight_room);
    reader->sights[reader->sight_count++] = sight;
    return 0;
}

/* ---- files ---- */

/* Derives the node's name from the file's name, without folder and extension. */
static void name_of_file(const char *path, char *name, size_t room)
{
    const char *slash = strrchr(path, '/'), *dot;

    snprintf(name, room, "%s", slash ? slash + 1 : path);
    dot = strstr(name, ".json");
    if (dot)
        name[dot - name] = '\0';
}

static int read_file(struct import_lldp_reader *reader, const char *path)
{
    struct by_draft *draft = reader->draft;
    char *text, name[128];
    json_error_t mistake;
    json_t *root;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &reader->bytes, draft->problem);

    if (error)
        return error;
    reader->text = text;
    reader->at = 0;
    reader->cursor = (struct by_draft_cursor){.text = text};
    name_of_file(path, name, sizeof(name));
    reader->node = find_node(reader, name, (struct by_place){1, 1});
    root = json_loadb(text, reader->bytes, 0, &mistake);
    if (!root)
        error = by_problem_set(draft->problem, BY_EFORMAT, (struct by_place){mistake.line, mistake.column},
                               "not valid JSON: %s", mistake.text);
    else if (reader->node == UINT32_MAX)
        error = BY_ELIMIT;
    else if (!by_lldp_json_is(root))
        error = BY_DRAFT_REFUSE(draft, ((struct by_place){1, 1}),
                                "the file has no \"lldp\": is it the output of `lldpctl -f json`?");
    else
        error = by_lldp_json_each(root, take_sight, reader);
    json_decref(root);
    free(text);
    return error;
}

static int compare_sights(const void *left, const void *right)
{
    const struct sight *a = left, *b = right;
    uint32_t low_a = a->from < a->to ? a->from : a->to, low_b = b->from < b->to ? b->from : b->to;
    uint32_t high_a = a->from ^ a->to ^ low_a, high_b = b->from ^ b->to ^ low_b;

    if (low_a != low_b)
        return low_a < low_b ? -1 : 1;
    if (high_a != high_b)
        return high_a < high_b ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->place.line < b->place.line ? -1 : a->place.line > b->place.line;
}

static int join(struct import_lldp_reader *reader)
{
    int error = 0;

    if (reader->sight_count > 1)
        qsort(reader->sights, reader->sight_count, sizeof(*reader->sights), compare_sights);
    for (uint32_t i = 0, next; i < reader->sight_count && !error; i = next) {
        const struct sight *first = &reader->sights[i];
        uint32_t split, from, to;
        struct by_fraction known = {0, 1};

        /* Entries up to `split` are from the one node, entries up to `next` from the other. */
        for (split = i; split < reader->sight_count && reader->sights[split].from == first->from &&
                        reader->sights[split].to == first->to;
             split++)
            continue;
        for (next = split; next < reader->sight_count && reader->sights[next].from == first->to &&
                           reader->sights[next].to == first->from;
             next++)
            continue;
        from = next - split > split - i ? split : i;
        to = next - split > split - i ? next : split;
        /* A rate missing at one end is taken from the other end, or from a parallel link. */
        for (uint32_t o = i; o < next && known.num == 0; o++)
            known = reader->sights[o].rate;
        for (uint32_t s = from; s < to && !error; s++) {
            struct by_fraction rate = reader->sights[s].rate;

            reader->draft->file = reader->sights[s].file;
            error = by_draft_link(reader->draft, reader->sights[s].from, reader->sights[s].to, true,
                                  rate.num ? rate : known, reader->sights[s].place);
        }
    }
    return error;
}

int by_import_lldp(struct by_draft *draft, const char *const *paths, size_t count)
{
    struct import_lldp_reader reader = {.draft = draft};
    int error = 0;

    draft->sort = true;
    draft->prune = true;
    draft->name = "lldp";
    for (size_t i = 0; i < count && !error; i++) {
        draft->file = (uint32_t)i;
        error = read_file(&reader, paths[i]);
    }
    if (!error)
        error = join(&reader);
    /* A node with a file that no neighbour has described is a host, because hosts describe their
     * switches. */
    for (uint32_t i = 0; i < draft->node_count; i++)
        if (draft->nodes[i].kind == BY_DRAFT_UNKNOWN)
            draft->nodes[i].kind = BY_DRAFT_COMPUTE;
    free(reader.sights);
    return error;
}
