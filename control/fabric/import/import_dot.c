/*
 * Graphviz DOT (grammar: "The DOT Language"): nodes, edges, subgraphs, defaults. The kind of a node
 * is in the attribute `kind` (compute or switch; multicast, aggregate), otherwise in the shapes
 * that `banyan plot` draws (circle, box). The rate of an edge is in `bandwidth`, otherwise in a
 * `label` that is a number. See import.h.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/import/draft.h"
#include "control/fabric/unit.h"
#include "offload/base/errors.h"

/* Nesting depth of subgraphs (count). */
#define DEPTH_MAX 32u
/* Ends of one edge statement, a -- b -- c (count). */
#define ENDS_MAX   64u
#define TEXT_BYTES 256

enum import_dot_token {
    END,
    ID,
    OPEN,
    CLOSE,
    BRACKET,
    UNBRACKET,
    EQUAL,
    SEMICOLON,
    COMMA,
    COLON,
    EDGE,
    ARROW,
    BAD
};

/* The attributes so far; empty: not set. */
struct attributes {
    char kind[16], shape[16], style[64], multicast[8], aggregate[8];
    char bandwidth[48], label[48], direction[8];
};

/* The nodes of one end of an edge: a node, or all nodes of a subgraph. */
struct set {
    uint32_t count, room;
    uint32_t *nodes;
};

struct scope {
    struct attributes node, edge; /* defaults */
    struct set members;           /* nodes named in it */
};

struct import_dot_reader {
    struct by_draft *draft;
    struct by_draft_cursor cursor;
    const char *text;
    size_t bytes;
    size_t at;
    enum import_dot_token token;
    size_t token_at;
    char value[TEXT_BYTES]; /* value of an ID */
    bool quoted;
    bool directed;
    uint32_t depth;
    struct scope scopes[DEPTH_MAX];
};

static int refuse(struct import_dot_reader *reader, const char *wanted)
{
    struct by_place place = by_cursor_place(&reader->cursor, reader->token_at);
    char single[2] = {reader->token == END ? '\0' : reader->text[reader->token_at], '\0'};

    if (reader->token == BAD)
        return BY_DRAFT_REFUSE(reader->draft, place, "%s", reader->value);
    if (reader->token == END)
        return BY_DRAFT_REFUSE(reader->draft, place, "the file ends where %s is expected", wanted);
    return BY_DRAFT_REFUSE(reader->draft, place, "%s is expected here, not '%.40s'", wanted,
                           reader->token == ID ? reader->value : single);
}

/* ---- tokens ---- */

static char look(const struct import_dot_reader *reader, size_t ahead)
{
    return reader->at + ahead < reader->bytes ? reader->text[reader->at + ahead] : '\0';
}

static void skip_blanks(struct import_dot_reader *reader)
{
    const char *text = reader->text;

    while (reader->at < reader->bytes) {
        if (isspace((unsigned char)text[reader->at])) {
            reader->at++;
        } else if ((text[reader->at] == '/' && look(reader, 1) == '/') ||
                   (text[reader->at] == '#' && (reader->at == 0 || text[reader->at - 1] == '\n'))) {
            while (reader->at < reader->bytes && text[reader->at] != '\n')
                reader->at++;
        } else if (text[reader->at] == '/' && look(reader, 1) == '*') {
            const char *end = memmem(text + reader->at + 2, reader->bytes - reader->at - 2, "*/", 2);

            reader->at = end ? (size_t)(end - text) + 2 : reader->bytes;
        } else {
            return;
        }
    }
}

static enum import_dot_token bad(struct import_dot_reader *reader, const char *why)
{
    snprintf(reader->value, sizeof(reader->value), "%s", why);
    return BAD;
}

/* Reads text in quotes, whose parts may be joined by +. */
static enum import_dot_token read_quoted(struct import_dot_reader *reader)
{
    size_t bytes = 0;

    reader->quoted = true;
    for (;;) {
        reader->at++;
        while (reader->at < reader->bytes && reader->text[reader->at] != '"') {
            char c = reader->text[reader->at++];

            if (c == '\\' && (look(reader, 0) == '"' || look(reader, 0) == '\\'))
                c = reader->text[reader->at++];
            if (c == '\0')
                return bad(reader, "the file has a zero character; remove it");
            if (bytes + 1 < sizeof(reader->value))
                reader->value[bytes++] = c;
        }
        if (reader->at >= reader->bytes)
            return bad(reader, "a quoted string is not terminated");
        reader->at++;
        skip_blanks(reader);
        if (look(reader, 0) != '+')
            break;
        reader->at++;
        skip_blanks(reader);
        if (look(reader, 0) != '"')
            return bad(reader, "+ joins quoted strings; none follows it");
    }
    reader->value[bytes] = '\0';
    return ID;
}

