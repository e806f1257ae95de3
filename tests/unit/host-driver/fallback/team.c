/* Implements team.h: teams of processes. */
#include "tests/unit/host-driver/fallback/team.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"

#define LIMIT_SECONDS 100 /* SIGALRM ends a member that hangs */

/* Returns a port that is unused, and a socket that keeps it from all programs but those that set
 * SO_REUSEADDR and listen, as rank 0 does. */
static uint16_t hold_port(int *fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int one = 1;

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*fd >= 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&address, &bytes), 0);
    return ntohs(address.sin_port);
}

static void set_number(const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    setenv(name, text, 1);
}

static _Noreturn void live(uint32_t rank, uint32_t count, member_fn *body, const void *argument)
{
    struct team_member member = {.rank = rank, .count = count, .argument = argument};

    set_number("RANK", rank);
    /* pairs of ranks share memory in half of the teams; in the others some pairs do */
    setenv("BANYAN_NEAR", count % 2 == 0 || rank % 2 == 0 ? "pairs" : "tcp", 0);
    alarm(LIMIT_SECONDS);
    _exit(body(&member));
}

void team_run(struct team *team, uint32_t count, member_fn *body, const void *argument)
{
    uint64_t begin_ns = by_clock_ns();
    int held;

    assert_true(count <= TEAM_RANKS_MAX);
    memset(team, 0, sizeof(*team));
    team->count = count;
    set_number("WORLD_SIZE", count);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", hold_port(&held));
    setenv("BANYAN_LOG", "0", 0);
    setenv("BANYAN_TIMEOUT", "20", 0);
    fflush(stdout);
    fflush(stderr);
    for (uint32_t rank = 0; rank < count; rank++) {
        team->process[rank] = fork();
        assert_true(team->process[rank] >= 0);
        if (team->process[rank] == 0)
            live(rank, count, body, argument);
    }
    for (uint32_t rank = 0; rank < count; rank++)
        assert_int_equal(waitpid(team->process[rank], &team->status[rank], 0), team->process[rank]);
    close(held);
    team->seconds = (double)(by_clock_ns() - begin_ns) / 1e9;
}

void team_must(uint32_t count, member_fn *body, const void *argument)
{
    struct team team;

    team_run(&team, count, body, argument);
    for (uint32_t rank = 0; rank < count; rank++)
        if (!WIFEXITED(team.status[rank]) || WEXITSTATUS(team.status[rank]) != 0)
            fail_msg("rank %u of %u: %s %d", rank, count, WIFEXITED(team.status[rank]) ? "status" : "signal",
                     WIFEXITED(team.status[rank]) ? WEXITSTATUS(team.status[rank])
                                                  : WTERMSIG(team.status[rank]));
}

int member_open(struct team_member *member)
{
    banyan_status_t status = banyan_init(NULL, &member->context);

    if (status == BANYAN_OK)
        status = banyan_comm_create(member->context, 0, &member->comm);
    if (status != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_rank(member->comm) != member->rank || banyan_comm_size(member->comm) != member->count)
        return member_wrong(member, "says it is rank %u of %u", banyan_comm_rank(member->comm),
                            banyan_comm_size(member->comm));
    return 0;
}

void member_close(struct team_member *member)
{
    if (member->comm != NULL)
        banyan_comm_destroy(member->comm);
    if (member->context != NULL)
        banyan_finalize(member->context);
    member->comm = NULL;
    member->context = NULL;
}

uint64_t member_counter(const struct team_member *member, const char *name)
{
    const char *found;
    uint64_t value;

    for (uint32_t i = 0; banyan_comm_counter(member->comm, i, &found, &value) == BANYAN_OK; i++)
        if (strcmp(found, name) == 0)
            return value;
    return 0;
}

int member_wrong(const struct team_member *member, const char *format, ...)
{
    char text[700];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "rank %u of %u: %s\n", member->rank, member->count, text);
    return 1;
}
