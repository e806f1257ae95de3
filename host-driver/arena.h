/*
 * Memory that this process shares with switches on the same machine: one range, of which
 * banyan_alloc hands out pieces. Pages are allocated on first touch and released with their piece.
 * Thread: the communicator's.
 */
#ifndef BY_HOST_ARENA_H
#define BY_HOST_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct by_arena;

/* Creates a range of `bytes`. 0, or BY_ENOMEM or BY_EIO with its text. */
int by_arena_open(struct by_arena **arena, uint64_t bytes);
void by_arena_close(struct by_arena *arena);
/* Allocates a zeroed, page-aligned piece of at least `bytes`; NULL if no gap is large enough. */
void *by_arena_take(struct by_arena *arena, uint64_t bytes);
/* Frees a piece. 0, or BY_EINVAL if it is not a piece of this arena. */
int by_arena_give(struct by_arena *arena, void *piece);

uint64_t by_arena_bytes(const struct by_arena *arena);
/* Returns the descriptor of the range, to pass to switches that share it. */
int by_arena_fd(const struct by_arena *arena);

/* Offset of [at, at + bytes) in the range; UINT64_MAX if it is not inside. */
uint64_t by_arena_offset(const struct by_arena *arena, const void *at, uint64_t bytes);

#endif
