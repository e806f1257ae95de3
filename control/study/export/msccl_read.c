/*
 * Reads MSCCL XML strictly: refuses, with the place in the file, everything that the runtime would
 * silently ignore or hang on. Names are those of the runtime's own reader. See msccl.h.
 */
#include "control/study/export/msccl.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/xml.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

struct by_msccl_reader {
    struct by_msccl *made;
    uint32_t gpus_seen;
    uint32_t gpu; /* the GPU whose elements are being read */
    int64_t channels;
    struct by_place place; /* of the <algo> element */
};

static const struct {
    const char *name;
    bool receives, sends, reads, writes;
} types[] = {
#define X(name, text, receives, sends, reads, writes) {text, receives, sends, reads, writes},
    BY_MSCCL_STEP_LIST(X)
#undef X
};

static const struct {
    unsigned collective;
    const char *name;
} collectives[] = {{BY_COLLECTIVE_ALLGATHER, "allgather"},
                   {BY_COLLECTIVE_REDUCE_SCATTER, "reducescatter"},
                   {BY_COLLECTIVE_ALLREDUCE, "allreduce"},
                   {BY_COLLECTIVE_BROADCAST, "broadcast"},
                   {BY_COLLECTIVE_REDUCE, "reduce"}};

const char *by_msccl_collective(unsigned collective)
{
    for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++)
        if (collectives[i].collective == collective)
            return collectives[i].name;
    return NULL;
}

bool by_msccl_receives(unsigned type)
{
    return types[type].receives;
}

bool by_msccl_sends(unsigned type)
{
    return types[type].sends;
}

bool by_msccl_reads(unsigned type)
{
    return types[type].reads;
}

bool by_msccl_writes(unsigned type)
{
    return types[type].writes;
}

const char *by_msccl_type_name(unsigned type)
{
    return types[type].name;
}

struct by_msccl_reader *by_msccl_reader_new(void)
{
    struct by_msccl_reader *reader = by_alloc(1, sizeof(*reader));

    reader->made = by_alloc(1, sizeof(*reader->made));
    return reader;
}

void by_msccl_free(struct by_msccl *msccl)
{
    if (!msccl)
        return;
    free(msccl->gpus);
    free(msccl->blocks);
    free(msccl->steps);
    free(msccl);
}

void by_msccl_reader_free(struct by_msccl_reader *reader)
{
    if (!reader)
        return;
    by_msccl_free(reader->made);
    free(reader);
}

/* Reads an integer into an int32_t. */
static int read_small(const struct by_xml_element *element, const char *name, int64_t low, int64_t high,
                      int32_t *value, struct by_problem *problem)
{
    int64_t wide = 0;
    int error = by_xml_integer(element, name, low, high, &wide, problem);

    *value = (int32_t)wide;
    return error;
}

static int read_flag(const struct by_xml_element *element, const char *name, bool fallback, bool *flag,
                     struct by_problem *problem)
{
    int64_t value = fallback;
    int error = 0;

    if (by_xml_text(element, name))
        error = by_xml_integer(element, name, 0, 1, &value, problem);
    *flag = value != 0;
    return error;
}

static int read_sizes(const struct by_xml_element *element, struct by_problem *problem)
{
    int64_t min, max;
    int error;

    if (!by_xml_text(element, "minBytes") || !by_xml_text(element, "maxBytes"))
        return by_problem_set(
            problem, BY_EINVAL, element->place,
            "<algo> has no minBytes and maxBytes: MSCCL would silently ignore the file; add them");
    error = by_xml_integer(element, "minBytes", 0, INT64_MAX, &min, problem);
    if (!error)
        error = by_xml_integer(element, "maxBytes", 0, INT64_MAX, &max, problem);
    if (!error && max < min)
        error = by_problem_set(problem, BY_EINVAL, element->place,
                               "maxBytes %lld is below minBytes %lld: no size fits", (long long)max,
                               (long long)min);
    return error;
}

static int read_algorithm(struct by_msccl_reader *reader, const struct by_xml_element *element,
                          struct by_problem *problem)
{
    struct by_msccl *made = reader->made;
    const char *collective = by_xml_text(element, "coll"), *protocol = by_xml_text(element, "proto");
    int64_t gpus = 0, chunks = 0, root = 0;
    int error = read_sizes(element, problem);

