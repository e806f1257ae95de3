/*
 * Sockets of the control channel. Each client has a channel (the message being received) and an
 * output buffer for one answer. Until that is written, no further request of the client is handled,
 * so a client that does not read cannot increase the switch's memory. One thread; TLS handshakes
 * take place in another (firmware/secure/acceptor.h), and a TLS connection becomes a client once it
 * has authenticated.
 */
#include "firmware/linux/server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "firmware/agent/refuse.h"
#include "firmware/linux/carrier.h"
#include "firmware/linux/options.h"
#include "firmware/secure/acceptor.h"
#include "firmware/secure/hostport.h"
#include "firmware/secure/strangers.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* Maximum concurrent clients (count): controllers, `banyan show`, a monitor. */
#define CLIENTS_MAX 16u
/* Places for clients that are refused because all places are taken (count). */
#define SPARES 4u
/* How long a client that has sent valid requests keeps its place without further ones when others
 * need it (ns): a client that only reads, and a controller. */
#define READER_IDLE_NS 5000000000u
#define WRITER_IDLE_NS 60000000000u
/* New clients: per second in the long run, and in a burst (count). A TLS handshake takes a
 * millisecond of processor time. Further connections wait in the listen queue. */
#define ARRIVALS_PER_S 100u
#define ARRIVALS_BURST 64u
/* Concurrent handshakes (count), and the nice value of their thread relative to the one that moves
 * packets, in case both share a processor. */
#define HANDSHAKES 32u
#define NICENESS   10
/* Connections that may wait in the listen queue (count). */
#define BACKLOG 128
/* Events and answers per call (count), so that packets are not delayed. */
#define EVENTS_MAX  16
#define ANSWERS_MAX 8u
#define READ_BYTES  16384u
/* Minimum time between two notices about carriers (ns), so that a port whose carrier flaps does not
 * take the time of packets. */
#define NOTICE_NS 10000000u

struct client {
    int fd;             /* -1: free */
    struct by_tls *tls; /* NULL: plain bytes */
    bool heard;         /* one of its requests succeeded; over TLS, it has authenticated */
    bool writes;        /* a request of it as writer (a controller) was accepted */
    uint64_t heard_ns;  /* time of the last such request */
    bool leaving;       /* refused: its input is discarded until it closes */
    bool paused;        /* it sent requests too fast: its socket is not read for a while */
    bool noticed;       /* a notice waits until it can be written */
    uint64_t arrival;   /* sequence number of the client */
    struct by_channel channel;
    uint32_t in_have, in_done;
    uint32_t out_have, out_done;
    uint8_t in[READ_BYTES];
    uint8_t out[BY_CHANNEL_OUT_MIN];
};

struct listener {
    int fd;
    bool secure;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of the socket file to remove, or "" */
};

struct by_server {
    int epoll;
    struct by_agent *agent;
    struct by_carrier *carrier; /* NULL: lost carriers are not reported */
    bool changed;               /* a carrier has changed since the last notices */
    uint64_t noticed_ns;        /* time of the last notices */
    struct by_tls_identity *identity;
    struct by_acceptor *acceptor; /* NULL: there are no TLS listeners */
    uint64_t arrivals;
    struct by_rate rate; /* limits new clients */
    bool paused;         /* too many arrived: none are accepted for a while */
    struct by_strangers refused;
    unsigned listener_count;
    struct listener listeners[BY_LISTENERS_MAX];
    struct client clients[CLIENTS_MAX + SPARES];
};

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int watch(struct by_server *server, int fd, uint32_t events, void *what, int operation)
{
    struct epoll_event event = {.events = events, .data.ptr = what};

    return epoll_ctl(server->epoll, operation, fd, &event);
}

/* Removes a UNIX socket's file that a crash has left behind: nothing listens on it. */
static int remove_dead_socket(const struct sockaddr_un *address)
{
    struct stat status;
    int fd, result = 0;

    if (lstat(address->sun_path, &status) != 0)
        return 0;
    if (!S_ISSOCK(status.st_mode)) {
        by_say("--control unix:%s: the file there is not a socket: remove it or choose another path",
               address->sun_path);
        return BY_EEXIST;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
        by_say("--control unix:%s: another switch listens there: choose another path", address->sun_path);
        result = BY_EEXIST;
    } else {
        unlink(address->sun_path);
    }
    if (fd >= 0)
        close(fd);
    return result;
}

