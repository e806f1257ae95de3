/*
 * How the ranks of a job find each other: through callbacks of the program, through RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or through their launcher, over PMIx or PMI-1. All but
 * the four variables provide only rank and rank count, and distribute one text of rank 0: the
 * address at which it listens. The ranks then connect there (host-driver/fallback/peers.h). One per
 * context; any thread may join, one at a time.
 */
#ifndef BY_HOST_BOOTSTRAP_H
#define BY_HOST_BOOTSTRAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <banyan/banyan.h>

#include "host-driver/fallback/peers.h"
#include "host-driver/settings.h"

enum by_source { BY_SOURCE_NONE, BY_SOURCE_CALLER, BY_SOURCE_ENV, BY_SOURCE_PMIX, BY_SOURCE_PMI };

struct by_bootstrap {
    enum by_source source;
    struct banyan_bootstrap caller;
    struct by_meeting meeting; /* complete after by_bootstrap_join */
    bool joined;
    /* the ranks only learn which of them share a host; nothing runs between the hosts */
    bool places_only;
    pthread_mutex_t lock; /* held while joining */
};

/* Initialises it without searching. */
void by_bootstrap_init(struct by_bootstrap *bootstrap);
/* Selects a source without waiting for other ranks: the program's callbacks, or else what
 * BANYAN_BOOTSTRAP selects. 0, also if there is none (the source is then NONE), or an error with
 * its text. */
int by_bootstrap_find(struct by_bootstrap *bootstrap, const struct by_settings *settings,
                      const struct banyan_config *config);
/* Returns the job's number of ranks without waiting for them; 0 if the launcher does not tell. */
uint32_t by_bootstrap_rank_count(struct by_bootstrap *bootstrap, uint64_t deadline_ns);
/* Fills the meeting; collective, unless the source is the four variables. 0, or an error with its
 * text. */
int by_bootstrap_join(struct by_bootstrap *bootstrap, uint64_t deadline_ns);
/* The parts of by_bootstrap_join for ranks that share rank 0's text by other means; the meeting has
 * rank and rank_count. First rank 0 opens its listener and writes the address; other ranks do
 * nothing. Then each rank fills its meeting from that text. 0, or an error with its text. */
int by_bootstrap_offer(struct by_bootstrap *bootstrap, char *text);
int by_bootstrap_take(struct by_bootstrap *bootstrap, const char *text);
/* Runs the caller's allgather. 0, or BY_EIO with its status and the error text that it set. */
int by_bootstrap_exchange(const struct banyan_bootstrap *caller, const void *mine, void *all, size_t bytes);
void by_bootstrap_close(struct by_bootstrap *bootstrap);
/* Describes which sources were tried and why each was not used, for an error text. */
void by_bootstrap_tried(char *text, size_t bytes);

/* ---- pmix.c: the PMIx client library, loaded on demand. The process has one connection, until it
 * ends. */

/* 0, or an error with its text. */
int by_pmix_join(uint32_t *rank, uint32_t *rank_count);
/* Distributes rank 0's `text` to the other ranks. */
int by_pmix_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns);

/* ---- pmi.c: the PMI-1 protocol over the socket PMI_FD; also one connection per process. */

int by_pmi_join(uint32_t *rank, uint32_t *rank_count, uint64_t deadline_ns);
int by_pmi_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns);

/* ---- pmi_line.c: a line of that protocol, "cmd=NAME KEY=VALUE ...". */

#define BY_PMI_LINE_MAX 2048u /* bytes, with the newline */
#define BY_PMI_FIELDS   16u

struct by_pmi_line {
    uint32_t count;
    const char *key[BY_PMI_FIELDS], *value[BY_PMI_FIELDS];
};

/* Splits `line`, of `bytes` bytes without the newline, in place: writes zeros into it, and one
 * after it. 0, or BY_EFORMAT if it is malformed. */
int by_pmi_parse(char *line, size_t bytes, struct by_pmi_line *out);
/* Returns a field's value; NULL if there is no such field. */
const char *by_pmi_value(const struct by_pmi_line *line, const char *key);
/* Whether the line is "cmd=`command` ..." and rc is 0 or absent. */
bool by_pmi_is(const struct by_pmi_line *line, const char *command);

/* ---- place.c: the address of rank 0 as a text without blanks, which all these protocols can
 * carry. */

#define BY_PLACE_MAX  8u /* addresses */
#define BY_PLACE_TEXT 112u

struct by_bootstrap_place {
    uint64_t machine; /* equal numbers: same loopback interface */
    uint16_t port;
    uint8_t count;
    uint32_t ip[BY_PLACE_MAX];
    uint8_t bits[BY_PLACE_MAX]; /* prefix length of its network */
};

/* Sets a hash of the running system and its network namespace. Returns whether both are known; if
 * not, the hash covers the rest. */
bool by_place_machine(uint64_t *machine);
/* Sets a hash of all that processes must have in common to share memory: the running system, its
 * network namespace, and the user. Returns whether they are known. */
bool by_place_space(uint64_t *space);
/* Fills in this host's addresses, of links that are up; may be none. */
void by_place_here(struct by_bootstrap_place *place, uint16_t port);
void by_place_write(const struct by_bootstrap_place *place, char text[BY_PLACE_TEXT]);
/* 0 or BY_EFORMAT. */
int by_place_read(const char *text, struct by_bootstrap_place *place);
/* Orders the addresses of `place` as a process at `here` should try them: loopback on the same
 * machine, then networks that both share, then the rest. Leaves out addresses that `here` has as
 * well. At most BY_PLACE_MAX + 1. */
uint32_t by_place_order(const struct by_bootstrap_place *place, const struct by_bootstrap_place *here,
                        uint32_t ip[BY_PLACE_MAX + 1]);

#endif
