/* Files of table images: what is written is read back, and what is no image is refused with a
 * reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/tables/file.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

static char folder[] = "/tmp/lower-file-XXXXXX";
static char path[sizeof(folder) + 20];

/* The image of a switch with two hosts, which the caller frees. */
static uint8_t *an_image(size_t *size)
{
    static const char *const trees[] = {"10 sw0: sw0>h0 sw0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 sw0*", "h0-sw0 h1-sw0");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    uint8_t *image = NULL;

    if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0 ||
        by_lowering_image(lowering, 2, &image, size, &problem) != 0)
        fail_msg("%s", problem.text);
    by_lowering_free(lowering);
    bench_plan_free(plan);
    by_topology_free(topology);
    return image;
}

/* Writes a file of `bytes` bytes of `data`, which then ends at `size`. */
static void put(const void *data, size_t bytes, off_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(path, size), 0);
}

/* Reading fails with `error`, and the message has `part`. */
static void refuses(const char *name, int error, const char *part)
{
    struct by_problem problem = {0};
    uint8_t *bytes = (uint8_t *)path;
    size_t size;

    assert_int_equal(by_image_file_read(name, &bytes, &size, &problem), error);
    assert_null(bytes);
    if (strstr(problem.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", problem.text, part);
}

static void an_image_is_read_as_it_was_written(void **state)
{
    struct by_problem problem = {0};
    size_t size, bytes;
    uint8_t *image = an_image(&size), *read;
    struct stat status;
    mode_t mask = umask(022);

    (void)state;
    assert_int_equal(by_image_file_write(path, image, size, &problem), 0);
    umask(mask);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0644); /* it has no keys */
    assert_int_equal(by_image_file_read(path, &read, &bytes, &problem), 0);
    assert_int_equal(bytes, size);
    assert_memory_equal(read, image, size);
    assert_string_equal(problem.text, "");
    free(read);
    free(image);
}

static void a_damaged_or_cut_image_is_refused(void **state)
{
    size_t size;
    uint8_t *image = an_image(&size);

    (void)state;
    image[size - 1] ^= 1;
    put(image, size, (off_t)size);
    refuses(path, BY_ECHECKSUM, "table image refused");
    image[size - 1] ^= 1;
    put(image, size, (off_t)size - 1);
    refuses(path, BY_EFORMAT, "make it again with `banyan tables`");
    put(image, size, 0);
    refuses(path, BY_EFORMAT, "table image refused");
    free(image);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    refuses("/nowhere/image.table", BY_ENOENT, "cannot open");
    refuses(folder, BY_EIO, "not a regular file");
    refuses("/dev/null", BY_EIO, "not a regular file");
}

static void a_file_larger_than_an_image_is_not_read(void **state)
{
    (void)state;
    put("", 0, (off_t)BY_IMAGE_BYTES_MAX + 1);
    refuses(path, BY_ELIMIT, "67108865 bytes; a table image has at most 67108864");
    put("", 0, (off_t)BY_IMAGE_BYTES_MAX);
    refuses(path, BY_EFORMAT, "table image refused");
}

static void a_folder_that_is_missing_is_an_error(void **state)
{
    struct by_problem problem = {0};
    size_t size;
    uint8_t *image = an_image(&size);

    (void)state;
    assert_int_equal(by_image_file_write("/nowhere/image.table", image, size, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "cannot create"));
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_read_as_it_was_written),
        cmocka_unit_test(a_damaged_or_cut_image_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(a_file_larger_than_an_image_is_not_read),
        cmocka_unit_test(a_folder_that_is_missing_is_an_error),
    };
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/image.table", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
