/* Shards of unequal size: reading and writing. See shares.h. */
#include "control/plan/shares.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/fabric/names.h"
#include "offload/base/errors.h"

/* Maximum size of a file of shares (bytes): 65,535 nodes with long names and long numbers. */
#define FILE_BYTES_MAX ((size_t)16 << 20)
/* Maximum sum of all shares, as integers without a common divisor: capacities are
 * multiplied by it. */
#define SUM_MAX ((int64_t)1 << 53)

static const struct by_place nowhere = {0, 0};

struct shares_reader {
    struct by_json *json;
    const struct by_names *names;
    const struct by_topology *topology;
    const bool *member;         /* NULL: all compute nodes */
    struct by_fraction *values; /* by node */
    bool *given;
    struct by_problem *problem;
};

/* Returns how many bytes of a text an error message shows: at most `most`, on one line. */
static int shown(const char *text, size_t bytes, size_t most)
{
    size_t count = 0;

    while (count < bytes && count < most && (unsigned char)text[count] >= ' ')
        count++;
    return (int)count;
}

/* Reads one number, by its own text: the share of `node`. */
static int read_value(const struct shares_reader *reader, uint32_t node)
{
    struct by_json *json = reader->json;
    char kind = by_json_peek(json);
    size_t at = json->at, bytes = 0;
    const char *text = json->text + at, *name = reader->topology->nodes[node].name;
    int error = BY_EFORMAT;

    if (kind == '"') {
        if (!by_json_string(json, &text, &bytes))
            return BY_EFORMAT;
    } else {
        by_json_skip(json);
        if (json->failed)
            return BY_EFORMAT;
        bytes = json->at - at;
    }
    if (kind == '0' || kind == '"')
        error = by_fraction_parse(text, bytes, &reader->values[node]);
    if (error == BY_ERANGE)
        return by_problem_set(reader->problem, error, by_json_place(json, at),
                              "the share of '%s' is %.*s: its exact value must fit 63 bits; round it", name,
                              bytes > 40 ? 40 : (int)bytes, text);
    if (error)
        return by_problem_set(
            reader->problem, BY_EFORMAT, by_json_place(json, at),
            "the share of '%s' is %.*s: it must be 0 or a positive integer, decimal or fraction such as 3, "
            "0.5 or \"1/3\"",
            name, shown(text, bytes, 40), text);
    reader->given[node] = true;
    return 0;
}

/* Reads {"node": number, ...} */
static int read_object(const struct shares_reader *reader)
{
    struct by_json *json = reader->json;
    const char *key;
    size_t bytes;

    for (bool first = true; by_json_member(json, &first, &key, &bytes);) {
        int64_t node = by_names_find(reader->names, key, bytes);
        int error;

        if (node < 0)
            return by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                  "a share for '%.*s', which is not a node of the topology '%.60s'",
                                  shown(key, bytes, 60), key, reader->topology->name);
        if (!by_members_have(reader->topology, reader->member, (uint32_t)node))
            return by_problem_set(
                reader->problem, BY_EINVAL, by_json_place(json, json->at),
                "a share for '%.*s', which is not a participating compute node: leave it out",
                shown(key, bytes, 60), key);
        if (reader->given[node])
            return by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                  "two shares for '%.*s': give one", shown(key, bytes, 60), key);
        error = read_value(reader, (uint32_t)node);
        if (error)
            return error;
    }
    return json->failed ? BY_EFORMAT : 0;
}

/* Reads [number, ...], by rank */
static int read_array(const struct shares_reader *reader)
{
    const struct by_topology *topology = reader->topology;
    uint32_t node = 0, count = 0;

    for (bool first = true; by_json_element(reader->json, &first); count++) {
        int error;

        while (node < topology->node_count && !by_members_have(topology, reader->member, node))
            node++;
        if (node == topology->node_count)
            return by_problem_set(reader->problem, BY_EINVAL, by_json_place(reader->json, reader->json->at),
                                  "more shares than the %u participating compute nodes", count);
        error = read_value(reader, node++);
        if (error)
            return error;
    }
    return reader->json->failed ? BY_EFORMAT : 0;
}

/* Multiplies the values by the least number that makes all of them integers, and divides them by
 * their common divisor. */
