/* The listeners of the server of hosts: which addresses are opened and refused, what becomes of
 * connections, and how many hosts the limit of descriptors permits. Sockets, TLS and the limit are
 * replaced. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/controller/push.h"
#include "control/service/daemon/listen.h"
#include "control/service/daemon/members_inside.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/printed.h"
#include "tests/unit/control/service/daemon/record.h"

enum { FIRST_FD = 40, GREETED_FD = 90 };

static struct {
    struct by_daemon daemon;
    struct rlimit limit;
    int next_fd;                                                            /* of the next listener */
    int no_listener, no_acceptor, no_accept, refuses_listen, refuses_watch; /* errors */
    bool wide;                                                              /* listeners are no loopback */
    struct by_watcher *watched[3];
    unsigned watched_count;
    unsigned greeted; /* results of handshakes that wait */
    char text[600];   /* on stderr */
} rig;

/* ---- the kernel and TLS ---- */

int __wrap_getrlimit(int resource, struct rlimit *limit);
int __wrap_setrlimit(int resource, const struct rlimit *limit);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
    assert_int_equal(resource, RLIMIT_NOFILE);
    *limit = rig.limit;
    return 0;
}

int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
    assert_int_equal(resource, RLIMIT_NOFILE);
    assert_true(limit->rlim_max == rig.limit.rlim_max && limit->rlim_cur <= limit->rlim_max);
    rig.limit = *limit;
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    assert_true(address == NULL && bytes == NULL && flags == (SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (rig.no_accept != 0) {
        errno = rig.no_accept;
        return -1;
    }
    return fd + 100;
}

uint64_t by_push_election(void)
{
    return 77;
}

static int listener(void)
{
    if (rig.no_listener != 0) {
        errno = rig.no_listener;
        return -1;
    }
    return rig.next_fd++;
}

int by_listen_unix(const char *path)
{
    record("listen at %s\n", path);
    return listener();
}

int by_listen_tcp(const char *text, bool *loopback)
{
    record("listen at port %s\n", text);
    *loopback = !rig.wide;
    return listener();
}

int by_tls_identity_open(const char *folder, enum by_tls_end end, struct by_tls_identity **identity,
                         char text[BY_TLS_TEXT_MAX])
{
    assert_int_equal(end, BY_TLS_HOSTS);
    record("keys of %s\n", folder);
    if (strcmp(folder, "/none") == 0) {
        snprintf(text, BY_TLS_TEXT_MAX, "no such folder");
        return BY_EINVAL;
    }
    *identity = (struct by_tls_identity *)&rig;
    return 0;
}

int by_acceptor_open(struct by_acceptor **acceptor, const struct by_acceptor_options *options)
{
    assert_ptr_equal(options->identity, &rig);
    assert_true(options->handshakes == BY_ACCEPTOR_HANDSHAKES_MAX &&
                options->deadline_ms == BY_ACCEPTOR_DEADLINE_MS && options->per_second == 2000 &&
                options->burst == 256 && options->niceness == 0);
    if (rig.no_acceptor != 0) {
        errno = rig.no_acceptor;
        return BY_EIO;
    }
    record("a thread for handshakes\n");
    *acceptor = (struct by_acceptor *)&rig;
    return 0;
}

int by_acceptor_fd(const struct by_acceptor *acceptor)
{
    assert_ptr_equal(acceptor, &rig);
    return GREETED_FD;
}

int by_acceptor_listen(struct by_acceptor *acceptor, int fd)
{
    assert_ptr_equal(acceptor, &rig);
    record("handshakes at %d\n", fd);
    return rig.refuses_listen;
}

/* Every third connection is refused. */
bool by_acceptor_take(struct by_acceptor *acceptor, struct by_greeted *who)
{
    assert_ptr_equal(acceptor, &rig);
    if (rig.greeted == 0)
        return false;
    rig.greeted--;
    *who = (struct by_greeted){.fd = (int)rig.greeted,
                               .tls = rig.greeted % 3 != 0 ? (struct by_tls *)&rig : NULL,
                               .text = "no certificate"};
    return true;
}

/* ---- the other parts ---- */

void by_strangers_start(struct by_strangers *strangers)
{
    (void)strangers;
}

void by_members_say_stranger(struct by_daemon *daemon, const char *format, ...)
{
    char text[300];
    va_list arguments;

    (void)daemon;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("stranger: %s\n", text);
}

void by_members_admit(struct by_daemon *daemon, int fd, struct by_tls *tls)
{
    assert_ptr_equal(daemon, &rig.daemon);
    record("admit %d%s\n", fd, tls != NULL ? " with TLS" : "");
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    assert_true(daemon == &rig.daemon && events == EPOLLIN && rig.watched_count < 3);
    rig.watched[rig.watched_count++] = watcher;
    record("watch %d\n", watcher->fd);
    return rig.refuses_watch;
}

/* ---- the server ---- */

static void prepare(const char *first, const char *second)
{
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.next_fd = FIRST_FD;
    rig.limit = (struct rlimit){100000, 100000};
    rig.daemon.options.members[0] = first;
    rig.daemon.options.members[1] = second;
    rig.daemon.options.member_count = (uint32_t)(first != NULL) + (second != NULL);
}

/* Opens the server; what it prints is in rig.text. */
static void opens(int expected)
{
    int error;

    printed_begin();
    error = by_members_open(&rig.daemon);
    printed_end(rig.text, sizeof(rig.text));
    assert_int_equal(error, expected);
    assert_int_equal(rig.daemon.members->prng.state, 77);
}

static void closes(void)
{
    free(rig.daemon.members);
}

/* ---- tests ---- */

static void each_address_has_a_listener(void **state)
{
    (void)state;
    prepare("unix:/run/members", "tcp:127.0.0.1:5");
    opens(0);
    record_expect("listen at /run/members\nwatch 40\nlisten at port 127.0.0.1:5\nwatch 41\n");
    assert_int_equal(rig.daemon.members->listener_count, 2);
    rig.watched[1]->ready(&rig.daemon, rig.watched[1], EPOLLIN);
    record_expect("admit 141\n");
    rig.no_accept = EAGAIN;
    rig.watched[0]->ready(&rig.daemon, rig.watched[0], EPOLLIN);
    record_expect("");
    closes();
    prepare(NULL, NULL);
    opens(0);
    assert_int_equal(rig.daemon.members->listener_count, 0);
    closes();
}

static void listeners_with_tls_share_a_thread_for_handshakes(void **state)
{
    (void)state;
    prepare("tls:0.0.0.0:5", "tls:[::]:6");
    rig.wide = true;
    rig.daemon.options.lower.cover = 1; /* keys are not exposed */
    rig.daemon.options.access.keys = "/keys";
    opens(0);
    record_expect("keys of /keys\na thread for handshakes\nwatch 90\nlisten at port 0.0.0.0:5\n"
                  "handshakes at 40\nlisten at port [::]:6\nhandshakes at 41\n");
    assert_int_equal(rig.daemon.members->listener_count, 2);
    rig.greeted = 4;
    rig.watched[0]->ready(&rig.daemon, rig.watched[0], EPOLLIN);
    record_expect("stranger: a connection that is not from a host is refused: no certificate\n"
                  "admit 2 with TLS\nadmit 1 with TLS\n"
                  "stranger: a connection that is not from a host is refused: no certificate\n");
    rig.greeted = BY_ACCEPTOR_HANDSHAKES_MAX + 5; /* the rest in the next turn */
    rig.watched[0]->ready(&rig.daemon, rig.watched[0], EPOLLIN);
    assert_int_equal(rig.greeted, 5);
    closes();
}

static void without_keys_there_is_no_tls(void **state)
{
    (void)state;
    prepare("tls:0.0.0.0:5", NULL);
    opens(BY_EINVAL);
    assert_string_equal(rig.text,
                        "banyand: --members tls: TLS requires a controller's keys: name their folder "
                        "with --keys or BANYAN_KEYS\n");
    record_expect("");
    closes();
    prepare("tls:0.0.0.0:5", "unix:/run/members");
    rig.daemon.options.access.keys = "/none";
    opens(BY_EINVAL);
    assert_string_equal(rig.text, "banyand: --members tls: no such folder\n");
    record_expect("keys of /none\n");
    assert_int_equal(rig.daemon.members->listener_count, 0);
    closes();
    prepare("tls:0.0.0.0:5", NULL);
    rig.daemon.options.access.keys = "/keys";
    rig.no_acceptor = EAGAIN;
    opens(BY_EIO);
    assert_string_equal(rig.text, "banyand: --members tls: cannot start a thread for handshakes: Resource "
                                  "temporarily unavailable\n");
    closes();
    prepare("tls:0.0.0.0:5", NULL);
    rig.daemon.options.access.keys = "/keys";
    rig.refuses_watch = BY_EIO;
    opens(BY_EIO);
    assert_int_equal(rig.daemon.members->listener_count, 0);
    closes();
    prepare("tls:0.0.0.0:5", NULL);
    rig.daemon.options.access.keys = "/keys";
    rig.refuses_listen = BY_ELIMIT;
    opens(BY_ELIMIT);
    assert_int_equal(rig.daemon.members->listener_count, 1);
    closes();
}

static void an_address_that_cannot_be_used_is_named(void **state)
{
    (void)state;
    prepare("tcp:127.0.0.1:5", "unix:/run/members");
    rig.no_listener = EADDRINUSE;
    opens(BY_EIO);
    assert_string_equal(rig.text, "banyand: --members tcp:127.0.0.1:5: Address already in use\n");
    record_expect("listen at port 127.0.0.1:5\n");
    assert_int_equal(rig.daemon.members->listener_count, 0); /* it closes no other descriptor */
    closes();
    prepare("unix:/run/members", NULL);
    rig.refuses_watch = BY_EIO;
    opens(BY_EIO);
    closes();
}

/* Tables of keyed jobs contain keys. */
static void plain_addresses_that_would_expose_keys_are_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        bool wide = i & 1, keyed = i & 2, plain = i & 4, refused = wide && keyed && !plain;

        prepare("tcp:0.0.0.0:5", NULL);
        rig.wide = wide;
        rig.daemon.options.lower.cover = keyed;
        rig.daemon.options.access.plain_keys = plain;
        opens(refused ? BY_EINVAL : 0);
        assert_string_equal(
            rig.text, refused ? "banyand: --members tcp:0.0.0.0:5: tables of keyed jobs contain keys, "
                                "which plain TCP would expose: use tls:0.0.0.0:5, or --plain-keys where "
                                "no other program can listen\n"
                              : "");
        assert_int_equal(rig.daemon.members->listener_count, 1);
        assert_int_equal(rig.watched_count, !refused);
        closes();
    }
    prepare("unix:/run/members", NULL);
    rig.wide = true;
    rig.daemon.options.lower.cover = 1;
    opens(0);
    closes();
}

