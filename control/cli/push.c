/*
 * The command `banyan push`: installs table images on running switches, on all of them or on none.
 * Neighbours: control/service/controller communicates with the switches; `tables` makes the files.
 * Single-threaded.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/target.h"
#include "control/service/controller/push.h"
#include "control/tables/file.h"
#include "control/tables/renew.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"

struct push_load {
    char *path;
    char name[BY_NAME_MAX + 1];
    char *address;
    uint8_t *bytes, *base; /* base: the image from --over, or NULL */
    size_t size, base_size;
};

/* A switch of a site. */
struct push_place {
    char *name, *address;
};

struct push_arguments {
    const char *sockets, *site, *over;
    struct by_session_options access;
    bool json, renew, saved, settle;
    uint32_t to_count, to_room;
    const char **to; /* "NAME=ADDR" each */
    uint32_t load_count, load_room;
    struct push_load *loads;
    uint32_t place_count, place_room;
    struct push_place *places; /* of --site */
};

/* Adds one file. A host's image is an error only if the user named the file. */
static int add_file(struct push_arguments *arguments, const char *path, int named)
{
    struct by_image_header header;
    struct by_problem problem = {0};
    struct push_load load = {0};

    if (by_image_file_read(path, &load.bytes, &load.size, &problem) != 0)
        return by_cli_refuse(path, &problem);
    by_image_header(load.bytes, &header);
    if (header.kind != BY_NODE_SWITCH) {
        free(load.bytes);
        if (!named)
            return 0;
        return by_cli_fail(BY_EXIT_USAGE, "%s: the image of host %s; hosts load theirs from BANYAN_TABLE",
                           path, header.name);
    }
    for (uint32_t i = 0; i < arguments->load_count; i++) {
        if (strcmp(arguments->loads[i].name, header.name) != 0)
            continue;
        free(load.bytes);
        return by_cli_fail(BY_EXIT_USAGE, "%s and %s are both for switch %s: give one",
                           arguments->loads[i].path, path, header.name);
    }
    load.path = by_copy_text(path);
    snprintf(load.name, sizeof(load.name), "%s", header.name);
    BY_GROW(arguments->loads, arguments->load_count, arguments->load_room);
    arguments->loads[arguments->load_count++] = load;
    return 0;
}

static int is_table(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 6 && strcmp(entry->d_name + length - 6, ".table") == 0;
}

/* Raises the generation of all images in folder `path`. */
static int renew(const char *path, struct dirent **entries, int count)
{
    struct by_problem problem = {0};
    const char **files = by_alloc((size_t)count, sizeof(*files));
    int error;

    for (int i = 0; i < count; i++)
        files[i] = entries[i]->d_name;
    error = by_renew(path, files, (uint32_t)count, &problem);
    free(files);
    if (error == 0)
        return 0;
    by_cli_refuse(path, &problem);
    return error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE;
}

static int add_path(struct push_arguments *arguments, const char *path)
{
    struct dirent **entries;
    struct stat status;
    char file[4096];
    int count, result = 0;

    if (stat(path, &status) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode)) {
        if (arguments->renew)
            return by_cli_fail(BY_EXIT_USAGE,
                               "%s: --renew needs the folder with the images of all switches and hosts, "
                               "since all must have the same generation",
                               path);
        return add_file(arguments, path, 1);
    }
    count = scandir(path, &entries, is_table, alphasort);
    if (count < 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s: %s", path, strerror(errno));
    if (arguments->renew && count > 0)
        result = renew(path, entries, count);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof(file), "%.3800s/%.255s", path, entries[i]->d_name);
        if (result == 0)
            result = add_file(arguments, file, 0);
        free(entries[i]);
    }
    free(entries);
    if (result == 0 && count == 0)
        result =
            by_cli_fail(BY_EXIT_USAGE, "%s: no *.table in this folder: make them with banyan tables", path);
    return result;
}

static void add_switch(void *context, const char *name, size_t length, const char *address)
{
    struct push_arguments *arguments = context;
    struct push_load load = {0};

    (void)address; /* find_address looks it up again */
    snprintf(load.name, sizeof(load.name), "%.*s", (int)length, name);
    BY_GROW(arguments->loads, arguments->load_count, arguments->load_room);
    arguments->loads[arguments->load_count++] = load;
}

/* Checks the syntax only: while options are read, the images are not known yet. */
static void add_nothing(void *context, const char *name, size_t length, const char *address)
{
    (void)context;
    (void)name;
    (void)length;
    (void)address;
}

static void add_place(void *context, const char *name, size_t length, const char *address)
{
    struct push_arguments *arguments = context;

    BY_GROW(arguments->places, arguments->place_count, arguments->place_room);
    arguments->places[arguments->place_count++] =
        (struct push_place){.name = by_copy_part(name, length), .address = by_copy_text(address)};
}

/* For actions without images: adds every switch named by --to, found in --sockets, or of the
 * site. */
