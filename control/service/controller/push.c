/* Two-phase push, and settling of interrupted pushes. Neighbours: session.c is the connection to
 * one switch; `banyan push`, banyand and the lab call this file. */
#include "control/service/controller/push.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/service/controller/parallel.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"

uint64_t by_push_election(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Adds the name of the switch before the error text and the consequence for the others after it. */
static int blame(struct by_problem *problem, int error, const char *name, const char *consequence)
{
    char text[sizeof(problem->text)];

    snprintf(text, sizeof(text), "%s", problem->text);
    snprintf(problem->text, sizeof(problem->text), "switch %.40s: %.200s%.150s", name, text, consequence);
    return error;
}

/* Checks that the switch and the image have the expected name. The switch itself checks resources
 * and election ids. */
static int check_names(const struct by_push_target *target, const by_HelloReply *hello,
                       struct by_problem *problem)
{
    struct by_image_header header;

    by_image_header(target->image, &header);
    if (strcmp(hello->name, target->name) != 0 || strcmp(header.name, target->name) != 0)
        snprintf(problem->text, sizeof(problem->text),
                 "%s answers as '%s', and the image is for '%s': check the addresses", target->address,
                 hello->name, header.name);
    else if (header.kind != BY_NODE_SWITCH)
        snprintf(problem->text, sizeof(problem->text),
                 "the image is for a host: give it to libbanyan as BANYAN_TABLE");
    return problem->text[0] ? BY_ELIMIT : 0;
}

/* Stages the table that the switch has saved. */
static int restore(struct by_push_target *target, struct by_session *session, struct by_problem *problem)
{
    by_HelloReply hello;
    int error = by_session_hello(session, &hello, problem);

    if (error != 0)
        return error;
    target->hash = hello.saved_hash;
    if (strcmp(hello.name, target->name) != 0)
        return by_problem_say(problem, BY_ENOENT, "%s answers as '%s': check the addresses", target->address,
                              hello.name);
    if (hello.saved_hash == 0)
        return by_problem_say(
            problem, BY_ENOENT,
            "%s offers no saved table (it needs --state, and no push since its start): push "
            "its image",
            target->address);
    error = by_session_restore(session, target->hash, problem);
    return error == 0 ? by_session_validate(session, target->hash, problem) : error;
}

/* Sends the image at once, over the base if there is one. The answer to Hello, which comes first,
 * shows whether the switch is the right one; until the commit it has only stored the image. */
static int load(const struct by_push_target *target, struct by_session *session, struct by_problem *problem)
{
    struct by_session_load load = {.base = target->base,
                                   .base_bytes = target->base_bytes,
                                   .image = target->image,
                                   .bytes = target->bytes,
                                   .hash = target->hash};
    struct by_problem wrong = {0};
    by_HelloReply hello;
    int error = by_session_load(session, &load, &hello, problem);

    if (hello.name[0] == 0)
        return error;
    if (error == BY_ESTATE && load.base != NULL &&
        hello.table_hash != by_image_hash(load.base, load.base_bytes)) {
        load.base = NULL;
        error = by_session_load(session, &load, &hello, problem);
    }
    if (error != 0 && !by_session_refused(session))
        return error;
    if (check_names(target, &hello, &wrong) == 0)
        return error;
    *problem = wrong;
    return BY_ELIMIT;
}

static int prepare(struct by_push_target *target, const struct by_session_options *options,
                   struct by_session **session, struct by_problem *problem)
{
    int error = by_session_open(target->address, options, session, problem);

    if (error != 0)
        return error;
    return target->image == NULL ? restore(target, *session, problem) : load(target, *session, problem);
}

/* A push or a settlement at all its switches. Each switch has its own state. */
struct push_work {
    struct by_push_target *targets;
    struct by_session_options options;
    uint32_t count;
    uint64_t open; /* the push being settled, or 0 */
    struct by_push_record *record;
    int record_error;
    struct by_problem record_problem;
    struct each {
        struct by_session *session;
        by_HelloReply hello;
        int error;
        struct by_problem problem;
    } * each; /* by switch */
};

static void work_open(struct push_work *work, struct by_push_target *targets, uint32_t count,
                      const struct by_session_options *options)
{
    *work = (struct push_work){.targets = targets,
                               .options = *options,
                               .count = count,
                               .each = by_alloc(count, sizeof(*work->each))};
    if (work->options.election_id == 0)
        work->options.election_id = by_push_election();
}

static void work_close(struct push_work *work)
{
    for (uint32_t i = 0; i < work->count; i++)
        by_session_close(work->each[i].session);
    free(work->each);
}

/* Returns 0, or the error of the first switch at which a step failed; `problem` names it, followed
 * by `consequence`. */
static int work_look(const struct push_work *work, const char *consequence, struct by_problem *problem)
{
    uint32_t failed = 0, first = 0;
    char text[150];

    for (uint32_t i = work->count; i-- > 0;)
        if (work->each[i].error != 0) {
            failed++;
            first = i;
        }
    if (failed == 0)
        return 0;
    *problem = work->each[first].problem;
    if (failed > 1)
        snprintf(text, sizeof(text), " (%u more of %u switches failed)%s", failed - 1, work->count,
                 consequence);
    else
        snprintf(text, sizeof(text), "%s", consequence);
    return blame(problem, work->each[first].error, work->targets[first].name, text);
}

static uint32_t at_once(const struct push_work *work)
{
    return work->options.at_once > 0 ? work->options.at_once : BY_PUSH_AT_ONCE;
}

/* Performs one step at all switches in parallel; returns as work_look does. */
static int work_do(struct push_work *work, by_parallel_fn *step, const char *consequence,
                   struct by_problem *problem)
{
    by_parallel(work->count, at_once(work), step, work);
    return work_look(work, consequence, problem);
}

/* Index 0 is the record, the switches follow. */
static void do_prepare(void *context, uint32_t index)
{
    struct push_work *work = context;
    struct by_push_target *target;
    uint32_t i = index - 1;

    if (index == 0) {
        if (work->record == NULL)
            return;
        work->record_error = work->record->write(work->record->user, &work->record_problem);
        work->record->written = work->record_error == 0;
        return;
    }
    target = &work->targets[i];
    target->hash = target->image ? by_image_hash(target->image, target->bytes) : 0;
    work->each[i].error = prepare(target, &work->options, &work->each[i].session, &work->each[i].problem);
}

static void do_abort(void *context, uint32_t i)
{
    struct push_work *work = context;

    if (work->each[i].session != NULL)
        work->each[i].error = by_session_abort(work->each[i].session, &work->each[i].problem);
}

static void do_commit(void *context, uint32_t i)
{
    struct push_work *work = context;

    work->each[i].error =
        by_session_commit(work->each[i].session, work->targets[i].hash, &work->each[i].problem);
}

/* All switches validate their images, while the record is written. */
static int prepare_all(struct push_work *work, struct by_problem *problem)
{
    by_parallel(work->count + 1, at_once(work) + (work->record != NULL), do_prepare, work);
    if (work->record_error == 0)
        return work_look(work, "; no table was changed", problem);
    *problem = work->record_problem;
    return work->record_error;
}

int by_push_recorded(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                     struct by_push_record *record, struct by_problem *problem)
{
    struct by_problem ignored;
    struct push_work work;
    uint32_t done = 0;
    char text[96];
    int error;

    work_open(&work, targets, count, options);
    work.record = record;
    error = prepare_all(&work, problem);
    if (error != 0) {
        work_do(&work, do_abort, "", &ignored);
    } else {
        error = work_do(&work, do_commit, "", problem);
        for (uint32_t i = 0; i < count; i++)
            done += work.each[i].error == 0;
        snprintf(text, sizeof(text), "; %u of %u have the new table: push again, or banyan push --settle",
                 done, count);
        if (error != 0)
            strncat(problem->text, text, sizeof(problem->text) - strlen(problem->text) - 1);
    }
    for (uint32_t i = 0; i < count; i++)
        targets[i].sent = work.each[i].session ? by_session_sent(work.each[i].session) : 0;
    work_close(&work);
    return error;
}

int by_push(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
            struct by_problem *problem)
{
    return by_push_recorded(targets, count, options, NULL, problem);
}

/* Each Hello fences off older writers, so that the state which it returns stays valid. */
static void do_greet(void *context, uint32_t i)
{
    struct push_work *work = context;
    struct each *each = &work->each[i];

    each->error = by_session_open(work->targets[i].address, &work->options, &each->session, &each->problem);
    if (each->error == 0)
        each->error = by_session_hello(each->session, &each->hello, &each->problem);
}

/* Returns the newest push that a switch has validated and not committed; 0 = none. */
static uint64_t find_open(const struct push_work *work)
{
    uint64_t open = 0;

    for (uint32_t i = 0; i < work->count; i++)
        if (work->each[i].hello.validated_hash != 0 && work->each[i].hello.validated_push > open)
            open = work->each[i].hello.validated_push;
    return open;
}

/* Commits the open push where it is not active yet. */
static void do_complete(void *context, uint32_t i)
{
    struct push_work *work = context;
    struct each *each = &work->each[i];

    if (each->hello.table_push != work->open)
        each->error = by_session_commit(each->session, each->hello.validated_hash, &each->problem);
}

/* Completes a push that at least one switch has committed. */
static int settle_forward(struct push_work *work, struct by_problem *problem)
{
    const uint64_t open = work->open;

    for (uint32_t i = 0; i < work->count; i++) {
        const by_HelloReply *hello = &work->each[i].hello;

        if (hello->table_push == open || (hello->validated_hash != 0 && hello->validated_push == open))
            continue;
        snprintf(problem->text, sizeof(problem->text),
                 "has restarted and lacks the push that other switches have activated: push again");
        return blame(problem, BY_ESTATE, work->targets[i].name, "");
    }
    return work_do(work, do_complete, "; settle again", problem);
}

int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem)
{
    bool begun = false;
    struct push_work work;
    uint64_t open;
    int error;

    work_open(&work, targets, count, options);
    error = work_do(&work, do_greet, "; nothing was settled", problem);
    open = work.open = error == 0 ? find_open(&work) : 0;
    for (uint32_t i = 0; i < count && open != 0; i++)
        begun |= work.each[i].hello.table_push == open;
    *settled = open == 0 ? BY_PUSH_CLEAR : begun ? BY_PUSH_FORWARD : BY_PUSH_BACK;
    if (begun)
        error = settle_forward(&work, problem);
    /* Staged bytes that are not validated are discarded as well. */
    else if (error == 0)
        error = work_do(&work, do_abort, "; settle again", problem);
    for (uint32_t i = 0; i < count; i++)
        targets[i].boot_nonce = work.each[i].hello.boot_nonce;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        const by_HelloReply *hello = &work.each[i].hello;

        targets[i].hash = !begun || hello->table_push == open ? hello->table_hash : hello->validated_hash;
    }
    work_close(&work);
    return error;
}
