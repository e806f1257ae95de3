/* Frames over IPv6: numbers of addresses, frames that must be refused, neighbour discovery, and the
 * form in which shells handle them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/fold.h"

enum { ADDRESSES = 5 };

/* fd00::1, fd00::2, fd00::1:0, fd00:0:0:1::, fdff::1 have the numbers 1, 2, 7, 8 and 0xffffff. */
static const uint8_t records[ADDRESSES][BY_IPV6_RECORD_BYTES] = {
    {0, 0, 0, 1, 0xfd, [19] = 1},
    {0, 0, 0, 2, 0xfd, [19] = 2},
    {0, 0, 0, 7, 0xfd, [17] = 1},
    {0, 0, 0, 8, 0xfd, [11] = 1},
    {0, 0xff, 0xff, 0xff, 0xfd, 0xff, [19] = 1},
};
static const struct by_ipv6_book book = {records[0], ADDRESSES};
static const uint8_t link_local[BY_IPV6_BYTES] = {0xfe, 0x80, [15] = 9}, nothing[BY_IPV6_BYTES];
static const uint8_t host[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 1}, node[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 2};

static uint8_t bytes[256];

static uint32_t build(uint16_t payload)
{
    struct by_frame frame = {
        .src_ip = 1, .dst_ip = 8, .src_port = 50000, .dst_port = 46247, .bytes = payload};

    memcpy(frame.src_mac, host, BY_MAC_BYTES);
    memcpy(frame.dst_mac, node, BY_MAC_BYTES);
    memset(bytes, 0x5a, sizeof(bytes));
    assert_int_equal(by_ipv6_build(&book, &frame, bytes), 0);
    return BY_IPV6_HEADER_BYTES + payload;
}

static void each_number_has_its_address(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ADDRESSES; i++) {
        assert_int_equal(by_ipv6_number(&book, records[i] + 4), by_get32(records[i]));
        assert_ptr_equal(by_ipv6_address(&book, by_get32(records[i])), records[i] + 4);
    }
    assert_int_equal(by_ipv6_number(&book, link_local), 0);
    assert_int_equal(by_ipv6_number(&book, nothing), 0);
    assert_null(by_ipv6_address(&book, 0));
    assert_null(by_ipv6_address(&book, 3));
    assert_null(by_ipv6_address(&(struct by_ipv6_book){NULL, 0}, 1));
    assert_true(by_ipv6_is(1) && by_ipv6_is(BY_IPV6_NUMBER_MAX));
    assert_false(by_ipv6_is(0) || by_ipv6_is(0x01000000) || by_ipv6_is(0xc6120001));
}

