/* Which parts the jobs use and need, from the trees and paths that a test sets; and the latest
 * lines about the fabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/fabric.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/say.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"

enum { JOBS = 3, NODES = 4, LINKS = 5 };

static struct {
    struct by_daemon daemon;
    struct by_topology topology;
    bool lost_nodes[NODES], lost_links[LINKS]; /* of the daemon */
    struct by_job jobs[JOBS];
    struct by_job_tables tables[JOBS];
    unsigned uses[JOBS], paths[JOBS]; /* nodes that they use, and without which they have a path, as bits */
    unsigned used_links;              /* by the first job */
    int losses, parts;                /* that exist */
    struct timespec now;
} rig;

/* ---- the other parts ---- */

void by_fabric_loss_init(struct by_fabric_loss *loss, const struct by_topology *topology)
{
    assert_ptr_equal(topology, &rig.topology);
    loss->nodes = by_alloc(NODES, sizeof(bool));
    loss->links = by_alloc(LINKS, sizeof(bool));
    rig.losses++;
}

void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology)
{
    by_fabric_loss_init(to, topology);
    memcpy(to->nodes, from->nodes, NODES * sizeof(bool));
    memcpy(to->links, from->links, LINKS * sizeof(bool));
}

void by_fabric_loss_free(struct by_fabric_loss *loss)
{
    free(loss->nodes);
    free(loss->links);
    rig.losses--;
}

bool by_fabric_is_hit(const struct by_topology *topology, const struct by_job_tables *tables,
                      const struct by_fabric_loss *loss)
{
    size_t job = (size_t)(tables - rig.tables);
    unsigned lost = 0;
    bool hit = false;

    (void)topology;
    for (uint32_t n = 0; n < NODES; n++) {
        lost += loss->nodes[n];
        hit |= loss->nodes[n] && (rig.uses[job] >> n & 1);
    }
    for (uint32_t l = 0; l < LINKS; l++) {
        lost += loss->links[l];
        hit |= loss->links[l] && job == 0 && (rig.used_links >> l & 1);
    }
    assert_int_equal(lost, 1); /* that part alone, whatever else is lost */
    return hit;
}

/* What is lost must be what the daemon has lost and one node. */
int by_fabric_part(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, struct by_topology **part, struct by_problem *problem)
{
    uint32_t without = UINT32_MAX;

    (void)topology;
    (void)problem;
    for (uint32_t n = 0; n < NODES; n++)
        if (loss->nodes[n] && !rig.lost_nodes[n]) {
            assert_int_equal(without, UINT32_MAX);
            without = n;
        }
    assert_memory_equal(loss->links, rig.lost_links, sizeof(rig.lost_links));
    assert_true(without != UINT32_MAX);
    if (!(rig.paths[spec->job - 1] >> without & 1))
        return BY_ENOENT;
    *part = (struct by_topology *)&rig;
    rig.parts++;
    return 0;
}

void by_topology_free(struct by_topology *topology)
{
    assert_ptr_equal(topology, &rig);
    rig.parts--;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    assert_int_equal(clock, CLOCK_REALTIME);
    *now = rig.now;
    return 0;
}

/* ---- the daemon ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.topology.node_count = NODES;
    rig.topology.link_count = LINKS;
    rig.daemon.topology = &rig.topology;
    rig.daemon.loss = (struct by_fabric_loss){rig.lost_nodes, rig.lost_links};
    for (unsigned i = 0; i < JOBS; i++) {
        rig.jobs[i].spec.job = (uint16_t)(i + 1);
        rig.jobs[i].tables = &rig.tables[i];
        rig.daemon.jobs[rig.daemon.job_count++] = &rig.jobs[i];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_true(rig.losses == 0 && rig.parts == 0);
    return 0;
}

/* ---- tests ---- */

static void a_job_uses_the_nodes_and_links_of_its_trees(void **state)
{
    (void)state;
    rig.uses[0] = 1 << 2;
    rig.used_links = 1 << 1 | 1 << 4;
    rig.lost_nodes[2] = true;
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal(by_paths_use(&rig.daemon, &rig.jobs[0], false, n), n == 2);
    for (uint32_t l = 0; l < LINKS; l++)
        assert_int_equal(by_paths_use(&rig.daemon, &rig.jobs[0], true, l), l == 1 || l == 4);
    rig.jobs[0].tables = NULL;
    assert_false(by_paths_use(&rig.daemon, &rig.jobs[0], false, 2));
}

