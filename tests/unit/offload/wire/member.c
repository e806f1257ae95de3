/* Frames between hosts and the controller: the reader accepts what the writer writes, in pieces of
 * any size, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/member.h"

static const uint8_t text[] = "leaf0 has no way to spine1";
static const uint8_t report[BY_LATENCY_ALL_BYTES] = {[0] = 1, [BY_LATENCY_ALL_BYTES - 1] = 2};

/* One frame of each type, with each of its fields. */
static const struct member_sample {
    enum by_member_side side;
    struct by_member_frame frame;
} samples[] = {
    {BY_MEMBER_HOST,
     {.type = BY_MEMBER_HELLO,
      .job = 1,
      .rank = 0xffff,
      .number = 0x0123456789abcdef,
      .data = text,
      .bytes = 5}},
    {BY_MEMBER_HOST, {.type = BY_MEMBER_ALIVE, .job = 1, .rank = 3, .gen = 7, .number = 1ull << 40}},
    {BY_MEMBER_HOST,
     {.type = BY_MEMBER_ALIVE,
      .job = 1,
      .rank = 3,
      .gen = 7,
      .number = 12,
      .data = text,
      .bytes = BY_MEMBER_PORT_BYTES}},
    {BY_MEMBER_HOST, {.type = BY_MEMBER_SUSPECT, .job = 1, .rank = 3, .gen = 7, .peer = 9, .code = -11}},
    {BY_MEMBER_HOST,
     {.type = BY_MEMBER_SAY, .job = 1, .rank = 3, .gen = 8, .peer = 2, .data = text, .bytes = sizeof(text)}},
    {BY_MEMBER_HOST, {.type = BY_MEMBER_CARRIED, .job = 1, .rank = 3, .gen = 8}},
    {BY_MEMBER_HOST,
     {.type = BY_MEMBER_MEASURED,
      .job = 1,
      .rank = 3,
      .number = 1ull << 63,
      .data = report,
      .bytes = sizeof(report)}},
    {BY_MEMBER_HOST,
     {.type = BY_MEMBER_GROUP,
      .job = 1,
      .rank = 0xffff,
      .number = 1ull << 62,
      .data = text,
      .bytes = sizeof(text)}},
    {BY_MEMBER_HOST, {.type = BY_MEMBER_BYE, .job = 1, .rank = 3, .gen = 8}},
    {BY_MEMBER_CONTROLLER, {.type = BY_MEMBER_WELCOME, .job = 1, .rank = 3, .gen = 8}},
    {BY_MEMBER_CONTROLLER,
     {.type = BY_MEMBER_FREEZE, .job = 1, .rank = 3, .gen = 9, .data = text, .bytes = sizeof(text)}},
    {BY_MEMBER_CONTROLLER,
     {.type = BY_MEMBER_HEARD, .job = 1, .rank = 2, .gen = 8, .peer = 3, .data = text, .bytes = 1}},
    {BY_MEMBER_CONTROLLER, {.type = BY_MEMBER_GO, .job = 1, .rank = 3, .gen = 9}},
    {BY_MEMBER_CONTROLLER,
     {.type = BY_MEMBER_FAIL, .job = 1, .rank = 3, .code = -7, .data = text, .bytes = sizeof(text) - 1}},
    {BY_MEMBER_CONTROLLER,
     {.type = BY_MEMBER_STANDBY,
      .job = 1,
      .rank = 3,
      .gen = 9,
      .base = 7,
      .mask_bytes = 2,
      .data = text,
      .bytes = sizeof(text)}},
    {BY_MEMBER_CONTROLLER, {.type = BY_MEMBER_STANDBY, .job = 1, .rank = 3, .gen = 7, .base = 7}},
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static size_t write_frame(const struct by_member_frame *frame, uint8_t *bytes)
{
    size_t fixed = by_member_put(frame, bytes);

    if (frame->bytes > 0)
        memcpy(bytes + fixed, frame->data, frame->bytes);
    return fixed + frame->bytes;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        const struct by_member_frame *frame = &samples[i].frame;
        struct by_member_frame read;
        uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
        size_t size = write_frame(frame, bytes), used;

        assert_int_equal(by_member_get(bytes, size, samples[i].side, &read, &used), 0);
        assert_int_equal(used, size);
        assert_int_equal(read.type, frame->type);
        assert_int_equal(read.job, frame->job);
        assert_int_equal(read.rank, frame->rank);
        assert_int_equal(read.gen, frame->gen);
        assert_int_equal(read.peer, frame->peer);
        assert_int_equal(read.code, frame->code);
        assert_int_equal(read.number, frame->number);
        assert_int_equal(read.base, frame->base);
        assert_int_equal(read.mask_bytes, frame->mask_bytes);
        assert_int_equal(read.bytes, frame->bytes);
        if (frame->bytes > 0)
            assert_memory_equal(read.data, frame->data, frame->bytes);
    }
}

