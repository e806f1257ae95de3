/*
 * The happens-before order. See execute.h.
 *
 * One execution shows only one order; a schedule is right only if every possible order gives the
 * same result. So each write must be ordered against every other access to its place. Three things
 * order steps: the sequence inside a thread block, dependences, and messages.
 */
#include "control/base/alloc.h"
#include "control/study/export/execute.h"
#include "offload/base/errors.h"

/* Steps that all searches together may visit (count). */
#define LOOKED_MAX (UINT64_C(1) << 28)
/* Most readings that are kept (count). */
#define READINGS_MAX (1u << 26)

uint32_t by_happens_awaited(const struct by_export_machine *machine, uint32_t step)
{
    const struct by_msccl *msccl = machine->msccl;
    const struct by_msccl_step *what = &msccl->steps[step];
    const struct by_msccl_gpu *gpu = &msccl->gpus[msccl->blocks[machine->block_of[step]].gpu];

    if (what->after_block < 0)
        return BY_STEP_NONE;
    return msccl->blocks[gpu->block_first + (uint32_t)what->after_block].step_first +
           (uint32_t)what->after_step;
}

static void push(struct by_export_machine *machine, uint32_t step, uint32_t floor, uint32_t *depth)
{
    if (step == BY_STEP_NONE || machine->stamp[step] == machine->search || machine->when[step] < floor)
        return;
    machine->stamp[step] = machine->search;
    machine->stack[(*depth)++] = step;
}

/* Searches backwards from `second`, through the steps executed after `first`. */
static int look_back(struct by_export_machine *machine, uint32_t first, uint32_t second)
{
    uint32_t depth = 0;

    machine->search++;
    push(machine, second, machine->when[first], &depth);
    while (depth > 0) {
        uint32_t step = machine->stack[--depth];

        if (step == first)
            return 1;
        if (++machine->looked > LOOKED_MAX)
            return -1;
        if (step > machine->msccl->blocks[machine->block_of[step]].step_first)
            push(machine, step - 1, machine->when[first], &depth);
        push(machine, machine->from[step], machine->when[first], &depth);
        push(machine, by_happens_awaited(machine, step), machine->when[first], &depth);
    }
    return 0;
}

int by_happens_before(struct by_export_machine *machine, uint32_t first, uint32_t second)
{
    const struct by_msccl_block *a = &machine->msccl->blocks[machine->block_of[first]];
    uint32_t block = machine->block_of[second];

    if (machine->block_of[first] == block)
        return first < second;
    if (a->gpu == machine->msccl->blocks[block].gpu &&
        machine->known[block][a->id] > (int32_t)(first - a->step_first))
        return 1;
    return look_back(machine, first, second);
}

static int refuse(struct by_export_machine *machine, uint32_t first, uint32_t second, int verdict)
{
    const struct by_msccl *msccl = machine->msccl;
    const struct by_msccl_block *a = &msccl->blocks[machine->block_of[first]];
    const struct by_msccl_block *b = &msccl->blocks[machine->block_of[second]];

    if (verdict < 0)
        return by_problem_set(
            machine->problem, BY_ELIMIT, (struct by_place){msccl->steps[second].line, 1},
            "proving the order of the steps takes too long; state the dependences between thread blocks");
    return by_problem_set(
        machine->problem, BY_EINVAL, (struct by_place){msccl->steps[second].line, 1},
        "GPU %u: step %u of thread block %d and step %u of thread block %d use the same chunk, one of them "
        "writes it, and their order is undefined; add a dependence (depid, deps)",
        b->gpu, first - a->step_first, a->id, second - b->step_first, b->id);
}

int by_happens_access(struct by_export_machine *machine, uint32_t place, uint32_t step, bool write)
{
    uint32_t writer = machine->writer[place];
    int verdict = writer == BY_STEP_NONE ? 1 : by_happens_before(machine, writer, step);

    if (verdict != 1)
        return refuse(machine, writer, step, verdict);
    if (!write) {
        if (machine->reading_count >= READINGS_MAX)
            return by_problem_set(machine->problem, BY_ELIMIT, (struct by_place){0, 0},
                                  "the schedule reads more than %u chunks", READINGS_MAX);
        BY_GROW(machine->readings, machine->reading_count, machine->reading_room);
        machine->readings[machine->reading_count] = (struct by_reading){step, machine->readers[place]};
        machine->readers[place] = ++machine->reading_count;
        return 0;
    }
    for (uint32_t r = machine->readers[place]; r != 0; r = machine->readings[r - 1].next) {
        uint32_t reader = machine->readings[r - 1].step;

        verdict = reader == step ? 1 : by_happens_before(machine, reader, step);
        if (verdict != 1)
            return refuse(machine, reader, step, verdict);
    }
    machine->readers[place] = 0;
    machine->writer[place] = step;
    return 0;
}
