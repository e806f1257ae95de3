/*
 * The command `banyan discover`: asks the machines of a site for their interfaces and neighbours,
 * and writes a topology and a site file of what they report; or prints the facts of this machine
 * (--local). Neighbour: control/discover. Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/discover.h"
#include "control/cli/target.h"
#include "control/discover/local.h"
#include "control/discover/write.h"
#include "offload/base/errors.h"

/* Time after which a host's command is ended, beside the time in which it listens (ms). */
#define COMMAND_MS 30000u
#define SECONDS    5u

struct discover_arguments {
    struct by_collect collect;
    struct by_facts_list facts;
    struct by_discovery_options options;
    const char *name, *ifaces, *output, *site, *save;
    uint32_t seconds;
    bool local, verbose;
};

/* The name of this machine: its host name without the domain. */
const char *by_cli_node_name(char name[BY_NAME_MAX + 1])
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = 0;
    by_facts_copy_name(name, host);
    return name;
}

int by_cli_collect_host(struct by_collect *collect, const char *text, uint32_t seconds)
{
    size_t length = strcspn(text, "=");
    char command[256];

    if (length == 0 || length > BY_NAME_MAX || strcspn(text, " \t\"'\\/;&|$`") < length)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--host %.100s: give NAME or NAME=COMMAND; a name has 1 to %u characters without "
                           "blanks, quotes and '/'",
                           text, BY_NAME_MAX);
    snprintf(command, sizeof(command), "ssh %.*s banyan discover --local --name %.*s --seconds %u",
             (int)length, text, (int)length, text, seconds);
    by_collect_host(collect, text, length, text[length] ? text + length + 1 : command);
    return 0;
}

static int take_host(void *object, const char *text, struct by_option_why *why)
{
    struct discover_arguments *arguments = object;

    (void)why;
    return by_cli_collect_host(&arguments->collect, text, arguments->seconds);
}

static void add_switch(void *context, const char *name, size_t length, const char *address)
{
    by_collect_switch(context, name, length, address);
}

static int take_switch(void *object, const char *text, struct by_option_why *why)
{
    (void)why;
    return by_cli_target(text, add_switch, &((struct discover_arguments *)object)->collect);
}

static int take_sockets(void *object, const char *folder, struct by_option_why *why)
{
    (void)why;
    return by_cli_target_folder(folder, add_switch, &((struct discover_arguments *)object)->collect);
}

static int take_rate(void *object, const char *text, struct by_option_why *why)
{
    struct by_fraction *rate = &((struct discover_arguments *)object)->options.rate;

    if (by_fraction_parse(text, strlen(text), rate) == 0 && rate->num > 0)
        return 0;
    return by_option_refuse(why, "give Gb/s above 0, such as 100 or 2.5");
}

static int take_facts(void *object, const char *path, struct by_option_why *why)
{
    struct by_problem problem = {0};

    (void)why;
    if (by_facts_read(&((struct discover_arguments *)object)->facts, path, &problem) != 0)
        return by_cli_refuse(path, &problem);
    return 0;
}

