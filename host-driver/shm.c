/*
 * Packets through memory that this process shares with switches of the same machine
 * (offload/wire/shm.h): one shared-memory cable per port of the table, opened at the switch's
 * socket for it, and one range of memory (banyan_alloc) whose pieces the switches read in place.
 * Other buffers are copied once. Results are read from the switch's memory. Thread: the
 * communicator's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/arena.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/transport.h"
#include "offload/wire/seal.h"
#include "offload/wire/shm.h"

#define MIB        ((uint64_t)1 << 20)
#define WELCOME_MS 5000 /* timeout of the switch's answer: it serves its sockets between packets */
/* Empty polls that yield to the switch and other hosts, which may share this core, before a
 * sleep. */
#define YIELDS           50u
#define INLINE_BYTES     BY_ERR_BYTES
#define ROOM_BYTES_LEAST 64u

struct shm_cable {
    int socket; /* carries the handshake, then the doorbells: a byte in each direction */
    bool gone;  /* the switch has closed it: nothing wakes this thread */
    struct by_shm_cable *memory;
    uint64_t memory_bytes;
    const uint8_t *there; /* memory of the switch */
    uint64_t there_bytes;
    struct by_shm_sender sender;
    struct by_shm_receiver receiver;
    uint32_t own_ip;
    bool asleep; /* the switch has been asked to ring the doorbell */
};

struct shm {
    struct by_transport base;
    int always; /* an eventfd that is always readable */
    uint32_t room_bytes;
    uint32_t next_port; /* where rx starts; rotates for fairness */
    struct shm_cable cable[BY_PORTS_MAX];
    struct by_shm_packet got[BY_RX_BATCH];
};

/* ---- receive ---- */

static void wake(struct shm_cable *cable)
{
    uint8_t ring;
    ssize_t bytes;

    cable->asleep = false;
    by_shm_wake(&cable->receiver);
    do
        bytes = recv(cable->socket, &ring, sizeof(ring), MSG_DONTWAIT);
    while (bytes > 0);
    cable->gone = bytes == 0 || (errno != EAGAIN && errno != EINTR);
}

static uint32_t rx_cable(struct shm *shm, uint16_t port, uint32_t at, struct by_rx *rx)
{
    struct shm_cable *cable = &shm->cable[port];
    struct by_port_counters *counters = &shm->base.ports[port];
    uint32_t count = at;

    if (cable->asleep)
        wake(cable);
    while (count < BY_RX_BATCH) {
        uint32_t slot = cable->receiver.head;
        const struct by_shm_packet *next = by_shm_take(&cable->receiver);
        struct by_shm_packet *packet = &shm->got[count];
        const uint8_t *payload;

        if (next == NULL)
            break;
        *packet = *next;
        payload =
            by_shm_payload(packet, cable->memory, shm->room_bytes, 1, slot, cable->there, cable->there_bytes);
        counters->rx_packets++;
        counters->rx_bytes += by_packet_bytes(cable->own_ip, BY_WIRE_HEADER_BYTES + packet->payload_bytes);
        if (payload == NULL) {
            counters->rx_drop++;
            continue;
        }
        rx[count++] = (struct by_rx){.data = packet->header,
                                     .payload = payload,
                                     .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + packet->payload_bytes),
                                     .port = port,
                                     .src_ip = packet->src_ip,
                                     .dst_ip = packet->dst_ip,
                                     .ecn = packet->ecn,
                                     .direct = packet->direct};
    }
    return count;
}

static uint32_t shm_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct shm *shm = (struct shm *)transport;
    uint32_t count = 0;

    for (uint32_t i = 0; i < transport->port_count && count < BY_RX_BATCH; i++)
        count = rx_cable(shm, (uint16_t)((shm->next_port + i) % transport->port_count), count, rx);
    shm->next_port = (shm->next_port + 1) % transport->port_count;
    return count;
}

static void shm_rx_done(struct by_transport *transport)
{
    struct shm *shm = (struct shm *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++)
        by_shm_done(&shm->cable[i].receiver);
}

/* ---- send ---- */

/* Makes the payload readable for the switch: inline in the slot, in place if it is in the shared
 * range, or copied. */
static void place(const struct shm *shm, struct shm_cable *cable, const struct by_tx *tx,
                  struct by_shm_packet *packet)
{
    const uint8_t *payload = by_tx_payload(tx);

