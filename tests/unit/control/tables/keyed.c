/* Keyed lowerings: which node gets which key, and that keys are not readable elsewhere.
 * Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "control/tables/keyed.h"
#include "control/tables/renew.h"
#include "offload/base/errors.h"
#include "offload/wire/seal.h"
#include "tests/unit/control/tables/bench.h"

#define SEED "000102030405060708090a0b0c0d0e0f"

static const char *const allreduce[] = {"10 sw0: sw0>h0 sw0>sw1>h1 sw0>sw2 sw2>h2 sw2>h3", NULL};

/* Three switches: sw0 and sw2 sum, sw1 only forwards. */
#define RELAY 5u
static struct by_topology *fabric(void)
{
    return bench_topology("h0 h1 h2 h3 sw0* sw1 sw2*", "h0-sw0 h1-sw1 sw0-sw1 h2-sw2 h3-sw2 sw0-sw2");
}

static struct by_lowering *lower(const struct by_topology *topology, struct by_lower_options *options,
                                 const char *cover, const char *seed)
{
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, allreduce);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower_keyed(options, cover, seed, &problem) != 0 ||
        by_lower(topology, &job, 1, options, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    bench_plan_free(plan);
    return lowering;
}

/* Returns the name of node `node`'s key; 0: no key. */
static uint64_t key_of(const struct by_lowering *lowering, uint32_t node, struct by_image_key *key)
{
    struct bench_images images = bench_images(lowering);
    uint64_t id = by_image_key_find(images.bytes[node], 1, key) ? by_image_key_id(key) : 0;

    bench_images_free(&images);
    return id;
}

static void all_who_run_a_job_have_its_key_and_relays_have_not(void **state)
{
    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct by_topology *topology = fabric();
        struct by_lower_options options = {0};
        struct by_lowering *lowering =
            lower(topology, &options, cover == BY_COVER_PAYLOAD ? "payload" : NULL, NULL);
        struct by_image_key key;
        uint64_t id = key_of(lowering, 0, &key);

        assert_true(id != 0);
        assert_int_equal(key.cover, cover);
        for (uint32_t node = 0; node < topology->node_count; node++)
            assert_true(key_of(lowering, node, &key) == (node == RELAY ? 0 : id));
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

static void another_generation_or_seed_has_another_key_and_the_same_has_the_same(void **state)
{
    struct by_topology *topology = fabric();
    static const struct {
        uint16_t gen;
        const char *seed;
    } rows[] = {{1, SEED}, {1, SEED}, {2, SEED}, {1, NULL}, {1, NULL}};
    uint64_t id[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct by_lower_options options = {.gen = rows[i].gen};
        struct by_lowering *lowering = lower(topology, &options, NULL, rows[i].seed);
        struct by_image_key key;

        id[i] = key_of(lowering, 0, &key);
        for (unsigned half = 0; half < 2; half++)
            assert_memory_not_equal(key.key + 8 * half, (const uint8_t[8]){0}, 8);
        assert_memory_not_equal(key.key, key.key + 8, 8); /* the halves are derived apart */
        by_lowering_free(lowering);
    }
    assert_true(id[0] == id[1]);
    for (unsigned i = 1; i < 5; i++)
        for (unsigned j = i + 1; j < 5; j++)
            assert_true(id[i] != id[j]);
    by_topology_free(topology);
}

static void a_job_that_brings_its_key_has_that_one_whatever_the_seed(void **state)
{
    struct by_topology *topology = fabric();
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, allreduce);
    static const uint8_t secret[BY_SIPHASH_KEY_BYTES] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6};
    struct by_lower_job job = {
        .job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan, .secret = secret};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct by_lower_options options = {0};
        struct by_lowering *lowering;
        struct by_problem problem = {0};
        struct by_image_key key;

        assert_int_equal(by_lower_keyed(&options, NULL, i == 0 ? SEED : NULL, &problem), 0);
        assert_int_equal(by_lower(topology, &job, 1, &options, &lowering, &problem), 0);
        assert_true(key_of(lowering, 0, &key) != 0);
        assert_memory_equal(key.key, secret, sizeof(secret));
        by_lowering_free(lowering);
    }
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* Writes the images of a lowering into a folder: NAME.table by node. */
static void write_images(const struct by_lowering *lowering, const char *folder, char names[][32])
{
    struct bench_images images = bench_images(lowering);

    for (uint32_t i = 0; i < lowering->node_count; i++) {
        struct by_problem problem = {0};
        char path[300];

        snprintf(names[i], 32, "%s.table", lowering->topology->nodes[i].name);
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(by_image_file_write(path, images.bytes[i], images.size[i], &problem), 0);
    }
    bench_images_free(&images);
}

/* Returns the generation of job 1 in these files, and its key, which must be the same in all files
 * with a key. */
