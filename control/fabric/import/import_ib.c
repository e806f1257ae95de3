/*
 * ibnetdiscover's topology file (ibnetdiscover(8), "TOPOLOGY FILE FORMAT"): for each node a line
 * with its kind, count of ports and identity, then a line for each connected port with the peer
 * and, at its end, width and speed. Each link is listed twice, and both entries must agree. See
 * import.h.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/import/draft.h"
#include "offload/base/errors.h"

#define ID_BYTES 48
/* Adapters of one host whose ports have equal numbers (count). */
#define SAME_PORTS_MAX 64u

/* One end of a link, as listed at its node. */
struct import_ib_end {
    uint32_t node, port;
    char peer[ID_BYTES];
    uint32_t peer_port;
    struct by_fraction rate;
    struct by_place place;
};

struct import_ib_reader {
    struct by_draft *draft;
    const char *line, *end; /* the current line, without its newline */
    int number;
    uint32_t node; /* node whose ports follow, or UINT32_MAX */
    bool skip;     /* that node is left out */
    uint32_t end_count, end_room;
    struct import_ib_end *ends;
};

static struct by_place place_at(const struct import_ib_reader *reader, const char *at)
{
    return (struct by_place){reader->number, (int)(at - reader->line) + 1};
}

/* GB/s of one lane: signalling rate times the fraction that is data. */
static const struct {
    const char *name;
    struct by_fraction rate;
} speeds[] = {{"SDR", {1, 4}},  {"DDR", {1, 2}},  {"QDR", {1, 1}},  {"FDR10", {5, 4}}, {"FDR", {75, 44}},
              {"EDR", {25, 8}}, {"HDR", {25, 4}}, {"NDR", {25, 2}}, {"XDR", {25, 1}}};

/* Finds the word for width and speed, such as "4xEDR"; num 0 if there is none. */
static struct by_fraction find_rate(const struct import_ib_reader *reader, const char *from)
{
    struct by_fraction rate = {0, 1};

    for (const char *at = from; at < reader->end;) {
        const char *word = at;
        long width = 0;

        while (word < reader->end && isspace((unsigned char)*word))
            word++;
        at = word;
        while (at < reader->end && !isspace((unsigned char)*at))
            at++;
        while (word < at && isdigit((unsigned char)*word) && width < 1000)
            width = 10 * width + (*word++ - '0');
        if (width == 0 || word >= at || *word != 'x')
            continue;
        word++;
        for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
            if (strlen(speeds[i].name) == (size_t)(at - word) &&
                strncmp(word, speeds[i].name, (size_t)(at - word)) == 0)
                if (by_fraction_multiply(speeds[i].rate, (struct by_fraction){width, 1}, &rate) != 0)
                    rate = (struct by_fraction){0, 1};
    }
    return rate;
}

/* Reads the text between the next two quotes after *at; false when there are none. */
static bool read_quoted(const struct import_ib_reader *reader, const char **at, char *text, size_t room)
{
    const char *open = memchr(*at, '"', (size_t)(reader->end - *at)), *close;
    size_t bytes;

    if (!open)
        return false;
    close = memchr(open + 1, '"', (size_t)(reader->end - open - 1));
    if (!close)
        return false;
    bytes = (size_t)(close - open - 1);
    if (bytes >= room)
        bytes = room - 1;
    memcpy(text, open + 1, bytes);
    text[bytes] = '\0';
    *at = close + 1;
    return true;
}

/* Reads a number in brackets, such as "[17]", at *at. */
static bool read_port(const struct import_ib_reader *reader, const char **at, uint32_t *port)
{
    const char *c = *at;
    uint32_t value = 0, digits = 0;

    if (c >= reader->end || *c++ != '[')
        return false;
    for (; c < reader->end && isdigit((unsigned char)*c) && digits < 5; c++, digits++)
        value = 10 * value + (uint32_t)(*c - '0');
    if (digits == 0 || c >= reader->end || *c != ']')
        return false;
    *port = value;
    *at = c + 1;
    return true;
}

