/* The text of a fault between the ranks: which rank it concerns, what it did, and the remedy. Any
 * thread. */
#ifndef BY_HOST_FALLBACK_REASON_H
#define BY_HOST_FALLBACK_REASON_H

#include <stddef.h>
#include <stdint.h>

struct by_host_mesh;
struct by_mesh_fault;

/* Writes why `fault` ended the calls, at most `bytes` bytes with the zero. `silent_ns`: how long
 * nothing had moved; `why`: the reason of a schedule, or "". */
void by_reason(const struct by_host_mesh *mesh, const struct by_mesh_fault *fault, uint64_t silent_ns,
               const char *why, char *text, size_t bytes);

#endif
