/*
 * Writes MSCCL XML. See export.h; the reader that checks the result is msccl_read.c.
 *
 * Each edge of a tree becomes transfers of some chunks from one GPU to another: a send step in a
 * thread block of the sender, and a receive step in a thread block of the receiver. A connection
 * (sender, receiver, channel) has one thread block at each end.
 *
 * The steps of a thread block are sorted by level for the whole schedule; a level comes before all
 * levels that depend on it. So no step waits for one of a later level, and no circle of waits is
 * possible, even without buffers. Dependences between thread blocks of a GPU are written
 * explicitly, also those of a write on an earlier read, so the same schedule also works in place.
 */
#include <stdio.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/export/chunks.h"
#include "control/study/export/export.h"
#include "control/study/export/msccl.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

static const struct by_place nowhere = {0, 0};

#define NONE UINT32_MAX

/* One end of a transfer, or a local copy: a step of a thread block. */
struct msccl_step {
    const char *type;
    char source, target; /* buffers: i, o, s */
    int64_t source_at, target_at, count;
    uint32_t after; /* the step that must complete first, or NONE */
    uint32_t block; /* thread block, assigned last */
    uint32_t number;
    bool awaited;
};

/* Some chunks on one edge of one tree. */
struct transfer {
    uint32_t level;
    uint32_t order;         /* order of creation, which breaks ties */
    uint32_t from, to;      /* ranks */
    uint32_t send, receive; /* steps */
};

struct msccl_block {
    uint32_t rank;
    int64_t send, receive; /* peer GPUs, or -1 */
    uint32_t channel;
    uint32_t id;
    uint32_t count, room;
    uint32_t *steps;
};

struct msccl_program {
    const struct by_plan *plan;
    const struct by_chunks *chunks;
    uint32_t step_count, step_room;
    struct msccl_step *steps;
    uint32_t transfer_count, transfer_room;
    struct transfer *transfers;
    uint32_t block_count, block_room;
    struct msccl_block *blocks;
    uint32_t *local;  /* by rank: the thread block of local copies, or NONE */
    int64_t *scratch; /* by rank: number of scratch chunks in use */
    uint32_t *block_of_rank_count;
    uint32_t channel_count;
    uint32_t level_max; /* number of levels of the way up */
    uint32_t *depth;    /* by node, in the current tree */
    uint32_t *ready;    /* by rank: the step after which the current value is available, or NONE */
    uint32_t *sent_up;  /* by rank: the step that sent the partial sum up, or NONE */
    int64_t *partial;   /* by rank: position of the partial sum in scratch */
};

static uint32_t add_step(struct msccl_program *program, struct msccl_step step)
{
    BY_GROW(program->steps, program->step_count, program->step_room);
    program->steps[program->step_count] = step;
    if (step.after != NONE)
        program->steps[step.after].awaited = true;
    return program->step_count++;
}

static void add_transfer(struct msccl_program *program, uint32_t level, uint32_t from, uint32_t to,
                         struct msccl_step send, struct msccl_step receive)
{
    struct transfer transfer = {level, program->transfer_count, from, to, 0, 0};

    transfer.send = add_step(program, send);
    transfer.receive = add_step(program, receive);
    BY_GROW(program->transfers, program->transfer_count, program->transfer_room);
    program->transfers[program->transfer_count++] = transfer;
}

static uint32_t new_block(struct msccl_program *program, uint32_t rank, int64_t send, int64_t receive,
                          uint32_t channel)
{
    BY_GROW(program->blocks, program->block_count, program->block_room);
    program->blocks[program->block_count] = (struct msccl_block){.rank = rank,
                                                                 .send = send,
                                                                 .receive = receive,
                                                                 .channel = channel,
                                                                 .id = program->block_of_rank_count[rank]++};
    return program->block_count++;
}

static void put_step(struct msccl_program *program, uint32_t block, uint32_t step)
{
    struct msccl_block *where = &program->blocks[block];

    BY_ASSERT(block < program->block_count && program->blocks);
    BY_GROW(where->steps, where->count, where->room);
    program->steps[step].block = block;
    program->steps[step].number = where->count;
    where->steps[where->count++] = step;
}

