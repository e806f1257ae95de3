/*
 * Teams of processes on the loopback interface, one for each rank, which meet like real ones. A
 * member runs a body and exits with its return value: 0 is success. It reports errors on stderr.
 * Single-threaded.
 */
#ifndef TESTS_UNIT_HOST_FALLBACK_TEAM_H
#define TESTS_UNIT_HOST_FALLBACK_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <banyan/banyan.h>

#define TEAM_MAX       17  /* ranks in most tests */
#define TEAM_RANKS_MAX 520 /* of team_run */

struct team_member {
    uint32_t rank, count;
    const void *argument;
    struct banyan_context *context;
    struct banyan_comm *comm;
};

typedef int member_fn(struct team_member *member);

struct team {
    uint32_t count;
    pid_t process[TEAM_RANKS_MAX];
    int status[TEAM_RANKS_MAX]; /* exit status, as from waitpid */
    double seconds;             /* from the start to the last exit */
};

/* Starts `count` members and waits for all of them. Sets BANYAN_TIMEOUT to 20 s unless it is
 * set. */
void team_run(struct team *team, uint32_t count, member_fn *body, const void *argument);
/* The same, and requires that each returns 0. */
void team_must(uint32_t count, member_fn *body, const void *argument);
/* In a member: opens context and communicator. */
int member_open(struct team_member *member);
void member_close(struct team_member *member);
/* Returns a counter of the member's communicator; 0 if there is no such counter. */
uint64_t member_counter(const struct team_member *member, const char *name);

/* In a member: prints an error message and returns 1. */
int member_wrong(const struct team_member *member, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
