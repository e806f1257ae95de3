/*
 * The command `banyan doctor`: collects the facts that the options name, runs the checks, and
 * prints the findings. Neighbour: control/view/doctor. Single-threaded.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/discover.h"
#include "control/cli/target.h"
#include "control/service/controller/http.h"
#include "control/tables/file.h"
#include "control/view/doctor/doctor.h"

/* Time in which a peer must answer (ms). */
#define PEER_MS 900u
/* Time in which nodes are asked about their cables (s), and after which a host's command is
 * ended. */
#define LISTEN_S  3u
#define COMMAND_S 30u

struct doctor_arguments {
    struct by_doctor doctor;
    struct by_session_options access;
    const char *tables, *topology, *site;
    char controller[BY_HTTP_PATH_MAX], host[256];
    bool strict, verbose, checks, json;
};

static struct by_doctor_place *add_place(struct by_doctor *doctor, const char *name)
{
    struct by_doctor_place *place;

    BY_GROW(doctor->places, doctor->place_count, doctor->place_room);
    place = &doctor->places[doctor->place_count++];
    *place = (struct by_doctor_place){0};
    by_interface_read(name, &place->interface);
    return place;
}

static void add_switch(void *context, const char *name, size_t length, const char *address)
{
    struct by_doctor *doctor = context;
    struct by_switch_facts *facts;

    BY_GROW(doctor->switches, doctor->switch_count, doctor->switch_room);
    facts = &doctor->switches[doctor->switch_count++];
    *facts = (struct by_switch_facts){.name = by_copy_part(name, length), .address = by_copy_text(address)};
}

/* Whether the table states the own MAC address of a port. */
static bool has_mac(const struct by_image_port *port)
{
    static const uint8_t none[6] = {0};

    return memcmp(port->own_mac, none, sizeof(none)) != 0;
}

/* Takes an IPv6 address out of a table. */
static void take_ipv6(const uint8_t *image, uint32_t number, uint8_t ipv6[BY_IPV6_BYTES])
{
    struct by_ipv6_book book;
    const uint8_t *address;

    by_image_book(image, &book);
    address = by_ipv6_address(&book, number);
    if (address != NULL)
        memcpy(ipv6, address, BY_IPV6_BYTES);
}

/* Asks the other end of a port for its MAC address. */
static enum by_peer ask(struct by_doctor_place *place)
{
    const struct by_image_port *port = &place->port;
    const uint8_t *mac = has_mac(port) ? port->own_mac : place->interface.mac;

    if (by_ipv6_is(port->peer_ip))
        return by_peer_ask_ipv6(port->name, place->own_ipv6, mac, place->peer_ipv6, PEER_MS, place->peer_mac);
    return by_peer_ask(port->name, port->own_ip, mac, port->peer_ip, PEER_MS, place->peer_mac);
}

/* Adds the ports of this machine's table, and the peers at their other ends. */
static int add_table(struct by_doctor *doctor, const char *path)
{
    struct by_problem problem = {0};
    struct by_image_header header;
    struct by_image_port port;
    uint8_t *image;
    size_t bytes;

    if (by_image_file_read(path, &image, &bytes, &problem) != 0)
        return by_cli_refuse(path, &problem);
    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_PORT]; i++) {
        struct by_doctor_place *place;

        by_image_port(image, i, &port);
        place = add_place(doctor, port.name);
        place->table = path;
        place->header = header;
        place->port = port;
        take_ipv6(image, port.own_ip, place->own_ipv6);
        take_ipv6(image, port.peer_ip, place->peer_ipv6);
        /* Behind a bridge there is no single peer. */
        if (port.peer_ip != 0 && place->interface.exists && place->interface.is_up &&
            !(place->interface.has_program && header.kind == BY_NODE_SWITCH))
            place->peer = ask(place);
    }
    free(image);
    return 0;
}

/*
 * Returns the collectives of a switch image's entries, according to the leaves of a host's image.
 */
static uint32_t collectives_of(const uint8_t *image, const uint8_t *host)
{
    struct by_image_header header, other;
    uint32_t collectives = 0;

    by_image_header(image, &header);
    by_image_header(host, &other);
    for (uint32_t i = 0; i < other.count[BY_SECTION_LEAF]; i++) {
        struct by_image_leaf leaf;
        uint32_t low = 0, high = header.count[BY_SECTION_ENTRY];

        by_image_leaf(host, i, &leaf);
        while (low < high) { /* entries are sorted by job and tree */
            struct by_image_entry entry;
            uint32_t middle = low + (high - low) / 2;

            by_image_entry(image, middle, &entry);
            if (entry.job == leaf.job && entry.tree == leaf.tree) {
                collectives |= leaf.collectives;
                break;
            }
            if (entry.job < leaf.job || (entry.job == leaf.job && entry.tree < leaf.tree))
                low = middle + 1;
            else
                high = middle;
        }
    }
    return collectives;
}

static int is_table(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 6 && strcmp(entry->d_name + length - 6, ".table") == 0;
}

