/* Peers over one UDP socket; see carrier.h. The socket's batches are in batch.h. */
#include "host-driver/fallback/carrier.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/fallback/batch.h"
#include "host-driver/fallback/keeper.h"
#include "host-driver/fallback/pair.h"
#include "host-driver/faults.h"
#include "offload/base/bytes.h"

#define CARD_MAGIC   UINT32_C(0x62797532) /* "byu2" */
#define RING_BYTES   (768u << 10)         /* of the slots of one peer, each way; about */
#define WINDOW_LEAST 8u
#define MTU_DEFAULT  1500
#define IP_UDP_BYTES 28
#define LEAST_BYTES  548u        /* behind the headers, that every IPv4 host takes: 576 bytes */
#define SKB_BYTES    832u        /* what the kernel charges for a packet beside its bytes, about */
#define SENDERS      2u          /* that fill the socket's buffer at a time, as schedules go */
#define BATCHES_MAX  4u          /* of one step, each of which is answered: fewer parcels than a window has */
#define WRITE_BYTES  (64u << 10) /* at a time, before the first of them go */

struct carrier_peer {
    struct by_pair_config config; /* what its card says, once it was made */
    struct by_host_pair *pair;    /* NULL: not met */
    void *memory;
    struct sockaddr_in to;
};

struct by_carrier {
    uint32_t rank, rank_count, nonce;
    uint16_t port;
    struct by_keeper keeper;
    struct by_batch batch;
    struct by_faults faults;
    struct carrier_peer *peer; /* of all ranks */
    uint32_t *met;             /* ranks */
    uint32_t met_count;
    struct by_carrier_counters counters;
};

/* ---- opening */

static int open_socket(struct by_carrier *carrier)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(address);
    int fd = by_batch_open(&carrier->batch);

    if (fd < 0)
        return fd;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
        return by_fail(BY_EIO, "no UDP socket for the peers of rank %u: %s", carrier->rank, strerror(errno));
    carrier->port = ntohs(address.sin_port);
    return 0;
}

int by_carrier_open(uint32_t rank, uint32_t rank_count, const struct by_fault *fault, struct by_carrier **out)
{
    struct by_carrier *carrier = calloc(1, sizeof(*carrier));
    int error;

    if (carrier == NULL)
        return by_fail(BY_ENOMEM, "no memory for messages over UDP: %zu bytes", sizeof(*carrier));
    carrier->batch.fd = -1;
    error = by_keeper_open(&carrier->keeper);
    if (error != 0) {
        by_keeper_close(&carrier->keeper);
        free(carrier);
        return error;
    }
    carrier->rank = rank;
    carrier->rank_count = rank_count;
    carrier->peer = calloc(rank_count, sizeof(*carrier->peer));
    carrier->met = calloc(rank_count, sizeof(*carrier->met));
    if (carrier->peer == NULL || carrier->met == NULL ||
        by_faults_init(&carrier->faults, fault, BY_PARCEL_HEADER_BYTES + BY_PARCEL_BYTES_MAX) != 0)
        error = by_fail(BY_ENOMEM, "no memory for %u peers over UDP", rank_count);
    else if (getrandom(&carrier->nonce, sizeof(carrier->nonce), 0) != (ssize_t)sizeof(carrier->nonce))
        error = by_fail(BY_EIO, "no random number for the peers of rank %u: %s", rank, strerror(errno));
    else
        error = open_socket(carrier);
    if (error != 0) {
        by_carrier_close(carrier);
        return error;
    }
    *out = carrier;
    return 0;
}

/* What one packet on the way to `ip` may hold, behind our header. */
static uint32_t room_towards(uint32_t ip)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(ip)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int mtu = MTU_DEFAULT;
    socklen_t bytes = sizeof(mtu);
    uint32_t room;

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
        getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &bytes) != 0)
        mtu = MTU_DEFAULT;
    if (fd >= 0)
        close(fd);
    room = mtu > IP_UDP_BYTES ? (uint32_t)(mtu - IP_UDP_BYTES) : 0;
    room = room > BY_PARCEL_HEADER_BYTES ? room - BY_PARCEL_HEADER_BYTES : 0;
    return room < LEAST_BYTES - BY_PARCEL_HEADER_BYTES ? LEAST_BYTES - BY_PARCEL_HEADER_BYTES
           : room > BY_PARCEL_BYTES_MAX                ? BY_PARCEL_BYTES_MAX
                                                       : room;
}

/* Slots for a peer at `ip`, and how much may come of it at a time: what the socket's buffer holds.
 */
static struct by_pair_config choose_sizes(const struct by_carrier *carrier, uint32_t ip)
{
    struct by_pair_config config = {.slot_count = BY_PAIR_SLOTS_MAX, .slot_bytes = room_towards(ip)};
    uint32_t held = carrier->batch.buffer_bytes / SENDERS / (config.slot_bytes + SKB_BYTES);

    while (config.slot_count * config.slot_bytes > RING_BYTES)
        config.slot_count /= 2;
    config.window = held < WINDOW_LEAST ? WINDOW_LEAST : held;
    if (config.window > config.slot_count)
        config.window = config.slot_count;
    config.rank = (uint16_t)carrier->rank;
    return config;
}

