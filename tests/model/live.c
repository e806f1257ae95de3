/*
 * Checks whether every rank can still end, from every state. Reduced: from each vector, with every
 * message lost at once, timers and a network without further loss must bring all ranks to their
 * ends, round by round. In each round all timers expire, every message is delivered once, in order,
 * and then the remaining ones are lost again. The empty set of messages is the worst, so ranks that
 * can end from it can end from all states of the vector, and the schedule does not depend on luck.
 * Plain: backward over the graph, from the states in which all have ended. Single-threaded.
 */
#include "tests/model/explore.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX   256
#define DELIVERS_MAX 20000

/* ---- reduced: by a schedule ---- */

struct live_queue {
    uint16_t at[DELIVERS_MAX + MODEL_MESSAGES_MAX];
    uint32_t head, tail;
    uint8_t waits[MODEL_MESSAGES_MAX];
};

static struct live_queue queue;

/* Applies the action; its messages go into the queue. */
static void perform(struct explore_place *place, uint32_t action)
{
    const char *violation = NULL;
    struct explore_place before = *place;

    memset(place->set, 0, sizeof(place->set));
    if (!place_act(place, action, &violation)) {
        *place = before;
        return;
    }
    if (violation != NULL && space.violation == NULL)
        space.violation = violation;
    for (uint32_t w = 0; w < WORDS_MAX; w++)
        for (uint64_t rest = place->set[w]; rest != 0; rest &= rest - 1) {
            uint32_t m = 64 * w + (uint32_t)__builtin_ctzll(rest);

            if (!queue.waits[m] && queue.tail < DELIVERS_MAX) {
                queue.waits[m] = 1;
                queue.at[queue.tail++] = (uint16_t)m;
            }
        }
}

/* The controller completes its work, and shells release their references. */
static void control(struct explore_place *place)
{
    for (int c = 0; c < model.component_count; c++) {
        if (model.components[c].kind == MODEL_ENGINE) {
            for (uint32_t a = MODEL_ACT_INSTALL_LAST; a >= MODEL_ACT_INSTALL; a--)
                perform(place, ACTION(c, a));
            perform(place, ACTION(c, MODEL_ACT_RELEASE));
            perform(place, ACTION(c, MODEL_ACT_RELEASE_B));
        } else if (model.config->faults & MODEL_CRASH) {
            perform(place, ACTION(c, MODEL_ACT_RESTART));
        }
    }
}

/* Returns 0 if packets cause packets without end. */
static int run_round(struct explore_place *place)
{
    memset(place->set, 0, sizeof(place->set));
    queue.head = queue.tail = 0;
    memset(queue.waits, 0, sizeof(queue.waits));
    control(place);
    for (int c = 0; c < model.component_count; c++)
        if (model.components[c].kind == MODEL_HOST) {
            perform(place, ACTION(c, MODEL_ACT_REPEAT));
            perform(place, ACTION(c, MODEL_ACT_TIMER));
            perform(place, ACTION(c, MODEL_ACT_TIMER_B));
        }
    while (queue.head < queue.tail && space.violation == NULL) {
        const struct model_message *m;
        uint16_t number = queue.at[queue.head++];

        if (queue.tail >= DELIVERS_MAX)
            return 0;
        m = &model.messages[number];
        queue.waits[number] = 0;
        perform(place,
                ACTION(m->to, MODEL_ACT_MESSAGE + 2u * m->local +
                                  (model.components[m->to].kind == MODEL_ENGINE && model.config->clock)));
        if (model.config->faults & MODEL_HOLD && model.components[m->to].kind == MODEL_ENGINE) {
            perform(place, ACTION(m->to, MODEL_ACT_RELEASE));
            perform(place, ACTION(m->to, MODEL_ACT_RELEASE_B));
        }
    }
    return 1;
}

static int reaches_goal(uint32_t vector)
{
    struct explore_place place, before;
    size_t n = (size_t)model.component_count;

    memset(&place, 0, sizeof(place));
    memcpy(place.local, &space.vector[vector * n], n * sizeof(uint32_t));
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        uint32_t known;

        if (place_is_goal(&place))
            return 1;
        known = vector_find(place.local);
        if (round > 0 && known != SPACE_NONE && space.good[known])
            return 1;
        before = place;
        if (!run_round(&place) || space.violation != NULL)
            return 0;
        if (memcmp(before.local, place.local, n * sizeof(uint32_t)) != 0)
            continue;
        if (model.config->end != MODEL_END_ANY && model.config->end != MODEL_END_MEMORY)
            return 0;
        for (int c = 0; c < model.component_count; c++)
            if (model.components[c].kind == MODEL_HOST)
                perform(&place, ACTION(c, MODEL_ACT_PATIENCE));
    }
    return 0;
}

static uint32_t check_vectors(uint32_t *which)
{
    uint32_t stuck = 0, count = space.vector_count;

    space.good = calloc(count, 1);
    if (space.good == NULL)
        abort();
    /* The last ones are nearest to the end. */
    for (uint32_t v = count; v-- > 0;) {
        space.good[v] = (uint8_t)reaches_goal(v);
        if (space.good[v])
            continue;
        stuck++;
        *which = space.newest[v];
        if (space.violation != NULL)
            break;
    }
    return stuck;
}

/* ---- plain: backward ---- */

static int is_good(uint32_t state)
{
    return space.good[state];
}

static uint32_t check_states(uint32_t *which)
{
    uint32_t stuck = 0;
    int changed = 1;
    struct explore_place place;

    space.good = calloc(space.state_count, 1);
    if (space.good == NULL)
        abort();
    memset(&place, 0, sizeof(place));
    for (uint32_t s = 0; s < space.state_count; s++) {
        place_load(&place, s);
        space.good[s] = (uint8_t)place_is_goal(&place);
    }
    /* Alternate directions: most paths to the goal lead to states found later, those of repairs to
     * earlier ones. */
    for (int back = 1; changed; back = !back) {
        changed = 0;
        for (uint32_t i = 0; i < space.state_count; i++) {
            uint32_t s = back ? space.state_count - 1 - i : i;

            if (space.good[s] || !successors(s, 0, is_good))
                continue;
            space.good[s] = 1;
            changed = 1;
        }
    }
    for (uint32_t s = space.state_count; s-- > 0;)
        if (!space.good[s]) {
            stuck++;
            *which = s;
        }
    return stuck;
}

uint32_t live_check(uint32_t *which)
{
    space.closing = 1;
    return model.config->plain ? check_states(which) : check_vectors(which);
}
