/*
 * The host's end of a port that shares memory: hello, contributions, results. Shared by the tests
 * of link.c and link_host.c.
 */
#ifndef BY_TEST_LINK_RIG_H
#define BY_TEST_LINK_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/link_host.h"
#include "tests/unit/dataplane/memory.h"

#define HOSTS      2u
#define COUNT      64u
#define PAYLOAD    1024u
#define MEMORY     (64u << 10)
#define HUGE_BYTES (2u << 20)

extern const struct star link_star;
extern char link_paths[HOSTS][64];

/* One host's side of a cable. */
struct dataplane_link_end {
    int socket, memory_fd, cable_fd;
    struct by_shm_challenge challenge;
    uint8_t *memory;
    struct by_shm_cable *cable;
    const uint8_t *there;
    uint64_t there_bytes;
    struct by_shm_sender sender;
    struct by_shm_receiver receiver;
};

/* 1: offers memory of huge pages in place of tmpfs. */
extern bool link_huge;
/* Answers the challenge in the hello; NULL: the hello has no proof. */
extern void (*link_prover)(const struct dataplane_link_end *end, struct by_shm_hello *hello);

struct by_shell *link_open_shell(void);
void link_serve(struct by_shell *shell);
int link_sealed(const char *name, uint64_t bytes, int seals);
int link_huge_file(int seals);
int link_greet(struct by_shell *shell, struct dataplane_link_end *end, unsigned host,
               struct by_shm_hello *hello, unsigned count, int seals);
void link_leave(struct dataplane_link_end *end);
struct by_shm_hello link_hello(void);
void link_join(struct by_shell *shell, struct dataplane_link_end *end, unsigned host);
void link_give_summed(struct dataplane_link_end *end, unsigned host, uint32_t seq, uint64_t at, bool summed);
void link_give(struct dataplane_link_end *end, unsigned host, uint32_t seq, uint64_t at);
void link_take_result(struct dataplane_link_end *end, uint32_t seq);
unsigned link_references(struct by_shell *shell, uint32_t seq);

#endif
