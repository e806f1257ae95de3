/* Rings of frames, on the loopback interface in a network namespace of this test. Skipped without
 * root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "offload/linux/feature.h"
#include "offload/linux/ring.h"

#define HEADERS 42u
#define PORT    5000u

static int receiver, other, sender;

static int open_socket(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void send_number(uint32_t number, uint16_t port, size_t bytes)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    uint8_t data[4096] = {0};

    memcpy(data, &number, sizeof(number));
    assert_int_equal(sendto(sender, data, bytes, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)bytes);
}

static struct by_ring *open_ring(uint32_t frames, uint32_t mtu)
{
    const struct by_ring_config config = {
        .interface = "lo", .mtu = mtu, .frames = frames, .ip = INADDR_LOOPBACK, .udp_port = PORT};
    struct by_ring *ring = NULL;
    const char *step = NULL;
    int error = by_ring_open(&ring, &config, &step);

    if (error != 0 && step != NULL && strcmp(step, "tcx") == 0)
        skip(); /* a kernel before 6.6 */
    assert_int_equal(error, 0);
    return ring;
}

/* Takes the next frame and returns its number. */
static uint32_t take(struct by_ring *ring, uint32_t bytes)
{
    uint32_t got, number;
    const uint8_t *data = by_ring_take(ring, &got);

    assert_non_null(data);
    assert_int_equal(got, HEADERS + bytes);
    assert_int_equal((uintptr_t)(data + HEADERS + 40) % 64, 0); /* the payload of a banyan packet */
    memcpy(&number, data + HEADERS, sizeof(number));
    return number;
}

static int is_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    return poll(&wait, 1, 0) == 1;
}

static void a_ring_takes_what_is_for_it_and_the_stack_gets_the_rest(void **state)
{
    struct by_ring *ring = open_ring(64, 1500);
    uint32_t bytes;
    char byte;

    (void)state;
    assert_null(by_ring_take(ring, &bytes));
    for (uint32_t i = 0; i < 20; i++) {
        send_number(i, PORT, 100 + i);
        send_number(i, PORT + 1, 100);
    }
    assert_false(by_ring_doze(ring));
    assert_true(is_readable(by_ring_fd(ring)));
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(take(ring, 100 + i), i);
    assert_null(by_ring_take(ring, &bytes));
    by_ring_return(ring);
    assert_true(by_ring_doze(ring));
    assert_false(is_readable(by_ring_fd(ring)));
    assert_null(by_ring_take(ring, &bytes));
    assert_false(is_readable(receiver));
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(recv(other, &byte, 1, 0), 1);
    assert_false(is_readable(other));
    by_ring_close(ring);
}

static void the_frame_that_wakes_a_sleeper_goes_to_its_socket_too(void **state)
{
    struct by_ring *ring = open_ring(64, 1500);
    char byte;

    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        assert_true(by_ring_doze(ring));
        assert_false(is_readable(receiver));
        send_number(1, PORT, 100);
        send_number(2, PORT, 100);
        assert_true(is_readable(receiver));
        assert_int_equal(recv(receiver, &byte, 1, 0), 1);
        assert_false(is_readable(receiver));
        assert_false(by_ring_doze(ring));
        assert_true(is_readable(by_ring_fd(ring)));
        assert_int_equal(take(ring, 100), 1);
        assert_int_equal(take(ring, 100), 2);
        by_ring_return(ring);
        send_number(3, PORT, 100); /* no reader sleeps */
        assert_false(is_readable(receiver));
        assert_int_equal(take(ring, 100), 3);
    }
    by_ring_close(ring);
}

static void a_ring_of_every_frame_wakes_a_sleeper_by_itself(void **state)
{
    const struct by_ring_config config = {.interface = "lo", .mtu = 1500, .frames = 64, .all = true};
    struct by_ring *ring = NULL;
    const char *step = NULL;
    uint32_t bytes;
    int error = by_ring_open(&ring, &config, &step);

    (void)state;
    if (error != 0 && step != NULL && strcmp(step, "tcx") == 0)
        skip();
    assert_int_equal(error, 0);
    for (uint32_t round = 0; round < 3; round++) {
        assert_true(by_ring_doze(ring));
        assert_false(is_readable(by_ring_fd(ring)));
        send_number(round, PORT, 100);
        assert_true(is_readable(by_ring_fd(ring)));
        assert_int_equal(take(ring, 100), round);
        assert_null(by_ring_take(ring, &bytes));
        assert_false(is_readable(receiver));
    }
    by_ring_close(ring);
}

