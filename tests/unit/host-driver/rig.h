/*
 * Shared by the tests of the host driver: table images of small fabrics in a folder, ranks on a
 * fabric in memory, and operations over all of them. Single-threaded unless a test states
 * otherwise.
 */
#ifndef TESTS_UNIT_HOST_RIG_H
#define TESTS_UNIT_HOST_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <banyan/banyan.h>

#include "tests/sim/fabric.h"

#define RIG_RANKS_MAX 16

struct host_driver_rig {
    char folder[64];
    struct banyan_fabric *fabric;
    uint32_t count;
    struct banyan_context *context[RIG_RANKS_MAX];
    struct banyan_comm *comm[RIG_RANKS_MAX];
};

/* Writes every node's image into a new folder and returns its name in `folder`. */
void rig_write(const struct fabric *fabric, char folder[64]);
/* Removes the folder with the files of rig_write. */
void rig_remove(const char *folder);
/* The same for `hosts` hosts on the loopback interface, from 127.0.0.1 on: host 0 is the root of
 * the only tree. */
void rig_write_loopback(int hosts, char folder[64]);

/* Makes a star with one tree that carries all collectives, with this window. */
void rig_star(struct fabric *fabric, int hosts, uint16_t window);

/* Opens the ranks of job `job` at all hosts on a fabric in memory. */
void rig_open(struct host_driver_rig *rig, const struct fabric *fabric, uint32_t job);
void rig_close(struct host_driver_rig *rig);
/* Sets a BANYAN_* variable for the contexts opened afterwards; NULL unsets it. */
void rig_set(const char *name, const char *value);

/* Posts all requests, waits for all and frees them. Each must succeed. */
void rig_finish(struct host_driver_rig *rig, struct banyan_request **requests);

/* Requires the status `wanted` and `words` in the text of the last error. */
#define expect(call, wanted, words)                                                                          \
    do {                                                                                                     \
        assert_int_equal(call, wanted);                                                                      \
        if (strstr(banyan_last_error(), words) == NULL)                                                      \
            fail_msg("'%s' does not say '%s'", banyan_last_error(), words);                                  \
    } while (0)

#endif
