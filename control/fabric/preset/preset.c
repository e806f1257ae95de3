/* The table of presets, the parser of their parameters, and the choice of capable switches. See
 * preset.h. */
#include "control/fabric/preset/preset.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/errors.h"

#define COUNT(name, fallback, max, help)                                                                     \
    {                                                                                                        \
        name, BY_PARAMETER_COUNT, fallback, max, help                                                        \
    }
#define BANDWIDTH(name, fallback, help)                                                                      \
    {                                                                                                        \
        name, BY_PARAMETER_BANDWIDTH, fallback, 0, help                                                      \
    }
#define SIZES(name, fallback, help)                                                                          \
    {                                                                                                        \
        name, BY_PARAMETER_SIZES, fallback, 0, help                                                          \
    }
#define HOSTS(fallback, max) COUNT("hosts", fallback, max, "hosts")

static const struct by_preset presets[] = {
    {"star",
     "hosts around one switch",
     "all",
     {HOSTS("4", BY_TOPOLOGY_NODES_MAX - 1), BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_star},
    {"ring",
     "hosts in a ring, without a switch",
     "all",
     {HOSTS("4", BY_TOPOLOGY_NODES_MAX), BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_ring},
    {"complete",
     "a link between every two hosts",
     "all",
     {COUNT("hosts", "4", 2048, "hosts"), BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_complete},
    {"torus",
     "hosts on a grid with wrap-around links",
     "all",
     {SIZES("sizes", "4x4", "of the dimensions, up to 4: 4x4, 10x10x10"),
      BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_torus},
    {"hypercube",
     "2^D hosts, linked where one bit differs",
     "all",
     {COUNT("dimensions", "3", 18, "D"), BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_hypercube},
    {"leafspine",
     "hosts under leaf switches, each leaf joined to each spine",
     "all",
     {COUNT("leaves", "2", 4096, "leaf switches"), COUNT("spines", "1", 1024, "spine switches"),
      COUNT("hosts", "2", 65536, "hosts under each leaf"),
      BANDWIDTH("bandwidth", "10", "of each host's link"),
      BANDWIDTH("uplink", "10", "of each link between leaf and spine")},
     by_preset_leafspine},
    {"fattree",
     "three levels of switches with K ports: K^3/4 hosts",
     "all",
     {COUNT("ports", "4", 128, "K, even"), BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_fattree},
    {"clos",
     "pods of leaf and spine switches; spines with the same number share core switches",
     "all",
     {COUNT("pods", "2", 4096, "pods"), COUNT("leaves", "2", 1024, "leaf switches in each pod"),
      COUNT("hosts", "2", 1024, "hosts under each leaf"),
      COUNT("spines", "2", 1024, "spine switches in each pod, linked to each of its leaves"),
      COUNT("cores", "1", 1024, "core switches for each spine number, linked to that spine of each pod"),
      BANDWIDTH("bandwidth", "10", "of each link")},
     by_preset_clos},
    {"dragonfly",
     "groups of routers, complete inside, joined by global links",
     "all",
     {COUNT("groups", "5", 2048, "groups"), COUNT("routers", "2", 256, "routers in each group"),
      COUNT("hosts", "2", 256, "hosts at each router"),
      BANDWIDTH("bandwidth", "10", "of host and local links"),
      BANDWIDTH("global", "10", "of each global link")},
     by_preset_dragonfly},
    {"rail",
     "boxes of GPUs; GPUs with the same number share a rail switch",
     "all",
     {COUNT("boxes", "4", 65536, "boxes"), COUNT("gpus", "4", 64, "GPUs in each box"),
      BANDWIDTH("inside", "100", "of a GPU's link to the switch of its box"),
      BANDWIDTH("outside", "10", "of a GPU's link to its rail")},
     by_preset_rail},
    {"twobox",
     "boxes with a fast switch inside and a slow one outside",
     "all",
     {COUNT("hosts", "4", 64, "hosts in each box"),
      BANDWIDTH("inside", "100", "of a host's link to the switch of its box"),
      BANDWIDTH("outside", "10", "of a host's link to the outer switch"),
      COUNT("boxes", "2", 65536, "boxes")},
     by_preset_twobox},
    {"a100",
     "NVIDIA DGX A100 boxes: 300 GB/s to the NVSwitch, 25 to InfiniBand",
     "none",
     {COUNT("boxes", "2", 65536, "boxes"), COUNT("gpus", "8", 8, "GPUs used in each box")},
     by_preset_a100},
    {"h100",
     "NVIDIA DGX H100 boxes: 450 GB/s to the NVSwitch, 50 to InfiniBand",
     "all",
     {COUNT("boxes", "2", 65536, "boxes"), COUNT("gpus", "8", 8, "GPUs used in each box")},
     by_preset_h100},
    {"mi250",
     "AMD MI250 boxes: 16 GCDs, 50 GB/s Infinity Fabric links, 16 to InfiniBand",
     "none",
     {COUNT("boxes", "2", 65536, "boxes"), COUNT("gpus", "16", 16, "GCDs used in each box")},
     by_preset_mi250},
    {"hetero",
     "boxes of 4 to 12 GPUs and different speeds, on sites joined by a thin trunk",
     "none",
     {COUNT("boxes", "4", 65536, "boxes"), COUNT("sites", "2", 64, "sites, each with a switch for its boxes"),
      BANDWIDTH("trunk", "50", "of the link between a site and the next"),
      COUNT("seed", "1", INT64_MAX, "of the random choices")},
     by_preset_hetero},
    {"pcie",
     "boxes whose GPUs reach the network through PCIe switches and NICs",
     "none",
     {COUNT("boxes", "2", 65536, "boxes"), COUNT("gpus", "8", 16, "GPUs in each box"),
      BANDWIDTH("inside", "300", "of a GPU's link to the NVSwitch"),
      BANDWIDTH("pcie", "32", "of the links from a GPU and a NIC to their PCIe switch"),
      BANDWIDTH("outside", "25", "of a NIC's link to the network")},
     by_preset_pcie},
    {"regular",
     "hosts with an equal number of random links, no switch",
     "all",
     {HOSTS("8", 65536), COUNT("degree", "4", 256, "links of each host"),
      BANDWIDTH("bandwidth", "10", "of each link"), COUNT("seed", "1", INT64_MAX, "of the random choices")},
     by_preset_regular},
    {"random",
     "a random connected fabric of hosts and switches",
     "all",
     {COUNT("hosts", "8", 512, "hosts"), COUNT("switches", "3", 512, "switches"),
      COUNT("links", "6", 65536, "links beyond a spanning tree"),
      COUNT("bandwidth", "5", 1000000, "each link has a random one, from 1 to this"),
      COUNT("seed", "1", INT64_MAX, "of the random choices")},
     by_preset_random},
};

const struct by_preset *by_preset_list(size_t *count)
{
    *count = sizeof(presets) / sizeof(presets[0]);
    return presets;
}

const struct by_preset *by_preset_find(const char *name)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

/* Reads parameter `i` from its text. */
static int read_parameter(const struct by_parameter *parameter, const char *text,
                          struct by_preset_values *values, size_t i, struct by_problem *problem)
{
    struct by_fraction value;
    int error;

    values->text[i] = text;
    if (parameter->kind == BY_PARAMETER_SIZES)
        return 0;
    error = by_fraction_parse(text, strlen(text), &value);
    if (parameter->kind == BY_PARAMETER_BANDWIDTH) {
        if (error || value.num == 0)
            return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                                  "--%s is '%.40s': it must be a positive integer, decimal or fraction such "
                                  "as 12, 12.5 or 25/2",
                                  parameter->name, text);
        values->bandwidth[i] = value;
        return 0;
    }
    if (error || value.den != 1 || value.num < 1 || value.num > parameter->max)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "--%s is '%.40s': it must be an integer from 1 to %lld", parameter->name, text,
                              (long long)parameter->max);
    values->count[i] = value.num;
    return 0;
}

/* Whether `item` of a --capable list names this switch or its class: its name without the trailing
 * digits. */
static bool item_matches(const char *item, size_t bytes, const char *name)
{
    size_t class_bytes = strlen(name);

    if (bytes == strlen(name) && memcmp(item, name, bytes) == 0)
        return true;
    while (class_bytes > 0 && name[class_bytes - 1] >= '0' && name[class_bytes - 1] <= '9')
        class_bytes--;
    return bytes == class_bytes && memcmp(item, name, bytes) == 0;
}

int by_capable_choose(struct by_topology *topology, const char *capable, struct by_problem *problem)
{
    bool all = strcmp(capable, "all") == 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        topology->nodes[i].multicast = topology->nodes[i].aggregate = all && !topology->nodes[i].compute;
    if (all || strcmp(capable, "none") == 0)
        return 0;
    for (const char *item = capable; *item;) {
        size_t bytes = strcspn(item, ",");
        bool found = false;

        for (uint32_t i = 0; i < topology->node_count; i++) {
            struct by_node *node = &topology->nodes[i];

            if (node->compute || !item_matches(item, bytes, node->name))
                continue;
            node->multicast = node->aggregate = found = true;
        }
        if (!found)
            return by_problem_set(
                problem, BY_EINVAL, (struct by_place){0, 0},
                "--capable names '%.*s', which is neither a switch nor a class of switches of this fabric",
                bytes > 60 ? 60 : (int)bytes, item);
        item += bytes + (item[bytes] == ',');
    }
    return 0;
}

/* Makes the name of the fabric from preset and counts: "leafspine-2-1-2". */
static void make_name(const struct by_preset *preset, const struct by_preset_values *values, char *name,
                      size_t bytes)
{
    size_t at = (size_t)snprintf(name, bytes, "%s", preset->name);

    for (size_t i = 0; preset->parameters[i].name && at < bytes; i++) {
        if (preset->parameters[i].kind == BY_PARAMETER_COUNT)
            at += (size_t)snprintf(name + at, bytes - at, "-%lld", (long long)values->count[i]);
        else if (preset->parameters[i].kind == BY_PARAMETER_SIZES)
            at += (size_t)snprintf(name + at, bytes - at, "-%.40s", values->text[i]);
    }
}

int by_preset_make(const struct by_preset *preset, const char *const *texts, const char *capable,
                   struct by_topology **topology, struct by_problem *problem)
{
    struct by_preset_values values = {0};
    struct by_builder *builder;
    char name[160];
    int error = 0;

    *topology = NULL;
    for (size_t i = 0; preset->parameters[i].name && !error; i++)
        error = read_parameter(&preset->parameters[i], texts[i] ? texts[i] : preset->parameters[i].fallback,
                               &values, i, problem);
    if (error)
        return error;
    make_name(preset, &values, name, sizeof(name));
    builder = by_builder_new(name, "GB/s");
    error = preset->make(builder, &values, problem);
    if (!error)
        error = by_builder_finish(builder, topology, problem);
    by_builder_free(builder);
    if (!error)
        error = by_capable_choose(*topology, capable ? capable : preset->capable, problem);
    if (error) {
        by_topology_free(*topology);
        *topology = NULL;
    }
    return error;
}
