/*
 * The command `banyan keys`: creates a certificate authority and certificates for switches,
 * controllers and hosts, or a pre-shared key. Neighbours: control/service/controller/keys.c and
 * psk_file.c create them. Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/service/controller/keys.h"
#include "control/service/controller/psk_file.h"
#include "offload/base/errors.h"

#define DAYS 365u

struct wanted {
    char *name;
    enum by_keys_role role;
};

struct keys_arguments {
    const char *folder, *psk;
    uint32_t days;
    bool renew;
    uint32_t count, room;
    struct wanted *wanted;
};

static void want(struct keys_arguments *arguments, const char *name, enum by_keys_role role)
{
    BY_GROW(arguments->wanted, arguments->count, arguments->room);
    arguments->wanted[arguments->count++] = (struct wanted){by_copy_text(name), role};
}

static int want_switch(void *object, const char *name, struct by_option_why *why)
{
    (void)why;
    want(object, name, BY_KEYS_SWITCH);
    return 0;
}

static int want_controller(void *object, const char *name, struct by_option_why *why)
{
    (void)why;
    want(object, name, BY_KEYS_CONTROLLER);
    return 0;
}

static int want_host(void *object, const char *name, struct by_option_why *why)
{
    (void)why;
    want(object, name, BY_KEYS_HOST);
    return 0;
}

static int want_all(void *object, const char *path, struct by_option_why *why)
{
    struct by_topology *topology = by_cli_topology(path);

    (void)why;
    if (!topology)
        return BY_EXIT_USAGE;
    for (uint32_t i = 0; i < topology->node_count; i++)
        want(object, topology->nodes[i].name, topology->nodes[i].compute ? BY_KEYS_HOST : BY_KEYS_SWITCH);
    by_topology_free(topology);
    return 0;
}

#define AT(member) BY_OPTION_AT(struct keys_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CALL(0, "switch", "NAME", want_switch, "make keys of a switch; NAME must be its --name")},
    {BY_ROW_CALL(0, "controller", "NAME", want_controller,
                 "make keys of a controller, which may load tables")},
    {BY_ROW_CALL(0, "host", "NAME", want_host,
                 "make keys of a host of jobs; NAME must be its name in the topology")},
    {BY_ROW_CALL(0, "topology", "FILE", want_all, "make keys of every switch and host of this fabric")},
    {BY_ROW_NUMBER(0, "days", "N", AT(days), 1, BY_KEYS_DAYS_MAX,
                   "make keys that are valid for N days, %r (default 365)")},
    {BY_ROW_TEXT(0, "psk", "FILE", AT(psk),
                 "make only a pre-shared key, for a switch without TLS and its controllers")},
    {BY_ROW_FLAG(0, "renew", AT(renew), "replace keys that exist")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan keys",
    .usage = "banyan keys DIR [--switch NAME]... [--controller NAME]... [--host NAME]... [--topology FILE]\n"
             "            [options]\n"
             "banyan keys --psk FILE [--renew]",
    .about =
        "Makes keys for control channels over TLS: an authority in DIR (ca.pem, ca.key), unless DIR has one, "
        "and a folder DIR/NAME with ca.pem, cert.pem and key.pem for each name. Give a switch its folder with "
        "`banyan-switchd --keys`, a controller its own with `banyan push --keys`, `banyand --keys` or "
        "BANYAN_KEYS, a host its own with BANYAN_KEYS. ca.key stays where it is.",
    .rows = rows,
    .most = 1};

static int parse(int argc, char **argv, struct keys_arguments *arguments)
{
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status == 0 ? -1 : status;
    if (arguments->psk != NULL && (argc > 1 || arguments->count > 0))
        return by_cli_fail(BY_EXIT_USAGE,
                           "keys --psk FILE makes only that file; leave out the other arguments");
    if (arguments->psk == NULL && argc == 1)
        return by_cli_fail(BY_EXIT_USAGE, "keys requires one folder; `banyan keys --help` lists the options");
    arguments->folder = argv[1];
    return 0;
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
    int error = by_authority_open(arguments->folder, arguments->days, &authority, &made, &problem);

    if (error != 0)
        return by_cli_fail(error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE, "keys: %s", problem.text);
    printf("%s/ca.pem: %s\n", arguments->folder, made ? "a new authority" : "the authority");
    for (uint32_t i = 0; i < arguments->count && error == 0; i++) {
        const struct wanted *one = &arguments->wanted[i];

        error =
            by_authority_issue(authority, one->name, one->role, arguments->days, arguments->renew, &problem);
        if (error == 0)
            printf("%s/%s: keys of a %s, for %u days\n", arguments->folder, one->name, roles[one->role],
                   arguments->days);
    }
    by_authority_close(authority);
    if (error != 0)
        return by_cli_fail(error == BY_EIO || error == BY_ENOMEM ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE,
                           "keys: %s", problem.text);
    return BY_EXIT_DONE;
}

int by_command_keys(int argc, char **argv)
{
    struct keys_arguments arguments = {.days = DAYS};
    int status = parse(argc, argv, &arguments);

    if (status == 0)
        status = arguments.psk ? make_psk(&arguments) : make(&arguments);
    for (uint32_t i = 0; i < arguments.count; i++)
        free(arguments.wanted[i].name);
    free(arguments.wanted);
    return status < 0 ? BY_EXIT_DONE : status;
}
