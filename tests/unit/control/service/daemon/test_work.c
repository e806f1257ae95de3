/* The worker's thread: tasks run one at a time in the order given, and those that wait when it ends
 * are discarded. */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/event.h"
#include "control/service/daemon/work.h"
#include "tests/unit/control/service/daemon/descriptors.h"

/* A test that hangs ends by this signal (seconds). */
#define PATIENCE_S 60

struct work_task {
    struct by_task task;
    char name;
};

static struct {
    struct by_daemon_work *work;
    struct work_task tasks[3];
    char order[16]; /* names of the tasks that have run */
    sem_t entered, leave, told;
    pthread_t thread; /* that ran the last one */
} rig;

/* The events are told from the worker's thread. */
void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event)
{
    assert_ptr_equal(queue, &rig);
    assert_int_equal(event->kind, BY_EVENT_WORKED);
    assert_int_equal(((struct work_task *)event->task)->name, rig.order[strlen(rig.order) - 1]);
    sem_post(&rig.told);
}

static void run(struct by_task *task)
{
    rig.order[strlen(rig.order)] = ((struct work_task *)task)->name;
    rig.thread = pthread_self();
    sem_post(&rig.entered);
    sem_wait(&rig.leave);
}

static void note(struct by_task *task)
{
    rig.order[strlen(rig.order)] = ((struct work_task *)task)->name;
}

/* Runs until it must end. */
static void run_to_the_end(struct by_task *task)
{
    struct pollfd end = {.fd = by_work_stop_fd(rig.work), .events = POLLIN};

    rig.order[strlen(rig.order)] = ((struct work_task *)task)->name;
    sem_post(&rig.entered);
    assert_int_equal(poll(&end, 1, -1), 1);
}

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    sem_init(&rig.entered, 0, 0);
    sem_init(&rig.leave, 0, 0);
    sem_init(&rig.told, 0, 0);
    for (unsigned i = 0; i < 3; i++)
        rig.tasks[i] = (struct work_task){.task = {.run = run}, .name = (char)('a' + i)};
    alarm(PATIENCE_S);
    rig.work = by_work_start((struct by_event_queue *)&rig);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alarm(0);
    sem_destroy(&rig.entered);
    sem_destroy(&rig.leave);
    sem_destroy(&rig.told);
    return 0;
}

static int waiting(sem_t *semaphore)
{
    int value;

    sem_getvalue(semaphore, &value);
    return value;
}

static void tasks_run_one_at_a_time_in_their_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) { /* also after it was idle */
        for (unsigned i = 0; i < 3; i++)
            by_work_do(rig.work, &rig.tasks[i].task);
        for (unsigned i = 0; i < 3; i++) {
            sem_wait(&rig.entered);
            assert_int_equal(waiting(&rig.entered), 0);
            assert_int_equal(waiting(&rig.told), 0);
            sem_post(&rig.leave);
            sem_wait(&rig.told);
        }
    }
    assert_string_equal(rig.order, "abcabc");
    assert_false(pthread_equal(rig.thread, pthread_self()));
    by_work_stop(rig.work);
}

/* Also a task that ends as soon as it may is the last one. */
static void the_end_waits_for_the_task_that_runs_and_discards_the_others(void **state)
{
    for (unsigned round = 0; round < 200; round++) {
        struct pollfd end = {.fd = by_work_stop_fd(rig.work), .events = POLLIN};

        rig.tasks[0].task.run = run_to_the_end;
        rig.tasks[1].task.run = note;
        by_work_do(rig.work, &rig.tasks[0].task);
        by_work_do(rig.work, &rig.tasks[1].task);
        sem_wait(&rig.entered);
        assert_int_equal(poll(&end, 1, 0), 0); /* it may go on */
        by_work_stop(rig.work);
        assert_string_equal(rig.order, "a");
        assert_int_equal(waiting(&rig.told), 1);
        tear_down(state);
        set_up(state);
    }
    by_work_stop(rig.work);
}

static void an_idle_worker_ends_and_leaves_nothing_open(void **state)
{
    unsigned before = count_descriptors();

    (void)state;
    by_work_stop(rig.work);
    assert_int_equal(count_descriptors(), before - 1);
    by_work_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks_run_one_at_a_time_in_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_waits_for_the_task_that_runs_and_discards_the_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_idle_worker_ends_and_leaves_nothing_open, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
