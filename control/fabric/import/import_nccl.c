/*
 * NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it: <system> with <cpu>; in these nested <pci>
 * elements; and in these <gpu> with <nvlink> and <c2c>, or <nic> with <net>. GPUs become compute
 * nodes; CPUs, PCIe switches, NVSwitches and network cards become switches that only forward. Each
 * file is a host, or several hosts if its CPUs have different host hashes. NVLinks to switches lead
 * to one NVSwitch per file, as in NCCL's own model. Link rates are those of the standards, before
 * protocol overhead (NCCL's own figures are calibrated). See import.h.
 */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/xml.h"
#include "control/fabric/import/draft.h"
#include "offload/base/errors.h"

#define KEY_BYTES 160
/* Limits for one file (count). */
#define NVLINKS_MAX 8192u
#define CPUS_MAX    1024u

/* A GPU's NVLinks to a peer, as listed at one end. */
struct nvlink {
    uint32_t gpu;
    char target[40];
    uint32_t peer; /* the GPU at the target, or UINT32_MAX */
    bool to_switch;
    struct by_fraction rate; /* sum of all links, per direction */
    struct by_place place;
};

/* An open element. */
struct import_nccl_level {
    uint32_t node; /* node that its children are linked to, or UINT32_MAX */
    char busid[40];
    struct by_fraction rate; /* of the PCIe link to it; num 0: none */
};

struct import_nccl_reader {
    struct by_draft *draft;
    uint32_t copy; /* number of this copy of the file */
    bool alone;    /* the only host: names have no number */
    struct import_nccl_level levels[BY_XML_DEPTH_MAX];
    char host[64]; /* host hash of the current CPU */
    uint32_t host_number;
    uint32_t hosts; /* hosts in all files and copies so far */
    uint32_t host_first;
    char hashes[64][24]; /* of this file */
    uint32_t hash_count;
    int64_t sm;   /* compute capability of the current GPU */
    uint32_t gpu; /* its node */
    uint32_t nvlink_count, nvlink_room;
    struct nvlink *nvlinks;
    uint32_t cpu_count, cpu_room;
    uint32_t *cpus; /* nodes of this file's CPUs */
    uint32_t *cpu_hosts;
    uint32_t cpu_host_room;
    uint32_t ports; /* network ports of the host so far */
};

static uint32_t add_node(struct import_nccl_reader *reader, const char *kind, const char *id,
                         struct by_place place)
{
    char key[KEY_BYTES], label[KEY_BYTES];

    snprintf(key, sizeof(key), "%u/%u/%u/%s/%.60s", reader->draft->file, reader->copy, reader->host_number,
             kind, id);
    if (reader->alone && reader->host_number == 0)
        snprintf(label, sizeof(label), "%s%.60s", kind, id);
    else
        snprintf(label, sizeof(label), "h%u.%s%.60s", reader->host_number, kind, id);
    return by_draft_node(reader->draft, key, label, place);
}

static uint32_t add_switch(struct import_nccl_reader *reader, const char *kind, const char *id,
                           struct by_place place)
{
    uint32_t node = add_node(reader, kind, id, place);

    if (node != UINT32_MAX)
        reader->draft->nodes[node].kind = BY_DRAFT_SWITCH;
    return node;
}

/* ---- rates ---- */

/* Returns GB/s of one lane, from "16.0 GT/s PCIe": 8 of 10 bits are data at 2.5 and 5 GT/s, 128 of
 * 130 up to 32, then flits of 256 bytes with 242 of data. A missing value counts as 8 GT/s, as in
 * NCCL. */
static struct by_fraction lane_rate(const char *speed)
{
    long rate = speed ? strtol(speed, NULL, 10) : 0;

    return rate >= 64   ? (struct by_fraction){121, 16}
           : rate >= 32 ? (struct by_fraction){256, 65}
           : rate >= 16 ? (struct by_fraction){128, 65}
           : rate >= 8  ? (struct by_fraction){64, 65}
           : rate >= 5  ? (struct by_fraction){1, 2}
           : rate >= 2  ? (struct by_fraction){1, 4}
                        : (struct by_fraction){64, 65};
}

/* Returns GB/s of one NVLink per direction, by compute capability; num 0 if unknown. */
static struct by_fraction nvlink_rate(int64_t sm)
{
    return sm >= 100                          ? (struct by_fraction){50, 1}
           : sm >= 90                         ? (struct by_fraction){25, 1}
           : sm == 86 || sm == 87 || sm == 89 ? (struct by_fraction){225, 16}
           : sm >= 70                         ? (struct by_fraction){25, 1}
           : sm >= 60                         ? (struct by_fraction){20, 1}
                                              : (struct by_fraction){0, 1};
}

