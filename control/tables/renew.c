/*
 * Raises the generation of a folder of table images. Neighbours: file.c reads and writes images,
 * dump.c prints them; the command `push --renew` calls it. Any thread.
 */
#include "control/tables/renew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "control/tables/keyed.h"
#include "control/tables/tree.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/linux/output.h"
#include "offload/table/image.h"

struct item {
    char path[4096];
    uint8_t *bytes;
    size_t size;
};

static int read_item(const char *folder, const char *file, struct item *item, struct by_problem *problem)
{
    struct by_problem inner = {0};
    struct by_image_header header;
    int error;

    if (snprintf(item->path, sizeof(item->path), "%s/%s", folder, file) >= (int)sizeof(item->path))
        return by_problem_say(problem, BY_EIO, "%s: the path is too long", file);
    error = by_image_file_read(item->path, &item->bytes, &item->size, &inner);
    if (error != 0)
        return by_problem_say(problem, error, "%s: %s", file, inner.text);
    by_image_header(item->bytes, &header);
    for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++)
        if (by_image_job_is_standby(item->bytes, j))
            return by_problem_say(problem, BY_EUNSUPPORTED,
                                  "%s: it has standby generations, which only banyand renews", file);
    return 0;
}

/*
 * Computes the next generation of each job: one more than the highest, or 0 if no image has the
 * job.
 */
static void find_next(const struct item *items, uint32_t count, uint16_t next[BY_JOBS_MAX])
{
    for (uint32_t i = 0; i < count; i++) {
        struct by_image_header header;

        by_image_header(items[i].bytes, &header);
        for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++) {
            struct by_image_job job;
            uint16_t after;

            by_image_job(items[i].bytes, j, &job);
            after = job.gen == UINT16_MAX ? 1 : (uint16_t)(job.gen + 1);
            if (next[job.job] == 0 || after == 1 || (next[job.job] != 1 && after > next[job.job]))
                next[job.job] = after;
        }
    }
}

/* Keys of the new generation, by job. */
struct secrets {
    uint8_t of[BY_JOBS_MAX][BY_SIPHASH_KEY_BYTES];
};

/* Draws a key for each keyed job. */
static int draw_secrets(const struct item *items, uint32_t count, struct secrets *secrets,
                        struct by_problem *problem)
{
    bool drawn[BY_JOBS_MAX] = {false};
    int error = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_header header;

        by_image_header(items[i].bytes, &header);
        for (uint32_t k = 0; k < header.count[BY_SECTION_KEY] && error == 0; k++) {
            struct by_image_key key;

            by_image_key(items[i].bytes, k, &key);
            if (!drawn[key.job])
                error = by_lower_draw(secrets->of[key.job], problem);
            drawn[key.job] = true;
        }
    }
    return error;
}

static void raise_item(struct item *item, const uint16_t next[BY_JOBS_MAX], const struct secrets *secrets)
{
    struct by_image_header header;

    by_image_header(item->bytes, &header);
    for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++) {
        struct by_image_job job;

        by_image_job(item->bytes, j, &job);
        job.gen = next[job.job];
        by_image_put_job(item->bytes, j, &job);
    }
    for (uint32_t k = 0; k < header.count[BY_SECTION_KEY]; k++) {
        struct by_image_key key;

        by_image_key(item->bytes, k, &key);
        memcpy(key.key, secrets->of[key.job], sizeof(key.key));
        by_image_put_key(item->bytes, k, &key);
    }
    by_image_seal(item->bytes);
}

/*
 * Rewrites NAME.txt beside NAME.table if it exists. It is only informative, so a failure leaves the
 * old file.
 */
static void write_text(const struct item *item)
{
    struct by_output output;
    char path[4096];

    snprintf(path, sizeof(path), "%s", item->path);
    memcpy(path + strlen(path) - strlen("table"), "txt", sizeof("txt"));
    if (access(path, F_OK) != 0)
        return;
    if (by_output_open(&output, path, 0666) != 0)
        return;
    by_dump_text(item->bytes, item->size, output.stream);
    by_output_close(&output, true);
}

int by_renew(const char *folder, const char *const *files, uint32_t count, struct by_problem *problem)
{
    struct item *items = by_alloc(count, sizeof(*items));
    struct secrets *secrets = by_alloc(1, sizeof(*secrets));
    uint16_t next[BY_JOBS_MAX] = {0};
    struct by_problem inner = {0};
    int error = 0;

    for (uint32_t i = 0; i < count && error == 0; i++)
        error = read_item(folder, files[i], &items[i], problem);
    if (error == 0)
        find_next(items, count, next);
    if (error == 0)
        error = draw_secrets(items, count, secrets, problem);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        raise_item(&items[i], next, secrets);
        error = by_image_file_write(items[i].path, items[i].bytes, items[i].size, &inner);
        if (error != 0)
            by_problem_say(problem, error, "%s: %s", files[i], inner.text);
        else
            write_text(&items[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        free(items[i].bytes);
    free(items);
    free(secrets);
    return error;
}
