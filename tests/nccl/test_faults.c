/*
 * Faults of the NCCL plugin's messages, in every version of the interface: peers that die or break
 * the rules, wrong and closed handles, strangers, addresses without an answer, wrong settings.
 */
#include "tests/nccl/pair.h"
#include "tests/open_files.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_message_larger_than_its_receive_is_refused(void **state)
{
    struct pair pair;
    void *send, *receive;

    (void)state;
    pair_open(&pair, 4096);
    send = pair_send(&pair, 1000);
    receive = pair_receive(&pair, 999);
    assert_int_equal(pair_finish(send, NULL), BY_NCCL_OK);
    assert_int_equal(pair_finish(receive, NULL), BY_NCCL_USAGE);
    assert_non_null(strstr(nccl_log_last(), "1000 bytes"));
    assert_non_null(strstr(nccl_log_last(), "room for 999"));
    assert_int_equal(nccl_receive(&pair_driver, pair.receiver, 1, pair.in, 9, 5, pair.recv_memory, &receive),
                     BY_NCCL_USAGE);
    pair_close(&pair);
}

static void another_tag_is_refused(void **state)
{
    struct pair pair;
    void *receive, *send = NULL;

    (void)state;
    pair_open(&pair, 64);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out, 64, 6, pair.send_memory, &send),
                     BY_NCCL_OK);
    receive = pair_receive(&pair, 64);
    assert_int_equal(pair_finish(receive, NULL), BY_NCCL_USAGE);
    assert_non_null(strstr(nccl_log_last(), "tag 6 where tag 5"));
    pair_close(&pair);
}

static void a_peer_that_closes_is_a_remote_error(void **state)
{
    struct pair pair;
    void *request;
    double until = nccl_now() + PAIR_LIMIT_S;
    int result = BY_NCCL_OK;

    (void)state;
    pair_open(&pair, 1 << 20);
    request = pair_receive(&pair, 1 << 20);
    assert_int_equal(pair_driver.close_sender(pair.sender), BY_NCCL_OK);
    pair.sender = NULL;
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_REMOTE);
    pair_close(&pair);

    pair_open(&pair, 1 << 20);
    assert_int_equal(pair_driver.close_receiver(pair.receiver), BY_NCCL_OK);
    pair.receiver = NULL;
    while (result == BY_NCCL_OK) { /* the kernel accepts the first data */
        assert_true(nccl_now() < until);
        result = nccl_send(&pair_driver, pair.sender, pair.out, 1 << 20, 5, pair.send_memory, &request);
        if (result == BY_NCCL_OK && request != NULL)
            result = pair_finish(request, NULL);
    }
    assert_int_equal(result, BY_NCCL_REMOTE);
    pair_close(&pair);
}

/* The last message of a sender that closes is complete before the failure. */
static void data_sent_before_the_close_arrive(void **state)
{
    struct pair pair;
    void *request;
    int bytes = 0;

    (void)state;
    pair_open(&pair, 4096);
    assert_int_equal(pair_finish(pair_send(&pair, 4096), NULL), BY_NCCL_OK);
    assert_int_equal(pair_driver.close_sender(pair.sender), BY_NCCL_OK);
    pair.sender = NULL;
    request = pair_receive(&pair, 4096);
    assert_int_equal(pair_finish(request, &bytes), BY_NCCL_OK);
    assert_int_equal(bytes, 4096);
    request = pair_receive(&pair, 4096);
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_REMOTE);
    pair_close(&pair);
}

/* A process that connects to the handle, sends half of a large message, and waits to be killed. */
static void play_victim(uint8_t *handle, size_t bytes)
{
    char *data = calloc(1, bytes);
    void *sender = NULL, *memory, *request;
    int done = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (sender == NULL)
        if (nccl_connect(&pair_driver, 0, handle, &sender) != BY_NCCL_OK)
            _exit(1);
    if (pair_driver.add_memory(sender, data, bytes, BY_NCCL_MEMORY_HOST, &memory) != BY_NCCL_OK ||
        nccl_send(&pair_driver, sender, data, bytes, 5, memory, &request) != BY_NCCL_OK)
        _exit(1);
    for (;;) {
        pair_driver.test(request, &done, NULL);
        pair_pause();
    }
}