void by_carrier_card(struct by_carrier *carrier, uint32_t rank, uint32_t ip, uint8_t *card)
{
    struct by_pair_config *config = &carrier->peer[rank].config;

    *config = choose_sizes(carrier, ip);
    by_put32(card, CARD_MAGIC);
    by_put32(card + 4, carrier->nonce);
    by_put16(card + 8, carrier->port);
    by_put16(card + 10, (uint16_t)config->slot_bytes);
    by_put16(card + 12, (uint16_t)config->window);
    by_put16(card + 14, 0);
}

int by_carrier_meet(struct by_carrier *carrier, uint32_t rank, uint32_t ip, const uint8_t *card)
{
    struct carrier_peer *peer = &carrier->peer[rank];
    struct by_pair_config config = peer->config;

    config.peer_nonce = by_get32(card + 4);
    config.peer_bytes = by_get16(card + 10);
    config.peer_window = by_get16(card + 12);
    if (config.peer_bytes > config.slot_bytes)
        config.peer_bytes = config.slot_bytes;
    if (by_get32(card) != CARD_MAGIC || config.peer_bytes < LEAST_BYTES - BY_PARCEL_HEADER_BYTES ||
        config.peer_window == 0 || config.peer_window > BY_PAIR_SLOTS_MAX)
        return by_fail(BY_EMISMATCH,
                       "rank %u speaks another protocol over UDP than rank %u; the same version of banyan is "
                       "wanted on all hosts",
                       rank, carrier->rank);
    carrier->met[carrier->met_count++] = rank;
    peer->pair = malloc(sizeof(*peer->pair));
    peer->memory = malloc(by_pair_bytes(&config)); /* the system gives pages as they are used */
    if (peer->pair == NULL || peer->memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for rank %u over UDP: %zu bytes", rank, by_pair_bytes(&config));
    by_pair_open(peer->pair, &config, peer->memory);
    peer->to = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip), .sin_port = htons(by_get16(card + 8))};
    return 0;
}

/* ---- moving, with the lock held */

/* Sends all that a peer may have now. */
static void send_to(struct by_carrier *carrier, struct carrier_peer *peer, uint64_t now_ns)
{
    struct by_parcel parcel;

    while (by_pair_next(peer->pair, now_ns, &parcel))
        by_batch_add(&carrier->batch, &peer->to, &parcel);
    by_batch_flush(&carrier->batch);
}

/* One packet. A host with several addresses may send from another one than that which we send to.
 */
static void take(struct by_carrier *carrier, const struct by_rx *rx, uint64_t now_ns)
{
    struct by_parcel parcel;

    if (by_parcel_read(rx->data, rx->bytes, &parcel) != 0 || parcel.nonce != carrier->nonce ||
        parcel.rank >= carrier->rank_count || carrier->peer[parcel.rank].pair == NULL ||
        htons(rx->port) != carrier->peer[parcel.rank].to.sin_port)
        carrier->counters.udp_refused++;
    else
        by_pair_take(carrier->peer[parcel.rank].pair, &parcel, now_ns);
}

/* Takes a batch of what has come; packets, 0: there is none. */
static uint32_t receive(struct by_carrier *carrier, uint64_t now_ns)
{
    struct by_rx rx[BY_RX_BATCH], faulty[BY_FAULTS_OUT_MAX];
    bool faults = by_fault_enabled(&carrier->faults.fault);
    uint32_t got = by_batch_receive(&carrier->batch, rx);
    uint32_t count = faults ? by_faults_apply(&carrier->faults, now_ns, rx, got, faulty) : got;

    for (uint32_t i = 0; i < count; i++)
        take(carrier, faults ? &faulty[i] : &rx[i], now_ns);
    return got > count ? got : count;
}

/* Sends what is due to all. When the next step is. */
static uint64_t send_all(struct by_carrier *carrier, uint64_t now_ns)
{
    uint64_t deadline_ns = by_faults_deadline(&carrier->faults);

    for (uint32_t i = 0; i < carrier->met_count; i++) {
        struct carrier_peer *peer = &carrier->peer[carrier->met[i]];
        uint64_t next_ns;

        send_to(carrier, peer, now_ns);
        next_ns = by_pair_deadline(peer->pair);
        deadline_ns = next_ns < deadline_ns ? next_ns : deadline_ns;
    }
    return deadline_ns;
}

/* True: something has come. *deadline_ns: when the next step is due. */
static bool step(struct by_carrier *carrier, uint64_t now_ns, uint64_t *deadline_ns)
{
    bool news = false;

    for (unsigned i = 0; i < BATCHES_MAX; i++) {
        uint32_t got = receive(carrier, now_ns);

        *deadline_ns = send_all(carrier, now_ns);
        news |= got > 0;
        if (got == 0)
            break;
    }
    if (by_batch_holds(&carrier->batch))
        *deadline_ns = 0;
    return news;
}