/*
 * Adds the facts of one file of the folder: a switch's own table; or a host's, whose leaves define
 * the collectives of trees. Switches are read first.
 */
static int take_file(struct by_doctor *doctor, const char *folder, const char *name, bool hosts)
{
    struct by_problem problem = {0};
    struct by_image_header header;
    uint8_t *image;
    size_t bytes;
    char path[4400];

    snprintf(path, sizeof(path), "%.4000s/%.255s", folder, name);
    if (by_image_file_read(path, &image, &bytes, &problem) != 0)
        return by_cli_refuse(path, &problem);
    by_image_header(image, &header);
    for (uint32_t i = 0; i < doctor->switch_count; i++) {
        struct by_switch_facts *facts = &doctor->switches[i];

        if (hosts && header.kind == BY_NODE_HOST && facts->image != NULL)
            facts->collectives |= collectives_of(facts->image, image);
        if (!hosts && header.kind == BY_NODE_SWITCH && facts->image == NULL &&
            strcmp(header.name, facts->name) == 0) {
            facts->path = by_copy_text(path);
            facts->image = image;
            facts->bytes = bytes;
            return 0;
        }
    }
    free(image);
    return 0;
}

static int add_tables(struct by_doctor *doctor, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_table, alphasort), status = 0;

    if (count < 0)
        return by_cli_fail(BY_EXIT_USAGE, "--tables %s: %s", folder, strerror(errno));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count && status == 0; i++)
            status = take_file(doctor, folder, entries[i]->d_name, pass == 1);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return status;
}

static int take_host(void *object, const char *text, struct by_option_why *why)
{
    (void)why;
    return by_cli_collect_host(&((struct doctor_arguments *)object)->doctor.fabric.collect, text, LISTEN_S);
}

static int take_facts(void *object, const char *path, struct by_option_why *why)
{
    struct by_problem problem = {0};

    (void)why;
    if (by_facts_read(&((struct doctor_arguments *)object)->doctor.fabric.facts, path, &problem) != 0)
        return by_cli_refuse(path, &problem);
    return 0;
}

/* Asks the switches and hosts for what is compared with the topology. */
static int collect_fabric(struct doctor_arguments *arguments)
{
    struct by_doctor *doctor = &arguments->doctor;
    struct by_collect *collect = &doctor->fabric.collect;

    if (arguments->topology == NULL) {
        if (collect->target_count + doctor->fabric.facts.count > 0)
            return by_cli_fail(BY_EXIT_USAGE,
                               "--host and --facts are compared with a topology: add --topology");
        return 0;
    }
    doctor->fabric.topology = by_cli_topology_site(arguments->topology, arguments->site);
    if (doctor->fabric.topology == NULL)
        return BY_EXIT_USAGE;
    for (uint32_t i = 0; i < doctor->switch_count; i++)
        by_collect_switch(collect, doctor->switches[i].name, strlen(doctor->switches[i].name),
                          doctor->switches[i].address);
    collect->access = arguments->access;
    collect->listen_ms = LISTEN_S * 1000;
    collect->command_ms = COMMAND_S * 1000;
    by_collect_run(collect, &doctor->fabric.facts, &doctor->report);
    return 0;
}

static void list_checks(void)
{
    uint32_t count;
    const struct by_check *checks = by_checks(&count);

    for (uint32_t i = 0; i < count; i++)
        printf("%-10s  %s\n", checks[i].name, checks[i].about);
}

static int take_interface(void *object, const char *name, struct by_option_why *why)
{
    (void)why;
    add_place(&((struct doctor_arguments *)object)->doctor, name);
    return 0;
}

static int take_table(void *object, const char *path, struct by_option_why *why)
{
    (void)why;
    return add_table(&((struct doctor_arguments *)object)->doctor, path);
}

static int take_switch(void *object, const char *text, struct by_option_why *why)
{
    (void)why;
    return by_cli_target(text, add_switch, &((struct doctor_arguments *)object)->doctor);
}

static int take_sockets(void *object, const char *folder, struct by_option_why *why)
{
    (void)why;
    return by_cli_target_folder(folder, add_switch, &((struct doctor_arguments *)object)->doctor);
}

