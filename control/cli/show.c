/*
 * The commands `banyan show` and `banyan diff`: print a table from a switch or a file, and the
 * difference of two tables. Neighbours: control/service/controller reads tables, control/tables
 * prints them. Single-threaded.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/target.h"
#include "control/service/controller/counters.h"
#include "control/service/controller/session.h"
#include "control/service/controller/target.h"
#include "control/tables/address.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "offload/base/errors.h"

struct show_arguments {
    bool counters, ports, waiting, log, json;
    const char *output, *site;
    struct by_session_options access;
};

/* A table and, if it is a switch's, the session with that switch. */
struct table {
    struct by_session *session;
    by_HelloReply hello;
    uint8_t *image;
    size_t bytes;
};

#define AT(member) BY_OPTION_AT(struct show_arguments, member)
#define TIMEOUT_ROW                                                                                          \
    {                                                                                                        \
        BY_ROW_NUMBER(0, "timeout", "S", AT(access.timeout_ms), 1, 3600,                                     \
                      "wait S seconds for an answer of a switch, %r (default 10)"),                          \
            .scale = 1000                                                                                    \
    }

static const struct by_option show_rows[] = {
    {BY_ROW_FLAG(0, "counters", AT(counters), "print the switch's counters and ports as well")},
    {BY_ROW_FLAG(0, "ports", AT(ports),
                 "print how each port moves packets: driver, queues, MTU, offloads, link")},
    {BY_ROW_FLAG(0, "waiting", AT(waiting),
                 "print the children for which the oldest incomplete chunks wait")},
    {BY_ROW_FLAG(0, "log", AT(log), "print the switch's log of events")},
    {BY_ROW_TEXT('o', "output", "FILE", AT(output), "save the image that was read")},
    {BY_ROW_TEXT(0, "site", "FILE", AT(site),
                 "ADDR is the name of a switch, whose control address this file states, see banyan-site(5)")},
    BY_SESSION_ROWS(access),
    TIMEOUT_ROW,
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_option diff_rows[] = {
    BY_SESSION_ROWS(access), TIMEOUT_ROW, {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")}, {0}};

static const struct by_options show_line = {
    .program = "banyan show",
    .usage = "banyan show ADDR|FILE [options]\n"
             "banyan show NAME --site FILE [options]",
    .about =
        "Prints a table: of the switch at ADDR (unix:PATH, tcp:HOST:PORT, ...), read back from it, or of a "
        "FILE.",
    .rows = show_rows,
    .least = 1,
    .most = 1,
    .operands = "the address of one switch, or a file"};

static const struct by_options diff_line = {
    .program = "banyan diff",
    .usage = "banyan diff A B [options]",
    .about = "Compares two tables, each of a switch (unix:PATH, tcp:HOST:PORT) or a file: `- ` is only in A, "
             "`+ ` only in B. Exit status 0 when they are the same, 1 when they differ.",
    .rows = diff_rows,
    .least = 2,
    .most = 2,
    .operands = "two switches or files"};

static int parse(const struct by_options *line, int argc, char **argv, struct show_arguments *arguments)
{
    int status = by_options_read(line, arguments, &argc, argv);

    by_session_access_complete(&arguments->access);
    return status;
}

/*
 * Reads a table from a switch or a file. A switch without a table is no error here: image stays
 * NULL.
 */
static int open_table(const char *from, const struct by_session_options *access, struct table *table)
{
    struct by_problem problem = {0};
    int error;

    if (!by_session_is_address(from)) {
        if (by_image_file_read(from, &table->image, &table->bytes, &problem) != 0)
            return by_cli_refuse(from, &problem);
        return 0;
    }
    error = by_target_check(from, &problem);
    if (error == 0)
        error = by_session_open(from, access, &table->session, &problem);
    if (error == 0)
        error = by_session_hello(table->session, &table->hello, &problem);
    if (error == 0 && table->hello.table_bytes > 0) {
        error = by_session_read(table->session, &table->image, &table->bytes, &problem);
        if (error == 0)
            error = by_image_explain(table->image, table->bytes, &problem);
    }
    if (error != 0)
        return by_cli_fail(error == BY_EINVAL ? BY_EXIT_USAGE : BY_EXIT_ENVIRONMENT, "%s", problem.text);
    return 0;
}

static void close_table(struct table *table)
{
    by_session_close(table->session);
    free(table->image);
}

/* Prints "share job 1 (0.25): ...". The first row is for all jobs without a share. */
static void show_shares(const by_CountersReply *reply)
{
    for (pb_size_t i = 0; i < reply->shares_count; i++) {
        const by_ShareCounters *share = &reply->shares[i];
        char name[48] = "without";

        if (share->job != 0)
            snprintf(name, sizeof(name), "job %u (%g)", (unsigned)share->job,
                     (double)share->share / BY_SHARE_ONE);
        printf("  share %s: in %" PRIu64 " bytes, out %" PRIu64 " bytes, held back %" PRIu64
               " packets, dropped %" PRIu64 "\n",
               name, (uint64_t)share->rx_bytes, (uint64_t)share->tx_bytes, (uint64_t)share->held,
               (uint64_t)share->dropped);
    }
}

static json_t *counters_json(const uint8_t *image, const by_CountersReply *reply)
{
    json_t *ports = json_array();

    for (pb_size_t i = 0; i < reply->ports_count; i++) {
        const by_PortCounters *port = &reply->ports[i];
        char ip[BY_ADDRESS_TEXT];

        json_array_append_new(
            ports,
            json_pack("{s:s, s:b, s:s*, s:I, s:I, s:I, s:I, s:I, s:I}", "name", port->name, "down",
                      (int)port->down, "silent", port->silent ? by_dump_ip(image, port->silent, ip) : NULL,
                      "rx_packets", (json_int_t)port->rx_packets, "rx_bytes", (json_int_t)port->rx_bytes,
                      "tx_packets", (json_int_t)port->tx_packets, "tx_bytes", (json_int_t)port->tx_bytes,
                      "rx_dropped", (json_int_t)port->rx_dropped, "tx_dropped",
                      (json_int_t)port->tx_dropped));
    }
    return json_pack("{s:o, s:o, s:o}", "engine", by_counters_engine_json(reply), "ports", ports, "shares",
                     by_counters_shares_json(reply));
}

static int show_counters(struct table *table, json_t *object)
{
    by_CountersReply *reply = calloc(1, sizeof(*reply));
    struct by_problem problem = {0};
    int error = reply ? by_session_counters(table->session, reply, &problem) : BY_ENOMEM;

    if (error != 0) {
        free(reply);
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text);
    }
    if (object != NULL) {
        json_object_set_new(object, "counters", counters_json(table->image, reply));
        free(reply);
        return 0;
    }
    for (pb_size_t i = 0; i < reply->engine_count; i++)
        if (reply->engine[i].value != 0)
            printf("  counter %s: %" PRIu64 "\n", reply->engine[i].name, (uint64_t)reply->engine[i].value);
    for (pb_size_t i = 0; i < reply->ports_count; i++) {
        const by_PortCounters *port = &reply->ports[i];
        char ip[BY_ADDRESS_TEXT];

        printf("  traffic %s: in %" PRIu64 " packets %" PRIu64 " bytes, out %" PRIu64 " packets %" PRIu64
               " bytes, dropped %" PRIu64 " in %" PRIu64 " out%s%s%s%s%s\n",
               port->name, (uint64_t)port->rx_packets, (uint64_t)port->rx_bytes, (uint64_t)port->tx_packets,
               (uint64_t)port->tx_bytes, (uint64_t)port->rx_dropped, (uint64_t)port->tx_dropped,
               port->down ? ", no carrier" : "", port->silent ? ", no answer to " : "",
               port->silent ? by_dump_asks(port->silent) : "", port->silent ? " from " : "",
               port->silent ? by_dump_ip(table->image, port->silent, ip) : "");
    }
    show_shares(reply);
    free(reply);
    return 0;
}

static json_t *port_json(const by_Port *port)
{
    return json_pack("{s:s, s:s, s:b, s:s, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:i, s:I, s:s, s:s}", "name",
                     port->name, "driver", port->driver, "by_reference", (int)port->by_reference, "why",
                     port->why, "late", (int)port->late, "promiscuous", (int)port->promiscuous, "down",
                     (int)port->down, "mtu", (int)port->mtu, "rx_queues", (int)port->rx_queues, "tx_queues",
                     (int)port->tx_queues, "rx_descriptors", (int)port->rx_descriptors, "tx_descriptors",
                     (int)port->tx_descriptors, "mbps", (json_int_t)port->mbps, "offloads", port->offloads,
                     "steer", port->steer);
}

/* Prints a number of queues with the descriptors of each, if known: "1 x 512". */
static void print_queues(const char *direction, uint32_t queues, uint32_t descriptors)
{
    printf(", %s %" PRIu32, direction, queues);
    if (descriptors != 0)
        printf(" x %" PRIu32, descriptors);
}

static void print_port(const by_Port *port)
{
    printf("  port %s: %s, %s, MTU %" PRIu32, port->name, port->driver, port->down ? "link down" : "link up",
           port->mtu);
    if (port->mbps != 0)
        printf(", %" PRIu32 " Mbit/s", port->mbps);
    if (port->rx_queues != 0) {
        print_queues("queues in", port->rx_queues, port->rx_descriptors);
        print_queues("out", port->tx_queues, port->tx_descriptors);
    }
    if (port->steer[0])
        printf(", %s", port->steer);
    printf(", results %s%s%s%s%s%s%s\n", port->by_reference ? "by reference" : "as copies",
           port->why[0] == 0    ? ""
           : port->by_reference ? " "
                                : ": ",
           port->why, port->late ? ", released late (spare buffers)" : "",
           port->offloads[0] ? ", offloads " : "", port->offloads,
           port->rx_queues != 0 && !port->promiscuous ? ", not promiscuous" : "");
}

static int show_ports(struct table *table, json_t *object)
{
    by_PortsReply *reply = calloc(1, sizeof(*reply));
    struct by_problem problem = {0};
    json_t *array = json_array();
    uint32_t from = 0;
    int error = reply ? 0 : BY_ENOMEM;

    do {
        if (error == 0)
            error = by_session_ports(table->session, from, reply, &problem);
        for (pb_size_t i = 0; error == 0 && i < reply->ports_count; i++) {
            if (object == NULL)
                print_port(&reply->ports[i]);
            json_array_append_new(array, port_json(&reply->ports[i]));
        }
        from += error == 0 ? reply->ports_count : 0;
    } while (error == 0 && reply->ports_count > 0 && from < reply->total);
    free(reply);
    if (error == 0 && object != NULL)
        json_object_set(object, "ports", array);
    json_decref(array);
    return error ? by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text) : 0;
}

/* Names the nodes whose bits are set in `missing` in the entry of (job, tree). */
static void missing_text(const struct table *table, const by_WaitingEntry *waiting, char text[512])
{
    struct by_image_header header;
    size_t used = 0;

    by_image_header(table->image, &header);
    text[0] = 0;
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;
        by_image_entry(table->image, i, &entry);
        for (uint32_t bit = 0; entry.job == waiting->job && entry.tree == waiting->tree &&
                               bit < entry.child_count && bit < BY_CHILDREN_MAX;
             bit++) {
            struct by_image_child child;
            by_image_child(table->image, entry.first_child + bit, &child);
            if ((waiting->missing >> bit & 1) && used < 480)
                used += (size_t)snprintf(text + used, 512 - used, "%snode %u", used ? ", " : "", child.node);
        }
    }
}

