/*
 * Handshakes in a thread of their own; see acceptor.h. A place holds a connection from its
 * acceptance until the owner takes it or its other end has read the reason of a refusal. `lock`
 * guards the states of places and the contents of those that are READY or REFUSED, which the
 * owner's thread reads. Everything else of a place belongs to the acceptor's thread.
 */
#include "firmware/secure/acceptor.h"

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

/* After the system ran out of descriptors, no connections are accepted for this time (ms). */
#define REST_MS 100u

enum acceptor_state {
    FREE = 0,
    GREETS,  /* the handshake is in progress */
    READY,   /* it is done */
    REFUSED, /* the owner has still to read the reason */
    LEAVES,  /* input is discarded until the other end closes */
};

struct acceptor_place {
    enum acceptor_state state;
    int fd;
    struct by_tls *tls;
    short events;
    uint64_t since_ms;
    char text[BY_ACCEPTOR_TEXT_MAX];
};

struct by_acceptor {
    struct by_acceptor_options options;
    struct by_rate rate;
    pthread_t thread;
    pthread_mutex_t lock;
    int wake;           /* event that wakes the thread */
    int came;           /* event that signals the owner */
    uint64_t rested_ms; /* no connections are accepted before this time */
    bool end;
    unsigned listener_count;
    int listeners[BY_ACCEPTOR_LISTENERS_MAX];
    struct acceptor_place places[BY_ACCEPTOR_HANDSHAKES_MAX];
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

static void set_state(struct by_acceptor *acceptor, struct acceptor_place *place, enum acceptor_state state)
{
    pthread_mutex_lock(&acceptor->lock);
    place->state = state;
    pthread_mutex_unlock(&acceptor->lock);
    if (state == READY || state == REFUSED)
        signal_event(acceptor->came);
}

static enum acceptor_state state_of(struct by_acceptor *acceptor, const struct acceptor_place *place)
{
    enum acceptor_state state;

    pthread_mutex_lock(&acceptor->lock);
    state = place->state;
    pthread_mutex_unlock(&acceptor->lock);
    return state;
}

static void release(struct by_acceptor *acceptor, struct acceptor_place *place)
{
    by_tls_close(place->tls);
    place->tls = NULL;
    close(place->fd);
    place->fd = -1;
    set_state(acceptor, place, FREE);
}

/* Refuses a connection and lets the other end read the reason: closing a socket with unread bytes
 * would discard it. */
static void refuse(struct by_acceptor *acceptor, struct acceptor_place *place, const char *why)
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
    set_state(acceptor, place, REFUSED);
}

static void greet(struct by_acceptor *acceptor, struct acceptor_place *place)
{
    int result = by_tls_handshake(place->tls);

    if (result == 0)
        set_state(acceptor, place, READY);
    else if (result == BY_EAGAIN)
        place->events = by_tls_events(place->tls);
    else
        refuse(acceptor, place, by_tls_text(place->tls));
}

/* Discards a piece of a refused client's input; only a piece, because the input may never end. */
static void see_off(struct by_acceptor *acceptor, struct acceptor_place *place)
{
    char bytes[4096];
    ssize_t count = recv(place->fd, bytes, sizeof bytes, 0);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        release(acceptor, place);
}

/* Returns a free place, or the place of the handshake that has run for too long while others wait;
 * NULL when there is none. */
static struct acceptor_place *find_place(struct by_acceptor *acceptor, uint64_t now_ms)
{
    struct acceptor_place *oldest = NULL;

    for (unsigned i = 0; i < acceptor->options.handshakes; i++) {
        struct acceptor_place *place = &acceptor->places[i];
        enum acceptor_state state = state_of(acceptor, place);

        if (state == FREE)
            return place;
        if ((state == GREETS || state == LEAVES) && (!oldest || place->since_ms < oldest->since_ms))
            oldest = place;
    }
    if (!oldest || now_ms - oldest->since_ms < BY_ACCEPTOR_GRACE_MS)
        return NULL;
    release(acceptor, oldest);
    return oldest;
}

static void accept_one(struct by_acceptor *acceptor, int listener, struct acceptor_place *place,
                       uint64_t now_ms)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            acceptor->rested_ms = now_ms + REST_MS;
        return;
    }
    place->fd = fd;
    place->tls = by_tls_open(acceptor->options.identity, fd);
    place->since_ms = now_ms;
    place->events = POLLIN;
    if (place->tls)
        set_state(acceptor, place, GREETS);
    else
        refuse(acceptor, place, "no memory for TLS");
}

