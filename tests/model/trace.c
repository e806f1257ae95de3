/*
 * Prints how a violation is reached: the actions from the beginning, without unnecessary ones (each
 * is left out in turn, and stays out if the result is the same without it). Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/explore.h"

#define LENGTH_MAX 4096

static uint32_t actions[LENGTH_MAX];
static uint32_t length;

static void note(uint32_t action)
{
    if (length < LENGTH_MAX)
        actions[length++] = action;
}

/* Returns 1 if the action's message exists. */
static int exists(const struct explore_place *place, uint32_t action)
{
    uint32_t what = ACTION_WHAT(action);

    if (what < MODEL_ACT_MESSAGE)
        return 1;
    for (uint32_t m = 0; m < model.message_count; m++)
        if (model.messages[m].to == ACTION_COMPONENT(action) &&
            model.messages[m].local == (what - MODEL_ACT_MESSAGE) / 2)
            return set_has(place->set, m);
    return 0;
}

/* Plays the actions. Returns the property that they break, or NULL. */
static const char *play(const uint32_t *list, uint32_t count, struct explore_place *place)
{
    place_begin(place);
    for (uint32_t i = 0; i < count; i++) {
        const char *violation = NULL;

        if ((list[i] & ACTION_DROP) == ACTION_DROP) {
            uint32_t m = ACTION_WHAT(list[i]);

            place->set[m / 64] &= ~(UINT64_C(1) << m % 64);
            continue;
        }
        if (exists(place, list[i]) && place_act(place, list[i], &violation) && violation != NULL)
            return violation;
    }
    return NULL;
}

/* Collects the whole path to `state`, including messages added on it. */
static void collect(uint32_t state)
{
    uint32_t *path = malloc(LENGTH_MAX * sizeof(uint32_t));
    uint32_t count = 0;
    struct explore_place place;
    const char *violation;

    if (path == NULL)
        abort();
    for (uint32_t s = state; space.parent[s] != SPACE_NONE && count < LENGTH_MAX; s = space.parent[s])
        path[count++] = space.action[s];
    length = 0;
    place_begin(&place);
    if (!model.config->plain)
        (void)place_close(&place, note);
    while (count-- > 0) {
        note(path[count]);
        if ((path[count] & ACTION_DROP) == ACTION_DROP) {
            place.set[ACTION_WHAT(path[count]) / 64] &= ~(UINT64_C(1) << ACTION_WHAT(path[count]) % 64);
            continue;
        }
        (void)place_act(&place, path[count], &violation);
        if (!model.config->plain)
            (void)place_close(&place, note);
    }
    free(path);
}

/* Leaves out actions that the same result does not require. */
static void shorten(const char *violation, const struct explore_place *end)
{
    uint32_t list[LENGTH_MAX];
    int again = 1;

    while (again) {
        again = 0;
        for (uint32_t i = length; i-- > 0;) {
            struct explore_place place;
            const char *broken;

            memcpy(list, actions, i * sizeof(uint32_t));
            memcpy(list + i, actions + i + 1, (length - i - 1) * sizeof(uint32_t));
            broken = play(list, length - 1, &place);
            if (violation != NULL
                    ? broken != violation
                    : broken != NULL || memcmp(place.local, end->local, sizeof(place.local)) != 0)
                continue;
            memcpy(actions, list, --length * sizeof(uint32_t));
            again = 1;
        }
    }
}

static void print_action(uint32_t number, uint32_t action)
{
    static const char *const places[MODEL_FLIP_PLACES] = {"have",
                                                          "want",
                                                          "seq, the lowest",
                                                          "seq, that of the bank's next chunk",
                                                          "seq, the highest",
                                                          "optag",
                                                          "witness",
                                                          "psum",
                                                          "count",
                                                          "nleaf",
                                                          "state, the lowest",
                                                          "state, two bits",
                                                          "flags",
                                                          "payload"};
    static const char *const fixed[MODEL_ACT_FLIP] = {
        "its timer runs out",
        "its timer of the second tree runs out",
        "asks how its oldest chunk stands",
        "its patience is over",
        "its process ends, another begins",
        "says again what the others need to resume",
        "loses its memory",
        "gets the table of the first generation",
        "gets the table of the second generation",
        "gets the table of the third generation",
        "its shell gives back a reference",
        "its shell gives back a reference",
    };
    uint32_t what = ACTION_WHAT(action);
    int c = ACTION_COMPONENT(action);
    char text[256] = "?";

    if ((action & ACTION_DROP) == ACTION_DROP) {
        model_message_text(what, text, sizeof(text));
        printf("  %3u  lost for good: %s\n", number, text);
        return;
    }
    if (what == MODEL_ACT_RESTART && model.config->faults & MODEL_RESUME) {
        printf("  %3u  %-3s freezes for the next generation\n", number, model.components[c].name);
        return;
    }
    if (what < MODEL_ACT_FLIP) {
        printf("  %3u  %-3s %s\n", number, model.components[c].name, fixed[what]);
        return;
    }
    if (what < MODEL_ACT_MESSAGE) {
        printf("  %3u  %-3s a bit flips in its bank %u: %s\n", number, model.components[c].name,
               (what - MODEL_ACT_FLIP) / MODEL_FLIP_PLACES,
               places[(what - MODEL_ACT_FLIP) % MODEL_FLIP_PLACES]);
        return;
    }
    for (uint32_t m = 0; m < model.message_count; m++)
        if (model.messages[m].to == c && model.messages[m].local == (what - MODEL_ACT_MESSAGE) / 2)
            model_message_text(m, text, sizeof(text));
    printf("  %3u  %-3s gets %s%s\n", number, model.components[c].name, text,
           (what - MODEL_ACT_MESSAGE) % 2 == 0   ? ""
           : model.config->faults & MODEL_DAMAGE ? ", damaged"
           : model.config->exact                 ? " (after its repair interval)"
                                                 : "");
}

static void print_all(void)
{
    struct explore_place place;

    putchar('\n');
    place_begin(&place);
    for (uint32_t i = 0; i < length; i++) {
        const char *violation = NULL;
        struct explore_place before = place;

        print_action(i + 1, actions[i]);
        if ((actions[i] & ACTION_DROP) == ACTION_DROP || !place_act(&place, actions[i], &violation))
            continue;
        for (uint32_t m = 0; m < model.message_count; m++)
            if (set_has(place.set, m) && !set_has(before.set, m)) {
                char text[256];

                model_message_text(m, text, sizeof(text));
                printf("         -> %s\n", text);
            }
    }
}

void trace_violation(void)
{
    const char *violation = space.violation;
    struct explore_place place;

    collect(space.bad_state);
    note(space.bad_action);
    place_begin(&place);
    if (play(actions, length, &place) == NULL) { /* it is in the messages added after the last action */
        const char *ignored;

        place_load(&place, space.bad_state);
        (void)place_act(&place, space.bad_action, &ignored);
        (void)place_close(&place, note);
    }
    violation = play(actions, length, &place);
    shorten(violation, NULL);
    print_all();
    printf("       => %s\n", violation != NULL ? violation : "(not found again)");
}

void trace_stuck(uint32_t state)
{
    struct explore_place end;

    collect(state);
    (void)play(actions, length, &end);
    shorten(NULL, &end);
    print_all();
    printf("       => STUCK: with all that is on its way lost, timers do not let every rank reach its end\n");
}