static int make_whole(const struct shares_reader *reader, int64_t *shares)
{
    uint32_t n = reader->topology->node_count;
    int64_t scale = 1, divisor = 0, sum = 0;
    bool fits = true;

    for (uint32_t i = 0; i < n && fits; i++) {
        int64_t den = reader->values[i].den;

        fits = !__builtin_mul_overflow(scale, den / by_gcd(scale, den), &scale);
    }
    for (uint32_t i = 0; i < n && fits; i++) {
        fits = !__builtin_mul_overflow(reader->values[i].num, scale / reader->values[i].den, &shares[i]);
        divisor = fits ? by_gcd(divisor, shares[i]) : divisor;
    }
    for (uint32_t i = 0; i < n && fits && divisor > 0; i++) {
        shares[i] /= divisor;
        fits = !__builtin_add_overflow(sum, shares[i], &sum) && sum <= SUM_MAX;
    }
    if (!fits)
        return by_problem_set(reader->problem, BY_ERANGE, nowhere,
                              "the shares, as whole numbers without a common divisor, add up to more than "
                              "2^53; round them");
    if (sum == 0)
        return by_problem_set(reader->problem, BY_EINVAL, nowhere,
                              "all shares are 0: no node has data; at least one must be positive");
    return 0;
}

static int check_given(const struct shares_reader *reader)
{
    const struct by_topology *topology = reader->topology;

    for (uint32_t i = 0; i < topology->node_count; i++)
        if (by_members_have(topology, reader->member, i) && !reader->given[i])
            return by_problem_set(reader->problem, BY_EINVAL, nowhere,
                                  "no share for compute node '%s': give 0 if it has no data",
                                  topology->nodes[i].name);
    return 0;
}

int by_shares_value(struct by_json *json, const struct by_names *names, const struct by_topology *topology,
                    const bool *member, int64_t **shares, struct by_problem *problem)
{
    uint32_t n = topology->node_count;
    struct shares_reader reader = {json, names, topology, member, NULL, NULL, problem};
    char kind = by_json_peek(json);
    int error;

    reader.values = by_alloc(n, sizeof(*reader.values));
    reader.given = by_alloc(n, sizeof(*reader.given));
    for (uint32_t i = 0; i < n; i++)
        reader.values[i].den = 1;
    *shares = by_alloc(n, sizeof(**shares));
    if (kind == '{' || kind == '[')
        error = kind == '{' ? read_object(&reader) : read_array(&reader);
    else if (kind == 0)
        error = BY_EFORMAT; /* no value: the parser reports it */
    else
        error = by_problem_set(problem, BY_EFORMAT, by_json_place(json, json->at),
                               "shares must be an object such as {\"%.48s\": 3}, or an array in the order of "
                               "ranks",
                               n ? topology->nodes[0].name : "host0");
    if (!error)
        error = check_given(&reader);
    if (!error)
        error = make_whole(&reader, *shares);
    free(reader.values);
    free(reader.given);
    if (error) {
        free(*shares);
        *shares = NULL;
    }
    return error;
}

int by_shares_parse(const char *text, size_t bytes, const struct by_topology *topology, const bool *member,
                    int64_t **shares, struct by_problem *problem)
{
    struct by_names *names = by_names_new(topology);
    struct by_json json;
    int error;

    *problem = (struct by_problem){0};
    by_json_open(&json, text, bytes);
    error = by_shares_value(&json, names, topology, member, shares, problem);
    /* The text after the value is checked too; a JSON syntax error is reported before its
     * consequences. */
    if ((!error || problem->text[0] == '\0') && by_json_finish(&json, problem) != 0) {
        free(*shares);
        *shares = NULL;
        error = BY_EFORMAT;
    }
    by_json_close(&json);
    by_names_free(names);
    return error;
}

int by_shares_read(const char *path, const struct by_topology *topology, const bool *member, int64_t **shares,
                   struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *shares = NULL;
    if (error)
        return error;
    error = by_shares_parse(text, bytes, topology, member, shares, problem);
    free(text);
    return error;
}

bool by_shares_equal(const int64_t *shares, const struct by_topology *topology)
{
    int64_t first = -1;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (!topology->nodes[i].compute)
            continue;
        first = first < 0 ? shares[i] : first;
        if (shares[i] != first)
            return false;
    }
    return true;
}

int64_t by_shares_sum(const int64_t *shares, uint32_t node_count)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < node_count; i++)
        sum += shares[i];
    return sum;
}

int64_t by_shares_of(const int64_t *shares, const uint32_t *nodes, uint32_t count)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += shares[nodes[i]];
    return sum;
}

void by_shares_write(const int64_t *shares, const struct by_topology *topology, const bool *member,
                     void *stream)
{
    FILE *file = stream;
    const char *before = "{";

    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (!by_members_have(topology, member, i))
            continue;
        fprintf(file, "%s\"%s\": %lld", before, topology->nodes[i].name, (long long)shares[i]);
        before = ", ";
    }
    fputc('}', file);
}
