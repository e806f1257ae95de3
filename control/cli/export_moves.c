/* Exports schedules of `banyan steady` as moves of hosts. See export_moves.h. */
#include "control/cli/export_moves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/study/export/moves.h"
#include "control/verify/series.h"
#include "offload/base/errors.h"

/* Largest file of moves (bytes). */
#define FILE_BYTES_MAX ((size_t)1 << 30)

static void print_right(FILE *out, const struct by_moves *moves, const char *file, bool json)
{
    const char *operation = by_series_operation_name(moves->operation);

    if (json)
        fprintf(out,
                "{\"verdict\": \"RIGHT\", \"format\": \"moves\", \"operation\": \"%s\", \"ranks\": %u, "
                "\"chunks\": %u, \"rounds\": %u, \"moves\": %u}\n",
                operation, moves->rank_count, moves->chunk_count, moves->round_count, moves->move_count);
    else
        fprintf(out, "RIGHT %s: moves, %s of %u ranks, %u chunk%s a message, %u moves in %u round%s\n", file,
                operation, moves->rank_count, moves->chunk_count, by_plural(moves->chunk_count),
                moves->move_count, moves->round_count, by_plural(moves->round_count));
}

static int write_text(const char *output, const char *text, size_t bytes)
{
    struct by_output file;

    if (!by_cli_create(&file, output))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&file, fwrite(text, 1, bytes, file.stream) == bytes);
}

/* Exports into memory, executes the result, and writes it if it is correct. */
static int export(const struct by_series *series, const struct by_topology *topology, const char *path,
                  const char *output, bool json)
{
    struct by_moves moves, read = {0};
    struct by_problem problem = {0};
    size_t bytes = 0;
    char *text = NULL;
    FILE *memory;
    int status;

    if (by_moves_make(series, topology, &moves, &problem) != 0) {
        by_moves_free(&moves);
        return by_cli_refuse(path, &problem);
    }
    memory = by_text_open(&text, &bytes);
    by_moves_write(&moves, topology, NULL, memory);
    fclose(memory);
    if (by_moves_check(text, bytes, &read, &problem) != 0)
        status = by_cli_fail(BY_EXIT_NO, "the moves are wrong and were not written: %s", problem.text);
    else
        status = write_text(output, text, bytes);
    if (status == BY_EXIT_DONE)
        print_right(strcmp(output, "-") == 0 ? stderr : stdout, &read, output,
                    json && strcmp(output, "-") != 0);
    by_moves_free(&moves);
    by_moves_free(&read);
    free(text);
    return status;
}

int by_cli_export_moves(const struct by_topology *topology, const char *path, const char *output, bool json)
{
    struct by_series *series;
    struct by_series_verdict verdict;
    struct by_problem problem = {0};
    int status;

    if (by_series_read(path, topology, &series, &problem) != 0)
        return by_cli_refuse(path, &problem);
    by_series_check(series, topology, &verdict);
    if (verdict.verdict == BY_VERDICT_INVALID)
        status = by_cli_fail(BY_EXIT_NO, "%s: the schedule is wrong: %s", path, verdict.reason);
    else
        status = export(series, topology, path, output, json);
    by_series_free(series);
    return status;
}

int by_cli_check_moves(const char *path, bool json)
{
    struct by_moves moves = {0};
    struct by_problem problem = {0};
    size_t bytes;
    char *text;
    int error, status = BY_EXIT_DONE;

    if (by_text_read(path, FILE_BYTES_MAX, &text, &bytes, &problem) != 0)
        return -1; /* the next reader reports the error */
    if (!by_moves_suits(text, bytes)) {
        free(text);
        return -1;
    }
    error = by_moves_check(text, bytes, &moves, &problem);
    if (!error) {
        print_right(stdout, &moves, path, json);
    } else if (error != BY_EINVAL) {
        status = by_cli_refuse(path, &problem);
    } else {
        status = BY_EXIT_NO;
        printf(json ? "{\"verdict\": \"WRONG\", \"reason\": \"%s\"}\n" : "WRONG %s\n", problem.text);
    }
    by_moves_free(&moves);
    free(text);
    return status;
}
