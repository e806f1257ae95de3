/* Frames: writing and reading, frames that must be refused, ARP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/frame.h"

static const struct by_frame sample = {
    .src_mac = {2, 0x62, 198, 18, 0, 2},
    .dst_mac = {2, 0x62, 198, 18, 0, 3},
    .src_ip = 0xc6120002,
    .dst_ip = 0xc6120003,
    .src_port = 40000,
    .dst_port = 46247,
    .ecn = 2,
    .bytes = 10,
};

static uint8_t frame_bytes[1600];

static size_t build(void)
{
    memset(frame_bytes, 0x5a, sizeof(frame_bytes));
    by_frame_build(&sample, frame_bytes);
    return BY_FRAME_HEADER_BYTES + sample.bytes;
}

static void checksum(void)
{
    uint32_t sum = 0;

    by_put16(frame_bytes + 24, 0);
    for (unsigned i = 14; i < 34; i += 2)
        sum += by_get16(frame_bytes + i);
    sum = (sum & 0xffff) + (sum >> 16);
    by_put16(frame_bytes + 24, (uint16_t) ~(sum + (sum >> 16)));
}

static void a_built_frame_parses_to_what_it_was_built_from(void **state)
{
    struct by_frame got;
    size_t size = build();

    (void)state;
    assert_int_equal(by_frame_parse(frame_bytes, size, &got), 0);
    assert_memory_equal(got.src_mac, sample.src_mac, 6);
    assert_memory_equal(got.dst_mac, sample.dst_mac, 6);
    assert_int_equal(got.src_ip, sample.src_ip);
    assert_int_equal(got.dst_ip, sample.dst_ip);
    assert_int_equal(got.src_port, sample.src_port);
    assert_int_equal(got.dst_port, sample.dst_port);
    assert_int_equal(got.ecn, 2);
    assert_int_equal(got.bytes, 10);
    assert_ptr_equal(got.data, frame_bytes + BY_FRAME_HEADER_BYTES);
}

/* The header of the common example for the Internet checksum: 45 00 00 73 .. c0 a8 00 c7 has the
 * checksum b8 61. */
static void the_ip_checksum_is_that_of_a_known_header(void **state)
{
    static const uint8_t known[20] = {0x45, 0,    0,    0x73, 0, 0, 0x40, 0,    0x40, 0x11,
                                      0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,    0xc7};
    struct by_frame frame = sample;

    (void)state;
    frame.ecn = 0;
    frame.src_ip = 0xc0a80001;
    frame.dst_ip = 0xc0a800c7;
    frame.bytes = 0x73 - 28;
    by_frame_build(&frame, frame_bytes);
    assert_memory_equal(frame_bytes + 14, known, sizeof(known));
}

static void a_marked_frame_is_as_sound_as_before(void **state)
{
    uint8_t built[BY_FRAME_HEADER_BYTES + 100] = {0}, marked[sizeof(built)];

    (void)state;
    for (uint32_t i = 0; i < 4096; i++) {
        struct by_frame frame = {.src_ip = 0x0a000001 + i * 77777,
                                 .dst_ip = 0xc6120000 + i,
                                 .src_port = 1,
                                 .dst_port = 2,
                                 .ecn = i & 3,
                                 .bytes = (uint16_t)(i % 101)};
        struct by_frame got;

        by_frame_build(&frame, built);
        frame.ecn = i >> 2 & 3;
        by_frame_build(&frame, marked);
        by_frame_mark(built, frame.ecn);
        assert_memory_equal(built, marked, BY_FRAME_HEADER_BYTES);
        assert_int_equal(by_frame_parse(built, sizeof(built), &got), 0);
        assert_int_equal(got.ecn, frame.ecn);
    }
}

static void padding_after_the_datagram_is_ignored(void **state)
{
    struct by_frame got;

    (void)state;
    build();
    assert_int_equal(by_frame_parse(frame_bytes, 60, &got), 0);
    assert_int_equal(got.bytes, 10);
}

static void frames_that_are_not_a_sound_datagram_are_refused(void **state)
{
    static const struct {
        const char *what;
        unsigned at;
        uint16_t value; /* written in 16 bits */
        int sealed;
        int want;
    } rows[] = {
        {"sound", 26, 0xc612, 1, 0},
        {"IPv6", 12, 0x86dd, 1, BY_EFORMAT},
        {"VLAN", 12, 0x8100, 1, BY_EFORMAT},
        {"IP version 6 inside", 14, 0x6500, 1, BY_EFORMAT},
        {"IP options", 14, 0x4600, 1, BY_EFORMAT},
        {"IP header too short", 14, 0x4400, 1, BY_EFORMAT},
        {"total length beyond the frame", 16, 39, 1, BY_EFORMAT},
        {"total length below the headers", 16, 27, 1, BY_EFORMAT},
        {"total length shorter than UDP says", 16, 37, 1, BY_EFORMAT},
        {"more fragments", 20, 0x2000, 1, BY_EFORMAT},
        {"a later fragment", 20, 0x0001, 1, BY_EFORMAT},
        {"TCP", 22, 0x4006, 1, BY_EFORMAT},
        {"UDP length too long", 38, 19, 1, BY_EFORMAT},
        {"UDP length zero", 38, 0, 1, BY_EFORMAT},
        {"IP checksum", 24, 0x1234, 0, BY_ECHECKSUM},
        {"another source, checksum not renewed", 26, 0xc613, 0, BY_ECHECKSUM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_frame got;
        size_t size = build();

        by_put16(frame_bytes + rows[i].at, rows[i].value);
        if (rows[i].sealed)
            checksum();
        if (by_frame_parse(frame_bytes, size, &got) != rows[i].want)
            fail_msg("%s", rows[i].what);
    }
}

static void a_frame_cut_anywhere_is_refused(void **state)
{
    size_t size = build();

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *exact = malloc(cut + 1);
        struct by_frame got;

        memcpy(exact + 1, frame_bytes, cut);
        assert_int_equal(by_frame_parse(exact + 1, cut, &got), BY_EFORMAT);
        free(exact);
    }
}

