/*
 * The explored space, for explore.c, live.c and trace.c: vectors (the local states of all
 * components) and states (a vector and a set of messages), both numbered in the order of discovery,
 * which is breadth first. Single-threaded.
 */
#ifndef TESTS_MODEL_EXPLORE_H
#define TESTS_MODEL_EXPLORE_H

#include "tests/model/model.h"

#define SPACE_NONE UINT32_MAX
#define WORDS_MAX  (MODEL_MESSAGES_MAX / 64)

struct cells {
    uint32_t *at; /* 1 + number */
    uint32_t count, used;
};

struct space {
    uint32_t words;   /* of a set of messages */
    uint32_t *vector; /* component_count numbers for each */
    uint32_t vector_count, vector_room;
    uint32_t *newest; /* of a vector: its state found last */
    uint8_t *good;    /* of a vector (reduced) or state (plain): every rank can end from here */
    uint64_t *sets;   /* words for each state */
    uint32_t *vector_of, *parent, *action, *sibling;
    uint32_t state_count, state_room;
    struct cells by_vector, by_state;
    uint64_t transitions;
    const char *violation;
    uint32_t bad_state, bad_action; /* where it happens */
    int closing;                    /* all is explored, and it is asked how it can end */
};

/* A state in hand. */
struct explore_place {
    uint32_t local[MODEL_COMPONENTS_MAX];
    uint64_t set[WORDS_MAX];
};

#define ACTION(component, action) ((uint32_t)(component) << 24 | (action))
#define ACTION_DROP               UINT32_C(0xff000000) /* | message: the network loses it for good */
#define ACTION_COMPONENT(a)       ((int)((a) >> 24))
#define ACTION_WHAT(a)            ((a)&0xffffffu)

static inline int set_has(const uint64_t *set, uint32_t message)
{
    return set[message / 64] >> message % 64 & 1;
}
static inline void set_put(uint64_t *set, uint32_t message)
{
    set[message / 64] |= UINT64_C(1) << message % 64;
}

extern struct space space;

void place_begin(struct explore_place *place);
void place_load(struct explore_place *place, uint32_t state);
/* One action on `place`: 1 when it is possible (it may change nothing); a broken property is left
 * in *violation. */
int place_act(struct explore_place *place, uint32_t action, const char **violation);
/* Adds every message that some component would send without changing. Each action that added
 * something is given to `note` (may be NULL). */
const char *place_close(struct explore_place *place, void (*note)(uint32_t action));
/* 1 when the adversary may do this here, as far as more than one component has a say. */
int place_may(const struct explore_place *place, int c, uint32_t action);
int place_is_goal(const struct explore_place *place);
uint32_t vector_find(const uint32_t *local);

/* explore.c: 0, or 1 when there are more messages than the set's words hold. */
int explore(uint64_t states_max);
/* Calls `visit` for each successor of a state (in a plain space also those by a loss, when asked)
 * until it returns 1; 1 when it did, or when a property is broken. */
int successors(uint32_t state, int losses, int (*visit)(uint32_t successor));
void space_free(void);
uint64_t space_bytes(void);

/* live.c: how many vectors (reduced) or states (plain) cannot reach the goal; one of them in
 * *which. */
uint32_t live_check(uint32_t *which);

/* trace.c: prints how a state, or a violation, comes about. */
void trace_violation(void);
void trace_stuck(uint32_t state);

#endif
