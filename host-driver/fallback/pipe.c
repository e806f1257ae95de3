/* Memory between two ranks of a host; see pipe.h. */
#include "host-driver/fallback/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC     UINT32_C(0x62797231) /* "byr1" */
#define BYTES_MAX (256u << 10)         /* two of them fit a second-level cache */
#define BYTES_MIN (16u << 10)
#define HOST_MAX  (64u << 20) /* of all pairs of a host, where BYTES_MIN permits it */
#define HEAD      4096u
#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW)

/* One direction. Positions count bytes from the beginning; each has one writer. */
struct pipe_way {
    alignas(64) atomic_uint_fast64_t written;
    atomic_uint wants_data; /* the receiver sleeps */
    alignas(64) atomic_uint_fast64_t taken;
    atomic_uint wants_room; /* the sender sleeps */
};

/* Start of the memory; the data of both ways follow at HEAD. */
struct pipe_head {
    uint32_t magic, bytes;
    uint64_t nonce;
    struct pipe_way way[2]; /* [0]: from the rank that offers it */
};

_Static_assert(sizeof(struct pipe_head) <= HEAD, "the head fits its page");

struct by_pipe {
    struct pipe_head *head;
    uint32_t bytes;
    uint32_t sends; /* the way of this end */
    int fd;         /* until by_pipe_settle; or -1 */
    bool has_dozed;
};

uint32_t by_pipe_bytes(uint32_t ranks)
{
    uint64_t pairs = (uint64_t)ranks * (ranks - 1) / 2;
    uint32_t bytes = BYTES_MAX;

    while (bytes > BYTES_MIN && 2 * pairs * bytes > HOST_MAX)
        bytes /= 2;
    return bytes;
}

/* ---- opening */

