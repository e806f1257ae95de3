/* The text form of jobs: numbers, collectives, roots and ranks as users write them, each limit, and
 * the text of each fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/job.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

/* A name of the greatest length. */
#define LONGEST "h1.a.host.whose.name.is.as.long.as.they.may.be."

enum { H0, LONG, H2, X0 };

static struct by_topology *topology;

/* Returns what a job contains, "7: allreduce broadcast@2 h0 h1", without hosts if it has all of
 * them; or the fault. */
static const char *parse(const char *text)
{
    static char line[600];
    struct by_problem problem = {0};
    struct by_job_spec spec;
    size_t used;
    int error = by_job_parse(text, topology, &spec, &problem);

    if (error != 0) {
        assert_null(spec.member);
        snprintf(line, sizeof(line), "%s: %s", by_error_name(error), problem.text);
        return line;
    }
    used = (size_t)snprintf(line, sizeof(line), "%u:", spec.job);
    for (uint32_t i = 0; i < spec.want_count; i++) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, " %s",
                                 by_collective_name(spec.wants[i].collective));
        if (spec.wants[i].root != -1)
            used += (size_t)snprintf(line + used, sizeof(line) - used, "@%d", (int)spec.wants[i].root);
    }
    for (uint32_t n = 0; spec.member != NULL && n < topology->node_count; n++)
        if (spec.member[n])
            used += (size_t)snprintf(line + used, sizeof(line) - used, " h%u", n);
    assert_true(spec.share.num == 0 && spec.share.den == 1 && spec.window == 0 && !spec.is_group);
    by_job_spec_free(&spec);
    assert_null(spec.member);
    return line;
}

