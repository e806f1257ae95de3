/* Certificates in addition to the cut: memory and file format. See certificate.h. */
#include "control/plan/certificate.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/build.h"
#include "control/fabric/names.h"
#include "offload/base/errors.h"

void by_certificate_free(struct by_certificate *certificate)
{
    if (!certificate)
        return;
    for (uint32_t i = 0; i < certificate->part_count; i++)
        free(certificate->parts[i].nodes);
    free(certificate->parts);
    free(certificate->prices);
    free(certificate);
}

static void *copy_bytes(const void *from, size_t count, size_t bytes)
{
    void *copy = by_alloc(count, bytes);

    if (count > 0)
        memcpy(copy, from, count * bytes);
    return copy;
}

struct by_certificate *by_certificate_copy(const struct by_certificate *from)
{
    struct by_certificate *to;

    if (!from)
        return NULL;
    to = copy_bytes(from, 1, sizeof(*from));
    to->prices = copy_bytes(from->prices, from->price_count, sizeof(*from->prices));
    to->parts = copy_bytes(from->parts, from->part_count, sizeof(*from->parts));
    for (uint32_t i = 0; i < to->part_count; i++)
        to->parts[i].nodes = copy_bytes(from->parts[i].nodes, from->parts[i].node_count, sizeof(uint32_t));
    return to;
}

struct by_certificate *by_certificate_of_parts(const uint32_t *part, uint32_t node_count, uint32_t part_count)
{
    struct by_certificate *certificate = by_alloc(1, sizeof(*certificate));

    certificate->kind = BY_CERTIFICATE_PARTS;
    certificate->part_count = part_count;
    certificate->parts = by_alloc(part_count, sizeof(*certificate->parts));
    for (uint32_t i = 0; i < node_count; i++)
        if (part[i] < part_count)
            certificate->parts[part[i]].node_count++;
    for (uint32_t i = 0; i < part_count; i++) {
        certificate->parts[i].nodes = by_alloc(certificate->parts[i].node_count, sizeof(uint32_t));
        certificate->parts[i].node_count = 0;
    }
    for (uint32_t i = 0; i < node_count; i++)
        if (part[i] < part_count) {
            struct by_part *to = &certificate->parts[part[i]];

            to->nodes[to->node_count++] = i;
        }
    return certificate;
}

struct by_certificate *by_certificate_of_prices(const struct by_price *rows, const int64_t *capacity,
                                                uint32_t row_count, bool both_ways, __int128 floor,
                                                struct by_fraction *bound)
{
    struct by_certificate *certificate;
    __int128 whole = 0;

    for (uint32_t i = 0; i < row_count; i++)
        whole += (__int128)rows[i].price * capacity[i];
    if (floor <= 0 || by_fraction_set(whole, floor, bound) != 0)
        return NULL;
    certificate = by_alloc(1, sizeof(*certificate));
    certificate->kind = BY_CERTIFICATE_PRICES;
    certificate->prices = by_alloc(2 * (size_t)row_count, sizeof(*certificate->prices));
    for (uint32_t i = 0; i < row_count; i++) {
        if (rows[i].price == 0)
            continue;
        certificate->prices[certificate->price_count++] = rows[i];
        if (both_ways)
            certificate->prices[certificate->price_count++] =
                (struct by_price){rows[i].to, rows[i].from, rows[i].price};
    }
    return certificate;
}

struct by_certificate *by_certificate_of_cuts(struct by_price *prices, uint32_t price_count,
                                              struct by_part *cuts, uint32_t cut_count, __int128 value,
                                              __int128 floor, struct by_fraction *bound)
{
    struct by_certificate *certificate = by_alloc(1, sizeof(*certificate));

    *certificate = (struct by_certificate){.kind = BY_CERTIFICATE_CUTS,
                                           .part_count = cut_count,
                                           .parts = cuts,
                                           .price_count = price_count,
                                           .prices = prices};
    if (floor > 0 && by_fraction_set(value, floor, bound) == 0)
        return certificate;
    by_certificate_free(certificate);
    return NULL;
}

void by_certificate_drop_cuts(struct by_certificate *certificate)
{
    for (uint32_t i = 0; i < certificate->part_count; i++)
        free(certificate->parts[i].nodes);
    free(certificate->parts);
    certificate->parts = NULL;
    certificate->part_count = 0;
    certificate->kind = BY_CERTIFICATE_PRICES;
}