/* Switch 36 "S-0002c90300a1b2c0"   # "leaf0" base port 0 lid 6 lmc 0 */
static int read_node(struct import_ib_reader *reader, bool is_switch)
{
    const char *at = reader->line;
    char id[ID_BYTES], label[128], host[128];
    const char *key = id;

    if (!read_quoted(reader, &at, id, sizeof(id)))
        return BY_DRAFT_REFUSE(reader->draft, place_at(reader, reader->line),
                               "a node's line has no quoted identity, such as \"S-0002c90300a1b2c0\"");
    if (!read_quoted(reader, &at, label, sizeof(label)) || label[0] == '\0')
        snprintf(label, sizeof(label), "%s", id);
    reader->skip = !is_switch && strstr(label, "Aggregation Node") != NULL;
    if (reader->skip)
        by_draft_leave_out(reader->draft, label);
    if (!is_switch && reader->draft->options->hosts) {
        label[strcspn(label, " \t")] = '\0';
        snprintf(host, sizeof(host), "host %.100s", label);
        key = host;
    }
    reader->node = by_draft_node(reader->draft, key, label, place_at(reader, reader->line));
    if (reader->node == UINT32_MAX)
        return BY_ELIMIT;
    reader->draft->nodes[reader->node].kind = is_switch ? BY_DRAFT_SWITCH : BY_DRAFT_COMPUTE;
    reader->draft->nodes[reader->node].left_out = reader->skip;
    /* Ports refer to nodes by identity: an alias maps it to the node. */
    if (key != id) {
        uint32_t alias = by_draft_node(reader->draft, id, id, place_at(reader, reader->line));

        if (alias == UINT32_MAX)
            return BY_ELIMIT;
        reader->draft->nodes[alias].left_out = true;
        reader->draft->nodes[alias].order = reader->node;
    }
    return 0;
}

/* [1]  "H-0002c903000e0b72"[1](2c903000e0b73)   # "host0 HCA-1" lid 4 4xQDR */
static int read_link(struct import_ib_reader *reader)
{
    struct import_ib_end end = {.node = reader->node, .place = place_at(reader, reader->line)};
    const char *at = reader->line;

    if (reader->node == UINT32_MAX)
        return BY_DRAFT_REFUSE(reader->draft, end.place, "a port's line precedes every node's line");
    if (!read_port(reader, &at, &end.port) || !read_quoted(reader, &at, end.peer, sizeof(end.peer)) ||
        !read_port(reader, &at, &end.peer_port))
        return BY_DRAFT_REFUSE(
            reader->draft, place_at(reader, at),
            "a port's line must be [PORT] \"PEER\"[PORT], such as [1] \"H-0002c903000e0b72\"[1]");
    end.rate = find_rate(reader, at);
    BY_GROW(reader->ends, reader->end_count, reader->end_room);
    reader->ends[reader->end_count++] = end;
    return 0;
}

static bool starts(const struct import_ib_reader *reader, const char *word)
{
    size_t bytes = strlen(word);

    return (size_t)(reader->end - reader->line) >= bytes && strncmp(reader->line, word, bytes) == 0;
}

static int read_line(struct import_ib_reader *reader)
{
    static const char *const passed[] = {"vendid=", "devid=",  "sysimgguid=", "switchguid=",
                                         "caguid=", "rtguid=", "Chassis ",    "Non-Chassis",
                                         "#",       "DR path", "ibwarn:"};
    const char *c = reader->line;

    while (c < reader->end && isspace((unsigned char)*c))
        c++;
    if (c == reader->end)
        return 0;
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        if (starts(reader, passed[i]))
            return 0;
    if (starts(reader, "Switch\t") || starts(reader, "Switch "))
        return read_node(reader, true);
    if (starts(reader, "Ca\t") || starts(reader, "Ca ") || starts(reader, "Hca\t") ||
        starts(reader, "Hca ") || starts(reader, "Rt\t") || starts(reader, "Rt "))
        return read_node(reader, false);
    if (reader->line[0] == '[')
        return read_link(reader);
    return BY_DRAFT_REFUSE(
        reader->draft, place_at(reader, c),
        "the line is neither a node (Switch, Ca, Rt) nor a port ([1] ...): is the file the output of "
        "ibnetdiscover without options?");
}

/* ---- links from their ends ---- */

static int compare_ends(const void *left, const void *right)
{
    const struct import_ib_end *a = left, *b = right;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return a->place.line < b->place.line ? -1 : a->place.line > b->place.line;
}

/* Returns the node that an identity refers to. */
static uint32_t resolve(const struct by_draft *draft, const char *id)
{
    uint32_t node = by_draft_find(draft, id);

    if (node != UINT32_MAX && draft->options->hosts && draft->nodes[node].left_out &&
        draft->nodes[node].order != INT64_MAX)
        return (uint32_t)draft->nodes[node].order;
    return node;
}

