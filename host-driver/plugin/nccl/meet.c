/* Listeners, handles and greetings of the NCCL plugin; see meet.h. */
#include "host-driver/plugin/nccl/meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/plugin/nccl/device.h"

/*
 * A handle: magic (4), version (2), purpose (1), streams (1), family (1: IPv4 or IPv6), 1 byte of
 * padding, port (2), address (16), key (16), padding to 64; then the number that the connecting
 * rank keeps there (8). A greeting: magic (4), version (2), stream (1), streams (1), key (16),
 * number (8). Integers are little-endian.
 */
#define MAGIC    0x4e4e4142u /* "BANN" */
#define VERSION  1u
#define VISIT_AT 64
#define BACKLOG  1024

_Static_assert(BY_NCCL_GREETING_BYTES == 32, "see above");

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

void *by_nccl_handle_visit(const uint8_t handle[BY_NCCL_HANDLE_BYTES])
{
    return (void *)(uintptr_t)get(handle + VISIT_AT, 8);
}

void by_nccl_handle_set_visit(uint8_t handle[BY_NCCL_HANDLE_BYTES], void *visit)
{
    put(handle + VISIT_AT, 8, (uintptr_t)visit);
}

/* The peer of an idle stream is dead if it answers no probe for about `timeout_ns`. */
static void set_options(int file, uint64_t timeout_ns)
{
    int on = 1, probes = 4;
    int seconds = (int)(timeout_ns / 1000000000u / 5);

    if (seconds < 1)
        seconds = 1;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* ---- the listener ---- */

static int bind_and_listen(struct by_nccl_listener *listener, const struct by_nccl_device *device,
                           struct sockaddr_storage *address)
{
    socklen_t bytes = sizeof(*address);

    listener->file = socket(device->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->file < 0 ||
        bind(listener->file, (const struct sockaddr *)&device->address,
             device->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                  : sizeof(struct sockaddr_in6)) != 0 ||
        listen(listener->file, BACKLOG) != 0 ||
        getsockname(listener->file, (struct sockaddr *)address, &bytes) != 0)
        return by_nccl_fail(BY_NCCL_SYSTEM, "a listener at interface %s cannot be opened: %s", device->name,
                            strerror(errno));
    return BY_NCCL_OK;
}

static void write_handle(const struct by_nccl_listener *listener, const struct sockaddr_storage *address,
                         uint8_t handle[BY_NCCL_HANDLE_BYTES])
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    bool is_four = address->ss_family == AF_INET;

    memset(handle, 0, BY_NCCL_HANDLE_BYTES);
    put(handle, 4, MAGIC);
    put(handle + 4, 2, VERSION);
    put(handle + 6, 1, listener->purpose);
    put(handle + 7, 1, listener->streams);
    put(handle + 8, 1, is_four ? 4 : 6);
    put(handle + 10, 2, ntohs(is_four ? four->sin_port : six->sin6_port));
    if (is_four)
        memcpy(handle + 12, &four->sin_addr, 4);
    else
        memcpy(handle + 12, &six->sin6_addr, 16);
    memcpy(handle + 28, listener->key, sizeof(listener->key));
}

int by_nccl_listener_open(int index, enum by_nccl_purpose purpose, uint8_t handle[BY_NCCL_HANDLE_BYTES],
                          struct by_nccl_listener **listener)
{
    struct by_nccl_settings settings = by_nccl_settings();
    const struct by_nccl_device *device = by_nccl_device_at(index);
    struct sockaddr_storage address = {0};
    struct by_nccl_listener *made;
    int result;

