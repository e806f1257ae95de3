/*
 * banyan top without a terminal: a status of banyand, or the answers of a switch, become a view;
 * two views give rates and missing ranks; and a view becomes lines that fit the screen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/view/top/draw.h"
#include "control/view/top/source.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/star.h"

#define SECOND UINT64_C(1000000000)

/* Two switches, one of which is down, and two jobs; `bytes` is the number received by p0 of
 * leaf0. */
static void read_status(struct by_top_view *view, unsigned long bytes, const char *boot)
{
    struct by_problem problem = {0};
    char text[4096];

    snprintf(
        text, sizeof(text),
        "{\"version\": \"0.1.0\", \"topology\": \"two\", \"leads\": true, \"changing\": false,"
        " \"links_down\": [{\"a\": \"leaf0\", \"b\": \"host1\"}],"
        " \"switches\": [{\"name\": \"leaf0\", \"state\": \"up\", \"boot\": \"%s\","
        "   \"table\": \"1\", \"table_wanted\": \"1\","
        "   \"slots\": {\"limit\": 1024, \"held\": 768}, \"entries\": {\"limit\": 100, \"held\": 3},"
        "   \"ports\": [{\"name\": \"p0\", \"peer\": \"host0\", \"down\": false, \"rx_bytes\": %lu, "
        "\"tx_bytes\": 5, \"rx_dropped\": 0, \"tx_dropped\": 0, \"rx_capacity\": 1e9, \"tx_capacity\": 1e9},"
        "             {\"name\": \"p1\", \"peer\": \"host1\", \"down\": true, \"rx_bytes\": 0, "
        "\"tx_bytes\": 0}],"
        "   \"waiting\": [{\"job\": 1, \"tree\": 0, \"chunk\": 41, \"waits_for\": \"children\", "
        "\"missing\": [\"host1\"]}]},"
        "  {\"name\": \"spine0\", \"state\": \"down\", \"error\": \"no answer within 100 ms\", \"ports\": "
        "[]}],"
        " \"jobs\": [{\"job\": 1, \"name\": \"train\", \"state\": \"running\", \"generation\": 4, \"ranks\": "
        "2,"
        "   \"held\": [{\"switch\": \"leaf0\", \"slots\": 512}, {\"switch\": \"spine0\", \"slots\": 256}]},"
        "  {\"job\": 7, \"name\": \"eval\", \"state\": \"failed\", \"text\": \"no way around spine0\", "
        "\"generation\": 2, \"ranks\": 2, \"held\": []}]}",
        boot, bytes);
    *view = (struct by_top_view){0};
    assert_int_equal(by_top_read_status(text, view, &problem), 0);
}

/* Returns the screen of a view as one text; the caller frees it. */
static char *draw(const struct by_top_view *view, unsigned columns, bool colours)
{
    struct by_top_page page = {0};
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    by_top_draw(view, "12:00:00", columns, colours, &page);
    for (uint32_t i = 0; i < page.count; i++)
        fprintf(stream, "%s\n", page.lines[i]);
    fclose(stream);
    by_top_page_free(&page);
    return text;
}

static void a_status_becomes_a_screen(void **state)
{
    static const char wanted[] =
        " banyan top  two                                                      banyand 0.1.0  12:00:00\n"
        " 1 of 2 switches up, 2 ports, 1 down, 2 jobs\n"
        "\n"
        " JOB NAME  STATE    GEN  RANKS   SLOTS  WAITS FOR\n"
        "   1 train running    4      2     512  host1 at leaf0 (tree 0, chunk 41)\n"
        "   7 eval  failed     2      2       0  -\n"
        "     no way around spine0\n"
        "\n"
        " SWITCH STATE SLOTS                 HELD     ENTRIES        IN       OUT  DROPPED\n"
        " leaf0  up    [||||||||  ]      768/1024       3/100  250 MB/s         -        -\n"
        " spine0 down  no answer within 100 ms\n"
        "\n"
        " LINK          OUT                           IN\n"
        " leaf0   host0 [          ]         -   0%   [|||       ]  250 MB/s  25%\n"
        " leaf0   host1 down\n";
    struct by_top_view before, view;
    char *text;

    (void)state;
    read_status(&before, 1000, "aa");
    read_status(&view, 500001000, "aa");
    before.time_ns = 5 * SECOND;
    view.time_ns = 7 * SECOND;
    by_top_rates(&view, &before);
    text = draw(&view, 94, false);
    assert_string_equal(text, wanted);
    free(text);
    by_top_view_free(&before);
    by_top_view_free(&view);
}