/* Finds the other end of a link; NULL if it is missing. On hosts with several adapters a port
 * number may occur more than once. */
static const struct import_ib_end *find_other(const struct import_ib_reader *reader,
                                              const struct import_ib_end *end, uint32_t peer)
{
    struct import_ib_end key = {.node = peer, .port = end->peer_port, .place = {0, 0}};
    uint32_t low = 0, high = reader->end_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare_ends(&reader->ends[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < reader->end_count && reader->ends[low].node == peer &&
           reader->ends[low].port == end->peer_port;
         low++)
        if (resolve(reader->draft, reader->ends[low].peer) == end->node &&
            reader->ends[low].peer_port == end->port)
            return &reader->ends[low];
    return NULL;
}

static int join(struct import_ib_reader *reader)
{
    struct by_draft *draft = reader->draft;
    int error = 0;

    if (reader->end_count > 1)
        qsort(reader->ends, reader->end_count, sizeof(*reader->ends), compare_ends);
    for (uint32_t i = 0; i < reader->end_count && !error; i++) {
        const struct import_ib_end *end = &reader->ends[i], *other;
        uint32_t peer = resolve(draft, end->peer);

        if (i > 0 && end[-1].node == end->node && end[-1].port == end->port &&
            (!draft->options->hosts || draft->nodes[end->node].kind == BY_DRAFT_SWITCH))
            return BY_DRAFT_REFUSE(draft, end->place, "port %u of '%.60s' appears twice, first in line %d",
                                   end->port, draft->nodes[end->node].label, end[-1].place.line);
        if (peer == UINT32_MAX)
            return BY_DRAFT_REFUSE(
                draft, end->place,
                "the port leads to '%.40s', which the file does not describe; the file may be truncated",
                end->peer);
        if (i >= SAME_PORTS_MAX && end[-(int)SAME_PORTS_MAX].node == end->node &&
            end[-(int)SAME_PORTS_MAX].port == end->port)
            return by_problem_set(draft->problem, BY_ELIMIT, end->place,
                                  "host '%.60s' has more than %u adapters; that is the limit",
                                  draft->nodes[end->node].label, SAME_PORTS_MAX);
        other = find_other(reader, end, peer);
        if (!other && !draft->nodes[peer].left_out)
            return BY_DRAFT_REFUSE(
                draft, end->place,
                "the port leads to port %u of '%.60s', which leads elsewhere: the two ends disagree",
                end->peer_port, draft->nodes[peer].label);
        if (other && by_fraction_compare(other->rate, end->rate) != 0)
            return BY_DRAFT_REFUSE(draft, end->place,
                                   "the link has a different speed at its other end, in line %d",
                                   other->place.line);
        /* Only one of the two ends adds the link. */
        if (!draft->nodes[peer].left_out && !draft->nodes[end->node].left_out && end < other)
            error = by_draft_link(draft, end->node, peer, true, end->rate, end->place);
    }
    return error;
}

static int read_file(struct import_ib_reader *reader, const char *path)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, BY_IMPORT_BYTES_MAX, &text, &bytes, reader->draft->problem);

    if (error)
        return error;
    reader->line = text;
    reader->node = UINT32_MAX;
    for (reader->number = 1; reader->line < text + bytes && !error; reader->number++) {
        const char *newline = memchr(reader->line, '\n', (size_t)(text + bytes - reader->line));

        reader->end = newline ? newline : text + bytes;
        error = read_line(reader);
        reader->line = reader->end + 1;
    }
    if (!error)
        error = join(reader);
    free(text);
    return error;
}

int by_import_ibnetdiscover(struct by_draft *draft, const char *const *paths, size_t count)
{
    struct import_ib_reader reader = {.draft = draft};
    int error;

    draft->sort = true;
    draft->prune = true;
    draft->name = "infiniband";
    if (count != 1)
        return BY_DRAFT_REFUSE(draft, ((struct by_place){0, 0}),
                               "ibnetdiscover's file describes a whole fabric; name one file");
    error = read_file(&reader, paths[0]);
    /* `order` held aliases, so reset it. */
    for (uint32_t i = 0; i < draft->node_count; i++)
        draft->nodes[i].order = INT64_MAX;
    free(reader.ends);
    return error;
}
