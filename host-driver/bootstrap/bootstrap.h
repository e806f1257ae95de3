/*
 * How the ranks of a job find each other: by a table of callbacks from the program, by RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or by what has started them, over PMIx or PMI-1. All but
 * the four variables say no more than who we are and carry one text of rank 0 to all: where it
 * listens. There they meet, as host-driver/fallback/peers.h has it. A context has one; any thread
 * may join, one at a time.
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
    pthread_mutex_t lock; /* of joining */
};

/* Nothing is found yet. */
void by_bootstrap_init(struct by_bootstrap *bootstrap);
/* Finds what there is, without waiting for anybody: the program's callbacks, else what
 * BANYAN_BOOTSTRAP says. 0, also when there is nothing (the source is NONE then), or an error with
 * its text. */
int by_bootstrap_find(struct by_bootstrap *bootstrap, const struct by_settings *settings,
                      const struct banyan_config *config);
/* Fills the meeting; collective, unless it comes from the four variables. 0, or an error with its
 * text. */
int by_bootstrap_join(struct by_bootstrap *bootstrap, uint64_t deadline_ns);
void by_bootstrap_close(struct by_bootstrap *bootstrap);
/* What was looked for and why it was not found, for a text. */
void by_bootstrap_tried(char *text, size_t bytes);

/* ---- pmix.c: the client library of PMIx, loaded when it is wanted. One connection for the
 * process, which ends with it. */

/* 0, or an error with its text. */
int by_pmix_join(uint32_t *rank, uint32_t *rank_count);
/* Rank 0 gives `text`, the others receive it. */
int by_pmix_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns);

/* ---- pmi.c: the PMI-1 protocol over the socket PMI_FD; likewise one for the process. */

int by_pmi_join(uint32_t *rank, uint32_t *rank_count, uint64_t deadline_ns);
int by_pmi_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns);

/* ---- pmi_line.c: a line of that protocol, "cmd=NAME KEY=VALUE ...". */

#define BY_PMI_LINE_MAX 2048u /* bytes, with the newline */
#define BY_PMI_FIELDS   16u

struct by_pmi_line {
    uint32_t count;
    const char *key[BY_PMI_FIELDS], *value[BY_PMI_FIELDS];
};

/* Cuts up `line`, of `bytes` bytes without the newline, in place: writes zeros into it, and one
 * behind it. 0, or BY_EFORMAT: it is no such line. */
int by_pmi_parse(char *line, size_t bytes, struct by_pmi_line *out);
/* NULL when it has no such field. */
const char *by_pmi_value(const struct by_pmi_line *line, const char *key);
/* Whether it is "cmd=`command` ..." and says rc=0, or nothing of rc. */
bool by_pmi_is(const struct by_pmi_line *line, const char *command);

/* ---- place.c: where rank 0 listens, as a text without blanks that goes through all of these. */

#define BY_PLACE_MAX  8u /* addresses */
#define BY_PLACE_TEXT 112u

struct by_bootstrap_place {
    uint64_t machine; /* same number: same loopback interface */
    uint16_t port;
    uint8_t count;
    uint32_t ip[BY_PLACE_MAX];
    uint8_t bits[BY_PLACE_MAX]; /* of its network */
};

/* This host's addresses, those of links that are up; may be none. */
void by_place_here(struct by_bootstrap_place *place, uint16_t port);
void by_place_write(const struct by_bootstrap_place *place, char text[BY_PLACE_TEXT]);
/* 0 or BY_EFORMAT. */
int by_place_read(const char *text, struct by_bootstrap_place *place);
/* The addresses of `place` in the order in which one at `here` tries them: loopback on the same
 * machine, then networks that both are in, then the rest; not those that `here` has as well. At
 * most BY_PLACE_MAX + 1. */
uint32_t by_place_order(const struct by_bootstrap_place *place, const struct by_bootstrap_place *here,
                        uint32_t ip[BY_PLACE_MAX + 1]);

#endif
