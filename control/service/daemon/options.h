/* The command line of banyand. Start-up only; main thread. */
#ifndef BY_SERVICE_DAEMON_OPTIONS_H
#define BY_SERVICE_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/service/controller/http.h"
#include "control/service/controller/session.h"
#include "control/tables/lower.h"

/* Maximum number of jobs on the command line, of --to, and of listeners for hosts (count). */
#define BY_OPTIONS_JOBS_MAX    64u
#define BY_OPTIONS_TO_MAX      4096u
#define BY_OPTIONS_MEMBERS_MAX 4u

struct by_daemon_options {
    const char *topology;
    const char *site;
    uint32_t to_count;
    const char *to[BY_OPTIONS_TO_MAX]; /* NAME=ADDR */
    const char *sockets;               /* the socket of each switch NAME is sockets/NAME.sock */
    struct by_session_options access;  /* of pushes */
    uint32_t heartbeat_ms;
    uint32_t job_count;
    const char *jobs[BY_OPTIONS_JOBS_MAX]; /* format: see by_job_parse */
    uint32_t member_count;
    const char *members[BY_OPTIONS_MEMBERS_MAX]; /* addresses for hosts */
    uint32_t plan_limit_s;                       /* time limit of one plan */
    uint32_t communicators;                      /* limit of jobs that hosts create */
    uint32_t standby;                            /* most standby generations of a job; BY_STANDBY_DEFAULT */
    uint32_t trust_ms;                           /* initial time before a blackhole is used again */
    uint32_t quiet_ms;                           /* how long a part must be back before it is used */
    uint32_t lose;                               /* fault injection: lost messages of hosts, per 1000 */
    struct by_lower_options lower;               /* mtu, det, cover */
    const char *socket;                          /* for commands that create and end jobs; NULL: none */
    char socket_default[BY_HTTP_PATH_MAX];
    uint16_t http_port; /* 0: any free port */
    bool http;
    bool http_open;         /* jobs can be created and ended there as well */
    const char *state;      /* a folder; NULL: nothing is stored there */
    const char *store;      /* the addresses of etcd (etcd.h), or NULL; */
    const char *store_keys; /* a folder with keys for it, or NULL */
    bool takeover;
    uint32_t renew_after; /* chunks through a switch after which keyed jobs get other keys */
};

/* Parses the command line. Returns -1 to continue, else the exit status. The strings belong to
 * argv. */
int by_daemon_options_parse(struct by_daemon_options *options, int argc, char **argv);

#endif