static int open_unix(struct listener *listener, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int result;

    if (strlen(path) == 0 || strlen(path) >= sizeof address.sun_path) {
        by_say("--control unix:%s: a path has 1 to %zu bytes", path, sizeof address.sun_path - 1);
        return BY_EFORMAT;
    }
    memcpy(address.sun_path, path, strlen(path));
    if ((result = remove_dead_socket(&address)) != 0)
        return result;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* The mode is set before bind, which creates the file, so that other users never have
     * access. */
    if (listener->fd < 0 || fchmod(listener->fd, 0600) != 0 ||
        bind(listener->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        by_say("--control unix:%s: %s%s", path, strerror(errno),
               errno == ENOENT ? ": make the folder first" : "");
        return BY_EIO;
    }
    snprintf(listener->path, sizeof listener->path, "%s", path);
    return 0;
}

/* Opens "ADDRESS:PORT" or "[IPV6]:PORT", after "tcp:" or "tls:". */
static int open_tcp(struct listener *listener, const char *scheme, const char *text)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    struct by_hostport at;
    int one = 1, result = 0;

    if (by_hostport_read(text, strlen(text), &at) != 0 || strlen(at.port) > 5 ||
        strtoul(at.port, NULL, 10) < 1 || strtoul(at.port, NULL, 10) > 65535 ||
        getaddrinfo(at.host[0] ? at.host : NULL, at.port, &hints, &info) != 0) {
        by_say("--control %s:%s: it must be %s:ADDRESS:PORT with a numeric address, such as %s:127.0.0.1:%u",
               scheme, text, scheme, scheme, BY_CONTROL_PORT);
        return BY_EFORMAT;
    }
    if (!listener->secure && !by_hostport_is_loopback(info->ai_addr)) {
        by_say(
            "--control tcp:%s: any host that reaches that address could load tables: use tls:%s with --keys",
            text, text);
        freeaddrinfo(info);
        return BY_EFORMAT;
    }
    listener->fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(listener->fd, info->ai_addr, info->ai_addrlen) != 0) {
        by_say("--control %s:%s: %s", scheme, text, strerror(errno));
        result = errno == EADDRINUSE ? BY_EEXIST : BY_EIO;
    }
    freeaddrinfo(info);
    return result;
}

static int open_listener(struct by_server *server, const char *address)
{
    struct listener *listener = &server->listeners[server->listener_count++];
    int result;

    *listener = (struct listener){.fd = -1, .secure = strncmp(address, "tls:", 4) == 0};
    result = strncmp(address, "unix:", 5) == 0
                 ? open_unix(listener, address + 5)
                 : open_tcp(listener, listener->secure ? "tls" : "tcp", address + 4);
    if (result != 0)
        return result;
    if (listen(listener->fd, BACKLOG) != 0 ||
        (!listener->secure && watch(server, listener->fd, EPOLLIN, listener, EPOLL_CTL_ADD) != 0)) {
        by_say("--control %s: %s", address, strerror(errno));
        return BY_EIO;
    }
    return listener->secure ? by_acceptor_listen(server->acceptor, listener->fd) : 0;
}

/* Reads the keys and starts the acceptor's thread. This precedes other start-up code that restricts
 * the processors of threads. */
static int open_acceptor(struct by_server *server, const char *keys)
{
    struct by_acceptor_options options = {.handshakes = HANDSHAKES,
                                          .deadline_ms = BY_ACCEPTOR_DEADLINE_MS,
                                          .per_second = ARRIVALS_PER_S,
                                          .burst = ARRIVALS_BURST,
                                          .niceness = NICENESS};
    char text[BY_TLS_TEXT_MAX];
    int result = by_tls_identity_open(keys, BY_TLS_SWITCH, &server->identity, text);

    if (result != 0) {
        by_say("--keys %s", text);
        return BY_EINVAL; /* any defect of the keys is the user's, who named the folder */
    }
    options.identity = server->identity;
    result = by_acceptor_open(&server->acceptor, &options);
    if (result == 0 &&
        watch(server, by_acceptor_fd(server->acceptor), EPOLLIN, server->acceptor, EPOLL_CTL_ADD) != 0)
        result = BY_EIO;
    if (result != 0)
        by_say("--keys %s: cannot start a thread for handshakes: %s", keys, strerror(errno));
    return result;
}

