/*
 * The controller against real agents: threads that serve by_agent on UNIX sockets, each with a node
 * that can be set to refuse. Encoding, deadlines, two-phase push, reading back. The test's main
 * thread is the controller. Each server has one thread, which is joined at its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/controller/delta.h"
#include "control/service/controller/push.h"
#include "control/service/controller/session.h"
#include "control/service/controller/target.h"
#include "firmware/agent/agent.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/service/controller/fake.h"
#include "tests/unit/control/service/controller/setup.h"
#include "tests/unit/control/tables/bench.h"

static const struct by_session_options plain = {.timeout_ms = TIMEOUT};

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
    /* A repeated push of the same tables is harmless. */
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    setup_close(&setup);
}

static void only_what_differs_is_sent_over_a_table_that_is_active(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    uint8_t *old[2];
    uint64_t whole[2];

    (void)state;
    setup_open(&setup, 4096);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    for (uint32_t i = 0; i < 2; i++) {
        whole[i] = setup.targets[i].sent;
        old[i] = by_alloc(setup.targets[i].bytes, 1);
        memcpy(old[i], setup.targets[i].image, setup.targets[i].bytes);
        setup.targets[i].base = old[i];
        setup.targets[i].base_bytes = setup.targets[i].bytes;
    }
    raise_generation(&setup);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(setup.fake[i]->active_bytes, setup.targets[i].bytes);
        assert_memory_equal(setup.fake[i]->active, setup.targets[i].image, setup.targets[i].bytes);
        if (setup.targets[i].sent * 2 > whole[i])
            fail_msg("%u bytes of a table of %zu, %u when it was sent whole", (unsigned)setup.targets[i].sent,
                     setup.targets[i].bytes, (unsigned)whole[i]);
    }
    /* The base is not the active table, so the push sends the whole table. */
    raise_generation(&setup);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_memory_equal(setup.fake[i]->active, setup.targets[i].image, setup.targets[i].bytes);
        assert_true(setup.targets[i].sent >= setup.targets[i].bytes);
        free(old[i]);
    }
    setup_close(&setup);
}

static void pieces_that_do_not_fit_are_refused(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct by_session *session;

    (void)state;
    setup_open(&setup, 4096);
    /* Pieces over a table that is not active: nothing is staged. */
    assert_int_equal(by_session_open(setup.fake[0]->address, &plain, &session, &problem), 0);
    assert_int_equal(by_session_stage_over(session, setup.images.bytes[5], setup.images.size[5],
                                           setup.images.bytes[4], setup.images.size[4], &problem),
                     BY_ESTATE);
    assert_non_null(strstr(problem.text, "stage the whole image"));
    by_session_close(session);
    setup_close(&setup);
}

static void pieces_make_the_new_image_whatever_changed(void **state)
{
    struct by_prng prng = {.state = 7};

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        size_t base_bytes = by_prng_below(&prng, 3000), bytes = 0, at = 0;
        uint8_t *base = by_alloc(base_bytes, 1), *image = by_alloc(20000, 1), *made = by_alloc(20000, 1);
        struct by_delta_piece *pieces;
        const uint8_t *literal = image;
        uint32_t count;
        size_t out = 0;

        for (size_t i = 0; i < base_bytes; i++)
            base[i] = (uint8_t)by_prng_below(&prng, round % 3 ? 256 : 2);
        /* Stretches of the old image, moved, cut and mixed with new bytes. */
        while (bytes < 8000 && by_prng_below(&prng, 20) > 0) {
            size_t length = by_prng_below(&prng, 300);

            at = by_prng_below(&prng, 2) ? at : by_prng_below(&prng, base_bytes + 1);
            if (length > base_bytes - at)
                length = base_bytes - at;
            memcpy(image + bytes, base + at, length);
            bytes += length;
            at += length;
            for (uint64_t i = by_prng_below(&prng, 9); i > 0; i--)
                image[bytes++] = (uint8_t)by_prng_below(&prng, 256);
        }
        count = by_delta_make(base, base_bytes, image, bytes, &pieces);
        for (uint32_t i = 0; i < count; i++) {
            literal = image + out;
            memcpy(made + out, literal, pieces[i].literal);
            out += pieces[i].literal;
            assert_true((uint64_t)pieces[i].from + pieces[i].copy <= base_bytes);
            memcpy(made + out, base + pieces[i].from, pieces[i].copy);
            out += pieces[i].copy;
            assert_true(out <= bytes);
        }
        if (out != bytes || memcmp(made, image, bytes) != 0)
            fail_msg("round %u: the pieces make another image", round);
        free(pieces);
        free(base);
        free(image);
        free(made);
    }
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
    assert_int_equal(setup.fake[0]->aborts, 1); /* x0 discards the table that it had accepted */
    setup_close(&setup);
}

