/*
 * A channel with a pre-shared key, over a real engine. A controller with the key gets answers. One
 * without it is refused with a reason that is counted, and the agent limits the rate at which it
 * reads from it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/agent/guard.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "tests/unit/firmware/agent/rig.h"
#include "tests/unit/firmware/client.h"

static struct by_siphash_key key;
static struct by_guard guard;
/* The controller's end. */
static struct by_psk session;
static uint8_t frame[CLIENT_FRAME_MAX + BY_PSK_BYTES];

static int make_guarded(void **state)
{
    struct rig_bench *bench;

    assert_int_equal(make_bench(state), 0);
    bench = *state;
    assert_int_equal(by_psk_key_read(&key, "00112233445566778899aabbccddeeff"), 0);
    by_guard_open(&guard, &key, 99, 1);
    by_channel_init(&bench->channel, &guard);
    return 0;
}

/* Gives a frame of `bytes` preceded by its length. Returns the size of the answer (bytes). */
static size_t give(struct rig_bench *bench, const uint8_t *data, size_t bytes)
{
    size_t used;
    int32_t made =
        by_channel_step(&bench->channel, bench->agent, data, bytes, &used, bench->out, sizeof bench->out);

    assert_int_equal(used, bytes);
    assert_true(made > (int32_t)BY_CONTROL_LENGTH_BYTES);
    assert_int_equal(by_get32(bench->out), made - (int32_t)BY_CONTROL_LENGTH_BYTES);
    return (size_t)made;
}

static void open_session(struct rig_bench *bench)
{
    uint8_t nonce[BY_PSK_NONCE_BYTES] = {7};
    size_t made;

    by_put32(frame, BY_PSK_OPEN_BYTES);
    by_psk_open(frame + BY_CONTROL_LENGTH_BYTES, nonce);
    made = give(bench, frame, BY_CONTROL_LENGTH_BYTES + BY_PSK_OPEN_BYTES);
    assert_int_equal(by_psk_accept(&session, &key, nonce, bench->out + BY_CONTROL_LENGTH_BYTES,
                                   made - BY_CONTROL_LENGTH_BYTES),
                     BY_PSK_FINE);
}

/* Seals the bench's request into `frame`. Returns its size (bytes). */
static size_t sealed(struct rig_bench *bench)
{
    size_t bytes;

    bytes = client_frame(&bench->request, frame + BY_PSK_HEAD_BYTES) - BY_CONTROL_LENGTH_BYTES;
    bytes = by_psk_seal(&session, frame + BY_CONTROL_LENGTH_BYTES, bytes);
    by_put32(frame, (uint32_t)bytes);
    return BY_CONTROL_LENGTH_BYTES + bytes;
}

static size_t sealed_hello(struct rig_bench *bench)
{
    client_request(&bench->request, by_Request_hello_tag);
    return sealed(bench);
}

/* Decodes the answer; removes the seal if `is_sealed`. */
static void decode(struct rig_bench *bench, size_t made, bool is_sealed)
{
    uint8_t *at = bench->out;

    if (is_sealed) {
        assert_int_equal(
            by_psk_unseal(&session, at + BY_CONTROL_LENGTH_BYTES, made - BY_CONTROL_LENGTH_BYTES),
            BY_PSK_FINE);
        made -= BY_PSK_BYTES;
        at += BY_PSK_HEAD_BYTES;
        by_put32(at, (uint32_t)(made - BY_CONTROL_LENGTH_BYTES));
    }
    client_decode(at, made, &bench->response);
}

static void expect_refusal(struct rig_bench *bench, size_t made, const char *text)
{
    decode(bench, made, false);
    assert_int_equal(bench->response.error, BY_EPERM);
    assert_non_null(strstr(bench->response.text, text));
}

static void who_has_the_key_is_answered_under_it(void **state)
{
    struct rig_bench *bench = *state;

    open_session(bench);
    for (unsigned i = 0; i < 3; i++) {
        decode(bench, give(bench, frame, sealed_hello(bench)), true);
        assert_int_equal(bench->response.id, bench->request.id);
        assert_string_equal(bench->response.body.hello.name, "leaf0");
    }
    assert_int_equal(guard.counters.sessions, 1);
    assert_int_equal(guard.counters.forged + guard.counters.stale + guard.counters.plain, 0);
}

static void a_notice_is_sealed_and_ends_with_the_session(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;

    open_session(bench);
    client_request(&bench->request, by_Request_counters_tag);
    bench->request.body.counters.notify = true;
    decode(bench, give(bench, frame, sealed(bench)), true);
    decode(bench, by_channel_notice(&bench->channel, bench->agent, bench->out, sizeof bench->out), true);
    assert_int_equal(bench->response.id, 0);
    assert_int_equal(bench->response.which_body, by_Response_counters_tag);
    bytes = sealed_hello(bench);
    decode(bench, give(bench, frame, bytes), true); /* the numbers of both directions go on */
    expect_refusal(bench, give(bench, frame, bytes), "repeated");
    assert_int_equal(by_channel_notice(&bench->channel, bench->agent, bench->out, sizeof bench->out), 0);
}