static struct by_fraction times(struct by_fraction rate, int64_t count)
{
    struct by_fraction product = {0, 1};

    return by_fraction_multiply(rate, (struct by_fraction){count, 1}, &product) == 0 ? product : rate;
}

/* ---- elements ---- */

static const struct import_nccl_level *above(const struct import_nccl_reader *reader,
                                             const struct by_xml_element *element)
{
    return &reader->levels[element->depth > 0 ? element->depth - 1 : 0];
}

static int read_cpu(struct import_nccl_reader *reader, const struct by_xml_element *element,
                    struct import_nccl_level *level)
{
    const char *hash = by_xml_text(element, "host_hash"), *numa = by_xml_text(element, "numaid");
    uint32_t number = 0;

    if (!numa)
        return BY_DRAFT_REFUSE(reader->draft, element->place,
                               "<cpu> has no attribute numaid; is the file a dump of "
                               "NCCL_TOPO_DUMP_FILE?");
    snprintf(reader->host, sizeof(reader->host), "%.23s", hash ? hash : "");
    while (number < reader->hash_count && strcmp(reader->hashes[number], reader->host) != 0)
        number++;
    if (number == reader->hash_count) {
        if (number == sizeof(reader->hashes) / sizeof(reader->hashes[0]))
            return by_problem_set(reader->draft->problem, BY_ELIMIT, element->place,
                                  "the file has CPUs of more than %u hosts", number);
        memcpy(reader->hashes[reader->hash_count++], reader->host, sizeof(reader->hashes[0]));
        reader->ports = 0;
    }
    reader->host_number = reader->host_first + number;
    if (reader->host_number >= reader->hosts)
        reader->hosts = reader->host_number + 1;
    level->node = add_switch(reader, "cpu", numa, element->place);
    if (level->node == UINT32_MAX)
        return BY_ELIMIT;
    if (reader->cpu_count >= CPUS_MAX)
        return by_problem_set(reader->draft->problem, BY_ELIMIT, element->place,
                              "the file has more than %u <cpu>; that is the limit", CPUS_MAX);
    if (reader->cpu_count == reader->cpu_room)
        reader->cpu_hosts = by_realloc(reader->cpu_hosts, reader->cpu_room ? 2 * (size_t)reader->cpu_room : 8,
                                       sizeof(*reader->cpu_hosts));
    BY_GROW(reader->cpus, reader->cpu_count, reader->cpu_room);
    reader->cpu_hosts[reader->cpu_count] = reader->host_number;
    reader->cpus[reader->cpu_count++] = level->node;
    return 0;
}

static int read_pci(struct import_nccl_reader *reader, const struct by_xml_element *element,
                    struct import_nccl_level *level)
{
    const char *class = by_xml_text(element, "class"), *busid = by_xml_text(element, "busid");
    int64_t width = 0;

    if (!busid)
        return BY_DRAFT_REFUSE(reader->draft, element->place, "<pci> has no attribute busid; add it");
    if (by_xml_text(element, "link_width") &&
        by_xml_integer(element, "link_width", -1, 64, &width, reader->draft->problem) != 0)
        return BY_EINVAL;
    snprintf(level->busid, sizeof(level->busid), "%.39s", busid);
    level->rate = times(lane_rate(by_xml_text(element, "link_speed")), width > 0 ? width : 16);
    /* Graphics and accelerator classes are GPUs, class 2 is network cards; their child elements
     * have the details. */
    if (class && (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0 ||
                  strncmp(class, "0x02", 4) == 0)) {
        level->node = above(reader, element)->node;
        return 0;
    }
    level->node = add_switch(reader, "pci-", busid, element->place);
    if (level->node == UINT32_MAX)
        return BY_ELIMIT;
    return by_draft_link(reader->draft, above(reader, element)->node, level->node, true, level->rate,
                         element->place);
}

static int read_gpu(struct import_nccl_reader *reader, const struct by_xml_element *element,
                    struct import_nccl_level *level)
{
    const struct import_nccl_level *card = above(reader, element);
    struct by_problem *problem = reader->draft->problem;
    int64_t dev = 0, rank = 0;
    char text[24];
    int error;

