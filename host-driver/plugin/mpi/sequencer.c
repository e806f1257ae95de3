/* The sequencer of communicators; see sequencer.h. One thread, which never waits for one rank. */
#include "host-driver/plugin/mpi/sequencer.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"

#define MEMBERS_MAX 4096u  /* connections; at most half of the files that the process may open */
#define BLOCK_MAX   65536u /* bytes of a rank's part of an allgather */
#define LEASE       8u     /* calls that an answer permits to MPI, with the one asked for */
#define WRITE_NS    UINT64_C(2000000000) /* a rank that takes no answer for this long is dropped */

_Static_assert(BY_MPI_DOOR_MAX >= BY_PLACE_TEXT, "facts hold an address");

/* The ranks of one communicator. */
struct sequencer_group {
    struct sequencer_group *next;
    uint64_t id;
    uint32_t size, present, opened, block_count, block_bytes;
    uint8_t *blocks;
    uint64_t limit; /* the last call that is permitted to MPI */
    int is_decided, is_over;
};

struct sequencer_member {
    int fd;
    struct sequencer_group *group; /* NULL: no hello yet */
    uint32_t rank;
    int has_opened, has_block, is_lost;
    int settles; /* waits for the decision */
    struct by_mpi_message head;
    uint32_t have;    /* of the head and its bytes */
    uint8_t *payload; /* BLOCK_MAX */
};

static struct {
    int is_open;
    pthread_t thread;
    pthread_mutex_t lock; /* of `connected` and `has_to_end` */
    uint32_t connected;
    int has_to_end;
    int listener, wake;
    uint64_t key;
    uint32_t room; /* for members */
    struct sequencer_group *groups;
    struct sequencer_member *member;
    struct pollfd *fds;
    uint32_t count;
} sequencer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- answers */

static void answer(struct sequencer_member *member, enum by_mpi_message_kind kind, uint64_t number,
                   const void *bytes, uint32_t size)
{
    const struct by_mpi_message head = {.kind = kind, .bytes = size, .number = number};
    uint64_t deadline_ns = by_clock_ns() + WRITE_NS;

    if (member->is_lost)
        return;
    if (by_peer_write(member->fd, &head, sizeof(head), deadline_ns) != 0 ||
        by_peer_write(member->fd, bytes, size, deadline_ns) != 0)
        member->is_lost = 1;
}

/* A rank has left before the decision: the others get OVER now, or with their next call. */
static void end_group(struct sequencer_group *group)
{
    if (group->is_decided || group->is_over)
        return;
    group->is_over = 1;
    for (uint32_t i = 0; i < sequencer.count; i++)
        if (sequencer.member[i].group == group &&
            (!sequencer.member[i].has_opened || sequencer.member[i].settles))
            answer(&sequencer.member[i], BY_MPI_OVER, 0, NULL, 0);
}

/* ---- messages */

static void take_hello(struct sequencer_member *member)
{
    struct by_mpi_hello hello;
    struct sequencer_group *group = sequencer.groups;

    member->is_lost = 1;
    if (member->head.bytes != sizeof(hello) || member->group != NULL)
        return;
    memcpy(&hello, member->payload, sizeof(hello));
    if (hello.key != sequencer.key || hello.rank >= hello.size || hello.size > MEMBERS_MAX)
        return;
    while (group != NULL && group->id != hello.id)
        group = group->next;
    if (group == NULL) {
        group = calloc(1, sizeof(*group));
        if (group == NULL)
            return;
        *group = (struct sequencer_group){.next = sequencer.groups, .id = hello.id, .size = hello.size};
        sequencer.groups = group;
    }
    member->is_lost = 0;
    member->group = group;
    member->rank = hello.rank;
    group->present++;
    if (group->is_over || hello.size != group->size || group->present > group->size)
        answer(member, BY_MPI_OVER, 0, NULL, 0);
}

static void take_block(struct sequencer_member *member)
{
    struct sequencer_group *group = member->group;
    uint32_t bytes = member->head.bytes;

    if (group->is_over)
        return;
    if (group->block_count == 0) {
        free(group->blocks);
        group->blocks = calloc(group->size, bytes);
        group->block_bytes = bytes;
    }
    if (group->blocks == NULL || bytes != group->block_bytes || member->has_block) {
        end_group(group);
        return;
    }
    memcpy(group->blocks + (size_t)member->rank * bytes, member->payload, bytes);
    member->has_block = 1;
    if (++group->block_count < group->size)
        return;
    group->block_count = 0;
    for (uint32_t i = 0; i < sequencer.count; i++)
        if (sequencer.member[i].group == group) {
            sequencer.member[i].has_block = 0;
            answer(&sequencer.member[i], BY_MPI_BLOCKS, 0, group->blocks, group->size * bytes);
        }
}

