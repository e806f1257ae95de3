/* Which calls, and which parts of them, go on in the trees of another generation; and which trees
 * are refused. Rank 1 of two is played by the test, and has nothing that this rank lacks. */
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
#include "tests/unit/offload/endpoint/rig.h"

#define BYTES 64u /* of a chunk, and of a call */
#define CALLS 4

static uint8_t send_buffer[CALLS][BYTES], recv_buffer[CALLS][BYTES];
static struct endpoint_rig rig;
static struct by_header chunk[CALLS]; /* the contribution of each call */
static uint32_t id[CALLS];
static void *memory;

static void post(unsigned call, unsigned collective)
{
    struct by_call what = {.collective = (uint8_t)collective,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = collective == BY_COLLECTIVE_BARRIER ? 0 : BYTES,
                           .send = send_buffer[call],
                           .recv = recv_buffer[call]};

    assert_int_equal(by_endpoint_post(rig.endpoint, &what, &id[call], NULL), 0);
    assert_int_equal(rig_step(&rig), 1);
    chunk[call] = rig.sent[0];
}

/* Four calls of one chunk each: three allreduces, and a barrier between them. */
static void start(void)
{
    const struct rig_tree tree = {.window = 8, .payload_max = BYTES};
    const struct by_endpoint_config config = {.resume = 1};

    memset(send_buffer, 3, sizeof(send_buffer));
    rig_open(&rig, 2, &tree, 1, &config);
    for (unsigned c = 0; c < CALLS; c++)
        post(c, c == 1 ? BY_COLLECTIVE_BARRIER : BY_COLLECTIVE_ALLREDUCE);
}

/* Levels both ranks for the generation. */
static struct by_resume *level(uint8_t gen)
{
    uint8_t report[64] = {1, 1, 0, 1, 0, gen, 0, 1};
    const uint8_t done[] = {1, 4, 0, 1, 0, gen, 0, 1};
    const struct by_ep_lane *lane = &rig.endpoint->lanes[0];
    struct by_resume *resume;

    free(memory);
    memory = aligned_alloc(64, by_resume_size(rig.endpoint));
    assert_int_equal(by_resume_begin(&resume, memory, rig.endpoint, gen), 0);
    by_put16(report + 8, rig.endpoint->gen);
    by_put32(report + 12, lane->base);
    assert_int_equal(by_resume_take(resume, report, 16 + (lane->mask + 8) / 8), 0);
    assert_int_equal(by_resume_take(resume, done, sizeof(done)), 0);
    assert_true(by_resume_is_level(resume));
    return resume;
}

static struct by_endpoint_config next_config(uint8_t gen)
{
    struct by_endpoint_config config = {.job = 1, .isa = by_isa_best(), .resume = 1};

    rig.fabric.jobs[0].gen = gen;
    config.image = fabric_image(&rig.fabric, 1, &config.image_bytes);
    return config;
}

/* Continues in the trees of the generation. */
static void go_on(uint8_t gen)
{
    struct by_resume *resume = level(gen);
    struct by_endpoint_config config = next_config(gen);
    struct by_endpoint *old = rig.endpoint, *other;
    size_t bytes = by_resume_copy_size(resume, &config);
    void *room = aligned_alloc(64, bytes);

    assert_int_equal(by_resume_copy(resume, &rig.endpoint, room, bytes, &config), 0);
    assert_int_equal(by_resume_copy(resume, &other, room, bytes, &config), BY_ESTATE); /* only once */
    free(old);
    free(rig.image);
    rig.image = (uint8_t *)(uintptr_t)config.image;
}

static void stop(void)
{
    rig_close(&rig);
    free(memory);
    memory = NULL;
}

/* Results of later calls arrive before that of the first one; some are collected by then. */
static void calls_that_have_ended_do_not_go_on(void **state)
{
    (void)state;
    for (unsigned collected = 0; collected < 2; collected++) {
        start();
        for (unsigned c = 1; c < 3; c++)
            rig_answer(&rig, &chunk[c], c == 1 ? 0 : BYTES, 12);
        for (unsigned c = 1; c < 3 && collected; c++)
            assert_int_equal(by_endpoint_test(rig.endpoint, id[c], NULL), 0);
        go_on(8);
        assert_int_equal(by_endpoint_counters(rig.endpoint)->gone_on, 1);
        assert_int_equal(rig.endpoint->done_count, 0);
        assert_int_equal(rig_step(&rig), 2); /* calls 0 and 3 */
        assert_ptr_equal(rig.tx[0].payload, send_buffer[0]);
        assert_ptr_equal(rig.tx[1].payload, send_buffer[3]);
        chunk[0] = rig.sent[0];
        chunk[3] = rig.sent[1];
        rig_answer(&rig, &chunk[0], BYTES, 10);
        rig_answer(&rig, &chunk[3], BYTES, 13);
        for (unsigned c = 0; c < CALLS; c++)
            assert_int_equal(by_endpoint_test(rig.endpoint, id[c], NULL),
                             collected && c % 3 != 0 ? BY_ENOENT : 0);
        assert_int_equal(recv_buffer[0][0], 10);
        assert_int_equal(recv_buffer[2][0], 12);
        assert_int_equal(recv_buffer[3][0], 13);
        stop();
    }
}