#define AT(member) BY_OPTION_AT(struct discover_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_NUMBER(0, "seconds", "S", AT(seconds), 0, 600,
                   "listen to the neighbours for S seconds, %r (default 5); give it before --host")},
    {BY_ROW_CALL(0, "host", "NAME[=COMMAND]", take_host,
                 "ask this host: COMMAND prints its facts (default: `ssh NAME banyan discover --local "
                 "--name NAME`); may be repeated")},
    {BY_ROW_CALL(0, "to", "NAME=ADDR", take_switch, "ask this switch; may be repeated")},
    {BY_ROW_CALL(0, "sockets", "DIR", take_sockets, "ask every switch that has a socket in this folder")},
    BY_SESSION_ROWS(collect.access),
    {BY_ROW_NUMBER(0, "timeout", "S", AT(collect.access.timeout_ms), 1, 3600,
                   "wait S seconds for an answer of a switch, %r (default 5)"),
     .scale = 1000},
    {BY_ROW_TEXT('o', "output", "FILE", AT(output), "write the topology to FILE (default: standard output)")},
    {BY_ROW_TEXT(0, "site-output", "FILE", AT(site), "write the site file to FILE")},
    {BY_ROW_TEXT(0, "save", "DIR", AT(save), "write the facts of each node to DIR/NAME.json")},
    {BY_ROW_TEXT(0, "name", "NAME", AT(name),
                 "set the name of the topology (default site); with --local that of this node (default: the "
                 "host's name)")},
    {BY_ROW_CALL(0, "rate", "RATE", take_rate, "set the rate of cables whose speed no end reports, in Gb/s")},
    {BY_ROW_TEXT(0, "without", "LIST", AT(options.without),
                 "leave out these nodes: names with commas between")},
    {BY_ROW_FLAG('v', "verbose", AT(verbose), "print advice, too")},
    {BY_ROW_HEADING("This machine:")},
    {BY_ROW_FLAG(0, "local", AT(local), "print the facts of this machine instead")},
    {BY_ROW_TEXT(0, "iface", "LIST", AT(ifaces),
                 "report these interfaces only: names or patterns with commas between")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan discover",
    .usage = "banyan discover [options] [FACTS...]\n       banyan discover --local [options]",
    .about =
        "Asks hosts and switches for their interfaces, lets all announce themselves by LLDP, and writes a "
        "topology and a site file of the cables that are found. FACTS are files with the output of "
        "`banyan discover --local` of further machines.",
    .epilog = "Exit status: 0 without trouble, 1 if facts do not fit together, 2 after bad usage or without "
              "cables, 3 if a node could not be asked.",
    .rows = rows,
    .most = 65536,
    .operand = take_facts};

static int print_local(const struct discover_arguments *arguments)
{
    char name[BY_NAME_MAX + 1];
    const struct by_local_options options = {.node = arguments->name != NULL ? arguments->name
                                                                             : by_cli_node_name(name),
                                             .ifaces = arguments->ifaces,
                                             .listen_ms = arguments->seconds * 1000};
    struct by_facts_list list = {0};
    struct by_problem problem = {0};
    int error;

    by_facts_copy_name(name, options.node);
    if (strcmp(name, options.node) != 0 || name[0] == 0 || strchr(name, '/') != NULL)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "--name %.100s: a node's name has 1 to %u characters, without blanks, quotes and '/'",
            options.node, BY_NAME_MAX);
    error = by_local_read(&list, &options, &problem);
    if (error != BY_ENOENT)
        by_facts_write(&list.nodes[0], stdout);
    by_facts_list_free(&list);
    if (error == 0)
        return BY_EXIT_DONE;
    return by_cli_fail(error == BY_ENOENT ? BY_EXIT_USAGE : BY_EXIT_ENVIRONMENT, "%s", problem.text);
}

/* Writes DIR/NAME.json for each node. */
static int save(const struct discover_arguments *arguments)
{
    char path[4400];
    int status = 0;

    if (mkdir(arguments->save, 0777) != 0 && errno != EEXIST)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "--save %s: %s", arguments->save, strerror(errno));
    for (uint32_t i = 0; i < arguments->facts.count && status == 0; i++) {
        struct by_output output;

        snprintf(path, sizeof(path), "%.4000s/%.47s.json", arguments->save, arguments->facts.nodes[i].node);
        if (!by_cli_create(&output, path))
            return BY_EXIT_ENVIRONMENT;
        by_facts_write(&arguments->facts.nodes[i], output.stream);
        status = by_cli_finish(&output, true);
    }
    return status;
}

static void print_cables(const struct by_discovery *discovery, const struct by_cables *cables)
{
    const struct by_topology *topology = discovery->topology;
    uint32_t hosts = by_topology_compute_count(topology);

    for (uint32_t i = 0; i < discovery->link_count; i++) {
        const struct by_cable *link = &discovery->links[i];
        char ends[2][2 * BY_NAME_MAX + 2];

        for (unsigned s = 0; s < 2; s++)
            snprintf(ends[s], sizeof(ends[s]), "%s %s", by_cables_name(cables, link->ends[s].node),
                     link->ends[s].port);
        printf("%-24s  %-24s  %8u Mb/s  mtu %u\n", ends[0], ends[1], by_cable_speed(cables, link),
               by_cable_mtu(cables, link));
    }
    printf("# %u host%s, %u switch%s, %u link%s\n", hosts, by_plural(hosts), topology->node_count - hosts,
           topology->node_count - hosts == 1 ? "" : "es", discovery->link_count,
           by_plural(discovery->link_count));
}