    if (device == NULL || handle == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "device %d does not exist; there are %d devices", index,
                            by_nccl_device_count());
    made = calloc(1, sizeof(*made));
    if (made == NULL)
        return by_nccl_fail(BY_NCCL_SYSTEM, "insufficient memory for a listener");
    made->purpose = purpose;
    made->streams = purpose == BY_NCCL_FOR_MESSAGES ? settings.streams : 1;
    made->timeout_ns = settings.timeout_ns;
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++)
        made->guests[i].file = -1;
    made->file = -1;
    if (getrandom(made->key, sizeof(made->key), 0) != (ssize_t)sizeof(made->key))
        result = by_nccl_fail(BY_NCCL_SYSTEM, "the system gives no random numbers: %s", strerror(errno));
    else
        result = bind_and_listen(made, device, &address);
    if (result != BY_NCCL_OK) {
        by_nccl_listener_free(made);
        return result;
    }
    write_handle(made, &address, handle);
    *listener = made;
    return BY_NCCL_OK;
}

static void close_guest(struct by_nccl_guest *guest)
{
    close(guest->file);
    guest->file = -1;
}

void by_nccl_listener_free(void *object)
{
    struct by_nccl_listener *listener = object;

    if (listener == NULL)
        return;
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++)
        if (listener->guests[i].file >= 0)
            close_guest(&listener->guests[i]);
    if (listener->file >= 0)
        close(listener->file);
    free(listener);
}

static int accept_guests(struct by_nccl_listener *listener)
{
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++) {
        struct by_nccl_guest *guest = &listener->guests[i];

        if (guest->file >= 0)
            continue;
        guest->file = accept4(listener->file, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (guest->file < 0) {
            if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
                return BY_NCCL_OK;
            return by_nccl_fail(BY_NCCL_SYSTEM, "a stream cannot be accepted: %s", strerror(errno));
        }
        guest->got = 0;
        guest->since_ns = by_nccl_now();
        set_options(guest->file, listener->timeout_ns);
    }
    return BY_NCCL_OK;
}

/* Reads what has arrived of a greeting; closes a stream that ends, or is not ours. */
static void read_greeting(const struct by_nccl_listener *listener, struct by_nccl_guest *guest)
{
    const uint8_t *greeting = guest->greeting;
    ssize_t got;

    if (guest->got == BY_NCCL_GREETING_BYTES)
        return;
    got = recv(guest->file, guest->greeting + guest->got, BY_NCCL_GREETING_BYTES - guest->got, 0);
    if (got > 0) {
        guest->got += (unsigned)got;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_guest(guest);
        return;
    }
    if (guest->got < BY_NCCL_GREETING_BYTES)
        return;
    guest->stream = greeting[6];
    guest->number = get(greeting + 24, 8);
    if (get(greeting, 4) == MAGIC && get(greeting + 4, 2) == VERSION && guest->stream < listener->streams &&
        greeting[7] == listener->streams && memcmp(greeting + 8, listener->key, sizeof(listener->key)) == 0)
        return;
    by_nccl_log(BY_NCCL_LOG_WARN,
                "a stream without this listener's key is closed: another program, or a rank "
                "of another job, has connected");
    close_guest(guest);
}

/* The guest that is stream `stream` of connection `number`. */
static struct by_nccl_guest *find_guest(struct by_nccl_listener *listener, uint64_t number, unsigned stream)
{
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++) {
        struct by_nccl_guest *guest = &listener->guests[i];

        if (guest->file >= 0 && guest->got == BY_NCCL_GREETING_BYTES && guest->number == number &&
            guest->stream == stream)
            return guest;
    }
    return NULL;
}

int by_nccl_listen_for(int device, enum by_nccl_purpose purpose, void *handle, void **number)
{
    struct by_nccl_listener *listener = NULL;
    int result;

    if (number == NULL)
        return BY_NCCL_ARGUMENT;
    result = by_nccl_listener_open(device, purpose, handle, &listener);
    if (result != BY_NCCL_OK)
        return result;
    return by_nccl_keep(purpose == BY_NCCL_FOR_MESSAGES ? BY_NCCL_LISTENER : BY_NCCL_COLL_LISTENER, listener,
                        by_nccl_listener_free, "listener", number);
}