    reader->gpu = UINT32_MAX;
    level->node = card->node;
    if (!by_xml_text(element, "rank")) {
        by_draft_leave_out(reader->draft, card->busid);
        return 0; /* not in the job */
    }
    error = by_xml_integer(element, "dev", 0, 65535, &dev, problem);
    if (!error)
        error = by_xml_integer(element, "rank", 0, 65535, &rank, problem);
    if (!error)
        error = by_xml_integer(element, "sm", 0, 1000, &reader->sm, problem);
    if (error)
        return error;
    if (card->rate.num == 0)
        return BY_DRAFT_REFUSE(reader->draft, element->place, "<gpu> is outside a <pci>; it has no link");
    snprintf(text, sizeof(text), "%lld", (long long)dev);
    reader->gpu = add_node(reader, "gpu", text, element->place);
    if (reader->gpu == UINT32_MAX)
        return BY_ELIMIT;
    if (reader->draft->nodes[reader->gpu].kind == BY_DRAFT_COMPUTE)
        return BY_DRAFT_REFUSE(reader->draft, element->place, "GPU %lld appears twice in one host",
                               (long long)dev);
    reader->draft->nodes[reader->gpu].kind = BY_DRAFT_COMPUTE;
    reader->draft->nodes[reader->gpu].order = (int64_t)reader->host_first * 65536 + rank;
    return by_draft_link(reader->draft, card->node, reader->gpu, true, card->rate, element->place);
}

static int read_nvlink(struct import_nccl_reader *reader, const struct by_xml_element *element)
{
    const char *target = by_xml_text(element, "target"), *class = by_xml_text(element, "tclass");
    struct nvlink nvlink = {.gpu = reader->gpu, .place = element->place};
    int64_t count = 0;
    int error = by_xml_integer(element, "count", 1, 1000, &count, reader->draft->problem);

    if (error || reader->gpu == UINT32_MAX)
        return error;
    if (!target)
        return BY_DRAFT_REFUSE(reader->draft, element->place, "<nvlink> has no attribute target; add it");
    if (reader->nvlink_count >= NVLINKS_MAX)
        return by_problem_set(reader->draft->problem, BY_ELIMIT, element->place,
                              "the file has more than %u <nvlink>; that is the limit", NVLINKS_MAX);
    nvlink.rate = reader->draft->options->nvlink;
    if (nvlink.rate.num == 0)
        nvlink.rate = nvlink_rate(reader->sm);
    if (nvlink.rate.num == 0)
        return BY_DRAFT_REFUSE(
            reader->draft, element->place,
            "the rate of an NVLink of a GPU with compute capability %lld is unknown; give --nvlink",
            (long long)reader->sm);
    nvlink.rate = times(nvlink.rate, count);
    nvlink.to_switch = class && strncmp(class, "0x0680", 6) == 0;
    snprintf(nvlink.target, sizeof(nvlink.target), "%.39s", target);
    BY_GROW(reader->nvlinks, reader->nvlink_count, reader->nvlink_room);
    reader->nvlinks[reader->nvlink_count++] = nvlink;
    return 0;
}

/* Reads a coherent link between GPU and CPU: `bw` is MB/s of one of `count` links. */
static int read_c2c(struct import_nccl_reader *reader, const struct by_xml_element *element)
{
    int64_t bandwidth = 0, count = 0;
    struct by_fraction rate;
    uint32_t cpu = reader->cpu_count > 0 ? reader->cpus[reader->cpu_count - 1] : UINT32_MAX;
    int error = by_xml_integer(element, "bw", 1, 10000000, &bandwidth, reader->draft->problem);

    if (!error)
        error = by_xml_integer(element, "count", 1, 1000, &count, reader->draft->problem);
    if (error || reader->gpu == UINT32_MAX || cpu == UINT32_MAX)
        return error;
    error = by_fraction_set((__int128)bandwidth * count, 1000, &rate);
    return error ? error : by_draft_link(reader->draft, cpu, reader->gpu, true, rate, element->place);
}

static int read_nic(struct import_nccl_reader *reader, const struct by_xml_element *element,
                    struct import_nccl_level *level)
{
    const struct import_nccl_level *card = above(reader, element);
    char id[48];

    snprintf(id, sizeof(id), "%.39s", card->busid[0] ? card->busid : "of-cpu");
    level->node = add_switch(reader, "nic-", id, element->place);
    if (level->node == UINT32_MAX)
        return BY_ELIMIT;
    if (card->node == UINT32_MAX || card->node == level->node)
        return 0;
    /* A card without a bus of its own is as fast as its ports, so its link gets a rate that limits
     * nothing. */
    return by_draft_link(reader->draft, card->node, level->node, true,
                         card->rate.num > 0 && card->busid[0] ? card->rate : (struct by_fraction){1000, 1},
                         element->place);
}

