/* The options of banyand. See options.h. */
#include "control/service/daemon/options.h"

#include <stdio.h>
#include <string.h>

#include "control/service/controller/target.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/renew.h"
#include "control/service/daemon/standby.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"
#include "offload/linux/options.h"

static int check_to(void *object, const char *value, struct by_option_why *why)
{
    struct by_problem problem = {0};
    const char *address;

    (void)object;
    if (by_target_split(value, &address) == 0)
        return by_option_refuse(why, BY_TARGET_FORM);
    return by_target_check(address, &problem) == 0 ? 0 : by_option_refuse(why, "%.300s", problem.text);
}

static int check_members(void *object, const char *value, struct by_option_why *why)
{
    (void)object;
    return strncmp(value, "unix:", 5) == 0 || strncmp(value, "tcp:", 4) == 0 || strncmp(value, "tls:", 4) == 0
               ? 0
               : by_option_refuse(why, "it must be unix:PATH, tls:HOST:PORT or tcp:HOST:PORT");
}

static int check_state(void *object, const char *value, struct by_option_why *why)
{
    (void)object;
    return strlen(value) <= 250 ? 0 : by_option_refuse(why, "a folder's name has at most 250 characters");
}

/* Sets the coverage of tags. by_lower_keyed also draws a seed, which may fail with BY_EIO; the jobs
 * of banyand have keys of their own instead. */
static int take_keyed(void *object, const char *cover, struct by_option_why *why)
{
    struct by_daemon_options *options = object;
    struct by_problem problem = {0};
    int error = by_lower_keyed(&options->lower, cover, NULL, &problem);

    if (error != BY_EIO)
        return error == 0 ? 0 : by_option_refuse(why, "%s", problem.text);
    fprintf(stderr, "banyand: --keyed: %s\n", problem.text);
    return 3;
}

static int take_http(void *object, const char *value, struct by_option_why *why)
{
    static const struct by_option row = {
        BY_ROW_NUMBER(0, "http", "PORT", BY_OPTION_AT(struct by_daemon_options, http_port), 0, 65535, NULL)};
    struct by_daemon_options *options = object;

    options->http = strcmp(value, "off") != 0;
    return options->http ? by_option_value(&row, options, value, why) : 0;
}

static int take_socket(void *object, const char *value, struct by_option_why *why)
{
    (void)why;
    ((struct by_daemon_options *)object)->socket = strcmp(value, "off") != 0 ? value : NULL;
    return 0;
}

