/* See reason.h. */
#include "host-driver/fallback/reason.h"

#include <stdio.h>

#include "host-driver/address.h"
#include "host-driver/error.h"
#include "host-driver/fallback/mesh.h"
#include "host-driver/fallback/peers.h"

void by_reason(const struct by_host_mesh *mesh, const struct by_mesh_fault *fault, uint64_t silent_ns,
               const char *why, char *text, size_t bytes)
{
    char ip[BY_IP_TEXT], at[BY_IP_TEXT + 4] = "";

    if (fault->rank < mesh->rank_count) {
        by_ip_text(mesh->ip[fault->rank], ip);
        snprintf(at, sizeof(at), " (%s)", ip);
    }
    switch (fault->error) {
    case BY_EIO:
        snprintf(text, bytes,
                 "rank %u%s has closed its connections: it ended, was killed, or its host failed",
                 fault->rank, at);
        break;
    case BY_ETIMEDOUT:
        snprintf(text, bytes,
                 "rank %u%s was silent for %.1f s; it is stopped, or has not called this collective",
                 fault->rank, at, (double)silent_ns / 1e9);
        break;
    case BY_EMISMATCH:
        snprintf(text, bytes,
                 "rank %u%s is in another collective, or calls it with another operator, type, root or "
                 "count",
                 fault->rank, at);
        break;
    case BY_ELIMIT:
        snprintf(
            text, bytes, "rank %u%s cannot connect to another rank: %s", fault->rank, at,
            fault->rank == mesh->rank
                ? by_files_reason(mesh->limit_why)
                : "it may open no more files; raise the limit of its process (ulimit -n), or start fewer "
                  "ranks");
        break;
    default:
        snprintf(text, bytes, "rank %u%s: %s", fault->rank, at,
                 why[0] != 0 ? why : by_error_text(fault->error));
        break;
    }
}
