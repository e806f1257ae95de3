/* The command line of banyan-switchd: getopt_long, then checks that need no environment. Start-up
 * only; main thread. */
#include "firmware/linux/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/say.h"
#include "offload/base/limits.h"

/* How long the loop may hang (s): longer than any commit takes, and short enough for waiting
 * users. */
#define WATCHDOG_S 10u

enum {
    OPT_NAME = 256,
    OPT_IFACE,
    OPT_VDEV,
    OPT_PCI,
    OPT_SHM,
    OPT_DRIVER,
    OPT_CONTROL,
    OPT_KEYS,
    OPT_TABLE,
    OPT_STATE,
    OPT_BOARD,
    OPT_SLOTS,
    OPT_PAYLOAD_MAX,
    OPT_LOSS,
    OPT_DUP,
    OPT_REORDER,
    OPT_SEED,
    OPT_WATCHDOG,
    OPT_NO_HUGE,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {{"name", required_argument, NULL, OPT_NAME},
                                             {"iface", required_argument, NULL, OPT_IFACE},
                                             {"vdev", required_argument, NULL, OPT_VDEV},
                                             {"pci", required_argument, NULL, OPT_PCI},
                                             {"shm", required_argument, NULL, OPT_SHM},
                                             {"driver", required_argument, NULL, OPT_DRIVER},
                                             {"control", required_argument, NULL, OPT_CONTROL},
                                             {"keys", required_argument, NULL, OPT_KEYS},
                                             {"table", required_argument, NULL, OPT_TABLE},
                                             {"state", required_argument, NULL, OPT_STATE},
                                             {"board", required_argument, NULL, OPT_BOARD},
                                             {"slots", required_argument, NULL, OPT_SLOTS},
                                             {"payload-max", required_argument, NULL, OPT_PAYLOAD_MAX},
                                             {"loss", required_argument, NULL, OPT_LOSS},
                                             {"dup", required_argument, NULL, OPT_DUP},
                                             {"reorder", required_argument, NULL, OPT_REORDER},
                                             {"seed", required_argument, NULL, OPT_SEED},
                                             {"watchdog", required_argument, NULL, OPT_WATCHDOG},
                                             {"no-huge", no_argument, NULL, OPT_NO_HUGE},
                                             {"help", no_argument, NULL, OPT_HELP},
                                             {"version", no_argument, NULL, OPT_VERSION},
                                             {0}};

static const char usage[] =
    "usage: banyan-switchd --name NAME PORT... --control ADDRESS [options] [-- EAL arguments]\n"
    "\n"
    "A switch that multicasts and sums the packets of collectives in flight. Ports are numbered in the order "
    "given:\n"
    "  --iface IF            a kernel interface, through a virtual device\n"
    "  --vdev SPEC           a DPDK virtual device, such as net_vhost0,iface=/tmp/v0\n"
    "  --pci ADDRESS         a NIC bound to a DPDK driver, such as 0000:01:00.0\n"
    "  --shm PATH            a Unix socket, at which hosts of this machine share memory with the switch\n"
    "Control channel (may be repeated):\n"
    "  --control unix:PATH | tls:ADDRESS:PORT | tcp:ADDRESS:PORT (loopback alone)\n"
    "  --keys DIR            keys for tls:, as `banyan keys` makes them\n"
    "Options:\n"
    "  --name NAME           of this switch, in messages and in Hello\n"
    "  --table FILE          load this table image at start\n"
    "  --state DIR           keep committed tables there, and offer the last one after a restart\n"
    "  --board NAME|FILE     limits and defaults: x86-dpdk, lab-veth or a board.json\n"
    "  --driver DRIVER       for --iface: auto, ring, af_packet, af_xdp, xdp or gso (default: the board's, "
    "else "
    "auto)\n"
    "  --slots N             slots of all entries together\n"
    "  --payload-max N       bytes of a chunk (default: what all ports can carry)\n"
    "  --loss P --dup P --reorder P --seed N\n"
    "                        inject faults at receive: probabilities 0 to 1\n"
    "  --no-huge             use no hugepages\n"
    "  --watchdog SECONDS    end when the loop stands still so long (default 10; 0: never)\n"
    "  --help, --version\n"
    "Exit status: 0 after SIGTERM or SIGINT, 2 bad usage or a port that does not exist, 3 the environment.\n";

/* Parses a probability in decimal notation as parts of 2^32, exactly rounded down; returns false
 * when it is not in [0, 1]. */
static bool parse_probability(const char *text, uint32_t *parts)
{
    uint64_t digits = 0, scale = 1;
    bool point = false, any = false;

    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)*text))
            return false;
        any = true;
        if (scale >= 1000000000u)
            continue; /* digits below 10^-9 change nothing */
        digits = digits * 10 + (uint64_t)(*text - '0');
        if (point)
            scale *= 10;
        if (digits > scale)
            return false;
    }
    if (!any)
        return false;
    *parts = digits == scale ? UINT32_MAX : (uint32_t)((digits << 32) / scale);
    return true;
}

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 0);
    return isdigit((unsigned char)text[0]) && *end == 0 && errno == 0 && *number >= least && *number <= most;
}

