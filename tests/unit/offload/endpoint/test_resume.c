/*
 * One rank's side of resuming calls, against messages that the tests write byte by byte: what the
 * rank reports, requests, provides, accepts and refuses, and which chunks it sends on the next
 * trees. tests/model explores whether several ranks together are correct, and tests/sim simulates
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/endpoint/resume.h"
#include "offload/endpoint/state.h"
#include "offload/reduce/reduce.h"
#include "tests/unit/offload/endpoint/rig.h"

#define BYTES  64u /* of a chunk */
#define CHUNKS 6u
#define GEN    8 /* the rig's is 7 */

static uint8_t send_buffer[CHUNKS * BYTES], recv_buffer[CHUNKS * BYTES];
static struct endpoint_rig *rig;
static struct by_resume *resume;
static void *memory;
static uint8_t said[512];
static uint16_t to;

/* Starts an allreduce of six chunks with window 4. Results of chunks 0 and 2 have arrived, so
 * chunks 1, 3, 4 are in flight. */
static void start(int keeps)
{
    struct rig_tree tree = {.window = 4, .payload_max = BYTES};
    struct by_endpoint_config config = {.resume = (uint8_t)keeps};
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = CHUNKS * BYTES,
                           .send = send_buffer,
                           .recv = recv_buffer};
    struct by_header first[4];
    uint32_t id;

    memset(send_buffer, 3, sizeof(send_buffer));
    memset(recv_buffer, 0xee, sizeof(recv_buffer));
    rig = malloc(sizeof(*rig));
    rig_open(rig, 2, &tree, 1, &config);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(rig_step(rig), 4);
    memcpy(first, rig->sent, sizeof(first));
    rig_answer(rig, &first[0], BYTES, 10);
    rig_answer(rig, &first[2], BYTES, 12);
    memory = aligned_alloc(64, by_resume_size(rig->endpoint));
}

static void stop(void)
{
    rig_close(rig);
    free(rig);
    free(memory);
}

static void begin(void)
{
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, GEN), 0);
}

/* The next message has exactly these bytes and goes to rank 1. */
static void expect_said(const uint8_t *bytes, size_t count)
{
    assert_int_equal(by_resume_say(resume, said, &to), count);
    assert_int_equal(to, 1);
    assert_memory_equal(said, bytes, count);
}

static void expect_silence(void)
{
    assert_int_equal(by_resume_say(resume, said, &to), 0);
}

/* version, type, job 1, attempt 8, rank */
#define HEAD(type, rank) 1, type, 0, 1, 0, GEN, 0, rank
#define OF_GEN_7         0, 7

static const uint8_t own_report[] = {HEAD(1, 0), OF_GEN_7, 0, 1, 0, 0, 0, 1, 0x02};
/* Rank 1 has the first four chunks. */
static const uint8_t report[] = {HEAD(1, 1), OF_GEN_7, 0, 1, 0, 0, 0, 4, 0};

static void copy_of(uint32_t chunk, uint8_t fill, uint8_t *data)
{
    const uint8_t head[] = {HEAD(3, 1), OF_GEN_7, 0, 0, 0, 0, 0, (uint8_t)chunk};

    memcpy(data, head, sizeof(head));
    memset(data + 20, fill, BYTES);
    by_put32(data + 16, fill * 0x01010101u * (BYTES / 4)); /* the sum of its words */
}

static void who_keeps_nothing_cannot_resume(void **state)
{
    (void)state;
    start(0);
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, GEN), BY_ESTATE);
    stop();
    start(1);
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, 7), BY_EINVAL);
    by_endpoint_abort(rig->endpoint);
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, GEN), BY_ESTATE);
    stop();
}

static void the_halves_of_a_pair_of_trees_cannot_be_levelled(void **state)
{
    (void)state;
    start(1);
    rig->endpoint->lanes[0].half = BY_HALF_UP;
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, GEN), BY_EUNSUPPORTED);
    assert_false(rig->endpoint->frozen);
    stop();
}

static void a_rank_without_others_is_level_at_once(void **state)
{
    const struct rig_tree tree = {.window = 4};
    const struct by_endpoint_config config = {.resume = 1};

    (void)state;
    rig = malloc(sizeof(*rig));
    rig_open(rig, 1, &tree, 1, &config);
    memory = aligned_alloc(64, by_resume_size(rig->endpoint));
    begin();
    assert_true(by_resume_is_level(resume));
    assert_int_equal(by_resume_awaited(resume), BY_RANK_NONE);
    expect_silence();
    stop();
}

static void a_report_says_what_is_lacking_and_nothing_is_taken_after_it(void **state)
{
    struct by_header contrib = {0};
    struct by_call_status status;

    (void)state;
    start(1);
    contrib = rig->sent[0];
    contrib.seq = 1;
    begin();
    expect_said(own_report, sizeof(own_report));
    expect_silence();
    rig_answer(rig, &contrib, BYTES, 11);
    assert_int_equal(recv_buffer[BYTES], 0xee);
    rig->now_ns += 5000000000;
    assert_int_equal(rig_step(rig), 0);
    assert_int_equal(by_endpoint_suspects(rig->endpoint, rig->now_ns, 1, &status), 0); /* no rank is late */
    assert_true(by_endpoint_deadline(rig->endpoint) == UINT64_MAX);
    by_resume_repeat(resume);
    expect_said(own_report, sizeof(own_report));
    stop();
}