static int add_switches(struct push_arguments *arguments, int files)
{
    if (files > 0 || arguments->renew || arguments->saved + arguments->settle > 1)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--saved and --settle accept no images; `banyan push --help` lists the options");
    for (uint32_t i = 0; i < arguments->to_count; i++)
        by_cli_target(arguments->to[i], add_switch, arguments);
    if (arguments->sockets != NULL)
        return by_cli_target_folder(arguments->sockets, add_switch, arguments);
    for (uint32_t i = 0; i < arguments->place_count; i++)
        add_switch(arguments, arguments->places[i].name, strlen(arguments->places[i].name),
                   arguments->places[i].address);
    return arguments->load_count > 0
               ? 0
               : by_cli_fail(BY_EXIT_USAGE,
                             "no switch: name them with --to, the folder of their sockets, or a site");
}

static int take_site(void *object, const char *path, struct by_option_why *why)
{
    struct push_arguments *arguments = object;

    (void)why;
    arguments->site = path;
    return by_cli_target_site(path, true, add_place, arguments);
}

static int add_to(void *object, const char *text, struct by_option_why *why)
{
    struct push_arguments *arguments = object;

    (void)why;
    BY_GROW(arguments->to, arguments->to_count, arguments->to_room);
    arguments->to[arguments->to_count++] = text;
    return by_cli_target(text, add_nothing, NULL);
}

#define AT(member) BY_OPTION_AT(struct push_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CALL(
        0, "to", "NAME=ADDR", add_to,
        "the control address of switch NAME: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, or psk+ and one "
        "of the first two; repeat for each switch")},
    {BY_ROW_TEXT(0, "sockets", "DIR", AT(sockets), "every switch NAME listens at DIR/NAME.sock")},
    {BY_ROW_CALL(0, "site", "FILE", take_site,
                 "switches have the control addresses of this file, see banyan-site(5)")},
    {BY_ROW_FLAG(
        0, "renew", AT(renew),
        "first raise the generation of every job in all images of the folders, hosts' too, so that the next "
        "run starts with fresh tables; no run may be in progress")},
    {BY_ROW_FLAG(
        0, "saved", AT(saved),
        "instead of images, activate the tables that the switches had before they restarted, from their "
        "--state")},
    {BY_ROW_FLAG(
        0, "settle", AT(settle),
        "after a push that was interrupted: complete it if a switch has activated its table, else make all "
        "switches discard it")},
    {BY_ROW_TEXT(0, "over", "DIR", AT(over),
                 "DIR holds the tables that are active now: send only what differs")},
    BY_SESSION_ROWS(access),
    {BY_ROW_FLAG(0, "plain-keys", AT(access.plain_keys),
                 "send tables of keyed jobs over plain tcp: too, where others may read their keys")},
    {BY_ROW_NUMBER(0, "timeout", "S", AT(access.timeout_ms), 1, 3600,
                   "wait S seconds for an answer of one switch, %r (default 10)"),
     .scale = 1000},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan push",
    .usage = "banyan push DIR|FILE... --to NAME=ADDR... | --sockets DIR | --site FILE [options]\n"
             "banyan push --saved | --settle --to NAME=ADDR... | --sockets DIR | --site FILE [options]",
    .about =
        "Loads table images onto switches: every switch receives and checks its image before any activates "
        "its own. A folder means all switch images (*.table) in it; hosts' images are skipped.",
    .rows = rows,
    .most = UINT_MAX};

static int parse(int argc, char **argv, struct push_arguments *arguments)
{
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status == 0 ? -1 : status;
    by_session_access_complete(&arguments->access);
    if (arguments->saved || arguments->settle)
        return add_switches(arguments, argc - 1);
    if (argc == 1 || (arguments->to_count == 0 && arguments->sockets == NULL && arguments->site == NULL))
        return by_cli_fail(
            BY_EXIT_USAGE,
            "push requires images, and --to, --sockets or --site; `banyan push --help` lists the options");
    status = 0;
    for (int i = 1; status == 0 && i < argc; i++)
        status = add_path(arguments, argv[i]);
    return status;
}

static void find_address(const struct push_arguments *arguments, struct push_load *load)
{
    size_t length = strlen(load->name);
    char text[4200];

    for (uint32_t i = 0; i < arguments->to_count; i++)
        if (strncmp(arguments->to[i], load->name, length) == 0 && arguments->to[i][length] == '=')
            load->address = by_copy_text(arguments->to[i] + length + 1);
    if (load->address == NULL && arguments->sockets != NULL) {
        snprintf(text, sizeof(text), "unix:%.4000s/%s.sock", arguments->sockets, load->name);
        load->address = by_copy_text(text);
    }
    for (uint32_t i = 0; i < arguments->place_count && load->address == NULL; i++)
        if (strcmp(arguments->places[i].name, load->name) == 0)
            load->address = by_copy_text(arguments->places[i].address);
}