/* Skips HTML-like text, counting its brackets. */
static enum import_dot_token read_html(struct import_dot_reader *reader)
{
    uint32_t open = 0;

    do {
        char c = look(reader, 0);

        open += c == '<';
        open -= c == '>';
        reader->at++;
    } while (open > 0 && reader->at < reader->bytes);
    reader->value[0] = '\0';
    return open > 0 ? bad(reader, "a string in < > is not terminated") : ID;
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static enum import_dot_token read_word(struct import_dot_reader *reader)
{
    size_t bytes = 0;
    bool number = look(reader, 0) == '-' || look(reader, 0) == '.' || isdigit((unsigned char)look(reader, 0));

    while (reader->at < reader->bytes &&
           (in_name(look(reader, 0)) ||
            (number && (look(reader, 0) == '.' || (bytes == 0 && look(reader, 0) == '-'))))) {
        if (bytes + 1 < sizeof(reader->value))
            reader->value[bytes++] = look(reader, 0);
        reader->at++;
    }
    reader->value[bytes] = '\0';
    return ID;
}

static enum import_dot_token scan(struct import_dot_reader *reader)
{
    static const char singles[] = "{}[]=;,:";
    static const enum import_dot_token tokens[] = {OPEN,  CLOSE,     BRACKET, UNBRACKET,
                                                   EQUAL, SEMICOLON, COMMA,   COLON};
    const char *single;
    char c;

    skip_blanks(reader);
    reader->token_at = reader->at;
    reader->quoted = false;
    if (reader->at >= reader->bytes)
        return END;
    c = look(reader, 0);
    single = c ? strchr(singles, c) : NULL;
    if (single) {
        reader->at++;
        return tokens[single - singles];
    }
    if (c == '-' && (look(reader, 1) == '-' || look(reader, 1) == '>')) {
        reader->at += 2;
        return reader->text[reader->at - 1] == '>' ? ARROW : EDGE;
    }
    if (c == '"')
        return read_quoted(reader);
    if (c == '<')
        return read_html(reader);
    if (in_name(c) || c == '.' ||
        (c == '-' && (isdigit((unsigned char)look(reader, 1)) || look(reader, 1) == '.')))
        return read_word(reader);
    return bad(reader, "this character is not valid in a DOT file");
}

static void next(struct import_dot_reader *reader)
{
    reader->token = scan(reader);
}

/* Whether the token is this keyword, in any case, and not quoted. */
static bool is_word(const struct import_dot_reader *reader, const char *word)
{
    const char *a = reader->value;

    if (reader->token != ID || reader->quoted)
        return false;
    while (*a && tolower((unsigned char)*a) == *word) {
        a++;
        word++;
    }
    return !*a && !*word;
}

/* ---- attributes ---- */

static void set_attribute(struct attributes *attributes, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t at, room;
    } known[] = {
#define KNOWN(field, word) {word, offsetof(struct attributes, field), sizeof(((struct attributes *)0)->field)}
        KNOWN(kind, "kind"),           KNOWN(shape, "shape"),         KNOWN(style, "style"),
        KNOWN(multicast, "multicast"), KNOWN(aggregate, "aggregate"), KNOWN(bandwidth, "bandwidth"),
        KNOWN(label, "label"),         KNOWN(direction, "dir"),
#undef KNOWN
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(name, known[i].name) == 0)
            snprintf((char *)attributes + known[i].at, known[i].room, "%s", value);
}

/* [a=b, c=d; e] ... */
static int read_attributes(struct import_dot_reader *reader, struct attributes *attributes)
{
    while (reader->token == BRACKET) {
        next(reader);
        while (reader->token != UNBRACKET) {
            char name[TEXT_BYTES];

            if (reader->token != ID)
                return refuse(reader, "an attribute or ]");
            memcpy(name, reader->value, sizeof(name));
            next(reader);
            if (reader->token == EQUAL) {
                next(reader);
                if (reader->token != ID)
                    return refuse(reader, "the value of an attribute");
                set_attribute(attributes, name, reader->value);
                next(reader);
            }
            if (reader->token == COMMA || reader->token == SEMICOLON)
                next(reader);
        }
        next(reader);
    }
    return 0;
}