int by_server_open(struct by_server **out, const char *const *addresses, unsigned count, const char *keys)
{
    struct by_server *server = calloc(1, sizeof *server);
    int result = 0;

    if (!server)
        return BY_ENOMEM;
    for (unsigned i = 0; i < CLIENTS_MAX + SPARES; i++)
        server->clients[i].fd = -1;
    by_rate_start(&server->rate, ARRIVALS_PER_S, ARRIVALS_BURST);
    by_strangers_start(&server->refused);
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll < 0)
        result = BY_EIO;
    if (keys && result == 0)
        result = open_acceptor(server, keys);
    for (unsigned i = 0; i < count && result == 0; i++)
        result = open_listener(server, addresses[i]);
    if (result != 0) {
        by_server_close(server);
        return result;
    }
    *out = server;
    return 0;
}

int by_server_fd(const struct by_server *server)
{
    return server->epoll;
}

void by_server_attach(struct by_server *server, struct by_agent *agent)
{
    server->agent = agent;
}

void by_server_watch(struct by_server *server, struct by_carrier *carrier)
{
    server->carrier = carrier;
    if (carrier && by_carrier_fd(carrier) >= 0 &&
        watch(server, by_carrier_fd(carrier), EPOLLIN, carrier, EPOLL_CTL_ADD) != 0)
        by_say("no messages about lost carriers: %s", strerror(errno));
}

static void drop_client(struct client *client)
{
    by_tls_close(client->tls);
    client->tls = NULL;
    close(client->fd);
    client->fd = -1;
}

/* Logs a refused client, on standard error and in the journal, at a limited rate. NULL: no new one,
 * but report those suppressed before if it is time. */
static void say_refused(struct by_server *server, const char *why)
{
    char line[BY_ACCEPTOR_TEXT_MAX + BY_STRANGERS_MORE_MAX + 64], more[BY_STRANGERS_MORE_MAX] = "";

    if (!(why ? by_strangers_come : by_strangers_rest)(&server->refused, clock_ns(), more))
        return;
    snprintf(line, sizeof line, "a control client was refused%s%s%s", more, why ? ": " : "", why ? why : "");
    by_say("%s", line);
    by_agent_note(server->agent, line);
}

/* Lets a refused client read the reason: closing a socket with unread bytes would discard what was
 * sent on it. */
static void show_out(struct by_server *server, struct client *client)
{
    client->leaving = true;
    shutdown(client->fd, SHUT_WR);
    watch(server, client->fd, EPOLLIN, client, EPOLL_CTL_MOD);
}

/* Discards a piece of a refused client's input; only a piece, because the input may never end. */
static void see_off(struct client *client)
{
    ssize_t count = recv(client->fd, client->in, sizeof client->in, 0);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        drop_client(client);
}

/* Returns the priority for evicting `client` in favour of a new one: first clients without a valid
 * request, the oldest first; then clients idle beyond their limit, the longest first. 0: it keeps
 * its place. */
static uint64_t claim_on(const struct client *client, uint64_t now)
{
    uint64_t idle = now - client->heard_ns;

    if (!client->heard)
        return UINT64_MAX - client->arrival;
    return idle > (client->writes ? WRITER_IDLE_NS : READER_IDLE_NS) ? idle : 0;
}

/* Returns a free place, or that of an evicted client (claim_on), so that connections without a
 * session cannot block controllers. Returns NULL when all clients keep theirs. */
static struct client *find_place(struct by_server *server)
{
    uint64_t now = clock_ns(), most = 0;
    struct client *leaves = NULL;

    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];
        uint64_t claim;

        if (client->fd < 0)
            return client;
        claim = claim_on(client, now);
        if (claim > most) {
            most = claim;
            leaves = client;
        }
    }
    if (leaves)
        drop_client(leaves);
    return leaves;
}

