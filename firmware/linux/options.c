/* The command line of banyan-switchd: its table of options, and checks that need no environment.
 * Start-up only; main thread. */
#include "firmware/linux/options.h"

#include <string.h>

#include "dataplane/interface.h"
#include "dataplane/say.h"
#include "offload/base/limits.h"
#include "offload/linux/options.h"
#include "offload/wire/stripe.h"

/* How long the loop may hang (s): longer than any commit takes, and short enough for waiting
 * users. */
#define WATCHDOG_S 10u

static int add_port(void *object, unsigned kind, const char *text, struct by_option_why *why)
{
    struct by_switchd_options *options = object;

    if (options->port_count == BY_PORTS_MAX)
        return by_option_refuse(why, "a switch has at most %u ports", BY_PORTS_MAX);
    if (strlen(text) == 0 || (kind == BY_PORT_IFACE && strlen(text) > BY_NAME_MAX))
        return by_option_refuse(why, "a port needs a name of 1 to %u characters", BY_NAME_MAX);
    options->ports[options->port_count++] = (struct by_port_spec){.kind = (uint8_t)kind, .text = text};
    return 0;
}

static int add_iface(void *object, const char *text, struct by_option_why *why)
{
    return add_port(object, BY_PORT_IFACE, text, why);
}

static int add_vdev(void *object, const char *text, struct by_option_why *why)
{
    return add_port(object, BY_PORT_VDEV, text, why);
}

static int add_pci(void *object, const char *text, struct by_option_why *why)
{
    return add_port(object, BY_PORT_PCI, text, why);
}

static int add_shm(void *object, const char *text, struct by_option_why *why)
{
    return add_port(object, BY_PORT_SHM, text, why);
}

static int check_control(void *object, const char *text, struct by_option_why *why)
{
    (void)object;
    return strncmp(text, "unix:", 5) == 0 || strncmp(text, "tcp:", 4) == 0 || strncmp(text, "tls:", 4) == 0
               ? 0
               : by_option_refuse(why, "it must be unix:PATH, tls:ADDRESS:PORT or tcp:ADDRESS:PORT");
}

static int check_watchdog(void *object, const char *text, struct by_option_why *why)
{
    (void)text;
    return ((struct by_switchd_options *)object)->watchdog_s != 1
               ? 0
               : by_option_refuse(why,
                                  "it must be 0 or at least 2, because an idle loop sleeps for a second");
}

#define X(name, text) [BY_DRIVER_##name] = (text),
static const char *const drivers[] = {BY_DRIVER_LIST(X)};
#undef X
#define DRIVERS (sizeof(drivers) / sizeof(drivers[0]))

#define AT(member) BY_OPTION_AT(struct by_switchd_options, member)