static void what_another_has_is_asked_for_taken_once_and_not_damaged(void **state)
{
    static const uint8_t need_3[] = {HEAD(2, 0), OF_GEN_7, 0, 0, 0, 0, 0, 3};
    static const uint8_t need_1[] = {HEAD(2, 0), OF_GEN_7, 0, 0, 0, 0, 0, 1};
    static const uint8_t level[] = {HEAD(4, 0)}, other_level[] = {HEAD(4, 1)};
    uint8_t copy[20 + BYTES];

    (void)state;
    start(1);
    begin();
    expect_said(own_report, sizeof(own_report));
    copy_of(1, 11, copy);
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0); /* before all have reported */
    assert_int_equal(recv_buffer[BYTES], 0xee);
    assert_int_equal(by_resume_awaited(resume), 1);
    assert_int_equal(by_resume_take(resume, report, sizeof(report)), 0);
    expect_said(need_3, sizeof(need_3));
    expect_said(need_1, sizeof(need_1));
    expect_silence();
    copy_of(1, 11, copy);
    copy[50] ^= 1;
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), BY_ECHECKSUM);
    assert_int_equal(recv_buffer[BYTES], 0xee);
    copy[50] ^= 1;
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy) - 4), BY_ECHECKSUM);
    assert_int_equal(by_resume_take(resume, copy, 19), BY_EFORMAT);
    by_put32(copy + 16, 11 * 0x01010101u * (BYTES / 4 - 1));
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy) - 4), BY_EFORMAT); /* intact, but too short */
    assert_int_equal(recv_buffer[BYTES], 0xee);
    copy_of(1, 11, copy);
    for (size_t at = 9; at <= 11; at += 2) { /* another generation, another tree */
        copy[at]++;
        assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
        assert_int_equal(recv_buffer[BYTES], 0xee);
        copy[at]--;
    }
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    assert_int_equal(recv_buffer[BYTES], 11);
    copy_of(1, 99, copy); /* the same chunk again, with other data */
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    assert_int_equal(recv_buffer[BYTES], 11);
    copy_of(200, 14, copy); /* a chunk that was not sent */
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    copy_of(4, 14, copy); /* no rank has it */
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    assert_int_equal(recv_buffer[4 * BYTES], 0xee);
    expect_silence();
    assert_int_equal(by_resume_take(resume, other_level, sizeof(other_level)), 0);
    assert_false(by_resume_is_level(resume));
    assert_int_equal(by_endpoint_counters(rig->endpoint)->copied, 1);
    assert_int_equal(by_resume_awaited(resume), BY_RANK_NONE); /* only this rank lacks something */
    copy_of(3, 13, copy);
    assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    expect_said(level, sizeof(level));
    expect_silence();
    assert_true(by_resume_is_level(resume));
    stop();
}

static void what_is_asked_for_is_given_if_it_is_there(void **state)
{
    uint8_t need[] = {HEAD(2, 1), OF_GEN_7, 0, 0, 0, 0, 0, 2};
    uint8_t copy[20 + BYTES];

    (void)state;
    start(1);
    begin();
    expect_said(own_report, sizeof(own_report));
    assert_int_equal(by_resume_take(resume, need, sizeof(need)), 0);
    copy_of(2, 12, copy);
    copy[7] = 0; /* from rank 0 */
    expect_said(copy, sizeof(copy));
    need[15] = 1; /* not complete */
    assert_int_equal(by_resume_take(resume, need, sizeof(need)), 0);
    expect_silence();
    need[15] = 200;
    assert_int_equal(by_resume_take(resume, need, sizeof(need)), 0);
    expect_silence();
    need[15] = 2;
    for (size_t at = 9; at <= 11; at += 2) { /* another generation, another tree */
        need[at]++;
        assert_int_equal(by_resume_take(resume, need, sizeof(need)), 0);
        expect_silence();
        need[at]--;
    }
    assert_int_equal(by_resume_take(resume, need, sizeof(need) - 1), BY_EFORMAT);
    expect_silence();
    stop();
}