static void a_frame_that_is_not_all_there_says_how_much_it_wants(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct by_member_frame read;
        uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
        size_t size = write_frame(&samples[i].frame, bytes), used;

        for (size_t part = 0; part < size; part++) {
            assert_int_equal(by_member_get(bytes, part, samples[i].side, &read, &used), BY_EAGAIN);
            assert_int_equal(used, part < BY_MEMBER_HEAD_BYTES ? BY_MEMBER_HEAD_BYTES : size);
        }
    }
}

static void a_frame_of_the_other_side_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct by_member_frame read;
        uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
        size_t size = write_frame(&samples[i].frame, bytes), used;
        enum by_member_side other = samples[i].side == BY_MEMBER_HOST ? BY_MEMBER_CONTROLLER : BY_MEMBER_HOST;

        assert_int_equal(by_member_get(bytes, size, other, &read, &used), BY_EFORMAT);
    }
}

static void another_version_is_seen_at_once(void **state)
{
    struct by_member_frame read;
    uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
    size_t used;

    (void)state;
    write_frame(&samples[1].frame, bytes);
    bytes[4] = BY_MEMBER_VERSION + 1;
    assert_int_equal(by_member_get(bytes, 5, BY_MEMBER_HOST, &read, &used), BY_EVERSION);
}

static void lengths_are_bounded_by_the_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct by_member_frame read;
        uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
        size_t size = write_frame(&samples[i].frame, bytes), used;
        uint32_t least = (uint32_t)(by_member_put(&samples[i].frame, bytes) - 4);

        by_put32(bytes, least - 1);
        assert_int_equal(by_member_get(bytes, size, samples[i].side, &read, &used), BY_EFORMAT);
        by_put32(bytes, UINT32_MAX);
        assert_int_equal(by_member_get(bytes, size, samples[i].side, &read, &used), BY_ELIMIT);
        assert_true(used >= size);
        by_put32(bytes, (uint32_t)used - 3); /* one more than the most, of which the length has 4 bytes */
        assert_int_equal(by_member_get(bytes, size, samples[i].side, &read, &used), BY_ELIMIT);
        by_put32(bytes, (uint32_t)used - 4);
        assert_int_not_equal(by_member_get(bytes, size, samples[i].side, &read, &used), BY_ELIMIT);
        by_put32(bytes, 0);
        assert_int_equal(by_member_get(bytes, size, samples[i].side, &read, &used), BY_EFORMAT);
    }
}

static void a_mask_of_trees_is_within_its_frame(void **state)
{
    struct by_member_frame read;
    uint8_t bytes[BY_MEMBER_FIXED_MAX + sizeof(report)];
    size_t size = write_frame(&samples[SAMPLES - 2].frame, bytes), used;

    (void)state;
    by_put16(bytes + BY_MEMBER_HEAD_BYTES + 2, sizeof(text));
    assert_int_equal(by_member_get(bytes, size, BY_MEMBER_CONTROLLER, &read, &used), 0);
    by_put16(bytes + BY_MEMBER_HEAD_BYTES + 2, sizeof(text) + 1);
    assert_int_equal(by_member_get(bytes, size, BY_MEMBER_CONTROLLER, &read, &used), BY_EFORMAT);
}

static void every_type_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(by_member_name(BY_MEMBER_HELLO), "HELLO");
    assert_string_equal(by_member_name(BY_MEMBER_FAIL), "FAIL");
    assert_string_equal(by_member_name(0), "?");
    assert_string_equal(by_member_name(255), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_frame_that_is_not_all_there_says_how_much_it_wants),
        cmocka_unit_test(a_frame_of_the_other_side_is_none),
        cmocka_unit_test(another_version_is_seen_at_once),
        cmocka_unit_test(lengths_are_bounded_by_the_type),
        cmocka_unit_test(a_mask_of_trees_is_within_its_frame),
        cmocka_unit_test(every_type_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