/* Returns the milliseconds until a connection may be accepted: 0 when one may be now. */
static uint64_t wait_to_accept(struct by_acceptor *acceptor, uint64_t now_ms)
{
    uint64_t rate_ms = (by_rate_wait_ns(&acceptor->rate, clock_ns()) + 999999u) / 1000000u;
    uint64_t wait_ms = acceptor->rested_ms > now_ms ? acceptor->rested_ms - now_ms : 0;
    uint64_t room_ms = UINT64_MAX;

    for (unsigned i = 0; i < acceptor->options.handshakes && room_ms > 0; i++) {
        const struct acceptor_place *place = &acceptor->places[i];
        enum acceptor_state state = state_of(acceptor, place);
        uint64_t age_ms = now_ms - place->since_ms, left_ms;

        if (state == READY || state == REFUSED)
            continue; /* the owner must act first, and wakes this thread */
        left_ms = state == FREE || age_ms >= BY_ACCEPTOR_GRACE_MS ? 0 : BY_ACCEPTOR_GRACE_MS - age_ms;
        room_ms = left_ms < room_ms ? left_ms : room_ms;
    }
    wait_ms = wait_ms > rate_ms ? wait_ms : rate_ms;
    return wait_ms > room_ms ? wait_ms : room_ms;
}

/* Fills the poll list: the event, each place that waits for its other end, and the listeners if
 * connections may be accepted. Returns the number of entries; `*places` is the number of places
 * among them, whose indices are in `index`. */
static unsigned gather(struct by_acceptor *acceptor, struct pollfd *fds, unsigned *index, unsigned *places,
                       int *timeout_ms)
{
    uint64_t now_ms = clock_ms(), accept_ms = wait_to_accept(acceptor, now_ms), next_ms = UINT64_MAX;
    unsigned count = 0;

    fds[count++] = (struct pollfd){.fd = acceptor->wake, .events = POLLIN};
    for (unsigned i = 0; i < acceptor->options.handshakes; i++) {
        struct acceptor_place *place = &acceptor->places[i];
        enum acceptor_state state = state_of(acceptor, place);
        uint64_t age_ms = now_ms - place->since_ms, left_ms;

        if (state != GREETS && state != LEAVES)
            continue;
        left_ms = age_ms < acceptor->options.deadline_ms ? acceptor->options.deadline_ms - age_ms : 0;
        next_ms = left_ms < next_ms ? left_ms : next_ms;
        index[count - 1] = i;
        fds[count++] = (struct pollfd){.fd = place->fd, .events = place->events};
    }
    *places = count - 1;
    pthread_mutex_lock(&acceptor->lock);
    for (unsigned i = 0; i < acceptor->listener_count && accept_ms == 0; i++)
        fds[count++] = (struct pollfd){.fd = acceptor->listeners[i], .events = POLLIN};
    pthread_mutex_unlock(&acceptor->lock);
    if (accept_ms > 0 && accept_ms < next_ms)
        next_ms = accept_ms;
    *timeout_ms = next_ms > BY_ACCEPTOR_DEADLINE_MS ? (int)BY_ACCEPTOR_DEADLINE_MS : (int)next_ms;
    return count;
}

/* Continues a place that waits for its other end; `here`: input has arrived. */
static void attend(struct by_acceptor *acceptor, struct acceptor_place *place, bool here, uint64_t now_ms)
{
    enum acceptor_state state = state_of(acceptor, place);

    if (here && state == GREETS)
        greet(acceptor, place);
    else if (here)
        see_off(acceptor, place);
    if (now_ms - place->since_ms < acceptor->options.deadline_ms)
        return;
    state = state_of(acceptor, place);
    if (state == GREETS)
        refuse(acceptor, place, "it did not authenticate in time");
    else if (state == LEAVES)
        release(acceptor, place);
}

/* One round: waits, continues the handshakes with input, and accepts one connection at each
 * listener. */