    packet->payload_bytes = tx->payload_bytes;
    if (tx->payload_bytes <= INLINE_BYTES) {
        packet->place = BY_SHM_SMALL;
        memcpy(packet->small, payload, tx->payload_bytes);
        return;
    }
    packet->at = by_arena_offset(shm->base.arena, payload, tx->payload_bytes);
    packet->place = packet->at != UINT64_MAX ? BY_SHM_THERE : BY_SHM_COPY;
    if (packet->place == BY_SHM_COPY)
        memcpy(by_shm_room(cable->memory, shm->room_bytes, 0, cable->sender.tail), payload,
               tx->payload_bytes);
}

static void send_one(struct shm *shm, const struct by_tx *tx)
{
    struct shm_cable *cable = &shm->cable[tx->port];
    struct by_port_counters *counters = &shm->base.ports[tx->port];
    struct by_shm_packet *packet = by_shm_slot(&cable->sender);

    /* Hosts do not relay on any transport. */
    if (packet == NULL || tx->kind != BY_TX_SEND || tx->payload_bytes > shm->room_bytes) {
        counters->tx_drop++;
        return;
    }
    packet->src_ip = cable->own_ip;
    packet->dst_ip = tx->dst_ip;
    packet->udp_port = tx->udp_port;
    packet->ecn = tx->ecn;
    packet->direct = tx->direct;
    memcpy(packet->header, tx->header, BY_WIRE_HEADER_BYTES);
    place(shm, cable, tx, packet);
    by_shm_put(&cable->sender);
    counters->tx_packets++;
    counters->tx_bytes += by_packet_bytes(cable->own_ip, BY_WIRE_HEADER_BYTES + tx->payload_bytes);
}