static void a_peer_that_is_killed_is_a_remote_error(void **state)
{
    size_t bytes = 256u << 20;
    uint8_t handle[BY_NCCL_HANDLE_BYTES];
    void *listener, *receiver = NULL, *memory, *request;
    char *data = malloc(bytes);
    double until = nccl_now() + PAIR_LIMIT_S;
    int done = 0, status;
    pid_t victim;

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    victim = fork();
    assert_true(victim >= 0);
    if (victim == 0)
        play_victim(handle, bytes);
    while (receiver == NULL) {
        assert_true(nccl_now() < until);
        assert_int_equal(pair_driver.accept(listener, &receiver, NULL), BY_NCCL_OK);
        pair_pause();
    }
    assert_int_equal(pair_driver.add_memory(receiver, data, bytes, BY_NCCL_MEMORY_HOST, &memory), BY_NCCL_OK);
    assert_int_equal(nccl_receive(&pair_driver, receiver, 1, data, bytes, 5, memory, &request), BY_NCCL_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pair_driver.test(request, &done, NULL), BY_NCCL_OK);
    assert_int_equal(done, 0);
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_REMOTE);
    assert_int_equal(nccl_receive(&pair_driver, receiver, 1, data, 1, 5, memory, &request), BY_NCCL_REMOTE);
    assert_int_equal(pair_driver.close_receiver(receiver), BY_NCCL_OK);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
    free(data);
}

