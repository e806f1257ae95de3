/*
 * Ranks that meet and all run on one host: connects them through its memory (host-driver/local),
 * and finds those that end or stay away during calls there, from the connections between the ranks.
 * Thread: the communicator's.
 */
#ifndef BY_HOST_FALLBACK_MEMORY_H
#define BY_HOST_FALLBACK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct by_host_mesh;
struct by_mesh_fault;
struct by_peers;
struct by_single;

/* Connects the ranks through memory if `wanted` is set at all, and all run on one host as one user
 * in one network namespace. All ranks call this. *single is NULL if they do not share memory.
 * Blocks until `deadline_ns`, and `stall_ns` more for the end. 0, or an error with its text. */
int by_memory_meet(struct by_peers *peers, bool wanted, uint64_t deadline_ns, uint64_t stall_ns,
                   struct by_single **single);
/* Reads the notices of failures. Sets `fault` if there is one, or if a rank without which calls
 * cannot go on has closed its connections or has been waited for too long (`late`). Ranks without
 * connections (an empty mesh) are looked for in the memory. */
void by_memory_watch(const struct by_single *single, struct by_host_mesh *mesh, bool late,
                     struct by_mesh_fault *fault);

#endif
