/*
 * TLS of control channels, with both ends in one thread over a socket pair and with keys as `banyan
 * keys` makes them: which peers are accepted, and the messages to those that are refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "firmware/secure/tls.h"
#include "offload/base/errors.h"
#include "tests/unit/firmware/secure/keys.h"

/* Rounds of both ends within which a handshake must end. */
#define ROUNDS 20u

static char folder[KEYS_PATH];

static int make_keys(void **state)
{
    (void)state;
    keys_open();
    keys_path("", folder);
    for (int i = 0; i < 2; i++) {
        keys_issue(i ? "b" : "a", "leaf0", BY_KEYS_SWITCH, 30);
        keys_issue(i ? "b" : "a", "operator", BY_KEYS_CONTROLLER, 30);
        keys_issue(i ? "b" : "a", "host0", BY_KEYS_HOST, 30);
    }
    keys_issue("a", "late", BY_KEYS_HOST, 0);
    return 0;
}

static int remove_keys(void **state)
{
    (void)state;
    keys_close();
    return 0;
}

static struct by_tls_identity *identity(const char *keys, enum by_tls_end end)
{
    struct by_tls_identity *opened;
    char path[KEYS_PATH], text[BY_TLS_TEXT_MAX];

    if (by_tls_identity_open(keys_path(keys, path), end, &opened, text) != 0)
        fail_msg("%s", text);
    return opened;
}

/* The accepting and the connecting end of one connection. */
struct tls_pair {
    int fd[2];
    struct by_tls_identity *identity[2];
    struct by_tls *tls[2];
    int result[2];
};

static void pair_open_as(struct tls_pair *pair, enum by_tls_end accepts, const char *keys,
                         enum by_tls_end connects, const char *other_keys)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->fd), 0);
    pair->identity[0] = identity(keys, accepts);
    pair->identity[1] = identity(other_keys, connects);
    for (int i = 0; i < 2; i++) {
        pair->tls[i] = by_tls_open(pair->identity[i], pair->fd[i]);
        assert_non_null(pair->tls[i]);
        assert_string_equal(by_tls_peer(pair->tls[i]), "");
        pair->result[i] = BY_EAGAIN;
    }
}

static void pair_open(struct tls_pair *pair, const char *switch_keys, const char *controller_keys)
{
    pair_open_as(pair, BY_TLS_SWITCH, switch_keys, BY_TLS_CONTROLLER, controller_keys);
}

/* Runs both ends in turn until neither waits. */
static void shake_hands(struct tls_pair *pair)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        for (int i = 1; i >= 0; i--)
            if (pair->result[i] == BY_EAGAIN)
                pair->result[i] = by_tls_handshake(pair->tls[i]);
}

static void pair_close(struct tls_pair *pair)
{
    for (int i = 0; i < 2; i++) {
        by_tls_close(pair->tls[i]);
        by_tls_identity_close(pair->identity[i]);
        close(pair->fd[i]);
    }
}

static void a_switch_and_its_controller_know_each_other(void **state)
{
    struct tls_pair pair;
    char in[64] = "";

    (void)state;
    pair_open(&pair, "a/leaf0", "a/operator");
    shake_hands(&pair);
    assert_int_equal(pair.result[0], 0);
    assert_int_equal(pair.result[1], 0);
    assert_string_equal(by_tls_peer(pair.tls[0]), "operator");
    assert_string_equal(by_tls_peer(pair.tls[1]), "leaf0");
    assert_int_equal(by_tls_receive(pair.tls[0], in, sizeof in), BY_EAGAIN);
    assert_int_equal(by_tls_events(pair.tls[0]), POLLIN);
    assert_int_equal(by_tls_send(pair.tls[1], "stage", 5), 5);
    assert_int_equal(by_tls_receive(pair.tls[0], in, sizeof in), 5);
    assert_memory_equal(in, "stage", 5);
    assert_int_equal(by_tls_send(pair.tls[0], "received", 8), 8);
    assert_int_equal(by_tls_receive(pair.tls[1], in, sizeof in), 8);
    assert_memory_equal(in, "received", 8);
    pair_close(&pair);
}

