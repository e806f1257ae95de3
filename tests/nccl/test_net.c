/*
 * The messages of the NCCL plugin, driven as NCCL's proxy threads drive them, in every version of
 * the interface: connections in any order, sizes, requests up to the limit, back-pressure,
 * registration.
 */
#include "tests/nccl/pair.h"
#include "tests/open_files.h"

#include <stdlib.h>
#include <string.h>

static void properties_state_what_is_supported(void **state)
{
    struct by_nccl_props_v12 props;
    int count = 0;

    (void)state;
    assert_int_equal(pair_driver.devices(&count), BY_NCCL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(nccl_props(&pair_driver, 0, &props), BY_NCCL_OK);
    assert_string_equal(props.name, "lo");
    assert_int_equal(props.memory, BY_NCCL_MEMORY_HOST);
    assert_int_equal(props.grouped_receives_max, 1);
    assert_int_equal(props.offload_kind, 0);
    assert_true(props.speed_mbps > 0);
    if (pair_driver.version >= 9) {
        assert_int_equal(props.parts.count, 1);
        assert_int_equal(props.message_bytes_max, 1 << 30);
        assert_int_equal(props.collective_bytes_max, 1 << 30);
    }
    if (pair_driver.version == 12)
        assert_int_equal(props.rail, BY_NCCL_UNKNOWN);
    assert_int_equal(nccl_props(&pair_driver, 1, &props), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_props(&pair_driver, -1, &props), BY_NCCL_ARGUMENT);
}

static void messages_of_all_sizes_arrive(void **state)
{
    static const size_t sizes[] = {0,     1,      15,     16,      17, 4095,    65535, 65536,
                                   65537, 131072, 131073, 1048583, 0,  3145728, 1,     4194304};
    struct pair pair;

    (void)state;
    pair_open(&pair, 4194304);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(pair.in, 0, pair.bytes);
        pair_exchange(&pair, sizes[i]);
        assert_int_equal(pair.in[sizes[i]], 0);
    }
    pair_close(&pair);
}

static void requests_beyond_the_limit_wait(void **state)
{
    void *sends[BY_NCCL_REQUESTS_MAX], *receives[BY_NCCL_REQUESTS_MAX];
    struct pair pair;

    (void)state;
    pair_open(&pair, 4096);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < BY_NCCL_REQUESTS_MAX; i++) {
            sends[i] = pair_send(&pair, 100 + i);
            receives[i] = pair_receive(&pair, 4096);
            assert_non_null(sends[i]);
            assert_non_null(receives[i]);
        }
        assert_null(pair_send(&pair, 100));
        assert_null(pair_receive(&pair, 100));
        /* in another order than posted */
        for (unsigned i = BY_NCCL_REQUESTS_MAX; i-- > 0;) {
            int bytes = -1;

            assert_int_equal(pair_finish(sends[i], &bytes), BY_NCCL_OK);
            assert_int_equal(bytes, 100 + i);
        }
        for (unsigned i = 0; i < BY_NCCL_REQUESTS_MAX; i++) {
            int bytes = -1;

            assert_int_equal(pair_finish(receives[i], &bytes), BY_NCCL_OK);
            assert_int_equal(bytes, 100 + i);
        }
    }
    pair_exchange(&pair, 4096);
    pair_close(&pair);
}

static void a_sender_waits_for_a_receive(void **state)
{
    size_t bytes = 48u << 20; /* more than the kernel's buffers */
    struct pair pair;
    void *send;
    int done = 0, size;

    (void)state;
    pair_open(&pair, bytes);
    send = pair_send(&pair, bytes);
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(pair_driver.test(send, &done, &size), BY_NCCL_OK);
        assert_int_equal(done, 0);
        pair_pause();
    }
    {
        void *receive = pair_receive(&pair, bytes);
        double until = nccl_now() + PAIR_LIMIT_S;
        int received = 0;

        while (!done || !received) {
            assert_true(nccl_now() < until);
            if (!done)
                assert_int_equal(pair_driver.test(send, &done, &size), BY_NCCL_OK);
            if (!received)
                assert_int_equal(pair_driver.test(receive, &received, &size), BY_NCCL_OK);
        }
    }
    assert_memory_equal(pair.in, pair.out, bytes);
    pair_close(&pair);
}

