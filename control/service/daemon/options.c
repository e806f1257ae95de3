/* banyand's options. See options.h. */
#include "control/service/daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/service/controller/target.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/renew.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"

enum {
    OPT_TO = 256,
    OPT_SOCKETS,
    OPT_KEYS,
    OPT_PSK,
    OPT_TIMEOUT,
    OPT_HEARTBEAT,
    OPT_JOB,
    OPT_MEMBERS,
    OPT_PLAIN_KEYS,
    OPT_QUIET,
    OPT_TRUST,
    OPT_PLAN_LIMIT,
    OPT_LOSE,
    OPT_MTU,
    OPT_DET,
    OPT_STATE,
    OPT_KEYED,
    OPT_HTTP,
    OPT_HTTP_OPEN,
    OPT_SOCKET,
    OPT_TAKEOVER,
    OPT_RENEW,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {{"to", required_argument, NULL, OPT_TO},
                                             {"sockets", required_argument, NULL, OPT_SOCKETS},
                                             {"keys", required_argument, NULL, OPT_KEYS},
                                             {"psk", required_argument, NULL, OPT_PSK},
                                             {"timeout", required_argument, NULL, OPT_TIMEOUT},
                                             {"heartbeat", required_argument, NULL, OPT_HEARTBEAT},
                                             {"job", required_argument, NULL, OPT_JOB},
                                             {"members", required_argument, NULL, OPT_MEMBERS},
                                             {"plain-keys", no_argument, NULL, OPT_PLAIN_KEYS},
                                             {"quiet", required_argument, NULL, OPT_QUIET},
                                             {"trust", required_argument, NULL, OPT_TRUST},
                                             {"plan-limit", required_argument, NULL, OPT_PLAN_LIMIT},
                                             {"lose", required_argument, NULL, OPT_LOSE},
                                             {"mtu", required_argument, NULL, OPT_MTU},
                                             {"det", no_argument, NULL, OPT_DET},
                                             {"state", required_argument, NULL, OPT_STATE},
                                             {"keyed", optional_argument, NULL, OPT_KEYED},
                                             {"http", required_argument, NULL, OPT_HTTP},
                                             {"http-open", no_argument, NULL, OPT_HTTP_OPEN},
                                             {"socket", required_argument, NULL, OPT_SOCKET},
                                             {"takeover", no_argument, NULL, OPT_TAKEOVER},
                                             {"renew-after", required_argument, NULL, OPT_RENEW},
                                             {"help", no_argument, NULL, OPT_HELP},
                                             {"version", no_argument, NULL, OPT_VERSION},
                                             {0}};

static const char usage[] =
    "usage: banyand TOPOLOGY --to NAME=ADDR... | --sockets DIR [options]\n"
    "\n"
    "The controller of a fabric: plans jobs, loads the switches' tables, watches the switches, and plans "
    "anew\n"
    "when a part of the fabric is lost or comes back.\n"
    "  --to NAME=ADDR        the control address of switch NAME: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT,\n"
    "                        or psk+ and one of the first two; repeat for each switch\n"
    "  --sockets DIR         every switch NAME listens at DIR/NAME.sock\n"
    "  --keys DIR            a controller's keys for tls: (default: BANYAN_KEYS), as `banyan keys` makes "
    "them\n"
    "  --psk FILE            the key for psk+ addresses (default: BANYAN_PSK), as `banyan keys --psk` makes "
    "it\n"
    "  --job N=LIST[:RANKS]  a job to make: collectives with commas between, or all; broadcast@HOST and\n"
    "                        reduce@HOST name a root; the hosts that take part, or @FILE (default: all)\n"
    "  --members ADDR        where hosts of jobs connect: unix:PATH, tls:HOST:PORT or tcp:HOST:PORT; over "
    "tls: "
    "each\n"
    "                        shows its own keys, over the others it is believed\n"
    "  --plain-keys          tables of keyed jobs go over plain tcp: too, where others may read their keys\n"
    "  --quiet MS            a switch or link that came back is used when it has been there for so long,\n"
    "                        100 to 3600000 (default 2000)\n"
    "  --trust MS            one that swallows packets is used again after so long, and after twice as long "
    "each\n"
    "                        time that it swallows them soon again, 100 to 3600000 (default 10000)\n"
    "  --plan-limit S        seconds that one plan may take, 1 to 86400 (default 300)\n"
    "  --lose N              fault injection: of 1000 messages between hosts and here so many are lost\n"
    "  --heartbeat MS        how often each switch is asked, 10 to 1000 (default 100); three without an\n"
    "                        answer mean that it is down\n"
    "  --timeout S           seconds that a switch may take in a push, 1 to 60 (default 2)\n"
    "  --mtu N               of every link (default 1500)\n"
    "  --det                 tables by which switches can sum in mode det\n"
    "  --state DIR           keep jobs and tables there, so that a banyand that starts again goes on with "
    "them\n"
    "  --socket PATH|off     status, metrics and jobs over HTTP at a socket that this user alone may use\n"
    "                        (default: /run/banyan/banyand.socket, of others than root in XDG_RUNTIME_DIR)\n"
    "  --http PORT|off       status and metrics over HTTP on 127.0.0.1 (default 46249; 0: any that is free)\n"
    "  --http-open           there every user of this machine may make and end jobs, too\n"
    "  --keyed[=COVER]       packets carry tags that only their job can make; COVER is header or payload\n"
    "  --renew-after CHUNKS  keyed jobs get other keys when so many chunks have passed a switch, 1 to "
    "4294967295\n"
    "                        (default 2147483648)\n"
    "  --takeover            lead switches that another controller leads now\n"
    "  --help, --version\n"
    "Exit status: 0 after SIGTERM or SIGINT, 2 bad usage or input, 3 the environment, or another "
    "controller.\n";

static int refuse(const char *format, const char *value)
{
    char text[400];

    snprintf(text, sizeof(text), format, value);
    fprintf(stderr, "banyand: %s\n", text);
    return 2;
}

static int take_number(const char *name, const char *text, unsigned long low, unsigned long high,
                       uint32_t *value)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || number < low || number > high) {
        fprintf(stderr, "banyand: --%s %s: a number from %lu to %lu\n", name, text, low, high);
        return 2;
    }
    *value = (uint32_t)number;
    return -1;
}