#define AT(member) BY_OPTION_AT(struct doctor_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_CALL(0, "iface", "IF", take_interface, "check this interface as well; may be repeated")},
    {BY_ROW_CALL(0, "table", "FILE", take_table,
                 "check what this machine's table names: its interfaces, addresses, MTUs and peers")},
    {BY_ROW_CALL(0, "to", "NAME=ADDR", take_switch, "check this switch; may be repeated")},
    {BY_ROW_CALL(0, "sockets", "DIR", take_sockets, "check every switch that has a socket in this folder")},
    {BY_ROW_TEXT(0, "site", "FILE", AT(site),
                 "check every switch that has a control channel in this file, see banyan-site(5); with "
                 "--topology, compare the cables with its names, too")},
    {BY_ROW_TEXT(0, "tables", "DIR", AT(tables), "the tables that these switches should have")},
    {BY_ROW_TEXT(0, "topology", "FILE", AT(topology),
                 "compare the cables with this topology; the nodes are asked as by banyan discover")},
    {BY_ROW_CALL(0, "host", "NAME[=COMMAND]", take_host,
                 "ask this host about its cables, as for banyan discover; may be repeated")},
    {BY_ROW_CALL(0, "facts", "FILE", take_facts,
                 "use the output of `banyan discover --local` in FILE; may be repeated")},
    BY_SESSION_ROWS(access),
    {BY_ROW_TEXT(
        0, "controller", "URL", AT(doctor.controller),
        "check banyand at unix:PATH or http://HOST:PORT (default: BANYAN_CONTROLLER if that is http://, "
        "else, if no other object is named, the socket of this user's or root's banyand)")},
    {BY_ROW_NUMBER(0, "timeout", "S", AT(access.timeout_ms), 1, 3600,
                   "wait S seconds for an answer of a switch, %r (default 5)"),
     .scale = 1000},
    {BY_ROW_FLAG(0, "strict", AT(strict), "count advice as trouble")},
    {BY_ROW_FLAG('v', "verbose", AT(verbose), "print the checks that pass, too")},
    {BY_ROW_FLAG(0, "checks", AT(checks), "list the checks without running them")},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan doctor",
    .usage = "banyan doctor [options]",
    .about = "Checks this machine, and the objects that the options name, for problems that keep banyan from "
             "working, and prints the remedies. Changes nothing.",
    .epilog =
        "Exit status: 0 without trouble, 1 if trouble was found, 2 after bad usage, 3 if something could "
        "not be checked.",
    .rows = rows};

static int parse(int argc, char **argv, struct doctor_arguments *arguments)
{
    const char *ring = getenv("BANYAN_RING"), *joins = getenv("BANYAN_CONTROLLER"),
               *node = getenv("BANYAN_NODE");
    struct by_doctor *doctor = &arguments->doctor;
    int status = by_options_read(&command_line, arguments, &argc, argv);
    bool is_ours;

    if (status >= 0)
        return status == 0 ? -1 : status;
    if (arguments->checks) {
        list_checks();
        return -1;
    }
    if (arguments->site != NULL) {
        status = by_cli_target_site(arguments->site, arguments->topology == NULL, add_switch, doctor);
        if (status != 0)
            return status;
    }
    if (arguments->tables != NULL && doctor->switch_count == 0)
        return by_cli_fail(BY_EXIT_USAGE, "--tables %s: name the switches with --to, --sockets or --site",
                           arguments->tables);
    by_http_default(arguments->controller);
    is_ours = strncmp(arguments->controller, "unix:", 5) == 0
                  ? doctor->switch_count + doctor->place_count == 0 && arguments->topology == NULL
                  : joins != NULL && strcmp(joins, arguments->controller) == 0;
    if (doctor->controller == NULL && is_ours)
        doctor->controller = arguments->controller;
    by_session_access_complete(&arguments->access);
    doctor->rings = ring != NULL && strcmp(ring, "on") == 0;
    gethostname(arguments->host, sizeof(arguments->host) - 1);
    arguments->host[strcspn(arguments->host, ".")] = 0;
    doctor->node = node != NULL && node[0] != 0 ? node : arguments->host;
    doctor->joins = joins;
    return arguments->tables ? add_tables(doctor, arguments->tables) : 0;
}

static int conclude(const struct by_report *report, const struct doctor_arguments *arguments)
{
    bool colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;

    if (arguments->json)
        by_report_print_json(report, stdout);
    else
        by_report_print(report, arguments->verbose, colours, stdout);
    if (by_report_count(report, BY_GRADE_TROUBLE) > 0 ||
        (arguments->strict && by_report_count(report, BY_GRADE_ADVICE) > 0))
        return BY_EXIT_NO;
    return by_report_count(report, BY_GRADE_UNSEEN) > 0 ? BY_EXIT_ENVIRONMENT : BY_EXIT_DONE;
}

int by_command_doctor(int argc, char **argv)
{
    struct doctor_arguments arguments = {.access.timeout_ms = 5000};
    struct by_doctor *doctor = &arguments.doctor;
    int status = parse(argc, argv, &arguments);

    if (status == 0) {
        by_machine_read(&doctor->machine);
        if (arguments.access.keys != NULL)
            by_key_facts_read(arguments.access.keys, &doctor->keys);
        for (uint32_t i = 0; i < doctor->switch_count; i++)
            by_switch_facts_read(&doctor->switches[i], &arguments.access);
        by_controller_read(doctor);
        status = collect_fabric(&arguments);
    }
    if (status == 0) {
        by_doctor_judge(doctor);
        status = conclude(&doctor->report, &arguments);
    }
    by_doctor_free(doctor);
    return status < 0 ? BY_EXIT_DONE : status;
}