/* 256 descriptors and four for each switch are for other uses, but a quarter is for hosts. */
static void hosts_get_the_descriptors_that_others_do_not_need(void **state)
{
    static const struct {
        uint32_t switches;
        rlim_t now, most; /* the limits */
        rlim_t after;     /* the soft limit that is set */
        uint32_t hosts;
    } rows[] = {
        {0, 100000, 100000, 100000, 4096},
        {0, 4352, 4352, 4352, 4096},
        {0, 4351, 4351, 4351, 4095},
        {0, 1024, 100000, 4352, 4096}, /* raised as far as needed */
        {10, 1024, 100000, 4392, 4096},
        {10, 1024, 4391, 4391, 4095}, /* or permitted */
        {10, 4392, 100000, 4392, 4096},
        {0, 1024, 1024, 1024, 768},
        {100, 1024, 1024, 1024, 368},
        {128, 1024, 1024, 1024, 256},
        {127, 1024, 1024, 1024, 260},
        {129, 1024, 1024, 1024, 256}, /* a quarter */
        {1000, 1024, 1024, 1024, 256},
        {0, 256, 256, 256, 64},
        {0, 255, 255, 255, 63},
        {0, 341, 341, 341, 85},
        {0, 342, 342, 342, 86},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        prepare(NULL, NULL);
        rig.daemon.switch_count = rows[i].switches;
        rig.limit = (struct rlimit){rows[i].now, rows[i].most};
        opens(0);
        assert_int_equal(rig.limit.rlim_cur, rows[i].after);
        assert_int_equal(rig.daemon.members->peers_max, rows[i].hosts);
        closes();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_a_listener),
        cmocka_unit_test(listeners_with_tls_share_a_thread_for_handshakes),
        cmocka_unit_test(without_keys_there_is_no_tls),
        cmocka_unit_test(an_address_that_cannot_be_used_is_named),
        cmocka_unit_test(plain_addresses_that_would_expose_keys_are_refused),
        cmocka_unit_test(hosts_get_the_descriptors_that_others_do_not_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