static void messages_that_are_none_of_this_attempts_change_nothing(void **state)
{
    uint8_t other[sizeof(report)];

    (void)state;
    start(1);
    begin();
    expect_said(own_report, sizeof(own_report));
    for (size_t at = 3; at <= 7; at += 2) { /* job, attempt, rank */
        memcpy(other, report, sizeof(report));
        other[at] = 77;
        assert_int_equal(by_resume_take(resume, other, sizeof(other)), 0);
        expect_silence();
    }
    memcpy(other, report, sizeof(report));
    other[7] = 0; /* this rank */
    assert_int_equal(by_resume_take(resume, other, sizeof(other)), 0);
    expect_silence();
    assert_int_equal(by_resume_take(resume, report, 7), BY_EFORMAT);
    assert_int_equal(by_resume_take(resume, report, 11), BY_EFORMAT);
    assert_int_equal(by_resume_take(resume, report, sizeof(report) - 1), BY_EFORMAT);
    for (size_t at = 0; at <= 1; at++) { /* version, type */
        memcpy(other, report, sizeof(report));
        other[at] = 9;
        assert_int_equal(by_resume_take(resume, other, sizeof(other)), BY_EFORMAT);
    }
    expect_silence();
    memcpy(other, report, sizeof(report));
    other[9] = 6; /* of an older generation, in which it is not level */
    assert_int_equal(by_resume_take(resume, other, sizeof(other)), BY_ESTATE);
    other[9] = 8; /* of a newer one, which began before this rank was level */
    assert_int_equal(by_resume_take(resume, other, sizeof(other)), BY_ESTATE);
    assert_int_equal(by_resume_awaited(resume), 1);
    stop();
}

/* Levels both ranks; rank 1 has the first four chunks. */
static void level_all(void)
{
    static const uint8_t other_level[] = {HEAD(4, 1)};
    uint8_t copy[20 + BYTES];

    begin();
    assert_int_equal(by_resume_take(resume, report, sizeof(report)), 0);
    for (uint32_t chunk = 1; chunk <= 3; chunk += 2) {
        copy_of(chunk, (uint8_t)(10 + chunk), copy);
        assert_int_equal(by_resume_take(resume, copy, sizeof(copy)), 0);
    }
    assert_int_equal(by_resume_take(resume, other_level, sizeof(other_level)), 0);
    assert_true(by_resume_is_level(resume));
}

static struct by_endpoint_config next_config(uint16_t collectives)
{
    struct by_endpoint_config config = {.job = 1, .isa = by_isa_best(), .resume = 1};
    struct fabric *fabric = &rig->fabric;

    fabric->jobs[0].gen = GEN;
    fabric->jobs[0].trees[0].payload_max = 24;
    fabric->jobs[0].trees[0].collectives &= collectives;
    config.image = fabric_image(fabric, 1, &config.image_bytes);
    return config;
}

static void what_is_left_goes_on_in_chunks_of_another_size(void **state)
{
    struct by_endpoint_config config;
    size_t bytes;
    void *room, *old;

    (void)state;
    start(1);
    assert_int_equal(by_resume_begin(&resume, memory, rig->endpoint, GEN), 0);
    config = next_config(0xffff);
    assert_int_equal(by_resume_copy(resume, &rig->endpoint, NULL, 0, &config), BY_ESTATE);
    level_all();
    bytes = by_resume_copy_size(resume, &config);
    room = aligned_alloc(64, bytes);
    old = rig->endpoint;
    assert_int_equal(by_resume_copy(resume, &rig->endpoint, room, bytes, &config), 0);
    free(old);
    free(rig->image);
    rig->image = (uint8_t *)(uintptr_t)config.image;
    assert_int_equal(rig_step(rig), 4); /* bytes 256 to 383: 24 per chunk, window 4 */
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rig->sent[i].gen, GEN);
        assert_int_equal(rig->sent[i].seq, i);
        assert_int_equal(rig->sent[i].count, 24);
        assert_ptr_equal(rig->tx[i].payload, send_buffer + 4 * BYTES + 24 * i);
    }
    stop();
}

static void trees_that_do_not_serve_a_call_that_runs_are_refused(void **state)
{
    struct by_endpoint_config config;
    struct by_endpoint *endpoint;
    size_t bytes;
    void *room;

    (void)state;
    start(1);
    level_all();
    config = next_config(1u << BY_COLLECTIVE_BROADCAST);
    bytes = by_resume_copy_size(resume, &config);
    room = aligned_alloc(64, bytes);
    assert_int_equal(by_resume_copy(resume, &endpoint, room, bytes, &config), BY_EUNSUPPORTED);
    assert_int_equal(by_resume_copy(resume, &endpoint, room, 64, &config), BY_ENOMEM);
    free(room);
    free((void *)(uintptr_t)config.image);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_keeps_nothing_cannot_resume),
        cmocka_unit_test(the_halves_of_a_pair_of_trees_cannot_be_levelled),
        cmocka_unit_test(a_rank_without_others_is_level_at_once),
        cmocka_unit_test(a_report_says_what_is_lacking_and_nothing_is_taken_after_it),
        cmocka_unit_test(what_another_has_is_asked_for_taken_once_and_not_damaged),
        cmocka_unit_test(what_is_asked_for_is_given_if_it_is_there),
        cmocka_unit_test(messages_that_are_none_of_this_attempts_change_nothing),
        cmocka_unit_test(what_is_left_goes_on_in_chunks_of_another_size),
        cmocka_unit_test(trees_that_do_not_serve_a_call_that_runs_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