static int add_port(struct by_switchd_options *options, unsigned kind, const char *text)
{
    if (options->port_count == BY_PORTS_MAX) {
        by_say("more than %u ports", BY_PORTS_MAX);
        return 2;
    }
    if (strlen(text) == 0 || (kind == BY_PORT_IFACE && strlen(text) > BY_NAME_MAX)) {
        by_say("a port needs a name of 1 to %u characters, got '%s'", BY_NAME_MAX, text);
        return 2;
    }
    options->ports[options->port_count++] = (struct by_port_spec){.kind = (uint8_t)kind, .text = text};
    return -1;
}

static int add_control(struct by_switchd_options *options, const char *text)
{
    if (strncmp(text, "unix:", 5) != 0 && strncmp(text, "tcp:", 4) != 0 && strncmp(text, "tls:", 4) != 0) {
        by_say("--control %s: it is unix:PATH, tls:ADDRESS:PORT or tcp:ADDRESS:PORT", text);
        return 2;
    }
    if (options->control_count == BY_LISTENERS_MAX) {
        by_say("more than %u control addresses", BY_LISTENERS_MAX);
        return 2;
    }
    options->control[options->control_count++] = text;
    return -1;
}

static int set_probability(const char *option, const char *text, uint32_t *parts)
{
    if (parse_probability(text, parts))
        return -1;
    by_say("--%s %s: a probability is a decimal number from 0 to 1", option, text);
    return 2;
}

static int set_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    if (parse_number(text, least, most, number))
        return -1;
    by_say("--%s %s: a number from %llu to %llu", option, text, (unsigned long long)least,
           (unsigned long long)most);
    return 2;
}

/* Handles one option; returns -1 to continue, else the exit status. */
static int take(struct by_switchd_options *options, int code, const char *value)
{
    uint64_t number = 0;
    int status;

    switch (code) {
    case OPT_NAME:
        options->name = value;
        return -1;
    case OPT_IFACE:
        return add_port(options, BY_PORT_IFACE, value);
    case OPT_VDEV:
        return add_port(options, BY_PORT_VDEV, value);
    case OPT_PCI:
        return add_port(options, BY_PORT_PCI, value);
    case OPT_SHM:
        return add_port(options, BY_PORT_SHM, value);
    case OPT_DRIVER:
        options->driver = by_driver_named("--driver", value);
        return options->driver == BY_DRIVER_NONE ? 2 : -1;
    case OPT_CONTROL:
        return add_control(options, value);
    case OPT_KEYS:
        options->keys = value;
        return -1;
    case OPT_TABLE:
        options->table = value;
        return -1;
    case OPT_STATE:
        options->state = value;
        return -1;
    case OPT_BOARD:
        options->board = value;
        return -1;
    case OPT_SLOTS:
        status = set_number("slots", value, 1, 1u << 24, &number);
        options->slots = (uint32_t)number;
        return status;
    case OPT_PAYLOAD_MAX:
        status = set_number("payload-max", value, 8, BY_PAYLOAD_MAX, &number);
        options->payload_max = (uint32_t)number;
        return status;
    case OPT_LOSS:
        return set_probability("loss", value, &options->fault.loss);
    case OPT_DUP:
        return set_probability("dup", value, &options->fault.duplicate);
    case OPT_REORDER:
        return set_probability("reorder", value, &options->fault.reorder);
    case OPT_SEED:
        return set_number("seed", value, 0, UINT64_MAX, &options->fault.prng.state);
    case OPT_WATCHDOG:
        status = set_number("watchdog", value, 0, 3600, &number);
        options->watchdog_s = (uint32_t)number;
        if (status < 0 && number == 1) {
            by_say("--watchdog 1: an idle loop sleeps for a second: give it at least 2");
            status = 2;
        }
        return status;
    case OPT_NO_HUGE:
        options->no_huge = true;
        return -1;
    case OPT_HELP:
        fputs(usage, stdout);
        return 0;
    case OPT_VERSION:
        puts("banyan-switchd " BY_VERSION);
        return 0;
    default:
        fputs("banyan-switchd: try --help\n", stderr);
        return 2;
    }
}

/* Checks for required options, and checks names that become file names. */
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
        by_say("--name '%s': 1 to %u characters without '/', blanks or control characters", options->name,
               BY_NAME_MAX);
        return 2;
    }
    if (options->port_count == 0) {
        by_say("no port: give --iface, --vdev, --pci or --shm at least once");
        return 2;
    }
    if (options->control_count == 0 && !options->table) {
        by_say("neither --control nor --table: nothing could ever load a table");
        return 2;
    }
    for (unsigned i = 0; i < options->control_count; i++)
        if (strncmp(options->control[i], "tls:", 4) == 0 && !options->keys) {
            by_say("--control %s: TLS needs --keys DIR; `banyan keys` makes them", options->control[i]);
            return 2;
        }
    return -1;
}

int by_switchd_options_parse(struct by_switchd_options *options, int argc, char **argv)
{
    int code, status;

    *options = (struct by_switchd_options){.watchdog_s = WATCHDOG_S};
    while ((code = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
        status = take(options, code, optarg);
        if (status >= 0)
            return status;
    }
    if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
        by_say("'%s' is not an option; EAL arguments follow --", argv[optind]);
        return 2;
    }
    options->eal = argv + optind;
    options->eal_count = (unsigned)(argc - optind);
    return check(options);
}