    reader->place = element->place;
    for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]) && collective; i++)
        if (strcmp(collective, collectives[i].name) == 0)
            made->collective = collectives[i].collective;
    if (!error && made->collective == 0)
        error = by_problem_set(
            problem, BY_EINVAL, element->place,
            "coll is '%.40s'; this checker supports allgather, reducescatter, allreduce, broadcast "
            "and reduce",
            collective ? collective : "(missing)");
    if (!error && (!protocol || (strcmp(protocol, "Simple") != 0 && strcmp(protocol, "LL") != 0 &&
                                 strcmp(protocol, "LL128") != 0)))
        error = by_problem_set(problem, BY_EINVAL, element->place,
                               "proto is '%.40s'; it must be Simple, LL or LL128",
                               protocol ? protocol : "(missing)");
    if (!error)
        error = by_xml_integer(element, "ngpus", 1, BY_MSCCL_GPUS_MAX, &gpus, problem);
    if (!error)
        error = by_xml_integer(element, "nchunksperloop", 1, BY_MSCCL_CHUNKS_MAX, &chunks, problem);
    if (!error)
        error = by_xml_integer(element, "nchannels", 1, BY_MSCCL_CHANNELS_MAX, &reader->channels, problem);
    if (!error && by_xml_text(element, "root"))
        error = by_xml_integer(element, "root", 0, gpus - 1, &root, problem);
    if (!error)
        error = read_flag(element, "inplace", false, &made->in_place, problem);
    if (!error)
        error = read_flag(element, "outofplace", !made->in_place, &made->out_of_place, problem);
    if (!error && !made->in_place && !made->out_of_place)
        error = by_problem_set(problem, BY_EINVAL, element->place,
                               "inplace and outofplace are both 0: MSCCL would never use the schedule");
    if (error)
        return error;
    if ((by_collective_is_sharded(made->collective)) && chunks % gpus != 0)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "nchunksperloop is %lld, not a multiple of the %lld GPUs, whose shards are "
                              "equal",
                              (long long)chunks, (long long)gpus);
    made->gpu_count = (uint32_t)gpus;
    made->chunk_count = (uint32_t)chunks;
    made->root = (uint32_t)root;
    made->gpus = by_alloc(made->gpu_count, sizeof(*made->gpus));
    return 0;
}

static int read_gpu(struct by_msccl_reader *reader, const struct by_xml_element *element,
                    struct by_problem *problem)
{
    static const char *const names[] = {"i_chunks", "o_chunks", "s_chunks"};
    struct by_msccl *made = reader->made;
    int64_t id = 0, value = 0;
    int error = by_xml_integer(element, "id", 0, (int64_t)made->gpu_count - 1, &id, problem);

    if (error)
        return error;
    if (made->gpus[id].present)
        return by_problem_set(problem, BY_EINVAL, element->place, "GPU %lld appears twice", (long long)id);
    for (unsigned b = 0; b < BY_MSCCL_BUFFERS; b++) {
        error = by_xml_integer(element, names[b], 0, BY_MSCCL_CHUNKS_MAX, &value, problem);
        if (error)
            return error;
        made->gpus[id].chunks[b] = (uint32_t)value;
    }
    made->gpus[id].present = true;
    made->gpus[id].block_first = made->block_count;
    reader->gpu = (uint32_t)id;
    reader->gpus_seen++;
    return 0;
}

static int read_block(struct by_msccl_reader *reader, const struct by_xml_element *element,
                      struct by_problem *problem)
{
    struct by_msccl *made = reader->made;
    struct by_msccl_gpu *gpu = &made->gpus[reader->gpu];
    struct by_msccl_block block = {
        .gpu = reader->gpu, .step_first = made->step_count, .line = element->place.line};
    int error = read_small(element, "id", 0, BY_MSCCL_BLOCKS_MAX - 1, &block.id, problem);

    if (!error)
        error = read_small(element, "send", -1, (int64_t)made->gpu_count - 1, &block.send, problem);
    if (!error)
        error = read_small(element, "recv", -1, (int64_t)made->gpu_count - 1, &block.receive, problem);
    if (!error)
        error = read_small(element, "chan", 0, reader->channels - 1, &block.channel, problem);
    if (error)
        return error;
    if (block.send == (int32_t)reader->gpu || block.receive == (int32_t)reader->gpu)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "thread block %d of GPU %u has its own GPU as a peer", block.id, reader->gpu);
    for (uint32_t i = 0; i < gpu->block_count; i++) {
        const struct by_msccl_block *other = &made->blocks[gpu->block_first + i];

        if (other->id == block.id)
            return by_problem_set(problem, BY_EINVAL, element->place,
                                  "thread block %d of GPU %u appears twice", block.id, reader->gpu);
        if (other->channel == block.channel && ((block.send >= 0 && other->send == block.send) ||
                                                (block.receive >= 0 && other->receive == block.receive)))
            return by_problem_set(problem, BY_EINVAL, element->place,
                                  "thread blocks %d and %d of GPU %u share a connection on channel %d; use "
                                  "another channel",
                                  other->id, block.id, reader->gpu, block.channel);
    }
    BY_GROW(made->blocks, made->block_count, made->block_room);
    made->blocks[made->block_count++] = block;
    gpu->block_count++;
    return 0;
}

