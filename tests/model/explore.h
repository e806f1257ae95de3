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
    uint32_t words;   /* words of a set of messages */
    uint32_t *vector; /* component_count numbers for each */
    uint32_t vector_count, vector_room;
    uint32_t *newest; /* by vector: the state found last */
    uint8_t *good;    /* by vector (reduced) or state (plain): every rank can end from here */
    uint64_t *sets;   /* `words` words for each state */
    uint32_t *vector_of, *parent, *action, *sibling;
    uint32_t state_count, state_room;
    struct cells by_vector, by_state;
    uint64_t transitions;
    const char *violation;
    uint32_t bad_state, bad_action; /* place of the violation */
    int closing;                    /* exploration is complete; now the search for its end */
};

/* The current state. */
struct explore_place {
    uint32_t local[MODEL_COMPONENTS_MAX];
    uint64_t set[WORDS_MAX];
};

#define ACTION(component, action) ((uint32_t)(component) << 24 | (action))
#define ACTION_DROP               UINT32_C(0xff000000) /* | message: the network loses the message for good */
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
/* Applies one action to `place`. Returns 1 if it is possible (it may change nothing). A broken
 * property goes to *violation. */
int place_act(struct explore_place *place, uint32_t action, const char **violation);
/* Adds every message that a component would send without changing. Gives each action that added
 * messages to `note` (may be NULL). */
const char *place_close(struct explore_place *place, void (*note)(uint32_t action));
/* Returns 1 if the adversary may do this here, according to rules that concern several
 * components. */
int place_may(const struct explore_place *place, int c, uint32_t action);
int place_is_goal(const struct explore_place *place);
uint32_t vector_find(const uint32_t *local);

/* explore.c: returns 0, or 1 if there are more messages than a set can hold. */
int explore(uint64_t states_max);
/* Calls `visit` for each successor of a state (in a plain space, with `losses`, also those by a
 * loss) until it returns 1. Returns 1 if it did, or if a property is broken. */
int successors(uint32_t state, int losses, int (*visit)(uint32_t successor));
void space_free(void);
uint64_t space_bytes(void);

/* live.c: returns the number of vectors (reduced) or states (plain) that cannot reach the goal, and
 * one of them in *which. */
uint32_t live_check(uint32_t *which);

/* trace.c: prints how a state or a violation is reached. */
void trace_violation(void);
void trace_stuck(uint32_t state);

#endif
