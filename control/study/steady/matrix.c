/* Matrices of an exchange: reading. See matrix.h. */
#include "control/study/steady/matrix.h"

#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "offload/base/errors.h"

/* Maximum size of a file (bytes): 16 for each number of the largest matrix. */
#define FILE_BYTES_MAX ((size_t)16 * BY_MATRIX_RANKS_MAX * BY_MATRIX_RANKS_MAX)

struct matrix_reader {
    struct by_json json;
    const struct by_topology *topology;
    const uint32_t *ranks;
    uint32_t count;
    struct by_fraction *values;
    struct by_problem *problem;
};

static const char *name_of(const struct matrix_reader *reader, uint32_t rank)
{
    return reader->topology->nodes[reader->ranks[rank]].name;
}

/* Reads one number, by its own text. */
static int read_value(struct matrix_reader *reader, uint32_t from, uint32_t to)
{
    struct by_json *json = &reader->json;
    char kind = by_json_peek(json);
    size_t at = json->at, bytes = 0;
    const char *text = json->text + at;
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
        error = by_fraction_parse(text, bytes, &reader->values[(size_t)from * reader->count + to]);
    if (!error)
        return 0;
    return by_problem_set(reader->problem, error, by_json_place(json, at),
                          error == BY_ERANGE
                              ? "the size from '%s' to '%s' must fit 63 bits exactly; round it"
                              : "the size from '%s' to '%s' must be 0 or a positive integer, decimal or "
                                "fraction such as 3, 0.5 or \"1/3\"",
                          name_of(reader, from), name_of(reader, to));
}

static int read_row(struct matrix_reader *reader, uint32_t from)
{
    struct by_json *json = &reader->json;
    uint32_t to = 0;

    for (bool first = true; by_json_element(json, &first); to++) {
        int error = to == reader->count
                        ? by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                         "the row of '%s' has more than %u numbers, one for each rank",
                                         name_of(reader, from), reader->count)
                        : read_value(reader, from, to);

        if (error)
            return error;
    }
    if (json->failed)
        return BY_EFORMAT;
    return to == reader->count
               ? 0
               : by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                "the row of '%s' has %u numbers; %u are needed, one for each rank",
                                name_of(reader, from), to, reader->count);
}

static int read_rows(struct matrix_reader *reader)
{
    struct by_json *json = &reader->json;
    uint32_t from = 0;

    for (bool first = true; by_json_element(json, &first); from++) {
        int error = from == reader->count
                        ? by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                         "the matrix has more than %u rows, one for each rank", reader->count)
                        : read_row(reader, from);

        if (error)
            return error;
    }
    if (json->failed)
        return BY_EFORMAT;
    return from == reader->count ? 0
                                 : by_problem_set(reader->problem, BY_EINVAL, by_json_place(json, json->at),
                                                  "the matrix has %u rows; %u are needed, one for each rank",
                                                  from, reader->count);
}

int by_matrix_parse(const char *text, size_t bytes, const struct by_topology *topology, const uint32_t *ranks,
                    uint32_t count, struct by_fraction **matrix, struct by_problem *problem)
{
    struct matrix_reader reader = {.topology = topology, .ranks = ranks, .count = count, .problem = problem};
    int error;

    *matrix = NULL;
    if (count > BY_MATRIX_RANKS_MAX)
        return by_problem_set(problem, BY_ELIMIT, (struct by_place){0, 0},
                              "a matrix of %u ranks is too large; the limit is %u: name fewer with --ranks",
                              count, BY_MATRIX_RANKS_MAX);
    reader.values = by_alloc((size_t)count * count, sizeof(*reader.values));
    by_json_open(&reader.json, text, bytes);
    error = read_rows(&reader);
    if (!error || reader.json.failed)
        error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    if (error)
        free(reader.values);
    else
        *matrix = reader.values;
    return error;
}

int by_matrix_read(const char *path, const struct by_topology *topology, const uint32_t *ranks,
                   uint32_t count, struct by_fraction **matrix, struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *matrix = NULL;
    if (error)
        return error;
    error = by_matrix_parse(text, bytes, topology, ranks, count, matrix, problem);
    free(text);
    return error;
}
