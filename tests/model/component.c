/*
 * Local states: the canonical bytes of an arena, stored as differences from the initial ones and
 * numbered; and a cache of the effect of each action on each local state, so that the real code
 * runs once for each pair. The table of local states compares bytes, not hashes, so different
 * states are never confused. Single-threaded.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

#define WORD  8u
#define NONE  UINT32_MAX
#define FIRST 1024u /* cells of a new hash table */

/* One word that differs from the base. */
struct difference {
    uint32_t at;
    uint64_t word;
} __attribute__((packed));

struct local {
    struct difference *differences;
    uint32_t count;
    uint64_t hash;
    uint32_t *steps; /* by action: 1 + index into the list of steps; 0: not computed yet */
    uint32_t step_count;
    struct model_facts facts;
};

struct locals {
    struct local *at;
    uint32_t count, room;
    uint32_t *cells; /* 1 + index */
    uint32_t cell_count;
};

static struct locals locals[MODEL_COMPONENTS_MAX];
static struct model_step *steps;
static uint32_t step_count, step_room;
static uint16_t *outs;
static uint32_t outs_count, outs_room;

static void *grow(void *memory, size_t bytes)
{
    void *grown = realloc(memory, bytes);

    if (grown == NULL)
        abort();
    return grown;
}

void model_components_reset(void)
{
    for (int c = 0; c < MODEL_COMPONENTS_MAX; c++) {
        for (uint32_t i = 0; i < locals[c].count; i++) {
            free(locals[c].at[i].differences);
            free(locals[c].at[i].steps);
        }
        free(locals[c].at);
        free(locals[c].cells);
    }
    memset(locals, 0, sizeof(locals));
    free(steps);
    free(outs);
    steps = NULL;
    outs = NULL;
    step_count = step_room = outs_count = outs_room = 0;
}

/* ---- interning ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint32_t differences_of(const struct model_component *c, struct difference *differences)
{
    uint32_t count = 0;

    for (size_t at = 0; at < c->bytes; at += WORD) {
        uint64_t word, base;

        memcpy(&word, c->arena + at, WORD);
        memcpy(&base, c->base + at, WORD);
        if (word != base)
            differences[count++] = (struct difference){(uint32_t)at, word};
    }
    return count;
}

static void place(struct locals *list, uint32_t index)
{
    uint32_t mask = list->cell_count - 1;
    uint32_t at = (uint32_t)list->at[index].hash & mask;

    while (list->cells[at] != 0)
        at = (at + 1) & mask;
    list->cells[at] = index + 1;
}

static void make_room(struct locals *list)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? FIRST : 2 * list->room;
        list->at = grow(list->at, list->room * sizeof(struct local));
    }
    if (2 * list->count >= list->cell_count) {
        list->cell_count = list->cell_count == 0 ? 2 * FIRST : 2 * list->cell_count;
        list->cells = grow(list->cells, list->cell_count * sizeof(uint32_t));
        memset(list->cells, 0, list->cell_count * sizeof(uint32_t));
        for (uint32_t i = 0; i < list->count; i++)
            place(list, i);
    }
}

uint32_t model_intern(int index)
{
    static struct difference differences[1 << 16];
    const struct model_component *c = &model.components[index];
    struct locals *list = &locals[index];
    uint64_t hash = 0;
    uint32_t count, cell;
    struct local *local;

    BY_ASSERT(c->bytes / WORD <= sizeof(differences) / sizeof(differences[0]));
    count = differences_of(c, differences);
    for (uint32_t i = 0; i < count; i++)
        hash = mix(mix(hash, differences[i].at), differences[i].word);
    make_room(list);
    for (cell = (uint32_t)hash & (list->cell_count - 1); list->cells[cell] != 0;
         cell = (cell + 1) & (list->cell_count - 1)) {
        local = &list->at[list->cells[cell] - 1];
        if (local->hash == hash && local->count == count &&
            (count == 0 || memcmp(local->differences, differences, count * sizeof(differences[0])) == 0))
            return list->cells[cell] - 1;
    }
    local = &list->at[list->count];
    memset(local, 0, sizeof(*local));
    local->hash = hash;
    local->count = count;
    if (count > 0) {
        local->differences = grow(NULL, count * sizeof(differences[0]));
        memcpy(local->differences, differences, count * sizeof(differences[0]));
    }
    model_gather_facts(index, &local->facts);
    list->cells[cell] = list->count + 1;
    return list->count++;
}

void model_load(int index, uint32_t number)
{
    const struct model_component *c = &model.components[index];
    const struct local *local = &locals[index].at[number];

    memcpy(c->arena, c->base, c->bytes);
    for (uint32_t i = 0; i < local->count; i++)
        memcpy(c->arena + local->differences[i].at, &local->differences[i].word, WORD);
}

uint32_t model_local_count(int c)
{
    return locals[c].count;
}

const struct model_facts *model_facts(int c, uint32_t local)
{
    return &locals[c].at[local].facts;
}

/* ---- steps ---- */