/* So a reported end implies that nothing was cut off. The connection below stays open. */
static void an_end_that_closes_says_so(void **state)
{
    struct tls_pair pair;
    char in[64];

    (void)state;
    pair_open(&pair, "a/leaf0", "a/operator");
    shake_hands(&pair);
    assert_int_equal(by_tls_send(pair.tls[0], "last", 4), 4);
    by_tls_close(pair.tls[0]);
    pair.tls[0] = NULL;
    assert_int_equal(by_tls_receive(pair.tls[1], in, sizeof in), 4);
    assert_int_equal(by_tls_receive(pair.tls[1], in, sizeof in), 0);
    pair_close(&pair);
}

static void bytes_on_the_wire_are_not_those_that_were_sent(void **state)
{
    static const char secret[] = "a table that nobody else should read";
    struct tls_pair pair;
    char seen[4096];
    ssize_t count;

    (void)state;
    pair_open(&pair, "a/leaf0", "a/operator");
    shake_hands(&pair);
    assert_int_equal(by_tls_send(pair.tls[1], secret, sizeof secret), sizeof secret);
    count = recv(pair.fd[0], seen, sizeof seen, MSG_PEEK);
    assert_true(count > (ssize_t)sizeof secret);
    assert_null(memmem(seen, (size_t)count, secret, sizeof secret));
    pair_close(&pair);
}

static void a_full_socket_is_waited_for_and_nothing_is_lost(void **state)
{
    static uint8_t sent[3000000], taken[sizeof sent];
    size_t out = 0, in = 0, waits = 0;
    struct tls_pair pair;

    (void)state;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 31 + i / 255);
    pair_open(&pair, "a/leaf0", "a/operator");
    shake_hands(&pair);
    while (in < sizeof sent) {
        int64_t count =
            out < sizeof sent ? by_tls_send(pair.tls[1], sent + out, sizeof sent - out) : BY_EAGAIN;

        if (count > 0) {
            out += (size_t)count;
            continue;
        }
        assert_int_equal(count, BY_EAGAIN);
        waits++;
        while ((count = by_tls_receive(pair.tls[0], taken + in, sizeof taken - in)) > 0)
            in += (size_t)count;
        assert_int_equal(count, BY_EAGAIN);
    }
    assert_true(waits > 2);
    assert_memory_equal(sent, taken, sizeof sent);
    pair_close(&pair);
}

/* If one end's certificate is not acceptable, neither end gets a byte from the other, and both
 * report the reason. */