#define SENDERS 2u
#define EACH    60000u /* frames of each sender */
#define AHEAD   200u   /* most frames of a sender that have not been taken */

struct ring_sender {
    uint32_t index, taken;
};

/* Sends frames of different sizes, which begin with their number and are filled with its low byte.
 * Pauses let the reader sleep. */
static void *send_stream(void *argument)
{
    struct ring_sender *stream = argument;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t data[1472];

    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t number = i * SENDERS + stream->index, bytes = 64 + i * 37 % (sizeof(data) - 64);

        while (i - __atomic_load_n(&stream->taken, __ATOMIC_ACQUIRE) >= AHEAD)
            sched_yield();
        if (i % 64 == 63 || number % 971 == 0)
            usleep(20);
        memset(data, (int)(number & 255), bytes);
        memcpy(data, &number, sizeof(number));
        while (sendto(fd, data, bytes, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
            sched_yield();
    }
    close(fd);
    return NULL;
}

static void check_frame(const uint8_t *data, uint32_t bytes, struct ring_sender *streams)
{
    const uint8_t *body = data + HEADERS;
    struct ring_sender *stream;
    uint32_t number, i;

    memcpy(&number, body, sizeof(number));
    stream = &streams[number % SENDERS];
    i = stream->taken;
    assert_int_equal(number / SENDERS, i);
    assert_int_equal(bytes, HEADERS + 64 + i * 37 % (1472 - 64));
    for (uint32_t at = 4; at < bytes - HEADERS; at++)
        assert_int_equal(body[at], number & 255);
    __atomic_store_n(&stream->taken, i + 1, __ATOMIC_RELEASE);
}

/* A reader that sleeps whenever the ring is empty takes every frame of senders on several
 * processors, in the order of each, and no wake-up is missing. */
static void no_frame_of_several_senders_and_no_wake_up_is_lost(void **state)
{
    const struct by_ring_config config = {.interface = "lo", .mtu = 1500, .frames = 512, .all = true};
    struct ring_sender streams[SENDERS] = {{0}};
    pthread_t threads[SENDERS];
    struct by_ring *ring = NULL;
    const char *step = NULL;
    uint32_t sleeps = 0;
    int error = by_ring_open(&ring, &config, &step);

    (void)state;
    if (error != 0 && step != NULL && strcmp(step, "tcx") == 0)
        skip();
    assert_int_equal(error, 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        streams[i].index = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_stream, &streams[i]), 0);
    }
    for (uint32_t count = 0; count < SENDERS * EACH;) {
        struct pollfd wait = {.fd = by_ring_fd(ring), .events = POLLIN};
        const uint8_t *data;
        uint32_t bytes;

        for (; (data = by_ring_take(ring, &bytes)) != NULL; count++) {
            check_frame(data, bytes, streams);
            if (count % 16 == 0)
                by_ring_return(ring); /* senders may be ahead of what was taken, not of what was returned */
        }
        by_ring_return(ring);
        if (count < SENDERS * EACH && by_ring_doze(ring)) {
            sleeps++;
            assert_int_equal(poll(&wait, 1, 20000), 1);
        }
    }
    for (uint32_t i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(by_ring_lost(ring), 0);
    assert_true(sleeps > 10);
    by_ring_close(ring);
}

static void a_closed_ring_leaves_the_interface_as_it_was(void **state)
{
    struct by_ring *ring = open_ring(64, 1500);
    char byte;

    (void)state;
    by_ring_close(ring);
    send_number(1, PORT, 100);
    assert_int_equal(recv(receiver, &byte, 1, 0), 1);
}

static void a_full_ring_loses_frames_counts_them_and_goes_on(void **state)
{
    struct by_ring *ring = open_ring(40, 1500);
    uint32_t slots = by_ring_frames(ring), bytes;

    (void)state;
    assert_true(slots >= 40);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < slots + 7; i++)
            send_number(i, PORT, 1472);
        for (uint32_t i = 0; i < slots; i++)
            assert_int_equal(take(ring, 1472), i);
        assert_null(by_ring_take(ring, &bytes)); /* all frames are taken, none is returned */
        assert_int_equal(by_ring_lost(ring), 7);
        by_ring_return(ring);
    }
    by_ring_close(ring);
}

