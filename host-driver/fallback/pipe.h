/*
 * Memory that two ranks of one host share in place of a TCP connection's data: a ring for each
 * direction. The rank that connects offers the memory, which has no name, by the number of its
 * descriptor; the other one opens it there. If that fails, as between containers, the ranks use
 * their connection. The connection carries doorbells in any case: a byte wakes the other end.
 * Non-blocking; one thread at each end.
 */
#ifndef BY_HOST_FALLBACK_PIPE_H
#define BY_HOST_FALLBACK_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;

/* Where the memory is; travels in a greeting. All zeros: no offer. */
struct by_pipe_offer {
    int32_t pid, fd;
    uint64_t nonce;
};

struct by_pipe; /* one end */

/* Returns the bytes of each direction where `ranks` ranks share a host. */
uint32_t by_pipe_bytes(uint32_t ranks);
/* Creates the memory. NULL, and no offer: the system refuses it. */
struct by_pipe *by_pipe_create(uint32_t bytes, struct by_pipe_offer *offer);
/* Opens what another rank offers; NULL: it cannot be opened, or is something else. */
struct by_pipe *by_pipe_open(const struct by_pipe_offer *offer, uint32_t bytes);
/* The other rank has opened it, so the descriptor is not needed any more. */
void by_pipe_settle(struct by_pipe *pipe);
void by_pipe_close(struct by_pipe *pipe);

/* Copies what it can between the pieces and the ring; rings the bell on `bell` if the other end
 * sleeps. Returns the bytes; 0 if there are none, or no room; -1 if the memory is damaged. */
ssize_t by_pipe_move(struct by_pipe *pipe, bool sends, const struct iovec *piece, uint32_t count, int bell);
/* Copies `size` bytes that wait to be received, and leaves them there. False: there are fewer. */
bool by_pipe_peek(const struct by_pipe *pipe, void *to, size_t size);
/* Whether bytes wait, or there is room. */
bool by_pipe_is_ready(const struct by_pipe *pipe, bool sends);
/* Announces that this end sleeps until by_pipe_is_ready, which must be called once more. */
void by_pipe_doze(struct by_pipe *pipe, bool sends);
/* Whether this end has dozed since the last call, so that bells may have arrived. */
bool by_pipe_wake(struct by_pipe *pipe);

#endif