static int write_files(const struct discover_arguments *arguments, const struct by_discovery *discovery,
                       const struct by_cables *cables)
{
    struct by_output output;
    int status;

    if (!by_cli_create(&output, arguments->output != NULL ? arguments->output : "-"))
        return BY_EXIT_ENVIRONMENT;
    status = by_cli_finish(&output, by_topology_write(discovery->topology, output.stream) == 0);
    if (status == 0 && arguments->site != NULL) {
        if (!by_cli_create(&output, arguments->site))
            return BY_EXIT_ENVIRONMENT;
        by_discovery_write_site(discovery, cables, output.stream);
        status = by_cli_finish(&output, true);
    }
    if (status == 0 && arguments->output != NULL && strcmp(arguments->output, "-") != 0)
        print_cables(discovery, cables);
    return status;
}

static void print_findings(const struct by_report *report, bool verbose)
{
    for (uint32_t i = 0; i < report->count; i++) {
        const struct by_finding *finding = &report->findings[i];

        if (finding->grade == BY_GRADE_OK || (finding->grade == BY_GRADE_ADVICE && !verbose))
            continue;
        fprintf(stderr, "banyan: %s: %s\n", finding->subject, finding->text);
        if (finding->remedy[0] != 0)
            fprintf(stderr, "        -> %s\n", finding->remedy);
    }
}

/* Asks all nodes, joins what they report, and writes the files. */
static int discover(struct discover_arguments *arguments)
{
    struct by_report report = {0};
    struct by_problem problem = {0};
    struct by_cables cables;
    struct by_discovery discovery = {0};
    int status = 0;

    arguments->options.name = arguments->name != NULL ? arguments->name : "site";
    arguments->collect.listen_ms = arguments->seconds * 1000;
    arguments->collect.command_ms = arguments->seconds * 1000 + COMMAND_MS;
    by_collect_run(&arguments->collect, &arguments->facts, &report);
    if (arguments->save != NULL)
        status = save(arguments);
    by_cables_find(&cables, &arguments->facts, &report);
    if (status == 0 && by_discovery_make(&discovery, &cables, &arguments->options, &report, &problem) != 0)
        status = by_cli_fail(BY_EXIT_USAGE, "%s", problem.text);
    else if (status == 0)
        status = write_files(arguments, &discovery, &cables);
    print_findings(&report, arguments->verbose);
    if (status == 0 && by_report_count(&report, BY_GRADE_TROUBLE) > 0)
        status = BY_EXIT_NO;
    else if (status == 0 && by_report_count(&report, BY_GRADE_UNSEEN) > 0)
        status = BY_EXIT_ENVIRONMENT;
    by_discovery_free(&discovery);
    by_cables_free(&cables);
    by_report_free(&report);
    return status;
}

int by_command_discover(int argc, char **argv)
{
    struct discover_arguments arguments = {
        .collect = {.access = {.timeout_ms = 5000}}, .options = {.rate = {0, 1}}, .seconds = SECONDS};
    int status = by_options_read(&command_line, &arguments, &argc, argv);

    by_session_access_complete(&arguments.collect.access);
    if (status < 0 && arguments.local)
        status = print_local(&arguments);
    else if (status < 0 && arguments.collect.target_count + arguments.facts.count == 0)
        status =
            by_cli_fail(BY_EXIT_USAGE, "no node: name hosts with --host, switches with --to or --sockets, "
                                       "or files with facts; --local prints this machine's");
    else if (status < 0)
        status = discover(&arguments);
    by_facts_list_free(&arguments.facts);
    by_collect_free(&arguments.collect);
    return status;
}
