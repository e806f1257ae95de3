/*
 * Calls under way in the plugin for MPI, over a libbanyan of which one call runs until the test
 * ends it: when a program that waits in MPI sleeps, and when it does not. The stand-ins below count
 * the sleeps of the test's own thread; the plugin's thread may move packets meanwhile.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "host-driver/plugin/mpi/flight.h"

#define PATIENCE_NS 10000000000u
#define APART_NS    1000000u /* processor time between two tests of a program that computes */

static struct by_mpi_lane world;
static pthread_t program;
static atomic_bool done;
static atomic_uint naps; /* waits of the program's thread inside by_mpi_progress */

static void compute_for(uint64_t ns)
{
    const uint64_t end = by_clock_thread_ns() + ns;

    while (by_clock_thread_ns() < end)
        ;
}

/* ---- stand-ins for libbanyan and core.c ---- */

banyan_status_t banyan_post(struct banyan_request *request)
{
    (void)request;
    return BANYAN_OK;
}

banyan_status_t banyan_test(struct banyan_request *request, int *has_ended)
{
    (void)request;
    *has_ended = done;
    return BANYAN_OK;
}

banyan_status_t banyan_wait_for(struct banyan_request *request, uint64_t microseconds, int *has_ended)
{
    if (pthread_equal(pthread_self(), program))
        naps++;
    usleep((useconds_t)microseconds);
    return banyan_test(request, has_ended);
}

banyan_status_t banyan_comm_progress(struct banyan_comm *comm)
{
    (void)comm;
    return BANYAN_OK;
}

banyan_status_t banyan_comm_async_error(const struct banyan_comm *comm)
{
    (void)comm;
    return BANYAN_OK;
}

banyan_status_t banyan_comm_destroy(struct banyan_comm *comm)
{
    (void)comm;
    return BANYAN_OK;
}

banyan_status_t banyan_free(struct banyan_request *request)
{
    (void)request;
    return BANYAN_OK;
}

const char *banyan_last_error(void)
{
    return "none";
}

struct by_mpi_lane *by_mpi_world(void)
{
    return &world;
}

int by_mpi_request(const struct by_mpi_lane *lane, const struct by_mpi_call *call,
                   struct banyan_request **request)
{
    (void)lane;
    (void)call;
    *request = (struct banyan_request *)&world;
    return BANYAN_OK;
}

void by_mpi_count(banyan_collective_t collective)
{
    (void)collective;
}

/* ---- tests ---- */

static void start(struct by_mpi_flight *flight)
{
    done = false;
    naps = 0;
    *flight = (struct by_mpi_flight){.lane = &world, .call = {.collective = BANYAN_BARRIER}};
    assert_int_equal(by_mpi_open(flight), BANYAN_OK);
    by_mpi_start(flight);
    assert_false(by_mpi_has_ended(flight));
}

static void finish(struct by_mpi_flight *flight)
{
    const uint64_t limit = by_clock_ns() + PATIENCE_NS;

    done = true;
    while (!by_mpi_has_ended(flight) && by_clock_ns() < limit)
        by_mpi_progress();
    assert_true(by_mpi_has_ended(flight));
    assert_int_equal(flight->status, BANYAN_OK);
    by_mpi_close(flight);
}

/* MPI_Wait asks again and again; processes that share the program's processors need them. */
static void a_program_that_waits_for_a_slow_call_sleeps(void **state)
{
    const uint64_t limit = by_clock_ns() + PATIENCE_NS;
    struct by_mpi_flight flight;

    (void)state;
    start(&flight);
    while (naps < 3 && by_clock_ns() < limit)
        assert_int_equal(by_mpi_progress(), 0);
    assert_true(naps >= 3);
    finish(&flight);
}

static void a_program_that_computes_between_its_tests_is_not_delayed(void **state)
{
    struct by_mpi_flight flight;

    (void)state;
    start(&flight);
    for (unsigned i = 0; i < 50; i++) {
        compute_for(APART_NS);
        assert_int_equal(by_mpi_progress(), 0);
    }
    assert_int_equal(naps, 0);
    finish(&flight);
}

static void a_program_without_calls_does_not_sleep(void **state)
{
    const uint64_t end = by_clock_ns() + 20 * APART_NS;

    (void)state;
    naps = 0;
    while (by_clock_ns() < end)
        assert_int_equal(by_mpi_progress(), 0);
    assert_int_equal(naps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_waits_for_a_slow_call_sleeps),
        cmocka_unit_test(a_program_that_computes_between_its_tests_is_not_delayed),
        cmocka_unit_test(a_program_without_calls_does_not_sleep),
    };
    int failed;

    program = pthread_self();
    by_mpi_lane_open(&world);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    by_mpi_land();
    return failed;
}
