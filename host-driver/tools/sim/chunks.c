/* Maps chunks to bytes of a call; see chunks.h. */
#include "host-driver/tools/sim/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define BIT(collective) (1u << (collective))

int chunks_open(struct chunks *chunks, const uint8_t *image)
{
    struct by_image_header header;
    struct by_image_job job;

    memset(chunks, 0, sizeof(*chunks));
    by_image_header(image, &header);
    by_image_job(image, 0, &job);
    chunks->rank_count = job.rank_count;
    chunks->trees = calloc(header.count[BY_SECTION_LEAF] + 1u, sizeof(*chunks->trees));
    chunks->tree_of = malloc(BY_TREES_MAX * sizeof(uint32_t));
    if (chunks->trees == NULL || chunks->tree_of == NULL)
        return BY_ENOMEM;
    memset(chunks->tree_of, 0xff, BY_TREES_MAX * sizeof(uint32_t));
    for (uint32_t l = 0; l < header.count[BY_SECTION_LEAF]; l++) {
        struct by_image_leaf leaf;

        by_image_leaf(image, l, &leaf);
        if (leaf.job != job.job)
            continue;
        chunks->tree_of[leaf.tree] = chunks->tree_count;
        chunks->trees[chunks->tree_count++].leaf = leaf;
    }
    return 0;
}

void chunks_close(struct chunks *chunks)
{
    for (uint32_t t = 0; t < chunks->tree_count; t++)
        free(chunks->trees[t].runs);
    free(chunks->trees);
    free(chunks->tree_of);
}

/* Returns the tree on which every call has a chunk. */
static struct chunk_tree *first_tree(const struct chunks *chunks)
{
    for (uint32_t t = 0; t < chunks->tree_count; t++)
        if (chunks->trees[t].leaf.collectives & BIT(BY_COLLECTIVE_ALLREDUCE))
            return &chunks->trees[t];
    return chunks->trees;
}

/* Advances a tree, and the other tree of its pair. */
static void advance(struct chunk_tree *tree, uint32_t count)
{
    tree->next_seq += count;
    if (tree->leaf.half == BY_HALF_UP)
        tree[1].next_seq += count;
}

void chunks_add_session(struct chunks *chunks)
{
    struct chunk_tree *first = first_tree(chunks);

    advance(first, (4 * chunks->rank_count + first->leaf.payload_max - 1) / first->leaf.payload_max);
    for (uint32_t t = 0; t < chunks->tree_count; t++)
        if (chunks->trees[t].leaf.half != BY_HALF_DOWN)
            advance(&chunks->trees[t], 1);
}

/* Whether the tree serves a shard or a root, by pass: trees planned for the collective and this
 * rank, else for any rank, else trees of allreduce. */
static int serves(const struct by_image_leaf *leaf, unsigned collective, uint32_t owner, int pass)
{
    if (leaf->half == BY_HALF_DOWN)
        return 0; /* carries what its tree up carries */
    switch (pass) {
    case 0:
        return leaf->collectives & BIT(collective) && leaf->owner == owner;
    case 1:
        return leaf->collectives & BIT(collective) && leaf->owner == BY_RANK_NONE;
    default:
        return leaf->collectives & BIT(BY_COLLECTIVE_ALLREDUCE);
    }
}

static uint64_t boundary(uint64_t total, uint64_t before, uint64_t share_total)
{
    uint64_t even = ((uint64_t)((unsigned __int128)total * before / share_total) + 63) & ~UINT64_C(63);

    if (even == 0 && before > 0)
        even = 64;
    return even < total ? even : total;
}