static void a_path_without_a_node_also_avoids_what_is_lost(void **state)
{
    (void)state;
    rig.lost_nodes[0] = rig.lost_links[3] = true;
    rig.paths[1] = 1 << 1 | 1 << 3;
    for (uint32_t n = 1; n < NODES; n++)
        assert_int_equal(by_paths_without(&rig.daemon, &rig.jobs[1], n), n == 1 || n == 3);
}

/* It is needed if some job uses it and each of these has no path without it. */
static void a_node_is_needed_if_no_job_that_uses_it_has_another_path(void **state)
{
    (void)state;
    for (unsigned uses = 0; uses < 8; uses++)
        for (unsigned paths = 0; paths < 8; paths++) {
            for (unsigned i = 0; i < JOBS; i++) {
                rig.uses[i] = (uses >> i & 1) << 3 | 1;
                rig.paths[i] = (paths >> i & 1) << 3;
            }
            assert_int_equal(by_paths_need(&rig.daemon, 3), uses != 0 && (uses & paths) == 0);
        }
    rig.daemon.job_count = 0;
    assert_false(by_paths_need(&rig.daemon, 3));
}

static void a_line_has_its_number_time_and_grade(void **state)
{
    struct by_news *news = by_news_open();
    const struct by_news_line *line;

    (void)state;
    assert_true(by_news_count(news) == 0 && by_news_at(news, 0) == NULL);
    rig.now = (struct timespec){1700000001, 999999};
    by_news_tell(news, BY_NEWS_GOOD, "job %u runs", 3);
    record_expect("said: job 3 runs\n");
    rig.now = (struct timespec){1700000002, 987000000};
    by_news_keep(news, BY_NEWS_BAD, "switch x0 is down");
    record_expect("");
    assert_int_equal(by_news_count(news), 2);
    line = by_news_at(news, 0);
    assert_true(line->number == 2 && line->time_ms == UINT64_C(1700000002987) && line->grade == BY_NEWS_BAD);
    assert_string_equal(line->text, "switch x0 is down");
    line = by_news_at(news, 1);
    assert_true(line->number == 1 && line->time_ms == UINT64_C(1700000001000) && line->grade == BY_NEWS_GOOD);
    assert_string_equal(line->text, "job 3 runs");
    assert_null(by_news_at(news, 2));
    by_news_close(news);
}

static void without_news_lines_are_only_logged(void **state)
{
    (void)state;
    by_news_tell(NULL, BY_NEWS_PLAIN, "a line");
    record_expect("said: a line\n");
    by_news_keep(NULL, BY_NEWS_PLAIN, "another");
    assert_true(by_news_count(NULL) == 0 && by_news_at(NULL, 0) == NULL);
    by_news_close(NULL);
}

/* 699 characters are logged, and 319 kept. */
static void long_lines_are_cut(void **state)
{
    struct by_news *news = by_news_open();
    char text[800];

    (void)state;
    memset(text, 'n', sizeof(text));
    text[799] = 0;
    by_news_tell(news, BY_NEWS_PLAIN, "%s", text);
    assert_int_equal(strlen(recorded), strlen("said: \n") + 699);
    assert_int_equal(strlen(by_news_at(news, 0)->text), BY_NEWS_BYTES - 1);
    by_news_close(news);
}

static void the_oldest_line_is_replaced(void **state)
{
    struct by_news *news = by_news_open();
    char text[20];

    (void)state;
    for (uint64_t i = 1; i <= BY_NEWS_MAX + 2; i++) {
        snprintf(text, sizeof(text), "line %u", (unsigned)i);
        by_news_keep(news, BY_NEWS_PLAIN, text);
        assert_int_equal(by_news_at(news, 0)->number, i);
        if (i == BY_NEWS_MAX)
            assert_string_equal(by_news_at(news, BY_NEWS_MAX - 1)->text, "line 1");
    }
    assert_string_equal(by_news_at(news, BY_NEWS_MAX - 1)->text, "line 3");
    assert_null(by_news_at(news, BY_NEWS_MAX));
    by_news_close(news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_uses_the_nodes_and_links_of_its_trees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_without_a_node_also_avoids_what_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_is_needed_if_no_job_that_uses_it_has_another_path, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_line_has_its_number_time_and_grade, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_news_lines_are_only_logged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_lines_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_line_is_replaced, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