static int apply_to_node(struct import_dot_reader *reader, uint32_t node, const struct attributes *attributes,
                         size_t at)
{
    struct by_draft_node *to = &reader->draft->nodes[node];
    bool compute = strcmp(attributes->kind, "compute") == 0,
         forwards = strcmp(attributes->kind, "switch") == 0;

    if (attributes->kind[0] && !compute && !forwards)
        return BY_DRAFT_REFUSE(reader->draft, by_cursor_place(&reader->cursor, at),
                               "kind of '%.60s' is '%s'; it must be compute or switch", to->label,
                               attributes->kind);
    if (attributes->kind[0]) {
        to->kind = compute ? BY_DRAFT_COMPUTE : BY_DRAFT_SWITCH;
    } else if (strcmp(attributes->shape, "circle") == 0) {
        to->kind = BY_DRAFT_COMPUTE;
    } else if (strcmp(attributes->shape, "box") == 0) {
        to->kind = BY_DRAFT_SWITCH;
        to->multicast = to->aggregate = strstr(attributes->style, "filled") != NULL;
    }
    if (attributes->multicast[0])
        to->multicast = strcmp(attributes->multicast, "true") == 0;
    if (attributes->aggregate[0])
        to->aggregate = strcmp(attributes->aggregate, "true") == 0;
    return 0;
}

/* Whether a label is a rate, such as "25" (GB/s), "12.5 GB/s" or "100 Gbit/s"; "5/10" is a load in
 * a drawing, not a bandwidth. */
static bool label_is_rate(const char *label, struct by_fraction *rate)
{
    size_t bytes = strspn(label, "0123456789.");
    const char *unit = label + bytes;

    while (*unit == ' ')
        unit++;
    return bytes > 0 && by_fraction_parse(label, bytes, rate) == 0 &&
           by_unit_gigabytes(*unit ? unit : "GB/s", *rate, rate) == 0;
}

static int add_edge(struct import_dot_reader *reader, const struct set *from, const struct set *to,
                    const struct attributes *attributes, size_t at)
{
    struct by_place place = by_cursor_place(&reader->cursor, at);
    bool both = !reader->directed || strcmp(attributes->direction, "both") == 0 ||
                strcmp(attributes->direction, "none") == 0;
    bool back = strcmp(attributes->direction, "back") == 0;
    struct by_fraction rate = {0, 1};

    if (attributes->bandwidth[0]) {
        if (by_fraction_parse(attributes->bandwidth, strlen(attributes->bandwidth), &rate) != 0 ||
            rate.num == 0)
            return BY_DRAFT_REFUSE(
                reader->draft, place,
                "bandwidth is '%s'; it must be a positive integer, decimal or fraction such as 12, "
                "12.5 or 25/2",
                attributes->bandwidth);
    } else if (attributes->label[0] && !label_is_rate(attributes->label, &rate)) {
        rate = (struct by_fraction){0, 1};
    }
    for (uint32_t a = 0; a < from->count; a++)
        for (uint32_t b = 0; b < to->count; b++) {
            int error = by_draft_link(reader->draft, back ? to->nodes[b] : from->nodes[a],
                                      back ? from->nodes[a] : to->nodes[b], both, rate, place);

            if (error)
                return error;
        }
    return 0;
}

/* ---- statements ---- */

static void add_member(struct set *set, uint32_t node)
{
    BY_GROW(set->nodes, set->count, set->room);
    set->nodes[set->count++] = node;
}

static int read_statements(struct import_dot_reader *reader);

/* Reads a node, or a subgraph with its statements, into `set`. */
static int read_end(struct import_dot_reader *reader, struct set *set)
{
    struct scope *inner;
    int error;

    if (reader->token == ID && !is_word(reader, "subgraph")) {
        uint32_t before = reader->draft->node_count;
        uint32_t node = by_draft_node(reader->draft, reader->value, reader->value,
                                      by_cursor_place(&reader->cursor, reader->token_at));

        if (node == UINT32_MAX)
            return BY_ELIMIT;
        if (node == before &&
            apply_to_node(reader, node, &reader->scopes[reader->depth].node, reader->token_at) != 0)
            return BY_EINVAL;
        add_member(set, node);
        next(reader);
        /* Skip a port (and compass point) of the node. */
        while (reader->token == COLON) {
            next(reader);
            if (reader->token != ID)
                return refuse(reader, "the name of a port");
            next(reader);
        }
        return 0;
    }
    if (is_word(reader, "subgraph")) {
        next(reader);
        if (reader->token == ID)
            next(reader);
    }
    if (reader->token != OPEN)
        return refuse(reader, "a node or {");
    if (reader->depth + 1 >= DEPTH_MAX)
        return by_problem_set(reader->draft->problem, BY_ELIMIT,
                              by_cursor_place(&reader->cursor, reader->token_at),
                              "subgraphs are nested more than %u deep", DEPTH_MAX - 1);
    next(reader);
    inner = &reader->scopes[++reader->depth];
    inner->node = reader->scopes[reader->depth - 1].node;
    inner->edge = reader->scopes[reader->depth - 1].edge;
    inner->members.count = 0;
    error = read_statements(reader);
    if (!error && reader->token != CLOSE)
        error = refuse(reader, "}");
    if (!error)
        next(reader);
    for (uint32_t i = 0; i < inner->members.count && !error; i++)
        add_member(set, inner->members.nodes[i]);
    reader->depth--;
    return error;
}

