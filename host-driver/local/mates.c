/* The memory and the sockets of the ranks of a host; see mates.h. */
#include "host-driver/local/mates.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "host-driver/local/slices.h"

#define MAGIC   UINT32_C(0x62796c31) /* "byl1" */
#define VERSION 2u
#define EVENTS  32 /* doorbells read at once */
/* Bytes of a slot: large enough that the work for each slice does not count, small enough that the
 * slots of a few ranks fit a second-level cache. */
#define SLOT_BYTES_MAX  (256u << 10)
#define SLOT_BYTES_MIN  (16u << 10)
#define SLOTS_BYTES_MAX (96u << 20) /* of all ranks of a host together */

struct mates_hello {
    uint32_t magic, version;
    uint64_t key;
    uint32_t rank, index;
    int32_t pid;
};

uint32_t by_mates_slot_bytes(uint32_t mates, uint32_t rank_count)
{
    uint32_t bytes = SLOTS_BYTES_MAX / BY_MATES_SLOTS / (mates + 1);
    uint32_t least = rank_count * BY_SLOT_BYTES_LEAST;

    bytes = bytes < SLOT_BYTES_MAX ? bytes : SLOT_BYTES_MAX;
    least = least > SLOT_BYTES_MIN ? least : SLOT_BYTES_MIN;
    bytes = bytes > least ? bytes : least;
    return (bytes + 4095u) / 4096u * 4096u;
}

/* ---- memory */

static uint64_t pages(uint64_t bytes)
{
    return (bytes + 4095u) / 4096u * 4096u;
}

static int map(struct by_mates *mates, int fd, uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return by_fail(BY_ENOMEM, "cannot map %llu bytes that the ranks of this host share: %s",
                       (unsigned long long)bytes, strerror(errno));
    madvise(memory, bytes, MADV_HUGEPAGE);
    mates->head = memory;
    mates->bytes = bytes;
    return 0;
}

/* Creates the memory; returns its descriptor, or an error with its text. */
static int create(struct by_mates *mates, const struct by_seats *seats, const void *image, size_t image_bytes)
{
    uint32_t slot_bytes = by_mates_slot_bytes(seats->mates, seats->rank_count);
    uint64_t image_at = pages(sizeof(*mates->head) + seats->mates * sizeof(mates->head->rank[0]));
    uint64_t slots_at = pages(image_at + image_bytes);
    uint64_t bytes = slots_at + (uint64_t)BY_MATES_SLOTS * slot_bytes * (seats->mates + 1);
    int fd = memfd_create("banyan-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error;

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        error = by_fail(BY_ENOMEM, "cannot allocate %llu bytes that the ranks of this host share: %s",
                        (unsigned long long)bytes, strerror(errno));
    else
        error = map(mates, fd, bytes);
    if (error != 0) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    mates->head->magic = MAGIC;
    mates->head->version = VERSION;
    mates->head->mates = seats->mates;
    mates->head->slot_bytes = slot_bytes;
    mates->head->image_at = image_at;
    mates->head->image_bytes = image_bytes;
    mates->head->slots_at = slots_at;
    mates->head->bytes = bytes;
    for (uint32_t index = 0; index < seats->mates; index++)
        mates->head->rank[index].rank = by_seats_mate(seats, index);
    mates->head->rank[0].pid = (int32_t)getpid();
    memcpy((uint8_t *)mates->head + image_at, image, image_bytes);
    return fd;
}

static uint8_t *slot(const struct by_mates *mates, uint32_t row, uint64_t slice)
{
    uint64_t number = (uint64_t)row * BY_MATES_SLOTS + slice % BY_MATES_SLOTS;

    return (uint8_t *)mates->head + mates->head->slots_at + number * mates->head->slot_bytes;
}

uint8_t *by_mates_input(const struct by_mates *mates, uint32_t index, uint64_t slice)
{
    return slot(mates, index + 1, slice);
}

uint8_t *by_mates_result(const struct by_mates *mates, uint64_t slice)
{
    return slot(mates, 0, slice);
}

const uint8_t *by_mates_image(const struct by_mates *mates)
{
    return (const uint8_t *)mates->head + mates->head->image_at;
}

/* ---- open and close */

void by_mates_init(struct by_mates *mates)
{
    memset(mates, 0, sizeof(*mates));
    mates->listener = mates->watch = mates->always = -1;
}

/* An abstract address: it vanishes with the socket. */
static socklen_t address_of(uint64_t key, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                                        "banyan-ranks-%016llx", (unsigned long long)key));
}

static int prepare(struct by_mates *mates, uint32_t index, uint32_t count, uint32_t links)
{
    mates->index = index;
    mates->count = count;
    mates->socket = calloc(links, sizeof(*mates->socket));
    mates->gone = calloc(links, sizeof(*mates->gone));
    if (mates->socket == NULL || mates->gone == NULL)
        return by_fail(BY_ENOMEM, "no memory for the %u ranks of this host", count);
    for (uint32_t i = 0; i < links; i++)
        mates->socket[i] = -1;
    mates->always = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    return mates->always >= 0
               ? 0
               : by_fail(BY_EIO, "cannot create an event for the ranks of this host: %s", strerror(errno));
}