static uint16_t read_images(const char *folder, char names[][32], uint32_t count, struct by_image_key *key)
{
    struct by_image_job job = {0};
    uint32_t keys = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct by_problem problem = {0};
        struct by_image_key own;
        uint8_t *bytes;
        size_t size;
        char path[300];

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(by_image_file_read(path, &bytes, &size, &problem), 0);
        if (by_image_key_find(bytes, 1, &own)) {
            if (keys++ > 0)
                assert_memory_equal(own.key, key->key, sizeof(own.key));
            *key = own;
            by_image_job(bytes, 0, &job);
        }
        free(bytes);
    }
    assert_true(keys > 1);
    return job.gen;
}

static void renewed_tables_have_another_key_and_all_the_same(void **state)
{
    char folder[] = "/tmp/by-test-renew-XXXXXX", names[8][32], path[300];
    struct by_topology *topology = fabric();
    struct by_lower_options options = {.gen = UINT16_MAX};
    struct by_lowering *lowering = lower(topology, &options, NULL, SEED);
    const char *files[8];
    struct by_image_key key[3];
    struct by_problem problem = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_images(lowering, folder, names);
    for (uint32_t i = 0; i < topology->node_count; i++)
        files[i] = names[i];
    for (uint32_t round = 0; round < 3; round++) {
        uint16_t gen = read_images(folder, names, topology->node_count, &key[round]);

        assert_int_equal(gen, round == 0 ? UINT16_MAX : round);
        for (uint32_t i = 0; i < round; i++)
            assert_memory_not_equal(key[i].key, key[round].key, sizeof(key[i].key));
        assert_int_equal(by_renew(folder, files, topology->node_count, &problem), 0);
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* The text of an image, which the caller frees. */
static char *text_of(const uint8_t *image, size_t size)
{
    char *text;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    assert_non_null(stream);
    by_dump_text(image, size, stream);
    fclose(stream);
    return text;
}

/* One image alone gets another key, and a text beside it follows it; none is made. */
static void a_renewed_image_has_another_key_and_the_text_beside_it_follows(void **state)
{
    char folder[] = "/tmp/by-test-renew-XXXXXX", names[8][32], path[300];
    struct by_topology *topology = fabric();
    struct by_lower_options options = {.gen = 4};
    struct by_lowering *lowering = lower(topology, &options, NULL, SEED);

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_images(lowering, folder, names);
    for (unsigned with_text = 0; with_text < 2; with_text++) {
        const char *files[] = {names[with_text]};
        struct by_problem problem = {0};
        struct by_image_key old, new;
        static const uint8_t none[sizeof(old.key)];
        uint8_t *image;
        size_t size;
        char *expected, text[65536] = "";
        mode_t mask = umask(022);
        struct stat status;
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, names[with_text]);
        assert_int_equal(by_image_file_read(path, &image, &size, &problem), 0);
        assert_int_equal(by_image_key_find(image, 1, &old), 1);
        free(image);
        memcpy(path + strlen(path) - strlen("table"), "txt", sizeof("txt"));
        if (with_text) {
            file = fopen(path, "w");
            assert_non_null(file);
            fputs("old", file);
            fclose(file);
        }
        assert_int_equal(by_renew(folder, files, 1, &problem), 0);
        umask(mask);
        file = fopen(path, "r");
        assert_int_equal(file != NULL, with_text);
        snprintf(path, sizeof(path), "%s/%s", folder, names[with_text]);
        assert_int_equal(by_image_file_read(path, &image, &size, &problem), 0);
        assert_int_equal(by_image_key_find(image, 1, &new), 1);
        assert_memory_not_equal(new.key, old.key, sizeof(new.key));
        assert_memory_not_equal(new.key, none, sizeof(new.key));
        if (file != NULL) {
            assert_int_equal(fstat(fileno(file), &status), 0);
            assert_int_equal(status.st_mode & 0777, 0644);
            assert_in_range(fread(text, 1, sizeof(text) - 1, file), 1, sizeof(text) - 2);
            fclose(file);
            expected = text_of(image, size);
            assert_string_equal(text, expected);
            free(expected);
            memcpy(path + strlen(path) - strlen("table"), "txt", sizeof("txt"));
            unlink(path);
        }
        free(image);
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_seed_has_hex_digits_of_either_case(void **state)
{
    static const uint8_t expected[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                         0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
    struct by_lower_options options = {0};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_lower_keyed(&options, NULL, "0123456789abcdefFEDCBA9876543210", &problem), 0);
    assert_memory_equal(options.seed, expected, sizeof(expected));
}

/* Two images of a job that differ in their generations get one above both, or the first one. */
static void renewed_tables_have_the_generation_above_the_highest(void **state)
{
    static const uint16_t rows[][3] = {
        {5, 1, 6}, {1, 5, 6}, {1, 1, 2}, {UINT16_MAX, 5, 1}, {5, UINT16_MAX, 1}};
    struct by_topology *topology = fabric();

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char folder[] = "/tmp/by-test-renew-XXXXXX", paths[2][64];
        static const char *const files[2] = {"h0.table", "h1.table"};
        struct by_problem problem = {0};

        assert_non_null(mkdtemp(folder));
        for (uint32_t i = 0; i < 2; i++) {
            struct by_lower_options options = {.gen = rows[r][i]};
            struct by_lowering *lowering = lower(topology, &options, NULL, SEED);
            struct bench_images images = bench_images(lowering);

            snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, files[i]);
            assert_int_equal(by_image_file_write(paths[i], images.bytes[i], images.size[i], &problem), 0);
            bench_images_free(&images);
            by_lowering_free(lowering);
        }
        assert_int_equal(by_renew(folder, files, 2, &problem), 0);
        for (uint32_t i = 0; i < 2; i++) {
            struct by_image_job job;
            uint8_t *image;
            size_t bytes;

            assert_int_equal(by_image_file_read(paths[i], &image, &bytes, &problem), 0);
            by_image_job(image, 0, &job);
            assert_int_equal(job.gen, rows[r][2]);
            free(image);
            unlink(paths[i]);
        }
        assert_int_equal(rmdir(folder), 0);
    }
    by_topology_free(topology);
}

static void what_is_no_seed_or_cover_is_refused(void **state)
{
    static const char *const rows[][3] = {
        {NULL, "00", "32 hex digits"},
        {NULL, SEED "0", "32 hex digits"},
        {NULL, "0g" SEED, "digit 2 is invalid"},
        {"everything", NULL, "payload"},
        {NULL, "00000000000000000000000000000000", "not all zero"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_lower_options options = {0};
        struct by_problem problem = {0};

        assert_int_equal(by_lower_keyed(&options, rows[i][0], rows[i][1], &problem), BY_EINVAL);
        if (strstr(problem.text, rows[i][2]) == NULL)
            fail_msg("'%s' is not in: %s", rows[i][2], problem.text);
    }
}

static mode_t mode_of(const char *path, const uint8_t *bytes, size_t size)
{
    struct by_problem problem = {0};
    struct stat status;

    assert_int_equal(by_image_file_write(path, bytes, size, &problem), 0);
    assert_int_equal(stat(path, &status), 0);
    unlink(path);
    return status.st_mode & 0777;
}

static void files_with_keys_are_their_owners_and_texts_hold_none(void **state)
{
    struct by_topology *topology = fabric();
    struct by_lower_options options = {0};
    struct by_lowering *lowering = lower(topology, &options, NULL, SEED);
    struct bench_images images = bench_images(lowering);
    char path[64], hex[33], *text, *json;
    struct by_image_key key;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    json_t *object = by_dump_json(images.bytes[4], images.size[4]);
    mode_t mask = umask(022);

    (void)state;
    snprintf(path, sizeof(path), "/tmp/banyan-keyed-%ld.table", (long)getpid());
    assert_int_equal(mode_of(path, images.bytes[4], images.size[4]), 0600);
    umask(mask);
    by_dump_text(images.bytes[4], images.size[4], stream);
    fclose(stream);
    json = json_dumps(object, 0);
    assert_int_equal(by_image_key_find(images.bytes[4], 1, &key), 1);
    for (unsigned i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", key.key[i]);
    for (unsigned at = 0; at + 8 <= 32; at += 2) { /* not even four bytes of the key */
        char part[9];

        snprintf(part, sizeof(part), "%.8s", hex + at);
        assert_null(strstr(text, part));
        assert_null(strstr(json, part));
    }
    assert_non_null(strstr(text, "key job 1: "));
    assert_non_null(strstr(json, "\"keys\": [{"));
    free(text);
    free(json);
    json_decref(object);
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_who_run_a_job_have_its_key_and_relays_have_not),
        cmocka_unit_test(another_generation_or_seed_has_another_key_and_the_same_has_the_same),
        cmocka_unit_test(a_job_that_brings_its_key_has_that_one_whatever_the_seed),
        cmocka_unit_test(renewed_tables_have_another_key_and_all_the_same),
        cmocka_unit_test(a_renewed_image_has_another_key_and_the_text_beside_it_follows),
        cmocka_unit_test(what_is_no_seed_or_cover_is_refused),
        cmocka_unit_test(files_with_keys_are_their_owners_and_texts_hold_none),
        cmocka_unit_test(a_seed_has_hex_digits_of_either_case),
        cmocka_unit_test(renewed_tables_have_the_generation_above_the_highest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