int by_nccl_listener_take(struct by_nccl_listener *listener, uint64_t *number, int *files)
{
    int result = accept_guests(listener);

    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++)
        if (listener->guests[i].file >= 0)
            read_greeting(listener, &listener->guests[i]);
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++) {
        struct by_nccl_guest *all[BY_NCCL_STREAMS_MAX];
        struct by_nccl_guest *guest = &listener->guests[i];
        unsigned count = 0;

        if (guest->file < 0 || guest->got < BY_NCCL_GREETING_BYTES)
            continue;
        while (count < listener->streams && (all[count] = find_guest(listener, guest->number, count)) != NULL)
            count++;
        if (count < listener->streams)
            continue;
        *number = guest->number;
        for (unsigned stream = 0; stream < count; stream++) {
            files[stream] = all[stream]->file;
            all[stream]->file = -1;
        }
        return 1;
    }
    /* what is left waits for streams of the same connection, which may never come */
    for (unsigned i = 0; i < BY_NCCL_GUESTS_MAX; i++)
        if (listener->guests[i].file >= 0 &&
            by_nccl_now() - listener->guests[i].since_ns > listener->timeout_ns)
            close_guest(&listener->guests[i]);
    return -result;
}

/* ---- the visit ---- */

/* Reads the address of a handle; its length, or 0. */
static socklen_t read_address(const uint8_t *handle, struct sockaddr_storage *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    uint16_t port = htons((uint16_t)get(handle + 10, 2));

    memset(address, 0, sizeof(*address));
    if (handle[8] == 4) {
        four->sin_family = AF_INET;
        four->sin_port = port;
        memcpy(&four->sin_addr, handle + 12, 4);
        return sizeof(*four);
    }
    if (handle[8] == 6) {
        six->sin6_family = AF_INET6;
        six->sin6_port = port;
        memcpy(&six->sin6_addr, handle + 12, 16);
        return sizeof(*six);
    }
    return 0;
}

static int check_handle(const uint8_t *handle, enum by_nccl_purpose purpose)
{
    if (handle == NULL || get(handle, 4) != MAGIC)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "a handle is not of banyan's plugin; use the same plugin on all "
                            "ranks (NCCL_NET_PLUGIN=banyan)");
    if (get(handle + 4, 2) != VERSION)
        return by_nccl_fail(
            BY_NCCL_USAGE,
            "a rank has another version of the plugin (handles of version %u, here %u); install one "
            "version on all hosts",
            (unsigned)get(handle + 4, 2), VERSION);
    if (handle[6] != purpose || handle[7] < 1 || handle[7] > BY_NCCL_STREAMS_MAX ||
        (handle[8] != 4 && handle[8] != 6))
        return by_nccl_fail(BY_NCCL_ARGUMENT, "a handle is damaged, or of another kind of listener");
    return BY_NCCL_OK;
}

static int start_streams(struct by_nccl_visit *visit, const struct sockaddr_storage *address, socklen_t bytes,
                         uint64_t timeout_ns)
{
    for (unsigned i = 0; i < visit->streams; i++) {
        int file = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        visit->at[i].file = file;
        if (file < 0)
            return by_nccl_fail(BY_NCCL_SYSTEM, "a stream cannot be opened: %s", strerror(errno));
        set_options(file, timeout_ns);
        if (connect(file, (const struct sockaddr *)address, bytes) == 0)
            visit->at[i].connected = true;
        else if (errno != EINPROGRESS && errno != EINTR)
            return by_nccl_fail(BY_NCCL_REMOTE, "rank at %s cannot be reached: %s", visit->peer,
                                strerror(errno));
    }
    return BY_NCCL_OK;
}

