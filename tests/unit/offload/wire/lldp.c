/* LLDP frames: writing and reading, frames of other programs, frames that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/wire/lldp.h"

static const struct by_lldp sample = {
    .source = {0x0c, 0x42, 0xa1, 0, 0x10, 1},
    .node = "leaf0",
    .port = "enp65s0f0",
    .ttl_s = BY_LLDP_TTL_S,
    .forwards = true,
};

/* A frame of lldpd on Linux, shortened: MAC addresses identify chassis and port. */
static const uint8_t foreign[] = {
    0x01, 0x80, 0xc2, 0,    0,    0x0e, 0x02, 0x42, 0xac, 0x11, 0, 2, 0x88, 0xcc, /* Ethernet */
    0x02, 0x07, 0x04, 0x02, 0x42, 0xac, 0x11, 0,    1,                            /* chassis */
    0x04, 0x07, 0x03, 0x02, 0x42, 0xac, 0x11, 0,    2,                            /* port */
    0x06, 0x02, 0,    0x78,                                                       /* TTL */
    0x0a, 0x05, 'h',  'o',  's',  't',  7,                                        /* name */
    0x0e, 0x04, 0,    0x9c, 0,    0x80,                                           /* abilities */
    0x08, 0x04, 'e',  't',  'h',  '0',                                            /* description */
    0xfe, 0x06, 0,    0x12, 0x0f, 1,    2,    3,                                  /* IEEE 802.3 */
    0,    0,
};

static void a_frame_reads_as_what_it_was_written_from(void **state)
{
    uint8_t frame[BY_LLDP_BYTES_MAX];
    struct by_lldp got, longest = sample;
    size_t bytes = by_lldp_encode(&sample, frame);

    (void)state;
    assert_true(by_lldp_parse(frame, bytes, &got));
    assert_memory_equal(&got, &sample, sizeof(got));
    assert_int_equal(frame[0] & 1, 1);
    assert_true(bytes >= 60);

    memset(longest.node, 'n', BY_NAME_MAX);
    memset(longest.port, 'p', BY_NAME_MAX);
    longest.forwards = false;
    bytes = by_lldp_encode(&longest, frame);
    assert_in_range(bytes, 60, BY_LLDP_BYTES_MAX);
    assert_true(by_lldp_parse(frame, bytes, &got));
    assert_memory_equal(&got, &longest, sizeof(got));
}

static void a_frame_of_another_program_reads(void **state)
{
    struct by_lldp got;

    (void)state;
    assert_true(by_lldp_parse(foreign, sizeof(foreign), &got));
    assert_string_equal(got.node, "host?"); /* no control characters reach a terminal */
    assert_string_equal(got.port, "02:42:ac:11:00:02");
    assert_string_equal(got.description, "eth0");
    assert_int_equal(got.ttl_s, 120);
    assert_false(got.forwards);
    assert_int_equal(got.source[5], 2);
}

static void what_is_no_printable_character_is_replaced(void **state)
{
    struct by_lldp got, odd = sample;
    uint8_t frame[BY_LLDP_BYTES_MAX];
    size_t bytes;

    (void)state;
    memcpy(odd.node, "\x1f !~\x7f\x80", 7);
    bytes = by_lldp_encode(&odd, frame);
    assert_true(by_lldp_parse(frame, bytes, &got));
    assert_string_equal(got.node, "?\?!~?\?");
}

static void a_frame_that_ends_within_an_element_is_refused(void **state)
{
    struct by_lldp got;

    (void)state;
    for (size_t bytes = 0; bytes < sizeof(foreign); bytes++) {
        uint8_t *exact = malloc(bytes + 1); /* a sanitizer sees what is read beyond it */
        bool whole;

        memcpy(exact, foreign, bytes);
        whole = by_lldp_parse(exact, bytes, &got);
        free(exact);
        if (bytes < 36)
            assert_false(whole); /* the mandatory elements end there */
    }
}

/* What is behind the frame in memory is not read: here another name. */
static void a_frame_without_an_end_ends_with_its_bytes(void **state)
{
    struct by_lldp got;

    (void)state;
    for (size_t bytes = 36; bytes < 38; bytes++) { /* chassis, port, TTL, and a byte of the next head */
        assert_true(by_lldp_parse(foreign, bytes, &got));
        assert_int_equal(got.ttl_s, 120);
        assert_string_equal(got.node, "02:42:ac:11:00:01");
        assert_string_equal(got.description, "");
    }
}

static void a_frame_with_changed_bytes_is_refused_or_reads_as_texts_that_end(void **state)
{
    struct by_lldp got;

    (void)state;
    for (size_t at = 12; at < sizeof(foreign); at++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t frame[sizeof(foreign)];

            memcpy(frame, foreign, sizeof(frame));
            frame[at] = (uint8_t)value;
            if (!by_lldp_parse(frame, sizeof(frame), &got))
                continue;
            assert_in_range(strlen(got.node), 1, BY_NAME_MAX);
            assert_in_range(strlen(got.port), 1, BY_NAME_MAX);
            assert_in_range(strlen(got.description), 0, BY_NAME_MAX);
        }
}

static void the_mandatory_elements_must_come_first_and_in_order(void **state)
{
    uint8_t frame[sizeof(foreign)];
    struct by_lldp got;

    (void)state;
    memcpy(frame, foreign, sizeof(frame));
    frame[14] = 0x04; /* the port comes before the chassis */
    assert_false(by_lldp_parse(frame, sizeof(frame), &got));
    memcpy(frame, foreign, sizeof(frame));
    frame[32] = 0; /* the end comes before the TTL */
    frame[33] = 0;
    assert_false(by_lldp_parse(frame, sizeof(frame), &got));
    memcpy(frame, foreign, sizeof(frame));
    by_put16(frame + 12, 0x0800);
    assert_false(by_lldp_parse(frame, sizeof(frame), &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_reads_as_what_it_was_written_from),
        cmocka_unit_test(a_frame_of_another_program_reads),
        cmocka_unit_test(what_is_no_printable_character_is_replaced),
        cmocka_unit_test(a_frame_that_ends_within_an_element_is_refused),
        cmocka_unit_test(a_frame_without_an_end_ends_with_its_bytes),
        cmocka_unit_test(a_frame_with_changed_bytes_is_refused_or_reads_as_texts_that_end),
        cmocka_unit_test(the_mandatory_elements_must_come_first_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
