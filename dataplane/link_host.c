/* Connection and disconnection of hosts that share memory; see link_host.h. Everything that a host
 * supplies is validated before use. Loop's thread. */
#include "dataplane/link_host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "offload/wire/seal.h"

/* Maximum number of doorbells of one host per read. */
#define RINGS_MAX 16u

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void by_link_bell(const struct by_link_host *host)
{
    const uint8_t ring = 1;

    /* the doorbell has been rung often enough, or the host has disconnected */
    if (send(host->socket, &ring, sizeof ring, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

/* Reads doorbells; false if the host has disconnected. Doorbells beyond the bound keep the loop
 * awake. */
static bool take_rings(const struct by_link_host *host)
{
    uint8_t ring;
    ssize_t bytes = 1;

    for (unsigned i = 0; i < RINGS_MAX && bytes > 0; i++)
        bytes = recv(host->socket, &ring, sizeof ring, MSG_DONTWAIT);
    return bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR));
}

void by_link_host_wake(struct by_link_host *host)
{
    host->asleep = false;
    by_shm_wake(&host->receiver);
    (void)take_rings(host); /* by_link_serve detects a disconnection */
}

/* ---- handshake ---- */

/* Sends the answer: 0 with the engine's memory, or an error with its reason. */
static void answer(const struct by_dp_link *link, const struct by_link_host *host, int status,
                   const char *text)
{
    struct by_shm_welcome welcome = {.magic = BY_SHM_MAGIC,
                                     .version = BY_SHM_VERSION,
                                     .status = status,
                                     .memory_bytes = status == 0 ? link->memory_bytes : 0};
    uint8_t control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec piece = {&welcome, sizeof welcome};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    snprintf(welcome.text, sizeof welcome.text, "%s", text);
    if (status == 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = sizeof control;
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &link->memory_fd, sizeof(int));
    }
    if (sendmsg(host->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        by_say("%s: a host disconnected before it was answered", link->path);
}

/* Reads the hello and its descriptors; returns the number of descriptors, or -1 if it is
 * malformed. */
static int read_hello(const struct by_link_host *host, struct by_shm_hello *hello, int fds[BY_SHM_HELLO_FDS])
{
    uint8_t control[CMSG_SPACE(BY_SHM_HELLO_FDS * sizeof(int))] __attribute__((aligned(8)));
    struct iovec piece = {hello, sizeof *hello};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t bytes = recvmsg(host->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = bytes >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    unsigned count = 0;

    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    }
    return bytes == (ssize_t)sizeof *hello ? (int)count : -1;
}

/*
 * Maps `bytes` of a descriptor. NULL if reading could raise SIGBUS: it must be a memfd that is
 * sealed against shrinking, with ordinary pages, since huge pages may run out.
 */
static void *map(int fd, uint64_t bytes, int protection)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs system;
    struct stat stat;
    void *memory;

    if (bytes == 0 || seals < 0 || !(seals & F_SEAL_SHRINK) || fstatfs(fd, &system) != 0 ||
        system.f_type != TMPFS_MAGIC || fstat(fd, &stat) != 0 || (uint64_t)stat.st_size < bytes)
        return NULL;
    memory = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Releases all references and memory of a host. Its socket stays open until the other end closes
 * it; then by_link_serve frees it. */
static void part(struct by_dp_link *link, struct by_link_host *host)
{
    for (unsigned i = 0; host->greeted && i < BY_SHM_SLOTS; i++)
        if (host->ref[i] != BY_REF_NONE)
            by_engine_release(link->engine, host->ref[i]);
    host->greeted = false;
    if (host->cable)
        munmap(host->cable, host->cable_bytes);
    if (host->memory)
        munmap((void *)(uintptr_t)host->memory, host->memory_bytes);
    host->cable = NULL;
    host->memory = NULL;
    shutdown(host->socket, SHUT_RDWR);
}

/* Result of checking a host's claim to the UDP port of a job. */
enum claim {
    /* the table has no such neighbour: relays, or the table is not loaded yet */
    CLAIM_UNKNOWN,
    CLAIM_OPEN, /* its job has no key: the socket's permissions decide */
    CLAIM_PROVED,
    CLAIM_FALSE
};

/* Checks whether `host` proves to be node `node` of job `job`, the neighbour with the UDP port that
 * it claims. A job without a key needs no proof. */
static enum claim judge(const struct by_link_host *host, const uint8_t *image, uint16_t own_node,
                        uint16_t job, uint16_t node)
{
    struct by_siphash_key key;
    struct by_hop_keys keys;
    struct by_image_key record;
    enum claim claim = CLAIM_OPEN;

    /* The host may be in any generation of the job. */
    for (uint32_t place = 0; place <= BY_STANDBYS_MAX && claim != CLAIM_PROVED; place++) {
        if (!by_image_key_at(image, job, place, &record))
            continue;
        by_siphash_key_read(&key, record.key);
        by_hop_keys_make(&key, own_node, node, 0, &keys);
        claim = by_shm_proof(&keys.in, &host->challenge, &host->hello) == host->hello.proof ? CLAIM_PROVED
                                                                                            : CLAIM_FALSE;
    }
    return claim;
}

/* Checks the UDP port that a host claims against the active table. */
static enum claim claim_of(const struct by_dp_link *link, const struct by_link_host *host)
{
    size_t bytes;
    const uint8_t *image = by_engine_image(link->engine, &bytes);
    struct by_image_header header;
    struct by_image_entry entry;
    struct by_image_child child;

    if (!image)
        return CLAIM_UNKNOWN;
    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(image, i, &entry);
        if (entry.parent_node != BY_NODE_NONE && entry.parent_port == link->port &&
            entry.parent_udp_port == host->hello.udp_port)
            return judge(host, image, header.node, entry.job, entry.parent_node);
        for (uint32_t c = 0; c < entry.child_count; c++) {
            by_image_child(image, entry.first_child + c, &child);
            if (child.port == link->port && child.udp_port == host->hello.udp_port)
                return judge(host, image, header.node, entry.job, child.node);
        }
    }
    return CLAIM_UNKNOWN;
}

/* Returns the reason to refuse the UDP port that the host claims, or NULL. A host that proves
 * possession of the job's key takes the port over from one that connected before the table was
 * loaded, or under another tenant's table. */
static const char *claim(struct by_dp_link *link, struct by_link_host *host)
{
    enum claim own = claim_of(link, host);

    if (own == CLAIM_FALSE)
        return "it does not prove that it has the key of the job: check that its table has the same "
               "generation";
    for (unsigned i = 0; i < link->host_count; i++) {
        struct by_link_host *other = link->host[i];

        if (!other->greeted || other->hello.udp_port != host->hello.udp_port)
            continue;
        if (own != CLAIM_PROVED || claim_of(link, other) == CLAIM_PROVED)
            return "another process uses this job here";
        by_say("%s: a host without the key of its job is replaced by one that has it", link->path);
        part(link, other);
    }
    return NULL;
}

/* Returns the reason to refuse the host, or NULL if everything that it supplied is in place. */
static const char *take_over(struct by_dp_link *link, struct by_link_host *host,
                             const int fds[BY_SHM_HELLO_FDS])
{
    const struct by_shm_hello *hello = &host->hello;
    const char *refusal;

    if (hello->version != BY_SHM_VERSION)
        return "the library and the switch have different versions";
    if (hello->room_bytes < 64 || hello->room_bytes % 64 != 0 || hello->room_bytes > BY_PAYLOAD_MAX)
        return "its packets are too large";
    host->room_bytes = hello->room_bytes;
    host->cable_bytes = by_shm_bytes(hello->room_bytes);
    host->cable = map(fds[0], host->cable_bytes, PROT_READ | PROT_WRITE);
    host->memory_bytes = hello->memory_bytes;
    host->memory = map(fds[1], host->memory_bytes, PROT_READ);
    if (!host->cable || !host->memory)
        return "its memory cannot be mapped, is not sealed against shrinking, or consists of huge pages";
    if ((refusal = claim(link, host)) != NULL)
        return refusal;
    madvise((void *)(uintptr_t)host->memory, host->memory_bytes, MADV_HUGEPAGE);
    host->sender.queue = &host->cable->down;
    host->receiver.queue = &host->cable->up;
    for (unsigned i = 0; i < BY_SHM_SLOTS; i++)
        host->ref[i] = BY_REF_NONE;
    return NULL;
}

int by_link_host_greet(struct by_dp_link *link, struct by_link_host *host)
{
    int fds[BY_SHM_HELLO_FDS] = {-1, -1};
    int count = read_hello(host, &host->hello, fds);
    const char *refusal = "its message is malformed";

    if (count == (int)BY_SHM_HELLO_FDS && host->hello.magic == BY_SHM_MAGIC)
        refusal = take_over(link, host, fds);
    close_fd(fds[0]);
    close_fd(fds[1]);
    if (!refusal) {
        answer(link, host, 0, "");
        host->greeted = true;
        return 0;
    }
    if (count >= 0) {
        by_say("%s: a host is refused: %s", link->path, refusal);
        answer(link, host, BY_EINVAL, refusal);
    }
    return BY_EINVAL;
}

void by_link_host_free(struct by_dp_link *link, struct by_link_host *host)
{
    part(link, host);
    close_fd(host->socket);
    free(host);
}

/* ---- the socket ---- */

/* The switch sends the first message. */
static bool challenge(const struct by_dp_link *link, struct by_link_host *host)
{
    struct by_shm_challenge *words = &host->challenge;
    size_t bytes;
    const uint8_t *image = by_engine_image(link->engine, &bytes);
    struct by_image_header header = {.node = BY_NODE_NONE};

    if (image)
        by_image_header(image, &header);
    *words = (struct by_shm_challenge){.magic = BY_SHM_MAGIC, .version = BY_SHM_VERSION, .node = header.node};
    return getrandom(words->nonce, sizeof words->nonce, GRND_NONBLOCK) == (ssize_t)sizeof words->nonce &&
           send(host->socket, words, sizeof *words, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *words;
}

static void let_in(struct by_dp_link *link)
{
    struct by_link_host *host;
    int socket = accept4(link->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};

    if (socket < 0)
        return;
    host = link->host_count < BY_LINK_HOSTS_MAX ? calloc(1, sizeof *host) : NULL;
    if (!host) {
        by_say("%s: a host is refused: no memory, or more than %u hosts", link->path, BY_LINK_HOSTS_MAX);
        close(socket);
        return;
    }
    host->socket = socket;
    if (!challenge(link, host)) {
        by_say("%s: a host is refused: no random numbers, or it has disconnected", link->path);
        close(socket);
        free(host);
        return;
    }
    link->host[link->host_count++] = host;
    epoll_ctl(link->bells, EPOLL_CTL_ADD, socket, &event);
}

/* Processes input of a host's socket: its hello, its doorbells, or its end. False if the host is to
 * be removed. */
static bool listen_to(struct by_dp_link *link, struct by_link_host *host)
{
    char byte;

    if (host->greeted)
        return take_rings(host);
    if (recv(host->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    return by_link_host_greet(link, host) == 0;
}

void by_link_serve(struct by_dp_link *link)
{
    let_in(link);
    for (unsigned i = 0; i < link->host_count;) {
        if (listen_to(link, link->host[i])) {
            i++;
            continue;
        }
        by_link_host_free(link, link->host[i]);
        link->host[i] = link->host[--link->host_count];
    }
}

/* Initially only this user may connect; the socket's permissions admit others later. */
static int bind_private(int listener, const struct sockaddr_un *address)
{
    mode_t mask = umask(0177);
    int result = bind(listener, (const struct sockaddr *)address, sizeof *address), error = errno;

    umask(mask);
    errno = error;
    return result;
}

int by_link_open(struct by_dp_link **out, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct by_dp_link *link = calloc(1, sizeof *link);
    struct epoll_event event = {.events = EPOLLIN};
    struct stat stat;

    if (!link || !(link->path = strdup(path))) {
        free(link);
        return BY_ENOMEM;
    }
    link->memory_fd = -1;
    link->again = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    link->bells = epoll_create1(EPOLL_CLOEXEC);
    link->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        by_say("--shm %s: a socket's path has at most %zu characters", path, sizeof address.sun_path - 1);
        by_link_close(link);
        return BY_EINVAL;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    /* A socket without a listener was left by a killed switch. */
    if (link->listener >= 0 && lstat(path, &stat) == 0 && S_ISSOCK(stat.st_mode) &&
        connect(link->listener, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED)
        unlink(path);
    if (link->listener < 0 || bind_private(link->listener, &address) != 0 ||
        listen(link->listener, BY_LINK_HOSTS_MAX) != 0) {
        int error = errno;

        by_say("--shm %s: cannot open a socket there: %s", path, strerror(error));
        by_link_close(link);
        return error == EADDRINUSE ? BY_EEXIST : error == ENOENT ? BY_EINVAL : BY_EIO;
    }
    link->bound = true;
    event.data.fd = link->listener;
    if (link->bells < 0 || link->again < 0 ||
        epoll_ctl(link->bells, EPOLL_CTL_ADD, link->listener, &event) != 0 ||
        epoll_ctl(link->bells, EPOLL_CTL_ADD, link->again, &event) != 0) {
        by_say("--shm %s: cannot open a descriptor to wait on: %s", path, strerror(errno));
        by_link_close(link);
        return BY_EIO;
    }
    *out = link;
    return 0;
}

void by_link_start(struct by_dp_link *link, uint16_t port, struct by_engine *engine, const uint8_t *memory,
                   uint64_t memory_bytes, int memory_fd)
{
    link->port = port;
    link->engine = engine;
    link->memory = memory;
    link->memory_bytes = memory_bytes;
    link->memory_fd = memory_fd;
}

void by_link_close(struct by_dp_link *link)
{
    while (link->host_count > 0)
        by_link_host_free(link, link->host[--link->host_count]);
    if (link->bound)
        unlink(link->path);
    close_fd(link->listener);
    close_fd(link->bells);
    close_fd(link->again);
    free(link->path);
    free(link);
}

int by_link_fd(const struct by_dp_link *link)
{
    return link->bells;
}