static void addresses_that_no_link_can_have_are_known(void **state)
{
    static const struct {
        uint8_t address[BY_IPV6_BYTES];
        enum by_ipv6_kind kind;
    } rows[] = {
        {{0xfd, [15] = 1}, BY_IPV6_UNICAST},
        {{0x20, 1, 0xd, 0xb8}, BY_IPV6_UNICAST},
        {{0}, BY_IPV6_UNSPECIFIED},
        {{[15] = 1}, BY_IPV6_LOOPBACK},
        {{0xfe, 0x80, [15] = 1}, BY_IPV6_LINK_LOCAL},
        {{0xfe, 0xbf, [15] = 1}, BY_IPV6_LINK_LOCAL},
        {{0xff, 2, [15] = 1}, BY_IPV6_MULTICAST},
        {{[10] = 0xff, 0xff, 10, 0, 0, 1}, BY_IPV6_MAPPED},
        {{[12] = 10, 0, 0, 1}, BY_IPV6_MAPPED},
        {{0xfe, 0xc0, [15] = 1}, BY_IPV6_UNICAST},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(by_ipv6_kind(rows[i].address), rows[i].kind);
}

static void a_frame_that_is_not_a_sound_datagram_is_refused(void **state)
{
    static const struct {
        uint8_t at, value;
    } rows[] = {{12, 8},
                {14, 0x45},
                {20, 6},
                {20, 44} /* a fragment */,
                {20, 0} /* hop-by-hop options */,
                {18, 1},
                {19, 17},
                {19, 7},
                {58, 1},
                {59, 17}};
    struct by_frame frame;

    (void)state;
    assert_int_equal(by_ipv6_parse(&book, bytes, build(10), &frame), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t size = build(10);

        bytes[rows[i].at] = rows[i].value;
        assert_int_equal(by_ipv6_parse(&book, bytes, size, &frame), BY_EFORMAT);
    }
}

static void a_frame_cut_anywhere_is_refused_and_padding_ignored(void **state)
{
    uint32_t size = build(10);
    struct by_frame frame;

    (void)state;
    for (uint32_t cut = 0; cut < size; cut++) {
        uint8_t *exact = malloc(cut + 1);

        memcpy(exact, bytes, cut);
        assert_int_equal(by_ipv6_parse(&book, exact, cut, &frame), BY_EFORMAT);
        free(exact);
    }
    assert_int_equal(by_ipv6_parse(&book, bytes, size + 20, &frame), 0);
    assert_int_equal(frame.bytes, 10);
}

static void an_address_without_a_number_is_0_and_cannot_be_built(void **state)
{
    uint32_t size = build(10);
    struct by_frame frame;

    (void)state;
    memcpy(bytes + 22, link_local, BY_IPV6_BYTES);
    assert_int_equal(by_ipv6_parse(&book, bytes, size, &frame), 0);
    assert_int_equal(frame.src_ip, 0);
    assert_int_equal(frame.dst_ip, 8);
    assert_int_equal(by_ipv6_build(&book, &frame, bytes), BY_ENOENT);
}

static void a_datagram_is_folded_and_unfolds_to_the_same_bytes(void **state)
{
    struct by_fold_asker asker = {{0}, {0}};
    uint8_t headers[BY_DISCOVERY_BYTES], before[128];
    uint32_t size = build(10);
    struct by_frame frame;

    (void)state;
    bytes[15] |= 0x30; /* CE */
    memcpy(before, bytes, size);
    assert_int_equal(by_fold(&book, &asker, bytes, &size), BY_IPV6_EXTRA_BYTES);
    assert_int_equal(size, BY_FRAME_HEADER_BYTES + 10);
    assert_int_equal(by_frame_parse(bytes + BY_IPV6_EXTRA_BYTES, size, &frame), 0);
    assert_int_equal(frame.src_ip, 1);
    assert_int_equal(frame.dst_ip, 8);
    assert_int_equal(frame.ecn, 3);
    assert_memory_equal(frame.src_mac, host, BY_MAC_BYTES);
    assert_int_equal(by_unfold(&book, &asker, bytes + BY_IPV6_EXTRA_BYTES, headers), BY_IPV6_HEADER_BYTES);
    assert_memory_equal(headers, before, BY_IPV6_HEADER_BYTES);
}

static void frames_over_ipv4_stay_as_they_are(void **state)
{
    struct by_frame frame = {.src_ip = 0xc6120001, .dst_ip = 0xc6120002, .bytes = 60};
    struct by_fold_asker asker = {{0}, {0}};
    uint8_t headers[BY_DISCOVERY_BYTES];
    uint32_t size = 102;

    (void)state;
    by_frame_build(&frame, bytes);
    assert_int_equal(by_fold(&book, &asker, bytes, &size), 0);
    assert_int_equal(size, 102);
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), 0);
    by_arp_request(host, 0xc6120001, NULL, 0xc6120002, bytes);
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), 0);
    frame.dst_ip = 3; /* a number without an address */
    by_frame_build(&frame, bytes);
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), BY_ENOENT);
}

/* A host asks from an address of the table or from its link-local one, or checks that its address
 * is unique; the answer goes to where it asked from. */
