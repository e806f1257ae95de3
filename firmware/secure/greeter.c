/*
 * Handshakes in a thread of their own; see greeter.h. A place holds a connection from its acceptance until it
 * is taken, or has read why it is refused. `lock` guards the states of places, and what is in those that are
 * READY or REFUSED, which the owner's thread looks at; the rest of a place is the greeter's thread's.
 */
#include "firmware/secure/greeter.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/errors.h"
#include "offload/base/rate.h"

/* Nobody is accepted for so long after the system has no more descriptors (ms). */
#define REST_MS 100u

enum greeter_state {
    FREE = 0,
    GREETS,  /* the handshake goes on */
    READY,   /* it is done */
    REFUSED, /* the owner is to read why */
    LEAVES,  /* what it still sends is forgotten, until it closes */
};

struct greeter_place {
    enum greeter_state state;
    int fd;
    struct by_tls *tls;
    short events;
    uint64_t since_ms;
    char text[BY_GREETER_TEXT_MAX];
};

struct by_greeter {
    struct by_greeter_options options;
    struct by_rate rate;
    pthread_t thread;
    pthread_mutex_t lock;
    int wake;           /* an event: the thread is to look again */
    int came;           /* an event: the owner is to take */
    uint64_t rested_ms; /* nobody is accepted before */
    bool end;
    unsigned listener_count;
    int listeners[BY_GREETER_LISTENERS_MAX];
    struct greeter_place places[BY_GREETER_HANDSHAKES_MAX];
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ms(void)
{
    return clock_ns() / 1000000u;
}

static void signal_event(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one);
}

static void clear_event(int fd)
{
    uint64_t count;

    (void)!read(fd, &count, sizeof count);
}

static void set_state(struct by_greeter *greeter, struct greeter_place *place, enum greeter_state state)
{
    pthread_mutex_lock(&greeter->lock);
    place->state = state;
    pthread_mutex_unlock(&greeter->lock);
    if (state == READY || state == REFUSED)
        signal_event(greeter->came);
}

static enum greeter_state state_of(struct by_greeter *greeter, const struct greeter_place *place)
{
    enum greeter_state state;

    pthread_mutex_lock(&greeter->lock);
    state = place->state;
    pthread_mutex_unlock(&greeter->lock);
    return state;
}

static void release(struct by_greeter *greeter, struct greeter_place *place)
{
    by_tls_close(place->tls);
    place->tls = NULL;
    close(place->fd);
    place->fd = -1;
    set_state(greeter, place, FREE);
}

/* Has the other end read what was said last: a socket that is closed with bytes unread takes that back. */
static void refuse(struct by_greeter *greeter, struct greeter_place *place, const char *why)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    char host[64] = "";

    if (getpeername(place->fd, (struct sockaddr *)&address, &bytes) == 0)
        getnameinfo((struct sockaddr *)&address, bytes, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    snprintf(place->text, sizeof place->text, "%s%s%s", host, host[0] ? ": " : "", why);
    by_tls_close(place->tls);
    place->tls = NULL;
    place->events = POLLIN;
    shutdown(place->fd, SHUT_WR);
    set_state(greeter, place, REFUSED);
}

static void greet(struct by_greeter *greeter, struct greeter_place *place)
{
    int result = by_tls_handshake(place->tls);

    if (result == 0)
        set_state(greeter, place, READY);
    else if (result == BY_EAGAIN)
        place->events = by_tls_events(place->tls);
    else
        refuse(greeter, place, by_tls_text(place->tls));
}

/* Forgets what somebody who was refused sends: a piece of it, as he may never end. */
static void see_off(struct by_greeter *greeter, struct greeter_place *place)
{
    char bytes[4096];
    ssize_t count = recv(place->fd, bytes, sizeof bytes, 0);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        release(greeter, place);
}

/* A free place, or that of who has been at it for too long while others wait; NULL when there is none. */
static struct greeter_place *find_place(struct by_greeter *greeter, uint64_t now_ms)
{
    struct greeter_place *oldest = NULL;

    for (unsigned i = 0; i < greeter->options.handshakes; i++) {
        struct greeter_place *place = &greeter->places[i];
        enum greeter_state state = state_of(greeter, place);

        if (state == FREE)
            return place;
        if ((state == GREETS || state == LEAVES) && (!oldest || place->since_ms < oldest->since_ms))
            oldest = place;
    }
    if (!oldest || now_ms - oldest->since_ms < BY_GREETER_GRACE_MS)
        return NULL;
    release(greeter, oldest);
    return oldest;
}