static void texts_give_jobs(void **state)
{
    static const struct {
        const char *text, *job;
    } rows[] = {
        {"1=allreduce", "1: allreduce"},
        {"1023=allreduce", "1023: allreduce"},
        {"9=reduce-scatter", "9: allreduce reduce-scatter"}, /* ranks synchronize with it */
        {"2=barrier", "2: allreduce"},
        {"2=barrier,allreduce,barrier", "2: allreduce"},
        {"2=broadcast", "2: allreduce broadcast@0"},
        {"2=broadcast,broadcast@h0", "2: allreduce broadcast@0"},
        {"2=broadcast@h2,broadcast@h0,reduce@h2", "2: allreduce broadcast@2 broadcast@0 reduce@2"},
        {"2=broadcast@" LONGEST, "2: allreduce broadcast@1"},
        {"2=all", "2: allreduce reduce-scatter allgather broadcast@0 reduce@0"},
        {"2=broadcast@h2,all", "2: allreduce broadcast@2 reduce-scatter allgather broadcast@0 reduce@0"},
        {"3=allgather,", "3: allreduce allgather"},
        {"3=allgather:h2,h0", "3: allreduce allgather h0 h2"},
        {"3=reduce:h2," LONGEST, "3: allreduce reduce@1 h1 h2"},
        {"3=all:h0,h2", "3: allreduce reduce-scatter allgather broadcast@0 reduce@0 h0 h2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(parse(rows[i].text), rows[i].job);
}

static void texts_without_a_number_or_collectives_are_refused(void **state)
{
    static const char *const texts[] = {
        "",    "1",   "=allreduce", "/=allreduce",  ":=allreduce", "-1=allreduce",
        " 1=", "1:h", "1=",         "1x=allreduce", "+1=reduce"};
    char line[300], longest[100];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        snprintf(line, sizeof(line),
                 "EINVAL: job '%s': write NUMBER=COLLECTIVES[:RANKS], such as 1=allreduce,broadcast or "
                 "2=all:host0,host1",
                 texts[i]);
        assert_string_equal(parse(texts[i]), line);
    }
    memset(longest, 'j', sizeof(longest));
    longest[99] = 0;
    snprintf(line, sizeof(line), "EINVAL: job '%.60s': write", longest);
    assert_int_equal(strncmp(parse(longest), line, strlen(line)), 0);
}

static void numbers_and_names_are_checked(void **state)
{
    static const struct {
        const char *text, *fault;
    } rows[] = {
        {"0=allreduce", "ELIMIT: job 0: a job's number is between 1 and 1023"},
        {"1024=allreduce", "ELIMIT: job 1024: a job's number is between 1 and 1023"},
        {"65537=allreduce", "ELIMIT: job 65537: a job's number is between 1 and 1023"},
        {"1=:h0,h2", "EINVAL: no collective: name at least one"},
        {"1=allreduce@h0", "EINVAL: allreduce has no root: remove the @ and what follows it"},
        {"1=barrier@h0", "EINVAL: barrier has no root: remove the @ and what follows it"},
        {"1=broadcast@", "EINVAL: root '' is not a rank of the job: name one of its hosts"},
        {"1=broadcast@x0", "EINVAL: root 'x0' is not a rank of the job: name one of its hosts"},
        {"1=broadcast@h2x", "EINVAL: root 'h2x' is not a rank of the job: name one of its hosts"},
        {"1=broadcast@" LONGEST "x",
         "EINVAL: root '" LONGEST "x' is not a rank of the job: name one of its hosts"},
        {"1=broadcast@h2:h0," LONGEST, "EINVAL: root 'h2' is not a rank of the job: name one of its hosts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(parse(rows[i].text), rows[i].fault);
    assert_string_equal(parse("1=allred"),
                        "EINVAL: no collective named 'allred'; available: allreduce, reduce-scatter, "
                        "allgather, broadcast, reduce, barrier");
    assert_non_null(strstr(parse("1=al"), "no collective named 'al';"));
    assert_non_null(strstr(parse("1=alls"), "no collective named 'alls';"));
    assert_non_null(strstr(parse("1=ald"), "no collective named 'ald';"));
    assert_non_null(strstr(parse("1=reduce,,reduce"), "no collective named '';"));
    assert_non_null(strstr(parse("1=a23456789012345678901234567890"), "'a23456789012345678901234567890';"));
    assert_non_null(strstr(parse("1=a234567890123456789012345678901"), "'a234567890123456789012345678901'"));
    assert_non_null(strstr(parse("1=a2345678901234567890123456789012"), "'a234567890123456789012345678901'"));
    assert_non_null(
        strstr(parse("1=a23456789012345678901234567890123"), "'a234567890123456789012345678901'"));
}

static void ranks_come_from_the_text_or_a_file(void **state)
{
    char path[] = "/tmp/by-test-ranks-XXXXXX", text[60];
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "h2\nh0\n", 6), 6);
    close(fd);
    snprintf(text, sizeof(text), "4=allgather:@%s", path);
    assert_string_equal(parse(text), "4: allreduce allgather h0 h2");
    unlink(path);
    assert_int_equal(strncmp(parse(text), "E", 1), 0);
    assert_non_null(strstr(parse(text), ": job 4: ranks: "));
    assert_non_null(strstr(parse("4=allgather:h0,nobody"), ": job 4: ranks: "));
    assert_non_null(strstr(parse("4=allgather:h0"), ": job 4: ranks: "));
}

/* Allreduce and fifteen roots. */
static void a_job_has_a_greatest_number_of_plans(void **state)
{
    struct by_job_spec spec = {.job = 1};
    struct by_problem problem = {0};
    struct by_topology *many =
        bench_topology("h0 h1 h2 h3 h4 h5 h6 h7 x0*", "h0-x0 h1-x0 h2-x0 h3-x0 h4-x0 h5-x0 h6-x0 h7-x0");

    (void)state;
    for (uint32_t i = 0; i + 1 < BY_JOB_PLANS_MAX; i++) {
        char want[40];

        snprintf(want, sizeof(want), "%s@h%u", i < 8 ? "broadcast" : "reduce", i % 8);
        assert_int_equal(by_job_want(&spec, want, strlen(want), many, &problem), 0);
        assert_int_equal(spec.want_count, i + 2);
        assert_int_equal(spec.wants[i + 1].root, i % 8);
    }
    assert_int_equal(by_job_want(&spec, "reduce@h6", 9, many, &problem), 0); /* it has that one */
    assert_int_equal(by_job_want(&spec, "reduce@h7", 9, many, &problem), BY_ELIMIT);
    assert_string_equal(problem.text,
                        "more than 16 plans: list fewer roots; the trees of allreduce serve the "
                        "others");
    assert_int_equal(spec.want_count, BY_JOB_PLANS_MAX);
    assert_int_equal(by_job_wants(&spec, "reduce@h6,reduce@h7,nothing", many, &problem), BY_ELIMIT);
    by_topology_free(many);
}

static void ranks_are_numbered_over_the_members(void **state)
{
    struct by_job_spec spec = {.job = 1};

    (void)state;
    assert_int_equal(by_job_rank_count(&spec, topology), 3);
    assert_int_equal(by_job_node(&spec, topology, 2), H2);
    assert_int_equal(by_job_node(&spec, topology, 3), -1);
    spec.member = by_alloc(topology->node_count, sizeof(bool));
    spec.member[LONG] = spec.member[H2] = spec.member[X0] = true; /* a switch is none */
    assert_int_equal(by_job_rank_count(&spec, topology), 2);
    assert_int_equal(by_job_node(&spec, topology, 0), LONG);
    assert_int_equal(by_job_node(&spec, topology, 1), H2);
    assert_int_equal(by_job_node(&spec, topology, 2), -1);
    by_job_spec_free(&spec);
}

static void states_have_names_and_a_job_without_tables_has_no_image(void **state)
{
    struct by_job job = {.spec = {.job = 6}, .state = BY_JOB_FAILED};
    struct by_problem problem = {0};
    uint8_t *bytes = (uint8_t *)&job;
    size_t size = 1;

    (void)state;
    assert_string_equal(by_job_state_name(BY_JOB_STARTING), "starting");
    assert_string_equal(by_job_state_name(BY_JOB_ENDING), "ending");
    assert_int_equal(by_job_image(&job, H0, &bytes, &size, &problem), BY_ESTATE);
    assert_true(bytes == NULL && size == 0);
    assert_string_equal(problem.text, "job 6 has no tables: it is failed");
    by_job_tables_free(NULL);
}

static void an_image_is_that_of_the_lowering(void **state)
{
    static const char *const trees[] = {"1 x0: x0>h0 x0>" LONGEST " x0>h2", NULL};
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));
    struct by_job job = {.spec = {.job = 6}, .state = BY_JOB_RUNNING, .tables = tables};
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job lower = {.job = 6, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_problem problem = {0};
    uint8_t *bytes[2];
    size_t size[2];

    (void)state;
    assert_int_equal(
        by_lower(topology, &lower, 1, &(struct by_lower_options){0}, &tables->lowering, &problem), 0);
    assert_int_equal(by_job_image(&job, H2, &bytes[0], &size[0], &problem), 0);
    assert_int_equal(by_lowering_image(tables->lowering, H2, &bytes[1], &size[1], &problem), 0);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    bench_plan_free(plan);
    by_job_tables_free(tables);
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(strlen(LONGEST), BY_NAME_MAX);
    topology = bench_topology("h0 " LONGEST " h2 x0*", "h0-x0 " LONGEST "-x0 h2-x0");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_topology_free(topology);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_give_jobs),
        cmocka_unit_test(texts_without_a_number_or_collectives_are_refused),
        cmocka_unit_test(numbers_and_names_are_checked),
        cmocka_unit_test(ranks_come_from_the_text_or_a_file),
        cmocka_unit_test(a_job_has_a_greatest_number_of_plans),
        cmocka_unit_test(ranks_are_numbered_over_the_members),
        cmocka_unit_test(states_have_names_and_a_job_without_tables_has_no_image),
        cmocka_unit_test(an_image_is_that_of_the_lowering),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
