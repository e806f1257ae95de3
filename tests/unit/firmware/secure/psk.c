/*
 * The pre-shared key mode of the control channel, with both ends in one process: sessions, tags,
 * numbers, and attacks, all of which must be refused. A separate program computed the expected
 * bytes from the description of the format.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "firmware/secure/psk.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

#define TEXT "000102030405060708090a0b0c0d0e0f"

static const uint8_t of_controller[BY_PSK_NONCE_BYTES] = {0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
                                                          0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f};
static const uint8_t of_switch[BY_PSK_NONCE_BYTES] = {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47,
                                                      0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f};

/* Both ends of a session. */
struct psk_pair {
    struct by_psk controller, device;
};

static struct by_siphash_key key_of(const char *text)
{
    struct by_siphash_key key;

    assert_int_equal(by_psk_key_read(&key, text), 0);
    return key;
}

static struct psk_pair meet(const uint8_t *nonce)
{
    struct by_siphash_key key = key_of(TEXT);
    uint8_t open[BY_PSK_OPEN_BYTES], welcome[BY_PSK_WELCOME_BYTES];
    struct psk_pair pair;

    by_psk_open(open, of_controller);
    assert_true(by_psk_is_open(open, sizeof open));
    by_psk_welcome(&pair.device, &key, open, nonce, welcome);
    assert_int_equal(by_psk_accept(&pair.controller, &key, of_controller, welcome, sizeof welcome),
                     BY_PSK_FINE);
    return pair;
}

/* Seals a body with `text`. Returns its size (bytes). */
static size_t seal(struct by_psk *psk, const char *text, uint8_t *body)
{
    size_t bytes;

    for (bytes = 0; text[bytes]; bytes++)
        body[BY_PSK_HEAD_BYTES + bytes] = (uint8_t)text[bytes];
    return by_psk_seal(psk, body, bytes);
}

static void the_bytes_are_those_of_the_description(void **state)
{
    static const uint8_t welcome_tag[] = {0xb5, 0xf7, 0x6d, 0x01, 0xd9, 0x98, 0x41, 0x83},
                         first_tag[] = {0x9d, 0x62, 0x3c, 0x3d, 0xa8, 0x92, 0xf3, 0x2a},
                         second_tag[] = {0x34, 0x56, 0xc9, 0xbf, 0x5c, 0xf1, 0xf7, 0x59},
                         answer_tag[] = {0xc0, 0xc7, 0x54, 0x8c, 0x66, 0x30, 0xcf, 0x30};
    struct by_siphash_key key = key_of(TEXT);
    uint8_t open[BY_PSK_OPEN_BYTES], body[64];
    struct by_psk device;
    struct psk_pair pair = meet(of_switch);

    (void)state;
    by_psk_open(open, of_controller);
    assert_memory_equal(open, "BYK1", 4);
    assert_memory_equal(open + 4, of_controller, sizeof of_controller);
    by_psk_welcome(&device, &key, open, of_switch, body);
    assert_memory_equal(body, "BYK2", 4);
    assert_memory_equal(body + 4, of_switch, sizeof of_switch);
    assert_memory_equal(body + 20, welcome_tag, sizeof welcome_tag);
    assert_int_equal(seal(&pair.controller, "banyan", body), 26);
    assert_memory_equal(body, "BYK3\0\0\0\0\0\0\0\0banyan", 18);
    assert_memory_equal(body + 18, first_tag, sizeof first_tag);
    assert_int_equal(seal(&pair.controller, "", body), BY_PSK_BYTES);
    assert_memory_equal(body, "BYK3\0\0\0\0\0\0\0\1", 12);
    assert_memory_equal(body + 12, second_tag, sizeof second_tag);
    assert_int_equal(seal(&pair.device, "banyan", body), 26);
    assert_memory_equal(body + 18, answer_tag, sizeof answer_tag);
}

static void a_key_is_32_digits_and_nothing_else(void **state)
{
    static const char *const wrong[] = {"",
                                        "00",
                                        "000102030405060708090a0b0c0d0e0",
                                        "000102030405060708090a0b0c0d0e0g",
                                        "000102030405060708090a0b0c0d0e0f0",
                                        " 000102030405060708090a0b0c0d0e0f",
                                        "000102030405060708090a0b0c0d0e0f\nx"};
    struct by_siphash_key key, upper = key_of("000102030405060708090A0B0C0D0E0F\n");

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(by_psk_key_read(&key, wrong[i]), BY_EFORMAT);
    key = key_of(TEXT);
    assert_true(key.k0 == 0x0706050403020100 && key.k1 == 0x0f0e0d0c0b0a0908);
    assert_memory_equal(&key, &upper, sizeof key);
}

static void messages_go_both_ways_in_order(void **state)
{
    struct psk_pair pair = meet(of_switch);
    uint8_t body[64];

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        size_t bytes = seal(&pair.controller, i % 2 ? "a request" : "", body);

        assert_int_equal(by_psk_unseal(&pair.device, body, bytes), BY_PSK_FINE);
        assert_int_equal(bytes - BY_PSK_BYTES, i % 2 ? 9 : 0);
        bytes = seal(&pair.device, "an answer", body);
        assert_int_equal(by_psk_unseal(&pair.controller, body, bytes), BY_PSK_FINE);
        assert_memory_equal(body + BY_PSK_HEAD_BYTES, "an answer", 9);
    }
}

