/* One program of a job at a time on a host: the error of the second names the process that holds
 * the job. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <banyan/banyan.h>

#include "host-driver/error.h"
#include "host-driver/sole.h"

#define IP   0x7f000001u
#define JOB  7
#define PORT ((uint16_t)(20000 + getpid() % 20000)) /* tests may run side by side */

static void a_job_is_taken_once_and_again_after_its_end(void **state)
{
    char said[128];
    int fd, other;

    (void)state;
    assert_int_equal(by_sole_begin(JOB, IP, PORT, &fd), 0);
    assert_int_equal(by_sole_begin(JOB, IP, PORT, &other), BY_EBUSY);
    assert_int_equal(other, -1);
    snprintf(said, sizeof(said), "job %d is in use by another communicator of this process", JOB);
    assert_non_null(strstr(banyan_last_error(), said));
    assert_int_equal(by_sole_begin(JOB + 1, IP, PORT, &other), 0);
    close(other);
    assert_int_equal(by_sole_begin(JOB, IP + 1, PORT, &other), 0);
    close(other);
    close(fd);
    assert_int_equal(by_sole_begin(JOB, IP, PORT, &fd), 0);
    close(fd);
}

/* A process that holds the job until it is killed, after `ms`; 0: not by itself. */
static pid_t hold(uint16_t port, long ms)
{
    int ready[2], fd;
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        byte = by_sole_begin(JOB, IP, port, &fd) == 0;
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        if (ms == 0)
            pause();
        nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void the_error_names_the_process_that_holds_the_job(void **state)
{
    uint16_t port = PORT;
    pid_t pid = hold(port, 0);
    char said[128];
    int fd;

    (void)state;
    assert_int_equal(by_sole_begin(JOB, IP, port, &fd), BY_EBUSY);
    snprintf(said, sizeof(said), "job %d is in use by process %d (test_host_sole)", JOB, (int)pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (strstr(banyan_last_error(), said) == NULL)
        fail_msg("'%s' lacks '%s'", banyan_last_error(), said);
}

static void a_process_that_is_ending_is_waited_for(void **state)
{
    uint16_t port = PORT;
    pid_t pid = hold(port, 200);
    int fd;

    (void)state;
    assert_int_equal(by_sole_begin(JOB, IP, port, &fd), 0);
    close(fd);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_taken_once_and_again_after_its_end),
        cmocka_unit_test(the_error_names_the_process_that_holds_the_job),
        cmocka_unit_test(a_process_that_is_ending_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