/* Writes the sets of one direction: [["weight", "node", ...], ...]. */
static void write_cuts(const struct by_certificate *certificate, const struct by_topology *topology, bool up,
                       FILE *file)
{
    uint32_t count = 0;

    fprintf(file, ",\n   \"%s\": [", up ? "up" : "down");
    for (uint32_t i = 0; i < certificate->part_count; i++) {
        const struct by_part *cut = &certificate->parts[i];

        if (cut->up != up)
            continue;
        fprintf(file, "%s[\"%lld\"", count++ ? ",\n   " : "\n   ", (long long)cut->weight);
        for (uint32_t j = 0; j < cut->node_count; j++)
            fprintf(file, ", \"%s\"", topology->nodes[cut->nodes[j]].name);
        fputc(']', file);
    }
    fputc(']', file);
}

void by_certificate_write(const struct by_certificate *certificate, const struct by_topology *topology,
                          void *stream)
{
    FILE *file = stream;

    if (certificate->kind == BY_CERTIFICATE_PARTS) {
        fputs("{\"parts\": [", file);
        for (uint32_t i = 0; i < certificate->part_count; i++) {
            const struct by_part *part = &certificate->parts[i];

            for (uint32_t j = 0; j < part->node_count; j++)
                fprintf(file, "%s\"%s\"",
                        j   ? ", "
                        : i ? ",\n   ["
                            : "\n   [",
                        topology->nodes[part->nodes[j]].name);
            fputc(']', file);
        }
    } else {
        fputs("{\"prices\": [", file);
        for (uint32_t i = 0; i < certificate->price_count; i++) {
            const struct by_price *price = &certificate->prices[i];

            fprintf(file, "%s[\"%s\", \"%s\", \"%lld\"]", i ? ",\n   " : "\n   ",
                    topology->nodes[price->from].name, topology->nodes[price->to].name,
                    (long long)price->price);
        }
    }
    fputc(']', file);
    for (int up = 0; up < 2 && certificate->kind == BY_CERTIFICATE_CUTS; up++)
        write_cuts(certificate, topology, up, file);
    fputc('}', file);
}

/* The most cuts of a proof (count). */
#define CUTS_MAX 65536u

static int refuse(struct by_problem *problem, const char *text)
{
    return by_problem_set(problem, BY_EFORMAT, (struct by_place){0, 0}, "\"proof\": %s", text);
}

struct certificate_reader {
    struct by_json *json;
    const struct by_names *names;
    const struct by_topology *topology;
    struct by_certificate *certificate;
    struct by_problem *problem;
};

static int read_node(const struct certificate_reader *reader, uint32_t *node)
{
    const char *text = "(not a string)";
    size_t bytes = strlen(text);
    int64_t index = -1;

    if (by_json_peek(reader->json) == '"' && by_json_string(reader->json, &text, &bytes))
        index = by_names_find(reader->names, text, bytes);
    if (index < 0)
        return by_problem_set(reader->problem, BY_EFORMAT, (struct by_place){0, 0},
                              "\"proof\" names node '%.*s', which the topology does not have; plan again",
                              bytes > 60 ? 60 : (int)bytes, text);
    *node = (uint32_t)index;
    return 0;
}

static int read_part(const struct certificate_reader *reader, struct by_part *part)
{
    uint32_t room = 0;

    for (bool first = true; by_json_element(reader->json, &first);) {
        if (part->node_count == reader->topology->node_count)
            return refuse(reader->problem, "a part has more nodes than the topology");
        BY_GROW(part->nodes, part->node_count, room);
        if (read_node(reader, &part->nodes[part->node_count++]) != 0)
            return BY_EFORMAT;
    }
    return 0;
}

static int read_parts(const struct certificate_reader *reader)
{
    struct by_certificate *certificate = reader->certificate;
    uint32_t room = 0;

    certificate->kind = BY_CERTIFICATE_PARTS;
    for (bool first = true; by_json_element(reader->json, &first);) {
        if (certificate->part_count == reader->topology->node_count)
            return refuse(reader->problem, "more parts than the topology has nodes");
        BY_GROW(certificate->parts, certificate->part_count, room);
        certificate->parts[certificate->part_count] = (struct by_part){.node_count = 0};
        if (read_part(reader, &certificate->parts[certificate->part_count++]) != 0)
            return BY_EFORMAT;
    }
    return 0;
}

