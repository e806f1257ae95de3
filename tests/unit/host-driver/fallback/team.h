/*
 * Teams of processes on the loopback interface, one for each rank, that meet as real ones do. A
 * member runs a body and exits with what it returns: 0 is right; what is wrong it says on stderr.
 * Single-threaded.
 */
#ifndef TESTS_UNIT_HOST_FALLBACK_TEAM_H
#define TESTS_UNIT_HOST_FALLBACK_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <banyan/banyan.h>

#define TEAM_MAX 17

struct team_member {
    uint32_t rank, count;
    const void *argument;
    struct banyan_context *context;
    struct banyan_comm *comm;
};

typedef int member_fn(struct team_member *member);

struct team {
    uint32_t count;
    pid_t process[TEAM_MAX];
    int status[TEAM_MAX]; /* of its end, as of waitpid */
    double seconds;       /* from the start to the last end */
};

/* Starts `count` members, waits for all of them. BANYAN_TIMEOUT is 20 s unless it is set. */
void team_run(struct team *team, uint32_t count, member_fn *body, const void *argument);
/* The same; each must return 0. */
void team_must(uint32_t count, member_fn *body, const void *argument);
/* In a member: opens context and communicator. */
int member_open(struct team_member *member);
void member_close(struct team_member *member);
/* The value of a counter of the member's communicator; 0 when there is none. */
uint64_t member_counter(const struct team_member *member, const char *name);

/* In a member: says what is wrong and returns 1. */
int member_wrong(const struct team_member *member, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