static void a_listener_that_has_closed_cannot_be_reached(void **state)
{
    uint8_t handle[BY_NCCL_HANDLE_BYTES];
    void *listener, *sender = NULL;
    double until = nccl_now() + PAIR_LIMIT_S;
    int result = BY_NCCL_OK;

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
    while (result == BY_NCCL_OK) {
        assert_true(nccl_now() < until);
        result = nccl_connect(&pair_driver, 0, handle, &sender);
    }
    assert_int_equal(result, BY_NCCL_REMOTE);
    assert_null(sender);
    assert_int_equal(pair_driver.accept(listener, &sender, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_ARGUMENT);
}

/* An address where connections are neither accepted nor refused: a full backlog. */
static void a_connection_that_is_never_accepted_ends_at_the_timeout(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    uint8_t handle[BY_NCCL_HANDLE_BYTES];
    int deaf = socket(AF_INET, SOCK_STREAM, 0), callers[4], result = BY_NCCL_OK;
    void *listener, *sender = NULL;
    double until = nccl_now() + PAIR_LIMIT_S, longest = 0;

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    assert_int_equal(bind(deaf, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(deaf, 0), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&address, &bytes), 0);
    for (unsigned i = 0; i < 4; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(callers[i], (struct sockaddr *)&address, sizeof(address));
    }
    handle[10] = (uint8_t)ntohs(address.sin_port);
    handle[11] = (uint8_t)(ntohs(address.sin_port) >> 8);
    while (result == BY_NCCL_OK) {
        double start = nccl_now();

        assert_true(start < until);
        assert_null(sender);
        result = nccl_connect(&pair_driver, 0, handle, &sender);
        if (nccl_now() - start > longest)
            longest = nccl_now() - start;
        pair_pause();
    }
    assert_int_equal(result, BY_NCCL_REMOTE);
    assert_non_null(strstr(nccl_log_last(), "BANYAN_TIMEOUT"));
    assert_true(longest < 1); /* no call waits for the timeout itself */
    for (unsigned i = 0; i < 4; i++)
        close(callers[i]);
    close(deaf);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
}

static void damaged_handles_are_refused(void **state)
{
    static const struct {
        unsigned at;
        uint8_t value;
        int result;
        const char *text;
    } damages[] = {
        {0, 0x55, BY_NCCL_ARGUMENT, "not of banyan's plugin"},
        {4, 2, BY_NCCL_USAGE, "another version"},
        {6, 2, BY_NCCL_ARGUMENT, "another kind"},
        {7, 0, BY_NCCL_ARGUMENT, "damaged"},
        {7, 9, BY_NCCL_ARGUMENT, "damaged"},
        {8, 5, BY_NCCL_ARGUMENT, "damaged"},
        {66, 0x77, BY_NCCL_ARGUMENT, "does not exist"},
    };
    uint8_t handle[BY_NCCL_HANDLE_BYTES], bad[BY_NCCL_HANDLE_BYTES];
    void *listener, *sender = NULL;
    unsigned files;

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    files = open_files();
    for (unsigned i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        memcpy(bad, handle, sizeof(bad));
        bad[damages[i].at] = damages[i].value;
        assert_int_equal(nccl_connect(&pair_driver, 0, bad, &sender), damages[i].result);
        assert_non_null(strstr(nccl_log_last(), damages[i].text));
        assert_null(sender);
    }
    assert_int_equal(nccl_connect(&pair_driver, 3, handle, &sender), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_listen(&pair_driver, 3, bad, &sender), BY_NCCL_ARGUMENT);
    assert_int_equal(open_files(), files);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
}

static void closed_and_foreign_objects_are_refused(void **state)
{
    static char other[64];
    struct pair pair;
    void *request, *none = NULL, *sender, *receiver;
    int done;

    (void)state;
    pair_open(&pair, 4096);
    request = pair_send(&pair, 10);
    assert_int_equal(pair_finish(pair_receive(&pair, 10), NULL), BY_NCCL_OK);
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_OK);
    assert_int_equal(pair_driver.test(request, &done, NULL), BY_NCCL_ARGUMENT); /* again */
    assert_int_equal(pair_driver.test(NULL, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.test(other, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.test(pair.sender, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.receiver, pair.out, 1, 5, pair.send_memory, &none),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_receive(&pair_driver, pair.sender, 1, pair.in, 1, 5, pair.recv_memory, &none),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_receive(&pair_driver, pair.receiver, 2, pair.in, 1, 5, pair.recv_memory, &none),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_receiver(pair.sender), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_sender(pair.listener), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.accept(pair.sender, &none, NULL), BY_NCCL_ARGUMENT);
    request = pair_send(&pair, 10);
    sender = pair.sender;
    receiver = pair.receiver;
    pair_close(&pair);
    pair_open(&pair, 64); /* in the places of the closed objects */
    assert_int_equal(pair_driver.test(request, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, sender, other, 1, 5, NULL, &none), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_receive(&pair_driver, receiver, 1, other, 1, 5, NULL, &none), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.add_memory(sender, other, 8, BY_NCCL_MEMORY_HOST, &none), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_sender(sender), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_receiver(receiver), BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.close_sender(NULL), BY_NCCL_ARGUMENT);
    pair_close(&pair);
}

static int call_in(const uint8_t *handle, const void *data, size_t bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int file = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&address.sin_addr, handle + 12, 4);
    address.sin_port = htons((uint16_t)(handle[10] | handle[11] << 8));
    assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(file, data, bytes, MSG_NOSIGNAL), bytes);
    return file;
}

static void streams_of_strangers_are_closed(void **state)
{
    static const char request_line[] = "GET / HTTP/1.0\r\nHost: example.org\r\n\r\n";
    uint8_t handle[BY_NCCL_HANDLE_BYTES], forged[32] = {0x42, 0x41, 0x4e, 0x4e, 1, 0, 0, 2};
    void *listener, *sender, *receiver;
    int silent, web, forger;
    unsigned before = nccl_log_count();

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    silent = call_in(handle, "B", 1);
    web = call_in(handle, request_line, sizeof(request_line) - 1);
    forger = call_in(handle, forged, sizeof(forged)); /* right, but for the key */
    pair_join(handle, listener, &sender, &receiver);
    assert_true(nccl_log_count() >= before + 2);
    assert_true(recv(web, forged, 1, 0) <= 0);
    assert_int_equal(recv(forger, forged, 1, 0), 0);
    assert_int_equal(pair_driver.close_sender(sender), BY_NCCL_OK);
    assert_int_equal(pair_driver.close_receiver(receiver), BY_NCCL_OK);
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
    assert_int_equal(recv(silent, forged, 1, MSG_WAITALL) <= 0, 1);
    close(silent);
    close(web);
    close(forger);
}

