/*
 * The controller against real agents: threads that serve by_agent on UNIX sockets, with a node behind each
 * that can be told to refuse. Coding, deadlines, two-phase push, reading back. The test's own thread is the
 * controller; each server has one thread, joined at its end.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/controller/push.h"
#include "control/controller/session.h"
#include "control/topology/alloc.h"
#include "firmware/agent/agent.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "tests/unit/control/lower/bench.h"

#define IMAGE_MAX 65536u
#define TIMEOUT   2000u

static const struct by_session_options plain = {.timeout_ms = TIMEOUT};

/* A controller that ends at a certain request, counted over all switches. */
struct crash {
    atomic_int left;    /* requests until then */
    atomic_bool before; /* the request is not done any more, else only its answer is lost */
    atomic_int process; /* the controller's, 0 = not yet known */
};

/* A switch that has everything but packets. */
struct fake {
    char address[128], path[108];
    int listener;
    pthread_t thread;
    atomic_int end;
    atomic_int commits, aborts;
    int refuse_stage, refuse_commit; /* errors to give */
    int garbage;                     /* answers nonsense */
    int silent;                      /* answers nothing */
    struct crash *crash;             /* when the controller ends, or NULL */
    uint8_t staged[IMAGE_MAX], active[IMAGE_MAX];
    size_t staged_bytes, active_bytes;
    struct by_agent *agent;
    void *memory;
};

static int fake_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    struct fake *fake = node;

    if (fake->refuse_stage != 0) {
        *fault =
            (struct by_image_fault){.section = "entry", .index = 3, .what = "no room for it", .value = 7};
        return fake->refuse_stage;
    }
    memcpy(fake->staged, image, bytes);
    fake->staged_bytes = bytes;
    return by_image_check(image, bytes, NULL, fault);
}

static int fake_commit(void *node)
{
    struct fake *fake = node;

    if (fake->refuse_commit != 0)
        return fake->refuse_commit;
    memcpy(fake->active, fake->staged, fake->staged_bytes);
    fake->active_bytes = fake->staged_bytes;
    fake->commits++;
    return 0;
}

static void fake_abort(void *node)
{
    ((struct fake *)node)->aborts++;
}

static const uint8_t *fake_image(void *node, size_t *bytes)
{
    struct fake *fake = node;

    *bytes = fake->active_bytes;
    return fake->active_bytes ? fake->active : NULL;
}

static int fake_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    (void)node;
    *out = (struct by_agent_counter){.name = "rx", .value = 12345678901234ull};
    return index == 0 ? 0 : BY_ENOENT;
}

static int fake_port(void *node, uint32_t index, struct by_agent_port *out)
{
    (void)node;
    *out = (struct by_agent_port){.name = index ? "p1" : "p0", .rx_bytes = 1000 + index, .tx_packets = 7};
    return index < 2 ? 0 : BY_ENOENT;
}

static int fake_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    (void)node;
    *out = (struct by_bank_view){.seq = 42, .state = BY_BANK_AGG, .missing = 5};
    return index == 0 ? 0 : BY_EAGAIN;
}

static const struct by_agent_ops ops = {fake_stage,   fake_commit, fake_abort,   fake_image,
                                        fake_counter, fake_port,   fake_waiting, NULL};

/* The next request is here. True when it is the one at which the controller ends, which it then does. */
static bool is_last(struct crash *crash)
{
    if (atomic_fetch_sub(&crash->left, 1) != 1)
        return false;
    while (crash->process == 0)
        usleep(100);
    kill(crash->process, SIGKILL);
    waitpid(crash->process, NULL, 0);
    crash->process = -1;
    return true;
}