static int read_net(struct import_nccl_reader *reader, const struct by_xml_element *element)
{
    const char *used = by_xml_text(element, "net");
    struct by_fraction rate;
    int64_t speed = 0, dev = 0;
    uint32_t network, number;
    char text[48];
    int error;

    if (!by_xml_text(element, "dev") || (used && strcmp(used, "0") == 0))
        return 0; /* NCCL does not use it */
    error = by_xml_integer(element, "dev", 0, 65535, &dev, reader->draft->problem);
    if (!error && by_xml_text(element, "speed"))
        error = by_xml_integer(element, "speed", -1, 100000000, &speed, reader->draft->problem);
    if (error)
        return error;
    number = reader->ports++;
    error = by_fraction_set(speed > 0 ? speed : 10000, 8000, &rate);
    snprintf(text, sizeof(text), reader->draft->options->rails ? "rail%u" : "net0", number);
    network = by_draft_node(reader->draft, text, text, element->place);
    if (network == UINT32_MAX)
        return BY_ELIMIT;
    reader->draft->nodes[network].kind = BY_DRAFT_SWITCH;
    return error ? error
                 : by_draft_link(reader->draft, above(reader, element)->node, network, true, rate,
                                 element->place);
}

static int on_start(void *context, const struct by_xml_element *element, struct by_problem *problem)
{
    struct import_nccl_reader *reader = context;
    struct import_nccl_level *level = &reader->levels[element->depth];

    *level = (struct import_nccl_level){
        .node = element->depth > 0 ? above(reader, element)->node : UINT32_MAX, .rate = {0, 1}};
    if (element->depth == 0)
        return strcmp(element->name, "system") == 0
                   ? 0
                   : by_problem_set(problem, BY_EFORMAT, element->place,
                                    "the file begins with <%.40s>; NCCL's topology begins with <system>",
                                    element->name);
    if (strcmp(element->name, "cpu") == 0)
        return read_cpu(reader, element, level);
    if (above(reader, element)->node == UINT32_MAX)
        return BY_DRAFT_REFUSE(reader->draft, element->place, "<%.40s> is outside a <cpu>", element->name);
    if (strcmp(element->name, "pci") == 0)
        return read_pci(reader, element, level);
    if (strcmp(element->name, "gpu") == 0)
        return read_gpu(reader, element, level);
    if (strcmp(element->name, "nvlink") == 0)
        return read_nvlink(reader, element);
    if (strcmp(element->name, "c2c") == 0)
        return read_c2c(reader, element);
    if (strcmp(element->name, "nic") == 0)
        return read_nic(reader, element, level);
    if (strcmp(element->name, "net") == 0)
        return read_net(reader, element);
    return 0; /* newer versions add elements */
}

/* ---- references between elements ---- */

/* Returns the GPU at a bus, or UINT32_MAX. */
static uint32_t gpu_at(const char *busid, const char *const *buses, const uint32_t *gpus, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(buses[i], busid) == 0)
            return gpus[i];
    return UINT32_MAX;
}

/* Returns the sum of all NVLinks of a GPU to switches; num 0 except for the first entry of that
 * GPU. */
static struct by_fraction sum_to_switch(const struct import_nccl_reader *reader, uint32_t first)
{
    struct by_fraction sum = {0, 1};

    for (uint32_t i = 0; i < reader->nvlink_count; i++) {
        const struct nvlink *nvlink = &reader->nvlinks[i];

        if (!nvlink->to_switch || nvlink->gpu != reader->nvlinks[first].gpu)
            continue;
        if (i < first || by_fraction_add(sum, nvlink->rate, &sum) != 0)
            return (struct by_fraction){0, 1};
    }
    return sum;
}

static int add_nvlinks(struct import_nccl_reader *reader, const char *const *buses, const uint32_t *gpus,
                       uint32_t count)
{
    int error = 0;

    for (uint32_t i = 0; i < reader->nvlink_count; i++)
        reader->nvlinks[i].peer = gpu_at(reader->nvlinks[i].target, buses, gpus, count);
    for (uint32_t i = 0; i < reader->nvlink_count && !error; i++) {
        const struct nvlink *nvlink = &reader->nvlinks[i];
        struct by_fraction rate = nvlink->rate;
        uint32_t peer;

        if (nvlink->to_switch) {
            rate = sum_to_switch(reader, i);
            if (rate.num == 0)
                continue;
            reader->host_number = reader->host_first;
            peer = add_switch(reader, "nvswitch", "0", nvlink->place);
        } else {
            bool seen = false;

            peer = nvlink->peer;
            if (peer == UINT32_MAX) {
                by_draft_leave_out(reader->draft, nvlink->target);
                continue; /* to a device that is not in the job */
            }
            /* Both GPUs list the same links. */
            for (uint32_t j = 0; j < i && !seen; j++)
                seen = !reader->nvlinks[j].to_switch && reader->nvlinks[j].gpu == peer &&
                       reader->nvlinks[j].peer == nvlink->gpu;
            if (seen)
                continue;
        }
        error = by_draft_link(reader->draft, nvlink->gpu, peer, true, rate, nvlink->place);
    }
    return error;
}