static void the_status_of_a_follower_names_the_leader(void **state)
{
    struct by_top_view view = {0};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_top_read_status("{\"version\": \"0.1.0\", \"topology\": \"two\", \"leads\": false, "
                                        "\"follows\": true, \"text\": \"banyand on a leads\"}",
                                        &view, &problem),
                     BY_EAGAIN);
    assert_non_null(strstr(problem.text, "this banyand follows: banyand on a leads"));
    by_top_view_free(&view);
}

static void a_switch_that_has_restarted_begins_anew(void **state)
{
    struct by_top_view before, view;

    (void)state;
    read_status(&before, 1000, "aa");
    read_status(&view, 500001000, "bb");
    before.time_ns = SECOND;
    view.time_ns = 2 * SECOND;
    by_top_rates(&view, &before);
    assert_true(view.switches[0].ports[0].rx_rate == 0);
    assert_false(view.switches[0].waits[0].is_old);
    by_top_view_free(&before);
    by_top_view_free(&view);
}

static void a_chunk_that_is_only_late_names_nobody(void **state)
{
    struct by_top_view before, view;
    char *text;

    (void)state;
    read_status(&before, 1000, "aa");
    read_status(&view, 1000, "aa");
    before.switches[0].waits[0].chunk = 40;
    view.time_ns = SECOND;
    by_top_rates(&view, &before);
    text = draw(&view, 94, false);
    assert_null(strstr(text, "host1 at leaf0"));
    free(text);
    by_top_view_free(&before);
    by_top_view_free(&view);
}

/* Returns the number of visible characters of a line. */
static unsigned seen(const char *line, size_t length)
{
    unsigned columns = 0;
    bool escape = false;

    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\033')
            escape = true;
        else if (!escape)
            columns += (line[i] & 0xc0) != 0x80;
        else if (line[i] == 'm')
            escape = false;
    }
    return columns;
}

static void no_line_is_wider_than_the_screen_whatever_its_size(void **state)
{
    struct by_top_view view;

    (void)state;
    read_status(&view, 1000, "aa");
    strcpy(view.switches[0].name, "a-switch-with-a-name-of-forty-characters");
    strcpy(view.jobs[0].name, "h\303\266rsaal-\303\274bung"); /* characters of two bytes */
    for (unsigned columns = 40; columns < 200; columns += 7) {
        for (int colours = 0; colours < 2; colours++) {
            char *text = draw(&view, columns, colours);

            for (const char *line = text; *line; line = strchr(line, '\n') + 1)
                assert_true(seen(line, strcspn(line, "\n")) <= columns);
            assert_int_equal(strchr(text, '\033') != NULL, colours);
            free(text);
        }
    }
    by_top_view_free(&view);
}

static void switches_that_are_asked_directly_tell_jobs_and_who_is_missing(void **state)
{
    const struct star star = {.hosts = 3, .trees = 2, .window = 64, .payload_max = 64, .mtu = 1500};
    by_HelloReply hello = {.slot_count = 1024, .slots_used = 128, .table_hash = 1, .boot_nonce = 3};
    static by_CountersReply counters;
    static by_WaitingReply waiting;
    struct by_top_view view = {0};
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);

    (void)state;
    counters.ports_count = 3;
    strcpy(counters.ports[2].name, "p2");
    counters.ports[2].down = true;
    waiting.entries_count = 2;
    waiting.entries[0] = (by_WaitingEntry){.job = STAR_JOB, .tree = 1, .seq = 9, .state = 2, .missing = 6};
    waiting.entries[1] = (by_WaitingEntry){.job = STAR_JOB, .tree = 0, .seq = 9, .state = 3};
    by_top_read_switch(&view, "leaf0", &hello, &counters, &waiting, image, NULL);
    assert_int_equal(view.job_count, 1);
    assert_int_equal(view.jobs[0].job, STAR_JOB);
    assert_int_equal(view.jobs[0].generation, STAR_GEN);
    assert_int_equal(view.jobs[0].ranks, 3);
    assert_int_equal(view.jobs[0].slots, 128);
    assert_int_equal(view.down_links, 1);
    assert_string_equal(view.switches[0].ports[1].peer, "node 2");
    assert_string_equal(view.switches[0].waits[0].missing, "node 2, node 3");
    assert_string_equal(view.switches[0].waits[1].missing, "its parent");
    by_top_view_free(&view);
    free(image);
}