/* Serves one client until it leaves. */
static void serve(struct fake *fake, int fd)
{
    static _Thread_local struct by_channel channel;
    static _Thread_local uint8_t in[4096], out[BY_CHANNEL_OUT_MIN];
    ssize_t count;

    by_channel_init(&channel);
    while ((count = recv(fd, in, sizeof(in), 0)) > 0) {
        size_t done = 0, used = 1;
        if (fake->silent)
            continue;
        if (fake->garbage) {
            send(fd, "\0\0\0\4abcd", 8, MSG_NOSIGNAL);
            continue;
        }
        if (fake->crash && fake->crash->before && is_last(fake->crash))
            return;
        while (done < (size_t)count && used > 0) {
            int32_t bytes = by_channel_step(&channel, fake->agent, in + done, (size_t)count - done, &used,
                                            out, sizeof(out));
            if (bytes < 0)
                return;
            done += used;
            if (fake->crash && !fake->crash->before && bytes > 0 && is_last(fake->crash))
                return;
            /* In two pieces: a reader must cope with half a message. */
            if (bytes > 0 && (send(fd, out, (size_t)bytes / 2, MSG_NOSIGNAL) < 0 ||
                              send(fd, out + bytes / 2, (size_t)(bytes - bytes / 2), MSG_NOSIGNAL) < 0))
                return;
        }
    }
}

static void *serve_all(void *argument)
{
    struct fake *fake = argument;

    while (!fake->end) {
        int fd = accept(fake->listener, NULL, NULL);
        if (fd < 0)
            break;
        serve(fake, fd);
        close(fd);
    }
    return NULL;
}

static struct fake *fake_start(const char *name, uint32_t slots)
{
    struct fake *fake = by_alloc(1, sizeof(*fake));
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct by_agent_config config = {.name = name,
                                     .software = "fake 1",
                                     .boot_nonce = 9,
                                     .port_count = 8,
                                     .slot_count = slots,
                                     .payload_max = 8192,
                                     .entry_max = 100,
                                     .image_bytes_max = IMAGE_MAX,
                                     .ops = &ops,
                                     .node = fake};

    snprintf(fake->path, sizeof(fake->path), "/tmp/by-test-%ld-%s.sock", (long)getpid(), name);
    snprintf(fake->address, sizeof(fake->address), "unix:%s", fake->path);
    memcpy(to.sun_path, fake->path, sizeof(to.sun_path));
    unlink(fake->path);
    assert_int_equal(posix_memalign(&fake->memory, 64, by_agent_size(&config)), 0);
    assert_int_equal(by_agent_init(&fake->agent, fake->memory, by_agent_size(&config), &config), 0);
    fake->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fake->listener, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(listen(fake->listener, 8), 0);
    assert_int_equal(pthread_create(&fake->thread, NULL, serve_all, fake), 0);
    return fake;
}

static void fake_stop(struct fake *fake)
{
    fake->end = 1;
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    unlink(fake->path);
    free(fake->memory);
    free(fake);
}

/* Two switches with two hosts each, and their images. */
struct setup {
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct bench_images images;
    struct fake *fake[2];
    struct by_push_target targets[2];
};

static void setup_open(struct setup *setup, uint32_t slots)
{
    static const char *const trees[] = {"1 x0: x0>h0 x0>h1 x0>x1 x1>h2 x1>h3", NULL};
    struct by_plan *plan;
    struct by_lower_job job = {.job = 1, .plan_count = 1};
    struct by_problem problem = {0};
    const struct by_plan *plans[1];

    setup->topology = bench_topology("h0 h1 h2 h3 x0* x1*", "h0-x0 h1-x0 h2-x1 h3-x1 x0-x1");
    plan = bench_plan(setup->topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    plans[0] = plan;
    job.plans = plans;
    assert_int_equal(
        by_lower(setup->topology, &job, 1, &(struct by_lower_options){0}, &setup->lowering, &problem), 0);
    bench_plan_free(plan);
    setup->images = bench_images(setup->lowering);
    for (uint32_t i = 0; i < 2; i++) {
        setup->fake[i] = fake_start(i ? "x1" : "x0", slots);
        setup->targets[i] = (struct by_push_target){.name = i ? "x1" : "x0",
                                                    .address = setup->fake[i]->address,
                                                    .image = setup->images.bytes[4 + i],
                                                    .bytes = setup->images.size[4 + i]};
    }
}

static void setup_close(struct setup *setup)
{
    fake_stop(setup->fake[0]);
    fake_stop(setup->fake[1]);
    bench_images_free(&setup->images);
    by_lowering_free(setup->lowering);
    by_topology_free(setup->topology);
}

static void a_push_makes_every_switch_active_and_reads_back_alike(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct by_session *session;
    uint8_t *image;
    size_t bytes;

    (void)state;
    setup_open(&setup, 4096);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(setup.fake[i]->commits, 1);
        assert_int_equal(by_session_open(setup.fake[i]->address, &plain, &session, &problem), 0);
        assert_int_equal(by_session_read(session, &image, &bytes, &problem), 0);
        assert_int_equal(bytes, setup.targets[i].bytes);
        assert_memory_equal(image, setup.targets[i].image, bytes);
        assert_int_equal(by_image_hash(image, bytes), setup.targets[i].hash);
        free(image);
        by_session_close(session);
    }
    /* Pushing the same again is harmless. */
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    setup_close(&setup);
}

