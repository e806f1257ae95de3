/*
 * The controller with a pre-shared key, against real guarded agents and against an attacker in the
 * middle, who eavesdrops, replays messages, and answers in place of a switch. Also key files.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/controller/psk_file.h"
#include "control/service/controller/session.h"
#include "firmware/secure/psk.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/controller/fake.h"

#define TIMEOUT_MS 2000u

static char folder[64], key_path[96], other_path[96];

static int make_files(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    snprintf(folder, sizeof folder, "/tmp/banyan-psk-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(key_path, sizeof key_path, "%s/key", folder);
    snprintf(other_path, sizeof other_path, "%s/other", folder);
    assert_int_equal(by_psk_file_make(key_path, false, &problem), 0);
    assert_int_equal(by_psk_file_make(other_path, false, &problem), 0);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(key_path);
    unlink(other_path);
    return rmdir(folder);
}

/* Starts a switch that accepts only requests with the key of `key_path`. Returns also its
 * address. */
static struct controller_fake *start_guarded(struct by_guard *guard, char address[160])
{
    struct by_problem problem = {0};
    struct by_siphash_key key;
    struct controller_fake *fake;

    assert_int_equal(by_psk_file_read(key_path, &key, &problem), 0);
    by_guard_open(guard, &key, 4711, 1);
    fake = fake_start("leaf0", 64, 4096);
    fake->guard = guard;
    snprintf(address, 160, "psk+%s", fake->address);
    return fake;
}

static int say_hello(const char *address, const char *psk, by_HelloReply *reply, struct by_problem *problem)
{
    struct by_session *session = NULL;
    int error = by_session_open(address, &(struct by_session_options){.timeout_ms = TIMEOUT_MS, .psk = psk},
                                &session, problem);

    if (error == 0)
        error = by_session_hello(session, reply, problem);
    by_session_close(session);
    return error;
}

static void a_switch_with_our_key_answers(void **state)
{
    struct by_guard guard;
    char address[160];
    struct controller_fake *fake = start_guarded(&guard, address);
    struct by_problem problem = {0};
    by_HelloReply reply;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(say_hello(address, key_path, &reply, &problem), 0);
        assert_string_equal(reply.name, "leaf0");
    }
    assert_int_equal(guard.counters.sessions, 3);
    fake_stop(fake);
}

static void another_key_and_no_key_are_told_apart(void **state)
{
    struct by_guard guard;
    char address[160];
    struct controller_fake *fake = start_guarded(&guard, address);
    struct by_problem problem = {0};
    by_HelloReply reply;

    (void)state;
    assert_int_equal(say_hello(address, other_path, &reply, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "does not have our key"));
    assert_int_equal(say_hello(fake->address, NULL, &reply, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "psk+unix:PATH"));
    assert_int_equal(guard.counters.plain, 1);
    assert_int_equal(say_hello(address, NULL, &reply, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "--psk"));
    assert_int_equal(say_hello("psk+tls:127.0.0.1:1", key_path, &reply, &problem), BY_EINVAL);
    fake->guard = NULL; /* a switch without a key: its answers are refused */
    assert_int_equal(say_hello(address, key_path, &reply, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "without a tag"));
    fake_stop(fake);
}

