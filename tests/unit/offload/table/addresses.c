/* IPv6 addresses in images: their version, numbers, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/table/layout.h"
#include "tests/unit/offload/table/sample.h"

static struct table_sample sample;
static uint8_t image[SAMPLE_BYTES_MAX];

static int setup(void **state)
{
    (void)state;
    sample_fill_ipv6(&sample);
    return 0;
}

static void an_image_without_ipv6_is_of_version_2_as_before(void **state)
{
    struct by_ipv6_book book;
    size_t bytes;

    (void)state;
    sample_fill(&sample);
    bytes = sample_write(&sample, image);
    assert_int_equal(by_get16(image + 4), 2);
    assert_int_equal(by_get32(image + 116), 2); /* keys */
    assert_int_equal(by_get32(image + 120), 0);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    assert_int_equal(by_image_addresses_check(image, NULL), 0);
    by_image_book(image, &book);
    assert_int_equal(book.count, 0);
}

static void an_image_with_ipv6_is_of_version_3_and_its_book_names_the_addresses(void **state)
{
    size_t bytes = sample_write(&sample, image);
    struct by_image_key key;
    struct by_ipv6_book book;

    (void)state;
    assert_int_equal(by_get16(image + 4), 3);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    assert_int_equal(by_image_addresses_check(image, NULL), 0);
    by_image_book(image, &book);
    assert_int_equal(book.count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_memory_equal(by_ipv6_address(&book, i + 1), sample.address[i].address, BY_IPV6_BYTES);
        assert_int_equal(by_ipv6_number(&book, sample.address[i].address), i + 1);
    }
    by_image_key(image, 1, &key);                                     /* the section behind the addresses */
    assert_memory_equal(key.key, sample.key[1].key, sizeof(key.key)); /* padding is not compared */
    assert_int_equal(key.job, sample.key[1].job);
    assert_int_equal(key.cover, sample.key[1].cover);
}

static void keys_are_added_behind_the_addresses(void **state)
{
    static uint8_t out[SAMPLE_BYTES_MAX];
    struct by_ipv6_book book;
    size_t bytes;

    (void)state;
    sample_write(&sample, image);
    bytes = by_image_put_keys(image, sample.key, 2, out);
    assert_int_equal(by_image_check(out, bytes, NULL, NULL), 0);
    assert_int_equal(by_image_addresses_check(out, NULL), 0);
    by_image_book(out, &book);
    assert_memory_equal(by_ipv6_address(&book, 2), sample.address[1].address, BY_IPV6_BYTES);
}

/* Writes the sample and expects its refusal at a record of `section`. */
static void expect_refusal(const char *section, uint32_t index, const char *what)
{
    struct by_image_fault fault = {0};
    size_t bytes = sample_write(&sample, image);

    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    assert_int_equal(by_image_addresses_check(image, &fault), BY_EFORMAT);
    assert_string_equal(fault.section, section);
    assert_int_equal(fault.index, index);
    if (strstr(fault.what, what) == NULL)
        fail_msg("%s", fault.what);
    setup(NULL);
}

static void addresses_that_are_not_in_order_or_of_no_link_are_refused(void **state)
{
    (void)state;
    sample.address[1].number = 1;
    expect_refusal("address", 1, "numbers do not ascend");
    sample.address[0].number = 0;
    expect_refusal("address", 0, "numbers do not ascend");
    sample.address[1].number = BY_IPV6_NUMBER_MAX + 1;
    expect_refusal("address", 1, "numbers do not ascend");
    sample.address[1] = (struct by_image_address){2, {0xfd, [15] = 1}};
    expect_refusal("address", 1, "IPv6 addresses do not ascend");
    sample.address[1].address[0] = 0x20;
    expect_refusal("address", 1, "IPv6 addresses do not ascend");
    sample.address[1].address[0] = 0xff;
    expect_refusal("address", 1, "no end of a link");
    sample.address[0].address[0] = 0;
    expect_refusal("address", 0, "no end of a link");
}

static void numbers_without_an_address_and_mixed_families_are_refused(void **state)
{
    (void)state;
    sample.port[1].own_ip = 3;
    expect_refusal("port", 1, "not in the address section");
    sample.port[1].peer_ip = 0xc6120003;
    expect_refusal("port", 1, "different families");
    sample.port[1].mtu = 1495;
    expect_refusal("leaf", 1, "payload and IPv6 headers exceed the MTU");
    sample.entry[1].parent_ip = 0xc6120003;
    expect_refusal("entry", 1, "another family");
    sample.child[0].ip = 1;
    expect_refusal("child", 0, "another family");
    sample.leaf[1].parent_ip = 9;
    expect_refusal("leaf", 1, "not in the address section");
    sample.relay[0].dst_ip = 0xc6120009;
    expect_refusal("relay", 0, "different families");
    sample.relay[1].src_ip = 9;
    expect_refusal("relay", 1, "not in the address section");
}

static void the_version_says_whether_there_are_addresses(void **state)
{
    struct by_image_fault fault = {0};
    size_t bytes = sample_write(&sample, image);

    (void)state;
    by_put16(image + 4, 2);
    sample_reseal(image, bytes);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    assert_int_equal(by_image_addresses_check(image, &fault), BY_EVERSION);
    assert_string_equal(fault.section, "header");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_image_without_ipv6_is_of_version_2_as_before, setup),
        cmocka_unit_test_setup(an_image_with_ipv6_is_of_version_3_and_its_book_names_the_addresses, setup),
        cmocka_unit_test_setup(keys_are_added_behind_the_addresses, setup),
        cmocka_unit_test_setup(addresses_that_are_not_in_order_or_of_no_link_are_refused, setup),
        cmocka_unit_test_setup(numbers_without_an_address_and_mixed_families_are_refused, setup),
        cmocka_unit_test_setup(the_version_says_whether_there_are_addresses, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