/* A record that ends when both switches have the new table, and before any has committed. */
struct slow_record {
    const struct setup *setup;
    int result;
    bool saw_all, saw_commit;
};

static int write_slowly(void *user, struct by_problem *problem)
{
    struct slow_record *slow = user;

    for (unsigned i = 0, all = 0; i < 10000 && all < 2; i++, usleep(2000)) {
        struct controller_fake *fake = slow->setup->fake[all];

        pthread_mutex_lock(&fake->lock);
        all += fake->staged_bytes > 0;
        pthread_mutex_unlock(&fake->lock);
        slow->saw_all = all == 2;
    }
    slow->saw_commit = slow->setup->fake[0]->commits + slow->setup->fake[1]->commits > 0;
    return slow->result == 0 ? 0 : by_problem_say(problem, slow->result, "the disk is full");
}

static void switches_validate_while_the_push_is_recorded_and_commit_after_it(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    struct slow_record slow = {.setup = &setup, .result = BY_EIO};
    struct by_push_record record = {.write = write_slowly, .user = &slow};

    (void)state;
    setup_open(&setup, 4096);
    assert_int_equal(by_push_recorded(setup.targets, 2, &plain, &record, &problem), BY_EIO);
    assert_true(slow.saw_all && !record.written && strcmp(problem.text, "the disk is full") == 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(setup.fake[i]->commits, 0);
        assert_int_equal(setup.fake[i]->aborts, 1);
        setup.fake[i]->staged_bytes = 0;
    }
    slow = (struct slow_record){.setup = &setup};
    assert_int_equal(by_push_recorded(setup.targets, 2, &plain, &record, &problem), 0);
    assert_true(slow.saw_all && !slow.saw_commit && record.written);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(setup.fake[i]->commits, 1);
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

static void a_push_speaks_with_all_switches_at_a_time(void **state)
{
    struct setup setup;
    struct by_session_options options = plain;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 4096);
    setup.fake[0]->late_us = setup.fake[1]->late_us = 50000;
    options.at_once = 1;
    fake_busy_most = 0;
    assert_int_equal(by_push(setup.targets, 2, &options, &problem), 0);
    assert_int_equal(fake_busy_most, 1);
    options.at_once = 0;
    assert_int_equal(by_push(setup.targets, 2, &options, &problem), 0);
    assert_int_equal(fake_busy_most, 2);
    setup_close(&setup);
}

static void of_several_switches_that_refuse_the_first_is_named_and_the_others_counted(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 4096);
    setup.fake[0]->refuse_stage = setup.fake[1]->refuse_stage = BY_ELIMIT;
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "switch x0: "));
    assert_non_null(strstr(problem.text, "(1 more of 2 switches failed); no table was changed"));
    setup_close(&setup);
}

/* Returns a switch's generation: 0 = none. */
static uint32_t generation(const struct controller_fake *fake)
{
    struct by_image_job job;

    if (fake->active_bytes == 0)
        return 0;
    by_image_job(fake->active, 0, &job);
    return job.gen;
}

/* This program with two switches as arguments (name, address, descriptor of the image, bytes):
 * pushes their images. */
static int push_of_arguments(char **arguments)
{
    struct by_session_options options = plain;
    struct by_push_target targets[2];
    struct by_problem problem = {0};

    options.at_once = (uint32_t)atoi(*arguments++);
    for (uint32_t i = 0; i < 2; i++, arguments += 4) {
        size_t bytes = (size_t)atol(arguments[3]);
        void *image = mmap(NULL, bytes, PROT_READ, MAP_SHARED, atoi(arguments[2]), 0);

        if (image == MAP_FAILED)
            return 2;
        targets[i] = (struct by_push_target){
            .name = arguments[0], .address = arguments[1], .image = image, .bytes = bytes};
    }
    return by_push(targets, 2, &options, &problem) != 0;
}

