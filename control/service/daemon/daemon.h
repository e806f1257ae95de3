/*
 * banyand, the controller: its state, and the way of its events. One thread, the loop's, owns
 * struct by_daemon and everything that it refers to. Beside it runs a thread for each switch
 * (watch.c) and one for long work (work.c); these get copies, or data that the loop leaves alone
 * meanwhile, and answer by events (event.h).
 *
 * switches.c (heartbeats), members.c (hosts), changes.c (pushes) and loop.c (time, the queue) post
 * events with by_daemon_tell. reduce.c alone decides which part handles each: recover.c decides
 * what is planned again, jobs.c creates and ends jobs. The parts do not call each other's
 * reactions, so the order of events is read in one place.
 */
#ifndef BY_SERVICE_DAEMON_DAEMON_H
#define BY_SERVICE_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/daemon/change.h"
#include "control/service/daemon/event.h"
#include "control/service/daemon/job.h"
#include "control/service/daemon/options.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/watch.h"
#include "offload/base/limits.h"

/* Jobs at a time (count): slots of a fabric hold far fewer. */
#define BY_DAEMON_JOBS_MAX 64u

enum by_switch_state {
    BY_SWITCH_UNKNOWN = 1, /* has not answered yet, nor been given up */
    BY_SWITCH_UP,
    BY_SWITCH_DOWN, /* no answer for three heartbeats; what it would be without: lost */
};

struct by_daemon_switch {
    uint32_t node;
    const char *name; /* the topology's */
    char address[256];
    enum by_switch_state state;
    bool partitioned; /* down, while hosts of its trees go on: alive, and not to be pushed to (recover.c) */
    uint64_t silent_ms;
    char text[400]; /* why there was no answer, last */
    struct by_watch *watch;
    bool restarted;       /* since the last controller ended (start.c) */
    uint32_t stray_beats; /* heartbeats since its table is not `image` */
    by_HelloReply hello;  /* of its last answer: boot nonce, active table, limits */
    by_CountersReply counters;
    uint64_t chunks; /* by_switch_chunks of these counters */
    by_WaitingReply waiting;
    uint64_t waiting_table;       /* the hash of the table that it had then */
    struct by_change_image image; /* the table that it shall have; bytes NULL: none yet */
};

/* What the switches at the two ends of a link report of its carrier. */
struct by_link_state {
    bool down; /* a port at one end has no carrier; unchanged while the switches at both ends are down */
};

struct by_daemon {
    void (*reduce)(struct by_daemon *daemon, const struct by_daemon_event *event); /* reduce.h */
    struct by_daemon_options options;
    struct by_topology *topology;
    struct by_address_map map; /* ports of its links */
    int epoll;
    struct by_event_queue *events;
    struct by_daemon_work *work;
    uint64_t now_ms; /* monotonic, of this turn of the loop */
    bool ending;
    int status; /* to exit with */

    uint32_t switch_count;
    struct by_daemon_switch *switches;
    uint32_t *switch_of; /* by node: index of its switch, or UINT32_MAX */
    struct by_link_state *links;
    struct by_fabric_loss loss; /* what planning must do without */

    uint32_t job_count;
    struct by_job *jobs[BY_DAEMON_JOBS_MAX]; /* ascending by number */
    struct by_change *change;                /* on its way, or NULL */
    uint16_t gen_seen[BY_JOBS_MAX]; /* by number: the last generation of jobs that are gone, 0 = none; a new
                                       job goes on from there, as packets of old ones may still be about */

    uint64_t election_id;
    struct by_state *state;       /* state.c: or NULL, when nothing is kept */
    struct by_http *http;         /* http.c: or NULL */
    struct by_start *start;       /* start.c: NULL once the daemon leads */
    struct by_jobs *requests;     /* jobs.c: those that wait for their turn */
    struct by_members *members;   /* members.c: the server of hosts */
    struct by_recovery *recovery; /* recovery.c: recovery */
    struct by_recover *recover;   /* recovery.c: what it has decided */
    struct by_notice *notice;     /* notice.c: what counters show */
    bool renews;                  /* renew.c has looked at the jobs that were there before */
    struct {
        uint64_t pushes, push_errors, switch_downs, switch_reboots, link_downs, swallows;
        double push_seconds, plan_seconds; /* of all */
    } counts;
};

/* A file descriptor of the loop: `ready` is called while it has `events` (EPOLLIN...). */
struct by_watcher {
    int fd;
    void (*ready)(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
    void *context;
};

/* Adds, changes, removes a descriptor. The watcher must stay where it is until removed; 0 or
 * BY_EIO. */
int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
int by_daemon_rewatch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events);
void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher);

/* The program, from its command line to its exit status. One at a time in a process. */
int by_daemon_main(int argc, char **argv);
/* Runs until daemon->ending. Ticks every heartbeat. */
void by_daemon_run(struct by_daemon *daemon);
/* Ends with this exit status and a line on stderr. */
void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Posts an event to the reducer, which handles it before this returns. The loop's thread. */
void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event);

/* start.c: from the first heartbeats to leading. */
void by_start_open(struct by_daemon *daemon);
void by_start_tick(struct by_daemon *daemon);
void by_start_close(struct by_daemon *daemon);

/* switches.c: start and stop watching; what a heartbeat means. */
void by_switches_start(struct by_daemon *daemon);
void by_switches_lead(struct by_daemon *daemon);
void by_switches_stop(struct by_daemon *daemon);
void by_switches_beat(struct by_daemon *daemon, struct by_beat *beat);
/*
 * The largest number of chunks that one tree can have carried through a switch since it started.
 * Each chunk is summed, sent up or relayed there at least once, so the sum of these counters
 * bounds it.
 */
uint64_t by_switch_chunks(const by_CountersReply *counters);
struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node);
/* The link of a switch's port, or UINT32_MAX. */
uint32_t by_switch_link(const struct by_daemon *daemon, const struct by_daemon_switch *device, uint32_t port);

#endif
