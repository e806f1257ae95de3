/*
 * Boards are JSON files. Those of this tree are embedded in the program (the assembler includes
 * them), so that a switch starts without any file. Start-up only; main thread.
 */
#include "firmware/linux/board.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

#define BUILT_IN(symbol, path)                                                                               \
    extern const char symbol[];                                                                              \
    __asm__(".section .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n.previous\n")

/* X(symbol, name): the folders of boards/ for Linux, from the build. */
#define X(symbol, name) BUILT_IN(by_board_##symbol, "boards/" name "/board.json");
BY_BOARD_LIST
#undef X

static const struct {
    const char *name;
    const char *json;
} built_in[] = {
#define X(symbol, name) {name, by_board_##symbol},
    BY_BOARD_LIST
#undef X
};

/* X(field, minimum, maximum) */
#define FIELD_LIST(X)                                                                                        \
    X(ports, 1, BY_PORTS_MAX)                                                                                \
    X(slots, 1, 1u << 24)                                                                                    \
    X(payload_max, 64, BY_PAYLOAD_MAX)                                                                       \
    X(entries, 1, BY_ENTRIES_MAX)                                                                            \
    X(relays, 1, BY_RELAYS_MAX)                                                                              \
    X(image_bytes, 4096, BY_IMAGE_BYTES_MAX)

const char *by_board_default(void)
{
    return BY_BOARD;
}

/* Reports that `name` is not a board, and lists the known ones. */
static void say_boards(const char *name)
{
    char list[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0] && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", built_in[i].name);
    by_say("--board %s: no such board; available: %s, or the path of a board.json", name, list);
}

static int read_field(const json_t *root, const char *source, const char *field, uint32_t least,
                      uint32_t most, uint32_t *out)
{
    const json_t *value = json_object_get(root, field);

    if (!json_is_integer(value)) {
        by_say("board %s: \"%s\" is missing or not an integer; it must be %u to %u", source, field, least,
               most);
        return BY_EFORMAT;
    }
    if (json_integer_value(value) < least || json_integer_value(value) > most) {
        by_say("board %s: \"%s\" is %lld; it must be %u to %u", source, field,
               (long long)json_integer_value(value), least, most);
        return BY_ELIMIT;
    }
    *out = (uint32_t)json_integer_value(value);
    return 0;
}

/* Reads an optional boolean, which defaults to true. */
static int read_flag(const json_t *root, const char *source, const char *field, bool *out)
{
    const json_t *value = json_object_get(root, field);

    *out = !value || json_is_true(value);
    if (!value || json_is_boolean(value))
        return 0;
    by_say("board %s: \"%s\" must be true or false", source, field);
    return BY_EFORMAT;
}

/* Reads the optional field "driver". */
static int read_driver(const json_t *root, const char *source, struct by_board *board)
{
    const json_t *value = json_object_get(root, "driver");
    char what[BY_NAME_MAX + 32];

    snprintf(what, sizeof what, "board %.*s: driver", (int)BY_NAME_MAX, source);
    board->driver = BY_DRIVER_AUTO;
    if (value && !json_is_string(value)) {
        by_say("%s: it must be the name of a driver, as for --driver", what);
        return BY_EFORMAT;
    }
    if (value)
        board->driver = by_driver_named(what, json_string_value(value));
    return board->driver == BY_DRIVER_NONE ? BY_EFORMAT : 0;
}

static int read_root(const json_t *root, const char *source, struct by_board *board)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    int result;

    if (!name) {
        by_say("board %s: \"name\" is missing", source);
        return BY_EFORMAT;
    }
    snprintf(board->name, sizeof board->name, "%s", name);
#define X(field, least, most)                                                                                \
    if ((result = read_field(root, source, #field, least, most, &board->field)) != 0)                        \
        return result;
    FIELD_LIST(X)
#undef X
    result = read_flag(root, source, "replicate", &board->replicate);
    if (result == 0)
        result = read_flag(root, source, "aggregate", &board->aggregate);
    return result != 0 ? result : read_driver(root, source, board);
}

int by_board_read(const char *name, struct by_board *board)
{
    json_error_t error;
    json_t *root = NULL;
    int result;

    *board = (struct by_board){0};
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (strcmp(built_in[i].name, name) == 0)
            root = json_loads(built_in[i].json, JSON_REJECT_DUPLICATES, &error);
    if (!root && !strpbrk(name, "/.")) {
        say_boards(name);
        return BY_ENOENT;
    }
    if (!root)
        root = json_load_file(name, JSON_REJECT_DUPLICATES, &error);
    if (!root && error.line < 0) {
        by_say("--board %s", error.text);
        return BY_ENOENT;
    }
    if (!root) {
        by_say("%s:%d:%d: %s", name, error.line, error.column, error.text);
        return BY_EFORMAT;
    }
    result = read_root(root, name, board);
    json_decref(root);
    return result;
}
