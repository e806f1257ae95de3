/* A sender and a receiver of the NCCL plugin in one thread; see pair.h. */
#include "tests/nccl/pair.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct nccl_driver pair_driver;

void pair_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

int pair_setup(void **state)
{
    setenv("BANYAN_NCCL_INTERFACE", "lo", 1);
    setenv("BANYAN_TIMEOUT", "1", 1);
    return nccl_driver_open(&pair_driver, (int)(intptr_t)*state);
}

int pair_teardown(void **state)
{
    (void)state;
    nccl_driver_close(&pair_driver);
    return 0;
}

void pair_join(void *handle, void *listener, void **sender, void **receiver)
{
    double until = nccl_now() + PAIR_LIMIT_S;

    *sender = *receiver = NULL;
    while (*sender == NULL || *receiver == NULL) {
        assert_true(nccl_now() < until);
        if (*sender == NULL)
            assert_int_equal(nccl_connect(&pair_driver, 0, handle, sender), BY_NCCL_OK);
        if (*receiver == NULL)
            assert_int_equal(pair_driver.accept(listener, receiver, NULL), BY_NCCL_OK);
    }
}

void pair_open(struct pair *pair, size_t bytes)
{
    uint8_t handle[BY_NCCL_HANDLE_BYTES];

    memset(pair, 0, sizeof(*pair));
    pair->bytes = bytes;
    pair->out = malloc(bytes + 1);
    pair->in = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        pair->out[i] = (char)(i * 131 + i / 251);
    memset(pair->in, 0, bytes + 1);
    assert_int_equal(nccl_listen(&pair_driver, 0, handle, &pair->listener), BY_NCCL_OK);
    pair_join(handle, pair->listener, &pair->sender, &pair->receiver);
    assert_int_equal(
        pair_driver.add_memory(pair->sender, pair->out, bytes + 1, BY_NCCL_MEMORY_HOST, &pair->send_memory),
        BY_NCCL_OK);
    assert_int_equal(
        pair_driver.add_memory(pair->receiver, pair->in, bytes + 1, BY_NCCL_MEMORY_HOST, &pair->recv_memory),
        BY_NCCL_OK);
}

void pair_close(struct pair *pair)
{
    assert_int_equal(pair_driver.close_listener(pair->listener), BY_NCCL_OK);
    if (pair->sender != NULL)
        assert_int_equal(pair_driver.close_sender(pair->sender), BY_NCCL_OK);
    if (pair->receiver != NULL)
        assert_int_equal(pair_driver.close_receiver(pair->receiver), BY_NCCL_OK);
    free(pair->out);
    free(pair->in);
}

void *pair_send(const struct pair *pair, size_t bytes)
{
    void *request;

    assert_int_equal(nccl_send(&pair_driver, pair->sender, pair->out, bytes, 5, pair->send_memory, &request),
                     BY_NCCL_OK);
    return request;
}

void *pair_receive(const struct pair *pair, size_t bytes)
{
    void *request;

    assert_int_equal(
        nccl_receive(&pair_driver, pair->receiver, 1, pair->in, bytes, 5, pair->recv_memory, &request),
        BY_NCCL_OK);
    return request;
}

int pair_finish(void *request, int *bytes)
{
    double until = nccl_now() + PAIR_LIMIT_S;
    int done = 0, result = BY_NCCL_OK;

    while (result == BY_NCCL_OK && !done) {
        assert_true(nccl_now() < until);
        result = pair_driver.test(request, &done, bytes);
    }
    return result;
}

void pair_exchange(struct pair *pair, size_t bytes)
{
    void *send = pair_send(pair, bytes), *receive = pair_receive(pair, bytes + 1);
    double until = nccl_now() + PAIR_LIMIT_S;
    int sent = 0, received = 0, size = -1;

    assert_non_null(send);
    assert_non_null(receive);
    while (!sent || !received) {
        assert_true(nccl_now() < until);
        if (!sent)
            assert_int_equal(pair_driver.test(send, &sent, NULL), BY_NCCL_OK);
        if (!received)
            assert_int_equal(pair_driver.test(receive, &received, &size), BY_NCCL_OK);
    }
    assert_int_equal(size, bytes);
    assert_memory_equal(pair->in, pair->out, bytes);
}
