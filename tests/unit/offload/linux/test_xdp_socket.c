/* AF_XDP sockets on the loopback interface in a network namespace of this test. Skipped without
 * root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "offload/linux/xdp_socket.h"

static struct by_xdp_socket *open_socket(int *error)
{
    const struct by_xdp_socket_config config = {
        .interface = "lo", .queue = 0, .frame_bytes = 4096, .rx_frames = 64, .tx_frames = 64};
    struct by_xdp_socket *socket = NULL;
    const char *step;

    *error = by_xdp_socket_open(&socket, &config, &step);
    return socket;
}

static void *close_later(void *socket)
{
    const struct timespec sleep = {.tv_nsec = 300000000};

    nanosleep(&sleep, NULL);
    by_xdp_socket_free(socket);
    return NULL;
}

static void a_queue_whose_socket_is_closed_late_is_waited_for(void **state)
{
    int error;
    struct by_xdp_socket *first = open_socket(&error), *second;
    pthread_t closer;

    (void)state;
    assert_int_equal(error, 0);
    assert_int_equal(pthread_create(&closer, NULL, close_later, first), 0);
    second = open_socket(&error);
    pthread_join(closer, NULL);
    assert_int_equal(error, 0);
    by_xdp_socket_free(second);
}

static void a_queue_that_stays_taken_is_refused(void **state)
{
    int error;
    struct by_xdp_socket *first = open_socket(&error);

    (void)state;
    assert_int_equal(error, 0);
    assert_null(open_socket(&error));
    assert_int_equal(error, -EBUSY);
    by_xdp_socket_free(first);
}

/* Prepares a network namespace with its loopback interface up. */
static int prepare(void **state)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;

    (void)state;
    if (fd >= 0)
        close(fd);
    return up ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_whose_socket_is_closed_late_is_waited_for),
        cmocka_unit_test(a_queue_that_stays_taken_is_refused),
    };

    if (unshare(CLONE_NEWNET) != 0) {
        printf("1..0 # SKIP a network of its own takes root: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, prepare, NULL);
}
