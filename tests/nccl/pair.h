/*
 * What the tests of the NCCL plugin's messages share: a sender and a receiver in one thread, and
 * the version of the interface that a test uses. Failures end the test.
 */
#ifndef BY_TESTS_NCCL_PAIR_H
#define BY_TESTS_NCCL_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nccl/driver.h"

#define PAIR_LIMIT_S 20 /* nothing takes as long, also on a busy machine */

extern struct nccl_driver pair_driver;

struct pair {
    void *listener, *sender, *receiver;
    void *send_memory, *recv_memory;
    char *out, *in;
    size_t bytes;
};

/* For cmocka: opens the version in *state, on the loopback interface. */
int pair_setup(void **state);
int pair_teardown(void **state);

void pair_pause(void);

/* Connects and accepts until both ends exist. */
void pair_join(void *handle, void *listener, void **sender, void **receiver);

/* A connection with registered buffers of `bytes` + 1, of which `out` is filled. */
void pair_open(struct pair *pair, size_t bytes);
void pair_close(struct pair *pair);

/* Posts with tag 5; the request, or NULL if the plugin has no room. */
void *pair_send(const struct pair *pair, size_t bytes);
void *pair_receive(const struct pair *pair, size_t bytes);

/* Tests until the request ends; its result. */
int pair_finish(void *request, int *bytes);

/* Moves one message, and compares it. */
void pair_exchange(struct pair *pair, size_t bytes);

#endif