/* Starts another process that pushes: this program, executed again, since a process forked while
 * the threads of the switches run may allocate no memory. */
static pid_t push_elsewhere(struct setup *setup, uint32_t at_once)
{
    char text[2][2][24], number[16];
    char *arguments[11] = {"unit-controller", number};
    int images[2];
    pid_t process;

    snprintf(number, sizeof(number), "%u", at_once);
    for (uint32_t i = 0; i < 2; i++) {
        const struct by_push_target *target = &setup->targets[i];
        char **at = &arguments[2 + 4 * i];

        images[i] = memfd_create("image", 0);
        assert_int_equal(write(images[i], target->image, target->bytes), target->bytes);
        snprintf(text[i][0], sizeof(text[i][0]), "%d", images[i]);
        snprintf(text[i][1], sizeof(text[i][1]), "%zu", target->bytes);
        at[0] = (char *)(uintptr_t)target->name;
        at[1] = (char *)(uintptr_t)target->address;
        at[2] = text[i][0];
        at[3] = text[i][1];
    }
    assert_int_equal(posix_spawn(&process, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    close(images[0]);
    close(images[1]);
    return process;
}

/* Pushes in another process, which ends as `crash` defines. Returns false if the push ended
 * first. */
static bool push_until(struct setup *setup, struct crash *crash, uint32_t at_once)
{
    siginfo_t end = {0};

    setup->fake[0]->crash = setup->fake[1]->crash = crash;
    crash->process = push_elsewhere(setup, at_once);
    while (crash->left > 0 && end.si_pid == 0) {
        assert_int_equal(waitid(P_PID, (id_t)crash->process, &end, WEXITED | WNOHANG | WNOWAIT), 0);
        usleep(200);
    }
    if (end.si_pid != 0 && crash->left > 0) {
        assert_true(end.si_code == CLD_EXITED && end.si_status == 0);
        waitpid(end.si_pid, NULL, 0);
    } else {
        while (crash->process > 0)
            usleep(200);
    }
    setup->fake[0]->crash = setup->fake[1]->crash = NULL;
    return crash->left <= 0;
}

/* Crashes at each request, before and after its execution. Counts the results by enum
 * by_push_settled. */
static void crash_at_each_step(uint32_t at_once, unsigned crashes[3])
{
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
            crashed = push_until(&setup, &crash, at_once);
            if (by_push_settle(setup.targets, 2, &plain, &settled, &problem) != 0)
                fail_msg("step %d: %s", step, problem.text);
            crashes[settled] += crashed;
            if (generation(setup.fake[0]) != generation(setup.fake[1]))
                fail_msg("step %d, %s the request: generation %u at one switch, %u at the other", step,
                         before ? "before" : "after", generation(setup.fake[0]), generation(setup.fake[1]));
            if (settled != BY_PUSH_CLEAR)
                assert_int_equal(generation(setup.fake[0]), settled == BY_PUSH_FORWARD ? 2 : 1);
            /* A second settle finds nothing, and the next push succeeds. */
            assert_int_equal(by_push_settle(setup.targets, 2, &plain, &settled, &problem), 0);
            assert_int_equal(settled, BY_PUSH_CLEAR);
            assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
            assert_int_equal(generation(setup.fake[0]), 2);
            assert_int_equal(generation(setup.fake[1]), 2);
            setup_close(&setup);
            if (!crashed)
                break;
        }
    /* Two switches: Hello, Stage and Validate at each, then Commit at each. */
    assert_int_equal(crashes[0] + crashes[1] + crashes[2], 2 * 8);
}

static void a_controller_that_crashes_at_any_step_leaves_one_generation(void **state)
{
    unsigned crashes[3] = {0};

    (void)state;
    crash_at_each_step(1, crashes);
    assert_true(crashes[BY_PUSH_FORWARD] >= 2 && crashes[BY_PUSH_BACK] >= 4);
}

/* The other switch may or may not have executed its request in the meantime. */
static void a_controller_that_crashes_while_it_speaks_with_all_leaves_one_generation(void **state)
{
    unsigned crashes[3] = {0};

    (void)state;
    crash_at_each_step(0, crashes);
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

        assert_int_equal(
            by_session_open(setup.fake[i]->address,
                            &(struct by_session_options){.timeout_ms = TIMEOUT, .election_id = 5}, &old[i],
                            &problem),
            0);
        assert_int_equal(by_session_stage(old[i], setup.targets[i].image, setup.targets[i].bytes, &problem),
                         0);
        assert_int_equal(by_session_validate(old[i], hash, &problem), 0);
        by_session_close(old[i]);
    }
    assert_int_equal(by_push_settle(setup.targets, 2, &plain, &settled, &problem), 0);
    assert_int_equal(settled, BY_PUSH_BACK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(
            by_session_open(setup.fake[i]->address,
                            &(struct by_session_options){.timeout_ms = TIMEOUT, .election_id = 5}, &old[i],
                            &problem),
            0);
        assert_int_equal(by_session_commit(
                             old[i], by_image_hash(setup.targets[i].image, setup.targets[i].bytes), &problem),
                         BY_EPERM);
        by_session_close(old[i]);
        assert_int_equal(setup.fake[i]->commits, 0);
    }
    setup_close(&setup);
}