/* Adds a copy from input to output at one GPU. */
static void add_copy(struct msccl_program *program, uint32_t rank, int64_t from, int64_t to, int64_t count)
{
    uint32_t step = add_step(program, (struct msccl_step){.type = "cpy",
                                                          .source = 'i',
                                                          .target = 'o',
                                                          .source_at = from,
                                                          .target_at = to,
                                                          .count = count,
                                                          .after = NONE});

    if (program->local[rank] == NONE)
        program->local[rank] = new_block(program, rank, -1, -1, 0);
    put_step(program, program->local[rank], step);
}

/* Some chunks of a tree, no more than one step can move. */
struct msccl_part {
    const struct by_tree *tree;
    int64_t first, count;
};

static uint32_t rank_at(const struct msccl_program *program, uint32_t node)
{
    return program->chunks->rank_of[node];
}

static void find_depths(const struct msccl_program *program, const struct by_tree *tree)
{
    program->depth[tree->root] = 0;
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_plan_edge(program->plan, tree, e);

        program->depth[path.nodes[path.node_count - 1]] = program->depth[path.nodes[0]] + 1;
    }
}

/* Returns the position of the result's chunks at the root. */
static int64_t at_root(const struct msccl_program *program, const struct msccl_part *part)
{
    return program->plan->collective == BY_COLLECTIVE_REDUCE_SCATTER
               ? part->first - rank_at(program, part->tree->root) * program->chunks->each
               : part->first;
}

/*
 * Adds the transfers of partial sums towards the root. The partial sums of allreduce, and those at
 * the root, go to the output; others go to scratch.
 */
static void add_up(struct msccl_program *program, const struct msccl_part *part)
{
    const struct by_tree *tree = part->tree;
    bool allreduce = program->plan->collective == BY_COLLECTIVE_ALLREDUCE;

    find_depths(program, tree);
    for (uint32_t r = 0; r < program->chunks->rank_count; r++) {
        program->ready[r] = program->sent_up[r] = NONE;
        program->partial[r] = -1;
    }
    /* parents precede children in the tree, so the reverse order visits children first */
    for (uint32_t e = tree->edge_count; e-- > 0;) {
        struct by_path path = by_plan_edge(program->plan, tree, e);
        uint32_t child = rank_at(program, path.nodes[path.node_count - 1]);
        uint32_t parent = rank_at(program, path.nodes[0]);
        bool to_output = allreduce || path.nodes[0] == tree->root;
        struct msccl_step send = {.type = "s", .source = 'i', .source_at = part->first, .count = part->count};
        struct msccl_step receive = {
            .type = "rrc", .source = 'i', .source_at = part->first, .count = part->count};

        if (!to_output && program->partial[parent] < 0) {
            program->partial[parent] = program->scratch[parent];
            program->scratch[parent] += part->count;
        }
        if (program->ready[child] != NONE) {
            send.source = allreduce ? 'o' : 's';
            send.source_at = allreduce ? part->first : program->partial[child];
        }
        send.after = program->ready[child];
        receive.after = program->ready[parent];
        receive.target = to_output ? 'o' : 's';
        receive.target_at = allreduce   ? part->first
                            : to_output ? at_root(program, part)
                                        : program->partial[parent];
        send.target = receive.target;
        send.target_at = receive.target_at;
        if (program->ready[parent] != NONE) {
            receive.source = receive.target;
            receive.source_at = receive.target_at;
        }
        add_transfer(program, program->level_max - program->depth[path.nodes[path.node_count - 1]], child,
                     parent, send, receive);
        program->sent_up[child] = program->step_count - 2;
        program->ready[parent] = program->step_count - 1;
    }
}