/* The program uses a buffer again when its call has ended; then another rank lacks the value. */
static void the_value_of_a_call_that_has_ended_is_still_there_for_others(void **state)
{
    uint8_t need[] = {1, 2, 0, 1, 0, 8, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0}, said[128];
    const struct rig_tree trees[2] = {{.window = 8, .payload_max = BYTES},
                                      {.window = 8, .payload_max = BYTES}};
    const struct by_endpoint_config config = {.resume = 1};

    (void)state;
    for (uint8_t lane = 0; lane < 2; lane++) {
        static uint8_t both[2 * BYTES];
        struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_U8,
                               .mode = BY_MODE_FAST,
                               .count = sizeof(both),
                               .send = both,
                               .recv = both};
        struct by_header sent[2];
        struct by_resume *resume;
        size_t bytes;
        uint16_t to;

        rig_open(&rig, 2, trees, 2, &config);
        assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id[0], NULL), 0);
        assert_int_equal(rig_step(&rig), 2); /* a chunk on each tree */
        memcpy(sent, rig.sent, sizeof(sent));
        for (unsigned i = 0; i < 2; i++)
            rig_answer(&rig, &sent[i], BYTES, (uint8_t)(20 + sent[i].tree));
        assert_int_equal(by_endpoint_test(rig.endpoint, id[0], NULL), 0);
        memset(both, 0x55, sizeof(both));
        memory = aligned_alloc(64, by_resume_size(rig.endpoint));
        assert_int_equal(by_resume_begin(&resume, memory, rig.endpoint, 8), 0);
        need[11] = lane;
        assert_int_equal(by_resume_take(resume, need, sizeof(need)), 0);
        bytes = by_resume_say(resume, said, &to);
        assert_int_equal(bytes, 20 + BYTES);
        assert_int_equal(to, 1);
        for (unsigned i = 0; i < BYTES; i++)
            assert_int_equal(said[20 + i], 20 + lane);
        stop();
    }
}

/* Rank 1 has the chunk of a broadcast, of which only the root has not heard. The root has the data,
 * another rank requests it. */
static void a_root_requests_no_copy_of_its_own_data(void **state)
{
    const struct rig_tree tree = {.window = 8, .payload_max = BYTES};
    const struct by_endpoint_config config = {.resume = 1};
    const uint8_t report[] = {1, 1, 0, 1, 0, 8, 0, 1, 0, 7, 0, 1, 0, 0, 0, 1, 0};

    (void)state;
    for (uint16_t root = 0; root < 2; root++) {
        struct by_call call = {.collective = BY_COLLECTIVE_BROADCAST,
                               .dtype = BY_DTYPE_U8,
                               .root = root,
                               .count = BYTES,
                               .send = send_buffer[0],
                               .recv = recv_buffer[0]};
        struct by_resume *resume;
        uint8_t said[128];
        uint16_t to;

        rig_open(&rig, 2, &tree, 1, &config);
        call.op = BY_OP_SUM;
        call.mode = BY_MODE_FAST;
        assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id[0], NULL), 0);
        assert_int_equal(rig_step(&rig), 1);
        memory = aligned_alloc(64, by_resume_size(rig.endpoint));
        assert_int_equal(by_resume_begin(&resume, memory, rig.endpoint, 8), 0);
        assert_int_equal(by_resume_say(resume, said, &to), 12 + 4 + (7 + 8) / 8);
        assert_int_equal(by_resume_take(resume, report, sizeof(report)), 0);
        assert_true(by_resume_say(resume, said, &to) > 0);
        assert_int_equal(said[1], root == 0 ? 4 : 2); /* level; a request */
        assert_int_equal(by_endpoint_test(rig.endpoint, id[0], NULL), root == 0 ? 0 : BY_EAGAIN);
        stop();
    }
}

/* The second shard is behind the first on its tree, and neither has arrived. */
static void shards_behind_an_unfinished_one_are_not_done(void **state)
{
    static uint8_t both[2 * BYTES];
    const struct rig_tree tree = {.window = 8, .payload_max = BYTES};
    const struct by_endpoint_config config = {.resume = 1};
    struct by_call call = {.collective = BY_COLLECTIVE_ALLGATHER,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = BYTES,
                           .send = send_buffer[0],
                           .recv = both};

    (void)state;
    rig_open(&rig, 2, &tree, 1, &config);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id[0], NULL), 0);
    assert_int_equal(rig_step(&rig), 2);
    go_on(8);
    assert_int_equal(rig.endpoint->done_count, 0);
    assert_int_equal(rig_step(&rig), 2);
    stop();
}

