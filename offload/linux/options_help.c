/* Prints --help from a table of options, in lines of at most 100 columns. See options.h. */
#include <stdio.h>
#include <string.h>

#include "offload/linux/options_row.h"

#define COLUMNS     100u
#define COLUMN_MOST 30u /* where the texts of rows begin at most */

const struct by_option by_option_help_row = {
    .name = "help", .letter = 'h', .kind = BY_OPTION_FLAG, .help = "print this help"};
const struct by_option by_option_version_row = {
    .name = "version", .kind = BY_OPTION_FLAG, .help = "print the version"};

/* Prints words from column `at`, with further lines from column `indent`. Ends the line. */
static void wrap(FILE *stream, const char *text, size_t at, size_t indent)
{
    bool first = true;

    while (*text != 0) {
        size_t bytes = strcspn(text, " \n");

        if (!first && at + 1 + bytes > COLUMNS) {
            fprintf(stream, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', stream);
            at++;
        }
        fwrite(text, 1, bytes, stream);
        at += bytes;
        first = false;
        text += bytes;
        if (*text == '\n') {
            fprintf(stream, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        text += *text != 0;
    }
    fputc('\n', stream);
}

/* Writes the left column of a row. */
static size_t label(const struct by_option *row, char *text, size_t bytes)
{
    char letter[8] = "    ";
    int used;

    if (row->kind == BY_OPTION_NOTE)
        return (size_t)snprintf(text, bytes, "  %s", row->argument);
    if (row->letter != 0)
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    used = snprintf(text, bytes, "  %s--%s%s%s%s", letter, row->name,
                    row->kind == BY_OPTION_FLAG ? ""
                    : row->optional             ? "[="
                                                : " ",
                    row->kind == BY_OPTION_FLAG ? "" : row->argument, row->optional ? "]" : "");
    return used > 0 ? (size_t)used : 0;
}

/* Replaces %r and %l in the text of a row. */
static void expand(const struct by_option *row, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (const char *c = row->help; *c != 0 && used + 1 < bytes; c++) {
        if (c[0] == '%' && (c[1] == 'r' || c[1] == 'l')) {
            (c[1] == 'r' ? by_option_limits : by_option_words)(row, text + used, bytes - used);
            used += strlen(text + used);
            c++;
            continue;
        }
        text[used++] = *c;
        text[used] = 0;
    }
}

static void print_row(const struct by_option *row, size_t column, FILE *stream)
{
    char text[800];
    size_t at;

    if (row->kind == BY_OPTION_HEADING) {
        fputc('\n', stream);
        wrap(stream, row->help, 0, 0);
        return;
    }
    at = label(row, text, sizeof(text));
    fputs(text, stream);
    if (at + 2 > column)
        fprintf(stream, "\n%*s", (int)column, "");
    else
        fprintf(stream, "%*s", (int)(column - at), "");
    expand(row, text, sizeof(text));
    wrap(stream, text, column, column);
}

/* Prints all rows, with those of every program before the first heading. */
static void print_rows(const struct by_options *options, size_t column, FILE *stream)
{
    const struct by_option *row = options->rows;

    for (; row->kind != 0 && row->kind != BY_OPTION_HEADING; row++)
        print_row(row, column, stream);
    print_row(&by_option_help_row, column, stream);
    if (options->version != NULL)
        print_row(&by_option_version_row, column, stream);
    for (; row->kind != 0; row++)
        print_row(row, column, stream);
}

void by_options_help(const struct by_options *options, FILE *stream)
{
    size_t column = options->version != NULL ? 17 : 14; /* after --version, --help */

    for (const struct by_option *row = options->rows; row->kind != 0; row++) {
        char text[200];
        size_t at = row->kind == BY_OPTION_HEADING ? 0 : label(row, text, sizeof(text)) + 2;

        if (at > column && at <= COLUMN_MOST)
            column = at;
    }
    fputs("usage: ", stream);
    for (const char *c = options->usage; *c != 0; c++) {
        fputc(*c, stream);
        if (*c == '\n')
            fputs("       ", stream);
    }
    fputs("\n\n", stream);
    if (options->about != NULL) {
        wrap(stream, options->about, 0, 0);
        fputc('\n', stream);
    }
    print_rows(options, column, stream);
    if (options->epilog != NULL) {
        fputc('\n', stream);
        wrap(stream, options->epilog, 0, 0);
    }
}