static int join_cpus(struct import_nccl_reader *reader)
{
    struct by_fraction rate = reader->draft->options->cpu;
    int error = 0;

    if (rate.num == 0)
        rate = (struct by_fraction){BY_IMPORT_CPU_RATE, 1};
    for (uint32_t i = 0; i < reader->cpu_count; i++)
        for (uint32_t j = 0; j < i && !error; j++)
            if (reader->cpu_hosts[i] == reader->cpu_hosts[j])
                error = by_draft_link(reader->draft, reader->cpus[i], reader->cpus[j], true, rate,
                                      reader->draft->nodes[reader->cpus[i]].place);
    return error;
}

/* The buses of the GPUs: an index made while reading, since NVLinks may refer to a later GPU. */
struct import_nccl_index {
    struct import_nccl_reader *reader;
    uint32_t count, room;
    uint32_t *gpus;
    char **buses;
};

static int on_start_indexed(void *context, const struct by_xml_element *element, struct by_problem *problem)
{
    struct import_nccl_index *index = context;
    struct import_nccl_reader *reader = index->reader;
    int error = on_start(reader, element, problem);

    if (!error && strcmp(element->name, "gpu") == 0 && element->depth > 0 && reader->gpu != UINT32_MAX) {
        if (index->count == index->room) {
            index->room = index->room ? 2 * index->room : 16;
            index->gpus = by_realloc(index->gpus, index->room, sizeof(*index->gpus));
            index->buses = by_realloc(index->buses, index->room, sizeof(*index->buses));
        }
        index->gpus[index->count] = reader->gpu;
        index->buses[index->count++] = by_copy_text(above(reader, element)->busid);
    }
    return error;
}

static int read_file(struct import_nccl_reader *reader, const char *path)
{
    struct import_nccl_index index = {.reader = reader};
    struct by_xml_handler handler = {on_start_indexed, NULL, &index};
    int error;

    reader->hash_count = 0;
    reader->host_first = reader->hosts;
    reader->nvlink_count = reader->cpu_count = reader->ports = 0;
    error = by_xml_read(path, BY_IMPORT_BYTES_MAX, &handler, reader->draft->problem);
    if (!error && index.count == 0)
        error = BY_DRAFT_REFUSE(reader->draft, ((struct by_place){0, 0}),
                                "the file has no GPU with a rank; dump the topology of a running job");
    if (!error)
        error = add_nvlinks(reader, (const char *const *)index.buses, index.gpus, index.count);
    if (!error)
        error = join_cpus(reader);
    for (uint32_t i = 0; i < index.count; i++)
        free(index.buses[i]);
    free(index.buses);
    free(index.gpus);
    return error;
}

/* Leaves out the network and its cards if there is only one host. */
static void drop_network(struct by_draft *draft)
{
    /* keys of nodes in a host start with its number and a slash */
    for (uint32_t i = 0; i < draft->node_count; i++)
        if (!strchr(draft->nodes[i].key, '/')) {
            draft->nodes[i].left_out = true;
            by_draft_leave_out(draft, draft->nodes[i].label);
        }
}

int by_import_nccl(struct by_draft *draft, const char *const *paths, size_t count)
{
    uint32_t copies = draft->options->copies > 0 ? draft->options->copies : 1;
    struct import_nccl_reader reader = {.draft = draft, .alone = count * copies == 1};
    int error = 0;

    draft->prune = true;
    draft->name = "nccl";
    for (size_t i = 0; i < count && !error; i++)
        for (uint32_t copy = 0; copy < copies && !error; copy++) {
            draft->file = (uint32_t)i;
            reader.copy = copy;
            error = read_file(&reader, paths[i]);
        }
    if (reader.hosts == 1)
        drop_network(draft);
    free(reader.nvlinks);
    free(reader.cpus);
    free(reader.cpu_hosts);
    return error;
}