/* Reads an integer or a string of digits. */
static int64_t read_digits(struct by_json *json)
{
    const char *text = "";
    size_t bytes = 0;
    char digits[24] = "";
    int64_t number = 0;

    if (by_json_peek(json) != '"') {
        if (!by_json_integer(json, &number))
            by_json_skip(json);
        return number;
    }
    if (by_json_string(json, &text, &bytes) && bytes < sizeof(digits))
        memcpy(digits, text, bytes);
    return strtoll(digits, NULL, 10);
}

/* Reads [weight, "node", ...]. */
static int read_cut(const struct certificate_reader *reader, struct by_part *cut)
{
    uint32_t room = 0, index = 0;

    for (bool first = true; by_json_element(reader->json, &first); index++) {
        if (index == 0) {
            cut->weight = read_digits(reader->json);
            continue;
        }
        if (cut->node_count == reader->topology->node_count)
            return refuse(reader->problem, "a cut has more nodes than the topology");
        BY_GROW(cut->nodes, cut->node_count, room);
        if (read_node(reader, &cut->nodes[cut->node_count++]) != 0)
            return BY_EFORMAT;
    }
    return cut->weight > 0 && cut->node_count > 0
               ? 0
               : refuse(reader->problem, "a cut must be [digits, \"node\", ...]");
}

static int read_cuts(const struct certificate_reader *reader, bool up)
{
    struct by_certificate *certificate = reader->certificate;

    certificate->kind = BY_CERTIFICATE_CUTS;
    for (bool first = true; by_json_element(reader->json, &first);) {
        if (certificate->part_count == CUTS_MAX)
            return refuse(reader->problem, "more cuts than a proof may have");
        BY_GROW(certificate->parts, certificate->part_count, certificate->part_room);
        certificate->parts[certificate->part_count] = (struct by_part){.up = up};
        if (read_cut(reader, &certificate->parts[certificate->part_count++]) != 0)
            return BY_EFORMAT;
    }
    return 0;
}

/* Reads ["from", "to", price]; the price is an integer or a string of digits. */
static int read_price(const struct certificate_reader *reader, struct by_price *price)
{
    uint32_t index = 0;
    bool first = true;

    for (; by_json_element(reader->json, &first); index++) {
        if (index >= 2)
            price->price = read_digits(reader->json);
        else if (read_node(reader, index ? &price->to : &price->from) != 0)
            return BY_EFORMAT;
    }
    if (index != 3 || price->price <= 0)
        return refuse(reader->problem, "a price must be [\"node\", \"node\", digits]");
    return 0;
}

static int read_prices(const struct certificate_reader *reader)
{
    struct by_certificate *certificate = reader->certificate;
    uint32_t room = 0;

    certificate->kind = BY_CERTIFICATE_PRICES;
    for (bool first = true; by_json_element(reader->json, &first);) {
        if (certificate->price_count > (uint64_t)reader->topology->arc_count + reader->topology->node_count)
            return refuse(reader->problem, "more prices than the topology has links");
        BY_GROW(certificate->prices, certificate->price_count, room);
        certificate->prices[certificate->price_count] = (struct by_price){0, 0, 0};
        if (read_price(reader, &certificate->prices[certificate->price_count++]) != 0)
            return BY_EFORMAT;
    }
    return 0;
}

struct by_certificate *by_certificate_read(struct by_json *json, const struct by_names *names,
                                           const struct by_topology *topology, struct by_problem *problem)
{
    struct by_certificate *certificate = by_alloc(1, sizeof(*certificate));
    struct certificate_reader reader = {json, names, topology, certificate, problem};
    const char *key;
    size_t bytes;
    int error = 0;

    for (bool first = true; !error && by_json_member(json, &first, &key, &bytes);) {
        bool up = by_json_is(key, bytes, "up");

        if (certificate->kind == BY_CERTIFICATE_PARTS ||
            (certificate->kind && by_json_is(key, bytes, "parts")))
            error = refuse(problem, "it must have \"parts\", or \"prices\" and cuts, and nothing else");
        else if (certificate->kind && (up || by_json_is(key, bytes, "down")))
            error = read_cuts(&reader, up);
        else if (by_json_is(key, bytes, "parts"))
            error = read_parts(&reader);
        else if (!certificate->kind && by_json_is(key, bytes, "prices"))
            error = read_prices(&reader);
        else
            error = refuse(problem, "it must have \"parts\" or \"prices\"");
    }
    if (!error && !certificate->kind)
        error = refuse(problem, "it must have \"parts\" or \"prices\"");
    if (!error)
        return certificate;
    by_certificate_free(certificate);
    return NULL;
}
