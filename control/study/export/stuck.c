/*
 * Explains why a schedule cannot proceed: a message that is never sent, a message that is never
 * received, or a circle of waits. See execute.h.
 */
#include "control/study/export/execute.h"

#include <stdarg.h>
#include <stdio.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"

/* Most members of a circle that are named (count). */
#define NAMED_MAX 5u

/* Returns the thread block for which a block waits, or BY_STEP_NONE if no block can proceed. */
enum reason { FOR_STEP, FOR_MESSAGE, FOR_SLOT };

static uint32_t waits_for(const struct by_export_machine *machine, uint32_t block, enum reason *reason)
{
    const struct by_msccl *msccl = machine->msccl;
    const struct by_msccl_block *what = &msccl->blocks[block];
    const struct by_msccl_step *step = &msccl->steps[what->step_first + machine->done[block]];
    uint32_t other = BY_STEP_NONE;

    if (step->after_block >= 0) {
        other = msccl->gpus[what->gpu].block_first + (uint32_t)step->after_block;
        *reason = FOR_STEP;
        if (machine->done[other] <= (uint32_t)step->after_step)
            return other;
    }
    if (by_msccl_receives(step->type) && machine->connections[machine->in[block]].count == 0) {
        *reason = FOR_MESSAGE;
        other = machine->connections[machine->in[block]].sender;
    } else {
        *reason = FOR_SLOT;
        other = machine->connections[machine->out[block]].receiver;
    }
    return other == BY_STEP_NONE || machine->done[other] == msccl->blocks[other].step_count ? BY_STEP_NONE
                                                                                            : other;
}

static int explain_end(const struct by_export_machine *machine, uint32_t block, enum reason reason)
{
    const struct by_msccl_block *what = &machine->msccl->blocks[block];
    struct by_place place = {machine->msccl->steps[what->step_first + machine->done[block]].line, 1};

    if (reason == FOR_MESSAGE)
        return by_problem_set(
            machine->problem, BY_EINVAL, place,
            "step %u of thread block %d of GPU %u waits for a message from GPU %d on channel %d "
            "that is never sent",
            machine->done[block], what->id, what->gpu, what->receive, what->channel);
    return by_problem_set(
        machine->problem, BY_EINVAL, place,
        "step %u of thread block %d of GPU %u sends a message to GPU %d on channel %d that is never received",
        machine->done[block], what->id, what->gpu, what->send, what->channel);
}

static int explain_circle(const struct by_export_machine *machine, uint32_t first)
{
    const struct by_msccl *msccl = machine->msccl;
    uint32_t block = first, named = 0;
    char text[340];
    size_t at = 0;

    do {
        const struct by_msccl_block *what = &msccl->blocks[block];
        enum reason reason;

        if (named < NAMED_MAX && at < sizeof(text))
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%sGPU %u thread block %d step %u",
                                   named ? ", which waits for " : "", what->gpu, what->id,
                                   machine->done[block]);
        named++;
        block = waits_for(machine, block, &reason);
    } while (block != first);
    return by_problem_set(
        machine->problem, BY_EINVAL,
        (struct by_place){msccl->steps[msccl->blocks[first].step_first + machine->done[first]].line, 1},
        "cyclic wait of %u thread blocks: %s%s, which waits for the first", named, text,
        named > NAMED_MAX ? ", ..." : "");
}

int by_stuck_explain(struct by_export_machine *machine)
{
    uint32_t count = machine->msccl->block_count, circle = BY_STEP_NONE;
    uint32_t *seen = by_alloc(count, sizeof(*seen)), walk = 0;
    int error = 0;

    for (uint32_t b = 0; b < count && !error; b++) {
        uint32_t at = b;

        if (machine->done[b] == machine->msccl->blocks[b].step_count || seen[b])
            continue;
        walk++;
        while (!error && !seen[at]) {
            enum reason reason = FOR_STEP;
            uint32_t next = waits_for(machine, at, &reason);

            seen[at] = walk;
            if (next == BY_STEP_NONE)
                error = explain_end(machine, at, reason);
            else
                at = next;
        }
        if (!error && seen[at] == walk && circle == BY_STEP_NONE)
            circle = at;
    }
    free(seen);
    return error ? error : explain_circle(machine, circle);
}