static void ring(const struct shm_cable *cable)
{
    const uint8_t one = 1;

    /* the doorbell has been rung often enough, or the switch has disconnected */
    if (send(cable->socket, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

static void shm_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                   const struct by_rx *rx)
{
    struct shm *shm = (struct shm *)transport;

    (void)rx;
    for (uint32_t i = 0; i < count; i++)
        if (tx[i]->port < transport->port_count)
            send_one(shm, tx[i]);
    for (uint32_t i = 0; i < transport->port_count; i++)
        if (by_shm_publish(&shm->cable[i].sender))
            ring(&shm->cable[i]);
}

/* The caller is about to sleep: asks switches to ring the doorbell. If a packet is already waiting,
 * the caller does not sleep. */
static uint32_t shm_fds(struct by_transport *transport, struct pollfd *fds)
{
    struct shm *shm = (struct shm *)transport;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        struct shm_cable *cable = &shm->cable[i];

        cable->asleep = true;
        fds[i].fd = by_shm_doze(&cable->receiver) ? cable->gone ? -1 : cable->socket : shm->always;
        fds[i].events = POLLIN;
    }
    return transport->port_count;
}

/* ---- open and close ---- */

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void close_cable(struct shm_cable *cable)
{
    close_fd(cable->socket);
    if (cable->memory != NULL)
        munmap(cable->memory, cable->memory_bytes);
    if (cable->there != NULL)
        munmap((void *)(uintptr_t)cable->there, cable->there_bytes);
}

static void shm_close(struct by_transport *transport)
{
    struct shm *shm = (struct shm *)transport;

    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        close_cable(&shm->cable[i]);
    by_arena_close(transport->arena);
    close_fd(shm->always);
    free(shm);
}

static const struct by_transport_ops shm_ops = {"shm", shm_rx, shm_rx_done, shm_tx, shm_fds, shm_close, NULL};

/* Creates the cable's memory and returns its descriptor in *fd. */
static int make_memory(struct shm_cable *cable, uint32_t room_bytes, int *fd)
{
    void *memory = MAP_FAILED;

    cable->memory_bytes = by_shm_bytes(room_bytes);
    *fd = memfd_create("banyan-cable", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && ftruncate(*fd, (off_t)cable->memory_bytes) == 0 &&
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory = mmap(NULL, cable->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (memory == MAP_FAILED)
        return by_fail(BY_ENOMEM, "cannot allocate %llu bytes for a cable: %s",
                       (unsigned long long)cable->memory_bytes, strerror(errno));
    cable->memory = memory;
    cable->sender.queue = &cable->memory->up;
    cable->receiver.queue = &cable->memory->down;
    return 0;
}

/* Waits for the switch's next message. */
static int await(const struct shm_cable *cable, const char *path)
{
    struct pollfd readable = {.fd = cable->socket, .events = POLLIN};

    if (poll(&readable, 1, WELCOME_MS) == 1)
        return 0;
    return by_fail(BY_ETIMEDOUT, "the switch at %s does not answer", path);
}

/* Answers the switch's challenge if the job whose hosts listen on `udp_port` has a key; else 0. */
static uint64_t prove(const uint8_t *image, const struct by_shm_challenge *challenge,
                      const struct by_shm_hello *hello)
{
    struct by_image_header header;
    struct by_image_job job;
    struct by_image_key record;
    struct by_siphash_key key;
    struct by_hop_keys keys;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        by_image_job(image, i, &job);
        if (job.udp_port != hello->udp_port || !by_image_key_find(image, job.job, &record))
            continue;
        by_siphash_key_read(&key, record.key);
        by_hop_keys_make(&key, header.node, challenge->node, 1, &keys);
        return by_shm_proof(&keys.out, challenge, hello);
    }
    return 0;
}

static int greet(const struct shm *shm, const struct shm_cable *cable,
                 const struct by_transport_config *config, int memory_fd)
{
    struct by_shm_challenge challenge;
    struct by_shm_hello hello = {.magic = BY_SHM_MAGIC,
                                 .version = BY_SHM_VERSION,
                                 .ip = cable->own_ip,
                                 .room_bytes = shm->room_bytes,
                                 .memory_bytes = by_arena_bytes(shm->base.arena),
                                 .udp_port = config->udp_port};
    const int fds[BY_SHM_HELLO_FDS] = {memory_fd, by_arena_fd(shm->base.arena)};
    uint8_t control[CMSG_SPACE(sizeof(fds))] __attribute__((aligned(8))) = {0};
    struct iovec piece = {&hello, sizeof(hello)};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    if (recv(cable->socket, &challenge, sizeof(challenge), 0) != (ssize_t)sizeof(challenge) ||
        challenge.magic != BY_SHM_MAGIC || challenge.version != BY_SHM_VERSION) {
        errno = EPROTO;
        return -1;
    }
    hello.proof = prove(config->image, &challenge, &hello);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(header), fds, sizeof(fds));
    return sendmsg(cable->socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(hello) ? 0 : -1;
}

/* Reads the switch's answer. A descriptor that came with it is in *fd, else -1; also after an
 * error. */
static int read_welcome(const struct shm_cable *cable, struct by_shm_welcome *welcome, int *fd)
{
    uint8_t control[CMSG_SPACE(sizeof(*fd))] __attribute__((aligned(8)));
    struct iovec piece = {welcome, sizeof(*welcome)};
    /* Room for exactly one descriptor. */
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_LEN(sizeof(*fd))};
    ssize_t bytes = recvmsg(cable->socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = bytes >= 0 ? CMSG_FIRSTHDR(&message) : NULL;

    *fd = -1;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(*fd)))
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    welcome->text[sizeof(welcome->text) - 1] = 0;
    return bytes == (ssize_t)sizeof(*welcome) && welcome->magic == BY_SHM_MAGIC ? 0 : BY_EFORMAT;
}

