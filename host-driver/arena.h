/*
 * Memory that this process shares with switches of the same machine: one range, of which pieces are
 * given to users (banyan_alloc). Pages exist once they are touched, and are gone when their piece
 * is given back. One thread, that of the communicator.
 */
#ifndef BY_HOST_ARENA_H
#define BY_HOST_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct by_arena;

/* A range of `bytes`. 0, BY_ENOMEM or BY_EIO with its text set. */
int by_arena_open(struct by_arena **arena, uint64_t bytes);
void by_arena_close(struct by_arena *arena);
/* A piece of at least `bytes`, on a page's start, zeroed; NULL when no gap is large enough. */
void *by_arena_take(struct by_arena *arena, uint64_t bytes);
/* Gives a piece back. 0, or BY_EINVAL when it is none. */
int by_arena_give(struct by_arena *arena, void *piece);

uint64_t by_arena_bytes(const struct by_arena *arena);
/* Descriptor of the range, for those who share it. */
int by_arena_fd(const struct by_arena *arena);

/* Where [at, at + bytes) lies in the range; UINT64_MAX when it does not. */
uint64_t by_arena_offset(const struct by_arena *arena, const void *at, uint64_t bytes);

#endif