static void a_ring_is_half_full_by_what_was_not_taken(void **state)
{
    struct by_ring *ring = open_ring(40, 1500);
    uint32_t slots = by_ring_frames(ring), sent = 0;

    (void)state;
    assert_false(by_ring_is_half_full(ring));
    while (sent < slots && !by_ring_is_half_full(ring))
        send_number(sent++, PORT, 1472);
    assert_in_range(sent, slots / 2, slots / 2 + 1);
    assert_int_equal(take(ring, 1472), 0);
    assert_false(by_ring_is_half_full(ring));
    by_ring_return(ring);
    by_ring_close(ring);
}

static void a_frame_that_is_too_long_is_told_of(void **state)
{
    struct by_ring *ring = open_ring(64, 1000);
    uint32_t bytes = 1;

    (void)state;
    send_number(1, PORT, 3000);
    send_number(2, PORT, 200);
    assert_non_null(by_ring_take(ring, &bytes));
    assert_int_equal(bytes, 0);
    assert_int_equal(take(ring, 200), 2);
    by_ring_close(ring);
}

/* Leaves this process what the unit of banyan-switchd gives to it. */
static int keep_capabilities_of_the_unit(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}};
    const unsigned kept[] = {CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, CAP_IPC_LOCK};

    for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        sets[kept[i] / 32].permitted |= 1u << kept[i] % 32;
    for (unsigned i = 0; i < 2; i++)
        sets[i].effective = sets[i].permitted;
    return (int)syscall(SYS_capset, &head, sets);
}

/* The kernel checks programs more strictly for processes without CAP_PERFMON. */
static void the_capabilities_of_the_unit_suffice(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        const struct by_ring_config config = {.interface = "lo", .mtu = 1500, .frames = 64, .all = true};
        struct by_ring *ring = NULL;
        const char *step = "";

        if (keep_capabilities_of_the_unit() != 0)
            _exit(2);
        _exit(by_ring_open(&ring, &config, &step) != 0 && strcmp(step, "tcx") != 0 ? 3 : ring == NULL);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void an_error_names_the_step(void **state)
{
    const struct by_ring_config none = {.interface = "no-such-if", .mtu = 1500, .frames = 64};
    const struct by_ring_config wide = {.interface = "lo", .mtu = 65536, .frames = 64};
    struct by_ring *ring;
    const char *step = NULL;

    (void)state;
    assert_true(by_ring_open(&ring, &none, &step) < 0);
    assert_string_equal(step, "if_nametoindex");
    assert_int_equal(by_ring_open(&ring, &wide, &step), -EMSGSIZE);
    assert_string_equal(step, "ring");
}

static void a_feature_is_found_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(by_feature_get(sender, "lo", "no such feature"), -1);
    assert_int_equal(by_feature_get(sender, "no-such-if", "loopback"), -1);
    assert_true(by_feature_virtual(sender, "lo"));
    assert_int_equal(by_feature_set(sender, "lo", "tx-gso-list", false), 0);
    assert_int_equal(by_feature_get(sender, "lo", "tx-gso-list"), 0);
    assert_int_equal(by_feature_set(sender, "lo", "tx-gso-list", true), 0);
    assert_int_equal(by_feature_get(sender, "lo", "tx-gso-list"), 1);
}

/* Prepares a network namespace with its loopback interface up. */
static int prepare(void **state)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    (void)state;
    sender = socket(AF_INET, SOCK_DGRAM, 0);
    if (sender < 0 || ioctl(sender, SIOCSIFFLAGS, &request) != 0)
        return -1;
    receiver = open_socket(PORT);
    other = open_socket(PORT + 1);
    return 0;
}

static int put_away(void **state)
{
    (void)state;
    close(sender);
    close(receiver);
    close(other);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_what_is_for_it_and_the_stack_gets_the_rest),
        cmocka_unit_test(the_frame_that_wakes_a_sleeper_goes_to_its_socket_too),
        cmocka_unit_test(a_ring_of_every_frame_wakes_a_sleeper_by_itself),
        cmocka_unit_test(no_frame_of_several_senders_and_no_wake_up_is_lost),
        cmocka_unit_test(a_closed_ring_leaves_the_interface_as_it_was),
        cmocka_unit_test(a_full_ring_loses_frames_counts_them_and_goes_on),
        cmocka_unit_test(a_ring_is_half_full_by_what_was_not_taken),
        cmocka_unit_test(a_frame_that_is_too_long_is_told_of),
        cmocka_unit_test(the_capabilities_of_the_unit_suffice),
        cmocka_unit_test(an_error_names_the_step),
        cmocka_unit_test(a_feature_is_found_by_its_name),
    };

    if (unshare(CLONE_NEWNET) != 0) {
        printf("1..0 # SKIP a network of its own takes root: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, prepare, put_away);
}
