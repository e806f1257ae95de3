/* The listeners of the server of hosts. See members.h. The loop's thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "control/base/alloc.h"
#include "control/service/daemon/listen.h"
#include "control/service/daemon/members_inside.h"
#include "offload/base/errors.h"

/* Handshakes per second, and in a burst (count): all hosts of a fabric connect at the same time. */
#define GREETED_PER_S 2000u
#define GREETED_BURST 256u
/* Descriptors reserved for other uses: in total, and for each switch (count). */
#define OTHERS     256u
#define FOR_SWITCH 4u

static void on_listener(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    int fd = accept4(watcher->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd >= 0)
        by_members_admit(daemon, fd, NULL);
}

/* Takes the connections that have completed the TLS handshake. */
static void on_greeted(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct by_greeted who;

    (void)watcher;
    (void)events;
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX && by_acceptor_take(daemon->members->acceptor, &who);
         i++) {
        if (who.tls != NULL)
            by_members_admit(daemon, who.fd, who.tls);
        else
            by_members_say_stranger(daemon, "a connection that is not from a host is refused: %s", who.text);
    }
}

/* Opens the thread for TLS handshakes. */
static int open_acceptor(struct by_daemon *daemon)
{
    struct by_members *members = daemon->members;
    struct by_acceptor_options options = {.handshakes = BY_ACCEPTOR_HANDSHAKES_MAX,
                                          .deadline_ms = BY_ACCEPTOR_DEADLINE_MS,
                                          .per_second = GREETED_PER_S,
                                          .burst = GREETED_BURST};
    const char *keys = daemon->options.access.keys;
    char text[BY_TLS_TEXT_MAX] =
        "TLS requires a controller's keys: name their folder with --keys or BANYAN_KEYS";

    if (keys == NULL || by_tls_identity_open(keys, BY_TLS_HOSTS, &members->identity, text) != 0) {
        fprintf(stderr, "banyand: --members tls: %s\n", text);
        return BY_EINVAL;
    }
    options.identity = members->identity;
    if (by_acceptor_open(&members->acceptor, &options) != 0) {
        fprintf(stderr, "banyand: --members tls: cannot start a thread for handshakes: %s\n",
                strerror(errno));
        return BY_EIO;
    }
    members->greeted = (struct by_watcher){.fd = by_acceptor_fd(members->acceptor), .ready = on_greeted};
    return by_daemon_watch(daemon, &members->greeted, EPOLLIN);
}

/* Whether hosts may use this plain address, since tables of keyed jobs contain keys. */
static int check_exposure(const struct by_daemon *daemon, const char *address, bool loopback)
{
    if (loopback || daemon->options.lower.cover == 0 || daemon->options.access.plain_keys)
        return 0;
    fprintf(stderr,
            "banyand: --members %s: tables of keyed jobs contain keys, which plain TCP would expose: use "
            "tls:%s, or --plain-keys where no other program can listen\n",
            address, address + 4);
    return BY_EINVAL;
}

static int open_listener(struct by_daemon *daemon, struct by_watcher *listener, const char *address)
{
    struct by_members *members = daemon->members;
    bool loopback = true, tls = strncmp(address, "tls:", 4) == 0;
    int error = tls && members->acceptor == NULL ? open_acceptor(daemon) : 0;

    if (error != 0)
        return error;
    listener->fd = strncmp(address, "unix:", 5) == 0 ? by_listen_unix(address + 5)
                                                     : by_listen_tcp(address + 4, &loopback);
    listener->ready = on_listener;
    if (listener->fd < 0) {
        fprintf(stderr, "banyand: --members %s: %s\n", address, strerror(errno));
        return BY_EIO;
    }
    members->listener_count++;
    if (tls)
        return by_acceptor_listen(members->acceptor, listener->fd);
    error = check_exposure(daemon, address, loopback);
    return error != 0 ? error : by_daemon_watch(daemon, listener, EPOLLIN);
}

/* Returns how many hosts may connect, so that descriptors remain for switches and other uses; at
 * least a quarter of all. Raises the limit of descriptors as far as permitted. */
static uint32_t count_room(const struct by_daemon *daemon)
{
    const rlim_t others = OTHERS + FOR_SWITCH * (rlim_t)daemon->switch_count, all = others + BY_MEMBERS_MAX;
    struct rlimit limit = {.rlim_cur = all, .rlim_max = all};
    rlim_t room;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < all) {
        limit.rlim_cur = limit.rlim_max < all ? limit.rlim_max : all;
        setrlimit(RLIMIT_NOFILE, &limit); /* always permitted up to the hard limit */
    }
    room = limit.rlim_cur > others ? limit.rlim_cur - others : 0;
    if (room < limit.rlim_cur / 4)
        room = limit.rlim_cur / 4;
    return room < BY_MEMBERS_MAX ? (uint32_t)room : BY_MEMBERS_MAX;
}

int by_members_open(struct by_daemon *daemon)
{
    int error = 0;

    daemon->members = by_alloc(1, sizeof(*daemon->members));
    daemon->members->prng.state = by_push_election();
    daemon->members->peers_max = count_room(daemon);
    by_strangers_start(&daemon->members->strangers);
    for (uint32_t i = 0; i < daemon->options.member_count && error == 0; i++)
        error = open_listener(daemon, &daemon->members->listeners[i], daemon->options.members[i]);
    return error;
}
