/* Refinement colouring. See classes.h. */
#include "control/view/plot/classes.h"

#include "control/base/alloc.h"
#include "offload/base/prng.h"

struct classes_pair {
    uint64_t hash;
    uint32_t node;
};

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

uint32_t by_stem_bytes(const char *name)
{
    size_t bytes = strlen(name);

    while (bytes > 0 && name[bytes - 1] >= '0' && name[bytes - 1] <= '9')
        bytes--;
    return (uint32_t)(bytes ? bytes : strlen(name));
}

static int by_hash(const void *left, const void *right)
{
    const struct classes_pair *x = left, *y = right;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int by_node_number(const void *left, const void *right)
{
    const struct classes_pair *x = left, *y = right;

    return x->node < y->node ? -1 : x->node > y->node;
}

/* Numbers the distinct hashes by the first node of each; returns their count. */
static uint32_t number_classes(struct classes_pair *pairs, uint32_t node_count, uint32_t *of)
{
    struct classes_pair *firsts = by_alloc(node_count, sizeof(*firsts));
    uint32_t count = 0, *first_of = by_alloc(node_count, sizeof(*first_of));
    uint32_t *number = by_alloc(node_count, sizeof(*number));

    qsort(pairs, node_count, sizeof(*pairs), by_hash);
    for (uint32_t i = 0; i < node_count; i++) {
        if (i == 0 || pairs[i].hash != pairs[i - 1].hash)
            firsts[count++] = pairs[i];
        first_of[pairs[i].node] = firsts[count - 1].node;
    }
    qsort(firsts, count, sizeof(*firsts), by_node_number);
    for (uint32_t i = 0; i < count; i++)
        number[firsts[i].node] = i;
    for (uint32_t n = 0; n < node_count; n++)
        of[n] = number[first_of[n]];
    free(firsts);
    free(first_of);
    free(number);
    return count;
}

static void hash_kinds(const struct by_fabric *fabric, const uint32_t *levels, struct classes_pair *pairs)
{
    for (uint32_t n = 0; n < fabric->topology->node_count; n++) {
        const struct by_node *node = &fabric->topology->nodes[n];
        uint64_t hash = by_prng_mix(levels[n]);
        uint32_t stem = by_stem_bytes(node->name);

        hash = by_prng_mix(hash ^ (node->compute | node->multicast << 1 | node->aggregate << 2 |
                                   fabric->shaded[n] << 3 | (fabric->root == n) << 4 |
                                   (unsigned)by_fabric_symbol(fabric, n) << 5));
        for (uint32_t i = 0; i < stem; i++)
            hash = by_prng_mix(hash ^ (unsigned char)node->name[i]);
        pairs[n] = (struct classes_pair){hash, n};
    }
}

static void hash_neighbours(const struct by_fabric *fabric, const uint32_t *of, struct classes_pair *pairs)
{
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        pairs[n] = (struct classes_pair){by_prng_mix(of[n]), n};
    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &fabric->channels[c];
        uint64_t there = bits_of(channel->capacity[0]), back = bits_of(channel->capacity[1]);

        /* A sum does not depend on the order of the neighbours. */
        pairs[channel->a].hash += by_prng_mix(by_prng_mix(by_prng_mix(of[channel->b]) ^ there) ^ back);
        pairs[channel->b].hash += by_prng_mix(by_prng_mix(by_prng_mix(of[channel->a]) ^ back) ^ there);
    }
}

void by_classes_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t rounds_max,
                     uint32_t count_max, struct by_classes *classes)
{
    uint32_t node_count = fabric->topology->node_count, count;
    struct classes_pair *pairs = by_alloc(node_count, sizeof(*pairs));
    uint32_t *next = by_alloc(node_count, sizeof(*next));

    *classes = (struct by_classes){.of = by_alloc(node_count, sizeof(*classes->of))};
    hash_kinds(fabric, levels, pairs);
    classes->count = number_classes(pairs, node_count, classes->of);
    while (classes->rounds < rounds_max) {
        hash_neighbours(fabric, classes->of, pairs);
        count = number_classes(pairs, node_count, next);
        if (count == classes->count || count > count_max)
            break;
        memcpy(classes->of, next, node_count * sizeof(*next));
        classes->count = count;
        classes->rounds++;
    }
    free(next);
    free(pairs);
}