static int read_buffer(const struct by_xml_element *element, const char *name, uint8_t *buffer,
                       struct by_problem *problem)
{
    const char *text = by_xml_text(element, name), *letters = "ios";

    if (!text || text[0] == '\0' || text[1] != '\0' || !strchr(letters, text[0]))
        return by_problem_set(problem, BY_EINVAL, element->place, "%s is '%.20s'; it must be i, o or s", name,
                              text ? text : "(missing)");
    *buffer = (uint8_t)(strchr(letters, text[0]) - letters);
    return 0;
}

/* Checks that a step's range lies in its buffer. */
static int check_range(const struct by_msccl_reader *reader, const struct by_xml_element *element,
                       const char *what, unsigned buffer, int32_t at, int32_t count,
                       struct by_problem *problem)
{
    static const char *const names[] = {"input", "output", "scratch"};
    uint32_t room = reader->made->gpus[reader->gpu].chunks[buffer];

    if (at >= 0 && (int64_t)at + count <= room)
        return 0;
    return by_problem_set(problem, BY_EINVAL, element->place,
                          "the step's %s is chunks %d to %d of the %s buffer of GPU %u, which has %u", what,
                          at, at + count - 1, names[buffer], reader->gpu, room);
}

static int check_step(const struct by_msccl_reader *reader, const struct by_msccl_block *block,
                      const struct by_msccl_step *step, const struct by_xml_element *element,
                      struct by_problem *problem)
{
    int error = 0;

    if (types[step->type].sends && block->send < 0)
        error = by_problem_set(problem, BY_EINVAL, element->place,
                               "a step sends in thread block %d of GPU %u, which has no peer to send to",
                               block->id, reader->gpu);
    if (!error && types[step->type].receives && block->receive < 0)
        error =
            by_problem_set(problem, BY_EINVAL, element->place,
                           "a step receives in thread block %d of GPU %u, which has no peer to receive from",
                           block->id, reader->gpu);
    if (!error && types[step->type].reads)
        error = check_range(reader, element, "source", step->source, step->source_at, step->count, problem);
    if (!error && types[step->type].writes)
        error = check_range(reader, element, "target", step->target, step->target_at, step->count, problem);
    return error;
}

static int read_step(struct by_msccl_reader *reader, const struct by_xml_element *element,
                     struct by_problem *problem)
{
    struct by_msccl *made = reader->made;
    struct by_msccl_block *block = &made->blocks[made->block_count - 1];
    struct by_msccl_step step = {.type = BY_MSCCL_TYPES, .line = element->place.line};
    const char *type = by_xml_text(element, "type");
    int32_t number = 0;
    int error;

    for (unsigned i = 0; i < BY_MSCCL_TYPES && type; i++)
        if (strcmp(type, types[i].name) == 0)
            step.type = (uint8_t)i;
    if (step.type == BY_MSCCL_TYPES)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "type is '%.20s'; it must be s, r, rcs, rrs, rrc, rrcs, cpy, re or nop",
                              type ? type : "(missing)");
    if (made->step_count >= BY_MSCCL_ALL_STEPS_MAX)
        return by_problem_set(problem, BY_ELIMIT, element->place, "the schedule has more than %u steps",
                              BY_MSCCL_ALL_STEPS_MAX);
    error = read_small(element, "s", 0, BY_MSCCL_STEPS_MAX - 1, &number, problem);
    if (!error && number != (int32_t)block->step_count)
        error =
            by_problem_set(problem, BY_EINVAL, element->place,
                           "step %d follows %u steps of its thread block; steps are numbered from 0 without "
                           "gaps",
                           number, block->step_count);
    if (!error)
        error = read_buffer(element, "srcbuf", &step.source, problem);
    if (!error)
        error = read_buffer(element, "dstbuf", &step.target, problem);
    if (!error)
        error = read_small(element, "srcoff", -1, BY_MSCCL_CHUNKS_MAX, &step.source_at, problem);
    if (!error)
        error = read_small(element, "dstoff", -1, BY_MSCCL_CHUNKS_MAX, &step.target_at, problem);
    if (!error)
        error = read_small(element, "cnt", step.type == BY_MSCCL_NOP ? 0 : 1, BY_MSCCL_COUNT_MAX, &step.count,
                           problem);
    if (!error)
        error = read_small(element, "depid", -1, BY_MSCCL_BLOCKS_MAX - 1, &step.after_block, problem);
    if (!error)
        error = read_small(element, "deps", -1, BY_MSCCL_STEPS_MAX - 1, &step.after_step, problem);
    if (!error)
        error = read_flag(element, "hasdep", false, &step.awaited, problem);
    if (!error)
        error = check_step(reader, block, &step, element, problem);
    if (error)
        return error;
    BY_GROW(made->steps, made->step_count, made->step_room);
    made->steps[made->step_count++] = step;
    block->step_count++;
    return 0;
}