/* Refuses a client because all places are taken, with a message if its protocol allows one. */
static void turn_away(struct by_server *server, struct by_tls *tls, int fd)
{
    struct client *spare = NULL;
    char text[128];
    size_t bytes;

    snprintf(text, sizeof text, "connections: %u clients are connected, the limit: disconnect one of them",
             CLIENTS_MAX);
    say_refused(server, text);
    for (unsigned i = CLIENTS_MAX; i < CLIENTS_MAX + SPARES && !tls; i++)
        if (server->clients[i].fd < 0)
            spare = &server->clients[i];
    if (!spare || watch(server, fd, EPOLLIN, spare, EPOLL_CTL_ADD) != 0) {
        by_tls_close(tls);
        close(fd);
        return;
    }
    spare->fd = fd;
    bytes = by_refuse(BY_ELIMIT, text, spare->out + BY_CONTROL_LENGTH_BYTES,
                      sizeof spare->out - BY_CONTROL_LENGTH_BYTES);
    by_put32(spare->out, (uint32_t)bytes);
    /* The message fits an empty socket's buffer. */
    (void)send(fd, spare->out, BY_CONTROL_LENGTH_BYTES + bytes, MSG_NOSIGNAL);
    show_out(server, spare);
}

/* Turns a connection into a client. */
static void admit(struct by_server *server, struct by_tls *tls, int fd)
{
    struct client *client = find_place(server);

    if (!client) {
        turn_away(server, tls, fd);
        return;
    }
    client->fd = fd;
    client->tls = tls;
    client->heard = tls != NULL;
    client->heard_ns = clock_ns();
    client->writes = false;
    client->leaving = client->paused = client->noticed = false;
    client->arrival = server->arrivals++;
    client->in_have = client->in_done = client->out_have = client->out_done = 0;
    by_channel_init(&client->channel, NULL);
    if (watch(server, fd, EPOLLIN, client, EPOLL_CTL_ADD) != 0)
        drop_client(client);
}

static void accept_client(struct by_server *server, const struct listener *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
        admit(server, NULL, fd);
}

/* Takes the authenticated TLS connections. */
static void take_greeted(struct by_server *server)
{
    struct by_greeted who;

    for (unsigned i = 0; i < CLIENTS_MAX && by_acceptor_take(server->acceptor, &who); i++) {
        if (who.tls)
            admit(server, who.tls, who.fd);
        else
            say_refused(server, who.text);
    }
}

/* Pauses or resumes all listeners. */
static void pause_arrivals(struct by_server *server, bool paused)
{
    if (paused)
        by_agent_note(server->agent, "control clients connect faster than the limit: they wait");
    server->paused = paused;
    for (unsigned i = 0; i < server->listener_count; i++)
        if (!server->listeners[i].secure)
            watch(server, server->listeners[i].fd, paused ? 0 : EPOLLIN, &server->listeners[i],
                  EPOLL_CTL_MOD);
}

/* Writes pending output. Returns false when the client is gone or its socket buffers are full. */
static bool write_out(struct client *client)
{
    while (client->out_done < client->out_have) {
        int64_t sent = by_tls_move(client->tls, client->fd, NULL, client->out + client->out_done,
                                   client->out_have - client->out_done);

        if (sent == BY_EAGAIN)
            return false;
        if (sent <= 0) {
            drop_client(client);
            return false;
        }
        client->out_done += (uint32_t)sent;
    }
    client->out_have = client->out_done = 0;
    return true;
}

/* Makes the notice that a client is to get, unless one of its answers is being written. */
static void make_notice(struct by_server *server, struct client *client)
{
    if (!client->noticed || client->out_have > 0)
        return;
    client->noticed = false;
    client->out_have =
        (uint32_t)by_channel_notice(&client->channel, server->agent, client->out, sizeof client->out);
}

/* Handles one message from the input. Returns false when more bytes are needed. */
static bool answer_one(struct by_server *server, struct client *client)
{
    while (client->in_done < client->in_have) {
        uint64_t writes = by_agent_writes(server->agent);
        size_t used;
        int32_t made =
            by_channel_step(&client->channel, server->agent, client->in + client->in_done,
                            client->in_have - client->in_done, &used, client->out, sizeof client->out);

        client->in_done += (uint32_t)used;
        if (made < 0)
            return false;
        if (made > 0) {
            if (!client->channel.closed && !client->channel.hasty &&
                by_agent_last_error(server->agent) == 0) {
                client->heard = true;
                client->heard_ns = clock_ns();
            }
            client->writes |= by_agent_writes(server->agent) != writes;
            client->out_have = (uint32_t)made;
            return true;
        }
    }
    return false;
}