static int show_waiting(struct table *table, json_t *object)
{
    by_WaitingReply *reply = calloc(1, sizeof(*reply));
    struct by_problem problem = {0};
    json_t *array = json_array();
    char text[512];
    int error = reply ? by_session_waiting(table->session, reply, &problem) : BY_ENOMEM;

    for (pb_size_t i = 0; error == 0 && i < reply->entries_count && table->image != NULL; i++) {
        const by_WaitingEntry *entry = &reply->entries[i];
        missing_text(table, entry, text);
        if (object == NULL)
            printf("  waiting job %u tree %u chunk %u: for %s\n", (unsigned)entry->job, (unsigned)entry->tree,
                   (unsigned)entry->seq, text[0] ? text : "its parent");
        json_array_append_new(array, json_pack("{s:i, s:i, s:I, s:i, s:s}", "job", (int)entry->job, "tree",
                                               (int)entry->tree, "seq", (json_int_t)entry->seq, "state",
                                               (int)entry->state, "missing", text));
    }
    free(reply);
    if (error == 0 && object != NULL)
        json_object_set(object, "waiting", array);
    json_decref(array);
    return error ? by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text) : 0;
}

/* Prints one event: its time by the local clock, its kind, and how often it repeated. */
static void show_event(const by_LogReply *reply, const by_LogEvent *event, json_t *array)
{
    struct timespec now;
    struct tm local;
    uint64_t unix_ns;
    time_t second;
    char when[32], often[32] = "";

    clock_gettime(CLOCK_REALTIME, &now);
    unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (reply->now_ns - event->time_ns);
    second = (time_t)(unix_ns / 1000000000u);
    if (localtime_r(&second, &local) == NULL || strftime(when, sizeof(when), "%F %T", &local) == 0)
        when[0] = 0;
    if (event->times > 1)
        snprintf(often, sizeof(often), " (%u times)", (unsigned)event->times);
    if (array == NULL)
        printf("  log %s.%03u %s%s\n", when, (unsigned)(unix_ns / 1000000u % 1000u), event->text, often);
    else
        json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:s}", "number", (json_int_t)event->number,
                                               "unix_ns", (json_int_t)unix_ns, "times",
                                               (json_int_t)event->times, "text", event->text));
}

