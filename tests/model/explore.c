/*
 * Breadth-first exploration. Plain: a state is a vector and a set of messages, delivery keeps the
 * message (duplication, reordering), loss removes it. Reduced: messages are never removed, since an
 * undelivered message is a lost one; messages that a component sends without changing are added
 * immediately; and a state is skipped if the same vector is known with at least the same messages,
 * since more messages allow the adversary more. docs/model.md argues that both reach the same
 * vectors. Single-threaded.
 */
#include "tests/model/explore.h"

#include <stdlib.h>
#include <string.h>

struct space space;

static uint32_t states_limit;

/* ---- tables ---- */

static void *grow(void *memory, size_t bytes)
{
    void *grown = realloc(memory, bytes);

    if (grown == NULL)
        abort();
    return grown;
}

static uint32_t hash_words(const uint32_t *words, uint32_t count, uint32_t seed)
{
    uint64_t hash = seed;

    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static uint32_t hash_vector(const uint32_t *local)
{
    return hash_words(local, (uint32_t)model.component_count, 1);
}

static uint32_t hash_state(uint32_t vector, const uint64_t *set)
{
    return hash_words((const uint32_t *)set, 2 * space.words, vector + 1);
}

static void cells_put(struct cells *cells, uint32_t hash, uint32_t number)
{
    uint32_t at = hash & (cells->count - 1);

    while (cells->at[at] != 0)
        at = (at + 1) & (cells->count - 1);
    cells->at[at] = number + 1;
    cells->used++;
}

static int cells_full(const struct cells *cells)
{
    return 3 * (uint64_t)cells->used >= 2 * (uint64_t)cells->count;
}

static void cells_double(struct cells *cells)
{
    cells->count = cells->count == 0 ? 1u << 14 : 2 * cells->count;
    cells->used = 0;
    free(cells->at);
    cells->at = calloc(cells->count, sizeof(uint32_t));
    if (cells->at == NULL)
        abort();
}

uint32_t vector_find(const uint32_t *local)
{
    const struct cells *cells = &space.by_vector;
    size_t n = (size_t)model.component_count;

    if (cells->count == 0)
        return SPACE_NONE;
    for (uint32_t at = hash_vector(local) & (cells->count - 1); cells->at[at] != 0;
         at = (at + 1) & (cells->count - 1))
        if (memcmp(&space.vector[(cells->at[at] - 1) * n], local, n * sizeof(uint32_t)) == 0)
            return cells->at[at] - 1;
    return SPACE_NONE;
}

static uint32_t vector_intern(const uint32_t *local)
{
    size_t n = (size_t)model.component_count;
    uint32_t number = vector_find(local);

    if (number != SPACE_NONE)
        return number;
    if (space.vector_count == space.vector_room) {
        space.vector_room = space.vector_room == 0 ? 1024 : 2 * space.vector_room;
        space.vector = grow(space.vector, space.vector_room * n * sizeof(uint32_t));
        space.newest = grow(space.newest, space.vector_room * sizeof(uint32_t));
    }
    number = space.vector_count++;
    memcpy(&space.vector[number * n], local, n * sizeof(uint32_t));
    space.newest[number] = SPACE_NONE;
    if (cells_full(&space.by_vector)) {
        cells_double(&space.by_vector);
        for (uint32_t v = 0; v < space.vector_count; v++)
            cells_put(&space.by_vector, hash_vector(&space.vector[v * n]), v);
    } else {
        cells_put(&space.by_vector, hash_vector(local), number);
    }
    return number;
}

static int is_subset(const uint64_t *of, const uint64_t *set)
{
    for (uint32_t w = 0; w < space.words; w++)
        if (set[w] & ~of[w])
            return 0;
    return 1;
}

/* Returns the state, or in a reduced space one that allows at least as much; otherwise
 * SPACE_NONE. */
static uint32_t state_find(uint32_t vector, const uint64_t *set)
{
    const struct cells *cells = &space.by_state;
    size_t bytes = space.words * sizeof(uint64_t);

    if (!model.config->plain) {
        for (uint32_t s = space.newest[vector]; s != SPACE_NONE; s = space.sibling[s])
            if (is_subset(&space.sets[(size_t)s * space.words], set))
                return s;
        return SPACE_NONE;
    }
    if (cells->count == 0)
        return SPACE_NONE;
    for (uint32_t at = hash_state(vector, set) & (cells->count - 1); cells->at[at] != 0;
         at = (at + 1) & (cells->count - 1)) {
        uint32_t s = cells->at[at] - 1;

        if (space.vector_of[s] == vector && memcmp(&space.sets[(size_t)s * space.words], set, bytes) == 0)
            return s;
    }
    return SPACE_NONE;
}

static void states_room(void)
{
    size_t room;

    if (space.state_count < space.state_room)
        return;
    space.state_room = space.state_room == 0 ? 4096 : 2 * space.state_room;
    room = space.state_room;
    space.sets = grow(space.sets, room * space.words * sizeof(uint64_t));
    space.vector_of = grow(space.vector_of, room * sizeof(uint32_t));
    space.parent = grow(space.parent, room * sizeof(uint32_t));
    space.action = grow(space.action, room * sizeof(uint32_t));
    if (!model.config->plain)
        space.sibling = grow(space.sibling, room * sizeof(uint32_t));
}

static uint32_t state_intern(const struct explore_place *place, uint32_t parent, uint32_t action)
{
    uint32_t vector = vector_intern(place->local);
    uint32_t number = state_find(vector, place->set);

    if (number != SPACE_NONE)
        return number;
    states_room();
    number = space.state_count++;
    memcpy(&space.sets[(size_t)number * space.words], place->set, space.words * sizeof(uint64_t));
    space.vector_of[number] = vector;
    space.parent[number] = parent;
    space.action[number] = action;
    if (!model.config->plain) {
        space.sibling[number] = space.newest[vector];
        space.newest[vector] = number;
    } else if (cells_full(&space.by_state)) {
        cells_double(&space.by_state);
        for (uint32_t s = 0; s < space.state_count; s++)
            cells_put(&space.by_state, hash_state(space.vector_of[s], &space.sets[(size_t)s * space.words]),
                      s);
    } else {
        cells_put(&space.by_state, hash_state(vector, place->set), number);
    }
    return number;
}

void space_free(void)
{
    free(space.vector);
    free(space.newest);
    free(space.good);
    free(space.sets);
    free(space.vector_of);
    free(space.parent);
    free(space.action);
    free(space.sibling);
    free(space.by_vector.at);
    free(space.by_state.at);
    memset(&space, 0, sizeof(space));
}

uint64_t space_bytes(void)
{
    return (uint64_t)space.vector_room * ((uint32_t)model.component_count + 1) * 4 +
           (uint64_t)space.state_room * (space.words * 8 + 12 + (model.config->plain ? 0 : 4)) +
           ((uint64_t)space.by_vector.count + space.by_state.count) * 4;
}

/* ---- places ---- */

void place_begin(struct explore_place *place)
{
    memset(place, 0, sizeof(*place));
    memcpy(place->local, model.initial, sizeof(place->local));
    for (uint32_t i = 0; i < model.first_count; i++)
        set_put(place->set, model.first[i]);
}

void place_load(struct explore_place *place, uint32_t state)
{
    size_t n = (size_t)model.component_count;

    memcpy(place->local, &space.vector[space.vector_of[state] * n], n * sizeof(uint32_t));
    memcpy(place->set, &space.sets[(size_t)state * space.words], space.words * sizeof(uint64_t));
}

static uint32_t crash_count(const struct explore_place *place)
{
    uint32_t count = 0;

    for (int c = 0; c < model.component_count; c++)
        if (model.components[c].kind == MODEL_ENGINE)
            count += model_facts(c, place->local[c])->crashes;
    return count;
}

int place_may(const struct explore_place *place, int c, uint32_t action)
{
    uint32_t crashes;

    if (action == MODEL_ACT_PATIENCE && model.config->end == MODEL_END_MEMORY)
        return space.closing;
    if (!(model.config->faults & (MODEL_CRASH | MODEL_CRASH_SAME)) || action >= MODEL_ACT_RELEASE)
        return 1;
    crashes = crash_count(place);
    if (action == MODEL_ACT_CRASH)
        return crashes < model.config->fault_count;
    if (model.config->faults & MODEL_CRASH_SAME)
        return 1;
    /* The controller answers each crash with a new generation; standbys are there before. */
    crashes += model.config->standbys;
    if (action >= MODEL_ACT_INSTALL && action <= MODEL_ACT_INSTALL_LAST)
        return action - MODEL_ACT_INSTALL <= crashes;
    if (action == MODEL_ACT_RESTART)
        return model_facts(c, place->local[c])->life < crashes;
    if (action == MODEL_ACT_PATIENCE)
        return model_facts(c, place->local[c])->life + 1u < crashes;
    return 1;
}

static int is_below(int node, int upper, unsigned tree, uint16_t gen)
{
    const struct fabric_tree *t = &model_job(gen)->trees[tree];

    for (node = t->parent[node]; node >= 0; node = t->parent[node])
        if (node == upper)
            return 1;
    return 0;
}

/* Returns whether a rank or a node below still needs the chunk that a bank of c has just given
 * up. */
static int is_needed(const struct explore_place *place, int c, const struct model_step *step)
{
    unsigned t = step->tree;

    if (model.config->faults & MODEL_RESTART)
        return 0; /* runs that each count from 0: a seq does not identify a chunk */
    for (int i = 0; i < model.component_count; i++) {
        const struct model_facts *facts = model_facts(i, place->local[i]);
        int32_t ahead;

        if (facts->gen != step->gen)
            continue;
        if (model.components[i].kind == MODEL_ENGINE) {
            if (model.config->faults & MODEL_CRASH_SAME)
                continue; /* a node that lost its memory begins old chunks again, without effect */
            for (uint32_t b = 0; b < facts->open_count; b++)
                if (i != c && facts->open[b].tree == t && facts->open[b].seq == step->reclaimed_seq &&
                    is_below(model.components[i].node, model.components[c].node, t, step->gen))
                    return 1;
            continue;
        }
        ahead = (int32_t)(step->reclaimed_seq - facts->base[t]);
        if (facts->dead || ahead < 0)
            continue;
        if (ahead >= (int32_t)(facts->next[t] - facts->base[t]) || facts->flying[t] >> ahead & 1)
            return 1;
    }
    return 0;
}

int place_act(struct explore_place *place, uint32_t action, const char **violation)
{
    int c = ACTION_COMPONENT(action);
    struct model_step step;

    if (!place_may(place, c, ACTION_WHAT(action)))
        return 0;
    step = *model_step(c, place->local[c], ACTION_WHAT(action));
    if (!step.enabled)
        return 0;
    *violation = step.violation;
    if (step.violation == NULL && step.reclaimed && is_needed(place, c, &step))
        *violation = "a bank is reclaimed while somebody needs it";
    place->local[c] = step.next;
    for (uint32_t i = 0; i < step.out_count; i++)
        set_put(place->set, model_outs(&step)[i]);
    return 1;
}

/* If the action does not change its component, adds the messages that it sends to the set, and new
 * ones to `todo`. */
static const char *add_pure(struct explore_place *place, uint32_t action, uint64_t *todo,
                            void (*note)(uint32_t))
{
    int c = ACTION_COMPONENT(action), added = 0;
    struct model_step step;

    if (!place_may(place, c, ACTION_WHAT(action)))
        return NULL;
    step = *model_step(c, place->local[c], ACTION_WHAT(action));
    if (!step.enabled)
        return NULL;
    if (step.violation != NULL) {
        if (note != NULL)
            note(action);
        return step.violation;
    }
    if (step.next != place->local[c])
        return NULL;
    for (uint32_t i = 0; i < step.out_count; i++) {
        uint32_t m = model_outs(&step)[i];

        if (set_has(place->set, m))
            continue;
        set_put(place->set, m);
        set_put(todo, m);
        added = 1;
    }
    if (added && note != NULL)
        note(action);
    return NULL;
}

const char *place_close(struct explore_place *place, void (*note)(uint32_t action))
{
    uint64_t todo[WORDS_MAX];
    uint32_t words = (model.message_count + 63) / 64;
    const char *bad = NULL;

    memcpy(todo, place->set, sizeof(todo));
    for (int c = 0; c < model.component_count && bad == NULL; c++)
        for (uint32_t a = 0; a < MODEL_ACT_MESSAGE && bad == NULL; a++)
            bad = add_pure(place, ACTION(c, a), todo, note);
    for (uint32_t w = 0; w < words && bad == NULL;) {
        uint32_t m, action;

        if (todo[w] == 0) {
            w++;
            continue;
        }
        m = 64 * w + (uint32_t)__builtin_ctzll(todo[w]);
        action = ACTION(model.messages[m].to, MODEL_ACT_MESSAGE + 2u * model.messages[m].local);
        todo[w] &= todo[w] - 1;
        bad = add_pure(place, action, todo, note);
        if (bad == NULL && model_more_actions())
            bad = add_pure(place, action + 1, todo, note);
        words = (model.message_count + 63) / 64;
        w = 0;
    }
    return bad;
}

int place_is_goal(const struct explore_place *place)
{
    int failed = 0, named = 0;

    for (int c = 0; c < model.component_count; c++) {
        const struct model_facts *facts = model_facts(c, place->local[c]);

        if (model.components[c].kind == MODEL_HOST && !facts->ended_well)
            return 0;
        failed |= facts->failed;
        named |= facts->named;
    }
    return model.config->end != MODEL_END_MEMORY || !failed || named;
}

/* ---- the search ---- */

static int is_too_small(void)
{
    return model.message_count > 64 * space.words;
}

/* Finds one successor. Returns its number, or SPACE_NONE if there is none or a property is
 * broken. */
static uint32_t follow(uint32_t state, const struct explore_place *from, uint32_t action)
{
    struct explore_place to = *from;
    const char *violation = NULL;
    int c = ACTION_COMPONENT(action);

    if (!place_act(&to, action, &violation))
        return SPACE_NONE;
    if (violation == NULL && to.local[c] == from->local[c] &&
        (!model.config->plain || memcmp(to.set, from->set, space.words * sizeof(uint64_t)) == 0))
        return SPACE_NONE; /* nothing new: a reduced space has its messages already */
    if (violation == NULL && !model.config->plain)
        violation = place_close(&to, NULL);
    if (violation != NULL) {
        space.violation = violation;
        space.bad_state = state;
        space.bad_action = action;
        return SPACE_NONE;
    }
    if (is_too_small())
        return SPACE_NONE;
    return state_intern(&to, state, action);
}

int successors(uint32_t state, int losses, int (*visit)(uint32_t successor))
{
    struct explore_place from, lost;
    uint32_t to;

    memset(&from, 0, sizeof(from));
    place_load(&from, state);
    for (int c = 0; c < model.component_count; c++)
        for (uint32_t a = 0; a < MODEL_ACT_MESSAGE; a++) {
            to = follow(state, &from, ACTION(c, a));
            if (space.violation != NULL || is_too_small() || (to != SPACE_NONE && visit(to)))
                return 1;
        }
    for (uint32_t w = 0; w < space.words; w++)
        for (uint64_t rest = from.set[w]; rest != 0; rest &= rest - 1) {
            uint32_t m = 64 * w + (uint32_t)__builtin_ctzll(rest);
            uint32_t action = ACTION(model.messages[m].to, MODEL_ACT_MESSAGE + 2u * model.messages[m].local);

            for (uint32_t late = 0; late <= model_more_actions(); late++) {
                to = follow(state, &from, action + late);
                if (space.violation != NULL || is_too_small() || (to != SPACE_NONE && visit(to)))
                    return 1;
            }
            if (!model.config->plain || !losses)
                continue;
            lost = from;
            lost.set[w] &= ~(UINT64_C(1) << m % 64);
            if (visit(state_intern(&lost, state, ACTION_DROP | m)))
                return 1;
        }
    return 0;
}

static int count_transition(uint32_t successor)
{
    (void)successor;
    space.transitions++;
    return space.state_count >= states_limit;
}

int explore(uint64_t states_max)
{
    struct explore_place begin;
    uint32_t words = space.words;

    space_free();
    space.words = words;
    states_limit = states_max < SPACE_NONE - 1 ? (uint32_t)states_max : SPACE_NONE - 1;
    place_begin(&begin);
    if (!model.config->plain)
        space.violation = place_close(&begin, NULL);
    if (is_too_small())
        return 1;
    (void)state_intern(&begin, SPACE_NONE, 0);
    for (uint32_t s = 0; s < space.state_count && space.violation == NULL; s++)
        if (successors(s, 1, count_transition))
            break;
    return is_too_small();
}
