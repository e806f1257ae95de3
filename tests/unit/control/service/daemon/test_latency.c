/* What the ranks of a job report of their operations: processes that restart, lost and repeated
 * reports, ranks that do not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/latency.h"

static struct by_daemon *daemon_of_one_job(void)
{
    static struct by_topology topology;
    struct by_daemon *daemon = by_alloc(1, sizeof(*daemon));
    struct by_node *nodes = by_alloc(2, sizeof(*nodes));

    topology = (struct by_topology){.node_count = 2, .nodes = nodes};
    nodes[0].compute = nodes[1].compute = true;
    daemon->topology = &topology;
    daemon->jobs[0] = by_alloc(1, sizeof(*daemon->jobs[0]));
    daemon->jobs[0]->spec.job = 7;
    daemon->job_count = 1;
    return daemon;
}

static void close_all(struct by_daemon *daemon)
{
    by_latency_free(daemon->jobs[0]->latency);
    free(daemon->jobs[0]);
    free(daemon->topology->nodes);
    free(daemon);
}

/* A report of `rank` with `operations` allreduces of 100 bytes in all. */
static void report(struct by_daemon *daemon, uint16_t job, uint16_t rank, uint64_t nonce, unsigned operations)
{
    uint8_t bytes[BY_LATENCY_ALL_BYTES] = {0};
    struct by_latency latency = {0};

    for (unsigned i = 0; i < operations; i++)
        by_latency_add(&latency, 100, 20000);
    by_latency_put(&latency, bytes + (size_t)(BY_COLLECTIVE_ALLREDUCE - 1) * BY_LATENCY_BYTES);
    by_latency_take(daemon, &(struct by_daemon_event){.kind = BY_EVENT_MEASURED,
                                                      .job = job,
                                                      .rank = rank,
                                                      .number = nonce,
                                                      .data = bytes,
                                                      .bytes = sizeof(bytes)});
}

static void totals_count_each_operation_once(void **state)
{
    struct by_daemon *daemon = daemon_of_one_job();
    const struct by_latency *total;

    (void)state;
    assert_null(by_latency_of(daemon->jobs[0], BY_COLLECTIVE_ALLREDUCE));
    report(daemon, 7, 0, 1, 3);
    report(daemon, 7, 0, 1, 3); /* repeated */
    report(daemon, 7, 0, 1, 9); /* the reports between were lost */
    report(daemon, 7, 1, 2, 4);
    report(daemon, 7, 1, 3, 2); /* another process of that rank */
    total = by_latency_of(daemon->jobs[0], BY_COLLECTIVE_ALLREDUCE);
    assert_int_equal(total->operations, 15);
    assert_int_equal(total->bytes, 1500);
    assert_int_equal(total->duration_ns, 15 * 20000);
    assert_int_equal(total->of_class[1], 15);
    assert_int_equal(by_latency_of(daemon->jobs[0], BY_COLLECTIVE_BARRIER)->operations, 0);
    close_all(daemon);
}

static void reports_of_others_are_ignored(void **state)
{
    struct by_daemon *daemon = daemon_of_one_job();

    (void)state;
    report(daemon, 8, 0, 1, 3);
    assert_null(by_latency_of(daemon->jobs[0], BY_COLLECTIVE_ALLREDUCE));
    report(daemon, 7, 2, 1, 3);
    report(daemon, 7, 0xffff, 1, 3);
    assert_int_equal(by_latency_of(daemon->jobs[0], BY_COLLECTIVE_ALLREDUCE)->operations, 0);
    close_all(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_count_each_operation_once),
        cmocka_unit_test(reports_of_others_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