static void a_switch_that_is_too_small_or_another_refuses_a_push(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};

    (void)state;
    setup_open(&setup, 100);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), BY_ELIMIT);
    assert_non_null(
        strstr(problem.text,
               "slots: the table requires 256, this switch has 100; job 1 requires 256, 100 would fit"));
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
    assert_int_equal(by_session_open(setup.fake[0]->address,
                                     &(struct by_session_options){.timeout_ms = TIMEOUT, .election_id = 7},
                                     &newer, &problem),
                     0);
    assert_int_equal(by_session_stage(newer, setup.targets[0].image, setup.targets[0].bytes, &problem), 0);
    by_session_close(newer);
    assert_int_equal(by_session_open(setup.fake[0]->address,
                                     &(struct by_session_options){.timeout_ms = TIMEOUT, .election_id = 6},
                                     &older, &problem),
                     0);
    assert_int_equal(by_session_stage(older, setup.targets[0].image, setup.targets[0].bytes, &problem),
                     BY_EPERM);
    assert_non_null(strstr(problem.text, "stale"));
    by_session_close(older);
    setup_close(&setup);
}

/* A listener that accepts connections and sends nothing. Secrets are refused before they are
 * sent. */
static void keys_of_jobs_do_not_go_over_plain_tcp_unasked(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct by_image_header header = {.node = 1, .kind = BY_NODE_SWITCH, .name = "s"};
    uint8_t image[BY_IMAGE_HEADER_BYTES + 32] = {0};
    char address[64];

    (void)state;
    header.count[BY_SECTION_KEY] = 1;
    by_image_put_header(image, &header);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(listen(fd, 2), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &size), 0);
    snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", ntohs(here.sin_port));
    for (uint8_t told = 0; told < 2; told++) {
        struct by_session_options options = {.timeout_ms = 200, .plain_keys = told};
        struct by_problem problem = {0};
        struct by_session *session;

        assert_int_equal(by_session_open(address, &options, &session, &problem), 0);
        assert_int_equal(by_session_stage(session, image, sizeof(image), &problem),
                         told ? BY_ETIMEDOUT : BY_EPERM);
        assert_int_equal(by_session_stage_over(session, image, sizeof(image), image, sizeof(image), &problem),
                         told ? BY_ETIMEDOUT : BY_EPERM);
        assert_true(told || strstr(problem.text, "--plain-keys") != NULL);
        assert_true((by_session_sent(session) != 0) == told);
        by_session_close(session);
    }
    close(fd);
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
    struct controller_fake *fake = fake_start("x0", 100, IMAGE_MAX);
    struct by_problem problem = {0};
    struct by_session *session;
    by_HelloReply hello;

    (void)state;
    fake->silent = 1;
    assert_int_equal(by_session_open(fake->address,
                                     &(struct by_session_options){.timeout_ms = 200, .election_id = 0},
                                     &session, &problem),
                     0);
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