static void turn(struct by_acceptor *acceptor)
{
    struct pollfd fds[1 + BY_ACCEPTOR_HANDSHAKES_MAX + BY_ACCEPTOR_LISTENERS_MAX];
    unsigned index[BY_ACCEPTOR_HANDSHAKES_MAX + 1], places, count;
    int timeout_ms;
    uint64_t now_ms;

    count = gather(acceptor, fds, index, &places, &timeout_ms);
    if (poll(fds, count, timeout_ms) < 0)
        return;
    now_ms = clock_ms();
    if (fds[0].revents)
        clear_event(acceptor->wake);
    for (unsigned i = 0; i < places; i++)
        attend(acceptor, &acceptor->places[index[i]], fds[i + 1].revents != 0, now_ms);
    for (unsigned i = places + 1; i < count; i++) {
        struct acceptor_place *place;

        if (fds[i].revents && wait_to_accept(acceptor, now_ms) == 0 &&
            (place = find_place(acceptor, now_ms)) != NULL && by_rate_take(&acceptor->rate, clock_ns()))
            accept_one(acceptor, fds[i].fd, place, now_ms);
    }
}

static bool has_ended(struct by_acceptor *acceptor)
{
    bool end;

    pthread_mutex_lock(&acceptor->lock);
    end = acceptor->end;
    pthread_mutex_unlock(&acceptor->lock);
    return end;
}

static void *run(void *argument)
{
    struct by_acceptor *acceptor = argument;

    /* On Linux this applies to this thread only, which has inherited its opener's value. */
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + acceptor->options.niceness);
    while (!has_ended(acceptor))
        turn(acceptor);
    return NULL;
}

static void dispose(struct by_acceptor *acceptor)
{
    if (acceptor->wake >= 0)
        close(acceptor->wake);
    if (acceptor->came >= 0)
        close(acceptor->came);
    pthread_mutex_destroy(&acceptor->lock);
    free(acceptor);
}

int by_acceptor_open(struct by_acceptor **out, const struct by_acceptor_options *options)
{
    struct by_acceptor *acceptor = calloc(1, sizeof *acceptor);
    sigset_t all, before;
    int result;

    if (!acceptor)
        return BY_ENOMEM;
    acceptor->options = *options;
    by_rate_start(&acceptor->rate, options->per_second, options->burst);
    pthread_mutex_init(&acceptor->lock, NULL);
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX; i++)
        acceptor->places[i].fd = -1;
    acceptor->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    acceptor->came = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (acceptor->wake < 0 || acceptor->came < 0) {
        dispose(acceptor);
        return BY_EIO;
    }
    /* Signals are handled by the owner's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&acceptor->thread, NULL, run, acceptor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        dispose(acceptor);
        errno = result;
        return BY_EIO;
    }
    *out = acceptor;
    return 0;
}

void by_acceptor_close(struct by_acceptor *acceptor)
{
    if (!acceptor)
        return;
    pthread_mutex_lock(&acceptor->lock);
    acceptor->end = true;
    pthread_mutex_unlock(&acceptor->lock);
    signal_event(acceptor->wake);
    pthread_join(acceptor->thread, NULL);
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX; i++)
        if (acceptor->places[i].state != FREE)
            release(acceptor, &acceptor->places[i]);
    dispose(acceptor);
}

int by_acceptor_listen(struct by_acceptor *acceptor, int fd)
{
    int result = BY_ELIMIT;

    pthread_mutex_lock(&acceptor->lock);
    if (acceptor->listener_count < BY_ACCEPTOR_LISTENERS_MAX) {
        acceptor->listeners[acceptor->listener_count++] = fd;
        result = 0;
    }
    pthread_mutex_unlock(&acceptor->lock);
    signal_event(acceptor->wake);
    return result;
}

int by_acceptor_fd(const struct by_acceptor *acceptor)
{
    return acceptor->came;
}

bool by_acceptor_take(struct by_acceptor *acceptor, struct by_greeted *who)
{
    bool found = false;

    clear_event(acceptor->came); /* before the search, so that a later arrival sets it again */
    pthread_mutex_lock(&acceptor->lock);
    for (unsigned i = 0; i < acceptor->options.handshakes && !found; i++) {
        struct acceptor_place *place = &acceptor->places[i];

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
    pthread_mutex_unlock(&acceptor->lock);
    if (found) {
        signal_event(acceptor->came); /* there may be more */
        signal_event(acceptor->wake);
    }
    return found;
}