/* Adds the transfers of the root's data or sum to all nodes. `summed`: add_up ran before. */
static void add_down(struct msccl_program *program, const struct msccl_part *part, bool summed)
{
    const struct by_tree *tree = part->tree;
    uint32_t root = rank_at(program, tree->root);
    bool shared = program->plan->collective == BY_COLLECTIVE_ALLGATHER;
    int64_t input = shared ? part->first - root * program->chunks->each : part->first;

    find_depths(program, tree);
    if (!summed) {
        for (uint32_t r = 0; r < program->chunks->rank_count; r++)
            program->ready[r] = program->sent_up[r] = NONE;
        add_copy(program, root, input, part->first, part->count);
    }
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_plan_edge(program->plan, tree, e);
        uint32_t child = rank_at(program, path.nodes[path.node_count - 1]);
        uint32_t parent = rank_at(program, path.nodes[0]);
        bool from_input = parent == root && !summed;
        struct msccl_step send = {.type = "s",
                                  .source = from_input ? 'i' : 'o',
                                  .target = 'o',
                                  .source_at = from_input ? input : part->first,
                                  .target_at = part->first,
                                  .count = part->count,
                                  .after = program->ready[parent]};
        struct msccl_step receive = send;

        receive.type = "r";
        receive.after = program->sent_up[child];
        add_transfer(program, program->level_max + program->depth[path.nodes[path.node_count - 1]], parent,
                     child, send, receive);
        program->ready[child] = program->step_count - 1;
    }
}

static uint32_t max_depth(struct msccl_program *program)
{
    uint32_t deepest = 0;

    for (uint32_t t = 0; t < program->plan->tree_count; t++) {
        const struct by_tree *tree = &program->plan->trees[t];

        find_depths(program, tree);
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            struct by_path path = by_plan_edge(program->plan, tree, e);
            uint32_t depth = program->depth[path.nodes[path.node_count - 1]];

            deepest = depth > deepest ? depth : deepest;
        }
    }
    return deepest;
}

static void add_trees(struct msccl_program *program)
{
    const struct by_plan *plan = program->plan;

    program->level_max = max_depth(program);
    for (uint32_t t = 0; t < plan->tree_count; t++) {
        bool pair = t + 1 < plan->tree_count && by_chunks_second(plan, t + 1);
        const struct by_tree *up = plan->trees[t].use != BY_TREE_DOWN ? &plan->trees[t] : NULL;
        const struct by_tree *down = pair                               ? &plan->trees[t + 1]
                                     : plan->trees[t].use != BY_TREE_UP ? &plan->trees[t]
                                                                        : NULL;
        int64_t first = program->chunks->first[t], end = first + program->chunks->count[t];

        for (int64_t at = first; at < end; at += BY_MSCCL_COUNT_MAX) {
            struct msccl_part part = {up, at, end - at < BY_MSCCL_COUNT_MAX ? end - at : BY_MSCCL_COUNT_MAX};

            if (up)
                add_up(program, &part);
            part.tree = down;
            if (down)
                add_down(program, &part, up != NULL);
        }
        t += pair;
    }
}

/* ---- connections ---- */