static void strangers_are_refused_at_both_ends(void **state)
{
    static const struct {
        const char *switch_keys, *controller_keys;
        const char *at_switch, *at_controller; /* words in the text of each end */
    } cases[] = {
        {"a/leaf0", "b/operator", "refused our certificate", "keys of the same authority"},
        {"a/operator", "a/operator", "refused our certificate", "it is for another role"},
        {"a/leaf0", "a/leaf0", "it is for another role", "refused our certificate"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tls_pair pair;
        char in[16];

        pair_open(&pair, cases[i].switch_keys, cases[i].controller_keys);
        shake_hands(&pair);
        if (pair.result[1] == 0) /* the first read reports the refusal to a controller */
            pair.result[1] = (int)by_tls_receive(pair.tls[1], in, sizeof in);
        assert_int_equal(pair.result[0], BY_EPERM);
        assert_int_equal(pair.result[1], BY_EPERM);
        if (!strstr(by_tls_text(pair.tls[0]), cases[i].at_switch))
            fail_msg("the switch says: %s", by_tls_text(pair.tls[0]));
        if (!strstr(by_tls_text(pair.tls[1]), cases[i].at_controller))
            fail_msg("the controller says: %s", by_tls_text(pair.tls[1]));
        pair_close(&pair);
    }
}

static void a_host_and_its_controller_know_each_other(void **state)
{
    struct tls_pair pair;

    (void)state;
    pair_open_as(&pair, BY_TLS_HOSTS, "a/operator", BY_TLS_HOST, "a/host0");
    shake_hands(&pair);
    assert_int_equal(pair.result[0], 0);
    assert_int_equal(pair.result[1], 0);
    assert_string_equal(by_tls_peer(pair.tls[0]), "host0");
    assert_string_equal(by_tls_peer(pair.tls[1]), "operator");
    pair_close(&pair);
}

/* A certificate is valid for only one role, at either end of each channel. */
static void who_plays_another_part_is_refused(void **state)
{
    static const struct {
        enum by_tls_end accepts, connects;
        const char *keys, *other_keys; /* of the accepting and of the connecting end */
        int at;                        /* the end that refuses */
        const char *words;             /* words of its text */
    } cases[] = {
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/operator", "a/leaf0", 0, "host's certificate is refused"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/operator", "a/operator", 0, "for another role"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/operator", "b/host0", 0, "keys of the same authority"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/operator", "a/late", 0, "has expired: renew it"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/leaf0", "a/host0", 1, "controller's certificate is refused"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "a/host0", "a/host0", 1, "for another role"},
        {BY_TLS_HOSTS, BY_TLS_HOST, "b/operator", "a/host0", 1, "keys of the same authority"},
        {BY_TLS_SWITCH, BY_TLS_CONTROLLER, "a/leaf0", "a/host0", 0, "for another role"},
        {BY_TLS_SWITCH, BY_TLS_CONTROLLER, "a/host0", "a/operator", 1, "for another role"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tls_pair pair;

        pair_open_as(&pair, cases[i].accepts, cases[i].keys, cases[i].connects, cases[i].other_keys);
        shake_hands(&pair);
        assert_int_equal(pair.result[cases[i].at], BY_EPERM);
        if (!strstr(by_tls_text(pair.tls[cases[i].at]), cases[i].words))
            fail_msg("case %zu says: %s", i, by_tls_text(pair.tls[cases[i].at]));
        pair_close(&pair);
    }
}

/* Each connection opens an identity, and a controller has thousands of connections. */
static void identities_are_opened_without_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        by_tls_identity_close(identity("a/operator", BY_TLS_CONTROLLER));
}

static void a_peer_without_tls_or_gone_is_an_error_of_the_connection(void **state)
{
    static const uint8_t goodbye[] = {0x15, 3, 3, 0, 2, 1, 0}; /* an alert: close_notify */
    static const char plain[] = "\0\0\0\x04\x08\x01\x10\x05 and more of a request that is not TLS";
    struct tls_pair pair;

    (void)state;
    pair_open(&pair, "a/leaf0", "a/operator");
    assert_int_equal(send(pair.fd[1], plain, sizeof plain, 0), sizeof plain);
    assert_int_equal(by_tls_handshake(pair.tls[0]), BY_EIO);
    assert_non_null(strstr(by_tls_text(pair.tls[0]), "use tls: at both ends"));
    pair_close(&pair);
    pair_open(&pair, "a/leaf0", "a/operator");
    assert_int_equal(by_tls_handshake(pair.tls[1]), BY_EAGAIN);
    shutdown(pair.fd[0], SHUT_RDWR);
    assert_int_equal(by_tls_handshake(pair.tls[1]), BY_EIO);
    assert_non_null(strstr(by_tls_text(pair.tls[1]), "the connection to the switch is lost"));
    pair_close(&pair);
    pair_open(&pair, "a/leaf0", "a/operator");
    assert_int_equal(by_tls_handshake(pair.tls[1]), BY_EAGAIN);
    assert_int_equal(send(pair.fd[0], goodbye, sizeof goodbye, 0), sizeof goodbye);
    assert_int_equal(by_tls_handshake(pair.tls[1]), BY_EIO);
    assert_string_equal(by_tls_text(pair.tls[1]), "the connection was closed during the handshake");
    pair_close(&pair);
}

static void without_tls_bytes_are_moved_as_they_are(void **state)
{
    char bytes[8] = "";
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(by_tls_move(NULL, fd[1], bytes, NULL, sizeof bytes), BY_EAGAIN);
    for (unsigned i = 0; i < 2; i++) { /* an interrupted call before this one changes nothing */
        errno = EINTR;
        assert_int_equal(by_tls_move(NULL, fd[0], NULL, "abc", 3), 3);
    }
    errno = EINTR;
    assert_int_equal(by_tls_move(NULL, fd[1], bytes, NULL, sizeof bytes), 6);
    assert_memory_equal(bytes, "abcabc", 6);
    close(fd[0]);
    assert_int_equal(by_tls_move(NULL, fd[1], bytes, NULL, sizeof bytes), 0);
    assert_int_equal(by_tls_move(NULL, fd[1], NULL, "abc", 3), BY_EIO);
    close(fd[1]);
}

static void keys_that_are_missing_open_or_wrong_are_named(void **state)
{
    struct by_tls_identity *opened;
    char path[KEYS_PATH + 32], file[200], saved[240], text[BY_TLS_TEXT_MAX];

    (void)state;
    snprintf(path, sizeof path, "%s/a/nobody", folder);
    assert_int_equal(by_tls_identity_open(path, BY_TLS_SWITCH, &opened, text), BY_ENOENT);
    assert_non_null(strstr(text, "nobody/ca.pem: No such file"));
    snprintf(path, sizeof path, "%s/a/leaf0", folder);
    snprintf(file, sizeof file, "%s/key.pem", path);
    chmod(file, 0640);
    assert_int_equal(by_tls_identity_open(path, BY_TLS_SWITCH, &opened, text), BY_EPERM);
    assert_non_null(strstr(text, "chmod 600"));
    chmod(file, 0600);
    /* The key of another certificate. */
    snprintf(saved, sizeof saved, "%s.saved", file);
    rename(file, saved);
    snprintf(text, sizeof text, "%s/a/operator/key.pem", folder);
    assert_int_equal(link(text, file), 0);
    assert_int_equal(by_tls_identity_open(path, BY_TLS_SWITCH, &opened, text), BY_EFORMAT);
    assert_non_null(strstr(text, "key.pem: key values mismatch"));
    unlink(file);
    rename(saved, file);
    by_tls_identity_close(identity("a/leaf0", BY_TLS_SWITCH));
}

static void keys_are_not_replaced_unasked_and_names_are_checked(void **state)
{
    static const char *const wrong[] = {
        "", ".", "..", "a/b", "leaf 0", ".ssh", "a-name-that-is-much-longer-than-the-47-characters-allowed"};
    struct by_problem problem = {0};
    struct by_authority *authority;
    char path[KEYS_PATH + 32], text[BY_TLS_TEXT_MAX];
    struct by_tls_identity *opened;
    bool made = true;

    (void)state;
    snprintf(path, sizeof path, "%s/b", folder);
    assert_int_equal(by_authority_open(path, 30, &authority, &made, &problem), 0);
    assert_false(made);
    assert_int_equal(by_authority_issue(authority, "leaf0", BY_KEYS_SWITCH, 30, false, &problem), BY_EEXIST);
    assert_non_null(strstr(problem.text, "--renew"));
    assert_int_equal(by_authority_issue(authority, "leaf0", BY_KEYS_SWITCH, 30, true, &problem), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(by_authority_issue(authority, wrong[i], BY_KEYS_SWITCH, 30, false, &problem),
                         BY_EINVAL);
    by_authority_close(authority);
    snprintf(path, sizeof path, "%s/b/leaf0", folder);
    assert_int_equal(by_tls_identity_open(path, BY_TLS_SWITCH, &opened, text), 0);
    by_tls_identity_close(opened);
}

static void half_an_authority_is_refused_and_left_alone(void **state)
{
    struct by_problem problem = {0};
    struct by_authority *authority;
    char path[KEYS_PATH + 32], moved[200];
    bool made;

    (void)state;
    snprintf(path, sizeof path, "%s/b/ca.key", folder);
    snprintf(moved, sizeof moved, "%s.away", path);
    rename(path, moved);
    snprintf(path, sizeof path, "%s/b", folder);
    assert_int_equal(by_authority_open(path, 30, &authority, &made, &problem), BY_EFORMAT);
    assert_non_null(strstr(problem.text, "ca.key: No such file"));
    snprintf(path, sizeof path, "%s/b/ca.key", folder);
    assert_int_equal(access(path, F_OK), -1);
    rename(moved, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switch_and_its_controller_know_each_other),
        cmocka_unit_test(an_end_that_closes_says_so),
        cmocka_unit_test(bytes_on_the_wire_are_not_those_that_were_sent),
        cmocka_unit_test(a_full_socket_is_waited_for_and_nothing_is_lost),
        cmocka_unit_test(strangers_are_refused_at_both_ends),
        cmocka_unit_test(a_host_and_its_controller_know_each_other),
        cmocka_unit_test(who_plays_another_part_is_refused),
        cmocka_unit_test(identities_are_opened_without_end),
        cmocka_unit_test(without_tls_bytes_are_moved_as_they_are),
        cmocka_unit_test(a_peer_without_tls_or_gone_is_an_error_of_the_connection),
        cmocka_unit_test(keys_that_are_missing_open_or_wrong_are_named),
        cmocka_unit_test(keys_are_not_replaced_unasked_and_names_are_checked),
        cmocka_unit_test(half_an_authority_is_refused_and_left_alone),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
