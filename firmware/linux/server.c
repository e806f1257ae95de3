/*
 * Sockets of the control channel. Each client has a channel (the message being received) and an
 * output buffer of one answer: while it is not yet written, no further request of that client is
 * taken, so a client that does not read cannot make the switch grow. One thread; who comes over TLS
 * is met in another (firmware/secure/acceptor.h), and is a client once it has shown who it is.
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
#include "firmware/linux/options.h"
#include "firmware/secure/acceptor.h"
#include "firmware/secure/hostport.h"
#include "firmware/secure/strangers.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* Clients at a time (count): controllers, `banyan show`, a monitor. */
#define CLIENTS_MAX 16u
/* Places for those who are told that there is no more room (count). */
#define SPARES 4u
/* How long a client that has been heard keeps its place without a further request when others want
 * it (ns): one that only reads, and a controller. */
#define READER_IDLE_NS 5000000000u
#define WRITER_IDLE_NS 60000000000u
/* New clients: a second in the long run, and at once (count): a handshake of TLS takes a processor
 * a millisecond. Those who come sooner wait in the listen queue. */
#define ARRIVALS_PER_S 100u
#define ARRIVALS_BURST 64u
/* Handshakes at a time (count), and how far their thread stands back behind the one that moves
 * packets, where both have the same processor. */
#define HANDSHAKES 32u
#define NICENESS   10
/* Who may wait in the listen queue (count). */
#define BACKLOG 128
/* Events and answers of one turn (count), so that packets are not kept waiting. */
#define EVENTS_MAX  16
#define ANSWERS_MAX 8u
#define READ_BYTES  16384u

struct client {
    int fd;             /* -1: free */
    struct by_tls *tls; /* NULL: the bytes come as they are */
    bool heard;         /* a request of it was answered without an error; over TLS, it has shown who it is */
    bool writes;        /* a request of a writer (a controller) was accepted */
    uint64_t heard_ns;  /* when it was last heard */
    bool leaving;       /* refused: what it still sends is read and forgotten, until it closes */
    bool paused;        /* it asked too often: nothing is read from it for a while */
    uint64_t arrival;   /* which client it is, of all that came */
    struct by_channel channel;
    uint32_t in_have, in_done;
    uint32_t out_have, out_done;
    uint8_t in[READ_BYTES];
    uint8_t out[BY_CHANNEL_OUT_MIN];
};

struct listener {
    int fd;
    bool secure;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* to remove, or "" */
};