static int compare_transfers(const void *left, const void *right)
{
    const struct transfer *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Finds a channel on which both ends have a free thread block and which has no such connection yet.
 */
static int find_channel(const uint8_t *sends, const uint8_t *receives, uint32_t from, uint32_t to,
                        uint32_t at_least, uint32_t *channel, struct by_problem *problem)
{
    for (*channel = at_least; *channel < BY_MSCCL_CHANNELS_MAX; (*channel)++)
        if (sends[(size_t)from * BY_MSCCL_CHANNELS_MAX + *channel] < BY_MSCCL_PEERS_MAX &&
            receives[(size_t)to * BY_MSCCL_CHANNELS_MAX + *channel] < BY_MSCCL_PEERS_MAX)
            return 0;
    return by_problem_set(
        problem, BY_ELIMIT, nowhere,
        "GPUs %u and %u need more than MSCCL's %u channels of %u peers and %u steps; plan with a "
        "smaller k (--fixed-k)",
        from, to, BY_MSCCL_CHANNELS_MAX, BY_MSCCL_PEERS_MAX, BY_MSCCL_STEPS_MAX);
}

static int connect(struct msccl_program *program, struct by_problem *problem)
{
    size_t cells = (size_t)program->chunks->rank_count * BY_MSCCL_CHANNELS_MAX;
    uint8_t *sends = by_alloc(cells, 1), *receives = by_alloc(cells, 1);
    uint32_t sender = NONE, receiver = NONE, channel = 0;
    int error = 0;

    if (program->transfer_count > 1)
        qsort(program->transfers, program->transfer_count, sizeof(*program->transfers), compare_transfers);
    for (uint32_t i = 0; i < program->transfer_count; i++) {
        const struct transfer *transfer = &program->transfers[i];
        bool same = i > 0 && transfer[-1].from == transfer->from && transfer[-1].to == transfer->to;

        if (!same || program->blocks[sender].count == BY_MSCCL_STEPS_MAX) {
            error = find_channel(sends, receives, transfer->from, transfer->to, same ? channel + 1 : 0,
                                 &channel, problem);
            if (error)
                break;
            sends[(size_t)transfer->from * BY_MSCCL_CHANNELS_MAX + channel]++;
            receives[(size_t)transfer->to * BY_MSCCL_CHANNELS_MAX + channel]++;
            sender = new_block(program, transfer->from, transfer->to, -1, channel);
            receiver = new_block(program, transfer->to, -1, transfer->from, channel);
            if (channel >= program->channel_count)
                program->channel_count = channel + 1;
        }
        put_step(program, sender, transfer->send);
        put_step(program, receiver, transfer->receive);
    }
    free(sends);
    free(receives);
    return error;
}

static int check_limits(const struct msccl_program *program, struct by_problem *problem)
{
    if (program->chunks->total > BY_MSCCL_CHUNKS_MAX)
        return by_problem_set(problem, BY_ELIMIT, nowhere,
                              "the schedule has %lld chunks; MSCCL's limit is %u: plan with a smaller k "
                              "(--fixed-k), or round the bandwidths",
                              (long long)program->chunks->total, BY_MSCCL_CHUNKS_MAX);
    for (uint32_t r = 0; r < program->chunks->rank_count; r++) {
        if (program->block_of_rank_count[r] > BY_MSCCL_BLOCKS_MAX)
            return by_problem_set(problem, BY_ELIMIT, nowhere,
                                  "GPU %u needs %u thread blocks; MSCCL's limit is %u: plan with a smaller k "
                                  "(--fixed-k)",
                                  r, program->block_of_rank_count[r], BY_MSCCL_BLOCKS_MAX);
        if (program->local[r] != NONE && program->blocks[program->local[r]].count > BY_MSCCL_STEPS_MAX)
            return by_problem_set(problem, BY_ELIMIT, nowhere,
                                  "GPU %u copies in %u steps; MSCCL's limit is %u: plan with a smaller k "
                                  "(--fixed-k)",
                                  r, program->blocks[program->local[r]].count, BY_MSCCL_STEPS_MAX);
    }
    return 0;
}

/* ---- writing ---- */

static void write_block(const struct msccl_program *program, const struct msccl_block *block, FILE *file)
{
    fprintf(file, "    <tb id=\"%u\" send=\"%lld\" recv=\"%lld\" chan=\"%u\">\n", block->id,
            (long long)block->send, (long long)block->receive, block->channel);
    for (uint32_t i = 0; i < block->count; i++) {
        const struct msccl_step *step = &program->steps[block->steps[i]];
        const struct msccl_step *after = step->after == NONE ? NULL : &program->steps[step->after];

        fprintf(
            file,
            "      <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%lld\" dstbuf=\"%c\" dstoff=\"%lld\" "
            "cnt=\"%lld\" ",
            i, step->type, step->source, (long long)step->source_at, step->target, (long long)step->target_at,
            (long long)step->count);
        if (after)
            fprintf(file, "depid=\"%u\" deps=\"%u\" ", program->blocks[after->block].id, after->number);
        else
            fputs("depid=\"-1\" deps=\"-1\" ", file);
        fprintf(file, "hasdep=\"%d\"/>\n", step->awaited);
    }
    fputs("    </tb>\n", file);
}

/* Computes the sizes of a GPU's input and output in chunks. */
static void find_buffers(const struct msccl_program *program, uint32_t rank, int64_t *input, int64_t *output)
{
    const struct by_chunks *chunks = program->chunks;
    bool is_root = program->plan->root >= 0 && chunks->rank_of[program->plan->root] == rank;

    *input = *output = chunks->total;
    if (program->plan->collective == BY_COLLECTIVE_ALLGATHER)
        *input = chunks->each;
    else if (program->plan->collective == BY_COLLECTIVE_REDUCE_SCATTER)
        *output = chunks->each;
    else if (program->plan->collective == BY_COLLECTIVE_BROADCAST && !is_root)
        *input = 0;
    else if (program->plan->collective == BY_COLLECTIVE_REDUCE && !is_root)
        *output = 0;
}

static void write_program(const struct msccl_program *program, const struct by_export_options *options,
                          FILE *file)
{
    const struct by_plan *plan = program->plan;

    fprintf(file,
            "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%u\" nchunksperloop=\"%lld\" ngpus=\"%u\" "
            "coll=\"%s\" inplace=\"1\" outofplace=\"1\" minBytes=\"%lld\" maxBytes=\"%lld\"",
            options->name, program->channel_count > 0 ? program->channel_count : 1,
            (long long)program->chunks->total, program->chunks->rank_count,
            by_msccl_collective(plan->collective), (long long)options->min_bytes,
            (long long)options->max_bytes);
    if (plan->root >= 0)
        fprintf(file, " root=\"%u\"", program->chunks->rank_of[plan->root]);
    fputs(">\n", file);
    for (uint32_t rank = 0; rank < program->chunks->rank_count; rank++) {
        int64_t input, output;

        find_buffers(program, rank, &input, &output);
        fprintf(file, "  <gpu id=\"%u\" i_chunks=\"%lld\" o_chunks=\"%lld\" s_chunks=\"%lld\">\n", rank,
                (long long)input, (long long)output, (long long)program->scratch[rank]);
        for (uint32_t b = 0; b < program->block_count; b++)
            if (program->blocks[b].rank == rank)
                write_block(program, &program->blocks[b], file);
        fputs("  </gpu>\n", file);
    }
    fputs("</algo>\n", file);
}

static void program_make(struct msccl_program *program, const struct by_plan *plan,
                         const struct by_chunks *chunks, uint32_t node_count)
{
    uint32_t n = chunks->rank_count;

    *program = (struct msccl_program){.plan = plan, .chunks = chunks};
    program->local = by_alloc(n, sizeof(uint32_t));
    program->scratch = by_alloc(n, sizeof(int64_t));
    program->block_of_rank_count = by_alloc(n, sizeof(uint32_t));
    program->depth = by_alloc(node_count, sizeof(uint32_t));
    program->ready = by_alloc(n, sizeof(uint32_t));
    program->sent_up = by_alloc(n, sizeof(uint32_t));
    program->partial = by_alloc(n, sizeof(int64_t));
    for (uint32_t r = 0; r < n; r++)
        program->local[r] = NONE;
}

static void program_free(struct msccl_program *program)
{
    for (uint32_t b = 0; b < program->block_count; b++)
        free(program->blocks[b].steps);
    free(program->blocks);
    free(program->steps);
    free(program->transfers);
    free(program->local);
    free(program->scratch);
    free(program->block_of_rank_count);
    free(program->depth);
    free(program->ready);
    free(program->sent_up);
    free(program->partial);
}

int by_export_msccl(const struct by_plan *plan, const struct by_topology *topology,
                    const struct by_export_options *options, void *stream, struct by_problem *problem)
{
    FILE *file = stream;
    struct by_chunks chunks;
    struct msccl_program program;
    int error;

    if (!by_msccl_collective(plan->collective))
        return by_problem_set(
            problem, BY_EUNSUPPORTED, nowhere,
            "MSCCL has no barrier; export allreduce, allgather, reduce-scatter, broadcast or "
            "reduce");
    error = by_chunks_make(&chunks, plan, topology, problem);
    if (!error && chunks.total > BY_MSCCL_CHUNKS_MAX) {
        program = (struct msccl_program){.chunks = &chunks};
        error = check_limits(&program, problem);
    }
    if (!error) {
        program_make(&program, plan, &chunks, topology->node_count);
        add_trees(&program);
        error = connect(&program, problem);
        if (!error)
            error = check_limits(&program, problem);
        if (!error) {
            write_program(&program, options, file);
            error = fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
        }
        program_free(&program);
    }
    by_chunks_free(&chunks);
    return error;
}