static void a_solicitation_is_an_arp_request_and_its_answer_an_advertisement(void **state)
{
    const uint8_t *const askers[] = {records[0] + 4, link_local, nothing};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct by_fold_asker asker = {{0}, {0}};
        uint8_t reply[BY_FRAME_HEADER_BYTES], headers[BY_DISCOVERY_BYTES];
        struct by_discovery_message answer;
        uint32_t size = BY_DISCOVERY_BYTES;
        struct by_arp arp;

        by_discovery_solicit(host, askers[i], NULL, records[3] + 4, bytes);
        if (askers[i] == nothing) { /* such a solicitation has no option (RFC 4861, section 4.3) */
            bytes[19] = 24;
            by_put16(bytes + 56, (uint16_t)(by_get16(bytes + 56) + 8 + 0x101 + 0x200 + 1)); /* its sum */
            size = 78;
        }
        assert_int_equal(by_fold(&book, &asker, bytes, &size), 0);
        assert_int_equal(size, BY_FRAME_HEADER_BYTES);
        assert_int_equal(by_arp_parse(bytes, size, &arp), 0);
        assert_true(arp.is_request);
        assert_int_equal(arp.src_ip, i == 0 ? 1 : 0);
        assert_int_equal(arp.dst_ip, 8);
        assert_memory_equal(arp.src_mac, host, BY_MAC_BYTES);
        assert_int_equal(by_arp_reply(bytes, size, 8, node, reply), BY_FRAME_HEADER_BYTES);
        assert_int_equal(by_unfold(&book, &asker, reply, headers), BY_DISCOVERY_BYTES);
        assert_int_equal(by_discovery_parse(headers, BY_DISCOVERY_BYTES, &answer), 0);
        assert_false(answer.is_solicitation);
        assert_memory_equal(answer.src_mac, node, BY_MAC_BYTES);
        assert_memory_equal(answer.target, records[3] + 4, BY_IPV6_BYTES);
        assert_int_equal(headers[0], i == 2 ? 0x33 : 2);
        assert_int_equal(headers[58], i == 2 ? 0x20 : 0x60); /* solicited, unless it goes to all nodes */
        if (i < 2)
            assert_memory_equal(headers + 38, askers[i], BY_IPV6_BYTES);
    }
}

static void a_request_is_a_solicitation_and_its_answer_an_arp_reply(void **state)
{
    struct by_fold_asker asker = {{0}, {0}};
    uint8_t request[BY_FRAME_HEADER_BYTES];
    struct by_discovery_message message;
    struct by_arp arp;

    (void)state;
    for (unsigned known = 0; known < 2; known++) {
        uint32_t size = BY_DISCOVERY_BYTES;

        by_arp_request(node, 8, known ? host : NULL, 7, request);
        assert_int_equal(by_unfold(&book, &asker, request, bytes), BY_DISCOVERY_BYTES);
        assert_int_equal(by_discovery_parse(bytes, size, &message), 0);
        assert_true(message.is_solicitation);
        assert_memory_equal(message.target, records[2] + 4, BY_IPV6_BYTES);
        assert_int_equal(bytes[0], known ? 2 : 0x33);
        by_discovery_advertise(host, records[2] + 4, node, known ? records[3] + 4 : nothing, bytes);
        assert_int_equal(by_fold(&book, &asker, bytes, &size), 0);
        assert_int_equal(size, BY_FRAME_HEADER_BYTES);
        assert_int_equal(by_arp_parse(bytes, size, &arp), 0);
        assert_false(arp.is_request);
        assert_int_equal(arp.src_ip, 7);
        assert_memory_equal(arp.src_mac, host, BY_MAC_BYTES);
    }
}

/* Each bit of a message but those that no rule covers: MAC addresses, class, flow label, and the
 * flags that only mean something to routers change the sum. */
static void a_damaged_message_of_discovery_is_refused(void **state)
{
    struct by_discovery_message message;

    (void)state;
    for (unsigned at = 18; at < BY_DISCOVERY_BYTES; at++) {
        by_discovery_advertise(node, records[3] + 4, host, records[0] + 4, bytes);
        bytes[at] ^= 4;
        assert_true(by_discovery_parse(bytes, BY_DISCOVERY_BYTES, &message) < 0);
    }
    for (uint32_t cut = 0; cut < BY_DISCOVERY_BYTES; cut++) {
        uint8_t *exact = malloc(cut + 1);

        by_discovery_advertise(node, records[3] + 4, host, records[0] + 4, bytes);
        memcpy(exact, bytes, cut);
        assert_true(by_discovery_parse(exact, cut, &message) < 0);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_has_its_address),
        cmocka_unit_test(addresses_that_no_link_can_have_are_known),
        cmocka_unit_test(a_frame_that_is_not_a_sound_datagram_is_refused),
        cmocka_unit_test(a_frame_cut_anywhere_is_refused_and_padding_ignored),
        cmocka_unit_test(an_address_without_a_number_is_0_and_cannot_be_built),
        cmocka_unit_test(a_datagram_is_folded_and_unfolds_to_the_same_bytes),
        cmocka_unit_test(frames_over_ipv4_stay_as_they_are),
        cmocka_unit_test(a_solicitation_is_an_arp_request_and_its_answer_an_advertisement),
        cmocka_unit_test(a_request_is_a_solicitation_and_its_answer_an_arp_reply),
        cmocka_unit_test(a_damaged_message_of_discovery_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