static void a_switch_of_another_generation_is_told_of(void **state)
{
    const struct star star = {.hosts = 2, .trees = 1, .window = 64, .payload_max = 64, .mtu = 1500};
    by_HelloReply hello = {.table_hash = 1};
    static by_CountersReply counters;
    static by_WaitingReply waiting;
    struct by_top_view view = {0};
    struct by_image_job job;
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);

    (void)state;
    by_top_read_switch(&view, "leaf0", &hello, &counters, &waiting, image, NULL);
    by_image_job(image, 0, &job);
    job.gen = STAR_GEN + 1;
    by_image_put_job(image, 0, &job);
    by_top_read_switch(&view, "leaf1", &hello, &counters, &waiting, image, NULL);
    assert_string_equal(view.jobs[0].text, "switches have generations 7 and 8");
    by_top_view_free(&view);
    free(image);
}

static void what_comes_of_a_share_is_shown_below_its_job(void **state)
{
    static const char *const status[] = {
        "{\"switches\": [{\"name\": \"a\", \"state\": \"up\", \"shares\": [{\"job\": 0, \"rx_bytes\": 5}, "
        "{\"job\": 3, "
        "\"share\": 0.25, \"rx_bytes\": 1000, \"held\": 1, \"dropped\": 0}]}], \"jobs\": [{\"job\": 3}, "
        "{\"job\": 4}]}",
        "{\"switches\": [{\"name\": \"a\", \"state\": \"up\", \"shares\": [{\"job\": 3, \"share\": 0.25, "
        "\"rx_bytes\": 4001000,"
        " \"held\": 201, \"dropped\": 6}]}, {\"name\": \"b\", \"shares\": [{\"job\": 3, \"share\": 0.25, "
        "\"rx_bytes\": 2000000,"
        " \"held\": 0, \"dropped\": 0}]}], \"jobs\": [{\"job\": 3}, {\"job\": 4}]}"};
    struct by_top_view view[2] = {{0}};
    struct by_problem problem = {0};
    char *text;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(by_top_read_status(status[i], &view[i], &problem), 0);
        view[i].time_ns = (5 + 2 * i) * SECOND;
    }
    assert_int_equal(view[1].job_count, 2); /* the record of jobs without a share does not count */
    by_top_rates(&view[1], &view[0]);
    text = draw(&view[1], 100, false);
    assert_non_null(
        strstr(text, "\n     share 0.25: 3.00 MB/s received, 100 packets/s held back, 3/s dropped\n   4 "));
    assert_null(strstr(strstr(text, "share") + 1, "share"));
    free(text);
    by_top_view_free(&view[0]);
    by_top_view_free(&view[1]);
}

static void what_is_no_status_is_refused_and_a_strange_one_shows_what_it_can(void **state)
{
    struct by_top_view view = {0};
    struct by_problem problem = {0};
    char *text;

    (void)state;
    assert_int_equal(by_top_read_status("<html>", &view, &problem), BY_EFORMAT);
    assert_int_equal(by_top_read_status("[]", &view, &problem), BY_EFORMAT);
    assert_non_null(strstr(problem.text, "not banyand's"));
    assert_int_equal(by_top_read_status("{\"switches\": [{}, 5, {\"name\": 7, \"ports\": {}}], \"jobs\": 1}",
                                        &view, &problem),
                     0);
    text = draw(&view, 80, true);
    assert_non_null(strstr(text, "0 of 3 switches up"));
    free(text);
    by_top_view_free(&view);
}

static void rates_have_three_digits_and_a_unit(void **state)
{
    static const struct {
        double rate;
        const char *text;
    } cases[] = {{0, "-"},
                 {0.4, "-"},
                 {7, "7 B/s"},
                 {999.4, "999 B/s"},
                 {999.6, "1.00 kB/s"},
                 {12345, "12.3 kB/s"},
                 {9.996e6, "10.0 MB/s"},
                 {123.4e6, "123 MB/s"},
                 {1.2e9, "1.20 GB/s"},
                 {4e13, "40.0 TB/s"}};
    char text[16];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        by_top_rate_text(cases[i].rate, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_becomes_a_screen),
        cmocka_unit_test(the_status_of_a_follower_names_the_leader),
        cmocka_unit_test(a_switch_that_has_restarted_begins_anew),
        cmocka_unit_test(a_chunk_that_is_only_late_names_nobody),
        cmocka_unit_test(no_line_is_wider_than_the_screen_whatever_its_size),
        cmocka_unit_test(switches_that_are_asked_directly_tell_jobs_and_who_is_missing),
        cmocka_unit_test(a_switch_of_another_generation_is_told_of),
        cmocka_unit_test(what_comes_of_a_share_is_shown_below_its_job),
        cmocka_unit_test(what_is_no_status_is_refused_and_a_strange_one_shows_what_it_can),
        cmocka_unit_test(rates_have_three_digits_and_a_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