int by_msccl_reader_start(void *context, const struct by_xml_element *element, struct by_problem *problem)
{
    static const char *const names[] = {"algo", "gpu", "tb", "step"};
    struct by_msccl_reader *reader = context;

    if (element->depth > 3 || strcmp(element->name, names[element->depth]) != 0)
        return by_problem_set(
            problem, BY_EINVAL, element->place,
            "<%.40s> does not belong here; a schedule is <algo> with <gpu> with <tb> with <step>",
            element->name);
    switch (element->depth) {
    case 0:
        return read_algorithm(reader, element, problem);
    case 1:
        return read_gpu(reader, element, problem);
    case 2:
        return read_block(reader, element, problem);
    default:
        return read_step(reader, element, problem);
    }
}

static int compare_blocks(const void *left, const void *right)
{
    const struct by_msccl_block *a = left, *b = right;

    return a->id < b->id ? -1 : a->id > b->id;
}

/* Checks that the step for which a step waits exists and signals. */
static int check_waits(const struct by_msccl *made, const struct by_msccl_gpu *gpu,
                       const struct by_msccl_block *block, struct by_problem *problem)
{
    for (uint32_t s = 0; s < block->step_count; s++) {
        const struct by_msccl_step *step = &made->steps[block->step_first + s];
        const struct by_msccl_block *other;

        if (step->after_block < 0)
            continue;
        other = (uint32_t)step->after_block < gpu->block_count
                    ? &made->blocks[gpu->block_first + (uint32_t)step->after_block]
                    : NULL;
        if (!other || step->after_step < 0 || (uint32_t)step->after_step >= other->step_count)
            return by_problem_set(
                problem, BY_EINVAL, (struct by_place){step->line, 1},
                "step %u of thread block %d of GPU %u waits for step %d of thread block %d, which "
                "does not exist",
                s, block->id, block->gpu, step->after_step, step->after_block);
        if (!made->steps[other->step_first + (uint32_t)step->after_step].awaited)
            return by_problem_set(
                problem, BY_EINVAL, (struct by_place){step->line, 1},
                "step %u of thread block %d of GPU %u waits for step %d of thread block %d, which "
                "does not signal; give it hasdep=\"1\"",
                s, block->id, block->gpu, step->after_step, step->after_block);
    }
    return 0;
}

int by_msccl_reader_finish(struct by_msccl_reader *reader, struct by_msccl **msccl,
                           struct by_problem *problem)
{
    struct by_msccl *made = reader->made;

    if (reader->gpus_seen != made->gpu_count)
        return by_problem_set(problem, BY_EINVAL, reader->place, "ngpus is %u, but %u GPUs follow",
                              made->gpu_count, reader->gpus_seen);
    for (uint32_t g = 0; g < made->gpu_count; g++) {
        const struct by_msccl_gpu *gpu = &made->gpus[g];

        if (gpu->block_count > 1)
            qsort(made->blocks + gpu->block_first, gpu->block_count, sizeof(*made->blocks), compare_blocks);
        for (uint32_t b = 0; b < gpu->block_count; b++)
            if (made->blocks[gpu->block_first + b].id != (int32_t)b)
                return by_problem_set(
                    problem, BY_EINVAL, (struct by_place){made->blocks[gpu->block_first + b].line, 1},
                    "GPU %u has no thread block %u; they are numbered from 0 without gaps", g, b);
        for (uint32_t b = 0; b < gpu->block_count; b++) {
            int error = check_waits(made, gpu, &made->blocks[gpu->block_first + b], problem);

            if (error)
                return error;
        }
    }
    *msccl = made;
    reader->made = NULL;
    return 0;
}