static void a_key_that_others_may_read_is_refused_before_anything_is_sent(void **state)
{
    struct by_problem problem = {0};
    struct by_siphash_key key;
    by_HelloReply reply;
    struct stat status;
    FILE *file;

    (void)state;
    assert_int_equal(stat(key_path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    for (unsigned bit = 0; bit < 6; bit++) {
        assert_int_equal(chmod(key_path, 0600 | 1u << bit), 0);
        assert_int_equal(by_psk_file_read(key_path, &key, &problem), BY_EPERM);
    }
    assert_int_equal(say_hello("psk+unix:/nowhere", key_path, &reply, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "chmod 600"));
    assert_int_equal(chmod(key_path, 0600), 0);
    assert_int_equal(by_psk_file_make(key_path, false, &problem), BY_EEXIST);
    assert_int_equal(by_psk_file_read("/nowhere/key", &key, &problem), BY_ENOENT);
    file = fopen(other_path, "w");
    assert_true(file && fputs("swordfish\n", file) > 0 && fclose(file) == 0);
    assert_int_equal(by_psk_file_read(other_path, &key, &problem), BY_EFORMAT);
    assert_int_equal(by_psk_file_make(other_path, true, &problem), 0);
    assert_int_equal(by_psk_file_read(other_path, &key, &problem), 0);
}

/* An attacker between controller and switch, for one connection. */
struct middle {
    const char *to; /* the switch's path */
    int listener;
    bool plays_again;    /* sends each request to the switch twice */
    bool changes_answer; /* flips a bit of each answer after the first */
    bool gives_old;      /* first sends the controller the answers for an earlier connection */
    bool turns_back;     /* returns the controller's own requests to it, after the first */
    pthread_t thread;
};

static int connect_to(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Reads a frame with its length. Returns 0 at the end. */
static size_t take(int fd, uint8_t *frame)
{
    if (recv(fd, frame, 4, MSG_WAITALL) != 4)
        return 0;
    return recv(fd, frame + 4, by_get32(frame), MSG_WAITALL) == (ssize_t)by_get32(frame) ? 4 + by_get32(frame)
                                                                                         : 0;
}

static void *stand_between(void *argument)
{
    static uint8_t frame[65536];
    struct middle *middle = argument;
    int controller = accept(middle->listener, NULL, NULL), device = connect_to(middle->to);
    unsigned count = 0;
    size_t bytes;

    if (middle->gives_old) {
        static const uint8_t open[BY_PSK_OPEN_BYTES], nonce[BY_PSK_NONCE_BYTES];
        struct by_psk old = {.is_open = true};

        bytes = by_psk_seal(&old, frame + 4, 6);
        by_put32(frame, (uint32_t)bytes);
        send(controller, frame, 4 + bytes, MSG_NOSIGNAL);
        by_psk_welcome(&old, &(struct by_siphash_key){0}, open, nonce, frame + 4);
        by_put32(frame, BY_PSK_WELCOME_BYTES);
        send(controller, frame, 4 + BY_PSK_WELCOME_BYTES, MSG_NOSIGNAL);
    }
    while ((bytes = take(controller, frame)) > 0) {
        bool is_first = count++ == 0;

        if (!is_first && middle->turns_back) {
            send(controller, frame, bytes, MSG_NOSIGNAL);
            continue;
        }
        send(device, frame, bytes, MSG_NOSIGNAL);
        if (!is_first && middle->plays_again)
            send(device, frame, bytes, MSG_NOSIGNAL);
        bytes = take(device, frame);
        if (!is_first && middle->changes_answer)
            frame[bytes / 2] ^= 4;
        send(controller, frame, bytes, MSG_NOSIGNAL);
        if (!is_first && middle->plays_again && (bytes = take(device, frame)) > 0)
            send(controller, frame, bytes, MSG_NOSIGNAL);
    }
    close(controller);
    close(device);
    return NULL;
}

/* Sends two Hellos through the attacker. Returns the error of the second one. */
static int hello_by_way_of(struct middle *middle, const struct controller_fake *fake,
                           struct by_problem *problem)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct by_session *session = NULL;
    char address[160];
    by_HelloReply reply;
    int error;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/middle", folder);
    snprintf(address, sizeof address, "psk+unix:%s/middle", folder);
    middle->to = fake->path;
    middle->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(middle->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(middle->listener, 1), 0);
    assert_int_equal(pthread_create(&middle->thread, NULL, stand_between, middle), 0);
    error = by_session_open(address, &(struct by_session_options){.timeout_ms = TIMEOUT_MS, .psk = key_path},
                            &session, problem);
    assert_int_equal(error, 0);
    error = by_session_hello(session, &reply, problem);
    if (error == 0)
        error = by_session_hello(session, &reply, problem);
    by_session_close(session);
    pthread_join(middle->thread, NULL);
    close(middle->listener);
    unlink(at.sun_path);
    return error;
}

static void who_stands_between_can_only_listen(void **state)
{
    struct by_guard guard;
    char address[160];
    struct controller_fake *fake = start_guarded(&guard, address);
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(hello_by_way_of(&(struct middle){.plays_again = false}, fake, &problem), 0);
    assert_int_equal(hello_by_way_of(&(struct middle){.changes_answer = true}, fake, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "its answer was modified"));
    assert_int_equal(hello_by_way_of(&(struct middle){.turns_back = true}, fake, &problem), BY_EPERM);
    assert_int_equal(guard.counters.stale, 0);
    assert_int_equal(hello_by_way_of(&(struct middle){.plays_again = true}, fake, &problem), BY_EPERM);
    assert_int_equal(guard.counters.stale, 1);
    fake_stop(fake);
}

static void answers_to_who_was_there_before_are_passed_over(void **state)
{
    struct by_guard guard;
    char address[160];
    struct controller_fake *fake = start_guarded(&guard, address);
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(hello_by_way_of(&(struct middle){.gives_old = true}, fake, &problem), 0);
    fake_stop(fake);
}

static void what_was_recorded_in_one_session_is_worth_nothing_in_another(void **state)
{
    struct by_guard guard;
    char address[160];
    struct controller_fake *fake = start_guarded(&guard, address);
    struct by_problem problem = {0};
    struct by_siphash_key key;
    struct by_psk session;
    uint8_t open[4 + BY_PSK_OPEN_BYTES], hello[64], frame[65536];
    static const uint8_t nonce[BY_PSK_NONCE_BYTES] = {1},
                         request[] = {0x08, 1, 0x10, 5, 0x52, 0}; /* version 1, id 5, Hello */
    size_t bytes, hello_bytes;
    int fd = connect_to(fake->path);

    (void)state;
    assert_int_equal(by_psk_file_read(key_path, &key, &problem), 0);
    by_put32(open, BY_PSK_OPEN_BYTES);
    by_psk_open(open + 4, nonce);
    assert_int_equal(write(fd, open, sizeof open), sizeof open);
    bytes = take(fd, frame);
    assert_int_equal(by_psk_accept(&session, &key, nonce, frame + 4, bytes - 4), BY_PSK_FINE);
    memcpy(hello + 4 + BY_PSK_HEAD_BYTES, request, sizeof request);
    hello_bytes = by_psk_seal(&session, hello + 4, 6);
    by_put32(hello, (uint32_t)hello_bytes);
    hello_bytes += 4;
    assert_int_equal(write(fd, hello, hello_bytes), (ssize_t)hello_bytes);
    bytes = take(fd, frame);
    assert_int_equal(by_psk_unseal(&session, frame + 4, bytes - 4), BY_PSK_FINE);
    close(fd);
    /* Replays the same controller byte by byte. */
    fd = connect_to(fake->path);
    assert_int_equal(write(fd, open, sizeof open), sizeof open);
    take(fd, frame);
    assert_int_equal(write(fd, hello, hello_bytes), (ssize_t)hello_bytes);
    take(fd, frame);
    assert_int_equal(guard.counters.forged, 1);
    close(fd);
    fake_stop(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switch_with_our_key_answers),
        cmocka_unit_test(another_key_and_no_key_are_told_apart),
        cmocka_unit_test(a_key_that_others_may_read_is_refused_before_anything_is_sent),
        cmocka_unit_test(who_stands_between_can_only_listen),
        cmocka_unit_test(answers_to_who_was_there_before_are_passed_over),
        cmocka_unit_test(what_was_recorded_in_one_session_is_worth_nothing_in_another),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