static sigjmp_buf trapped;

static void on_trap(int number)
{
    siglongjmp(trapped, number == SIGILL || number == SIGTRAP ? 1 : 2);
}

static void catch_traps(void)
{
    static const int signals[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE};
    const struct sigaction on = {.sa_handler = on_trap};

    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &on, NULL);
}

void model_violate(const char *property)
{
    if (model.violation == NULL)
        model.violation = property;
}

/* Finds the message to component c with this local number. */
static const struct model_message *message_of(int c, uint32_t local)
{
    for (uint32_t m = 0; m < model.message_count; m++)
        if (model.messages[m].to == c && model.messages[m].local == local)
            return &model.messages[m];
    abort();
}

static int perform(int c, uint32_t action, struct model_step *step)
{
    const struct model_message *message = NULL;
    int late = 0;

    if (action >= MODEL_ACT_MESSAGE) {
        message = message_of(c, (action - MODEL_ACT_MESSAGE) / 2);
        late = (int)(action - MODEL_ACT_MESSAGE) % 2;
    }
    if (model.components[c].kind == MODEL_HOST)
        return model_host_act(c, action, message);
    return model_node_act(c, action, message, late, step);
}

/* Runs the real code on the arena, which contains the local state. */
static void act(int c, uint32_t action, struct model_step *step)
{
    int trap = sigsetjmp(trapped, 1);

    if (trap != 0) {
        model_violate(trap == 1 ? "an assertion fails" : "memory is accessed that is nobody's");
        step->enabled = 1;
        return;
    }
    step->enabled = (uint8_t)(perform(c, action, step) != 0);
    if (!step->enabled || model.violation != NULL)
        return;
    if (model.components[c].kind == MODEL_HOST) {
        model_check_host(c);
        model_spoil(c);
        model_canon_host(c);
    } else {
        model_check_engine(c);
        model_canon_engine(c);
    }
}

static int compare_outs(const void *x, const void *y)
{
    const uint16_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

static void keep_outs(struct model_step *step)
{
    if (outs_count + model.out_count > outs_room) {
        outs_room = 2 * (outs_room + model.out_count + FIRST);
        outs = grow(outs, outs_room * sizeof(uint16_t));
    }
    qsort(model.outs, model.out_count, sizeof(uint16_t), compare_outs);
    step->outs_at = outs_count;
    step->out_count = 0;
    for (uint32_t i = 0; i < model.out_count; i++)
        if (i == 0 || model.outs[i] != model.outs[i - 1]) {
            outs[outs_count++] = model.outs[i];
            step->out_count++;
        }
}

static uint32_t find_out(int c, uint32_t number, uint32_t action)
{
    static int handles;
    struct model_step step = {0};

    if (!handles)
        catch_traps();
    handles = 1;
    model_load(c, number);
    model.out_count = 0;
    model.violation = NULL;
    act(c, action, &step);
    model.steps++;
    step.violation = model.violation;
    if (step.enabled && step.violation == NULL)
        step.next = model_intern(c);
    else
        step.next = number;
    keep_outs(&step);
    if (step_count == step_room) {
        step_room = step_room == 0 ? FIRST : 2 * step_room;
        steps = grow(steps, step_room * sizeof(struct model_step));
    }
    steps[step_count] = step;
    return step_count++;
}

const struct model_step *model_step(int c, uint32_t number, uint32_t action)
{
    struct local *local = &locals[c].at[number];
    uint32_t found;

    if (action >= local->step_count) {
        uint32_t room = MODEL_ACT_MESSAGE + 2 * model.local_count[c] + 8;

        if (room <= action)
            room = action + 1;
        local->steps = grow(local->steps, room * sizeof(uint32_t));
        memset(local->steps + local->step_count, 0, (room - local->step_count) * sizeof(uint32_t));
        local->step_count = room;
    }
    if (local->steps[action] == 0) {
        found = find_out(c, number, action);
        local = &locals[c].at[number]; /* the list may have been reallocated */
        local->steps[action] = found + 1;
    }
    return &steps[local->steps[action] - 1];
}

const uint16_t *model_outs(const struct model_step *step)
{
    return outs + step->outs_at;
}