static void tell_limit(struct sequencer_member *member)
{
    const struct sequencer_group *group = member->group;

    answer(member,
           group->is_over      ? BY_MPI_OVER
           : group->is_decided ? BY_MPI_DECIDED
                               : BY_MPI_LIMIT,
           group->limit, NULL, 0);
}

static void take_open(struct sequencer_member *member)
{
    struct sequencer_group *group = member->group;

    if (group->is_over || member->has_opened)
        return; /* it has an answer already */
    member->has_opened = 1;
    if (member->head.number > group->limit)
        group->limit = member->head.number;
    group->is_decided = ++group->opened == group->size;
    tell_limit(member);
    for (uint32_t i = 0; group->is_decided && i < sequencer.count; i++)
        if (sequencer.member[i].group == group && sequencer.member[i].settles) {
            sequencer.member[i].settles = 0;
            tell_limit(&sequencer.member[i]);
        }
}

/* All calls before this one have started. */
static void take_settle(struct sequencer_member *member)
{
    struct sequencer_group *group = member->group;

    if (group->is_decided || group->is_over) {
        tell_limit(member);
        return;
    }
    if (member->head.number > group->limit + 1)
        group->limit = member->head.number - 1;
    member->settles = 1;
}

static void take_call(struct sequencer_member *member)
{
    struct sequencer_group *group = member->group;

    if (!group->is_decided && !group->is_over && member->head.number > group->limit)
        group->limit = member->head.number + LEASE - 1;
    tell_limit(member);
}

static void take_message(struct sequencer_member *member)
{
    if (member->head.kind != BY_MPI_HELLO && member->group == NULL)
        member->is_lost = 1;
    else if (member->head.kind == BY_MPI_HELLO)
        take_hello(member);
    else if (member->head.kind == BY_MPI_BLOCK)
        take_block(member);
    else if (member->head.kind == BY_MPI_OPEN)
        take_open(member);
    else if (member->head.kind == BY_MPI_CALL)
        take_call(member);
    else if (member->head.kind == BY_MPI_SETTLE)
        take_settle(member);
    else
        member->is_lost = 1;
}

/* Reads what has arrived; handles complete messages. */
static void hear(struct sequencer_member *member)
{
    while (!member->is_lost) {
        uint32_t head = sizeof(member->head);
        uint32_t want = member->have < head ? head : head + member->head.bytes;
        uint8_t *to = member->have < head ? (uint8_t *)&member->head + member->have
                                          : member->payload + member->have - head;
        ssize_t got = member->have < want ? recv(member->fd, to, want - member->have, MSG_DONTWAIT) : 0;

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got < 0 || (got == 0 && member->have < want)) {
            member->is_lost = 1;
            return;
        }
        member->have += (uint32_t)got;
        if (member->have == head && member->head.bytes > BLOCK_MAX)
            member->is_lost = 1;
        else if (member->have >= head && member->have == head + member->head.bytes) {
            member->have = 0;
            take_message(member);
        }
    }
}

/* ---- connections */

/* Counts the connections of ranks. */
static void count_members(void)
{
    uint32_t connected = 0;

    for (uint32_t i = 0; i < sequencer.count; i++)
        connected += sequencer.member[i].group != NULL;
    pthread_mutex_lock(&sequencer.lock);
    sequencer.connected = connected;
    pthread_mutex_unlock(&sequencer.lock);
}

static void admit(void)
{
    int fd = accept4(sequencer.listener, NULL, NULL, SOCK_CLOEXEC);
    uint8_t *payload = fd >= 0 && sequencer.count < sequencer.room ? malloc(BLOCK_MAX) : NULL;

    if (fd >= 0 && payload != NULL) {
        by_peer_prepare(fd);
        sequencer.member[sequencer.count++] = (struct sequencer_member){.fd = fd, .payload = payload};
    } else if (fd >= 0) {
        close(fd); /* that communicator stays with MPI */
    }
}

static void free_group(struct sequencer_group *group)
{
    struct sequencer_group **at = &sequencer.groups;

    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    free(group->blocks);
    free(group);
}

