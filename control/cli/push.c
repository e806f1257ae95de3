/*
 * The command `banyan push`: installs table images on running switches, on all of them or on none.
 * Neighbours: control/service/controller communicates with the switches; `tables` makes the files.
 * Single-threaded.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/number.h"
#include "control/cli/target.h"
#include "control/service/controller/push.h"
#include "control/tables/file.h"
#include "control/tables/renew.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"

static const char help[] =
    "usage: banyan push DIR|FILE... --to NAME=ADDR... | --sockets DIR [options]\n"
    "       banyan push --saved | --settle --to NAME=ADDR... | --sockets DIR [options]\n"
    "\n"
    "Loads table images onto switches: every switch takes and checks its image before any makes it active.\n"
    "A folder stands for all switch images (*.table) in it; hosts' images are passed over.\n"
    "\n"
    "      --to NAME=ADDR   the control address of switch NAME: unix:PATH, tcp:HOST:PORT or\n"
    "                       tls:HOST:PORT, or psk+ and one of the first two; repeat for each switch\n"
    "      --sockets DIR    every switch NAME listens at DIR/NAME.sock\n"
    "      --renew          first raise the generation of every job in all images of the folders, hosts' "
    "too, "
    "so\n"
    "                       that the next run begins on fresh tables; no run may be going on\n"
    "      --saved          instead of images: what the switches had before they restarted, from their "
    "--state\n"
    "      --settle         after a push that was interrupted: complete it where it had begun to be active, "
    "else have\n"
    "                       all switches forget it\n"
    "      --over DIR       DIR holds the tables that are active now: only what differs is sent\n"
    "      --keys DIR       keys for tls: (default: BANYAN_KEYS), as `banyan keys` makes them\n"
    "      --psk FILE       the key for psk+ addresses (default: BANYAN_PSK), as `banyan keys --psk` makes "
    "it\n"
    "      --plain-keys     tables of keyed jobs go over plain tcp: too, where others may read their keys\n"
    "      --timeout S      seconds that one switch may take to answer (default 10)\n"
    "      --json           one JSON object on stdout\n"
    "      --help\n";

struct push_load {
    char *path;
    char name[BY_NAME_MAX + 1];
    char *address;
    uint8_t *bytes, *base; /* base: the image from --over, or NULL */
    size_t size, base_size;
};

struct push_arguments {
    const char *sockets, *over;
    struct by_session_options access;
    int json, renew, saved, settle;
    uint32_t to_count, to_room;
    char **to; /* "NAME=ADDR" each */
    uint32_t load_count, load_room;
    struct push_load *loads;
};

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"sockets", required_argument, NULL, 's'},
    {"keys", required_argument, NULL, 'k'},
    {"timeout", required_argument, NULL, 'T'},
    {"json", no_argument, NULL, 'J'},
    {"renew", no_argument, NULL, 'R'},
    {"over", required_argument, NULL, 'O'},
    {"plain-keys", no_argument, NULL, 'P'},
    {"saved", no_argument, NULL, 'S'},
    {"settle", no_argument, NULL, 'E'},
    {"psk", required_argument, NULL, 'K'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
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

/* For actions without images: adds every switch named by --to or found in --sockets. */
static int add_switches(struct push_arguments *arguments, int files)
{
    if (files > 0 || arguments->renew || arguments->saved + arguments->settle > 1)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--saved and --settle stand alone, without images; see banyan push --help");
    for (uint32_t i = 0; i < arguments->to_count; i++)
        by_cli_target(arguments->to[i], add_switch, arguments);
    if (arguments->sockets != NULL)
        return by_cli_target_folder(arguments->sockets, add_switch, arguments);
    return arguments->load_count > 0
               ? 0
               : by_cli_fail(BY_EXIT_USAGE, "no switch: name them with --to, or the folder of their sockets");
}

static int parse(int argc, char **argv, struct push_arguments *arguments)
{
    uint64_t value = 10;
    int option, status = 0;

    optind = 0;
    while (status == 0 && (option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 't':
            BY_GROW(arguments->to, arguments->to_count, arguments->to_room);
            arguments->to[arguments->to_count++] = optarg;
            status = by_cli_target(optarg, add_nothing, NULL);
            break;
        case 's':
            arguments->sockets = optarg;
            break;
        case 'k':
            arguments->access.keys = optarg;
            break;
        case 'K':
            arguments->access.psk = optarg;
            break;
        case 'T':
            status = by_cli_number("--timeout", optarg, 1, 3600, &value);
            break;
        case 'J':
            arguments->json = 1;
            break;
        case 'R':
            arguments->renew = 1;
            break;
        case 'O':
            arguments->over = optarg;
            break;
        case 'P':
            arguments->access.plain_keys = 1;
            break;
        case 'S':
            arguments->saved = 1;
            break;
        case 'E':
            arguments->settle = 1;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return BY_EXIT_USAGE;
        }
    }
    arguments->access.timeout_ms = (uint32_t)value * 1000;
    by_session_access_complete(&arguments->access);
    if (status == 0 && (arguments->saved || arguments->settle))
        return add_switches(arguments, argc - optind);
    if (status == 0 && (optind == argc || (arguments->to_count == 0 && arguments->sockets == NULL)))
        return by_cli_fail(BY_EXIT_USAGE, "push needs images, and --to or --sockets; see banyan push --help");
    for (; status == 0 && optind < argc; optind++)
        status = add_path(arguments, argv[optind]);
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
    struct push_arguments arguments = {0};
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
    free(arguments.loads);
    free(arguments.to);
    return status < 0 ? BY_EXIT_DONE : status;
}
