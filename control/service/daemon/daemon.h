/*
 * banyand, the controller: its state, and the flow of its events. One thread, the loop's, owns
 * struct by_daemon and everything that it refers to. In addition there is a thread for each switch
 * (watch.c) and one for long work (work.c). These get copies, or data that the loop does not change
 * meanwhile, and answer with events (event.h).
 *
 * switches.c (heartbeats), members.c (hosts), changes.c (pushes) and loop.c (time, the queue) post
 * events with by_daemon_tell. Only reduce.c decides which part handles each event: recover.c
 * decides what is planned again, jobs.c creates and ends jobs. The parts do not call each other's
 * handlers, so that the order of events is defined in one place.
 */
#ifndef BY_SERVICE_DAEMON_DAEMON_H
#define BY_SERVICE_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/fabric/topology.h"
#include "control/service/daemon/change.h"
#include "control/service/daemon/event.h"
#include "control/service/daemon/job.h"
#include "control/service/daemon/options.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/watch.h"
#include "offload/base/limits.h"

/* Maximum number of jobs (count); the slots of a fabric suffice for far fewer. */
#define BY_DAEMON_JOBS_MAX 128u

enum by_switch_state {
    BY_SWITCH_UNKNOWN = 1, /* no answer yet, but not down yet either */
    BY_SWITCH_UP,
    BY_SWITCH_DOWN, /* no answer for three heartbeats, or its process has ended */
};

struct by_daemon_switch {
    uint32_t node;
    const char *name; /* owned by the topology */
    char address[256];
    enum by_switch_state state;
    uint64_t silent_ms;
    char text[400]; /* reason of the last missing answer */
    struct by_watch *watch;
    bool restarted;       /* since the end of the last controller (start.c) */
    uint32_t stray_beats; /* heartbeats since its table differs from `image` */
    by_HelloReply hello;  /* of its last answer: boot nonce, active table, limits */
    by_CountersReply counters;
    uint64_t chunks; /* by_switch_chunks of these counters */
    by_WaitingReply waiting;
    uint64_t waiting_table;       /* hash of its table at that time */
    struct by_change_image image; /* the table that it should have; bytes NULL: none yet */
};

/* The carrier of a link, as the switches at its ends report it. */
struct by_link_state {
    bool down; /* a port at one end has no carrier; unchanged while the switches at both ends are down */
};

struct by_daemon {
    void (*reduce)(struct by_daemon *daemon, const struct by_daemon_event *event); /* reduce.h */
    struct by_daemon_options options;
    struct by_topology *topology;
    struct by_address_map map; /* ports of its links */
    int epoll;
    struct epoll_event *ready; /* of this turn of the loop, some not yet handled */
    int ready_count;
    struct by_event_queue *events;
    struct by_daemon_work *work;
    uint64_t now_ms;      /* monotonic time of this turn of the loop */
    uint64_t started_ms;  /* start of this process, since 1970 */
    bool ending, retires; /* `retires`: ends because another controller leads */
    int status;           /* exit status */

    uint32_t switch_count;
    struct by_daemon_switch *switches;
    uint32_t *switch_of; /* by node: index of its switch, or UINT32_MAX */
    struct by_link_state *links;
    struct by_fabric_loss loss; /* parts that planning must avoid */

    uint32_t job_count;
    struct by_job *jobs[BY_DAEMON_JOBS_MAX]; /* ascending by number */
    struct by_change *change;                /* under way, or NULL */
    struct by_change_record record;          /* of the last push */
    uint64_t pushed_ms;                      /* when that ended */
    uint16_t gen_seen[BY_JOBS_MAX]; /* by number: the last generation of ended jobs, 0 = none; a new job
                                     * continues from there, since old packets may still arrive */

    uint64_t election_id;
    struct by_lead *lead;         /* lead.c; NULL: the store is not shared */
    struct by_state *state;       /* state.c; NULL: nothing is stored */
    struct by_http *http;         /* http.c; or NULL */
    struct by_start *start;       /* start.c; NULL once the daemon leads */
    struct by_jobs *requests;     /* jobs.c: queued requests */
    struct by_members *members;   /* members.c: the server of hosts */
    struct by_recovery *recovery; /* recovery.c: recovery */
    struct by_recover *recover;   /* recover.c: decisions */
    struct by_ahead *ahead;       /* ahead.c: plans for failures that are being made; or NULL */
    pid_t ahead_killed;           /* ahead.c: its last process, which has not been waited for; or 0 */
    struct by_notice *notice;     /* notice.c: evaluation of counters */
    struct by_news *news;         /* news.c: the latest lines about the fabric */
    struct by_rates *rates;       /* rates.c: measured rates of links */
    struct by_history *history;   /* history.c: the last hour */
    uint32_t alive_ms;            /* systemd's watchdog period; 0: none */
    uint64_t reported_ms;         /* last notification of systemd */
    bool renews;                  /* renew.c has seen the jobs of the last run */
    struct {
        uint64_t pushes, push_errors, switch_downs, switch_reboots, link_downs, swallows, moves;
        double push_seconds, plan_seconds; /* in total */
    } counts;
};

/* A file descriptor of the loop, which calls `ready` while it has `events` (EPOLLIN...). */
struct by_watcher {
    int fd;
    void (*ready)(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
    void *context;
};

/* Add, change and remove a descriptor. The watcher must not move until it is removed. Return 0 or
 * BY_EIO. */
int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
int by_daemon_rewatch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher);

/* Runs the program from its command line to its exit status. Only one at a time in a process. */
int by_daemon_main(int argc, char **argv);
/* Runs until daemon->ending, with a tick at every heartbeat. */
void by_daemon_run(struct by_daemon *daemon);
/* Ends the daemon with this exit status and a line on stderr. */
void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same when another controller leads; with a shared store it then waits to lead again. */
void by_daemon_retire(struct by_daemon *daemon, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Blocks the signals that end the daemon. Returns a descriptor that reads them, or -1. */
int by_daemon_signals(void);
/* Posts an event to the reducer, which handles it before the call returns. The loop's thread. */
void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event);

/* start.c: from the first heartbeats to leadership. */
void by_start_open(struct by_daemon *daemon);
void by_start_tick(struct by_daemon *daemon);
void by_start_close(struct by_daemon *daemon);

/* switches.c: start and stop watching; evaluate a heartbeat. `suspected`: ranks that use the switch
 * wait and have another path. */
void by_switches_start(struct by_daemon *daemon);
void by_switches_lead(struct by_daemon *daemon);
void by_switches_stop(struct by_daemon *daemon);
/* Asks the switches at the ends of these links at once (by link): ranks that wait use them. */
void by_switches_ask(struct by_daemon *daemon, const bool *used);
void by_switches_beat(struct by_daemon *daemon, struct by_beat *beat, bool suspected);
/*
 * Returns an upper bound of the chunks that one tree has carried through a switch since it started.
 * The switch sums, sends up or relays each chunk at least once, so the sum of these counters is the
 * bound.
 */
uint64_t by_switch_chunks(const by_CountersReply *counters);
struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node);
/* Returns the link of a switch's port, or UINT32_MAX. */
uint32_t by_switch_link(const struct by_daemon *daemon, const struct by_daemon_switch *device, uint32_t port);

#endif