static void connections_are_made_in_any_order(void **state)
{
    enum { MANY = 12 };
    uint8_t handle[BY_NCCL_HANDLE_BYTES], copies[MANY][BY_NCCL_HANDLE_BYTES];
    void *listener, *senders[MANY] = {0}, *receivers[MANY] = {0};
    unsigned joined = 0, files = open_files();
    double until = nccl_now() + PAIR_LIMIT_S;

    (void)state;
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &listener), BY_NCCL_OK);
    for (unsigned i = 0; i < MANY; i++)
        memcpy(copies[i], handle, sizeof(handle));
    /* all ranks connect at the same time, and are accepted later, one by one */
    while (joined < MANY) {
        joined = 0;
        assert_true(nccl_now() < until);
        for (unsigned i = MANY; i-- > 0;) {
            if (senders[i] == NULL)
                assert_int_equal(nccl_connect(&pair_driver, 0, copies[i], &senders[i]), BY_NCCL_OK);
            joined += senders[i] != NULL;
        }
    }
    for (unsigned i = 0; i < MANY; i++)
        while (receivers[i] == NULL) {
            assert_true(nccl_now() < until);
            assert_int_equal(pair_driver.accept(listener, &receivers[i], NULL), BY_NCCL_OK);
        }
    /* each receiver belongs to one sender, which its first message names */
    for (unsigned i = 0; i < MANY; i++) {
        void *memory, *request;
        int number = (int)i;

        assert_int_equal(
            pair_driver.add_memory(senders[i], &number, sizeof(number), BY_NCCL_MEMORY_HOST, &memory),
            BY_NCCL_OK);
        assert_int_equal(nccl_send(&pair_driver, senders[i], &number, sizeof(number), 1, memory, &request),
                         BY_NCCL_OK);
        assert_int_equal(pair_finish(request, NULL), BY_NCCL_OK);
        assert_int_equal(pair_driver.remove_memory(senders[i], memory), BY_NCCL_OK);
    }
    {
        unsigned seen = 0;

        for (unsigned i = 0; i < MANY; i++) {
            void *memory, *request;
            int number = -1;

            assert_int_equal(
                pair_driver.add_memory(receivers[i], &number, sizeof(number), BY_NCCL_MEMORY_HOST, &memory),
                BY_NCCL_OK);
            assert_int_equal(
                nccl_receive(&pair_driver, receivers[i], 1, &number, sizeof(number), 1, memory, &request),
                BY_NCCL_OK);
            assert_int_equal(pair_finish(request, NULL), BY_NCCL_OK);
            assert_in_range(number, 0, MANY - 1);
            seen |= 1u << number;
        }
        assert_int_equal(seen, (1u << MANY) - 1);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(pair_driver.close_sender(senders[i]), BY_NCCL_OK);
        assert_int_equal(pair_driver.close_receiver(receivers[i]), BY_NCCL_OK);
    }
    assert_int_equal(pair_driver.close_listener(listener), BY_NCCL_OK);
    assert_int_equal(open_files(), files);
}

static void buffers_must_be_registered(void **state)
{
    struct pair pair;
    void *memory, *request;

    (void)state;
    pair_open(&pair, 4096);
    assert_int_equal(pair_driver.add_memory(pair.sender, pair.out, 64, BY_NCCL_MEMORY_CUDA, &memory),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(
        pair_driver.add_dma_memory(pair.sender, pair.out, 64, BY_NCCL_MEMORY_CUDA, 0, 3, &memory),
        BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.add_memory(pair.sender, NULL, 64, BY_NCCL_MEMORY_HOST, &memory),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(pair_driver.add_memory(pair.sender, pair.out + 16, 64, BY_NCCL_MEMORY_HOST, &memory),
                     BY_NCCL_OK);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 16, 65, 5, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 15, 1, 5, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 80, 1, 5, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 16, 1, 5, NULL, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 79, 1, 5, memory, &request), BY_NCCL_OK);
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_OK);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, NULL, 0, 5, NULL, &request), BY_NCCL_OK);
    assert_int_equal(pair_finish(request, NULL), BY_NCCL_OK);
    assert_int_equal(pair_driver.remove_memory(pair.sender, memory), BY_NCCL_OK);
    assert_int_equal(pair_driver.remove_memory(pair.sender, memory), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_send(&pair_driver, pair.sender, pair.out + 16, 1, 5, memory, &request),
                     BY_NCCL_ARGUMENT);
    for (unsigned i = 0; i < 100; i++) {
        void *last = memory;

        assert_int_equal(pair_driver.add_memory(pair.receiver, pair.in + i, 8, BY_NCCL_MEMORY_HOST, &memory),
                         BY_NCCL_OK);
        assert_true(i == 0 || memory != last);
    }
    request = pair.in;
    assert_int_equal(pair_driver.flush(pair.receiver, 1, NULL, NULL, NULL, &request), BY_NCCL_OK);
    assert_null(request);
    pair_close(&pair);
}

static void requests_can_be_abandoned(void **state)
{
    unsigned files = open_files();

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        struct pair pair;

        pair_open(&pair, 1 << 20);
        for (unsigned i = 0; i < 1 + round; i++) {
            pair_send(&pair, 1 << (i % 21));
            if (round & 1)
                pair_receive(&pair, 1 << 20);
        }
        pair_close(&pair);
    }
    assert_int_equal(open_files(), files);
}

/* Each test runs once for each version. */
#define TEST(test, version)                                                                                  \
    {                                                                                                        \
#test " (v" #version ")", test, pair_setup, pair_teardown, (void *)(intptr_t)(version)               \
    }
#define OF_VERSION(version)                                                                                  \
    TEST(properties_state_what_is_supported, version), TEST(messages_of_all_sizes_arrive, version),          \
        TEST(requests_beyond_the_limit_wait, version), TEST(a_sender_waits_for_a_receive, version),          \
        TEST(connections_are_made_in_any_order, version), TEST(buffers_must_be_registered, version),         \
        TEST(requests_can_be_abandoned, version)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        OF_VERSION(8), OF_VERSION(9), OF_VERSION(10), OF_VERSION(11), OF_VERSION(12),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