int by_nccl_visit_open(const uint8_t handle[BY_NCCL_HANDLE_BYTES], enum by_nccl_purpose purpose,
                       uint64_t number, struct by_nccl_visit **visit)
{
    struct by_nccl_settings settings = by_nccl_settings();
    struct sockaddr_storage address;
    char text[INET6_ADDRSTRLEN];
    struct by_nccl_visit *made;
    socklen_t bytes;
    int result = check_handle(handle, purpose);

    if (result != BY_NCCL_OK)
        return result;
    made = calloc(1, sizeof(*made));
    if (made == NULL)
        return by_nccl_fail(BY_NCCL_SYSTEM, "insufficient memory for a connection");
    bytes = read_address(handle, &address);
    inet_ntop(address.ss_family, handle + 12, text, sizeof(text));
    snprintf(made->peer, sizeof(made->peer), "%s port %u", text, (unsigned)get(handle + 10, 2));
    made->streams = handle[7];
    made->purpose = purpose;
    made->number = number;
    made->until_ns = by_nccl_now() + settings.timeout_ns;
    memcpy(made->key, handle + 28, sizeof(made->key));
    for (unsigned i = 0; i < BY_NCCL_STREAMS_MAX; i++)
        made->at[i].file = -1;
    result = start_streams(made, &address, bytes, settings.timeout_ns);
    if (result != BY_NCCL_OK) {
        by_nccl_visit_free(made);
        return result;
    }
    *visit = made;
    return BY_NCCL_OK;
}

void by_nccl_visit_free(void *object)
{
    struct by_nccl_visit *visit = object;

    if (visit == NULL)
        return;
    for (unsigned i = 0; i < visit->streams; i++)
        if (visit->at[i].file >= 0)
            close(visit->at[i].file);
    free(visit);
}

/* One stream: 1 if its greeting is sent, 0: not yet, < 0: an error. */
static int greet(const struct by_nccl_visit *visit, unsigned index, struct by_nccl_visit_stream *stream)
{
    uint8_t greeting[BY_NCCL_GREETING_BYTES];
    ssize_t sent;

    if (!stream->connected) {
        struct pollfd ready = {.fd = stream->file, .events = POLLOUT};
        socklen_t bytes = sizeof(int);
        int error = 0;

        if (poll(&ready, 1, 0) == 0)
            return 0;
        if (getsockopt(stream->file, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
            return -by_nccl_fail(BY_NCCL_REMOTE, "rank at %s cannot be reached: %s", visit->peer,
                                 strerror(error));
        stream->connected = true;
    }
    if (stream->sent == sizeof(greeting))
        return 1;
    put(greeting, 4, MAGIC);
    put(greeting + 4, 2, VERSION);
    put(greeting + 6, 1, index);
    put(greeting + 7, 1, visit->streams);
    memcpy(greeting + 8, visit->key, sizeof(visit->key));
    put(greeting + 24, 8, visit->number);
    sent = send(stream->file, greeting + stream->sent, sizeof(greeting) - stream->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return -by_nccl_fail(BY_NCCL_REMOTE, "rank at %s has closed the stream: %s", visit->peer,
                             strerror(errno));
    if (sent > 0)
        stream->sent += (unsigned)sent;
    return stream->sent == sizeof(greeting);
}

int by_nccl_visit_step(struct by_nccl_visit *visit, int *files)
{
    unsigned ready = 0;

    for (unsigned i = 0; i < visit->streams; i++) {
        int step = greet(visit, i, &visit->at[i]);

        if (step < 0)
            return step;
        ready += (unsigned)step;
    }
    if (ready < visit->streams) {
        if (by_nccl_now() < visit->until_ns)
            return 0;
        return -by_nccl_fail(BY_NCCL_REMOTE,
                             "rank at %s does not accept streams within BANYAN_TIMEOUT; check the address "
                             "(BANYAN_NCCL_INTERFACE) and firewalls",
                             visit->peer);
    }
    for (unsigned i = 0; i < visit->streams; i++) {
        files[i] = visit->at[i].file;
        visit->at[i].file = -1;
    }
    return 1;
}