static void accept_one(struct by_greeter *greeter, int listener, struct greeter_place *place, uint64_t now_ms)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            greeter->rested_ms = now_ms + REST_MS;
        return;
    }
    place->fd = fd;
    place->tls = by_tls_open(greeter->options.identity, fd);
    place->since_ms = now_ms;
    place->events = POLLIN;
    if (place->tls)
        set_state(greeter, place, GREETS);
    else
        refuse(greeter, place, "no memory for TLS");
}

/* Milliseconds until nobody is kept waiting any more: 0 when somebody may be accepted. */
static uint64_t wait_to_accept(struct by_greeter *greeter, uint64_t now_ms)
{
    uint64_t rate_ms = (by_rate_wait_ns(&greeter->rate, clock_ns()) + 999999u) / 1000000u;
    uint64_t wait_ms = greeter->rested_ms > now_ms ? greeter->rested_ms - now_ms : 0;
    uint64_t room_ms = UINT64_MAX;

    for (unsigned i = 0; i < greeter->options.handshakes && room_ms > 0; i++) {
        const struct greeter_place *place = &greeter->places[i];
        enum greeter_state state = state_of(greeter, place);
        uint64_t age_ms = now_ms - place->since_ms, left_ms;

        if (state == READY || state == REFUSED)
            continue; /* the owner's turn, who wakes us */
        left_ms = state == FREE || age_ms >= BY_GREETER_GRACE_MS ? 0 : BY_GREETER_GRACE_MS - age_ms;
        room_ms = left_ms < room_ms ? left_ms : room_ms;
    }
    wait_ms = wait_ms > rate_ms ? wait_ms : rate_ms;
    return wait_ms > room_ms ? wait_ms : room_ms;
}

/* What to poll: the event, each place that waits for its other end, and the listeners when somebody may come
 * in. Returns how many; `*places` how many of them are places, whose numbers are in `index`. */
static unsigned gather(struct by_greeter *greeter, struct pollfd *fds, unsigned *index, unsigned *places,
                       int *timeout_ms)
{
    uint64_t now_ms = clock_ms(), accept_ms = wait_to_accept(greeter, now_ms), next_ms = UINT64_MAX;
    unsigned count = 0;

    fds[count++] = (struct pollfd){.fd = greeter->wake, .events = POLLIN};
    for (unsigned i = 0; i < greeter->options.handshakes; i++) {
        struct greeter_place *place = &greeter->places[i];
        enum greeter_state state = state_of(greeter, place);
        uint64_t age_ms = now_ms - place->since_ms, left_ms;

        if (state != GREETS && state != LEAVES)
            continue;
        left_ms = age_ms < greeter->options.deadline_ms ? greeter->options.deadline_ms - age_ms : 0;
        next_ms = left_ms < next_ms ? left_ms : next_ms;
        index[count - 1] = i;
        fds[count++] = (struct pollfd){.fd = place->fd, .events = place->events};
    }
    *places = count - 1;
    pthread_mutex_lock(&greeter->lock);
    for (unsigned i = 0; i < greeter->listener_count && accept_ms == 0; i++)
        fds[count++] = (struct pollfd){.fd = greeter->listeners[i], .events = POLLIN};
    pthread_mutex_unlock(&greeter->lock);
    if (accept_ms > 0 && accept_ms < next_ms)
        next_ms = accept_ms;
    *timeout_ms = next_ms > BY_GREETER_DEADLINE_MS ? (int)BY_GREETER_DEADLINE_MS : (int)next_ms;
    return count;
}

/* Goes on with a place that waits for its other end: `here` when that has said something. */
static void attend(struct by_greeter *greeter, struct greeter_place *place, bool here, uint64_t now_ms)
{
    enum greeter_state state = state_of(greeter, place);

    if (here && state == GREETS)
        greet(greeter, place);
    else if (here)
        see_off(greeter, place);
    if (now_ms - place->since_ms < greeter->options.deadline_ms)
        return;
    state = state_of(greeter, place);
    if (state == GREETS)
        refuse(greeter, place, "it has not shown who it is in time");
    else if (state == LEAVES)
        release(greeter, place);
}