/* a -- b -- {c d} [...], or a [...]; the nodes join the scope. */
static int read_edge_or_node(struct import_dot_reader *reader)
{
    struct set ends[ENDS_MAX] = {{0}};
    size_t places[ENDS_MAX], at = reader->token_at;
    uint32_t count = 0;
    struct attributes attributes = reader->scopes[reader->depth].edge, own = {.kind = ""};
    int error = read_end(reader, &ends[count++]);

    while (!error && count < ENDS_MAX && (reader->token == EDGE || reader->token == ARROW)) {
        if ((reader->token == ARROW) != reader->directed)
            error = refuse(reader, reader->directed ? "->" : "--");
        if (error)
            break;
        next(reader);
        places[count] = reader->token_at;
        error = read_end(reader, &ends[count++]);
    }
    if (!error && (reader->token == EDGE || reader->token == ARROW))
        error = by_problem_set(reader->draft->problem, BY_ELIMIT,
                               by_cursor_place(&reader->cursor, reader->token_at),
                               "one statement joins a chain of more than %u nodes", ENDS_MAX);
    if (!error)
        error = read_attributes(reader, count > 1 ? &attributes : &own);
    for (uint32_t i = 1; i < count && !error; i++)
        error = add_edge(reader, &ends[i - 1], &ends[i], &attributes, places[i]);
    for (uint32_t i = 0; count == 1 && i < ends[0].count && !error; i++)
        error = apply_to_node(reader, ends[0].nodes[i], &own, at);
    for (uint32_t e = 0; e < count; e++) {
        for (uint32_t i = 0; i < ends[e].count && !error; i++)
            add_member(&reader->scopes[reader->depth].members, ends[e].nodes[i]);
        free(ends[e].nodes);
    }
    return error;
}

static int read_statement(struct import_dot_reader *reader)
{
    struct scope *scope = &reader->scopes[reader->depth];
    struct attributes unused = {.kind = ""}, *defaults = NULL;

    if (is_word(reader, "node"))
        defaults = &scope->node;
    else if (is_word(reader, "edge"))
        defaults = &scope->edge;
    else if (is_word(reader, "graph"))
        defaults = &unused;
    if (defaults) {
        next(reader);
        return reader->token == BRACKET ? read_attributes(reader, defaults) : refuse(reader, "[");
    }
    /* name = value, of the graph */
    if (reader->token == ID) {
        skip_blanks(reader);
        if (look(reader, 0) == '=') {
            next(reader);
            next(reader);
            if (reader->token != ID)
                return refuse(reader, "a value");
            next(reader);
            return 0;
        }
    }
    return read_edge_or_node(reader);
}

static int read_statements(struct import_dot_reader *reader)
{
    int error = 0;

    while (!error && reader->token != CLOSE) {
        if (reader->token == SEMICOLON || reader->token == COMMA)
            next(reader);
        else if (reader->token == ID || reader->token == OPEN)
            error = read_statement(reader);
        else
            return refuse(reader, "a node, an edge or }");
    }
    return error;
}

static int read_graph(struct import_dot_reader *reader, char *name, size_t room)
{
    int error;

    next(reader);
    if (is_word(reader, "strict"))
        next(reader);
    if (!is_word(reader, "graph") && !is_word(reader, "digraph"))
        return refuse(reader, "graph or digraph");
    reader->directed = is_word(reader, "digraph");
    next(reader);
    if (reader->token == ID) {
        snprintf(name, room, "%.100s", reader->value);
        next(reader);
    }
    if (reader->token != OPEN)
        return refuse(reader, "{");
    next(reader);
    error = read_statements(reader);
    if (!error && reader->token != CLOSE)
        error = refuse(reader, "}");
    if (error)
        return error;
    next(reader);
    return reader->token == END ? 0 : refuse(reader, "the end of the file");
}

int by_import_dot(struct by_draft *draft, const char *const *paths, size_t count)
{
    struct import_dot_reader *reader;
    char *text;
    size_t bytes;
    int error;

    snprintf(draft->own_name, sizeof(draft->own_name), "dot");
    draft->name = draft->own_name;
    if (count != 1)
        return BY_DRAFT_REFUSE(draft, ((struct by_place){0, 0}),
                               "a DOT file describes a whole fabric; name one file");
    error = by_text_read(paths[0], BY_IMPORT_BYTES_MAX, &text, &bytes, draft->problem);
    if (error)
        return error;
    reader = by_alloc(1, sizeof(*reader));
    reader->draft = draft;
    reader->text = reader->cursor.text = text;
    reader->bytes = bytes;
    error = read_graph(reader, draft->own_name, sizeof(draft->own_name));
    for (uint32_t i = 0; i < DEPTH_MAX; i++)
        free(reader->scopes[i].members.nodes);
    free(reader);
    free(text);
    return error;
}