static int add_run(struct chunks *chunks, struct chunk_tree *tree, uint32_t shard, uint64_t start,
                   uint64_t end)
{
    uint32_t payload = tree->leaf.payload_max, seq = tree->next_seq;
    struct chunk_run *run;

    advance(tree, (uint32_t)((end - start + payload - 1) / payload));
    tree += tree->leaf.half == BY_HALF_UP; /* values arrive on the tree down */
    if (tree->run_count == tree->run_room) {
        uint32_t room = tree->run_room > 0 ? 2 * tree->run_room : 1;

        run = realloc(tree->runs, room * sizeof(*run));
        if (run == NULL)
            return BY_ENOMEM;
        tree->runs = run;
        tree->run_room = room;
    }
    run = &tree->runs[tree->run_count++];
    *run = (struct chunk_run){.seq = seq,
                              .count = (uint32_t)((end - start + payload - 1) / payload),
                              .shard = shard,
                              .start = start,
                              .end = end,
                              .index = chunks->chunk_count};
    chunks->chunk_count += run->count;
    return 0;
}

static int add_shard(struct chunks *chunks, unsigned collective, uint32_t owner, uint32_t shard,
                     uint64_t bytes)
{
    uint64_t total = 0, before = 0;
    uint32_t last = UINT32_MAX;
    int pass = by_collective_way(collective) == BY_DATA_BOTH ? 1 : 0, error = 0;

    for (; pass < 3 && last == UINT32_MAX; pass++)
        for (uint32_t t = 0; t < chunks->tree_count; t++)
            if (serves(&chunks->trees[t].leaf, collective, owner, pass)) {
                total += chunks->trees[t].leaf.share;
                last = t;
            }
    if (last == UINT32_MAX)
        return BY_EUNSUPPORTED;
    pass--;
    for (uint32_t t = 0; t <= last && error == 0; t++) {
        struct chunk_tree *tree = &chunks->trees[t];
        uint64_t start, end;

        if (!serves(&tree->leaf, collective, owner, pass))
            continue;
        start = boundary(bytes, before, total);
        end = t == last ? bytes : boundary(bytes, before + tree->leaf.share, total);
        if (collective == BY_COLLECTIVE_BARRIER)
            advance(tree, before == 0);
        else if (end > start)
            error = add_run(chunks, tree, shard, start, end);
        before += tree->leaf.share;
    }
    return error;
}

int chunks_add_call(struct chunks *chunks, unsigned collective, uint32_t root, uint64_t shard_bytes)
{
    int sharded = by_collective_is_sharded(collective);
    struct chunk_tree *first = first_tree(chunks);
    uint32_t seq = first->next_seq;
    int error = 0;

    for (uint32_t t = 0; t < chunks->tree_count; t++)
        chunks->trees[t].run_count = 0;
    chunks->chunk_count = 0;
    for (uint32_t s = 0; s < (sharded ? chunks->rank_count : 1) && error == 0; s++)
        error = add_shard(chunks, collective, sharded ? s : root, sharded ? s : 0, shard_bytes);
    /* a chunk without data, since every call has a chunk on this tree */
    if (error == 0 && first->next_seq == seq)
        advance(first, 1);
    return error;
}

int chunks_find(const struct chunks *chunks, uint32_t tree_number, uint32_t seq, struct chunks_chunk *chunk)
{
    const struct chunk_tree *tree;
    const struct chunk_run *run;
    uint32_t low = 0, high, payload;

    if (tree_number >= BY_TREES_MAX || chunks->tree_of[tree_number] == UINT32_MAX)
        return 0;
    tree = &chunks->trees[chunks->tree_of[tree_number]];
    payload = tree->leaf.payload_max;
    high = tree->run_count;
    while (low < high) { /* finds the last run that starts at or before seq */
        uint32_t middle = low + (high - low) / 2;

        if ((int32_t)(seq - tree->runs[middle].seq) >= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    run = &tree->runs[low - 1];
    if (seq - run->seq >= run->count)
        return 0;
    chunk->shard = run->shard;
    chunk->offset = run->start + (uint64_t)(seq - run->seq) * payload;
    chunk->bytes = (uint32_t)(run->end - chunk->offset < payload ? run->end - chunk->offset : payload);
    chunk->index = run->index + (seq - run->seq);
    return 1;
}