/* One round: waits, goes on with those who are here, and accepts one at each listener. */
static void turn(struct by_greeter *greeter)
{
    struct pollfd fds[1 + BY_GREETER_HANDSHAKES_MAX + BY_GREETER_LISTENERS_MAX];
    unsigned index[BY_GREETER_HANDSHAKES_MAX + 1], places, count;
    int timeout_ms;
    uint64_t now_ms;

    count = gather(greeter, fds, index, &places, &timeout_ms);
    if (poll(fds, count, timeout_ms) < 0)
        return;
    now_ms = clock_ms();
    if (fds[0].revents)
        clear_event(greeter->wake);
    for (unsigned i = 0; i < places; i++)
        attend(greeter, &greeter->places[index[i]], fds[i + 1].revents != 0, now_ms);
    for (unsigned i = places + 1; i < count; i++) {
        struct greeter_place *place;

        if (fds[i].revents && wait_to_accept(greeter, now_ms) == 0 &&
            (place = find_place(greeter, now_ms)) != NULL && by_rate_take(&greeter->rate, clock_ns()))
            accept_one(greeter, fds[i].fd, place, now_ms);
    }
}

static bool has_ended(struct by_greeter *greeter)
{
    bool end;

    pthread_mutex_lock(&greeter->lock);
    end = greeter->end;
    pthread_mutex_unlock(&greeter->lock);
    return end;
}

static void *run(void *argument)
{
    struct by_greeter *greeter = argument;

    /* Of this thread alone, as Linux has it, which has its opener's so far. */
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + greeter->options.niceness);
    while (!has_ended(greeter))
        turn(greeter);
    return NULL;
}

static void dispose(struct by_greeter *greeter)
{
    if (greeter->wake >= 0)
        close(greeter->wake);
    if (greeter->came >= 0)
        close(greeter->came);
    pthread_mutex_destroy(&greeter->lock);
    free(greeter);
}

int by_greeter_open(struct by_greeter **out, const struct by_greeter_options *options)
{
    struct by_greeter *greeter = calloc(1, sizeof *greeter);
    sigset_t all, before;
    int result;

    if (!greeter)
        return BY_ENOMEM;
    greeter->options = *options;
    by_rate_start(&greeter->rate, options->per_second, options->burst);
    pthread_mutex_init(&greeter->lock, NULL);
    for (unsigned i = 0; i < BY_GREETER_HANDSHAKES_MAX; i++)
        greeter->places[i].fd = -1;
    greeter->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    greeter->came = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (greeter->wake < 0 || greeter->came < 0) {
        dispose(greeter);
        return BY_EIO;
    }
    /* Signals are the owner's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&greeter->thread, NULL, run, greeter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        dispose(greeter);
        errno = result;
        return BY_EIO;
    }
    *out = greeter;
    return 0;
}

void by_greeter_close(struct by_greeter *greeter)
{
    if (!greeter)
        return;
    pthread_mutex_lock(&greeter->lock);
    greeter->end = true;
    pthread_mutex_unlock(&greeter->lock);
    signal_event(greeter->wake);
    pthread_join(greeter->thread, NULL);
    for (unsigned i = 0; i < BY_GREETER_HANDSHAKES_MAX; i++)
        if (greeter->places[i].state != FREE)
            release(greeter, &greeter->places[i]);
    dispose(greeter);
}

int by_greeter_listen(struct by_greeter *greeter, int fd)
{
    int result = BY_ELIMIT;

    pthread_mutex_lock(&greeter->lock);
    if (greeter->listener_count < BY_GREETER_LISTENERS_MAX) {
        greeter->listeners[greeter->listener_count++] = fd;
        result = 0;
    }
    pthread_mutex_unlock(&greeter->lock);
    signal_event(greeter->wake);
    return result;
}

int by_greeter_fd(const struct by_greeter *greeter)
{
    return greeter->came;
}

bool by_greeter_take(struct by_greeter *greeter, struct by_greeted *who)
{
    bool found = false;

    clear_event(greeter->came); /* before the look: who comes after it sets it again */
    pthread_mutex_lock(&greeter->lock);
    for (unsigned i = 0; i < greeter->options.handshakes && !found; i++) {
        struct greeter_place *place = &greeter->places[i];

        found = place->state == READY || place->state == REFUSED;
        if (place->state == READY) {
            *who = (struct by_greeted){.tls = place->tls, .fd = place->fd};
            place->tls = NULL;
            place->fd = -1;
            place->state = FREE;
        } else if (place->state == REFUSED) {
            *who = (struct by_greeted){.fd = -1};
            memcpy(who->text, place->text, sizeof who->text);
            place->state = LEAVES;
        }
    }
    pthread_mutex_unlock(&greeter->lock);
    if (found) {
        signal_event(greeter->came); /* there may be more */
        signal_event(greeter->wake);
    }
    return found;
}
