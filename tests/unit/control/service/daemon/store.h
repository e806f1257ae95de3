/* A store in a folder of its own, with jobs and changes of a small fabric, for tests that call it
 * without a daemon. One at a time. */
#ifndef BY_TEST_DAEMON_STORE_H
#define BY_TEST_DAEMON_STORE_H

#include "control/service/daemon/state.h"

enum { H0, H1, X0, X1, NODES };
enum { LINKS = 3, JOBS_MAX = 4 };
/* Generations that are recorded in advance. */
#define RESERVE 16u

extern struct store_bench {
    char folder[64];
    struct by_topology *topology;
    struct by_lower_options lower;
    struct by_state *state;
    struct by_job jobs[JOBS_MAX];
    uint8_t bytes[NODES][3]; /* of images */
} store;

/* A change with the memory that it refers to. */
struct store_change {
    struct by_change change;
    struct by_change_job jobs[JOBS_MAX];
    struct by_change_image images[NODES];
    uint64_t nonces[NODES];
    uint32_t target_nodes[NODES];
};

/* The jobs of the store. */
struct store_loaded {
    struct by_job **jobs;
    uint32_t count;
};

void store_open(void);
void store_close(void);
/* Closes the store and opens it, as the next program does. */
void store_reopen(void);
/* Begins a change; adds the job of that place, with new tables of its next generation or as it is,
 * and an image of three such bytes. */
void store_change(struct store_change *made, uint64_t push_id);
struct by_change_job *store_add(struct store_change *made, unsigned place, bool anew);
void store_add_image(struct store_change *made, uint32_t node, uint8_t byte, uint64_t nonce, bool target);
/* Gives the job its new tables, as by_change_adopt does; else frees them. */
void store_take(struct by_change_job *entry, bool adopted);
/* Records the begin of a push. */
void store_begin(struct store_change *made);
/* Pushes the job of that place for the first or another time, with the others that have tables. */
void store_push(unsigned place, uint64_t push_id);
struct store_loaded store_load(void);
void store_unload(struct store_loaded *loaded);
/* Requires these jobs: "1 generation 3 last 19, 2 failed last 5". */
void store_has_jobs(const char *expected);
/* Returns the last generation of a job that has ended; 0: none. */
uint16_t store_ended(uint16_t job);
/* Requires the image of a switch, of three such bytes; 0: none. */
void store_has_image(uint32_t node, uint8_t byte, uint64_t nonce);
/* Requires this open push: its number, and its switches. */
void store_has_push(uint64_t push_id, uint32_t count, uint32_t first);
/* Changes the database of another connection. */
void store_sql(const char *sql);
/* Closes the store, and gives it the format of version 1, with a seed. */
void store_downgrade(uint64_t high, uint64_t low);

#endif