/* Adds to a list of the command line. */
static int add(const char *option, const char *value, const char **list, uint32_t *count, uint32_t most)
{
    if (*count == most) {
        fprintf(stderr, "banyand: more than %u %s\n", most, option);
        return 2;
    }
    list[(*count)++] = value;
    return -1;
}

/* Keys are made of random bytes, which the store keeps. */
static int take_keyed(struct by_daemon_options *options, const char *cover)
{
    struct by_problem problem = {0};
    int error = by_lower_keyed(&options->lower, cover, NULL, &problem);

    if (error == 0)
        return -1;
    fprintf(stderr, "banyand: --keyed: %s\n", problem.text);
    return error == BY_EIO ? 3 : 2;
}

static int take(struct by_daemon_options *options, int code, const char *value)
{
    struct by_problem problem = {0};
    const char *address;
    uint32_t number = 0;
    int status;

    switch (code) {
    case OPT_TO:
        if (by_target_split(value, &address) == 0)
            return refuse("--to %.100s: " BY_TARGET_FORM, value);
        if (by_target_check(address, &problem) != 0)
            return refuse("--to %.300s", problem.text);
        return add("--to", value, options->to, &options->to_count, BY_OPTIONS_TO_MAX);
    case OPT_SOCKETS:
        options->sockets = value;
        return -1;
    case OPT_KEYS:
        options->access.keys = value;
        return -1;
    case OPT_PSK:
        options->access.psk = value;
        return -1;
    case OPT_TIMEOUT:
        status = take_number("timeout", value, 1, 60, &number);
        options->access.timeout_ms = number * 1000;
        return status;
    case OPT_HEARTBEAT:
        return take_number("heartbeat", value, 10, 1000, &options->heartbeat_ms);
    case OPT_JOB:
        return add("--job", value, options->jobs, &options->job_count, BY_OPTIONS_JOBS_MAX);
    case OPT_MEMBERS:
        if (strncmp(value, "unix:", 5) != 0 && strncmp(value, "tcp:", 4) != 0 &&
            strncmp(value, "tls:", 4) != 0)
            return refuse("--members %.100s: it is unix:PATH, tls:HOST:PORT or tcp:HOST:PORT", value);
        return add("--members", value, options->members, &options->member_count, BY_OPTIONS_MEMBERS_MAX);
    case OPT_PLAIN_KEYS:
        options->access.plain_keys = 1;
        return -1;
    case OPT_QUIET:
        return take_number("quiet", value, 100, 3600000, &options->quiet_ms);
    case OPT_TRUST:
        return take_number("trust", value, 100, 3600000, &options->trust_ms);
    case OPT_PLAN_LIMIT:
        return take_number("plan-limit", value, 1, 86400, &options->plan_limit_s);
    case OPT_LOSE:
        return take_number("lose", value, 0, 500, &options->lose);
    case OPT_MTU:
        return take_number("mtu", value, 576, 9216, &options->lower.mtu);
    case OPT_DET:
        options->lower.det = 1;
        return -1;
    case OPT_STATE:
        if (strlen(value) > 250)
            return refuse("--state %.60s...: a folder's name of at most 250 characters", value);
        options->state = value;
        return -1;
    case OPT_KEYED:
        return take_keyed(options, value);
    case OPT_HTTP:
        options->http = strcmp(value, "off") != 0;
        if (!options->http)
            return -1;
        status = take_number("http", value, 0, 65535, &number);
        options->http_port = (uint16_t)number;
        return status;
    case OPT_HTTP_OPEN:
        options->http_open = true;
        return -1;
    case OPT_SOCKET:
        options->socket = strcmp(value, "off") != 0 ? value : NULL;
        return -1;
    case OPT_TAKEOVER:
        options->takeover = true;
        return -1;
    case OPT_RENEW:
        return take_number("renew-after", value, 1, UINT32_MAX, &options->renew_after);
    case OPT_HELP:
        fputs(usage, stdout);
        return 0;
    case OPT_VERSION:
        puts("banyand " BY_VERSION);
        return 0;
    default:
        fputs("banyand: try --help\n", stderr);
        return 2;
    }
}

int by_daemon_options_parse(struct by_daemon_options *options, int argc, char **argv)
{
    int code, status;

    *options = (struct by_daemon_options){.heartbeat_ms = 100,
                                          .quiet_ms = 2000,
                                          .trust_ms = 10000,
                                          .plan_limit_s = 300,
                                          .http = true,
                                          .http_port = BY_HTTP_PORT,
                                          .renew_after = BY_RENEW_AFTER,
                                          .lower = {.mtu = BY_LOWER_MTU},
                                          .access = {.timeout_ms = 2000}};
    if (by_http_socket(options->socket_default))
        options->socket = options->socket_default;
    optind = 0; /* another command line may have been read before */
    while ((code = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        status = take(options, code, optarg);
        if (status >= 0)
            return status;
    }
    by_session_access_complete(&options->access);
    if (optind == argc)
        return refuse("%s is missing: the topology of the fabric; try --help", "TOPOLOGY");
    if (optind + 1 < argc)
        return refuse("'%.100s' is one file too many: a daemon has one topology", argv[optind + 1]);
    options->topology = argv[optind];
    if (options->to_count == 0 && options->sockets == NULL)
        return refuse("%s: no switch could be reached: give --to for each, or --sockets DIR",
                      options->topology);
    return -1;
}
