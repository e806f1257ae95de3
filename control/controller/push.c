/* Two-phase push. Neighbours: session.c talks to one switch; `banyan push` and the lab call this. */
#include "control/controller/push.h"

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
    snprintf(problem->text, sizeof(problem->text), "switch %s: %.300s%s", name, text, consequence);
    return error;
}

/* The switch is who we think it is, and large enough. */
static int greet(const struct by_push_target *target, struct by_session *session, struct by_problem *problem)
{
    struct by_image_header header;
    by_HelloReply hello;
    int error = by_session_hello(session, &hello, problem);

    if (error != 0)
        return error;
    by_image_header(target->image, &header);
    problem->text[0] = 0;
    if (strcmp(hello.name, target->name) != 0 || strcmp(header.name, target->name) != 0)
        snprintf(problem->text, sizeof(problem->text),
                 "%s answers as '%s', and the image is for '%s': check the addresses", target->address,
                 hello.name, header.name);
    else if (header.kind != BY_NODE_SWITCH)
        snprintf(problem->text, sizeof(problem->text),
                 "the image is a host's: give it to libbanyan as BANYAN_TABLE");
    else if (header.slot_count > hello.slot_count)
        snprintf(problem->text, sizeof(problem->text),
                 "the image needs %u slots, the switch has %u: start it with more, or lower with --slots %u",
                 header.slot_count, (unsigned)hello.slot_count, (unsigned)hello.slot_count);
    else if (header.count[BY_SECTION_PORT] > hello.port_count)
        snprintf(problem->text, sizeof(problem->text),
                 "the image has %u ports, the switch %u: start it with all its ports",
                 header.count[BY_SECTION_PORT], (unsigned)hello.port_count);
    else if (header.payload_max > hello.payload_max)
        snprintf(problem->text, sizeof(problem->text),
                 "the image has chunks of %u bytes, the switch takes %u: lower with a smaller --mtu",
                 header.payload_max, (unsigned)hello.payload_max);
    return problem->text[0] ? BY_ELIMIT : 0;
}

static int prepare(struct by_push_target *target, const struct by_session_options *options,
                   struct by_session **session, struct by_problem *problem)
{
    int error = by_session_open(target->address, options, session, problem);

    if (error == 0)
        error = greet(target, *session, problem);
    if (error == 0)
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
        targets[i].hash = by_image_hash(targets[i].image, targets[i].bytes);
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
        char text[64];
        error = by_session_commit(sessions[done], targets[done].hash, problem);
        snprintf(text, sizeof(text), "; %u of %u have the new table: push again", done, count);
        if (error != 0)
            blame(problem, error, targets[done].name, text);
    }
    for (uint32_t i = 0; i < count; i++)
        by_session_close(sessions[i]);
    free(sessions);
    return error;
}