static void a_refusal_by_one_switch_leaves_all_as_they_were(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 4096);
    setup.fake[1]->refuse_stage = BY_ELIMIT;
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "switch x1: "));
    assert_non_null(strstr(problem.text, "no room for it"));
    assert_non_null(strstr(problem.text, "no table was changed"));
    assert_int_equal(setup.fake[0]->commits, 0);
    assert_int_equal(setup.fake[1]->commits, 0);
    assert_int_equal(setup.fake[0]->aborts, 1); /* what x0 had accepted is forgotten */
    setup_close(&setup);
}

static void a_commit_that_fails_says_who_has_the_new_table(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 4096);
    setup.fake[1]->refuse_commit = BY_EBUSY;
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), BY_EBUSY);
    assert_non_null(strstr(problem.text, "switch x1: "));
    assert_non_null(strstr(problem.text, "1 of 2 have the new table: push again"));
    setup.fake[1]->refuse_commit = 0;
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    assert_int_equal(setup.fake[1]->commits, 1);
    setup_close(&setup);
}

/* Which generation a switch has: 0 = none. */
static uint32_t generation(const struct fake *fake)
{
    struct by_image_job job;

    if (fake->active_bytes == 0)
        return 0;
    by_image_job(fake->active, 0, &job);
    return job.gen;
}

/* The same tables in the next generation. */
static void raise_generation(struct setup *setup)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct by_image_job job;

        by_image_job(setup->images.bytes[4 + i], 0, &job);
        job.gen++;
        by_image_put_job(setup->images.bytes[4 + i], 0, &job);
        by_image_seal(setup->images.bytes[4 + i]);
    }
}

/* A push in a process of its own, which ends as `crash` says. True when it did, false when the push was done
 * first. */
static bool push_until(struct setup *setup, struct crash *crash)
{
    struct by_problem problem = {0};
    pid_t process;

    setup->fake[0]->crash = setup->fake[1]->crash = crash;
    process = fork();
    assert_true(process >= 0);
    if (process == 0)
        _exit(by_push(setup->targets, 2, &plain, &problem) != 0);
    crash->process = process;
    while (crash->process > 0 && waitpid(process, NULL, WNOHANG) == 0)
        usleep(200);
    setup->fake[0]->crash = setup->fake[1]->crash = NULL;
    return crash->left <= 0;
}

static void a_controller_that_crashes_at_any_step_leaves_one_generation(void **state)
{
    unsigned crashes[3] = {0}; /* by enum by_push_settled */

    (void)state;
    for (int before = 0; before <= 1; before++)
        for (int step = 1;; step++) {
            struct crash crash = {.left = step, .before = before};
            enum by_push_settled settled;
            struct setup setup;
            struct by_problem problem = {0};
            bool crashed;

            setup_open(&setup, 4096);
            assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
            assert_int_equal(generation(setup.fake[0]), 1);
            raise_generation(&setup);
            crashed = push_until(&setup, &crash);
            if (by_push_settle(setup.targets, 2, &plain, &settled, &problem) != 0)
                fail_msg("step %d: %s", step, problem.text);
            crashes[settled] += crashed;
            if (generation(setup.fake[0]) != generation(setup.fake[1]))
                fail_msg("step %d, %s the request: generation %u at one switch, %u at the other", step,
                         before ? "before" : "after", generation(setup.fake[0]), generation(setup.fake[1]));
            if (settled != BY_PUSH_CLEAR)
                assert_int_equal(generation(setup.fake[0]), settled == BY_PUSH_FORWARD ? 2 : 1);
            /* Settling again finds nothing, and the next push goes as ever. */
            assert_int_equal(by_push_settle(setup.targets, 2, &plain, &settled, &problem), 0);
            assert_int_equal(settled, BY_PUSH_CLEAR);
            assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
            assert_int_equal(generation(setup.fake[0]), 2);
            assert_int_equal(generation(setup.fake[1]), 2);
            setup_close(&setup);
            if (!crashed)
                break;
        }
    /* Two switches: Hello, Stage and Validate each, then Commit each. */
    assert_int_equal(crashes[0] + crashes[1] + crashes[2], 2 * 8);
    assert_true(crashes[BY_PUSH_FORWARD] >= 2 && crashes[BY_PUSH_BACK] >= 4);
}

