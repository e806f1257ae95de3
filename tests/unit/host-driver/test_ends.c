/*
 * How operations end that cannot complete: one rank over UDP on the loopback interface, whose peer
 * never comes or has failed. An abort from another thread ends all operations immediately and wakes
 * all sleepers. Functions that free a communicator return, whatever still arrives.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "offload/base/limits.h"
#include "tests/unit/host-driver/rig.h"

#define REQUESTS 40

static char folder[64];
static struct banyan_context *context;
static struct banyan_comm *comm;

/* Opens rank `rank` of two; the other one is absent. */
static void open_rank(int rank)
{
    char table[96];

    snprintf(table, sizeof(table), "%s/h%d.table", folder, rank);
    rig_set("BANYAN_TABLE", table);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    assert_int_equal(banyan_comm_create(context, 0, &comm), BANYAN_OK);
}

static double seconds_since(uint64_t begin_ns)
{
    return (double)(by_clock_ns() - begin_ns) / 1e9;
}

static void pause_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static _Atomic uint64_t aborted_ns;

static void *abort_soon(void *argument)
{
    pause_ms(300);
    atomic_store(&aborted_ns, by_clock_ns());
    banyan_abort(argument);
    return NULL;
}

static void an_abort_from_another_thread_ends_all_that_is_pending_at_once(void **state)
{
    struct banyan_request *request[REQUESTS];
    static float in[REQUESTS][500], out[REQUESTS][500];
    pthread_t thread;
    int done;

    (void)state;
    open_rank(1);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(banyan_allreduce_init(comm, in[i], out[i], 500, BANYAN_F32, BANYAN_SUM, &request[i]),
                         BANYAN_OK);
        assert_int_equal(banyan_post(request[i]), BANYAN_OK);
    }
    assert_int_equal(pthread_create(&thread, NULL, abort_soon, comm), 0);
    assert_int_equal(banyan_wait(request[0]), BANYAN_EABORTED);
    /* A sleep takes at most 100 ms; this one ended early. */
    if (seconds_since(atomic_load(&aborted_ns)) > 0.08)
        fail_msg("the wait took %.3f s to wake", seconds_since(atomic_load(&aborted_ns)));
    for (int i = 1; i < REQUESTS; i++) {
        assert_int_equal(banyan_test(request[i], &done), BANYAN_EABORTED);
        assert_int_equal(done, 1);
        assert_non_null(strstr(banyan_last_error(), "allreduce of 500 f32"));
    }
    assert_int_equal(banyan_comm_async_error(comm), BANYAN_EABORTED);
    assert_int_equal(banyan_post(request[3]), BANYAN_ESTATE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
}

static void what_runs_when_a_communicator_is_destroyed_holds_nothing_up(void **state)
{
    struct banyan_request *request;
    float in = 1, out;
    uint64_t begin_ns;

    (void)state;
    open_rank(1);
    assert_int_equal(banyan_allreduce_init(comm, &in, &out, 1, BANYAN_F32, BANYAN_SUM, &request), BANYAN_OK);
    assert_int_equal(banyan_post(request), BANYAN_OK);
    begin_ns = by_clock_ns();
    expect(banyan_finalize(context), BANYAN_EBUSY, "1 communicators exist");
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    if (seconds_since(begin_ns) > 0.5)
        fail_msg("it took %.3f s", seconds_since(begin_ns));
}

static void the_error_of_a_dead_peer_is_typed_and_all_is_freed(void **state)
{
    struct banyan_request *first, *second;
    float in = 1, out[2];
    uint64_t begin_ns;

    (void)state;
    rig_set("BANYAN_TIMEOUT", "0.5");
    open_rank(0);
    assert_int_equal(banyan_allreduce_init(comm, &in, &out[0], 1, BANYAN_F32, BANYAN_SUM, &first), BANYAN_OK);
    assert_int_equal(banyan_allreduce_init(comm, &in, &out[1], 1, BANYAN_F32, BANYAN_MAX, &second),
                     BANYAN_OK);
    assert_int_equal(banyan_post(first), BANYAN_OK);
    assert_int_equal(banyan_post(second), BANYAN_OK);
    begin_ns = by_clock_ns();
    expect(banyan_wait(first), BANYAN_ETIMEDOUT, "h1 (rank 1)");
    assert_int_equal(banyan_comm_async_error(comm), BANYAN_ETIMEDOUT);
    assert_int_equal(banyan_wait(second), BANYAN_EABORTED);
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    if (seconds_since(begin_ns) > 1.5)
        fail_msg("it took %.3f s", seconds_since(begin_ns));
    rig_set("BANYAN_TIMEOUT", NULL);
}

