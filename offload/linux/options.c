/*
 * Reads command lines. See options.h. Neighbours: options_value.c parses values, options_help.c
 * prints --help.
 */
#include "offload/linux/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "offload/linux/options_row.h"

struct options_reader {
    const struct by_options *options;
    void *object;
    const char *program;
    uint64_t seen; /* a bit for each row that was given */
    int argc, at;
    char **argv;
    char given[48]; /* the option as it was given: "--root" or "-r" */
};

/* Prints one line that begins with the program's name. */
__attribute__((format(printf, 2, 3))) static int fault(const struct options_reader *reader,
                                                       const char *format, ...)
{
    char text[1200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *c = text; *c != 0; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?'; /* of an argument */
    fprintf(stderr, "%s: %s\n", reader->program, text);
    return BY_OPTIONS_USAGE;
}

static bool is_option(const struct by_option *row)
{
    return row->name != NULL;
}

/* The row of a long name, or of its beginning; NULL after an error was printed. */
static const struct by_option *find_long(const struct options_reader *reader, const char *name, size_t bytes)
{
    const struct by_option *found = NULL, *other = NULL, *row = reader->options->rows;
    struct by_option_guess guess = {0};
    char typed[48];

    snprintf(typed, sizeof(typed), "%.*s", (int)bytes, name);
    guess.typed = typed;
    for (unsigned i = 0; i < 2 || row->kind != 0; i++) {
        const struct by_option *here = i == 0 ? &by_option_help_row : i == 1 ? &by_option_version_row : row++;

        if (!is_option(here) || (here == &by_option_version_row && reader->options->version == NULL))
            continue;
        if (strcmp(here->name, typed) == 0)
            return here;
        by_option_guess_add(&guess, here->name);
        if (strncmp(here->name, typed, bytes) != 0)
            continue;
        other = found;
        found = here;
    }
    if (found != NULL && other == NULL)
        return found;
    if (found != NULL)
        fault(reader, "--%s is short for both --%s and --%s; `%s --help` lists the options", typed,
              other->name, found->name, reader->program);
    else
        fault(reader, "unknown option --%s%s%s%s `%s --help` lists the options", typed,
              guess.best ? "; did you mean --" : ";", guess.best ? guess.best : "", guess.best ? "?" : "",
              reader->program);
    return NULL;
}

static const struct by_option *find_letter(const struct options_reader *reader, char letter)
{
    for (const struct by_option *row = reader->options->rows; row->kind != 0; row++)
        if (is_option(row) && row->letter == letter)
            return row;
    if (letter == by_option_help_row.letter)
        return &by_option_help_row;
    fault(reader, "unknown option -%c; `%s --help` lists the options", letter, reader->program);
    return NULL;
}

/* Stores a text: in its place, or at the end of an array. Returns false if the array is full. */
static bool keep_text(const struct by_option *row, void *object, const char *text)
{
    char *base = object;
    uint32_t count;

    if (row->text.bytes == 0)
        return true;
    if (row->count.bytes == 0) {
        memcpy(base + row->text.at, &text, sizeof(text));
        return true;
    }
    memcpy(&count, base + row->count.at, sizeof(count));
    if (count >= row->text.bytes / sizeof(text))
        return false;
    memcpy(base + row->text.at + count++ * sizeof(text), &text, sizeof(text));
    memcpy(base + row->count.at, &count, sizeof(count));
    return true;
}

/* Takes one option with its value, or NULL. Returns -1 to go on, else the exit status. */
static int take(struct options_reader *reader, const struct by_option *row, const char *value)
{
    struct by_option_why why = {{0}};
    uint64_t bit;
    int status;

    if (row == &by_option_help_row || row == &by_option_version_row) {
        if (row == &by_option_version_row)
            puts(reader->options->version);
        else
            by_options_help(reader->options, stdout);
        return 0;
    }
    bit = UINT64_C(1) << (row - reader->options->rows);
    if (row->once && (reader->seen & bit) != 0)
        return fault(reader, "%s is given twice, the second time with '%.100s'; give it once", reader->given,
                     value != NULL ? value : "");
    reader->seen |= bit;
    status = by_option_value(row, reader->object, value, &why);
    if (status == 0 && !keep_text(row, reader->object, value))
        return fault(reader, "%s '%.100s': this option may be used at most %zu times", reader->given, value,
                     row->text.bytes / sizeof(char *));
    if (status == 0 && row->call != NULL)
        status = row->call(reader->object, value, &why);
    if (status < 0)
        return fault(reader, "%s is '%.100s'; %s", reader->given, value != NULL ? value : "", why.text);
    return status > 0 ? status : -1;
}

static int take_long(struct options_reader *reader)
{
    char *text = reader->argv[reader->at] + 2, *value = strchr(text, '=');
    size_t bytes = value != NULL ? (size_t)(value - text) : strlen(text);
    const struct by_option *row = find_long(reader, text, bytes);

    if (row == NULL)
        return BY_OPTIONS_USAGE;
    snprintf(reader->given, sizeof(reader->given), "--%s", row->name);
    if (value != NULL) {
        if (row->kind == BY_OPTION_FLAG)
            return fault(reader, "%s accepts no value: remove '%.100s'; `%s --help` lists the options",
                         reader->given, value + 1, reader->program);
        return take(reader, row, value + 1);
    }
    if (row->kind == BY_OPTION_FLAG || row->optional)
        return take(reader, row, NULL);
    if (reader->at + 1 == reader->argc)
        return fault(reader, "%s requires a value, %s; `%s --help` lists the options", reader->given,
                     row->argument, reader->program);
    return take(reader, row, reader->argv[++reader->at]);
}

/* Takes one argument of letters: flags, the last of which may be an option with its value. */
static int take_letters(struct options_reader *reader)
{
    const char *text = reader->argv[reader->at] + 1;
    int status = -1;

    for (; status < 0 && *text != 0; text++) {
        const struct by_option *row = find_letter(reader, *text);

        if (row == NULL)
            return BY_OPTIONS_USAGE;
        snprintf(reader->given, sizeof(reader->given), "-%c", *text);
        if (row->kind == BY_OPTION_FLAG || row->optional) {
            status = take(reader, row, NULL);
            continue;
        }
        if (text[1] != 0)
            return take(reader, row, text + 1);
        if (reader->at + 1 == reader->argc)
            return fault(reader, "%s requires a value, %s; `%s --help` lists the options", reader->given,
                         row->argument, reader->program);
        return take(reader, row, reader->argv[++reader->at]);
    }
    return status;
}

static int take_operand(struct options_reader *reader, unsigned count, const char *text)
{
    struct by_option_why why = {{0}};
    int status;

    if (count > reader->options->most)
        return fault(reader, "'%.100s' is one argument too many; `%s --help` lists the options", text,
                     reader->program);
    status = reader->options->operand != NULL ? reader->options->operand(reader->object, text, &why) : 0;
    if (status < 0)
        return fault(reader, "'%.100s': %s", text, why.text);
    return status > 0 ? status : -1;
}

int by_options_read(const struct by_options *options, void *object, int *argc, char **argv)
{
    const char *slash = argv[0] != NULL ? strrchr(argv[0], '/') : NULL;
    struct options_reader reader = {.options = options,
                                    .object = object,
                                    .program = options->program != NULL ? options->program
                                               : slash != NULL          ? slash + 1
                                                                        : argv[0],
                                    .argc = *argc,
                                    .argv = argv};
    int kept = 1, status = -1;
    unsigned operands = 0;
    bool open = true;

    for (reader.at = 1; reader.at < reader.argc && status < 0; reader.at++) {
        char *argument = argv[reader.at];

        if (open && strcmp(argument, "--") == 0) {
            open = false;
            while (options->rest && ++reader.at < reader.argc)
                argv[kept++] = argv[reader.at];
        } else if (open && argument[0] == '-' && argument[1] != 0) {
            status = argument[1] == '-' ? take_long(&reader) : take_letters(&reader);
        } else {
            status = take_operand(&reader, ++operands, argument);
            argv[kept++] = argument;
            open = open && !options->stops;
        }
    }
    if (status >= 0)
        return status;
    if (operands < options->least)
        return fault(&reader, "give %s; `%s --help` lists the options", options->operands, reader.program);
    if (kept < *argc)
        argv[kept] = NULL;
    *argc = kept;
    return -1;
}