/* Removes lost connections; their loss may end those of others. */
static void part(void)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < sequencer.count; i++)
        if (sequencer.member[i].is_lost && sequencer.member[i].group != NULL &&
            !sequencer.member[i].group->is_decided && !sequencer.member[i].group->is_over) {
            end_group(sequencer.member[i].group);
            i = UINT32_MAX; /* from the first again */
        }
    for (uint32_t i = 0; i < sequencer.count; i++) {
        struct sequencer_member *member = &sequencer.member[i];

        if (!member->is_lost) {
            sequencer.member[kept++] = *member;
            continue;
        }
        close(member->fd);
        free(member->payload);
        if (member->group != NULL && --member->group->present == 0)
            free_group(member->group);
    }
    sequencer.count = kept;
}

static void *serve(void *unused)
{
    int has_to_end = 0;

    (void)unused;
    while (!has_to_end) {
        uint32_t polled = sequencer.count;

        sequencer.fds[0] = (struct pollfd){.fd = sequencer.wake, .events = POLLIN};
        sequencer.fds[1] = (struct pollfd){.fd = sequencer.listener, .events = POLLIN};
        for (uint32_t i = 0; i < polled; i++)
            sequencer.fds[2 + i] = (struct pollfd){.fd = sequencer.member[i].fd, .events = POLLIN};
        if (poll(sequencer.fds, 2 + polled, -1) < 0)
            continue;
        for (uint32_t i = 0; i < polled; i++)
            if (sequencer.fds[2 + i].revents != 0)
                hear(&sequencer.member[i]);
        if (sequencer.fds[1].revents != 0)
            admit();
        part();
        count_members();
        pthread_mutex_lock(&sequencer.lock);
        has_to_end = sequencer.has_to_end;
        pthread_mutex_unlock(&sequencer.lock);
    }
    return NULL;
}

/* ---- begin and end */

static void release(void)
{
    for (uint32_t i = 0; i < sequencer.count; i++)
        sequencer.member[i].is_lost = 1;
    part();
    if (sequencer.listener >= 0)
        close(sequencer.listener);
    if (sequencer.wake >= 0)
        close(sequencer.wake);
    free(sequencer.member);
    free(sequencer.fds);
    sequencer.member = NULL;
    sequencer.fds = NULL;
    sequencer.is_open = 0;
}

static int prepare(struct by_mpi_facts *facts)
{
    struct rlimit files = {.rlim_cur = 1024};
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);
    struct by_bootstrap_place here;

    getrlimit(RLIMIT_NOFILE, &files);
    sequencer.room = files.rlim_cur / 2 < MEMBERS_MAX ? (uint32_t)files.rlim_cur / 2 : MEMBERS_MAX;
    sequencer.count = sequencer.connected = 0;
    sequencer.has_to_end = 0;
    sequencer.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sequencer.listener = by_peer_listen(INADDR_ANY, 0);
    sequencer.member = calloc(sequencer.room, sizeof(*sequencer.member));
    sequencer.fds = calloc(2 + sequencer.room, sizeof(*sequencer.fds));
    if (sequencer.member == NULL || sequencer.fds == NULL || sequencer.wake < 0 || sequencer.listener < 0 ||
        getsockname(sequencer.listener, (struct sockaddr *)&own, &bytes) != 0 ||
        getrandom(&sequencer.key, sizeof(sequencer.key), 0) != (ssize_t)sizeof(sequencer.key))
        return by_fail(BY_EIO, "rank 0 cannot listen for the ranks of communicators: %s", strerror(errno));
    by_place_here(&here, ntohs(own.sin_port));
    by_place_write(&here, facts->door);
    facts->door_key = sequencer.key;
    return 0;
}

int by_mpi_sequencer_open(struct by_mpi_facts *facts)
{
    sigset_t all, before;
    int error = prepare(facts);

    if (error == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        sequencer.is_open = pthread_create(&sequencer.thread, NULL, serve, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!sequencer.is_open)
            error = by_fail(BY_ENOMEM, "rank 0 cannot start a thread for the ranks of communicators");
    }
    if (error != 0)
        release();
    return error;
}

void by_mpi_sequencer_close(void (*idle)(void))
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint32_t connected = 1;

    if (!sequencer.is_open)
        return;
    for (;;) {
        pthread_mutex_lock(&sequencer.lock);
        connected = sequencer.connected;
        sequencer.has_to_end = connected == 0;
        pthread_mutex_unlock(&sequencer.lock);
        if (connected == 0)
            break;
        idle();
        nanosleep(&pause, NULL);
    }
    (void)!write(sequencer.wake, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(sequencer.thread, NULL);
    release();
}