static void a_request_without_the_key_is_refused_in_plain_words(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;

    client_request(&bench->request, by_Request_hello_tag);
    bytes = client_frame(&bench->request, frame);
    expect_refusal(bench, give(bench, frame, bytes), "pre-shared key");
    assert_int_equal(guard.counters.plain, 1);
}

static void every_kind_of_refusal_is_counted_and_costs_the_session(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;

    open_session(bench);
    bytes = sealed_hello(bench);
    decode(bench, give(bench, frame, bytes), true);
    expect_refusal(bench, give(bench, frame, bytes), "repeated");
    assert_int_equal(guard.counters.stale, 1);
    bytes = sealed_hello(bench);
    expect_refusal(bench, give(bench, frame, bytes), "without a session");
    assert_int_equal(guard.counters.closed, 1);
    open_session(bench);
    bytes = sealed_hello(bench);
    frame[bytes - 1] ^= 1;
    expect_refusal(bench, give(bench, frame, bytes), "tag");
    assert_int_equal(guard.counters.forged, 1);
    memcpy(frame, (const uint8_t[]){0, 0, 0, 5, 'B', 'Y', 'K', '3', 0}, 9);
    expect_refusal(bench, give(bench, frame, 9), "invalid frame");
    memcpy(frame, (const uint8_t[]){0, 0, 0, 5, 'B', 'Y', 'K', '1', 0}, 9);
    expect_refusal(bench, give(bench, frame, 9), "invalid frame");
    assert_int_equal(guard.counters.cut, 2);
    open_session(bench);
    decode(bench, give(bench, frame, sealed_hello(bench)), true);
    assert_int_equal(guard.counters.sessions, 3);
}

static void no_nonce_comes_twice_on_any_line_of_one_life(void **state)
{
    struct rig_bench *bench = *state;
    struct by_guard other;
    uint8_t first[BY_PSK_NONCE_BYTES], second[BY_PSK_NONCE_BYTES], third[BY_PSK_NONCE_BYTES];

    open_session(bench);
    memcpy(first, bench->out + 8, sizeof first);
    open_session(bench);
    memcpy(second, bench->out + 8, sizeof second);
    by_guard_open(&other, &key, 99, 2);
    by_channel_init(&bench->channel, &other);
    open_session(bench);
    memcpy(third, bench->out + 8, sizeof third);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_not_equal(first, third, sizeof first);
    assert_memory_not_equal(second, third, sizeof first);
    assert_int_equal(by_get64(first), 99);
}

static void guesses_make_the_line_wait_whatever_client_they_come_from(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t wait;

    bench->now_ns = 1000000000;
    for (unsigned i = 0; i < BY_GUARD_REFUSALS_BURST; i++) {
        assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), 0);
        by_channel_init(&bench->channel, &guard);
        open_session(bench);
        sealed_hello(bench);
        frame[BY_CONTROL_LENGTH_BYTES + BY_PSK_HEAD_BYTES] ^= 1;
        expect_refusal(bench, give(bench, frame, BY_CONTROL_LENGTH_BYTES + by_get32(frame)), "tag");
    }
    wait = by_channel_wait_ns(&bench->channel, bench->agent);
    assert_int_equal(wait, 1000000000 / BY_GUARD_REFUSALS_PER_S);
    by_channel_init(&bench->channel, &guard);
    assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), wait);
    bench->now_ns += wait;
    assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), 0);
}

static void the_longest_request_fits_its_seal(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t image[BY_CHUNK_BYTES_MAX] = {0};
    size_t bytes;

    open_session(bench);
    client_stage(&bench->request, image, sizeof image, 0, sizeof image);
    bench->request.body.stage.total = BY_CHUNK_BYTES_MAX;
    bytes = client_frame(&bench->request, frame + BY_PSK_HEAD_BYTES) - BY_CONTROL_LENGTH_BYTES;
    bytes = by_psk_seal(&session, frame + BY_CONTROL_LENGTH_BYTES, bytes);
    by_put32(frame, (uint32_t)bytes);
    decode(bench, give(bench, frame, BY_CONTROL_LENGTH_BYTES + bytes), true);
    assert_int_equal(bench->response.id, bench->request.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_the_key_is_answered_under_it, make_guarded, free_bench),
        cmocka_unit_test_setup_teardown(a_notice_is_sealed_and_ends_with_the_session, make_guarded,
                                        free_bench),
        cmocka_unit_test_setup_teardown(a_request_without_the_key_is_refused_in_plain_words, make_guarded,
                                        free_bench),
        cmocka_unit_test_setup_teardown(every_kind_of_refusal_is_counted_and_costs_the_session, make_guarded,
                                        free_bench),
        cmocka_unit_test_setup_teardown(no_nonce_comes_twice_on_any_line_of_one_life, make_guarded,
                                        free_bench),
        cmocka_unit_test_setup_teardown(guesses_make_the_line_wait_whatever_client_they_come_from,
                                        make_guarded, free_bench),
        cmocka_unit_test_setup_teardown(the_longest_request_fits_its_seal, make_guarded, free_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