static int show_log(struct table *table, json_t *object)
{
    by_LogReply *reply = calloc(1, sizeof(*reply));
    struct by_problem problem = {0};
    json_t *array = object ? json_array() : NULL;
    uint64_t from = 0;
    int error = reply ? 0 : BY_ENOMEM;

    while (error == 0) {
        error = by_session_log(table->session, from, reply, &problem);
        for (pb_size_t i = 0; error == 0 && i < reply->events_count; i++)
            show_event(reply, &reply->events[i], array);
        if (error == 0 && reply->events_count == 0)
            break;
        if (error == 0)
            from = reply->events[reply->events_count - 1].number + 1;
    }
    free(reply);
    if (object != NULL)
        json_object_set_new(object, "log", array);
    return error ? by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text) : 0;
}

/* Returns a hash as JSON; null for none. */
static json_t *hash_json(uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return hash ? json_string(text) : json_null();
}

static json_t *switch_json(const by_HelloReply *hello)
{
    return json_pack("{s:s, s:s, s:o, s:i, s:I, s:i, s:I, s:o, s:o}", "name", hello->name, "software",
                     hello->software, "boot_nonce", hash_json(hello->boot_nonce), "port_count",
                     (int)hello->port_count, "slot_count", (json_int_t)hello->slot_count, "payload_max",
                     (int)hello->payload_max, "entry_max", (json_int_t)hello->entry_max, "validated",
                     hash_json(hello->validated_hash), "saved", hash_json(hello->saved_hash));
}

