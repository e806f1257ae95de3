/* The range that is shared with switches; see arena.h. Pieces form a list in order of address; a
 * new piece is placed into the first gap. */
#include "host-driver/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host-driver/error.h"

#define PAGE ((uint64_t)4096)
#define HUGE ((uint64_t)2 << 20) /* pieces of this size are aligned to huge pages */

struct arena_piece {
    struct arena_piece *next;
    uint64_t at, bytes;
};

struct by_arena {
    uint8_t *memory;
    uint64_t bytes;
    /* of the sum of pieces; `bytes` is the limit rounded up to huge pages, at least one */
    uint64_t limit;
    int fd;
    struct arena_piece *first;
};

int by_arena_open(struct by_arena **out, uint64_t bytes)
{
    struct by_arena *arena = calloc(1, sizeof(*arena));

    if (arena == NULL)
        return by_fail(BY_ENOMEM, "no memory for a shared range");
    arena->limit = bytes;
    arena->bytes = bytes == 0 ? HUGE : (bytes + HUGE - 1) / HUGE * HUGE;
    arena->memory = MAP_FAILED;
    arena->fd = memfd_create("banyan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* The size is sealed: a reader of a shortened range would be killed. */
    if (arena->fd >= 0 && ftruncate(arena->fd, (off_t)arena->bytes) == 0 &&
        fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        arena->memory =
            mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena->fd, 0);
    if (arena->memory == MAP_FAILED) {
        int error = errno;

        arena->memory = NULL;
        by_arena_close(arena);
        return by_fail(error == ENOMEM ? BY_ENOMEM : BY_EIO,
                       "cannot allocate %llu bytes to share with the switch: %s; reduce BANYAN_ARENA",
                       (unsigned long long)bytes, strerror(error));
    }
    madvise(arena->memory, arena->bytes, MADV_HUGEPAGE);
    *out = arena;
    return 0;
}

void by_arena_close(struct by_arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->first != NULL) {
        struct arena_piece *next = arena->first->next;

        free(arena->first);
        arena->first = next;
    }
    if (arena->memory != NULL)
        munmap(arena->memory, arena->bytes);
    if (arena->fd >= 0)
        close(arena->fd);
    free(arena);
}

void *by_arena_take(struct by_arena *arena, uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE ? HUGE : PAGE;
    uint64_t at = 0;
    struct arena_piece **link = &arena->first;
    struct arena_piece *piece;

    if (bytes > arena->limit || arena->limit == 0)
        return NULL;
    bytes = bytes == 0 ? PAGE : (bytes + PAGE - 1) / PAGE * PAGE;
    for (; *link != NULL && (*link)->at < at + bytes; link = &(*link)->next)
        at = ((*link)->at + (*link)->bytes + unit - 1) / unit * unit;
    if (at > arena->limit || arena->limit - at < bytes)
        return NULL;
    piece = malloc(sizeof(*piece));
    if (piece == NULL)
        return NULL;
    *piece = (struct arena_piece){*link, at, bytes};
    *link = piece;
    return arena->memory + at;
}

int by_arena_give(struct by_arena *arena, void *address)
{
    for (struct arena_piece **link = &arena->first; *link != NULL; link = &(*link)->next) {
        struct arena_piece *piece = *link;

        if (arena->memory + piece->at != (uint8_t *)address)
            continue;
        /* The next piece reads zeros, and the pages are released until then. */
        if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)piece->at,
                      (off_t)piece->bytes) != 0)
            memset(address, 0, piece->bytes);
        *link = piece->next;
        free(piece);
        return 0;
    }
    return BY_EINVAL;
}

uint64_t by_arena_bytes(const struct by_arena *arena)
{
    return arena->bytes;
}

int by_arena_fd(const struct by_arena *arena)
{
    return arena->fd;
}

uint64_t by_arena_offset(const struct by_arena *arena, const void *at, uint64_t bytes)
{
    uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)arena->memory);

    return (uintptr_t)at >= (uintptr_t)arena->memory && offset <= arena->bytes &&
                   bytes <= arena->bytes - offset
               ? offset
               : UINT64_MAX;
}