/* Handles everything that a client's socket allows now. */
static void serve_client(struct by_server *server, struct client *client)
{
    if (client->leaving) {
        see_off(client);
        return;
    }
    for (unsigned i = 0; i < ANSWERS_MAX; i++) {
        int64_t received;

        if (!write_out(client))
            break;
        make_notice(server, client);
        if (client->out_have > 0)
            continue;
        if (client->channel.closed) {
            drop_client(client);
            return;
        }
        if (by_channel_wait_ns(&client->channel, server->agent) > 0) {
            client->paused = true;
            watch(server, client->fd, 0, client, EPOLL_CTL_MOD);
            return;
        }
        if (answer_one(server, client))
            continue;
        received = by_tls_move(client->tls, client->fd, client->in, NULL, sizeof client->in);
        if (received == BY_EAGAIN)
            break;
        if (received <= 0) {
            drop_client(client);
            return;
        }
        client->in_have = (uint32_t)received;
        client->in_done = 0;
    }
    /* epoll does not report bytes that are in memory already; requesting EPOLLOUT triggers an event
     * at once. */
    if (client->fd >= 0)
        watch(server, client->fd,
              client->out_have                    ? EPOLLOUT
              : client->in_done < client->in_have ? EPOLLIN | EPOLLOUT
                                                  : EPOLLIN,
              client, EPOLL_CTL_MOD);
}

/* Resumes the clients and listeners whose pause has ended. */
static void resume(struct by_server *server)
{
    if (server->paused && by_rate_wait_ns(&server->rate, clock_ns()) == 0)
        pause_arrivals(server, false);
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];

        if (client->fd < 0 || !client->paused || by_channel_wait_ns(&client->channel, server->agent) > 0)
            continue;
        client->paused = false;
        client->channel.hasty = 0;
        serve_client(server, client);
    }
}

/* Notifies the clients that have requested it when a carrier has changed: of the first change at
 * once, of further ones at intervals of NOTICE_NS. */
static void notify_carriers(struct by_server *server)
{
    uint64_t now = clock_ns();

    if (!server->carrier)
        return;
    server->changed |= by_carrier_changed(server->carrier, now);
    if (!server->changed || now - server->noticed_ns < NOTICE_NS)
        return;
    server->changed = false;
    server->noticed_ns = now;
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];

        if (client->fd < 0 || client->leaving || client->channel.closed || !client->channel.notify)
            continue;
        client->noticed = true;
        serve_client(server, client);
    }
}

void by_server_serve(void *context)
{
    struct by_server *server = context;
    struct epoll_event events[EVENTS_MAX];
    int count;

    if (!server->agent)
        return;
    resume(server);
    if (server->refused.more > 0)
        say_refused(server, NULL);
    notify_carriers(server);
    count = epoll_wait(server->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        char *what = events[i].data.ptr;

        if (what == (char *)server->acceptor) {
            take_greeted(server);
        } else if (what == (char *)server->carrier) {
            notify_carriers(server);
        } else if (what >= (char *)server->listeners &&
                   what < (char *)(server->listeners + BY_LISTENERS_MAX)) {
            if (!server->paused && by_rate_take(&server->rate, clock_ns()))
                accept_client(server, (const struct listener *)what);
            else if (!server->paused)
                pause_arrivals(server, true);
        } else if (((struct client *)what)->fd >= 0) {
            serve_client(server, (struct client *)what);
        }
    }
}

void by_server_close(struct by_server *server)
{
    if (!server)
        return;
    by_acceptor_close(server->acceptor);
    for (unsigned i = 0; i < CLIENTS_MAX + SPARES; i++)
        if (server->clients[i].fd >= 0)
            drop_client(&server->clients[i]);
    for (unsigned i = 0; i < server->listener_count; i++) {
        if (server->listeners[i].fd >= 0)
            close(server->listeners[i].fd);
        if (server->listeners[i].path[0])
            unlink(server->listeners[i].path);
    }
    if (server->epoll >= 0)
        close(server->epoll);
    by_tls_identity_close(server->identity);
    free(server);
}