/* Checks that every image has an address and every address an image. */
static int pair(struct push_arguments *arguments)
{
    for (uint32_t i = 0; i < arguments->load_count; i++) {
        find_address(arguments, &arguments->loads[i]);
        if (arguments->loads[i].address == NULL)
            return by_cli_fail(BY_EXIT_USAGE, "%s: no address for switch %s: add --to %s=ADDR",
                               arguments->loads[i].path, arguments->loads[i].name, arguments->loads[i].name);
    }
    for (uint32_t i = 0; i < arguments->to_count; i++) {
        size_t length = (size_t)(strchr(arguments->to[i], '=') - arguments->to[i]);
        uint32_t j = 0;
        while (j < arguments->load_count &&
               (strlen(arguments->loads[j].name) != length ||
                strncmp(arguments->loads[j].name, arguments->to[i], length) != 0))
            j++;
        if (j == arguments->load_count)
            return by_cli_fail(BY_EXIT_USAGE, "--to %s: no image for that switch: give %.*s.table",
                               arguments->to[i], (int)length, arguments->to[i]);
    }
    return 0;
}

static void report(const struct push_arguments *arguments, const struct by_push_target *targets,
                   enum by_push_settled settled)
{
    static const char *const words[] = {
        [BY_PUSH_CLEAR] = "no push was open", [BY_PUSH_FORWARD] = "completed", [BY_PUSH_BACK] = "forgotten"};
    json_t *array = json_array(), *object;
    char hash[17];

    if (arguments->settle && !arguments->json)
        printf("settle: %s\n", words[settled]);
    for (uint32_t i = 0; i < arguments->load_count; i++) {
        snprintf(hash, sizeof(hash), "%016" PRIx64, targets[i].hash);
        if (!arguments->json && targets[i].hash == 0)
            printf("%s: no table is active\n", targets[i].name);
        else if (!arguments->json && targets[i].image == NULL)
            printf("%s: %s is active\n", targets[i].name, hash);
        else if (!arguments->json)
            printf("%s: %s is active (%zu bytes, %" PRIu64 " sent)\n", targets[i].name, hash,
                   targets[i].bytes, targets[i].sent);
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:I, s:I}", "switch", targets[i].name, "address",
                                        targets[i].address, "hash", hash, "bytes",
                                        (json_int_t)targets[i].bytes, "sent", (json_int_t)targets[i].sent));
    }
    object = json_pack("{s:o}", "pushed", array);
    if (arguments->settle)
        json_object_set_new(object, "settled", json_string(words[settled]));
    if (arguments->json) {
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(object);
}

static int push(struct push_arguments *arguments)
{
    struct by_push_target *targets = by_alloc(arguments->load_count, sizeof(*targets));
    enum by_push_settled settled = BY_PUSH_CLEAR;
    struct by_problem problem = {0};
    int status = BY_EXIT_DONE;

    for (uint32_t i = 0; i < arguments->load_count; i++)
        targets[i] = (struct by_push_target){.name = arguments->loads[i].name,
                                             .address = arguments->loads[i].address,
                                             .image = arguments->loads[i].bytes,
                                             .bytes = arguments->loads[i].size,
                                             .base = arguments->loads[i].base,
                                             .base_bytes = arguments->loads[i].base_size};
    if (arguments->settle
            ? by_push_settle(targets, arguments->load_count, &arguments->access, &settled, &problem) != 0
            : by_push(targets, arguments->load_count, &arguments->access, &problem) != 0)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "push: %s", problem.text);
    else
        report(arguments, targets, settled);
    free(targets);
    return status;
}

/* Reads the images of --over. A switch without one receives its whole table. */
static int read_bases(struct push_arguments *arguments)
{
    struct by_problem problem = {0};
    char path[4200];

    for (uint32_t i = 0; i < arguments->load_count && arguments->over; i++) {
        struct push_load *load = &arguments->loads[i];
        int error;

        snprintf(path, sizeof(path), "%.4000s/%s.table", arguments->over, load->name);
        error = by_image_file_read(path, &load->base, &load->base_size, &problem);
        if (error != 0 && error != BY_ENOENT)
            return by_cli_refuse(path, &problem);
    }
    return 0;
}

int by_command_push(int argc, char **argv)
{
    struct push_arguments arguments = {.access.timeout_ms = 10000};
    int status = parse(argc, argv, &arguments);

    if (status == 0)
        status = pair(&arguments);
    if (status == 0)
        status = read_bases(&arguments);
    if (status == 0)
        status = push(&arguments);
    for (uint32_t i = 0; i < arguments.load_count; i++) {
        free(arguments.loads[i].path);
        free(arguments.loads[i].address);
        free(arguments.loads[i].bytes);
        free(arguments.loads[i].base);
    }
    for (uint32_t i = 0; i < arguments.place_count; i++) {
        free(arguments.places[i].name);
        free(arguments.places[i].address);
    }
    free(arguments.loads);
    free(arguments.places);
    free(arguments.to);
    return status < 0 ? BY_EXIT_DONE : status;
}
