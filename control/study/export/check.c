/* Detects the format of a schedule file and runs its check. See check.h. */
#include "control/study/export/check.h"

#include <string.h>

#include "control/base/alloc.h"
#include "control/base/xml.h"
#include "control/study/export/forestcoll.h"
#include "control/study/export/msccl.h"
#include "offload/base/errors.h"

/* Largest file of a schedule (bytes). */
#define FILE_BYTES_MAX ((size_t)1 << 30)

struct check_reader {
    bool trees;
    struct by_msccl_reader *msccl;
    struct by_forestcoll *forestcoll;
};

static int on_start(void *context, const struct by_xml_element *element, struct by_problem *problem)
{
    struct check_reader *reader = context;

    if (element->depth == 0) {
        reader->trees = strcmp(element->name, "Algo") == 0;
        if (!reader->trees && strcmp(element->name, "algo") != 0)
            return by_problem_set(
                problem, BY_EFORMAT, element->place,
                "the file begins with <%.40s>; MSCCL XML begins with <algo>, ForestColl's trees with "
                "<Algo>",
                element->name);
    }
    return reader->trees ? by_forestcoll_start(reader->forestcoll, element, problem)
                         : by_msccl_reader_start(reader->msccl, element, problem);
}

static void list_sends(const struct by_msccl *msccl, struct by_check_sends *sends)
{
    sends->sends = by_alloc(msccl->block_count, sizeof(*sends->sends));
    for (uint32_t b = 0; b < msccl->block_count; b++) {
        const struct by_msccl_block *block = &msccl->blocks[b];
        struct by_check_send send = {.from = block->gpu, .to = (uint32_t)block->send};

        for (uint32_t s = block->step_first; s < block->step_first + block->step_count; s++)
            if (by_msccl_sends(msccl->steps[s].type))
                send.chunks += (uint64_t)msccl->steps[s].count;
        if (send.chunks > 0)
            sends->sends[sends->count++] = send;
    }
}

static int check_msccl(struct by_msccl_reader *reader, const struct by_topology *topology, uint32_t slots,
                       struct by_check_report *report, struct by_check_sends *sends,
                       struct by_problem *problem)
{
    struct by_msccl *msccl = NULL;
    int error = by_msccl_reader_finish(reader, &msccl, problem);

    if (error)
        return error;
    *report = (struct by_check_report){.format = "MSCCL",
                                       .collective = msccl->collective,
                                       .rank_count = msccl->gpu_count,
                                       .chunk_count = msccl->chunk_count,
                                       .step_count = msccl->step_count,
                                       .unit_count = msccl->block_count,
                                       .in_place = msccl->in_place,
                                       .out_of_place = msccl->out_of_place};
    for (uint32_t g = 0; g < msccl->gpu_count; g++)
        if (msccl->gpus[g].block_count > report->blocks_max)
            report->blocks_max = msccl->gpus[g].block_count;
    if (topology && by_topology_compute_count(topology) != msccl->gpu_count)
        error = by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                               "the schedule has %u GPUs, the topology %u compute nodes", msccl->gpu_count,
                               by_topology_compute_count(topology));
    if (!error && msccl->out_of_place)
        error = by_msccl_execute(msccl, false, slots, &report->depth, problem);
    if (!error && msccl->in_place)
        error = by_msccl_execute(msccl, true, slots, &report->depth, problem);
    if (!error && sends)
        list_sends(msccl, sends);
    by_msccl_free(msccl);
    return error;
}

static int finish(struct check_reader *reader, int error, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_check_sends *sends, struct by_problem *problem)
{
    *report = (struct by_check_report){0};
    if (sends)
        *sends = (struct by_check_sends){0};
    if (!error)
        error = reader->trees ? by_forestcoll_check(reader->forestcoll, topology, report, problem)
                              : check_msccl(reader->msccl, topology, slots, report, sends, problem);
    by_msccl_reader_free(reader->msccl);
    by_forestcoll_free(reader->forestcoll);
    return error;
}

int by_check_messages(const char *path, const struct by_topology *topology, uint32_t slots,
                      struct by_check_report *report, struct by_check_sends *sends,
                      struct by_problem *problem)
{
    struct check_reader reader = {.msccl = by_msccl_reader_new(), .forestcoll = by_forestcoll_new()};
    struct by_xml_handler handler = {on_start, NULL, &reader};
    int error = by_xml_read(path, FILE_BYTES_MAX, &handler, problem);

    return finish(&reader, error, topology, slots, report, sends, problem);
}

int by_check_file(const char *path, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem)
{
    return by_check_messages(path, topology, slots, report, NULL, problem);
}

int by_check_text(const char *text, size_t bytes, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem)
{
    struct check_reader reader = {.msccl = by_msccl_reader_new(), .forestcoll = by_forestcoll_new()};
    struct by_xml_handler handler = {on_start, NULL, &reader};
    int error = by_xml_parse(text, bytes, &handler, problem);

    return finish(&reader, error, topology, slots, report, NULL, problem);
}
