/* Accepts connections and reads their greetings; see door.h. */
#include "host-driver/fallback/door.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/peers.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* A greeting follows its connection immediately. A connection that is silent for longer than this
 * may be evicted. */
#define PATIENCE_NS UINT64_C(500000000)
#define POLL_MAX_NS UINT64_C(60000000000)

void by_door_open(struct by_door *door, int listener, uint32_t bytes)
{
    BY_ASSERT(bytes > 0 && bytes <= BY_DOOR_GREETING);
    door->listener = listener;
    door->bytes = bytes;
    door->watch = -1;
    door->watched = 0;
    door->count = 0;
}

void by_door_close(struct by_door *door)
{
    for (uint32_t i = 0; i < door->count; i++)
        close(door->guest[i].fd);
    door->count = 0;
}

static void take_out(struct by_door *door, uint32_t index)
{
    door->count--;
    memmove(&door->guest[index], &door->guest[index + 1], (door->count - index) * sizeof(door->guest[0]));
}

/* Reads the available part of a greeting; false: no more bytes will arrive. */
static bool listen_to(const struct by_door *door, struct by_guest *guest)
{
    while (guest->have < door->bytes) {
        ssize_t got = recv(guest->fd, guest->greeting + guest->have, door->bytes - guest->have, MSG_DONTWAIT);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        guest->have += (uint32_t)got;
    }
    return true;
}

/* Returns the first connection with a complete greeting, or -1; removes closed connections. */
static int find_greeting(struct by_door *door, uint8_t *greeting)
{
    for (uint32_t i = 0; i < door->count;) {
        struct by_guest *guest = &door->guest[i];
        int fd = guest->fd;

        if (!listen_to(door, guest)) {
            close(fd);
            take_out(door, i);
        } else if (guest->have < door->bytes) {
            i++;
        } else {
            memcpy(greeting, guest->greeting, door->bytes);
            take_out(door, i);
            return fd;
        }
    }
    return -1;
}

/* Whether a connection waits. accept4 does not show it if no file can be opened: it allocates a
 * descriptor first. */
static bool has_one(const struct by_door *door)
{
    struct pollfd one = {.fd = door->listener, .events = POLLIN};

    return poll(&one, 1, 0) > 0;
}

/* Accepts a connection. 0, BY_EAGAIN if there is none, or BY_EIO. */
static int let_in(struct by_door *door, uint64_t now_ns)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = door->watched};
    int fd;

    do {
        fd = accept4(door->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            int why = errno;

            if (!has_one(door))
                return BY_EAGAIN;
            errno = why;
        }
    } while (fd < 0 && errno == EMFILE && by_files_raise());
    if (fd < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? BY_EAGAIN : BY_EIO;
    by_peer_prepare(fd);
    if (door->watch >= 0 && epoll_ctl(door->watch, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return BY_EIO;
    }
    door->guest[door->count++] = (struct by_guest){.fd = fd, .came_ns = now_ns};
    return 0;
}

/* Waits for a connection, a greeting, the next eviction or the deadline. True: a new connection. */
static bool wait_for_news(const struct by_door *door, uint64_t now_ns, uint64_t until_ns)
{
    struct pollfd fds[1 + BY_DOOR_GUESTS];
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;

    wait_ns = wait_ns < POLL_MAX_NS ? wait_ns : POLL_MAX_NS;
    fds[0] = (struct pollfd){.fd = door->count < BY_DOOR_GUESTS ? door->listener : -1, .events = POLLIN};
    for (uint32_t i = 0; i < door->count; i++)
        fds[1 + i] = (struct pollfd){.fd = door->guest[i].fd, .events = POLLIN};
    return poll(fds, 1 + door->count, (int)((wait_ns + 999999u) / 1000000u)) > 0 && fds[0].revents != 0;
}

/* Closes the oldest connection without a greeting if its room is needed and its time is over. */
static void evict(struct by_door *door, uint64_t now_ns)
{
    if (door->count < BY_DOOR_GUESTS || now_ns - door->guest[0].came_ns < PATIENCE_NS)
        return;
    close(door->guest[0].fd);
    take_out(door, 0);
}

int by_door_look(struct by_door *door, uint8_t *greeting)
{
    for (;;) {
        int fd = find_greeting(door, greeting), error;
        uint64_t now_ns;

        if (fd >= 0)
            return fd;
        now_ns = by_clock_ns();
        evict(door, now_ns);
        error = door->count < BY_DOOR_GUESTS ? let_in(door, now_ns) : BY_EAGAIN;
        if (error != 0)
            return error;
    }
}

int by_door_next(struct by_door *door, uint8_t *greeting, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now_ns = by_clock_ns(), until_ns = deadline_ns;
        int fd = find_greeting(door, greeting);

        if (fd >= 0)
            return fd;
        if (now_ns >= deadline_ns)
            return BY_ETIMEDOUT;
        evict(door, now_ns);
        if (door->count == BY_DOOR_GUESTS && door->guest[0].came_ns + PATIENCE_NS < until_ns)
            until_ns = door->guest[0].came_ns + PATIENCE_NS;
        if (wait_for_news(door, now_ns, until_ns) && let_in(door, now_ns) == BY_EIO)
            return BY_EIO;
    }
}