struct by_server {
    int epoll;
    struct by_agent *agent;
    struct by_tls_identity *identity;
    struct by_acceptor *acceptor; /* or NULL: nobody comes over TLS */
    uint64_t arrivals;
    struct by_rate rate; /* of arrivals */
    bool paused;         /* too many came: nobody is accepted for a while */
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

/* A UNIX socket's file that nobody listens on is left from a crash: remove it. */
static int remove_dead_socket(const struct sockaddr_un *address)
{
    struct stat status;
    int fd, result = 0;

    if (lstat(address->sun_path, &status) != 0)
        return 0;
    if (!S_ISSOCK(status.st_mode)) {
        by_say(
            "--control unix:%s: a file that is not a socket is in the way: remove it or choose another path",
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
        by_say("--control unix:%s: a path of 1 to %zu bytes", path, sizeof address.sun_path - 1);
        return BY_EFORMAT;
    }
    memcpy(address.sun_path, path, strlen(path));
    if ((result = remove_dead_socket(&address)) != 0)
        return result;
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* The mode comes before bind, which makes the file: at no time may others use it. */
    if (listener->fd < 0 || fchmod(listener->fd, 0600) != 0 ||
        bind(listener->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        by_say("--control unix:%s: %s%s", path, strerror(errno),
               errno == ENOENT ? ": make the folder first" : "");
        return BY_EIO;
    }
    snprintf(listener->path, sizeof listener->path, "%s", path);
    return 0;
}

/* "ADDRESS:PORT", "[IPV6]:PORT", after "tcp:" or "tls:". */
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
        by_say("--control %s:%s: it is %s:ADDRESS:PORT with a numeric address, such as %s:127.0.0.1:%u",
               scheme, text, scheme, scheme, BY_CONTROL_PORT);
        return BY_EFORMAT;
    }
    if (!listener->secure && !by_hostport_is_loopback(info->ai_addr)) {
        by_say("--control tcp:%s: whoever reaches that address could load tables: use tls:%s with --keys",
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

/* Reads the keys, and starts the thread that meets who comes over TLS: before others narrow down
 * where threads run. */
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
        return BY_EINVAL; /* whatever is wrong with them, the user chose them */
    }
    options.identity = server->identity;
    result = by_acceptor_open(&server->acceptor, &options);
    if (result == 0 &&
        watch(server, by_acceptor_fd(server->acceptor), EPOLLIN, server->acceptor, EPOLL_CTL_ADD) != 0)
        result = BY_EIO;
    if (result != 0)
        by_say("--keys %s: no thread for handshakes: %s", keys, strerror(errno));
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

static void drop_client(struct client *client)
{
    by_tls_close(client->tls);
    client->tls = NULL;
    close(client->fd);
    client->fd = -1;
}

/* Tells people here, and those who ask later, that somebody was not let in; of many, of few. NULL:
 * nobody new, but perhaps of those who were not told of. */
static void say_refused(struct by_server *server, const char *why)
{
    char line[BY_ACCEPTOR_TEXT_MAX + BY_STRANGERS_MORE_MAX + 64], more[BY_STRANGERS_MORE_MAX] = "";

    if (!(why ? by_strangers_come : by_strangers_rest)(&server->refused, clock_ns(), more))
        return;
    snprintf(line, sizeof line, "a control client was refused%s%s%s", more, why ? ": " : "", why ? why : "");
    by_say("%s", line);
    by_agent_note(server->agent, line);
}

/* Lets a client read why it is not let in: a socket that is closed with bytes unread takes back
 * what was sent on it. */
static void show_out(struct by_server *server, struct client *client)
{
    client->leaving = true;
    shutdown(client->fd, SHUT_WR);
    watch(server, client->fd, EPOLLIN, client, EPOLL_CTL_MOD);
}

/* Forgets what a refused client sends: a piece of it, as it may never end. */
static void see_off(struct client *client)
{
    ssize_t count = recv(client->fd, client->in, sizeof client->in, 0);

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        drop_client(client);
}

/* Whether `client` must give its place to a new one, and how soon among those that must: clients
 * that were never heard, the oldest first; then clients that were idle for longer than they may,
 * the longest first. 0: it keeps its place. */
static uint64_t claim_on(const struct client *client, uint64_t now)
{
    uint64_t idle = now - client->heard_ns;

    if (!client->heard)
        return UINT64_MAX - client->arrival;
    return idle > (client->writes ? WRITER_IDLE_NS : READER_IDLE_NS) ? idle : 0;
}

/* A free place, or that of a client which must leave (claim_on), so that connections without a
 * session cannot keep controllers out. NULL when all clients keep theirs. */
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

/* A client finds all places taken: it is told so, where it would understand. */
static void turn_away(struct by_server *server, struct by_tls *tls, int fd)
{
    struct client *spare = NULL;
    char text[128];
    size_t bytes;

    snprintf(text, sizeof text, "connections: %u clients are connected, which is the most: end one of them",
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
    /* It fits an empty socket's buffer. */
    (void)send(fd, spare->out, BY_CONTROL_LENGTH_BYTES + bytes, MSG_NOSIGNAL);
    show_out(server, spare);
}

/* Makes a client of a connection. */
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
    client->leaving = client->paused = false;
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

/* Those who came over TLS. */
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

/* No listener is looked at while arrivals are paused. */
static void pause_arrivals(struct by_server *server, bool paused)
{
    if (paused)
        by_agent_note(server->agent, "control clients come faster than they may: they wait");
    server->paused = paused;
    for (unsigned i = 0; i < server->listener_count; i++)
        if (!server->listeners[i].secure)
            watch(server, server->listeners[i].fd, paused ? 0 : EPOLLIN, &server->listeners[i],
                  EPOLL_CTL_MOD);
}

/* Writes what is owed. False when the client is gone or its buffers are full. */
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

/* Takes one message out of what was read. False when more bytes are needed. */
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

/* Everything that one client's socket allows now. */
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
    /* Bytes that are here already would not be told of again: a writable socket is at once. */
    if (client->fd >= 0)
        watch(server, client->fd,
              client->out_have                    ? EPOLLOUT
              : client->in_done < client->in_have ? EPOLLIN | EPOLLOUT
                                                  : EPOLLIN,
              client, EPOLL_CTL_MOD);
}

/* Goes on with those who had to wait and need not any more. */
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
    count = epoll_wait(server->epoll, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        char *what = events[i].data.ptr;

        if (what == (char *)server->acceptor) {
            take_greeted(server);
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