static void a_controller_that_another_one_has_settled_cannot_go_on(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct by_session *old[2];
    enum by_push_settled settled;

    (void)state;
    setup_open(&setup, 4096);
    /* One controller has validated everywhere and is about to commit; another one settles. */
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t hash = by_image_hash(setup.targets[i].image, setup.targets[i].bytes);

        assert_int_equal(by_session_open(setup.fake[i]->address,
                                         &(struct by_session_options){TIMEOUT, 5, NULL}, &old[i], &problem),
                         0);
        assert_int_equal(by_session_stage(old[i], setup.targets[i].image, setup.targets[i].bytes, &problem),
                         0);
        assert_int_equal(by_session_validate(old[i], hash, &problem), 0);
        by_session_close(old[i]);
    }
    assert_int_equal(by_push_settle(setup.targets, 2, &plain, &settled, &problem), 0);
    assert_int_equal(settled, BY_PUSH_BACK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(by_session_open(setup.fake[i]->address,
                                         &(struct by_session_options){TIMEOUT, 5, NULL}, &old[i], &problem),
                         0);
        assert_int_equal(by_session_commit(
                             old[i], by_image_hash(setup.targets[i].image, setup.targets[i].bytes), &problem),
                         BY_EPERM);
        by_session_close(old[i]);
        assert_int_equal(setup.fake[i]->commits, 0);
    }
    setup_close(&setup);
}

static void a_switch_that_is_too_small_or_another_is_refused_before_staging(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 100);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "needs 256 slots, the switch has 100"));
    setup_close(&setup);
    setup_open(&setup, 4096);
    setup.targets[0].address = setup.fake[1]->address;
    assert_int_equal(by_push(setup.targets, 1, &plain, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "answers as 'x1'"));
    assert_int_equal(setup.fake[1]->commits, 0);
    setup_close(&setup);
}

static void a_deposed_writer_is_told_so(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct by_session *newer, *older;

    (void)state;
    setup_open(&setup, 4096);
    assert_int_equal(by_session_open(setup.fake[0]->address, &(struct by_session_options){TIMEOUT, 7, NULL},
                                     &newer, &problem),
                     0);
    assert_int_equal(by_session_stage(newer, setup.targets[0].image, setup.targets[0].bytes, &problem), 0);
    by_session_close(newer);
    assert_int_equal(by_session_open(setup.fake[0]->address, &(struct by_session_options){TIMEOUT, 6, NULL},
                                     &older, &problem),
                     0);
    assert_int_equal(by_session_stage(older, setup.targets[0].image, setup.targets[0].bytes, &problem),
                     BY_EPERM);
    assert_non_null(strstr(problem.text, "stale"));
    by_session_close(older);
    setup_close(&setup);
}

static void counters_and_waiting_come_whole(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct by_session *session;
    by_CountersReply *counters = by_alloc(1, sizeof(*counters));
    by_WaitingReply *waiting = by_alloc(1, sizeof(*waiting));

    (void)state;
    setup_open(&setup, 4096);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    assert_int_equal(by_session_open(setup.fake[0]->address, &plain, &session, &problem), 0);
    assert_int_equal(by_session_counters(session, counters, &problem), 0);
    assert_int_equal(counters->engine_count, 1);
    assert_true(counters->engine[0].value == 12345678901234ull);
    assert_int_equal(counters->ports_count, 2);
    assert_int_equal(counters->ports[1].rx_bytes, 1001);
    assert_int_equal(by_session_waiting(session, waiting, &problem), 0);
    assert_int_equal(waiting->entries_count, 1);
    assert_int_equal(waiting->entries[0].seq, 42);
    assert_int_equal(waiting->entries[0].missing, 5);
    by_session_close(session);
    setup_close(&setup);
    free(counters);
    free(waiting);
}