int by_mates_listen(struct by_mates *mates, uint64_t key)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(key, &address);

    mates->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (mates->listener >= 0 && bind(mates->listener, (struct sockaddr *)&address, bytes) == 0 &&
        listen(mates->listener, SOMAXCONN) == 0)
        return 0;
    return by_fail(BY_EIO, "cannot listen for the other ranks of this host: %s", strerror(errno));
}

/* Waits until `fd` is readable. 0 or BY_ETIMEDOUT. */
static int await(int fd, uint64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    for (;;) {
        uint64_t now_ns = by_clock_ns();
        uint64_t left = deadline_ns > now_ns ? (deadline_ns - now_ns + 999999u) / 1000000u : 0;

        if (poll(&one, 1, left < 60000 ? (int)left : 60000) > 0)
            return 0;
        if (by_clock_ns() >= deadline_ns)
            return BY_ETIMEDOUT;
    }
}

/* Whether the process at the other end belongs to the same user. */
static bool is_ours(int fd)
{
    struct ucred other;
    socklen_t bytes = sizeof(other);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 && other.uid == geteuid();
}

/* Sends the memory's descriptor, with one byte. */
static int hand_over(int fd, int memory_fd)
{
    uint8_t control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    uint8_t one = 1;
    struct iovec piece = {&one, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &memory_fd, sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Takes one connection; closes it unless it is of a rank that is missing. */
static void admit_one(struct by_mates *mates, const struct by_seats *seats, uint64_t key, int memory_fd)
{
    struct mates_hello hello;
    int fd = accept4(mates->listener, NULL, NULL, SOCK_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};

    if (fd < 0)
        return;
    /* a rank sends its hello at once */
    if (!is_ours(fd) || await(fd, by_clock_ns() + UINT64_C(1000000000)) != 0 ||
        recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) != (ssize_t)sizeof(hello) || hello.magic != MAGIC ||
        hello.version != VERSION || hello.key != key || hello.index == 0 || hello.index >= mates->count ||
        hello.rank != by_seats_mate(seats, hello.index) || mates->socket[hello.index] >= 0 ||
        hand_over(fd, memory_fd) != 0) {
        close(fd);
        return;
    }
    mates->socket[hello.index] = fd;
    mates->head->rank[hello.index].pid = hello.pid;
    event.data.u32 = hello.index;
    epoll_ctl(mates->watch, EPOLL_CTL_ADD, fd, &event);
}

static uint32_t first_missing(const struct by_mates *mates)
{
    uint32_t index = 1;

    while (index < mates->count && mates->socket[index] >= 0)
        index++;
    return index;
}

int by_mates_admit(struct by_mates *mates, const struct by_seats *seats, uint64_t key, const void *image,
                   size_t image_bytes, uint64_t deadline_ns)
{
    int error = prepare(mates, 0, seats->mates, seats->mates);
    int fd = error == 0 ? create(mates, seats, image, image_bytes) : error;

    if (fd < 0)
        return fd;
    mates->watch = epoll_create1(EPOLL_CLOEXEC);
    if (mates->watch < 0)
        error = by_fail(BY_EIO, "cannot watch the ranks of this host: %s", strerror(errno));
    while (error == 0 && first_missing(mates) < mates->count) {
        if (await(mates->listener, deadline_ns) == 0) {
            admit_one(mates, seats, key, fd);
            continue;
        }
        error = by_fail(BY_ETIMEDOUT,
                        "rank %u, which leads the %u ranks of its host, waits for rank %u there; do both run "
                        "in the same network namespace, as the same user?",
                        seats->rank, seats->mates, by_seats_mate(seats, first_missing(mates)));
    }
    close(fd);
    close(mates->listener);
    mates->listener = -1;
    return error;
}

/* Receives the memory's descriptor; -1 if it does not come. */
static int receive(int fd)
{
    uint8_t control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    uint8_t one;
    struct iovec piece = {&one, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    int memory_fd = -1;

    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&memory_fd, CMSG_DATA(header), sizeof(int));
    return memory_fd;
}

/* Maps the memory, whose head must be as the leader of these ranks makes it. */
static int take(struct by_mates *mates, const struct by_seats *seats, int memory_fd)
{
    off_t bytes = lseek(memory_fd, 0, SEEK_END);
    const struct by_mates_head *head;
    int error;

    if (bytes < (off_t)sizeof(*head))
        return by_fail(BY_EFORMAT, "the memory of rank %u is too small", by_seats_mate(seats, 0));
    error = map(mates, memory_fd, (uint64_t)bytes);
    head = mates->head;
    if (error == 0 && (head->magic != MAGIC || head->version != VERSION || head->mates != seats->mates ||
                       head->bytes != (uint64_t)bytes ||
                       head->slot_bytes != by_mates_slot_bytes(seats->mates, seats->rank_count)))
        error = by_fail(BY_EVERSION, "rank %u, which leads this host, runs another version of libbanyan",
                        by_seats_mate(seats, 0));
    return error;
}

int by_mates_join(struct by_mates *mates, const struct by_seats *seats, uint64_t key, uint64_t deadline_ns)
{
    struct mates_hello hello = {.magic = MAGIC,
                                .version = VERSION,
                                .key = key,
                                .rank = seats->rank,
                                .index = seats->index,
                                .pid = (int32_t)getpid()};
    struct sockaddr_un address;
    socklen_t bytes = address_of(key, &address);
    int error = prepare(mates, seats->index, seats->mates, 1);
    int fd, memory_fd = -1;

    if (error != 0)
        return error;
    fd = mates->socket[0] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, bytes) != 0)
        return by_fail(BY_ENOENT,
                       "rank %u cannot reach rank %u, which leads its host: %s; do both run in the same "
                       "network namespace?",
                       seats->rank, by_seats_mate(seats, 0), strerror(errno));
    if (is_ours(fd) && send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello) &&
        await(fd, deadline_ns) == 0)
        memory_fd = receive(fd);
    if (memory_fd < 0)
        return by_fail(BY_EIO, "rank %u, which leads the host, does not admit rank %u; did it end?",
                       by_seats_mate(seats, 0), seats->rank);
    error = take(mates, seats, memory_fd);
    close(memory_fd);
    return error;
}

