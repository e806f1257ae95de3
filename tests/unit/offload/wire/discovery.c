/* Neighbour discovery over IPv6 (RFC 4861): every rule of a valid message, each broken under a
 * correct checksum, and frames that the fold leaves as they are. */
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

enum { AT_LENGTH = 18, AT_SRC = 22, AT_DST = 38, AT_ICMP = 54, AT_SUM = 56, AT_TARGET = 62, AT_OPTION = 78 };

/* fd00::1 and fd00::2 have the numbers 1 and 2. */
static const uint8_t records[2][BY_IPV6_RECORD_BYTES] = {{0, 0, 0, 1, 0xfd, [19] = 1},
                                                         {0, 0, 0, 2, 0xfd, [19] = 2}};
static const struct by_ipv6_book book = {records[0], 2};
static const uint8_t *const one = records[0] + 4, *const two = records[1] + 4;
static const uint8_t stranger[BY_IPV6_BYTES] = {0xfd, [15] = 9}, nothing[BY_IPV6_BYTES];
static const uint8_t host[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 1}, node[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 2};

static uint8_t bytes[160];

/* Sets the length and the checksum of the message. Returns the frame's bytes. */
static uint32_t seal(uint32_t length)
{
    uint32_t sum = 58 + length;

    by_put16(bytes + AT_LENGTH, (uint16_t)length);
    by_put16(bytes + AT_SUM, 0);
    for (uint32_t i = AT_SRC; i < AT_ICMP + length; i++)
        sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
    sum = (sum & 0xffff) + (sum >> 16);
    by_put16(bytes + AT_SUM, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    return AT_ICMP + length;
}

static void solicit(const uint8_t *from)
{
    memset(bytes, 0, sizeof(bytes));
    by_discovery_solicit(host, from, NULL, two, bytes);
}

static void advertise(const uint8_t *to)
{
    memset(bytes, 0, sizeof(bytes));
    by_discovery_advertise(host, two, node, to, bytes);
}

static int parse(uint32_t length)
{
    struct by_discovery_message message;

    return by_discovery_parse(bytes, seal(length), &message);
}

static void a_message_that_breaks_a_rule_is_refused_whatever_its_checksum(void **state)
{
    static const struct {
        uint8_t at, value;
    } rows[] = {
        {12, 8},          /* not IPv6 */
        {14, 0x40},       /* version 4 */
        {20, 17},         /* UDP */
        {21, 254},        /* forwarded by a router */
        {AT_ICMP, 134},   /* an advertisement of a router */
        {AT_ICMP + 1, 1}, /* an unknown code */
        {AT_TARGET, 0xff} /* a group */,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        solicit(one);
        assert_int_equal(parse(32), 0);
        bytes[rows[i].at] = rows[i].value;
        assert_int_equal(parse(32), BY_EFORMAT);
    }
    solicit(one);
    assert_int_equal(parse(24), 0);
    assert_int_equal(parse(23), BY_EFORMAT); /* shorter than a message without options */
}

/* The checksum is that of the bytes behind the frame, which are not looked at. */
static void a_message_longer_than_its_frame_is_refused(void **state)
{
    struct by_discovery_message message;
    uint32_t whole;

    (void)state;
    solicit(one);
    whole = seal(32);
    assert_int_equal(by_discovery_parse(bytes, whole, &message), 0);
    for (uint32_t missing = 1; missing <= 8; missing++)
        assert_int_equal(by_discovery_parse(bytes, whole - missing, &message), BY_EFORMAT);
}

static void options_are_read_to_their_end(void **state)
{
    struct by_discovery_message message;

    (void)state;
    solicit(one); /* an unknown option of 16 bytes before that of the MAC address */
    memcpy(bytes + AT_OPTION + 16, bytes + AT_OPTION, 8);
    memset(bytes + AT_OPTION, 0, 16);
    bytes[AT_OPTION] = 14;
    bytes[AT_OPTION + 1] = 2;
    bytes[AT_OPTION + 16 + 7] = 77;
    assert_int_equal(by_discovery_parse(bytes, seal(48), &message), 0);
    assert_int_equal(message.src_mac[5], 77);
    bytes[AT_OPTION + 1] = 0; /* such an option would never end */
    assert_int_equal(parse(48), BY_EFORMAT);
    bytes[AT_OPTION + 1] = 4; /* beyond the message */
    assert_int_equal(parse(48), BY_EFORMAT);
    solicit(one); /* half an option, in a message of odd length */
    assert_int_equal(parse(25), BY_EFORMAT);
    assert_int_equal(parse(31), BY_EFORMAT);
}

static void nobody_without_an_address_may_advertise_or_name_its_card(void **state)
{
    (void)state;
    solicit(nothing); /* with an option */
    assert_int_equal(parse(32), BY_EFORMAT);
    assert_int_equal(parse(24), 0);
    bytes[AT_DST] = 0xfd; /* to one node */
    assert_int_equal(parse(24), BY_EFORMAT);
    advertise(nothing);
    assert_int_equal(parse(32), 0);
    memset(bytes + AT_SRC, 0, BY_IPV6_BYTES);
    assert_int_equal(parse(32), BY_EFORMAT);
}

static void an_answer_to_all_nodes_answers_nobody(void **state)
{
    (void)state;
    advertise(nothing);
    bytes[AT_ICMP + 4] |= 0x40; /* solicited */
    assert_int_equal(parse(32), BY_EFORMAT);
    advertise(one);
    assert_int_equal(parse(32), 0);
}

static void a_card_is_neither_a_group_nor_zero(void **state)
{
    (void)state;
    advertise(one);
    bytes[AT_OPTION + 2] = 3;
    assert_int_equal(parse(32), BY_EFORMAT);
    advertise(one);
    memset(bytes + AT_OPTION + 2, 0, BY_MAC_BYTES);
    assert_int_equal(parse(32), BY_EFORMAT);
}

static void what_does_not_matter_here_is_not_folded(void **state)
{
    struct by_fold_asker asker = {{0}, {0}};
    uint8_t before[sizeof(bytes)];
    uint32_t size;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        solicit(one);
        size = BY_DISCOVERY_BYTES;
        if (i == 0)
            bytes[AT_SUM] ^= 1; /* damaged */
        if (i == 1)
            memcpy(bytes + AT_TARGET, stranger, BY_IPV6_BYTES);
        if (i == 1) /* no address of the table */
            seal(32);
        if (i == 2)
            size = BY_IPV6_HEADER_BYTES - 1;
        if (i == 3)
            bytes[12] = 8; /* IPv4, or anything else */
        memcpy(before, bytes, sizeof(bytes));
        assert_int_equal(by_fold(&book, &asker, bytes, &size), 0);
        assert_int_equal(size, i == 2 ? BY_IPV6_HEADER_BYTES - 1 : BY_DISCOVERY_BYTES);
        assert_memory_equal(bytes, before, sizeof(bytes));
    }
}