/* A long call has done some chunks in each of two generations; a shorter one ends in the second. */
static void what_two_generations_have_done_is_not_sent_in_the_third(void **state)
{
    static uint8_t input[6 * BYTES], output[6 * BYTES];
    static const uint8_t left[4] = {0, 2, 3, 5}, results[6] = {7, 3, 7, 7, 6, 7};
    const struct rig_tree tree = {.window = 8, .payload_max = BYTES};
    const struct by_endpoint_config config = {.resume = 1};
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = 2 * BYTES,
                           .send = send_buffer[0],
                           .recv = recv_buffer[0]};
    struct by_header sent[8];
    uint32_t ids[2];

    (void)state;
    rig_open(&rig, 2, &tree, 1, &config);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &ids[0], NULL), 0); /* chunks 0, 1 */
    call.count = sizeof(input);
    call.send = input;
    call.recv = output;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &ids[1], NULL), 0); /* chunks 2 to 7 */
    assert_int_equal(rig_step(&rig), 8);
    memcpy(sent, rig.sent, sizeof(sent));
    rig_answer(&rig, &sent[1], BYTES, 1);
    rig_answer(&rig, &sent[3], BYTES, 3);
    go_on(8);
    assert_int_equal(rig.endpoint->done_count, 2);
    assert_int_equal(rig_step(&rig), 6);
    assert_ptr_equal(rig.tx[0].payload, send_buffer[0]);
    assert_ptr_equal(rig.tx[1].payload, input);
    assert_ptr_equal(rig.tx[2].payload, input + 2 * BYTES);
    memcpy(sent, rig.sent, sizeof(sent));
    rig_answer(&rig, &sent[0], BYTES, 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, ids[0], NULL), 0);
    rig_answer(&rig, &sent[4], BYTES, 6); /* bytes 4 * BYTES on */
    go_on(9);
    assert_int_equal(rig.endpoint->done_count, 2); /* of the long call */
    assert_int_equal(rig_step(&rig), 4);
    for (unsigned i = 0; i < 4; i++)
        assert_ptr_equal(rig.tx[i].payload, input + left[i] * BYTES);
    memcpy(sent, rig.sent, sizeof(sent));
    for (unsigned i = 0; i < 4; i++)
        rig_answer(&rig, &sent[i], BYTES, 7);
    assert_int_equal(by_endpoint_test(rig.endpoint, ids[1], NULL), 0);
    for (unsigned c = 0; c < 6; c++)
        assert_int_equal(output[c * BYTES], results[c]);
    stop();
}

static void images_of_another_place_are_refused(void **state)
{
    struct by_endpoint_config config;
    struct by_endpoint *endpoint;
    struct by_resume *resume;
    struct fabric *other = malloc(sizeof(*other));
    void *room = aligned_alloc(64, 1 << 20);

    (void)state;
    start();
    resume = level(8);
    for (unsigned what = 0; what < 5; what++) {
        fabric_star(other, what == 1 ? 3 : 2, 10000, 1000);
        fabric_job_add(other, what == 3 ? 2 : 1, what == 2 ? 7 : 8);
        assert_non_null(fabric_tree_add(other, 0, 0, 0, NULL));
        config = (struct by_endpoint_config){.job = what == 3 ? 2 : 1, .isa = by_isa_best(), .resume = 1};
        config.image = fabric_image(other, what == 0 ? 2 : 1, &config.image_bytes); /* 2: of rank 1 */
        if (what == 4) { /* a job that the image does not have */
            config.job = 9;
            assert_int_equal(by_resume_copy_size(resume, &config), 0);
            assert_true(by_resume_copy(resume, &endpoint, room, 1 << 20, &config) < 0);
        } else {
            assert_int_equal(by_resume_copy(resume, &endpoint, room, 1 << 20, &config), BY_EINVAL);
        }
        free((void *)(uintptr_t)config.image);
    }
    config = next_config(8); /* the refusals have changed nothing */
    by_endpoint_abort(rig.endpoint);
    assert_int_equal(by_resume_copy(resume, &endpoint, room, 1 << 20, &config), BY_ESTATE);
    free((void *)(uintptr_t)config.image);
    free(room);
    free(other);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_have_ended_do_not_go_on),
        cmocka_unit_test(the_value_of_a_call_that_has_ended_is_still_there_for_others),
        cmocka_unit_test(a_root_requests_no_copy_of_its_own_data),
        cmocka_unit_test(shards_behind_an_unfinished_one_are_not_done),
        cmocka_unit_test(what_two_generations_have_done_is_not_sent_in_the_third),
        cmocka_unit_test(images_of_another_place_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
