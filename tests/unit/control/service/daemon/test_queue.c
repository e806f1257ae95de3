/* The queues of the daemon: bytes that wait on a connection, and events of other threads. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/event.h"
#include "control/service/daemon/queue.h"
#include "tests/unit/control/service/daemon/descriptors.h"

/* Adds bytes that count up from `first`. */
static void add(struct by_queue *queue, size_t bytes, uint8_t first)
{
    assert_true(by_queue_reserve(queue, bytes));
    assert_true(queue->room - queue->used >= bytes);
    for (size_t i = 0; i < bytes; i++)
        queue->bytes[queue->used++] = (uint8_t)(first + i);
}

/* Takes bytes, which must count up from `first`. */
static void take(struct by_queue *queue, size_t bytes, uint8_t first)
{
    assert_true(queue->used - queue->at >= bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(queue->bytes[queue->at++], (uint8_t)(first + i));
}

static void bytes_leave_in_the_order_in_which_they_came(void **state)
{
    struct by_queue queue = {0};

    (void)state;
    add(&queue, 100, 0);
    take(&queue, 30, 0);
    add(&queue, 5000, 100);
    take(&queue, 5070, 30);
    assert_int_equal(queue.at, queue.used);
    free(queue.bytes);
}

static void a_queue_takes_no_more_memory_than_its_bytes_need(void **state)
{
    struct by_queue queue = {0};
    uint8_t *bytes;

    (void)state;
    add(&queue, BY_QUEUE_BYTES_LEAST, 0);
    assert_int_equal(queue.room, BY_QUEUE_BYTES_LEAST);
    bytes = queue.bytes;
    take(&queue, 1000, 0);
    add(&queue, 1000, 7); /* where those were that have left */
    assert_ptr_equal(queue.bytes, bytes);
    assert_int_equal(queue.room, BY_QUEUE_BYTES_LEAST);
    add(&queue, 1, 0);
    assert_int_equal(queue.room, 2 * BY_QUEUE_BYTES_LEAST);
    add(&queue, 6 * BY_QUEUE_BYTES_LEAST, 0);
    assert_int_equal(queue.room, 8 * BY_QUEUE_BYTES_LEAST);
    free(queue.bytes);
}

static void only_an_empty_queue_gives_back_its_memory_and_keeps_a_small_one(void **state)
{
    struct by_queue queue = {0};

    (void)state;
    add(&queue, BY_QUEUE_BYTES_KEPT, 0);
    take(&queue, BY_QUEUE_BYTES_KEPT, 0);
    by_queue_release(&queue);
    assert_int_equal(queue.room, BY_QUEUE_BYTES_KEPT);
    add(&queue, BY_QUEUE_BYTES_KEPT + 1, 3);
    take(&queue, BY_QUEUE_BYTES_KEPT, 3);
    by_queue_release(&queue); /* a byte waits */
    take(&queue, 1, (uint8_t)(3 + BY_QUEUE_BYTES_KEPT));
    by_queue_release(&queue);
    assert_int_equal(queue.room, 0);
    assert_null(queue.bytes);
    assert_int_equal(queue.at, 0);
    assert_int_equal(queue.used, 0);
    add(&queue, 1, 9);
    take(&queue, 1, 9);
    free(queue.bytes);
}

static int is_readable(const struct by_event_queue *queue)
{
    struct pollfd poller = {.fd = by_event_queue_fd(queue), .events = POLLIN};

    return poll(&poller, 1, 0);
}

static void events_leave_in_order_and_wake_the_loop(void **state)
{
    struct by_event_queue *queue = by_event_queue_open();
    struct by_daemon_event event;

    (void)state;
    assert_int_equal(is_readable(queue), 0);
    assert_int_equal(by_event_take(queue, &event), 0);
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 4; i++)
            by_event_put(queue,
                         &(struct by_daemon_event){.kind = BY_EVENT_SWITCH_UP, .node = round * 10 + i});
        assert_int_equal(is_readable(queue), 1);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(by_event_take(queue, &event), 1);
            assert_int_equal(event.kind, BY_EVENT_SWITCH_UP);
            assert_int_equal(event.node, round * 10 + i);
            assert_null(event.next);
            assert_int_equal(is_readable(queue), 1); /* until it was seen empty */
        }
        assert_int_equal(by_event_take(queue, &event), 0);
        assert_int_equal(is_readable(queue), 0);
    }
    by_event_put(queue, &(struct by_daemon_event){.kind = BY_EVENT_BEAT});
    by_event_put(queue, &(struct by_daemon_event){.kind = BY_EVENT_BEAT});
    by_event_queue_close(queue);
    by_event_queue_close(NULL);
}

static void a_queue_of_events_leaves_no_descriptor_open(void **state)
{
    unsigned before = count_descriptors();
    struct by_event_queue *queue = by_event_queue_open();

    (void)state;
    assert_int_equal(count_descriptors(), before + 1);
    by_event_queue_close(queue);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(a_queue_takes_no_more_memory_than_its_bytes_need),
        cmocka_unit_test(only_an_empty_queue_gives_back_its_memory_and_keeps_a_small_one),
        cmocka_unit_test(events_leave_in_order_and_wake_the_loop),
        cmocka_unit_test(a_queue_of_events_leaves_no_descriptor_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
