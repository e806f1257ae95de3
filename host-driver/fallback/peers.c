/* Connects the ranks of a job; see peers.h. */
#include "host-driver/fallback/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/fallback/door.h"
#include "offload/base/bytes.h"

#define GREETING_MAGIC UINT32_C(0x62796d34) /* "bym4" */
#define GREETING_BYTES 20u                  /* magic, key, rank_count, rank, port of the listener */
#define ENTRY_BYTES    6u                   /* ip, port */
#define NUMBERS_MAX    4u
#define READY          1u /* what a rank reports before the numbers; and the bit of *all */
#define READY_ALL      2u
#define LISTED_MAX     8u /* maximum ranks that a text names */
/* 0: all ranks have connected; or 1, and a text that lists the missing ones */
#define VERDICT_BYTES    128u
#define VERDICT_GRACE_NS UINT64_C(400000000)
/* timeout of one address before the next is tried */
#define REACH_NS UINT64_C(300000000)

/* ---- the environment */

static int read_number(const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL || text[0] == 0)
        return by_fail(
            BY_EINVAL,
            "%s is not set; ranks find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT", name);
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || *value < low || *value > high)
        return by_fail(BY_EINVAL, "%s is '%s'; use a whole number from %llu to %llu", name, text,
                       (unsigned long long)low, (unsigned long long)high);
    return 0;
}

int by_meeting_read(struct by_meeting *meeting)
{
    const char *host = getenv("MASTER_ADDR");
    uint64_t rank = 0, count = 1, port = 0;
    int error;

    memset(meeting, 0, sizeof(*meeting));
    meeting->door = -1;
    if (getenv("RANK") == NULL && getenv("WORLD_SIZE") == NULL && host == NULL &&
        getenv("MASTER_PORT") == NULL)
        return 0;
    meeting->wanted = true;
    error = read_number("WORLD_SIZE", 1, BY_PEERS_MAX, &count);
    if (error == 0)
        error = read_number("RANK", 0, count - 1, &rank);
    if (error == 0)
        error = read_number("MASTER_PORT", 1, UINT16_MAX, &port);
    if (error != 0)
        return error;
    if (host == NULL || host[0] == 0 || strlen(host) >= sizeof(meeting->host))
        return by_fail(BY_EINVAL, "MASTER_ADDR is %s; set it to the name or address of rank 0's host",
                       host == NULL || host[0] == 0 ? "not set" : "too long");
    meeting->rank = (uint32_t)rank;
    meeting->rank_count = (uint32_t)count;
    meeting->port = (uint16_t)port;
    memcpy(meeting->host, host, strlen(host) + 1);
    return 0;
}

