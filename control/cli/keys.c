/*
 * The command `banyan keys`: creates a certificate authority and certificates for switches,
 * controllers and hosts, or a pre-shared key. Neighbours: control/service/controller/keys.c and
 * psk_file.c create them. Single-threaded.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/number.h"
#include "control/service/controller/keys.h"
#include "control/service/controller/psk_file.h"
#include "offload/base/errors.h"

#define DAYS 365u

static const char help[] =
    "usage: banyan keys DIR [--switch NAME]... [--controller NAME]... [--host NAME]... [--topology FILE] "
    "[options]\n"
    "       banyan keys --psk FILE [--renew]\n"
    "\n"
    "Makes keys for control channels over TLS: an authority in DIR (ca.pem, ca.key), when it has none yet, "
    "and a\n"
    "folder DIR/NAME with ca.pem, cert.pem and key.pem for each name. Give a switch its folder with\n"
    "`banyan-switchd --keys`, a controller its own with `banyan push --keys`, `banyand --keys` or "
    "BANYAN_KEYS,\n"
    "a host its own with BANYAN_KEYS. ca.key stays where it is.\n"
    "\n"
    "      --switch NAME      keys of a switch; it must be its --name\n"
    "      --controller NAME  keys of someone who may load tables\n"
    "      --host NAME        keys of a host of jobs; it must be its name in the topology\n"
    "      --topology FILE    keys of every switch and host of this fabric\n"
    "      --days N           how long they last (default 365)\n"
    "      --psk FILE         instead of all that: a pre-shared key, for a switch without TLS and its "
    "controllers\n"
    "      --renew            replace keys that are there\n"
    "      --help\n";

struct wanted {
    char *name;
    enum by_keys_role role;
};

struct keys_arguments {
    const char *folder, *psk;
    uint64_t days;
    bool renew;
    uint32_t count, room;
    struct wanted *wanted;
};

static const struct option options[] = {
    {"switch", required_argument, NULL, 's'},
    {"controller", required_argument, NULL, 'c'},
    {"host", required_argument, NULL, 'o'},
    {"topology", required_argument, NULL, 't'},
    {"days", required_argument, NULL, 'd'},
    {"renew", no_argument, NULL, 'r'},
    {"psk", required_argument, NULL, 'K'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void want(struct keys_arguments *arguments, const char *name, enum by_keys_role role)
{
    BY_GROW(arguments->wanted, arguments->count, arguments->room);
    arguments->wanted[arguments->count++] = (struct wanted){by_copy_text(name), role};
}

static int want_all(struct keys_arguments *arguments, const char *path)
{
    struct by_topology *topology = by_cli_topology(path);

    if (!topology)
        return BY_EXIT_USAGE;
    for (uint32_t i = 0; i < topology->node_count; i++)
        want(arguments, topology->nodes[i].name, topology->nodes[i].compute ? BY_KEYS_HOST : BY_KEYS_SWITCH);
    by_topology_free(topology);
    return 0;
}

static int parse(int argc, char **argv, struct keys_arguments *arguments)
{
    int option, status = 0;

    optind = 0;
    arguments->days = DAYS;
    while (status == 0 && (option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            want(arguments, optarg, BY_KEYS_SWITCH);
            break;
        case 'c':
            want(arguments, optarg, BY_KEYS_CONTROLLER);
            break;
        case 'o':
            want(arguments, optarg, BY_KEYS_HOST);
            break;
        case 't':
            status = want_all(arguments, optarg);
            break;
        case 'd':
            status = by_cli_number("--days", optarg, 1, BY_KEYS_DAYS_MAX, &arguments->days);
            break;
        case 'K':
            arguments->psk = optarg;
            break;
        case 'r':
            arguments->renew = true;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return BY_EXIT_USAGE;
        }
    }
    if (status == 0 && arguments->psk != NULL && (optind != argc || arguments->count > 0))
        return by_cli_fail(BY_EXIT_USAGE, "keys --psk FILE makes that file alone; see banyan keys --help");
    if (status == 0 && arguments->psk == NULL && optind + 1 != argc)
        return by_cli_fail(BY_EXIT_USAGE, "keys needs one folder; see banyan keys --help");
    arguments->folder = argv[optind];
    return status;
}

static int make_psk(const struct keys_arguments *arguments)
{
    struct by_problem problem = {0};
    int error = by_psk_file_make(arguments->psk, arguments->renew, &problem);

    if (error != 0)
        return by_cli_fail(error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE, "keys: %s", problem.text);
    printf("%s: a pre-shared key, for one switch and its controllers\n", arguments->psk);
    return BY_EXIT_DONE;
}

static int make(const struct keys_arguments *arguments)
{
    static const char *const roles[] = {
        [BY_KEYS_SWITCH] = "switch", [BY_KEYS_CONTROLLER] = "controller", [BY_KEYS_HOST] = "host"};
    struct by_problem problem = {0};
    struct by_authority *authority;
    bool made;
    int error = by_authority_open(arguments->folder, (uint32_t)arguments->days, &authority, &made, &problem);

    if (error != 0)
        return by_cli_fail(error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE, "keys: %s", problem.text);
    printf("%s/ca.pem: %s\n", arguments->folder, made ? "a new authority" : "the authority");
    for (uint32_t i = 0; i < arguments->count && error == 0; i++) {
        const struct wanted *one = &arguments->wanted[i];

        error = by_authority_issue(authority, one->name, one->role, (uint32_t)arguments->days,
                                   arguments->renew, &problem);
        if (error == 0)
            printf("%s/%s: keys of a %s, for %u days\n", arguments->folder, one->name, roles[one->role],
                   (unsigned)arguments->days);
    }
    by_authority_close(authority);
    if (error != 0)
        return by_cli_fail(error == BY_EIO || error == BY_ENOMEM ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE,
                           "keys: %s", problem.text);
    return BY_EXIT_DONE;
}

int by_command_keys(int argc, char **argv)
{
    struct keys_arguments arguments = {0};
    int status = parse(argc, argv, &arguments);

    if (status == 0)
        status = arguments.psk ? make_psk(&arguments) : make(&arguments);
    for (uint32_t i = 0; i < arguments.count; i++)
        free(arguments.wanted[i].name);
    free(arguments.wanted);
    return status < 0 ? BY_EXIT_DONE : status;
}
