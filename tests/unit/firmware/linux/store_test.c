/* Tables saved for the next start: what is read back after each kind of exit, and after damage to
 * the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "firmware/linux/store.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/star.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/banyan-store-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static const char *path_of(unsigned copy)
{
    static char path[2][128];

    snprintf(path[copy], sizeof path[copy], "%s/leaf0.%u", folder, copy);
    return path[copy];
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path_of(0));
    unlink(path_of(1));
    return rmdir(folder);
}

/* The image with `cookie`. */
static uint8_t *image_of(uint64_t cookie, size_t *bytes)
{
    const struct star star = {
        .hosts = 2, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500, .cookie = cookie};

    return star_image(&star, bytes);
}

/* The order of disk operations: f a file, r its rename, d the folder. */
static char order[32];

static void note(char what)
{
    size_t count = strlen(order);

    if (count + 1 < sizeof order)
        order[count] = what;
}

int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

int __wrap_fsync(int fd)
{
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    note(S_ISDIR(status.st_mode) ? 'd' : 'f');
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    note('r');
    return __real_rename(from, to);
}

static struct by_switchd_store *opened(void)
{
    struct by_switchd_store *store;

    assert_int_equal(by_switchd_store_open(&store, folder, "leaf0"), 0);
    return store;
}

static void put(struct by_switchd_store *store, uint64_t cookie)
{
    size_t bytes;
    uint8_t *image = image_of(cookie, &bytes);

    by_switchd_store_put(store, image, bytes);
    free(image);
}

/* One run of the switch that commits one table. */
static void live(uint64_t cookie)
{
    struct by_switchd_store *store = opened();

    put(store, cookie);
    by_switchd_store_close(store);
}

/* Returns the cookie of the table offered at the next start, 0 = none. The image must be
 * complete. */
static uint64_t offered(void)
{
    struct by_switchd_store *store = opened();
    struct by_image_header header = {0};
    size_t bytes, wanted;
    const uint8_t *saved = by_switchd_store_saved(store, &bytes);
    uint8_t *image;

    if (saved) {
        by_image_header(saved, &header);
        image = image_of(header.cookie, &wanted);
        assert_int_equal(bytes, wanted);
        assert_memory_equal(saved, image, bytes);
        free(image);
    }
    by_switchd_store_close(store);
    return header.cookie;
}

static void the_last_committed_table_comes_back(void **state)
{
    (void)state;
    assert_int_equal(offered(), 0);
    for (uint64_t cookie = 1; cookie <= 5; cookie++) {
        live(cookie);
        assert_int_equal(offered(), cookie);
        assert_int_equal(offered(), cookie); /* reading changes nothing */
    }
}

static void of_many_tables_in_a_row_the_last_one_comes_back(void **state)
{
    struct by_switchd_store *store = opened();

    (void)state;
    for (uint64_t cookie = 1; cookie <= 200; cookie++)
        put(store, cookie);
    by_switchd_store_close(store);
    assert_int_equal(offered(), 200);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
}

/* The same, without the messages about damaged files in the test's output. */
static uint64_t offered_quietly(void)
{
    int saved = dup(STDERR_FILENO);
    uint64_t cookie;

    assert_non_null(freopen("/dev/null", "w", stderr));
    cookie = offered();
    dup2(saved, STDERR_FILENO);
    close(saved);
    return cookie;
}

static void damage_anywhere_in_the_newest_copy_brings_the_one_before(void **state)
{
    struct stat status;

    (void)state;
    live(1);
    live(2); /* stored in copy 0 */
    assert_int_equal(stat(path_of(0), &status), 0);
    for (long at = 0; at < status.st_size; at++) {
        if (at >= 24 && at < 32)
            continue; /* these bytes have no meaning */
        change_byte(path_of(0), at);
        if (offered_quietly() != 1)
            fail_msg("byte %ld was changed, and the copy is believed", at);
        change_byte(path_of(0), at);
    }
    assert_int_equal(offered(), 2);
    for (long bytes = status.st_size - 1; bytes >= 0; bytes -= 37) {
        assert_int_equal(truncate(path_of(0), bytes), 0);
        assert_int_equal(offered_quietly(), 1);
    }
    /* The next table replaces the damaged copy and is the newest again. */
    live(3);
    assert_int_equal(offered(), 3);
}

static void two_damaged_copies_offer_nothing(void **state)
{
    (void)state;
    live(1);
    live(2);
    change_byte(path_of(0), 40);
    change_byte(path_of(1), 40);
    assert_int_equal(offered_quietly(), 0);
}

static void a_folder_that_is_not_there_is_refused(void **state)
{
    struct by_switchd_store *store;
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(freopen("/dev/null", "w", stderr));
    assert_int_equal(by_switchd_store_open(&store, "/nowhere/at/all", "leaf0"), BY_ENOENT);
    assert_int_equal(by_switchd_store_open(&store, "/dev/null", "leaf0"), BY_ENOENT);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void a_copy_and_then_its_name_reach_the_disk(void **state)
{
    struct by_switchd_store *store = opened();
    size_t bytes;
    uint8_t *image = image_of(77, &bytes);

    (void)state;
    memset(order, 0, sizeof order);
    by_switchd_store_put(store, image, bytes);
    by_switchd_store_close(store);
    assert_string_equal(order, "frd");
    free(image);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_last_committed_table_comes_back),
        TEST(of_many_tables_in_a_row_the_last_one_comes_back),
        TEST(damage_anywhere_in_the_newest_copy_brings_the_one_before),
        TEST(two_damaged_copies_offer_nothing),
        TEST(a_copy_and_then_its_name_reach_the_disk),
        TEST(a_folder_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