static atomic_int talking;

/* A sender that never stops. */
static void *talk(void *argument)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(BY_UDP_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    static const char noise[64];

    (void)argument;
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    while (atomic_load(&talking)) {
        sendto(fd, noise, sizeof(noise), 0, (const struct sockaddr *)&to, sizeof(to));
        pause_ms(2);
    }
    close(fd);
    return NULL;
}

static void an_inner_node_leaves_though_somebody_never_falls_silent(void **state)
{
    uint64_t begin_ns, heard = 0, value;
    const char *name;
    pthread_t thread;
    double took;

    (void)state;
    rig_set("BANYAN_TIMEOUT", "0.7");
    /* Silence of 0.4 s: on a busy machine the sender may not run for tens of milliseconds. */
    rig_set("BANYAN_LINGER", "4000");
    open_rank(0); /* the root of the tree, which lingers */
    atomic_store(&talking, 1);
    assert_int_equal(pthread_create(&thread, NULL, talk, NULL), 0);
    pause_ms(50);
    begin_ns = by_clock_ns();
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    took = seconds_since(begin_ns);
    atomic_store(&talking, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_LINGER", NULL);
    if (took < 0.6 || took > 3)
        fail_msg("it took %.3f s: with noise it lingers for BANYAN_TIMEOUT, and no longer", took);
    /* Without packets it ends soon. */
    open_rank(0);
    for (uint32_t i = 0; banyan_comm_counter(comm, i, &name, &value) == BANYAN_OK; i++)
        heard += strcmp(name, "endpoint/rx") == 0 ? value : 0;
    assert_int_equal(heard, 0);
    begin_ns = by_clock_ns();
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    if (seconds_since(begin_ns) > 0.5)
        fail_msg("in silence it took %.3f s", seconds_since(begin_ns));
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_TIMEOUT", NULL);
}

/* Returns the locked memory of this process (bytes). */
static unsigned long long locked_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[128];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "VmLck: %llu", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

static void a_registered_buffer_stays_in_memory_until_it_is_let_go(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *buffer, *other;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* mlock() of the sanitizer has no effect */
#endif
    buffer = aligned_alloc(page, 4 * page);
    other = aligned_alloc(page, page);
    open_rank(1);
    expect(banyan_register(NULL, buffer, page), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_register(comm, NULL, page), BANYAN_EINVAL, "buffer is NULL");
    expect(banyan_register(comm, buffer, 0), BANYAN_EINVAL, "0 bytes");
    expect(banyan_register(comm, (void *)page, page), BANYAN_EINVAL, "mapped memory of this process");
    expect(banyan_deregister(comm, buffer), BANYAN_ENOENT, "no registered buffer");
    assert_int_equal(locked_bytes(), 0);
    assert_int_equal(banyan_register(comm, buffer, 4 * page), BANYAN_OK);
    assert_int_equal(locked_bytes(), 4 * page);
    expect(banyan_register(comm, buffer, page), BANYAN_EEXIST, "registered already");
    assert_int_equal(banyan_register(comm, other, page), BANYAN_OK);
    assert_int_equal(banyan_deregister(comm, buffer), BANYAN_OK);
    assert_int_equal(locked_bytes(), page);
    assert_int_equal(banyan_comm_destroy(comm), BANYAN_OK);
    assert_int_equal(locked_bytes(), 0);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    free(buffer);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_from_another_thread_ends_all_that_is_pending_at_once),
        cmocka_unit_test(what_runs_when_a_communicator_is_destroyed_holds_nothing_up),
        cmocka_unit_test(the_error_of_a_dead_peer_is_typed_and_all_is_freed),
        cmocka_unit_test(a_registered_buffer_stays_in_memory_until_it_is_let_go),
        cmocka_unit_test(an_inner_node_leaves_though_somebody_never_falls_silent),
    };
    int failed;

    rig_set("BANYAN_LOG", "0");
    rig_set("BANYAN_TRANSPORT", "udp");
    rig_write_loopback(2, folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_remove(folder);
    return failed;
}
