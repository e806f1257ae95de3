/* The command line of banyand. Start-up only; main thread. */
#ifndef BY_SERVICE_DAEMON_OPTIONS_H
#define BY_SERVICE_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/service/controller/http.h"
#include "control/service/controller/session.h"
#include "control/tables/lower.h"

/* Jobs on the command line, switches with --to, and listeners for hosts (counts). */
#define BY_OPTIONS_JOBS_MAX    64u
#define BY_OPTIONS_TO_MAX      4096u
#define BY_OPTIONS_MEMBERS_MAX 4u

struct by_daemon_options {
    const char *topology;
    uint32_t to_count;
    const char *to[BY_OPTIONS_TO_MAX]; /* NAME=ADDR */
    const char *sockets;               /* every switch NAME at sockets/NAME.sock */
    struct by_session_options access;  /* of pushes */
    uint32_t heartbeat_ms;
    uint32_t job_count;
    const char *jobs[BY_OPTIONS_JOBS_MAX]; /* as by_job_parse takes them */
    uint32_t member_count;
    const char *members[BY_OPTIONS_MEMBERS_MAX]; /* addresses for hosts */
    uint32_t plan_limit_s;                       /* that one plan may take */
    uint32_t trust_ms;             /* what has swallowed packets is used again after, at first */
    uint32_t quiet_ms;             /* what came back must have been there for so long before it is used */
    uint32_t lose;                 /* fault injection: of 1000 messages of hosts */
    struct by_lower_options lower; /* mtu, det */
    const char *socket;            /* of commands that make and end jobs; NULL: none */
    char socket_default[BY_HTTP_PATH_MAX];
    uint16_t http_port; /* 0: any that is free */
    bool http;
    bool http_open;    /* jobs may be made and ended there, too */
    const char *state; /* a folder; NULL: nothing is kept */
    bool takeover;
    uint32_t renew_after; /* chunks through a switch after which keyed jobs get other keys */
};

/* -1 to go on, else the exit status. Strings are argv's. */
int by_daemon_options_parse(struct by_daemon_options *options, int argc, char **argv);

#endif
