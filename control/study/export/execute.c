/*
 * Executes an MSCCL schedule symbolically. See msccl.h.
 *
 * Thread blocks execute their steps in order. A message waits in its connection until the receiver
 * reads it. Each place holds a value: a chunk number and the set of contributing ranks. The
 * execution reports these faults:
 * - a step reads a place that was never written;
 * - a step adds a rank's contribution twice, or adds two different chunks;
 * - a step receives a chunk that is there already;
 * - a step writes to an input buffer that is not also the output;
 * - a step waits for ever, or a message is never received;
 * - the result depends on an order of steps that the schedule does not guarantee;
 * - the final data are wrong.
 */
#include "control/study/export/execute.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Memory for symbolic values (bytes). */
#define VALUES_BYTES_MAX (UINT64_C(2) << 30)

static struct by_place place_of(const struct by_export_machine *machine, uint32_t step)
{
    return (struct by_place){machine->msccl->steps[step].line, 1};
}

#define FAULT(machine, step, ...)                                                                            \
    by_problem_set((machine)->problem, BY_EINVAL, place_of((machine), (step)), __VA_ARGS__)

/* ---- memory ---- */

/* Chunks that a buffer needs to hold the collective's data, independently of the file's figures. */
static uint32_t size_of(const struct by_export_machine *machine, uint32_t gpu, unsigned buffer)
{
    return machine->msccl->gpus[gpu].chunks[buffer];
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static int lay_out(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;
    uint64_t total = 0;

    for (unsigned b = 0; b < BY_MSCCL_BUFFERS; b++)
        machine->base[b] = by_alloc(msccl->gpu_count, sizeof(*machine->base[b]));
    for (uint32_t g = 0; g < msccl->gpu_count; g++) {
        uint32_t input = size_of(machine, g, BY_MSCCL_INPUT), output = size_of(machine, g, BY_MSCCL_OUTPUT);
        uint32_t shift = g * machine->shard;

        machine->base[BY_MSCCL_INPUT][g] = machine->base[BY_MSCCL_OUTPUT][g] = (uint32_t)total;
        if (!machine->in_place) {
            machine->base[BY_MSCCL_OUTPUT][g] += larger(input, msccl->chunk_count);
            total += larger(input, msccl->chunk_count) + output;
        } else if (msccl->collective == BY_COLLECTIVE_ALLGATHER) {
            machine->base[BY_MSCCL_INPUT][g] += shift;
            total += larger(larger(output, shift + input), msccl->chunk_count);
        } else {
            machine->base[BY_MSCCL_OUTPUT][g] += shift;
            total += larger(larger(shift + output, input), msccl->chunk_count);
        }
        machine->base[BY_MSCCL_SCRATCH][g] = (uint32_t)total;
        total += size_of(machine, g, BY_MSCCL_SCRATCH);
        if (total > BY_MSCCL_ALL_CHUNKS_MAX)
            return by_problem_set(machine->problem, BY_ELIMIT, (struct by_place){0, 0},
                                  "the buffers of all GPUs have more than %u chunks",
                                  BY_MSCCL_ALL_CHUNKS_MAX);
    }
    machine->place_count = (uint32_t)total;
    machine->value = by_alloc(total, sizeof(*machine->value));
    machine->writer = by_alloc(total, sizeof(*machine->writer));
    machine->readers = by_alloc(total, sizeof(*machine->readers));
    memset(machine->writer, 0xff, total * sizeof(*machine->writer));
    return 0;
}

/* Fills in the initial data of each GPU. */
static void fill_inputs(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;

    BY_ASSERT(machine->value);
    for (uint32_t g = 0; g < msccl->gpu_count; g++) {
        bool shard = msccl->collective == BY_COLLECTIVE_ALLGATHER;
        uint32_t count = shard ? machine->shard : msccl->chunk_count;

        if (msccl->collective == BY_COLLECTIVE_BROADCAST && g != msccl->root)
            continue;
        for (uint32_t c = 0; c < count; c++)
            machine->value[machine->base[BY_MSCCL_INPUT][g] + c] =
                by_value_own(machine->values, shard ? g * machine->shard + c : c, g);
    }
}

static int check_outputs(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;
    bool scatter = msccl->collective == BY_COLLECTIVE_REDUCE_SCATTER;
    uint32_t count = scatter ? machine->shard : msccl->chunk_count;

    BY_ASSERT(machine->value);
    for (uint32_t g = 0; g < msccl->gpu_count; g++) {
        if (msccl->collective == BY_COLLECTIVE_REDUCE && g != msccl->root)
            continue;
        if (size_of(machine, g, BY_MSCCL_OUTPUT) < count)
            return by_problem_set(machine->problem, BY_EINVAL, (struct by_place){0, 0},
                                  "the output of GPU %u has %u chunks; the result has %u", g,
                                  size_of(machine, g, BY_MSCCL_OUTPUT), count);
        for (uint32_t c = 0; c < count; c++) {
            uint32_t chunk = scatter ? g * machine->shard + c : c, right;
            uint32_t there = machine->value[machine->base[BY_MSCCL_OUTPUT][g] + c];

            if (msccl->collective == BY_COLLECTIVE_ALLGATHER)
                right = by_value_own(machine->values, chunk, chunk / machine->shard);
            else if (msccl->collective == BY_COLLECTIVE_BROADCAST)
                right = by_value_own(machine->values, chunk, msccl->root);
            else
                right = by_value_all(machine->values, chunk);
            if (there == right)
                continue;
            if (there == BY_VALUE_NONE)
                return by_problem_set(machine->problem, BY_EINVAL, (struct by_place){0, 0},
                                      "at the end chunk %u of the output of GPU %u has never been written", c,
                                      g);
            return by_problem_set(
                machine->problem, BY_EINVAL, (struct by_place){0, 0},
                "at the end chunk %u of the output of GPU %u holds chunk %u with %u contributions instead of "
                "chunk %u with %u",
                c, g, by_value_chunk(machine->values, there), by_value_count(machine->values, there), chunk,
                by_value_count(machine->values, right));
        }
    }
    return 0;
}

/* ---- connections ---- */

static int compare_connections(const void *left, const void *right)
{
    const struct by_connection *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return a->channel < b->channel ? -1 : a->channel > b->channel;
}

static void connect(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;
    struct by_connection *list = by_alloc(2 * (size_t)msccl->block_count, sizeof(*list));
    uint32_t count = 0;

    machine->out = by_alloc(msccl->block_count, sizeof(*machine->out));
    machine->in = by_alloc(msccl->block_count, sizeof(*machine->in));
    for (uint32_t b = 0; b < msccl->block_count; b++) {
        const struct by_msccl_block *block = &msccl->blocks[b];

        machine->out[b] = machine->in[b] = BY_STEP_NONE;
        if (block->send >= 0)
            list[count++] = (struct by_connection){.from = block->gpu,
                                                   .to = (uint32_t)block->send,
                                                   .channel = block->channel,
                                                   .sender = b,
                                                   .receiver = BY_STEP_NONE};
        if (block->receive >= 0)
            list[count++] = (struct by_connection){.from = (uint32_t)block->receive,
                                                   .to = block->gpu,
                                                   .channel = block->channel,
                                                   .sender = BY_STEP_NONE,
                                                   .receiver = b};
    }
    if (count > 1)
        qsort(list, count, sizeof(*list), compare_connections);
    for (uint32_t i = 0; i < count; i++) {
        struct by_connection *last = &list[machine->connection_count > 0 ? machine->connection_count - 1 : 0];

        if (machine->connection_count > 0 && compare_connections(last, &list[i]) == 0) {
            last->sender = last->sender == BY_STEP_NONE ? list[i].sender : last->sender;
            last->receiver = last->receiver == BY_STEP_NONE ? list[i].receiver : last->receiver;
        } else {
            list[machine->connection_count++] = list[i];
        }
    }
    machine->connections = list;
    for (uint32_t c = 0; c < machine->connection_count; c++) {
        if (list[c].sender != BY_STEP_NONE)
            machine->out[list[c].sender] = c;
        if (list[c].receiver != BY_STEP_NONE)
            machine->in[list[c].receiver] = c;
    }
    machine->messages =
        by_alloc((size_t)machine->connection_count * machine->slots, sizeof(*machine->messages));
    for (size_t m = 0; m < (size_t)machine->connection_count * machine->slots; m++)
        machine->messages[m].values = by_alloc(BY_MSCCL_COUNT_MAX, sizeof(uint32_t));
}

/* ---- steps ---- */

static void wake(struct by_export_machine *machine, uint32_t block)
{
    uint32_t count = machine->msccl->block_count;

    if (block == BY_STEP_NONE || machine->queued[block] ||
        machine->done[block] == machine->msccl->blocks[block].step_count)
        return;
    machine->queued[block] = true;
    machine->queue[(machine->queue_head + machine->queue_count++) % count] = block;
}

/* Whether the block's next step can be executed now. */
static bool is_ready(const struct by_export_machine *machine, uint32_t block)
{
    const struct by_msccl *msccl = machine->msccl;
    const struct by_msccl_block *what = &msccl->blocks[block];
    const struct by_msccl_step *step = &msccl->steps[what->step_first + machine->done[block]];

    if (step->after_block >= 0 &&
        machine->done[msccl->gpus[what->gpu].block_first + (uint32_t)step->after_block] <=
            (uint32_t)step->after_step)
        return false;
    if (by_msccl_receives(step->type) && machine->connections[machine->in[block]].count == 0)
        return false;
    return !by_msccl_sends(step->type) || machine->connections[machine->out[block]].count < machine->slots;
}

static int read_place(struct by_export_machine *machine, uint32_t number, uint32_t gpu, unsigned buffer,
                      int32_t at, uint32_t *value)
{
    uint32_t place = machine->base[buffer][gpu] + (uint32_t)at;

    *value = machine->value[place];
    if (*value == BY_VALUE_NONE)
        return FAULT(machine, number, "GPU %u reads chunk %d of its %c buffer, which has not been written",
                     gpu, at, "ios"[buffer]);
    return by_happens_access(machine, place, number, false);
}

static int write_place(struct by_export_machine *machine, uint32_t number, uint32_t gpu, unsigned buffer,
                       int32_t at, uint32_t value, bool sum)
{
    uint32_t place = machine->base[buffer][gpu] + (uint32_t)at;

    if (buffer == BY_MSCCL_INPUT && !machine->in_place)
        return FAULT(machine, number, "GPU %u writes to its input, which must stay unchanged", gpu);
    if (machine->value[place] == value && !sum)
        return FAULT(machine, number,
                     "GPU %u receives chunk %u again; it is already in chunk %d of its %c buffer", gpu,
                     by_value_chunk(machine->values, value), at, "ios"[buffer]);
    machine->value[place] = value;
    return by_happens_access(machine, place, number, true);
}

/* Computes a + b at a GPU. */
static int add_values(struct by_export_machine *machine, uint32_t number, uint32_t gpu, uint32_t a,
                      uint32_t b, uint32_t *sum)
{
    int64_t twice;

    *sum = by_value_sum(machine->values, a, b, &twice);
    if (*sum == BY_VALUE_FULL)
        return by_problem_set(machine->problem, BY_ELIMIT, place_of(machine, number),
                              "the partial sums of the schedule need more than %llu MiB",
                              (unsigned long long)(VALUES_BYTES_MAX >> 20));
    if (*sum != BY_VALUE_NONE)
        return 0;
    if (twice < 0)
        return FAULT(machine, number, "GPU %u adds chunk %u to chunk %u", gpu,
                     by_value_chunk(machine->values, a), by_value_chunk(machine->values, b));
    return FAULT(machine, number, "GPU %u adds the contribution of GPU %lld to chunk %u twice", gpu,
                 (long long)twice, by_value_chunk(machine->values, a));
}

/*
 * Executes one chunk of a step. On entry `value` is what was received, on return what is sent on.
 */
static int move_chunk(struct by_export_machine *machine, uint32_t number, uint32_t gpu, int32_t i,
                      uint32_t *value)
{
    const struct by_msccl_step *step = &machine->msccl->steps[number];
    bool reads = by_msccl_reads(step->type), receives = by_msccl_receives(step->type);
    bool sums = (receives && reads) || step->type == BY_MSCCL_REDUCE;
    uint32_t here = *value;
    int error = 0;

    if (reads)
        error = read_place(machine, number, gpu, step->source, step->source_at + i, &here);
    if (!error && receives && reads)
        error = add_values(machine, number, gpu, *value, here, &here);
    if (!error && step->type == BY_MSCCL_REDUCE) {
        uint32_t there = BY_VALUE_NONE;

        error = read_place(machine, number, gpu, step->target, step->target_at + i, &there);
        if (!error)
            error = add_values(machine, number, gpu, there, here, &here);
    }
    *value = here;
    if (error || !by_msccl_writes(step->type))
        return error;
    if (step->type == BY_MSCCL_COPY && machine->base[step->source][gpu] + (uint32_t)step->source_at ==
                                           machine->base[step->target][gpu] + (uint32_t)step->target_at)
        return 0; /* the copy is onto itself, in place */
    return write_place(machine, number, gpu, step->target, step->target_at + i, here, sums);
}

/* The step ends at least `messages` messages after `before`. */
static void deepen(struct by_export_machine *machine, uint32_t step, uint32_t before, uint32_t messages)
{
    if (before != BY_STEP_NONE && machine->depth[before] + messages > machine->depth[step])
        machine->depth[step] = machine->depth[before] + messages;
}

static int run_step(struct by_export_machine *machine, uint32_t block)
{
    const struct by_msccl *msccl = machine->msccl;
    const struct by_msccl_block *what = &msccl->blocks[block];
    uint32_t number = what->step_first + machine->done[block], values[BY_MSCCL_COUNT_MAX] = {0};
    const struct by_msccl_step *step = &msccl->steps[number];
    int error = 0;

    machine->when[number] = machine->clock++;
    if (machine->done[block] > 0)
        machine->depth[number] = machine->depth[number - 1];
    deepen(machine, number, by_happens_awaited(machine, number), 0);
    if (step->after_block >= 0 && machine->known[block][step->after_block] <= step->after_step)
        machine->known[block][step->after_block] = step->after_step + 1;
    if (by_msccl_receives(step->type)) {
        struct by_connection *in = &machine->connections[machine->in[block]];
        struct by_export_message *message =
            &machine->messages[(size_t)machine->in[block] * machine->slots + in->head];

        if (message->count != (uint32_t)step->count)
            return FAULT(machine, number, "GPU %u receives %d chunks, but GPU %u sends %u", what->gpu,
                         step->count, in->from, message->count);
        memcpy(values, message->values, message->count * sizeof(*values));
        machine->from[number] = message->step;
        deepen(machine, number, message->step, 1);
        in->head = (in->head + 1) % machine->slots;
        in->count--;
        wake(machine, in->sender);
    }
    for (int32_t i = 0; i < step->count && !error && step->type != BY_MSCCL_NOP; i++)
        error = move_chunk(machine, number, what->gpu, i, &values[i]);
    if (!error && by_msccl_sends(step->type)) {
        struct by_connection *out = &machine->connections[machine->out[block]];
        struct by_export_message *message = &machine->messages[(size_t)machine->out[block] * machine->slots +
                                                               (out->head + out->count) % machine->slots];

        message->step = number;
        message->count = (uint32_t)step->count;
        memcpy(message->values, values, message->count * sizeof(*values));
        out->count++;
        wake(machine, out->receiver);
    }
    machine->done[block]++;
    if (step->awaited)
        for (uint32_t b = 0; b < msccl->gpus[what->gpu].block_count; b++)
            wake(machine, msccl->gpus[what->gpu].block_first + b);
    return error;
}

static int run(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;
    int error = 0;

    for (uint32_t b = 0; b < msccl->block_count; b++)
        wake(machine, b);
    while (machine->queue_count > 0 && !error) {
        uint32_t block = machine->queue[machine->queue_head];

        machine->queue_head = (machine->queue_head + 1) % msccl->block_count;
        machine->queue_count--;
        machine->queued[block] = false;
        while (!error && machine->done[block] < msccl->blocks[block].step_count && is_ready(machine, block))
            error = run_step(machine, block);
    }
    for (uint32_t b = 0; b < msccl->block_count && !error; b++)
        if (machine->done[b] < msccl->blocks[b].step_count)
            error = by_stuck_explain(machine);
    for (uint32_t c = 0; c < machine->connection_count && !error; c++)
        if (machine->connections[c].count > 0)
            error = by_problem_set(machine->problem, BY_EINVAL, (struct by_place){0, 0},
                                   "GPU %u sends a message to GPU %u on channel %d that is never received",
                                   machine->connections[c].from, machine->connections[c].to,
                                   machine->connections[c].channel);
    return error ? error : check_outputs(machine);
}

/* ---- the machine ---- */

static void machine_make(struct by_export_machine *machine)
{
    const struct by_msccl *msccl = machine->msccl;

    machine->values = by_values_new(msccl->gpu_count, VALUES_BYTES_MAX);
    machine->done = by_alloc(msccl->block_count, sizeof(*machine->done));
    machine->queued = by_alloc(msccl->block_count, sizeof(*machine->queued));
    machine->queue = by_alloc(msccl->block_count, sizeof(*machine->queue));
    machine->when = by_alloc(msccl->step_count, sizeof(*machine->when));
    machine->from = by_alloc(msccl->step_count, sizeof(*machine->from));
    machine->depth = by_alloc(msccl->step_count, sizeof(*machine->depth));
    machine->block_of = by_alloc(msccl->step_count, sizeof(*machine->block_of));
    machine->stamp = by_alloc(msccl->step_count, sizeof(*machine->stamp));
    machine->stack = by_alloc(msccl->step_count, sizeof(*machine->stack));
    machine->known = by_alloc(msccl->block_count, sizeof(*machine->known));
    memset(machine->from, 0xff, msccl->step_count * sizeof(*machine->from));
    for (uint32_t b = 0; b < msccl->block_count; b++) {
        machine->known[b] = by_alloc(msccl->gpus[msccl->blocks[b].gpu].block_count, sizeof(**machine->known));
        for (uint32_t s = 0; s < msccl->blocks[b].step_count; s++)
            machine->block_of[msccl->blocks[b].step_first + s] = b;
    }
    connect(machine);
}

static void machine_free(struct by_export_machine *machine)
{
    for (size_t m = 0; m < (size_t)machine->connection_count * machine->slots; m++)
        free(machine->messages[m].values);
    for (uint32_t b = 0; b < machine->msccl->block_count; b++)
        free(machine->known[b]);
    for (unsigned b = 0; b < BY_MSCCL_BUFFERS; b++)
        free(machine->base[b]);
    free(machine->messages);
    free(machine->known);
    free(machine->connections);
    free(machine->out);
    free(machine->in);
    free(machine->value);
    free(machine->writer);
    free(machine->readers);
    free(machine->readings);
    free(machine->done);
    free(machine->queued);
    free(machine->queue);
    free(machine->when);
    free(machine->from);
    free(machine->depth);
    free(machine->block_of);
    free(machine->stamp);
    free(machine->stack);
    by_values_free(machine->values);
}

int by_msccl_execute(const struct by_msccl *msccl, bool in_place, uint32_t slots, uint32_t *depth,
                     struct by_problem *problem)
{
    struct by_export_machine machine = {
        .msccl = msccl, .in_place = in_place, .slots = slots, .problem = problem};
    int error;

    BY_ASSERT(slots > 0);
    if (by_collective_is_sharded(msccl->collective))
        machine.shard = msccl->chunk_count / msccl->gpu_count;
    machine_make(&machine);
    error = lay_out(&machine);
    if (!error) {
        fill_inputs(&machine);
        error = run(&machine);
    }
    *depth = 0;
    for (uint32_t s = 0; s < msccl->step_count; s++)
        *depth = machine.depth[s] > *depth ? machine.depth[s] : *depth;
    machine_free(&machine);
    return error;
}
