/* The watchdog with a pulse that the test controls: when it reports, when it is silent, what it
 * sends to systemd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "firmware/linux/watchdog.h"
#include "offload/linux/notify.h"

struct loop {
    atomic_uint_fast64_t pulse;
    atomic_uint stuck; /* number of reports */
    atomic_uint_fast64_t last;
    bool moves; /* the pulse changes at each check */
};

static uint64_t pulse(void *context)
{
    struct loop *loop = context;

    return loop->moves ? atomic_fetch_add(&loop->pulse, 1) : atomic_load(&loop->pulse);
}

static void stuck(void *context, uint64_t last, uint32_t still_ms)
{
    struct loop *loop = context;

    if (still_ms >= 40)
        atomic_fetch_add(&loop->stuck, 1);
    atomic_store(&loop->last, last);
}

static struct by_watchdog_config config_of(struct loop *loop)
{
    return (struct by_watchdog_config){.limit_ms = 40, .pulse = pulse, .stuck = stuck, .context = loop};
}

static void a_loop_that_stands_still_is_told_once(void **state)
{
    struct loop loop = {.pulse = 7};
    struct by_watchdog_config config = config_of(&loop);
    struct by_watchdog *watchdog;

    (void)state;
    assert_int_equal(by_watchdog_start(&watchdog, &config), 0);
    for (int i = 0; i < 1000 && loop.stuck == 0; i++)
        usleep(10000);
    by_watchdog_stop(watchdog);
    assert_int_equal(loop.stuck, 1);
    assert_int_equal(loop.last, 7);
}

static void a_loop_that_turns_is_left_alone(void **state)
{
    struct loop loop = {.moves = true};
    struct by_watchdog_config config = config_of(&loop);
    struct by_watchdog *watchdog;

    (void)state;
    assert_int_equal(by_watchdog_start(&watchdog, &config), 0);
    while (atomic_load(&loop.pulse) < 12) /* three times the limit of the watchdog */
        usleep(10000);
    by_watchdog_stop(watchdog);
    assert_int_equal(loop.stuck, 0);
}

static void without_a_limit_and_a_listener_nothing_is_watched(void **state)
{
    struct by_watchdog_config config = {.pulse = pulse, .stuck = stuck};
    struct by_watchdog *watchdog;

    (void)state;
    assert_int_equal(by_watchdog_start(&watchdog, &config), 0);
    assert_null(watchdog);
    by_watchdog_stop(watchdog);
}

/* Opens a socket in place of systemd's, with its path in the environment. */
static int listen_as_systemd(struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/tmp/by-watchdog-%ld.sock", (long)getpid());
    unlink(address->sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    setenv("NOTIFY_SOCKET", address->sun_path, 1);
    return fd;
}

static void systemd_hears_from_a_loop_that_turns_and_not_from_one_that_hangs(void **state)
{
    struct sockaddr_un address;
    int fd = listen_as_systemd(&address);
    char text[64] = "";

    (void)state;
    for (int moves = 1; moves >= 0; moves--) {
        struct loop loop = {.moves = moves};
        struct by_watchdog_config config = config_of(&loop);
        struct by_watchdog *watchdog;

        config.notify_ms = 20;
        config.limit_ms = moves ? 0 : 40;
        assert_int_equal(by_watchdog_start(&watchdog, &config), 0);
        if (moves)
            assert_int_equal(recv(fd, text, sizeof text - 1, 0), 10);
        for (int i = 0; i < 1000 && !moves && loop.stuck == 0; i++)
            usleep(10000);
        by_watchdog_stop(watchdog);
        if (moves)
            while (recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0)
                ;
        assert_string_equal(text, "WATCHDOG=1");
        if (!moves)
            assert_true(recv(fd, text, sizeof text - 1, MSG_DONTWAIT) < 0);
    }
    close(fd);
    unlink(address.sun_path);
    unsetenv("NOTIFY_SOCKET");
}

static void systemds_time_counts_only_for_its_own_process(void **state)
{
    char process[32];

    (void)state;
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(by_notify_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "20000000", 1);
    assert_int_equal(by_notify_watchdog_ms(), 20000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(by_notify_watchdog_ms(), 0);
    snprintf(process, sizeof process, "%ld", (long)getpid());
    setenv("WATCHDOG_PID", process, 1);
    assert_int_equal(by_notify_watchdog_ms(), 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_stands_still_is_told_once),
        cmocka_unit_test(a_loop_that_turns_is_left_alone),
        cmocka_unit_test(without_a_limit_and_a_listener_nothing_is_watched),
        cmocka_unit_test(systemd_hears_from_a_loop_that_turns_and_not_from_one_that_hangs),
        cmocka_unit_test(systemds_time_counts_only_for_its_own_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