/* Prints the other tables that the switch holds, and the commands that use them. */
static void show_beside(const by_HelloReply *hello)
{
    if (hello->validated_hash != 0)
        printf("  %016" PRIx64 " waits for a push to end: banyan push --settle, if the push was "
               "interrupted\n",
               (uint64_t)hello->validated_hash);
    if (hello->saved_hash != 0)
        printf("  %016" PRIx64 " (cookie %016" PRIx64 ") was active before the switch restarted: banyan push "
               "--saved activates it again\n",
               (uint64_t)hello->saved_hash, (uint64_t)hello->saved_cookie);
}

static int show(struct table *table, const struct show_arguments *arguments)
{
    json_t *object = arguments->json ? json_object() : NULL;
    int status = 0;

    if (table->session != NULL && object != NULL)
        json_object_set_new(object, "switch", switch_json(&table->hello));
    else if (table->session != NULL)
        printf("%s at %s: %s, %u ports, %u slots, payload up to %u\n", table->hello.name,
               by_session_address(table->session), table->hello.software, (unsigned)table->hello.port_count,
               (unsigned)table->hello.slot_count, (unsigned)table->hello.payload_max);
    if (object != NULL)
        json_object_set_new(object, "table",
                            table->image ? by_dump_json(table->image, table->bytes) : json_null());
    else if (table->image != NULL)
        by_dump_text(table->image, table->bytes, stdout);
    else
        printf("  no table is active: push one\n");
    if (object == NULL && table->session != NULL)
        show_beside(&table->hello);
    if (arguments->counters && table->session != NULL)
        status = show_counters(table, object);
    if (status == 0 && arguments->ports && table->session != NULL)
        status = show_ports(table, object);
    if (status == 0 && arguments->waiting && table->session != NULL)
        status = show_waiting(table, object);
    if (status == 0 && arguments->log && table->session != NULL)
        status = show_log(table, object);
    if (status == 0 && object != NULL) {
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(object);
    return status;
}

/* The address of a switch that a site states. */
struct show_site {
    const char *name;
    char *address;
};

static void take_address(void *context, const char *name, size_t length, const char *address)
{
    struct show_site *site = context;

    if (strlen(site->name) == length && strncmp(site->name, name, length) == 0 && site->address == NULL)
        site->address = by_copy_text(address);
}

/* Replaces the name of a switch by its address. */
static int find_address(const struct show_arguments *arguments, struct show_site *site)
{
    int status = by_cli_target_site(arguments->site, true, take_address, site);

    if (status == 0 && site->address == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "--site %s: no switch '%s' with a control channel", arguments->site,
                           site->name);
    return status;
}

int by_command_show(int argc, char **argv)
{
    struct show_arguments arguments = {.access.timeout_ms = 10000};
    struct by_problem problem = {0};
    struct table table = {0};
    int status = parse(&show_line, argc, argv, &arguments);
    struct show_site site = {0};

    if (status >= 0)
        return status;
    site.name = argv[1];
    if (arguments.site != NULL && (status = find_address(&arguments, &site)) != 0)
        return status;
    argv[1] = site.address != NULL ? site.address : argv[1];
    if ((arguments.counters || arguments.ports || arguments.waiting || arguments.log) &&
        !by_session_is_address(argv[1]))
        return by_cli_fail(
            BY_EXIT_USAGE,
            "%s: a file has no --counters, --ports, --waiting or --log: give a switch's address", argv[1]);
    status = open_table(argv[1], &arguments.access, &table);
    if (status == 0 && arguments.output != NULL && table.image != NULL &&
        by_image_file_write(arguments.output, table.image, table.bytes, &problem) != 0) {
        by_cli_refuse(arguments.output, &problem);
        status = BY_EXIT_ENVIRONMENT;
    }
    if (status == 0)
        status = show(&table, &arguments);
    close_table(&table);
    free(site.address);
    return status;
}

int by_command_diff(int argc, char **argv)
{
    struct show_arguments arguments = {.access.timeout_ms = 10000};
    struct table a = {0}, b = {0};
    uint32_t count = 0;
    int status = parse(&diff_line, argc, argv, &arguments);

    if (status >= 0)
        return status;
    status = open_table(argv[1], &arguments.access, &a);
    if (status == 0)
        status = open_table(argv[2], &arguments.access, &b);
    if (status == 0 && (a.image == NULL || b.image == NULL))
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: no table is active: push one",
                             argv[a.image == NULL ? 1 : 2]);
    if (status == 0) {
        count = by_dump_diff(a.image, b.image, arguments.json ? NULL : stdout);
        if (arguments.json)
            printf("{\"same\": %s, \"lines\": %" PRIu32 "}\n", count ? "false" : "true", count);
        status = count ? BY_EXIT_NO : BY_EXIT_DONE;
    }
    close_table(&a);
    close_table(&b);
    return status;
}