static int resolve(const struct by_meeting *meeting, uint32_t *ip)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failure;

    if (meeting->ip_count > 0) {
        *ip = meeting->ip[0];
        return 0;
    }
    failure = getaddrinfo(meeting->host, NULL, &hints, &found);
    if (failure != 0 || found == NULL)
        return by_fail(BY_ENOENT, "MASTER_ADDR: '%s' has no IPv4 address: %s", meeting->host,
                       gai_strerror(failure));
    *ip = ntohl(((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr.s_addr);
    freeaddrinfo(found);
    return 0;
}

/* ---- rank 0 */

void by_peers_missing(const int *link, const bool *wanted, uint32_t first, uint32_t count, char *text,
                      size_t bytes)
{
    uint32_t missing = 0;
    size_t used = 0;

    text[0] = 0;
    for (uint32_t rank = first; rank < count; rank++) {
        if (link[rank] >= 0 || (wanted != NULL && !wanted[rank]))
            continue;
        if (missing++ < LISTED_MAX && used + 16 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%u", missing > 1 ? ", " : "", rank);
    }
    if (missing > LISTED_MAX && used + 24 < bytes)
        snprintf(text + used, bytes - used, " and %u more", missing - LISTED_MAX);
}

/* Rank 0 sends the list of missing ranks to all connected ranks before it fails. The verdict has
 * the size of the successful one, which precedes the addresses. */
static void tell_missing(const struct by_peers *peers, const char *missing)
{
    uint8_t bytes[VERDICT_BYTES] = {0};

    bytes[0] = 1;
    memcpy(bytes + 1, missing, strnlen(missing, VERDICT_BYTES - 2));
    for (uint32_t rank = 1; rank < peers->rank_count; rank++)
        if (peers->link[rank] >= 0)
            (void)!send(peers->link[rank], bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads rank 0's verdict, which may arrive shortly after the own deadline. 0, or an error with its
 * text. */
static int hear_verdict(const struct by_peers *peers, const char *host, uint64_t deadline_ns)
{
    uint8_t bytes[VERDICT_BYTES];
    int error = by_peer_read(peers->link[0], bytes, sizeof(bytes), deadline_ns + VERDICT_GRACE_NS);

    if (error == 0 && bytes[0] == 0)
        return 0;
    bytes[VERDICT_BYTES - 1] = 0;
    if (error == 0)
        return by_fail(BY_ETIMEDOUT, "rank %u has joined rank 0 at %s, which still waits for rank %s of %u",
                       peers->rank, host, (const char *)bytes + 1, peers->rank_count);
    return by_fail(error,
                   error == BY_ETIMEDOUT
                       ? "rank 0 at %s has been silent since rank %u of %u joined; is it stopped?"
                       : "rank 0 at %s refused rank %u of %u, or ended; see its error message",
                   host, peers->rank, peers->rank_count);
}

/* Accepts a connection with a valid greeting; closes all others. */
static int admit(struct by_peers *peers, int fd, const uint8_t *greeting, uint32_t key, uint32_t own)
{
    struct sockaddr_in from = {0};
    socklen_t bytes = sizeof(from);
    uint32_t rank, ip;

    if (by_get32(greeting) != GREETING_MAGIC || by_get32(greeting + 4) != key ||
        getpeername(fd, (struct sockaddr *)&from, &bytes) != 0) {
        close(fd);
        return 0;
    }
    rank = by_get32(greeting + 12);
    ip = ntohl(from.sin_addr.s_addr);
    if (by_get32(greeting + 8) != peers->rank_count || rank >= peers->rank_count || rank == 0 ||
        peers->link[rank] >= 0) {
        char text[BY_IP_TEXT];

        by_ip_text(ip, text);
        close(fd);
        return by_fail(
            BY_EMISMATCH,
            "a process at %s tried to join as rank %u of %u, but this job has %u ranks%s; give each process "
            "its own RANK and the same WORLD_SIZE",
            text, rank, by_get32(greeting + 8), peers->rank_count,
            rank > 0 && rank < peers->rank_count && peers->link[rank] >= 0
                ? " and that rank has joined already"
                : "");
    }
    peers->link[rank] = fd;
    /* A rank that connects over the loopback interface, or from the address of rank 0, runs on this
     * machine: others find it at the address of rank 0. */
    peers->ip[rank] = ip >> 24 == 127 || ip == own ? 0 : ip;
    peers->port[rank] = (uint16_t)by_get32(greeting + 16);
    return 0;
}

static int tell_all(struct by_peers *peers, uint64_t deadline_ns)
{
    size_t bytes = VERDICT_BYTES + (size_t)peers->rank_count * ENTRY_BYTES;
    uint8_t *table = calloc(1, bytes);
    int error = 0;

    if (table == NULL)
        return by_fail(BY_ENOMEM, "no memory for the addresses of %u ranks", peers->rank_count);
    for (uint32_t rank = 0; rank < peers->rank_count; rank++) {
        by_put32(table + VERDICT_BYTES + (size_t)rank * ENTRY_BYTES, peers->ip[rank]);
        by_put16(table + VERDICT_BYTES + (size_t)rank * ENTRY_BYTES + 4, peers->port[rank]);
    }
    for (uint32_t rank = 1; error == 0 && rank < peers->rank_count; rank++)
        if (by_peer_write(peers->link[rank], table, bytes, deadline_ns) != 0)
            error = by_fail(BY_EIO, "rank %u left before all ranks had joined: %s", rank, strerror(errno));
    free(table);
    return error;
}

static int gather_all(struct by_peers *peers, const struct by_meeting *meeting, uint32_t ip, uint32_t key,
                      uint64_t deadline_ns)
{
    int listener = meeting->door >= 0 ? meeting->door : by_peer_listen(ip, meeting->port);
    uint8_t greeting[GREETING_BYTES];
    struct by_door door;
    uint32_t come = 1;
    int error = 0;

    if (listener < 0)
        return by_fail(listener, "rank 0 cannot listen at MASTER_ADDR %s port %u: %s%s", meeting->host,
                       meeting->port, by_files_reason(errno),
                       listener == BY_EBUSY ? "; choose another MASTER_PORT"
                                            : "; is that an address of this host?");
    by_door_open(&door, listener, GREETING_BYTES);
    while (error == 0 && come < peers->rank_count) {
        int fd = by_door_next(&door, greeting, deadline_ns);

        if (fd < 0) {
            char missing[VERDICT_BYTES];
            int why = errno;

            by_peers_missing(peers->link, NULL, 1, peers->rank_count, missing, sizeof(missing));
            tell_missing(peers, missing);
            error = by_fail(fd, "rank 0 waits at %s port %u: of %u ranks these have not joined: %s%s%s",
                            meeting->host, meeting->port, peers->rank_count, missing,
                            fd == BY_EIO ? "; " : "", fd == BY_EIO ? by_files_reason(why) : "");
            break;
        }
        error = admit(peers, fd, greeting, key, ip);
        come = 1;
        for (uint32_t rank = 1; rank < peers->rank_count; rank++)
            come += peers->link[rank] >= 0;
    }
    by_door_close(&door);
    if (listener != meeting->door)
        close(listener);
    return error == 0 ? tell_all(peers, deadline_ns) : error;
}

/* ---- the other ranks */

/* Connects to the first address of rank 0 that answers; `*ip` is set to it. */
static int reach(const struct by_meeting *meeting, uint32_t *ip, uint64_t deadline_ns)
{
    int fd = BY_ETIMEDOUT;

    if (meeting->ip_count < 2)
        return by_peer_connect(*ip, meeting->port, deadline_ns);
    do {
        for (uint32_t i = 0; i < meeting->ip_count; i++) {
            uint64_t until_ns = by_clock_ns() + REACH_NS;

            *ip = meeting->ip[i];
            fd = by_peer_connect(*ip, meeting->port, until_ns < deadline_ns ? until_ns : deadline_ns);
            if (fd >= 0)
                return fd;
        }
    } while (by_clock_ns() < deadline_ns);
    return fd;
}

static int report(struct by_peers *peers, const struct by_meeting *meeting, uint32_t *ip, uint32_t key,
                  uint64_t deadline_ns)
{
    size_t bytes = (size_t)peers->rank_count * ENTRY_BYTES;
    uint8_t greeting[GREETING_BYTES];
    uint8_t *table = malloc(bytes);
    int error = 0;

    if (table == NULL)
        return by_fail(BY_ENOMEM, "no memory for the addresses of %u ranks", peers->rank_count);
    by_put32(greeting, GREETING_MAGIC);
    by_put32(greeting + 4, key);
    by_put32(greeting + 8, peers->rank_count);
    by_put32(greeting + 12, peers->rank);
    by_put32(greeting + 16, peers->port[peers->rank]);
    peers->link[0] = reach(meeting, ip, deadline_ns);
    if (peers->link[0] < 0)
        error = by_fail(peers->link[0], "rank %u cannot reach rank 0 at %s%s port %u: %s", peers->rank,
                        meeting->ip_count > 0 ? "" : "MASTER_ADDR ", meeting->host, meeting->port,
                        strerror(errno));
    else if (by_peer_write(peers->link[0], greeting, sizeof(greeting), deadline_ns) != 0)
        error = by_fail(BY_EIO, "rank 0 at %s accepts no data from rank %u: %s", meeting->host, peers->rank,
                        strerror(errno));
    if (error == 0)
        error = hear_verdict(peers, meeting->host, deadline_ns);
    if (error == 0) {
        error = by_peer_read(peers->link[0], table, bytes, deadline_ns + VERDICT_GRACE_NS);
        if (error != 0)
            by_fail(error,
                    "rank 0 at %s ended or stopped while it sent rank %u the addresses of the other ranks",
                    meeting->host, peers->rank);
    }
    for (uint32_t rank = 0; error == 0 && rank < peers->rank_count; rank++) {
        peers->ip[rank] = by_get32(table + (size_t)rank * ENTRY_BYTES);
        peers->port[rank] = by_get16(table + (size_t)rank * ENTRY_BYTES + 4);
    }
    free(table);
    return error;
}

/* Ranks with address 0 are on the host of rank 0. */
static uint32_t find_partner(const struct by_peers *peers)
{
    for (uint32_t rank = 1; rank < peers->rank_count; rank++)
        if (peers->ip[rank] != 0)
            return rank;
    return 1;
}

int by_peers_meet(struct by_peers *peers, const struct by_meeting *meeting, uint32_t key,
                  uint64_t deadline_ns)
{
    uint32_t count = meeting->rank_count;
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);
    uint32_t ip = 0;
    int error;

    memset(peers, 0, sizeof(*peers));
    peers->rank = meeting->rank;
    peers->rank_count = count;
    peers->listener = -1;
    peers->ip = calloc(count, sizeof(*peers->ip));
    peers->port = calloc(count, sizeof(*peers->port));
    peers->link = malloc(count * sizeof(*peers->link));
    for (uint32_t rank = 0; peers->link != NULL && rank < count; rank++)
        peers->link[rank] = -1;
    if (peers->ip == NULL || peers->port == NULL || peers->link == NULL)
        return by_fail(BY_ENOMEM, "no memory for the addresses of %u ranks", count);
    error = resolve(meeting, &ip);
    if (error != 0)
        return error;
    peers->listener = by_peer_listen(INADDR_ANY, 0);
    if (peers->listener < 0 || getsockname(peers->listener, (struct sockaddr *)&own, &bytes) != 0)
        return by_fail(BY_EIO, "cannot create a socket for the peers of rank %u: %s", peers->rank,
                       strerror(errno));
    peers->port[peers->rank] = ntohs(own.sin_port);
    error = peers->rank == 0 ? gather_all(peers, meeting, ip, key, deadline_ns)
                             : report(peers, meeting, &ip, key, deadline_ns);
    peers->partner = find_partner(peers);
    for (uint32_t rank = 0; error == 0 && rank < count; rank++)
        if (peers->ip[rank] == 0)
            peers->ip[rank] = ip;
    return error;
}

int by_peers_agree(struct by_peers *peers, uint64_t *numbers, uint32_t count, bool *all, uint64_t deadline_ns)
{
    uint8_t bytes[8 * NUMBERS_MAX + 1] = {0}, verdict[VERDICT_BYTES] = {0};
    uint8_t ready = READY | (*all ? READY_ALL : 0);
    char missing[16];
    int error = 0;

    for (uint32_t i = 0; i < count && i < NUMBERS_MAX; i++)
        by_put64(bytes + (size_t)8 * i, numbers[i]);
    if (peers->rank != 0) {
        error = by_peer_write(peers->link[0], &ready, 1, deadline_ns);
        if (error != 0)
            return by_fail(error, "rank %u cannot report to rank 0 that it is ready: %s", peers->rank,
                           strerror(errno));
        error = hear_verdict(peers, "the meeting point", deadline_ns);
        if (error == 0)
            error = by_peer_read(peers->link[0], bytes, sizeof(bytes), deadline_ns + VERDICT_GRACE_NS);
        if (error != 0)
            return error;
    }
    for (uint32_t rank = 1; peers->rank == 0 && rank < peers->rank_count; rank++) {
        if (by_peer_read(peers->link[rank], &ready, 1, deadline_ns) == 0) {
            *all = *all && (ready & READY_ALL);
            continue;
        }
        snprintf(missing, sizeof(missing), "%u", rank);
        tell_missing(peers, missing);
        return by_fail(BY_ETIMEDOUT,
                       "rank %u has joined but does not report that it is ready: it is stopped, has ended, "
                       "or cannot reach its peers",
                       rank);
    }
    if (peers->rank == 0)
        bytes[8 * NUMBERS_MAX] = *all;
    *all = bytes[8 * NUMBERS_MAX];
    for (uint32_t rank = 1; peers->rank == 0 && rank < peers->rank_count; rank++)
        if (by_peer_write(peers->link[rank], verdict, sizeof(verdict), deadline_ns) != 0 ||
            by_peer_write(peers->link[rank], bytes, sizeof(bytes), deadline_ns) != 0)
            return by_fail(BY_EIO, "rank %u left before all ranks were ready", rank);
    for (uint32_t i = 0; i < count && i < NUMBERS_MAX; i++)
        numbers[i] = by_get64(bytes + (size_t)8 * i);
    return 0;
}

int by_peers_gather(struct by_peers *peers, const void *mine, void *all, size_t bytes, uint64_t deadline_ns)
{
    size_t whole = bytes * peers->rank_count;
    int error = 0;

    if (peers->rank != 0) {
        error = by_peer_write(peers->link[0], mine, bytes, deadline_ns);
        if (error == 0)
            error = by_peer_read(peers->link[0], all, whole, deadline_ns + VERDICT_GRACE_NS);
        return error == 0 ? 0
                          : by_fail(error, "rank %u waits for facts about the other ranks, and rank 0 %s",
                                    peers->rank,
                                    error == BY_ETIMEDOUT ? "is silent" : "has ended; see its error message");
    }
    memcpy(all, mine, bytes);
    for (uint32_t rank = 1; rank < peers->rank_count; rank++) {
        error = by_peer_read(peers->link[rank], (uint8_t *)all + rank * bytes, bytes, deadline_ns);
        if (error != 0)
            return by_fail(error, "rank %u has joined and then %s", rank,
                           error == BY_ETIMEDOUT ? "is silent; is it stopped?" : "ended");
    }
    for (uint32_t rank = 1; rank < peers->rank_count; rank++)
        if (by_peer_write(peers->link[rank], all, whole, deadline_ns) != 0)
            return by_fail(BY_EIO, "rank %u left while the ranks met: %s", rank, strerror(errno));
    return 0;
}

void by_peers_part(struct by_peers *peers)
{
    for (uint32_t rank = 0; peers->link != NULL && rank < peers->rank_count; rank++)
        if (peers->link[rank] >= 0)
            close(peers->link[rank]);
    free(peers->link);
    peers->link = NULL;
    if (peers->listener >= 0)
        close(peers->listener);
    peers->listener = -1;
}

void by_peers_close(struct by_peers *peers)
{
    by_peers_part(peers);
    free(peers->ip);
    free(peers->port);
    memset(peers, 0, sizeof(*peers));
    peers->listener = -1;
}