static void an_address_of_ipv6_may_have_brackets(void **state)
{
    struct by_problem problem = {0};
    struct by_session *session;

    (void)state;
    assert_int_not_equal(by_session_open("tcp:[::1]:1", &plain, &session, &problem), 0);
    assert_non_null(strstr(problem.text, "tcp:[::1]:1: "));
    assert_null(strstr(problem.text, "check host and port")); /* no listener, or no IPv6 */
    assert_int_equal(by_session_open("tcp:[::1:1", &plain, &session, &problem), BY_EINVAL);
    assert_int_equal(by_session_open("tcp:[]:1", &plain, &session, &problem), BY_EINVAL);
}

static void a_refusal_by_rate_is_told_apart_from_a_lost_switch(void **state)
{
    struct controller_fake *fake = fake_start("x0", 100, IMAGE_MAX);
    struct by_problem problem = {0};
    struct by_session *session;
    by_HelloReply hello;

    (void)state;
    assert_int_equal(by_session_open(fake->address, &plain, &session, &problem), 0);
    fake->hasty = 1;
    assert_int_equal(by_session_hello(session, &hello, &problem), BY_EAGAIN);
    assert_true(by_session_refused(session));
    assert_non_null(strstr(problem.text, "a second: the switch serves packets first"));
    fake->hasty = 0; /* the session is still valid */
    assert_int_equal(by_session_hello(session, &hello, &problem), 0);
    assert_false(by_session_refused(session));
    fake_stop(fake);
    assert_int_equal(by_session_hello(session, &hello, &problem), BY_EIO);
    assert_false(by_session_refused(session));
    by_session_close(session);
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
        {"unix:/tmp/by-test-nobody.sock", BY_EAGAIN, "check that the switch runs"},
        {"tcp:127.0.0.1:1", BY_EAGAIN, "check that the switch runs"},
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

static void a_target_has_a_name_and_an_address(void **state)
{
    const char *address = NULL;

    (void)state;
    assert_int_equal(by_target_split("leaf0=unix:/a=b", &address), 5);
    assert_string_equal(address, "unix:/a=b");
    assert_int_equal(by_target_split("leaf0", &address), 0);
    assert_int_equal(by_target_split("=unix:/a", &address), 0);
    assert_int_equal(by_target_split("", &address), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_makes_every_switch_active_and_reads_back_alike),
        cmocka_unit_test(switches_validate_while_the_push_is_recorded_and_commit_after_it),
        cmocka_unit_test(only_what_differs_is_sent_over_a_table_that_is_active),
        cmocka_unit_test(pieces_that_do_not_fit_are_refused),
        cmocka_unit_test(pieces_make_the_new_image_whatever_changed),
        cmocka_unit_test(a_refusal_by_one_switch_leaves_all_as_they_were),
        cmocka_unit_test(a_commit_that_fails_says_who_has_the_new_table),
        cmocka_unit_test(a_push_speaks_with_all_switches_at_a_time),
        cmocka_unit_test(of_several_switches_that_refuse_the_first_is_named_and_the_others_counted),
        cmocka_unit_test(a_controller_that_crashes_at_any_step_leaves_one_generation),
        cmocka_unit_test(a_controller_that_crashes_while_it_speaks_with_all_leaves_one_generation),
        cmocka_unit_test(a_controller_that_another_one_has_settled_cannot_go_on),
        cmocka_unit_test(a_switch_that_is_too_small_or_another_refuses_a_push),
        cmocka_unit_test(a_deposed_writer_is_told_so),
        cmocka_unit_test(keys_of_jobs_do_not_go_over_plain_tcp_unasked),
        cmocka_unit_test(counters_and_waiting_come_whole),
        cmocka_unit_test(silence_and_nonsense_end_with_an_error_in_time),
        cmocka_unit_test(an_address_of_ipv6_may_have_brackets),
        cmocka_unit_test(a_refusal_by_rate_is_told_apart_from_a_lost_switch),
        cmocka_unit_test(addresses_that_are_none_are_refused),
        cmocka_unit_test(a_target_has_a_name_and_an_address),
    };

    if (argc == 10)
        return push_of_arguments(argv + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
