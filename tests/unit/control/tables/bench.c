/* Fabrics, plans and images for the tests of lowering. Neighbours: bench.h documents the functions;
 * walk.c follows the tables. */
#include "tests/unit/control/tables/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"

struct by_topology *bench_topology(const char *nodes, const char *links)
{
    char json[131072], word[64];
    size_t used =
        (size_t)snprintf(json, sizeof(json), "{\"name\": \"bench\", \"unit\": \"GB/s\", \"nodes\": [");
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};
    int length;

    for (int first = 1; sscanf(nodes, " %63s%n", word, &length) == 1; nodes += length, first = 0) {
        char *star = strchr(word, '*');
        if (star != NULL)
            *star = 0;
        used += (size_t)snprintf(json + used, sizeof(json) - used, "%s{\"name\": \"%s\", \"kind\": \"%s\"%s}",
                                 first ? "" : ", ", word, strchr(word, 'h') ? "compute" : "switch",
                                 star ? ", \"multicast\": true, \"aggregate\": true" : "");
    }
    used += (size_t)snprintf(json + used, sizeof(json) - used, "], \"links\": [");
    for (int first = 1; sscanf(links, " %63s%n", word, &length) == 1; links += length, first = 0) {
        char *sign = strpbrk(word, "->"), way = *sign;
        *sign = 0;
        used += (size_t)snprintf(json + used, sizeof(json) - used,
                                 way == '-' ? "%s{\"between\": [\"%s\", \"%s\"], \"bandwidth\": 10}"
                                            : "%s{\"from\": \"%s\", \"to\": \"%s\", \"bandwidth\": 10}",
                                 first ? "" : ", ", word, sign + 1);
    }
    used += (size_t)snprintf(json + used, sizeof(json) - used, "]}");
    if (by_topology_parse(json, used, &topology, &problem) != 0)
        fail_msg("%s: %s", json, problem.text);
    return topology;
}

static uint32_t node_of(const struct by_topology *topology, const char *name)
{
    int64_t node = by_topology_find(topology, name);

    if (node < 0)
        fail_msg("no node '%s'", name);
    return (uint32_t)node;
}

/* Adds the tree to the plan, whose arrays have room. */
static void read_tree(const struct by_topology *topology, const char *text, struct by_plan *plan)
{
    struct by_tree *tree = &plan->trees[plan->tree_count++];
    char word[256];
    long num, den = 1;
    int length;

    tree->use = BY_TREE_BOTH;
    if (sscanf(text, " %ld/%ld%n", &num, &den, &length) != 2 && sscanf(text, " %ld%n", &num, &length) != 1)
        fail_msg("no weight in '%s'", text);
    tree->weight = (struct by_fraction){num, den};
    text += length;
    if (sscanf(text, " %255[a-z] %n", word, &length) == 1 &&
        (strcmp(word, "up") == 0 || strcmp(word, "down") == 0)) {
        tree->use = word[0] == 'u' ? BY_TREE_UP : BY_TREE_DOWN;
        text += length;
    }
    if (sscanf(text, " %255[^:]:%n", word, &length) != 1)
        fail_msg("no root in '%s'", text);
    tree->root = node_of(topology, word);
    tree->first_edge = plan->edge_count;
    for (text += length; sscanf(text, " %255s%n", word, &length) == 1; text += length) {
        uint32_t nodes[16], count = 0;
        for (char *name = strtok(word, ">"); name != NULL; name = strtok(NULL, ">"))
            nodes[count++] = node_of(topology, name);
        plan->edges[plan->edge_count++] = by_paths_add(&plan->paths, nodes, count);
        tree->edge_count++;
    }
}

struct by_plan *bench_plan(const struct by_topology *topology, unsigned collective, const char *root,
                           const char *const *trees)
{
    struct by_plan *plan = by_alloc(1, sizeof(*plan));
    uint32_t count = 0;
    size_t edges = 0;

    plan->collective = collective;
    plan->root = root ? (int64_t)node_of(topology, root) : -1;
    plan->compute_count = by_topology_compute_count(topology);
    for (; trees[count] != NULL; count++)
        edges += strlen(trees[count]);
    plan->trees = by_alloc(count, sizeof(*plan->trees));
    plan->edges = by_alloc(edges, sizeof(*plan->edges)); /* each edge has at least one character */
    for (uint32_t i = 0; i < count; i++)
        read_tree(topology, trees[i], plan);
    return plan;
}

void bench_plan_free(struct by_plan *plan)
{
    by_paths_free(&plan->paths);
    free(plan->edges);
    free(plan->trees);
    free(plan);
}

struct bench_images bench_images(const struct by_lowering *lowering)
{
    struct bench_images images = {.count = lowering->node_count};
    struct by_problem problem = {0};
    struct by_image_fault fault;

    images.bytes = by_alloc(images.count, sizeof(uint8_t *));
    images.size = by_alloc(images.count, sizeof(size_t));
    for (uint32_t i = 0; i < images.count; i++) {
        if (by_lowering_image(lowering, i, &images.bytes[i], &images.size[i], &problem) != 0)
            fail_msg("%s", problem.text);
        if (by_image_check(images.bytes[i], images.size[i], NULL, &fault) != 0)
            fail_msg("node %u: %s %u: %s", i, fault.section, fault.index, fault.what);
    }
    return images;
}

void bench_images_free(struct bench_images *images)
{
    for (uint32_t i = 0; i < images->count; i++)
        free(images->bytes[i]);
    free(images->bytes);
    free(images->size);
}
