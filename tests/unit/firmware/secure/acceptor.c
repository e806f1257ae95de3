/*
 * Handshakes in a separate thread. It hands over authenticated connections and reports the others.
 * Silent connections do not block anyone else. This thread plays the other ends, over loopback TCP.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "firmware/secure/acceptor.h"
#include "offload/base/errors.h"
#include "tests/unit/firmware/secure/keys.h"

/* Timeout of every wait (ms); a loaded machine is slow. */
#define PATIENCE_MS 20000u
#define DEADLINE_MS 700u
#define PLACES      4u
#define CROWD       12u

static int listener;
static struct sockaddr_in address;
static struct by_acceptor *acceptor;
static struct by_tls_identity *own, *host, *stranger;

static struct by_tls_identity *identity(const char *keys, enum by_tls_end end)
{
    struct by_tls_identity *opened;
    char path[KEYS_PATH], text[BY_TLS_TEXT_MAX];

    if (by_tls_identity_open(keys_path(keys, path), end, &opened, text) != 0)
        fail_msg("%s", text);
    return opened;
}

static int make_keys(void **state)
{
    (void)state;
    keys_open();
    keys_issue("a", "operator", BY_KEYS_CONTROLLER, 30);
    keys_issue("a", "host0", BY_KEYS_HOST, 30);
    keys_issue("a", "leaf0", BY_KEYS_SWITCH, 30);
    own = identity("a/operator", BY_TLS_HOSTS);
    host = identity("a/host0", BY_TLS_HOST);
    stranger = identity("a/leaf0", BY_TLS_HOST);
    return 0;
}

static int remove_keys(void **state)
{
    (void)state;
    by_tls_identity_close(own);
    by_tls_identity_close(host);
    by_tls_identity_close(stranger);
    keys_close();
    return 0;
}

static int set_up(void **state)
{
    const struct by_acceptor_options options = {
        .identity = own, .handshakes = PLACES, .deadline_ms = DEADLINE_MS, .per_second = 1000, .burst = 100};
    socklen_t bytes = sizeof address;

    (void)state;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    assert_int_equal(by_acceptor_open(&acceptor, &options), 0);
    return by_acceptor_listen(acceptor, listener);
}

