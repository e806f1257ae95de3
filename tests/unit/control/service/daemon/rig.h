/* A complete banyand in another process, between two switches without packets (controller/fake.h),
 * for tests that stop and start it. */
#ifndef BY_TEST_DAEMON_RIG_H
#define BY_TEST_DAEMON_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "control/fabric/topology.h"
#include "control/service/daemon/state.h"
#include "tests/unit/control/service/controller/fake.h"

/* h0 - x0 - x1 - h1, and a folder for files. */
struct daemon_rig {
    char folder[64], file[96], state[96];
    struct by_topology *topology;
    struct controller_fake *fake[2];
    unsigned daemons; /* started so far; each has its own log */
};

/* A running daemon. */
struct rig_daemon {
    pid_t process;
    char log[96];
};

void rig_open(struct daemon_rig *rig);
void rig_close(struct daemon_rig *rig);
/* Removes a folder and what it contains. Returns 0, or -1 with errno set. */
int rig_remove(const char *folder);
/* Replaces the fabric, before any daemon runs: both hosts are at both switches, so that each can
 * fail. */
void rig_double(struct daemon_rig *rig);
/* The same with three hosts, so that switches sum. */
void rig_triple(struct daemon_rig *rig);
/* Starts banyand for the rig's switches with its store and with `more` options
 * (NULL-terminated). */
struct rig_daemon rig_start(struct daemon_rig *rig, const char *const *more);
/* Restarts both switches with this number of slots, before any daemon runs. */
void rig_resize(struct daemon_rig *rig, uint32_t slots);
/* Sends a request to the daemon's socket, "http" in the folder, and requires this status. Returns
 * the reply, for free(). */
char *rig_ask(const struct daemon_rig *rig, const char *method, const char *path, const char *body,
              int wanted);
/* Returns the hash of a switch's active table; 0 if it has none. */
uint64_t rig_active(const struct controller_fake *fake);
/* Requires that the store matches the switches, whose tables are `active`, and that each job is
 * either on both switches or on none: job 1, or jobs 1 and 2. */
void rig_agrees(const struct daemon_rig *rig, struct by_state *store, const uint64_t active[2]);
/* Waits until its output contains `text`. After some seconds prints the output and fails the
 * test. */
void rig_await(const struct rig_daemon *daemon, const char *text);
/* Returns the number that follows `text` in its output, or 0. */
unsigned long rig_number(const struct rig_daemon *daemon, const char *text);
bool rig_has_said(const struct rig_daemon *daemon, const char *text);
/* Waits for its end. Returns its exit status, or -1 if a signal ended it. */
int rig_wait(const struct rig_daemon *daemon);
/* Sends SIGTERM, then rig_wait. */
int rig_stop(const struct rig_daemon *daemon);

#endif