#define AT(member) BY_OPTION_AT(struct by_daemon_options, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT(
         0, "to", "NAME=ADDR", AT(to),
         "the control address of switch NAME: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, or psk+ and one "
         "of the first two; repeat for each switch"),
     .count = AT(to_count), .call = check_to},
    {BY_ROW_TEXT(0, "sockets", "DIR", AT(sockets), "every switch NAME listens at DIR/NAME.sock")},
    BY_SESSION_ROWS(access),
    {BY_ROW_TEXT(0, "job", "N=LIST[:RANKS]", AT(jobs),
                 "create a job: collectives separated by commas, or all; broadcast@HOST and reduce@HOST name "
                 "a root; RANKS are its hosts, or @FILE (default: all); may be repeated"),
     .count = AT(job_count)},
    {BY_ROW_TEXT(0, "members", "ADDR", AT(members),
                 "accept hosts of jobs at unix:PATH, tls:HOST:PORT or tcp:HOST:PORT; over tls: each "
                 "authenticates with its own keys, over the others its name is trusted; may be repeated"),
     .count = AT(member_count), .call = check_members},
    {BY_ROW_NUMBER(
        0, "communicators", "N", AT(communicators), 0, BY_DAEMON_JOBS_MAX - 1,
        "let programs create at most N jobs for communicators at the same time, %r (default 64); 0: "
        "none")},
    {BY_ROW_NUMBER(
        0, "standby", "N", AT(standby), 0, BY_STANDBYS_MAX,
        "keep at most N other sets of trees of each job in the tables, %r, to which its ranks move "
        "by themselves after a failure (default 2)")},
    {BY_ROW_FLAG(0, "plain-keys", AT(access.plain_keys),
                 "send tables of keyed jobs over plain tcp: too, where others may read their keys")},
    {BY_ROW_NUMBER(0, "quiet", "MS", AT(quiet_ms), 100, 3600000,
                   "use a switch or link that has returned after it has been up for MS milliseconds, %r "
                   "(default 2000)")},
    {BY_ROW_NUMBER(
        0, "trust", "MS", AT(trust_ms), 100, 3600000,
        "use a switch or link that silently dropped packets again after MS milliseconds, %r (default 10000), "
        "twice as long each time it soon drops packets again")},
    {BY_ROW_NUMBER(0, "plan-limit", "S", AT(plan_limit_s), 1, 86400,
                   "limit the time of one plan to S seconds, %r (default 300)")},
    {BY_ROW_NUMBER(0, "lose", "N", AT(lose), 0, 500,
                   "inject faults: lose N of 1000 messages between hosts and banyand, %r")},
    {BY_ROW_NUMBER(
        0, "heartbeat", "MS", AT(heartbeat_ms), 10, 1000,
        "query each switch every MS milliseconds, %r (default 100); after three queries without an "
        "answer it is down")},
    {BY_ROW_NUMBER(0, "timeout", "S", AT(access.timeout_ms), 1, 60,
                   "wait S seconds for a switch in a push, %r (default 2)"),
     .scale = 1000},
    {BY_ROW_TEXT(
        0, "site", "FILE", AT(site),
        "use the names and addresses of FILE, of switches' control channels too, see banyan-site(5)")},
    {BY_ROW_NUMBER(0, "mtu", "N", AT(lower.mtu), 576, 9216,
                   "the MTU of every link, %r (default: the smallest of the site, else 1500)")},
    {BY_ROW_FLAG(0, "det", AT(lower.det), "make tables with which switches can sum in mode det")},
    {BY_ROW_TEXT(0, "state", "DIR", AT(state),
                 "keep jobs and tables in DIR, so that a restarted banyand continues with them"),
     .call = check_state},
    {BY_ROW_TEXT(0, "store", "etcd:URL,...", AT(store),
                 "keep jobs and tables in etcd, with which several banyands elect one that leads; URL is "
                 "http://HOST:PORT or https://HOST:PORT of a member, and /NAME may follow the last one"),
     .once = true},
    {BY_ROW_TEXT(0, "store-keys", "DIR", AT(store_keys),
                 "read ca.pem, cert.pem and key.pem for an etcd at https:// from DIR")},
    {BY_ROW_CALL(0, "socket", "PATH|off", take_socket,
                 "serve status, metrics and jobs over HTTP at a socket that only this user may use (default: "
                 "/run/banyan/banyand.socket, of users other than root in XDG_RUNTIME_DIR)")},
    {BY_ROW_CALL(0, "http", "PORT|off", take_http,
                 "serve status and metrics over HTTP on 127.0.0.1 (default 46249; 0: any free port)")},
    {BY_ROW_FLAG(0, "http-open", AT(http_open), "let every user of this machine create and end jobs there")},
    {BY_ROW_CALL(0, "keyed", "COVER", take_keyed,
                 "let packets carry tags that only their job can make; COVER is header (default) or payload"),
     .optional = true},
    {BY_ROW_NUMBER(
        0, "renew-after", "CHUNKS", AT(renew_after), 1, UINT32_MAX,
        "renew the keys of keyed jobs after CHUNKS chunks have passed a switch, %r (default 2147483648)")},
    {BY_ROW_FLAG(0, "takeover", AT(takeover), "take over switches from another controller")},
    {0}};

static const struct by_options command_line = {
    .program = "banyand",
    .usage = "banyand TOPOLOGY --to NAME=ADDR... | --sockets DIR | --site FILE [options]",
    .about = "The controller of a fabric: plans jobs, loads the switches' tables, watches the switches, and "
             "plans again when a part of the fabric fails or returns.",
    .epilog = "Exit status: 0 after SIGTERM or SIGINT, 2 after bad usage or input, 3 after a failure of the "
              "environment, or if another controller is active.",
    .version = "banyand " BY_VERSION,
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "TOPOLOGY, the file of the fabric"};

int by_daemon_options_parse(struct by_daemon_options *options, int argc, char **argv)
{
    int status;

    *options = (struct by_daemon_options){.heartbeat_ms = 100,
                                          .quiet_ms = 2000,
                                          .trust_ms = 10000,
                                          .communicators = BY_GROUPS_DEFAULT,
                                          .standby = BY_STANDBY_DEFAULT,
                                          .plan_limit_s = 300,
                                          .http = true,
                                          .http_port = BY_HTTP_PORT,
                                          .renew_after = BY_RENEW_AFTER,
                                          .access = {.timeout_ms = 2000}};
    if (by_http_socket(options->socket_default))
        options->socket = options->socket_default;
    status = by_options_read(&command_line, options, &argc, argv);
    if (status >= 0)
        return status;
    by_session_access_complete(&options->access);
    options->topology = argv[1];
    if (options->store != NULL && options->state != NULL) {
        fprintf(stderr, "banyand: --state and --store exclude each other: give the folder or etcd\n");
        return BY_OPTIONS_USAGE;
    }
    if (options->to_count > 0 || options->sockets != NULL || options->site != NULL)
        return -1;
    fprintf(stderr,
            "banyand: %s: no addresses of switches: give --to for each, --sockets DIR, or --site FILE\n",
            options->topology);
    return BY_OPTIONS_USAGE;
}