static int tear_down(void **state)
{
    (void)state;
    by_acceptor_close(acceptor);
    return close(listener);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int join(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Completes a handshake from this side. Returns the stream, or NULL with the error text. */
static struct by_tls *shake(struct by_tls_identity *keys, int fd, char text[BY_TLS_TEXT_MAX])
{
    struct by_tls *tls = by_tls_open(keys, fd);
    uint64_t until = now_ms() + PATIENCE_MS;
    int result;
    char byte;

    assert_non_null(tls);
    while ((result = by_tls_handshake(tls)) == BY_EAGAIN && now_ms() < until)
        poll(&(struct pollfd){.fd = fd, .events = by_tls_events(tls)}, 1, 100);
    while (keys != host && (result == 0 || result == BY_EAGAIN) && now_ms() < until) {
        result = (int)by_tls_receive(tls, &byte, 1); /* the refusal arrives with the first read */
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10);
    }
    if (result == 0)
        return tls;
    strcpy(text, by_tls_text(tls));
    by_tls_close(tls);
    return NULL;
}

static struct by_greeted await(void)
{
    struct by_greeted who;
    uint64_t until = now_ms() + PATIENCE_MS;

    while (!by_acceptor_take(acceptor, &who)) {
        if (now_ms() > until)
            fail_msg("nobody came");
        poll(&(struct pollfd){.fd = by_acceptor_fd(acceptor), .events = POLLIN}, 1, 100);
    }
    return who;
}

static void who_shows_who_it_is_is_handed_over(void **state)
{
    struct by_greeted who, nobody;
    char text[BY_TLS_TEXT_MAX] = "", in[16] = "";
    struct by_tls *tls;
    int fd = join();

    (void)state;
    tls = shake(host, fd, text);
    assert_non_null(tls);
    who = await();
    assert_non_null(who.tls);
    assert_string_equal(by_tls_peer(who.tls), "host0");
    assert_false(by_acceptor_take(acceptor, &nobody));
    assert_int_equal(by_tls_send(tls, "hello", 5), 5);
    poll(&(struct pollfd){.fd = who.fd, .events = POLLIN}, 1, (int)PATIENCE_MS);
    assert_int_equal(by_tls_receive(who.tls, in, sizeof in), 5);
    assert_memory_equal(in, "hello", 5);
    by_tls_close(who.tls);
    close(who.fd);
    by_tls_close(tls);
    close(fd);
}

static void who_has_keys_for_another_part_is_named_and_reads_why(void **state)
{
    char text[BY_TLS_TEXT_MAX] = "";
    struct by_greeted who;
    int fd = join();

    (void)state;
    assert_null(shake(stranger, fd, text));
    if (strstr(text, "refused our certificate") == NULL)
        fail_msg("%s", text);
    who = await();
    assert_null(who.tls);
    assert_int_equal(who.fd, -1);
    assert_non_null(strstr(who.text, "127.0.0.1: the host's certificate is refused"));
    close(fd);
}

static void those_who_say_nothing_keep_nobody_out(void **state)
{
    char text[BY_TLS_TEXT_MAX] = "";
    int silent[CROWD], fd;
    struct by_greeted who;
    struct by_tls *tls;

    (void)state;
    for (unsigned i = 0; i < CROWD; i++)
        silent[i] = join();
    fd = join();
    tls = shake(host, fd, text);
    assert_non_null(tls);
    do
        who = await(); /* some silent connections have timed out already */
    while (who.tls == NULL);
    assert_string_equal(by_tls_peer(who.tls), "host0");
    by_tls_close(who.tls);
    close(who.fd);
    by_tls_close(tls);
    close(fd);
    for (unsigned i = 0; i < CROWD; i++)
        close(silent[i]);
}

static void who_says_nothing_in_time_is_named(void **state)
{
    struct by_greeted who;
    int fd = join();

    (void)state;
    who = await();
    assert_null(who.tls);
    assert_non_null(strstr(who.text, "127.0.0.1: it did not authenticate"));
    close(fd);
}

/* Sends bytes that are not TLS until the connection is closed. */
static void *flood(void *argument)
{
    static const char junk[1 << 16];
    int fd = *(const int *)argument;

    while (send(fd, junk, sizeof junk, MSG_NOSIGNAL) > 0)
        ;
    return NULL;
}

static void who_is_refused_and_sends_on_keeps_nobody_out(void **state)
{
    char text[BY_TLS_TEXT_MAX] = "";
    int noisy[PLACES], fd;
    pthread_t threads[PLACES];
    struct by_greeted who;
    struct by_tls *tls;

    (void)state;
    for (unsigned i = 0; i < PLACES; i++) {
        noisy[i] = join();
        assert_int_equal(fcntl(noisy[i], F_SETFL, 0), 0);
        assert_int_equal(pthread_create(&threads[i], NULL, flood, &noisy[i]), 0);
        assert_null(await().tls);
    }
    fd = join();
    tls = shake(host, fd, text);
    assert_non_null(tls);
    who = await();
    assert_string_equal(by_tls_peer(who.tls), "host0");
    by_tls_close(who.tls);
    close(who.fd);
    by_tls_close(tls);
    close(fd);
    for (unsigned i = 0; i < PLACES; i++) {
        pthread_join(threads[i], NULL); /* its connection has timed out */
        close(noisy[i]);
    }
}

static void a_crowd_comes_in_though_few_are_met_at_a_time(void **state)
{
    struct by_tls *tls[CROWD];
    int fds[CROWD];
    unsigned taken = 0;
    uint64_t until = now_ms() + PATIENCE_MS;

    (void)state;
    for (unsigned i = 0; i < CROWD; i++) {
        fds[i] = join();
        tls[i] = by_tls_open(host, fds[i]);
    }
    while (taken < CROWD && now_ms() < until) {
        struct by_greeted who;

        for (unsigned i = 0; i < CROWD; i++)
            if (by_tls_handshake(tls[i]) == BY_EIO)
                fail_msg("%s", by_tls_text(tls[i]));
        while (by_acceptor_take(acceptor, &who)) {
            assert_non_null(who.tls);
            by_tls_close(who.tls);
            close(who.fd);
            taken++;
        }
    }
    assert_int_equal(taken, CROWD);
    for (unsigned i = 0; i < CROWD; i++) {
        by_tls_close(tls[i]);
        close(fds[i]);
    }
}

/* Returns the number of open descriptors, that of the folder's included; `*next` is the lowest
 * free one. */
static unsigned descriptors(rlim_t *next)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(folder);
    *next = (rlim_t)dirfd(folder);
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Returns the processor time of the other threads (ms). */
static uint64_t others_ms(void)
{
    struct timespec all, own_time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own_time);
    return (uint64_t)((all.tv_sec - own_time.tv_sec) * 1000 + (all.tv_nsec - own_time.tv_nsec) / 1000000);
}

/* Returns how often they have waited. */
static long others_waits(void)
{
    struct rusage all, own_use;

    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own_use);
    return all.ru_nvcsw - own_use.ru_nvcsw;
}

static void it_takes_no_time_while_nothing_happens(void **state)
{
    int quiet = join();
    uint64_t before = others_ms();

    (void)state;
    usleep(DEADLINE_MS / 2 * 1000);
    assert_in_range(others_ms() - before, 0, 50);
    close(quiet);
}

/* Its connection is closed with an error, not with the end of its input. */
static void who_is_refused_and_resets_is_forgotten_at_once(void **state)
{
    const struct linger reset = {.l_onoff = 1};
    char text[BY_TLS_TEXT_MAX] = "";
    uint64_t before;
    int fd = join();

    (void)state;
    assert_null(shake(stranger, fd, text));
    assert_null(await().tls);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    before = others_ms();
    close(fd);
    usleep(DEADLINE_MS / 2 * 1000);
    assert_in_range(others_ms() - before, 0, 50);
}