static struct by_pipe *map(int fd, uint32_t bytes, uint32_t sends)
{
    struct by_pipe *pipe = calloc(1, sizeof(*pipe));
    void *memory = mmap(NULL, HEAD + 2 * (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (pipe == NULL || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, HEAD + 2 * (size_t)bytes);
        free(pipe);
        return NULL;
    }
    *pipe = (struct by_pipe){.head = memory, .bytes = bytes, .sends = sends, .fd = -1};
    return pipe;
}

struct by_pipe *by_pipe_create(uint32_t bytes, struct by_pipe_offer *offer)
{
    int fd = memfd_create("banyan-pipe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct by_pipe *pipe = NULL;
    uint64_t nonce;

    *offer = (struct by_pipe_offer){0};
    if (fd >= 0 && getrandom(&nonce, sizeof(nonce), 0) == (ssize_t)sizeof(nonce) &&
        ftruncate(fd, (off_t)(HEAD + 2 * (size_t)bytes)) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        pipe = map(fd, bytes, 0);
    if (pipe == NULL) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    pipe->fd = fd;
    pipe->head->magic = MAGIC;
    pipe->head->bytes = bytes;
    pipe->head->nonce = nonce;
    *offer = (struct by_pipe_offer){.pid = (int32_t)getpid(), .fd = fd, .nonce = nonce};
    return pipe;
}

/* A file of this size that cannot shrink: another process cannot make accesses fail. */
static bool is_sound(int fd, uint32_t bytes)
{
    struct stat file;

    return fstat(fd, &file) == 0 && file.st_uid == geteuid() &&
           file.st_size == (off_t)(HEAD + 2 * (size_t)bytes) && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

struct by_pipe *by_pipe_open(const struct by_pipe_offer *offer, uint32_t bytes)
{
    struct by_pipe *pipe = NULL;
    struct stat file;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)offer->pid, (int)offer->fd);
    /* opening a device may have an effect */
    fd = stat(path, &file) == 0 && S_ISREG(file.st_mode) ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return NULL;
    /* fcntl returns -1, all bits, for what is no memory */
    if (fcntl(fd, F_GET_SEALS) >= 0 && is_sound(fd, bytes))
        pipe = map(fd, bytes, 1);
    close(fd);
    if (pipe != NULL &&
        (pipe->head->magic != MAGIC || pipe->head->bytes != bytes || pipe->head->nonce != offer->nonce)) {
        by_pipe_close(pipe);
        return NULL;
    }
    return pipe;
}

void by_pipe_settle(struct by_pipe *pipe)
{
    if (pipe->fd >= 0)
        close(pipe->fd);
    pipe->fd = -1;
}

void by_pipe_close(struct by_pipe *pipe)
{
    if (pipe == NULL)
        return;
    by_pipe_settle(pipe);
    munmap(pipe->head, HEAD + 2 * (size_t)pipe->bytes);
    free(pipe);
}

/* ---- data */

static struct pipe_way *way_of(const struct by_pipe *pipe, bool sends)
{
    return &pipe->head->way[sends ? pipe->sends : 1 - pipe->sends];
}

static uint8_t *data_of(const struct by_pipe *pipe, bool sends)
{
    return (uint8_t *)pipe->head + HEAD + (size_t)(sends ? pipe->sends : 1 - pipe->sends) * pipe->bytes;
}

/* Bytes that wait; more than the ring has: the memory is damaged. */
static uint64_t waiting(const struct pipe_way *way)
{
    return atomic_load(&way->written) - atomic_load(&way->taken);
}

static void copy(const struct by_pipe *pipe, bool sends, uint64_t at, uint8_t *user, size_t bytes)
{
    uint8_t *data = data_of(pipe, sends);
    size_t first = pipe->bytes - (size_t)(at % pipe->bytes);

    first = first < bytes ? first : bytes;
    if (sends) {
        memcpy(data + at % pipe->bytes, user, first);
        memcpy(data, user + first, bytes - first);
    } else {
        memcpy(user, data + at % pipe->bytes, first);
        memcpy(user + first, data, bytes - first);
    }
}

ssize_t by_pipe_move(struct by_pipe *pipe, bool sends, const struct iovec *piece, uint32_t count, int bell)
{
    struct pipe_way *way = way_of(pipe, sends);
    atomic_uint_fast64_t *mine = sends ? &way->written : &way->taken;
    atomic_uint *sleeper = sends ? &way->wants_data : &way->wants_room;
    uint64_t held = waiting(way), at = atomic_load(mine), moved = 0, most;

    if (held > pipe->bytes)
        return -1;
    most = sends ? pipe->bytes - held : held;
    for (uint32_t i = 0; i < count && moved < most; i++) {
        size_t part = piece[i].iov_len < most - moved ? piece[i].iov_len : (size_t)(most - moved);

        copy(pipe, sends, at + moved, piece[i].iov_base, part);
        moved += part;
    }
    if (moved == 0)
        return 0;
    atomic_store(mine, at + moved);
    if (atomic_load(sleeper) != 0 && atomic_exchange(sleeper, 0) != 0)
        (void)!send(bell, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return (ssize_t)moved;
}

bool by_pipe_peek(const struct by_pipe *pipe, void *to, size_t size)
{
    const struct pipe_way *way = way_of(pipe, false);
    uint64_t held = waiting(way);

    if (held < size || held > pipe->bytes)
        return false;
    copy(pipe, false, atomic_load(&way->taken), to, size);
    return true;
}

bool by_pipe_is_ready(const struct by_pipe *pipe, bool sends)
{
    uint64_t held = waiting(way_of(pipe, sends));

    return sends ? held != pipe->bytes : held != 0;
}

void by_pipe_doze(struct by_pipe *pipe, bool sends)
{
    struct pipe_way *way = way_of(pipe, sends);

    atomic_store(sends ? &way->wants_room : &way->wants_data, 1);
    pipe->has_dozed = true;
}

bool by_pipe_wake(struct by_pipe *pipe)
{
    bool has_dozed = pipe->has_dozed;

    pipe->has_dozed = false;
    return has_dozed;
}