static void a_bit_changed_anywhere_is_found_and_ends_the_session(void **state)
{
    struct psk_pair pair = meet(of_switch);
    uint8_t body[64];
    size_t bytes = seal(&pair.controller, "a request", body);

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        struct by_psk device = pair.device;

        body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(by_psk_unseal(&device, body, bytes), BY_PSK_FINE);
        assert_false(device.is_open);
        body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(by_psk_unseal(&device, body, bytes),
                         BY_PSK_CLOSED); /* valid messages too, from then on */
    }
    assert_int_equal(by_psk_unseal(&pair.device, body, bytes), BY_PSK_FINE);
}

static void a_message_that_is_cut_or_longer_is_not_taken(void **state)
{
    struct psk_pair pair = meet(of_switch);
    uint8_t body[128] = {0};
    size_t bytes = seal(&pair.controller, "a request", body);

    (void)state;
    for (size_t other = 0; other < sizeof body; other++) {
        struct by_psk device = pair.device;
        enum by_psk_fault wanted = other < 4              ? BY_PSK_PLAIN
                                   : other < BY_PSK_BYTES ? BY_PSK_CUT
                                                          : BY_PSK_FORGED;

        if (other != bytes)
            assert_int_equal(by_psk_unseal(&device, body, other), wanted);
    }
}

static void a_message_played_again_or_out_of_order_is_stale(void **state)
{
    struct psk_pair pair = meet(of_switch);
    struct by_psk before;
    uint8_t first[64], second[64];
    size_t bytes = seal(&pair.controller, "first", first);

    (void)state;
    assert_int_equal(seal(&pair.controller, "again", second), bytes);
    before = pair.device;
    assert_int_equal(by_psk_unseal(&before, second, bytes), BY_PSK_STALE);
    assert_int_equal(by_psk_unseal(&pair.device, first, bytes), BY_PSK_FINE);
    before = pair.device;
    assert_int_equal(by_psk_unseal(&before, first, bytes), BY_PSK_STALE);
    assert_int_equal(by_psk_unseal(&before, second, bytes), BY_PSK_CLOSED);
    assert_int_equal(by_psk_unseal(&pair.device, second, bytes), BY_PSK_FINE);
}

static void a_message_of_another_session_or_sent_back_is_forged(void **state)
{
    struct psk_pair pair = meet(of_switch), other;
    uint8_t body[64], nonce[BY_PSK_NONCE_BYTES];
    struct by_psk end;
    size_t bytes;

    (void)state;
    memcpy(nonce, of_switch, sizeof nonce);
    nonce[15]++;
    other = meet(nonce);
    bytes = seal(&pair.controller, "a request", body);
    end = other.device;
    assert_int_equal(by_psk_unseal(&end, body, bytes), BY_PSK_FORGED);
    end = pair.controller;
    assert_int_equal(by_psk_unseal(&end, body, bytes), BY_PSK_FORGED);
    assert_int_equal(by_psk_unseal(&pair.device, body, bytes), BY_PSK_FINE);
}

static void a_switch_without_the_key_is_not_accepted(void **state)
{
    struct by_siphash_key key = key_of(TEXT), other = key_of("100102030405060708090a0b0c0d0e0f");
    uint8_t open[BY_PSK_OPEN_BYTES], welcome[BY_PSK_WELCOME_BYTES], nonce[BY_PSK_NONCE_BYTES];
    struct by_psk controller, device;

    (void)state;
    by_psk_open(open, of_controller);
    by_psk_welcome(&device, &other, open, of_switch, welcome);
    assert_int_equal(by_psk_accept(&controller, &key, of_controller, welcome, sizeof welcome), BY_PSK_FORGED);
    assert_false(controller.is_open);
    /* The recorded welcome of another session: the controller's nonce has changed. */
    by_psk_welcome(&device, &key, open, of_switch, welcome);
    memcpy(nonce, of_controller, sizeof nonce);
    nonce[0]++;
    assert_int_equal(by_psk_accept(&controller, &key, nonce, welcome, sizeof welcome), BY_PSK_FORGED);
    for (size_t bytes = 0; bytes < sizeof welcome; bytes++)
        assert_int_equal(by_psk_accept(&controller, &key, of_controller, welcome, bytes),
                         bytes < 4 ? BY_PSK_PLAIN : BY_PSK_CUT);
    for (size_t bit = 0; bit < 8 * sizeof welcome; bit++) {
        welcome[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(by_psk_accept(&controller, &key, of_controller, welcome, sizeof welcome),
                             BY_PSK_FINE);
        welcome[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(by_psk_accept(&controller, &key, of_controller, welcome, sizeof welcome), BY_PSK_FINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_description),
        cmocka_unit_test(a_key_is_32_digits_and_nothing_else),
        cmocka_unit_test(messages_go_both_ways_in_order),
        cmocka_unit_test(a_bit_changed_anywhere_is_found_and_ends_the_session),
        cmocka_unit_test(a_message_that_is_cut_or_longer_is_not_taken),
        cmocka_unit_test(a_message_played_again_or_out_of_order_is_stale),
        cmocka_unit_test(a_message_of_another_session_or_sent_back_is_forged),
        cmocka_unit_test(a_switch_without_the_key_is_not_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
