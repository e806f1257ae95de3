/* Two-phase push, and what settles one that was interrupted. Neighbours: session.c talks to one switch;
 * `banyan push` and the lab call this. */
#include "control/controller/push.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control/topology/alloc.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"

uint64_t by_push_election(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Puts the switch's name in front of what went wrong with it, and what it means for the others behind. */
static int blame(struct by_problem *problem, int error, const char *name, const char *consequence)
{
    char text[sizeof(problem->text)];

    snprintf(text, sizeof(text), "%s", problem->text);
    snprintf(problem->text, sizeof(problem->text), "switch %s: %.260s%s", name, text, consequence);
    return error;
}

/* The switch is who we think it is; whether it is large enough it says itself, and who holds what of it.
 * `*over`: what it has is the target's base. */
static int greet(struct by_push_target *target, struct by_session *session, bool *over,
                 struct by_problem *problem)
{
    struct by_image_header header;
    by_HelloReply hello;
    int error = by_session_hello(session, &hello, problem);

    if (error != 0)
        return error;
    problem->text[0] = 0;
    *over = target->base != NULL && hello.table_hash == by_image_hash(target->base, target->base_bytes);
    if (target->image == NULL) {
        target->hash = hello.saved_hash;
        if (strcmp(hello.name, target->name) != 0)
            snprintf(problem->text, sizeof(problem->text), "%s answers as '%s': check the addresses",
                     target->address, hello.name);
        else if (hello.saved_hash == 0)
            snprintf(problem->text, sizeof(problem->text),
                     "%s offers no table of an earlier life (it needs --state, and no table pushed since its "
                     "start): "
                     "push its image",
                     target->address);
        return problem->text[0] ? BY_ENOENT : 0;
    }
    by_image_header(target->image, &header);
    if (strcmp(hello.name, target->name) != 0 || strcmp(header.name, target->name) != 0)
        snprintf(problem->text, sizeof(problem->text),
                 "%s answers as '%s', and the image is for '%s': check the addresses", target->address,
                 hello.name, header.name);
    else if (header.kind != BY_NODE_SWITCH)
        snprintf(problem->text, sizeof(problem->text),
                 "the image is a host's: give it to libbanyan as BANYAN_TABLE");
    return problem->text[0] ? BY_ELIMIT : 0;
}

static int prepare(struct by_push_target *target, const struct by_session_options *options,
                   struct by_session **session, struct by_problem *problem)
{
    int error = by_session_open(target->address, options, session, problem);
    bool over = false;

    if (error == 0)
        error = greet(target, *session, &over, problem);
    if (error == 0 && target->image == NULL)
        error = by_session_restore(*session, target->hash, problem);
    else if (error == 0 && over)
        error = by_session_stage_over(*session, target->base, target->base_bytes, target->image,
                                      target->bytes, problem);
    else if (error == 0)
        error = by_session_stage(*session, target->image, target->bytes, problem);
    if (error == 0)
        error = by_session_validate(*session, target->hash, problem);
    return error;
}

int by_push(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
            struct by_problem *problem)
{
    struct by_session **sessions = by_alloc(count, sizeof(struct by_session *));
    struct by_session_options writer = *options;
    uint32_t done = 0;
    int error = 0;

    if (writer.election_id == 0)
        writer.election_id = by_push_election();
    for (uint32_t i = 0; i < count && error == 0; i++) {
        targets[i].hash = targets[i].image ? by_image_hash(targets[i].image, targets[i].bytes) : 0;
        error = prepare(&targets[i], &writer, &sessions[i], problem);
        if (error != 0)
            blame(problem, error, targets[i].name, "; no table was changed");
    }
    for (uint32_t i = 0; i < count && error != 0; i++) {
        struct by_problem ignored;
        if (sessions[i] != NULL)
            by_session_abort(sessions[i], &ignored);
    }
    for (; done < count && error == 0; done++) {
        char text[96];
        error = by_session_commit(sessions[done], targets[done].hash, problem);
        snprintf(text, sizeof(text), "; %u of %u have the new table: push again, or banyan push --settle",
                 done, count);
        if (error != 0)
            blame(problem, error, targets[done].name, text);
    }
    for (uint32_t i = 0; i < count; i++) {
        targets[i].sent = sessions[i] ? by_session_sent(sessions[i]) : 0;
        by_session_close(sessions[i]);
    }
    free(sessions);
    return error;
}

/* What one switch knows of a push. */
struct state {
    struct by_session *session;
    by_HelloReply hello;
};

/* The newest push that some switch has validated and not yet committed; 0 = none. */
static uint64_t find_open(const struct state *states, uint32_t count)
{
    uint64_t open = 0;

    for (uint32_t i = 0; i < count; i++)
        if (states[i].hello.validated_hash != 0 && states[i].hello.validated_push > open)
            open = states[i].hello.validated_push;
    return open;
}

/* Completes push `open`, which somebody has committed. */
static int settle_forward(const struct by_push_target *targets, const struct state *states, uint32_t count,
                          uint64_t open, struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < count; i++) {
        const by_HelloReply *hello = &states[i].hello;

        if (hello->table_push == open || (hello->validated_hash != 0 && hello->validated_push == open))
            continue;
        snprintf(problem->text, sizeof(problem->text),
                 "has restarted, and knows nothing of the push that others have made active: push again");
        return blame(problem, BY_ESTATE, targets[i].name, "");
    }
    for (uint32_t i = 0; i < count && error == 0; i++)
        if (states[i].hello.table_push != open) {
            error = by_session_commit(states[i].session, states[i].hello.validated_hash, problem);
            if (error != 0)
                blame(problem, error, targets[i].name, "; settle again");
        }
    return error;
}

int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem)
{
    struct state *states = by_alloc(count, sizeof(*states));
    struct by_session_options writer = *options;
    bool begun = false;
    uint64_t open;
    int error = 0;

    if (writer.election_id == 0)
        writer.election_id = by_push_election();
    /* Each Hello fences older writers off, so what is read stays true. */
    for (uint32_t i = 0; i < count && error == 0; i++) {
        error = by_session_open(targets[i].address, &writer, &states[i].session, problem);
        if (error == 0)
            error = by_session_hello(states[i].session, &states[i].hello, problem);
        if (error != 0)
            blame(problem, error, targets[i].name, "; nothing was settled");
    }
    open = error == 0 ? find_open(states, count) : 0;
    for (uint32_t i = 0; i < count && open != 0; i++)
        begun |= states[i].hello.table_push == open;
    *settled = open == 0 ? BY_PUSH_CLEAR : begun ? BY_PUSH_FORWARD : BY_PUSH_BACK;
    if (begun)
        error = settle_forward(targets, states, count, open, problem);
    /* Bytes that were staged and not validated tell nothing; they go as well. */
    for (uint32_t i = 0; i < count && error == 0 && !begun; i++) {
        error = by_session_abort(states[i].session, problem);
        if (error != 0)
            blame(problem, error, targets[i].name, "; settle again");
    }
    for (uint32_t i = 0; i < count && error == 0; i++)
        targets[i].hash = !begun || states[i].hello.table_push == open ? states[i].hello.table_hash
                                                                       : states[i].hello.validated_hash;
    for (uint32_t i = 0; i < count; i++)
        by_session_close(states[i].session);
    free(states);
    return error;
}