static void silence_and_nonsense_end_with_an_error_in_time(void **state)
{
    struct fake *fake = fake_start("x0", 100);
    struct by_problem problem = {0};
    struct by_session *session;
    by_HelloReply hello;

    (void)state;
    fake->silent = 1;
    assert_int_equal(
        by_session_open(fake->address, &(struct by_session_options){200, 0, NULL}, &session, &problem), 0);
    assert_int_equal(by_session_hello(session, &hello, &problem), BY_ETIMEDOUT);
    assert_non_null(strstr(problem.text, "no answer within 200 ms"));
    by_session_close(session);
    fake->silent = 0;
    fake->garbage = 1;
    assert_int_equal(by_session_open(fake->address, &plain, &session, &problem), 0);
    assert_int_equal(by_session_hello(session, &hello, &problem), BY_EFORMAT);
    by_session_close(session);
    fake_stop(fake);
}

static void addresses_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *address;
        int error;
        const char *word;
    } table[] = {
        {"leaf0", BY_EINVAL, "unix:PATH, tcp:HOST:PORT or tls:HOST:PORT"},
        {"tcp:1.2.3.4", BY_EINVAL, "tcp:HOST:PORT"},
        {"tcp::80", BY_EINVAL, "tcp:HOST:PORT"},
        {"unix:", BY_EINVAL, "1 to 107 characters"},
        {"unix:/tmp/by-test-nobody.sock", BY_EIO, "is the switch running"},
        {"tcp:127.0.0.1:1", BY_EIO, "is the switch running"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct by_session *session = NULL;
        struct by_problem problem = {0};
        assert_int_equal(by_session_open(table[i].address, &plain, &session, &problem), table[i].error);
        assert_null(session);
        if (strstr(problem.text, table[i].word) == NULL)
            fail_msg("'%s' is not in: %s", table[i].word, problem.text);
    }
}

static void a_message_in_pieces_is_incomplete_and_one_too_long_is_refused(void **state)
{
    by_Request request = {.version = 1, .id = 5, .which_body = by_Request_hello_tag};
    by_Response *response = by_alloc(1, sizeof(*response));
    uint8_t bytes[64], answer[] = {0, 0, 0, 4, 0x08, 1, 0x10, 5}; /* version 1, id 5 */
    size_t used = 0;

    (void)state;
    assert_int_equal(by_message_encode(&request, bytes, 3), 0);
    assert_int_equal(by_message_encode(&request, bytes, 6), 0);
    assert_true(by_message_encode(&request, bytes, sizeof(bytes)) > BY_MESSAGE_LENGTH_BYTES);
    for (size_t i = 0; i < sizeof(answer); i++)
        assert_int_equal(by_message_decode(answer, i, response, &used), BY_EAGAIN);
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), 0);
    assert_int_equal(used, sizeof(answer));
    assert_int_equal(response->id, 5);
    answer[5] = 2;
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), BY_EVERSION);
    by_put32(answer, BY_MESSAGE_BYTES_MAX + 1);
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), BY_EFORMAT);
    free(response);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_makes_every_switch_active_and_reads_back_alike),
        cmocka_unit_test(a_refusal_by_one_switch_leaves_all_as_they_were),
        cmocka_unit_test(a_commit_that_fails_says_who_has_the_new_table),
        cmocka_unit_test(a_controller_that_crashes_at_any_step_leaves_one_generation),
        cmocka_unit_test(a_controller_that_another_one_has_settled_cannot_go_on),
        cmocka_unit_test(a_switch_that_is_too_small_or_another_is_refused_before_staging),
        cmocka_unit_test(a_deposed_writer_is_told_so),
        cmocka_unit_test(counters_and_waiting_come_whole),
        cmocka_unit_test(silence_and_nonsense_end_with_an_error_in_time),
        cmocka_unit_test(addresses_that_are_none_are_refused),
        cmocka_unit_test(a_message_in_pieces_is_incomplete_and_one_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