/* A connection that NCCL gives up, which no call closes. */
static void an_unfinished_connection_is_freed_at_the_end(void **state)
{
    uint8_t handle[BY_NCCL_HANDLE_BYTES];
    void *listener, *sender = NULL;
    unsigned files;

    nccl_driver_close(&pair_driver);
    files = open_files();
    assert_int_equal(nccl_driver_open(&pair_driver, (int)(intptr_t)*state), BY_NCCL_OK);
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    assert_int_equal(nccl_connect(&pair_driver, 0, handle, &sender), BY_NCCL_OK);
    nccl_driver_close(&pair_driver);
    assert_int_equal(open_files(), files);
    assert_int_equal(nccl_driver_open(&pair_driver, (int)(intptr_t)*state), BY_NCCL_OK);
}

static void wrong_settings_are_refused(void **state)
{
    static const char *const wrong[][3] = {
        {"BANYAN_NCCL_STREAMS", "0", "BANYAN_NCCL_STREAMS"},
        {"BANYAN_NCCL_STREAMS", "9", "1 to 8"},
        {"BANYAN_NCCL_COLLNET", "yes", "auto, on or off"},
        {"BANYAN_NCCL_INTERFACE", "nowhere0", "no such interface"},
        {"BANYAN_TIMEOUT", "soon", "BANYAN_TIMEOUT"},
    };
    struct nccl_driver again;

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *had = getenv(wrong[i][0]);
        char *kept = had != NULL ? strdup(had) : NULL;

        nccl_driver_close(&pair_driver);
        setenv(wrong[i][0], wrong[i][1], 1);
        assert_int_not_equal(nccl_driver_open(&again, (int)(intptr_t)*state), BY_NCCL_OK);
        assert_non_null(strstr(nccl_log_last(), wrong[i][2]));
        nccl_driver_close(&again);
        unsetenv(wrong[i][0]);
        if (kept != NULL)
            setenv(wrong[i][0], kept, 1);
        free(kept);
        assert_int_equal(nccl_driver_open(&pair_driver, (int)(intptr_t)*state), BY_NCCL_OK);
    }
}

/* Each test runs once for each version. */
#define TEST(test, version)                                                                                  \
    {                                                                                                        \
#test " (v" #version ")", test, pair_setup, pair_teardown, (void *)(intptr_t)(version)               \
    }
#define OF_VERSION(version)                                                                                  \
    TEST(a_message_larger_than_its_receive_is_refused, version), TEST(another_tag_is_refused, version),      \
        TEST(a_peer_that_closes_is_a_remote_error, version),                                                 \
        TEST(data_sent_before_the_close_arrive, version),                                                    \
        TEST(a_peer_that_is_killed_is_a_remote_error, version),                                              \
        TEST(a_listener_that_has_closed_cannot_be_reached, version),                                         \
        TEST(damaged_handles_are_refused, version), TEST(closed_and_foreign_objects_are_refused, version),   \
        TEST(streams_of_strangers_are_closed, version)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        OF_VERSION(8),
        OF_VERSION(9),
        OF_VERSION(10),
        OF_VERSION(11),
        OF_VERSION(12),
        TEST(a_connection_that_is_never_accepted_ends_at_the_timeout, 8),
        TEST(a_connection_that_is_never_accepted_ends_at_the_timeout, 12),
        TEST(an_unfinished_connection_is_freed_at_the_end, 9),
        TEST(an_unfinished_connection_is_freed_at_the_end, 12),
        TEST(wrong_settings_are_refused, 10),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