static const struct by_option rows[] = {
    {BY_ROW_HEADING("Ports, numbered in the order given:")},
    {BY_ROW_CALL(0, "iface", "IF", add_iface, "a kernel interface, through a virtual device")},
    {BY_ROW_CALL(0, "vdev", "SPEC", add_vdev, "a DPDK virtual device, such as net_vhost0,iface=/tmp/v0")},
    {BY_ROW_CALL(0, "pci", "ADDRESS", add_pci, "a NIC bound to a DPDK driver, such as 0000:01:00.0")},
    {BY_ROW_CALL(0, "shm", "PATH", add_shm,
                 "a Unix socket, at which hosts of this machine share memory with the switch")},
    {BY_ROW_HEADING("Control channel:")},
    {BY_ROW_TEXT(
         0, "control", "ADDRESS", AT(control),
         "listen at unix:PATH, tls:ADDRESS:PORT or tcp:ADDRESS:PORT (loopback only); may be repeated"),
     .count = AT(control_count), .call = check_control},
    {BY_ROW_TEXT(0, "keys", "DIR", AT(keys), "read the keys for tls: from DIR, made by `banyan keys`")},
    {BY_ROW_HEADING("Options:")},
    {BY_ROW_TEXT(0, "name", "NAME", AT(name), "name the switch NAME, in messages and in Hello")},
    {BY_ROW_TEXT(0, "table", "FILE", AT(table), "load this table image at start")},
    {BY_ROW_TEXT(0, "state", "DIR", AT(state),
                 "keep committed tables in DIR, and offer the last one after a restart")},
    {BY_ROW_TEXT(0, "board", "NAME|FILE", AT(board),
                 "use the limits and defaults of x86-dpdk, lab-veth or a board.json")},
    {BY_ROW_CHOICE(0, "driver", "DRIVER", AT(driver), 1, DRIVERS - 1,
                   "the driver of --iface: %l (default: the board's, else auto)"),
     .words = drivers},
    {BY_ROW_NUMBER(0, "slots", "N", AT(slots), 1, 1u << 24,
                   "give all entries together N slots, %r (default: the board's)")},
    {BY_ROW_NUMBER(0, "payload-max", "N", AT(payload_max), 8, BY_PAYLOAD_MAX,
                   "limit chunks to N bytes, %r (default: the most that all ports can carry)")},
    {BY_ROW_CHANCE(0, "loss", "P", AT(fault.loss),
                   "inject faults at receive: lose packets with probability P")},
    {BY_ROW_CHANCE(0, "dup", "P", AT(fault.duplicate), "duplicate packets with probability P")},
    {BY_ROW_CHANCE(0, "reorder", "P", AT(fault.reorder), "reorder packets with probability P")},
    {BY_ROW_NUMBER(0, "seed", "N", AT(fault.prng.state), 0, UINT64_MAX, "seed these faults with N")},
    {BY_ROW_TEXT(0, "cores", "N|LIST", AT(cores),
                 "move packets on N cores, or on those of a list such as 2-5,8 (default: the cores that the "
                 "process may use, less one)")},
    {BY_ROW_NUMBER(0, "workers", "N", AT(workers), 1, BY_WORKERS_MAX,
                   "run N workers, %r, which share the cores (default: one for each core)")},
    {BY_ROW_FLAG(0, "one-queue", AT(one_queue),
                 "use one queue of each port in each direction, also with several workers")},
    {BY_ROW_FLAG(0, "no-huge", AT(no_huge), "use no hugepages")},
    {BY_ROW_NUMBER(0, "watchdog", "SECONDS", AT(watchdog_s), 0, 3600,
                   "end when the loop has not run for SECONDS seconds (default 10; 0: never; at most 3600)"),
     .call = check_watchdog},
    {0}};

static const struct by_options command_line = {
    .program = "banyan-switchd",
    .usage = "banyan-switchd --name NAME PORT... --control ADDRESS [options] [-- EAL arguments]",
    .about = "A switch that multicasts and sums the packets of collectives in flight.",
    .epilog =
        "Exit status: 0 after SIGTERM or SIGINT, 2 after bad usage or if a port does not exist, 3 after a "
        "failure of the environment.",
    .version = "banyan-switchd " BY_VERSION,
    .rows = rows,
    .rest = true};

/* What must be there, and names that become file names. */
static int check(const struct by_switchd_options *options)
{
    bool unfit = false;

    if (!options->name) {
        by_say("--name is missing: a switch needs a name; try --help");
        return 2;
    }
    for (const char *c = options->name; *c && !unfit; c++)
        unfit = (unsigned char)*c <= ' ' || *c == 0x7f || *c == '/';
    if (strlen(options->name) == 0 || strlen(options->name) > BY_NAME_MAX || unfit) {
        by_say("--name '%s': a name has 1 to %u characters without '/', blanks or control characters",
               options->name, BY_NAME_MAX);
        return 2;
    }
    if (options->port_count == 0) {
        by_say("no port: give --iface, --vdev, --pci or --shm at least once");
        return 2;
    }
    if (options->control_count == 0 && !options->table) {
        by_say("neither --control nor --table: no table could be loaded; give one of them");
        return 2;
    }
    for (unsigned i = 0; i < options->control_count; i++)
        if (strncmp(options->control[i], "tls:", 4) == 0 && !options->keys) {
            by_say("--control %s: TLS requires --keys DIR; `banyan keys` makes keys", options->control[i]);
            return 2;
        }
    return -1;
}

int by_switchd_options_parse(struct by_switchd_options *options, int argc, char **argv)
{
    int status;

    *options = (struct by_switchd_options){.watchdog_s = WATCHDOG_S};
    status = by_options_read(&command_line, options, &argc, argv);
    if (status >= 0)
        return status;
    options->eal = argv + 1;
    options->eal_count = (unsigned)argc - 1;
    return check(options);
}