/* Maps the switch's memory; `fd` is its descriptor or -1. */
static int take_memory(struct shm_cable *cable, const struct by_shm_welcome *welcome, int fd,
                       const char *path)
{
    struct stat stat;
    void *memory;

    if (welcome->status != 0 || fd < 0 || fstat(fd, &stat) != 0 ||
        (uint64_t)stat.st_size < welcome->memory_bytes)
        return by_fail(welcome->status < 0 ? welcome->status : BY_EFORMAT, "the switch at %s refuses: %s",
                       path, welcome->text[0] != 0 ? welcome->text : "it does not share memory");
    memory = mmap(NULL, welcome->memory_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return by_fail(BY_ENOMEM, "the memory of the switch at %s cannot be mapped: %s", path,
                       strerror(errno));
    madvise(memory, welcome->memory_bytes, MADV_HUGEPAGE);
    cable->there = memory;
    cable->there_bytes = welcome->memory_bytes;
    return 0;
}

/* Receives the switch's answer, and its memory. */
static int hear(struct shm_cable *cable, const char *path)
{
    struct by_shm_welcome welcome = {0};
    int fd, error = await(cable, path);

    if (error != 0)
        return error;
    error = read_welcome(cable, &welcome, &fd);
    error = error == 0 ? take_memory(cable, &welcome, fd, path)
                       : by_fail(error, "the process that listens at %s is not a banyan switch", path);
    close_fd(fd);
    return error;
}

/* Connects to the socket of the port's switch: FOLDER/IP, named by the host's own address. */
static int dial(struct shm_cable *cable, const uint8_t *image, const char *folder,
                struct sockaddr_un *address)
{
    char ip[BY_IP_TEXT];

    by_image_ip_text(image, cable->own_ip, ip);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((size_t)snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", folder, ip) >=
        sizeof(address->sun_path))
        return by_fail(BY_ELIMIT, "BANYAN_SHM is '%s': a socket's path has at most %zu characters", folder,
                       sizeof(address->sun_path) - 1);
    cable->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (cable->socket >= 0 && connect(cable->socket, (struct sockaddr *)address, sizeof(*address)) == 0)
        return 0;
    return by_fail(errno == EACCES ? BY_EPERM : BY_ENOENT,
                   "no switch shares memory at %s: %s; set BANYAN_SHM to the folder of its sockets",
                   address->sun_path, strerror(errno));
}

static int open_cable(struct shm *shm, struct shm_cable *cable, const struct by_transport_config *config)
{
    struct sockaddr_un address;
    int memory_fd = -1;
    int error = dial(cable, config->image, config->settings->value[BY_SETTING_SHM], &address);

    if (error == 0)
        error = make_memory(cable, shm->room_bytes, &memory_fd);
    if (error == 0)
        error = await(cable, address.sun_path);
    if (error == 0 && (shm->always < 0 || greet(shm, cable, config, memory_fd) != 0))
        error = by_fail(BY_EIO, "cannot send the greeting to the switch at %s: %s", address.sun_path,
                        strerror(errno));
    if (error == 0)
        error = hear(cable, address.sun_path);
    close_fd(memory_fd);
    return error;
}

static int open_all(struct shm *shm, const struct by_transport_config *config)
{
    struct by_image_header header;
    struct by_image_port port;
    uint64_t arena_mib;
    int error = by_image_ports_check(config->image);

    if (error == 0)
        error = by_settings_number(config->settings, BY_SETTING_ARENA, BY_SETTING_ARENA_MAX, &arena_mib);
    if (error == 0)
        error = by_arena_open(&shm->base.arena, arena_mib * MIB);
    if (error != 0)
        return error;
    by_image_header(config->image, &header);
    for (uint32_t i = 0; error == 0 && i < header.count[BY_SECTION_PORT]; i++) {
        by_image_port(config->image, i, &port);
        shm->cable[i].own_ip = port.own_ip;
        error = open_cable(shm, &shm->cable[i], config);
    }
    shm->base.port_count = header.count[BY_SECTION_PORT];
    shm->base.inflight_max = BY_SHM_SLOTS / 2;
    shm->base.yields = YIELDS;
    shm->base.shared = true;
    return error;
}

int by_shm_open(const struct by_transport_config *config, struct by_transport **transport)
{
    struct shm *shm;
    int error;

    if (config->settings->value[BY_SETTING_SHM][0] == 0)
        return by_fail(BY_EINVAL,
                       "BANYAN_TRANSPORT=shm requires BANYAN_SHM: the folder of the switches' sockets");
    shm = calloc(1, sizeof(*shm));
    if (shm == NULL)
        return by_fail(BY_ENOMEM, "no memory for a transport: %zu bytes", sizeof(*shm));
    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        shm->cable[i].socket = -1;
    shm->always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    shm->base.ops = &shm_ops;
    shm->room_bytes = (config->payload_max + 63u) / 64u * 64u;
    if (shm->room_bytes < ROOM_BYTES_LEAST)
        shm->room_bytes = ROOM_BYTES_LEAST;
    error = open_all(shm, config);
    if (error != 0) {
        shm_close(&shm->base);
        return error;
    }
    *transport = &shm->base;
    return 0;
}