static void what_has_no_address_is_not_unfolded(void **state)
{
    struct by_fold_asker asker = {.mac = {2, 0, 0, 0, 0, 1}, .address = {0xfe, 0x80, [15] = 9}};
    uint8_t reply[BY_FRAME_HEADER_BYTES], headers[BY_DISCOVERY_BYTES];
    struct by_discovery_message message;

    (void)state;
    by_arp_request(node, 3, NULL, 2, bytes); /* from a number without an address, */
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), BY_ENOENT);
    by_arp_request(node, 1, NULL, 3, bytes); /* and for one */
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), BY_ENOENT);
    bytes[21] = 9; /* neither request nor reply */
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), 0);
    bytes[12] = 0x88; /* LLDP */
    bytes[13] = 0xcc;
    assert_int_equal(by_unfold(&book, &asker, bytes, headers), 0);
    /* The reply to a sender whose address has no number goes to that address alone. */
    by_arp_request(host, 0, NULL, 2, bytes);
    assert_int_equal(by_arp_reply(bytes, BY_FRAME_HEADER_BYTES, 2, node, reply), BY_FRAME_HEADER_BYTES);
    assert_int_equal(by_unfold(&book, &asker, reply, headers), BY_DISCOVERY_BYTES);
    assert_int_equal(by_discovery_parse(headers, BY_DISCOVERY_BYTES, &message), 0);
    assert_memory_equal(headers + AT_DST, asker.address, BY_IPV6_BYTES);
    asker.mac[5] = 7;
    assert_int_equal(by_unfold(&book, &asker, reply, headers), BY_ENOENT);
}

static void a_datagram_to_a_number_without_an_address_is_not_built(void **state)
{
    struct by_frame frame = {.src_ip = 1, .dst_ip = 3, .bytes = 10};
    struct by_frame parsed;

    (void)state;
    assert_int_equal(by_ipv6_build(&book, &frame, bytes), BY_ENOENT);
    frame.dst_ip = 2;
    assert_int_equal(by_ipv6_build(&book, &frame, bytes), 0);
    by_put16(bytes + 18, 65535); /* more than any datagram has */
    by_put16(bytes + 58, 65535);
    assert_int_equal(by_ipv6_parse(&book, bytes, 70000, &parsed), BY_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_that_breaks_a_rule_is_refused_whatever_its_checksum),
        cmocka_unit_test(a_message_longer_than_its_frame_is_refused),
        cmocka_unit_test(options_are_read_to_their_end),
        cmocka_unit_test(nobody_without_an_address_may_advertise_or_name_its_card),
        cmocka_unit_test(an_answer_to_all_nodes_answers_nobody),
        cmocka_unit_test(a_card_is_neither_a_group_nor_zero),
        cmocka_unit_test(what_does_not_matter_here_is_not_folded),
        cmocka_unit_test(what_has_no_address_is_not_unfolded),
        cmocka_unit_test(a_datagram_to_a_number_without_an_address_is_not_built),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
