/*
 * The check of the sections JOB and KEY of a table image, part of by_image_check. A job may have a
 * record for each of its generations, and each of these a key. Neighbour: check.c. Pure; any
 * thread.
 */
#include "offload/base/errors.h"
#include "offload/table/layout.h"
#include "offload/wire/seal.h"

struct job_check {
    const char *section;
    uint32_t index;
    struct by_image_fault *fault;
};

static int refuse(const struct job_check *check, int error, const char *what, uint64_t value)
{
    if (check->fault)
        *check->fault = (struct by_image_fault){check->section, check->index, what, value};
    return error;
}

/* Checks record `check->index` against the records of the same job before it, from `first` on. */
static int check_generations(const struct job_check *check, const uint8_t *image, uint32_t first,
                             const struct by_image_job *job)
{
    struct by_image_job before;

    if (check->index - first > BY_STANDBYS_MAX)
        return refuse(check, BY_ELIMIT, "job has more than 4 standby generations", job->job);
    for (uint32_t i = first; i < check->index; i++) {
        by_image_job(image, i, &before);
        if (before.gen == job->gen)
            return refuse(check, BY_EFORMAT, "job has this generation twice", job->gen);
        if (before.tree_count >= job->tree_count)
            return refuse(check, BY_EFORMAT, "trees of a job's generations do not ascend, up to",
                          job->tree_count);
        if (before.rank_count != job->rank_count || before.rank != job->rank ||
            before.udp_port != job->udp_port || job->share != 0)
            return refuse(check, BY_EFORMAT,
                          "ranks or UDP port of a job's generations differ, or the second has a share: job",
                          job->job);
    }
    return 0;
}

static int check_job(const struct job_check *check, const struct by_image_job *job, unsigned kind)
{
    if (job->rank_count == 0)
        return refuse(check, BY_EFORMAT, "job has no ranks", 0);
    if (job->rank != BY_RANK_NONE && (job->rank >= job->rank_count || kind != BY_NODE_HOST))
        return refuse(check, BY_EFORMAT, "rank is not below the rank count, or on a switch", job->rank);
    if (job->tree_count == 0 || job->tree_count > BY_TREES_MAX)
        return refuse(check, BY_ELIMIT, "number of trees is not in 1..8192", job->tree_count);
    if (job->udp_port == 0)
        return refuse(check, BY_EFORMAT, "UDP port is zero", 0);
    if (job->share > BY_SHARE_ONE)
        return refuse(check, BY_EFORMAT, "share exceeds 1, which is 1000000000", job->share);
    return 0;
}

int by_image_jobs_check(const uint8_t *image, struct by_image_fault *fault)
{
    struct job_check check = {.section = "job", .fault = fault};
    struct by_image_header header;
    struct by_image_job job, before = {0};
    uint32_t shares = 0, first = 0;
    int error;

    by_image_header(image, &header);
    for (; check.index < header.count[BY_SECTION_JOB]; check.index++) {
        by_image_job(image, check.index, &job);
        if (job.job >= BY_JOBS_MAX)
            return refuse(&check, BY_ELIMIT, "job id is not below 1024", job.job);
        if (check.index > 0 && job.job < before.job)
            return refuse(&check, BY_EFORMAT, "jobs do not ascend", job.job);
        if (job.job != before.job)
            first = check.index;
        error = check_job(&check, &job, header.kind);
        if (error == 0)
            error = check_generations(&check, image, first, &job);
        if (error != 0)
            return error;
        shares += job.share > 0;
        if (shares > BY_SHARES_MAX)
            return refuse(&check, BY_ELIMIT, "more than 64 jobs with a share", shares);
        before = job;
    }
    return 0;
}

BY_STATIC_ASSERT(BY_SHARES_MAX == 64 && BY_SHARE_ONE == 1000000000 && BY_STANDBYS_MAX == 4,
                 "named in texts above");
BY_STATIC_ASSERT(BY_TREES_MAX == 8192 && BY_JOBS_MAX == 1024, "named in texts above");

/* Finds the record of a key's generation. `*at` is a cursor; returns 0 if there is none. */
static int find_generation(const uint8_t *image, uint32_t count, const struct by_image_key *key, uint32_t *at)
{
    struct by_image_job job;

    for (; *at < count; ++*at) {
        by_image_job(image, *at, &job);
        if (job.job >= key->job)
            break;
    }
    if (*at + key->place >= count)
        return 0;
    by_image_job(image, *at + key->place, &job);
    return job.job == key->job;
}

/* No fault reveals anything of a key. */
int by_image_keys_check(const uint8_t *image, struct by_image_fault *fault)
{
    struct job_check check = {.section = "key", .fault = fault};
    struct by_image_header header;
    struct by_image_key key;
    uint32_t least = 0, job = 0;
    uint8_t any;

    by_image_header(image, &header);
    for (; check.index < header.count[BY_SECTION_KEY]; check.index++) {
        by_image_key(image, check.index, &key);
        if (((uint32_t)key.job << 8 | key.place) < least)
            return refuse(&check, BY_EFORMAT, "jobs of the keys do not ascend", key.job);
        least = ((uint32_t)key.job << 8 | key.place) + 1u;
        if (!find_generation(image, header.count[BY_SECTION_JOB], &key, &job))
            return refuse(&check, BY_EFORMAT, "job is not in the job section", key.job);
        if (key.cover != BY_COVER_HEADER && key.cover != BY_COVER_PAYLOAD)
            return refuse(&check, BY_EFORMAT, "tags cover neither the header (1) nor the payload too (2)",
                          key.cover);
        any = 0;
        for (unsigned i = 0; i < sizeof(key.key); i++)
            any |= key.key[i];
        if (any == 0)
            return refuse(&check, BY_EFORMAT, "the key is zero", 0);
    }
    return 0;
}

BY_STATIC_ASSERT(BY_COVER_HEADER == 1 && BY_COVER_PAYLOAD == 2, "named in a text above");