void by_mates_part(struct by_mates *mates)
{
    uint32_t links = mates->index == 0 ? mates->count : 1;

    for (uint32_t i = 0; mates->socket != NULL && i < links; i++)
        if (mates->socket[i] >= 0)
            close(mates->socket[i]);
    free(mates->socket);
    free(mates->gone);
    mates->socket = NULL;
    mates->gone = NULL;
    if (mates->listener >= 0)
        close(mates->listener);
    if (mates->watch >= 0)
        close(mates->watch);
    if (mates->always >= 0)
        close(mates->always);
    mates->listener = mates->watch = mates->always = -1;
}

void by_mates_close(struct by_mates *mates)
{
    if (mates->head != NULL) {
        atomic_store(&mates->head->rank[mates->index].left, 1);
        munmap(mates->head, mates->bytes);
    }
    by_mates_part(mates);
    by_mates_init(mates);
}

/* ---- doorbells */

void by_mates_wake(struct by_mates *mates, uint32_t index)
{
    int fd = mates->socket[mates->index == 0 ? index : 0];
    const uint8_t ring = 1;

    if (atomic_load(&mates->head->rank[index].asleep) == 0 ||
        atomic_exchange(&mates->head->rank[index].asleep, 0) == 0)
        return;
    /* the other end has been rung often enough, or has ended */
    if (fd >= 0 && send(fd, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

void by_mates_wake_all(struct by_mates *mates)
{
    if (mates->index != 0)
        by_mates_wake(mates, 0);
    for (uint32_t index = 1; mates->index == 0 && index < mates->count; index++)
        by_mates_wake(mates, index);
}

/* Reads all that has arrived; sets `gone` when the other end has closed. */
static void drain(struct by_mates *mates, uint32_t link)
{
    uint8_t rings[64];
    ssize_t bytes;

    if (mates->gone[link])
        return;
    do
        bytes = recv(mates->socket[link], rings, sizeof(rings), MSG_DONTWAIT);
    while (bytes > 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    mates->gone[link] = true;
    if (mates->watch >= 0)
        epoll_ctl(mates->watch, EPOLL_CTL_DEL, mates->socket[link], NULL);
}

void by_mates_hear(struct by_mates *mates)
{
    struct epoll_event event[EVENTS];
    int count;

    atomic_store(&mates->head->rank[mates->index].asleep, 0);
    if (mates->index != 0) {
        drain(mates, 0);
        return;
    }
    do {
        count = epoll_wait(mates->watch, event, EVENTS, 0);
        for (int i = 0; i < count; i++)
            drain(mates, event[i].data.u32);
    } while (count == EVENTS);
}

void by_mates_doze(struct by_mates *mates)
{
    atomic_store(&mates->head->rank[mates->index].asleep, 1);
}

uint32_t by_mates_fds(const struct by_mates *mates, bool work, struct pollfd *fds)
{
    fds->fd = work                ? mates->always
              : mates->index == 0 ? mates->watch
              : mates->gone[0]    ? -1
                                  : mates->socket[0];
    fds->events = POLLIN;
    return 1;
}

/* ---- errors */

bool by_mates_record(struct by_mates *mates, int error, uint32_t culprit, const char *text)
{
    struct by_mates_head *head = mates->head;
    unsigned none = 0;

    if (!atomic_compare_exchange_strong(&head->error_state, &none, 1))
        return false;
    head->error = error;
    head->culprit = culprit;
    snprintf(head->text, sizeof(head->text), "%s", text);
    atomic_store(&head->error_state, 2);
    return true;
}

void by_mates_fail(struct by_mates *mates, int error, uint32_t culprit, const char *text)
{
    if (by_mates_record(mates, error, culprit, text))
        by_mates_wake_all(mates);
}

int by_mates_error(const struct by_mates *mates)
{
    if (atomic_load_explicit(&mates->head->error_state, memory_order_acquire) != 2)
        return 0;
    return mates->head->error != 0 ? mates->head->error : BY_ESTATE;
}