static bool keep(void *kept, uint64_t now_ns, uint64_t *deadline_ns)
{
    struct by_carrier *carrier = kept;
    bool news = step(carrier, now_ns, deadline_ns);

    carrier->counters.udp_kept += news;
    return news;
}

/* ---- for the owner */

static void enter(struct by_carrier *carrier)
{
    by_keeper_enter(&carrier->keeper, by_clock_ns() + BY_KEEPER_LEASE_NS);
}

int by_carrier_start(struct by_carrier *carrier)
{
    return by_keeper_start(&carrier->keeper, keep, carrier, carrier->batch.fd);
}

void by_carrier_close(struct by_carrier *carrier)
{
    if (carrier == NULL)
        return;
    by_keeper_close(&carrier->keeper);
    for (uint32_t i = 0; i < carrier->met_count; i++) {
        free(carrier->peer[carrier->met[i]].pair);
        free(carrier->peer[carrier->met[i]].memory);
    }
    by_batch_close(&carrier->batch);
    by_faults_free(&carrier->faults);
    free(carrier->peer);
    free(carrier->met);
    free(carrier);
}

size_t by_carrier_write(struct by_carrier *carrier, uint32_t rank, const struct iovec *piece, uint32_t count,
                        bool end)
{
    struct carrier_peer *peer = &carrier->peer[rank];
    size_t taken = 0, size = 0;
    uint32_t at = 0;

    enter(carrier);
    for (; at < count && taken == size && size < WRITE_BYTES; at++) {
        size_t part = piece[at].iov_len < WRITE_BYTES - size ? piece[at].iov_len : WRITE_BYTES - size;

        taken += by_pair_write(peer->pair, piece[at].iov_base, part);
        size += part;
        end = end && part == piece[at].iov_len;
    }
    if (end && at == count && taken == size)
        by_pair_flush(peer->pair);
    send_to(carrier, peer, by_clock_ns());
    by_keeper_leave(&carrier->keeper);
    return taken;
}

size_t by_carrier_read(struct by_carrier *carrier, uint32_t rank, const struct iovec *piece, uint32_t count)
{
    struct carrier_peer *peer = &carrier->peer[rank];
    size_t given = 0, size = 0;

    enter(carrier);
    for (uint32_t i = 0; i < count && given == size; i++) {
        given += by_pair_read(peer->pair, piece[i].iov_base, piece[i].iov_len);
        size += piece[i].iov_len;
    }
    if (by_pair_deadline(peer->pair) == 0)
        send_to(carrier, peer, by_clock_ns()); /* it hears of the room */
    by_keeper_leave(&carrier->keeper);
    return given;
}

void by_carrier_step(struct by_carrier *carrier, uint64_t now_ns)
{
    uint64_t deadline_ns;

    enter(carrier);
    by_keeper_hear(&carrier->keeper);
    step(carrier, now_ns, &deadline_ns);
    by_keeper_leave(&carrier->keeper);
}

void by_carrier_forget(struct by_carrier *carrier, uint32_t rank)
{
    enter(carrier);
    by_pair_abandon(carrier->peer[rank].pair);
    by_keeper_leave(&carrier->keeper);
}

bool by_carrier_settled(struct by_carrier *carrier)
{
    bool settled = true;

    enter(carrier);
    for (uint32_t i = 0; i < carrier->met_count; i++)
        settled = settled && by_pair_settled(carrier->peer[carrier->met[i]].pair);
    by_keeper_leave(&carrier->keeper);
    return settled;
}

uint64_t by_carrier_deadline(struct by_carrier *carrier)
{
    uint64_t deadline_ns;

    enter(carrier);
    deadline_ns = by_batch_holds(&carrier->batch) ? 0 : by_faults_deadline(&carrier->faults);
    for (uint32_t i = 0; i < carrier->met_count; i++) {
        uint64_t next_ns = by_pair_deadline(carrier->peer[carrier->met[i]].pair);

        deadline_ns = next_ns < deadline_ns ? next_ns : deadline_ns;
    }
    by_keeper_leave(&carrier->keeper);
    return deadline_ns;
}

void by_carrier_fds(struct by_carrier *carrier, uint64_t sleep_ns, struct pollfd *fds)
{
    by_keeper_enter(&carrier->keeper, by_clock_ns() + sleep_ns + BY_KEEPER_LEASE_NS);
    by_keeper_leave(&carrier->keeper);
    fds[0] = (struct pollfd){.fd = carrier->batch.fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = carrier->keeper.tell, .events = POLLIN};
}

void by_carrier_count(struct by_carrier *carrier, struct by_carrier_counters *counters)
{
    enter(carrier);
    *counters = carrier->counters;
    counters->udp_dropped = carrier->faults.dropped;
    for (uint32_t i = 0; i < carrier->met_count; i++) {
        const struct by_pair_counters *pair = &carrier->peer[carrier->met[i]].pair->counters;

        counters->udp_sent += pair->sent;
        counters->udp_repeated += pair->repeated;
        counters->udp_timeouts += pair->timeouts;
        counters->udp_come += pair->come;
        counters->udp_doubled += pair->doubled;
    }
    by_keeper_leave(&carrier->keeper);
}
