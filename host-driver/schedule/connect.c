/* Opens the connections of a schedule; see connect.h. */
#include "host-driver/schedule/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/error.h"
#include "host-driver/fallback/door.h"
#include "host-driver/fallback/peers.h"
#include "offload/base/bytes.h"

#define MAGIC       UINT32_C(0x62797331) /* "bys1" */
#define HELLO_BYTES 20u
#define FACT_BYTES  24u
/* Bytes that a socket may hold unsent: less, and the order of messages is closer to that of the
 * schedule; more than one write, or the connection pauses between two writes. */
#define UNSENT_BYTES 131072

/* Exchanges the ports of all ranks, their errors, and which files they have read. */
static int exchange_facts(struct by_program *const *programs, uint32_t count, int error, uint16_t port,
                          struct by_peers *peers, uint64_t deadline_ns, uint16_t *ports)
{
    uint8_t mine[FACT_BYTES] = {0}, *all = calloc(peers->rank_count, FACT_BYTES);
    uint64_t hash = count;
    int failed;

    if (all == NULL)
        return by_fail(BY_ENOMEM, "no memory for facts about %u ranks", peers->rank_count);
    for (uint32_t p = 0; p < count; p++)
        hash = (hash ^ programs[p]->hash) * UINT64_C(0x100000001b3);
    by_put16(mine, port);
    by_put32(mine + 4, (uint32_t)error);
    by_put64(mine + 8, hash);
    failed = by_peers_gather(peers, mine, all, FACT_BYTES, deadline_ns);
    for (uint32_t r = 0; r < peers->rank_count && failed == 0 && error == 0; r++) {
        const uint8_t *fact = all + (size_t)r * FACT_BYTES;

        ports[r] = by_get16(fact);
        if (r != peers->rank && by_get32(fact + 4) != 0)
            failed = by_fail((int)by_get32(fact + 4),
                             "rank %u cannot use its schedule (BANYAN_SCHEDULE); see its error message", r);
        else if (by_get64(fact + 8) != hash)
            failed = by_fail(BY_EMISMATCH,
                             "BANYAN_SCHEDULE names other files at rank %u than at rank %u; give all ranks "
                             "the same",
                             r, peers->rank);
    }
    free(all);
    return failed;
}

static int dial(const struct by_way_end *way, uint32_t program, const struct by_peers *peers,
                const uint16_t *ports, uint32_t key, uint64_t deadline_ns, int *fd)
{
    uint8_t hello[HELLO_BYTES];
    char text[BY_IP_TEXT];
    uint32_t to = way->ip != 0 ? way->ip : peers->ip[way->peer];
    int error;

    *fd = by_peer_connect(to, ports[way->peer], deadline_ns);
    by_put32(hello, MAGIC);
    by_put32(hello + 4, key);
    by_put32(hello + 8, peers->rank);
    by_put32(hello + 12, program);
    by_put32(hello + 16, way->path);
    error = *fd < 0 ? *fd : by_peer_write(*fd, hello, sizeof(hello), deadline_ns);
    if (*fd < 0)
        *fd = -1;
    if (error == 0)
        return 0;
    by_ip_text(to, text);
    return by_fail(error, "rank %u cannot connect to rank %u at %s, port %u, for path %u of its schedule: %s",
                   peers->rank, way->peer, text, ports[way->peer], way->path, by_files_reason(errno));
}

/* Returns the index of the way that a greeting names; UINT32_MAX: there is none. */
static uint32_t way_of(struct by_program *const *programs, uint32_t count, const uint8_t *hello, uint32_t key)
{
    uint32_t before = 0, program = by_get32(hello + 12);

    if (by_get32(hello) != MAGIC || by_get32(hello + 4) != key || program >= count)
        return UINT32_MAX;
    for (uint32_t p = 0; p < program; p++)
        before += programs[p]->way_count;
    for (uint32_t w = 0; w < programs[program]->way_count; w++) {
        const struct by_way_end *way = &programs[program]->ways[w];

        if (!way->sends && way->path == by_get32(hello + 16) && way->peer == by_get32(hello + 8))
            return before + w;
    }
    return UINT32_MAX;
}

static int accept_all(struct by_program *const *programs, uint32_t count, int listener, uint32_t rank,
                      uint32_t key, uint64_t deadline_ns, int *fds)
{
    uint32_t left = 0;
    struct by_door door;
    int error = 0;

    for (uint32_t p = 0; p < count; p++)
        for (uint32_t w = 0; w < programs[p]->way_count; w++)
            left += !programs[p]->ways[w].sends;
    by_door_open(&door, listener, HELLO_BYTES);
    while (left > 0 && error == 0) {
        uint8_t hello[BY_DOOR_GREETING];
        int fd = by_door_next(&door, hello, deadline_ns);
        uint32_t way;

        if (fd < 0) {
            error = by_fail(fd, "rank %u waits for %u connections of its schedule: %s", rank, left,
                            fd == BY_ETIMEDOUT ? "ranks are missing" : by_files_reason(errno));
            break;
        }
        way = way_of(programs, count, hello, key);
        if (way == UINT32_MAX || fds[way] >= 0) {
            close(fd);
            continue;
        }
        fds[way] = fd;
        left--;
    }
    by_door_close(&door);
    return error;
}

int by_connect_ways(struct by_program *const *programs, uint32_t count, int error, struct by_peers *peers,
                    uint32_t key, uint64_t deadline_ns, int *fds)
{
    uint16_t *ports = calloc(peers->rank_count, sizeof(*ports));
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);
    int listener = by_peer_listen(INADDR_ANY, 0), unsent = UNSENT_BYTES, met;
    uint32_t at = 0;

    if (ports == NULL) { /* the other ranks wait for this one, up to their time limit */
        if (listener >= 0)
            close(listener);
        return by_fail(BY_ENOMEM, "no memory for the ports of %u ranks", peers->rank_count);
    }
    if (error == 0 && (listener < 0 || getsockname(listener, (struct sockaddr *)&own, &bytes) != 0))
        error = by_fail(BY_EIO, "rank %u cannot listen for its schedule: %s", peers->rank,
                        by_files_reason(errno));
    met = exchange_facts(programs, count, error, ntohs(own.sin_port), peers, deadline_ns, ports);
    error = error != 0 ? error : met;
    /* All ranks listen now, and the kernel keeps connections until they are accepted. */
    for (uint32_t p = 0; p < count && error == 0; p++)
        for (uint32_t w = 0; w < programs[p]->way_count && error == 0; w++, at++)
            if (programs[p]->ways[w].sends) {
                error = dial(&programs[p]->ways[w], p, peers, ports, key, deadline_ns, &fds[at]);
                if (error == 0)
                    setsockopt(fds[at], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
            }
    if (error == 0)
        error = accept_all(programs, count, listener, peers->rank, key, deadline_ns, fds);
    if (listener >= 0)
        close(listener);
    free(ports);
    return error;
}