static void all_places_and_listeners_may_be_in_use(void **state)
{
    const struct by_acceptor_options options = {.identity = own,
                                                .handshakes = BY_ACCEPTOR_HANDSHAKES_MAX,
                                                .deadline_ms = 20 * DEADLINE_MS,
                                                .per_second = 1000,
                                                .burst = 100};
    int fds[BY_ACCEPTOR_HANDSHAKES_MAX], fd;
    char text[BY_TLS_TEXT_MAX] = "";
    struct by_greeted who;
    struct by_tls *tls;

    (void)state;
    by_acceptor_close(acceptor);
    assert_int_equal(by_acceptor_open(&acceptor, &options), 0);
    for (unsigned i = 0; i < BY_ACCEPTOR_LISTENERS_MAX; i++)
        assert_int_equal(by_acceptor_listen(acceptor, listener), 0);
    assert_int_equal(by_acceptor_listen(acceptor, listener), BY_ELIMIT);
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX; i++)
        fds[i] = join();
    fd = join(); /* it gets the place of the oldest */
    tls = shake(host, fd, text);
    assert_non_null(tls);
    who = await();
    assert_string_equal(by_tls_peer(who.tls), "host0");
    by_tls_close(who.tls);
    close(who.fd);
    by_tls_close(tls);
    close(fd);
    for (unsigned i = 0; i < BY_ACCEPTOR_HANDSHAKES_MAX; i++)
        close(fds[i]);
}

/* The listener is ready all the time, and a connection cannot be accepted. */
static void without_descriptors_it_rests_and_goes_on(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char text[BY_TLS_TEXT_MAX];
    struct rlimit limit, none;
    struct by_greeted who;
    struct by_tls *tls;
    long before;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    descriptors(&none.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    before = others_waits();
    (void)!connect(fd, (struct sockaddr *)&address, sizeof address);
    usleep(300000);
    assert_in_range(others_waits() - before, 0, 30); /* three rests */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tls = shake(host, fd, text);
    assert_non_null(tls);
    who = await();
    assert_non_null(who.tls);
    by_tls_close(who.tls);
    close(who.fd);
    by_tls_close(tls);
    close(fd);
}

static void it_ends_while_some_are_at_it(void **state)
{
    char text[BY_TLS_TEXT_MAX];
    rlim_t next;
    unsigned before = descriptors(&next);
    int quiet = join(), fd = join();
    struct by_tls *tls = shake(host, fd, text); /* not taken from the acceptor */

    (void)state;
    assert_non_null(tls);
    by_acceptor_close(acceptor);
    acceptor = NULL;
    by_tls_close(tls);
    close(fd);
    close(quiet);
    assert_int_equal(descriptors(&next), before - 2); /* its events */
}

/* Returns the nice value of the other thread of this process. */
static int other_niceness(void)
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    int found = 0;

    assert_non_null(threads);
    while ((entry = readdir(threads)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);

        if (thread > 0 && thread != (long)getpid())
            found = getpriority(PRIO_PROCESS, (id_t)thread);
    }
    closedir(threads);
    return found;
}

/* The last test, because this process keeps its nice value. */
static void its_thread_is_nicer_than_who_opens_it(void **state)
{
    const struct by_acceptor_options options = {.identity = own,
                                                .handshakes = PLACES,
                                                .deadline_ms = DEADLINE_MS,
                                                .per_second = 1,
                                                .burst = 1,
                                                .niceness = 3};
    int most = 19 - options.niceness, nice = getpriority(PRIO_PROCESS, 0) + 5;
    uint64_t until = now_ms() + PATIENCE_MS;

    (void)state;
    nice = nice < most ? nice : most;
    if (setpriority(PRIO_PROCESS, 0, nice) != 0)
        skip(); /* its nice value is already higher */
    assert_int_equal(by_acceptor_open(&acceptor, &options), 0);
    while (other_niceness() != nice + options.niceness) {
        if (now_ms() > until)
            fail_msg("%d, of an opener with %d", other_niceness(), nice);
        usleep(1000);
    }
    by_acceptor_close(acceptor);
    acceptor = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_shows_who_it_is_is_handed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_keys_for_another_part_is_named_and_reads_why, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(those_who_say_nothing_keep_nobody_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_says_nothing_in_time_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_refused_and_sends_on_keeps_nobody_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_crowd_comes_in_though_few_are_met_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_takes_no_time_while_nothing_happens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_refused_and_resets_is_forgotten_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_places_and_listeners_may_be_in_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_descriptors_it_rests_and_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_ends_while_some_are_at_it, set_up, tear_down),
        cmocka_unit_test(its_thread_is_nicer_than_who_opens_it),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