static const uint8_t request[42] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0, 0, 0, 9, 8, 6, /* broadcast, from the requester, ARP */
    0,    1,    8,    0,    6,    4,    0,  1,                   /* Ethernet, IPv4, request */
    2,    0,    0,    0,    0,    9,    10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1, /* requester, target */
};

static void an_arp_request_for_our_address_gets_our_mac(void **state)
{
    static const uint8_t mac[6] = {2, 0x62, 10, 0, 0, 1};
    static const uint8_t want[42] = {
        2, 0, 0,    0,  0, 9, 2, 0x62, 10, 0, 0, 1, 8, 6, 0, 1, 8, 0,  6, 4, 0,
        2, 2, 0x62, 10, 0, 0, 1, 10,   0,  0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 9,
    };
    uint8_t reply[42];

    (void)state;
    assert_int_equal(by_arp_reply(request, 42, 0x0a000001, mac, reply), 42);
    assert_memory_equal(reply, want, 42);
    assert_int_equal(by_arp_reply(request, 42, 0x0a000002, mac, reply), 0);
}

static void a_tag_is_that_of_a_known_frame(void **state)
{
    /* two MAC addresses, 802.1Q with priority 0 and VLAN 4094, IPv4 */
    static const uint8_t want[20] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x81, 0, 0x0f, 0xfe, 8, 0, 0x45, 0};
    uint8_t bytes[20] = {0xaa, 0xaa, 0xaa, 0xaa, 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0};

    (void)state;
    assert_int_equal(by_frame_vlan(bytes + 4, 16), 0);
    by_frame_tag(bytes + 4, 4094);
    assert_memory_equal(bytes, want, sizeof want);
    for (size_t size = 0; size < 18; size++)
        assert_int_equal(by_frame_vlan(bytes, size), 0);
    assert_int_equal(by_frame_vlan(bytes, sizeof bytes), 4094);
    bytes[14] = 0xef; /* priority 7 */
    assert_int_equal(by_frame_vlan(bytes, sizeof bytes), 4094);
    by_frame_untag(bytes);
    assert_memory_equal(bytes + 4, want, 12);
    assert_memory_equal(bytes + 16, want + 16, 4);
    bytes[12] = 0x81;
    bytes[13] = bytes[14] = bytes[15] = 0;
    assert_int_equal(by_frame_vlan(bytes, sizeof bytes), BY_FRAME_VLAN_NONE); /* a priority tag */
}

static void an_arp_request_is_that_of_a_known_frame(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    static const uint8_t other[6] = {2, 0, 0, 0, 0, 8};
    uint8_t bytes[42];
    struct by_arp arp;

    (void)state;
    by_arp_request(mac, 0x0a000009, NULL, 0x0a000001, bytes);
    assert_memory_equal(bytes, request, 42);
    assert_int_equal(by_arp_parse(bytes, 42, &arp), 0);
    assert_true(arp.is_request);
    assert_int_equal(arp.src_ip, 0x0a000009);
    assert_int_equal(arp.dst_ip, 0x0a000001);
    assert_memory_equal(arp.src_mac, mac, 6);
    by_arp_request(mac, 0x0a000009, other, 0x0a000001, bytes);
    assert_memory_equal(bytes, other, 6);
    assert_memory_equal(bytes + 6, request + 6, 36);
    bytes[22] = 3; /* from a group */
    assert_int_equal(by_arp_parse(bytes, 42, &arp), BY_EFORMAT);
    memset(bytes + 22, 0, 6); /* no address */
    assert_int_equal(by_arp_parse(bytes, 42, &arp), BY_EFORMAT);
}

static void other_arp_and_cut_arp_get_no_reply(void **state)
{
    static const uint8_t mac[6] = {2, 0x62, 10, 0, 0, 1};
    static const unsigned at[] = {12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    uint8_t bytes[42], reply[42];

    (void)state;
    for (size_t size = 0; size < 42; size++) {
        uint8_t *exact = malloc(size + 1);

        memcpy(exact + 1, request, size);
        assert_int_equal(by_arp_reply(exact + 1, size, 0x0a000001, mac, reply), 0);
        free(exact);
    }
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        memcpy(bytes, request, 42);
        bytes[at[i]] ^= 3;
        assert_int_equal(by_arp_reply(bytes, 42, 0x0a000001, mac, reply), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_built_frame_parses_to_what_it_was_built_from),
        cmocka_unit_test(the_ip_checksum_is_that_of_a_known_header),
        cmocka_unit_test(a_marked_frame_is_as_sound_as_before),
        cmocka_unit_test(padding_after_the_datagram_is_ignored),
        cmocka_unit_test(frames_that_are_not_a_sound_datagram_are_refused),
        cmocka_unit_test(a_frame_cut_anywhere_is_refused),
        cmocka_unit_test(an_arp_request_for_our_address_gets_our_mac),
        cmocka_unit_test(a_tag_is_that_of_a_known_frame),
        cmocka_unit_test(an_arp_request_is_that_of_a_known_frame),
        cmocka_unit_test(other_arp_and_cut_arp_get_no_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
