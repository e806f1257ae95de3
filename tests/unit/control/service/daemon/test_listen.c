/* Listening sockets: which paths and addresses are taken or refused, who may connect, and that a
 * socket of a daemon that has ended is replaced, and one that is in use is not. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/listen.h"

static char folder[] = "/tmp/daemon-listen-XXXXXX";
static char path[sizeof(folder) + 10];

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), result;

    memcpy(address.sun_path, name, strlen(name) + 1);
    result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    close(fd);
    return result;
}

/* A listener does not block the loop, and other programs do not inherit it. */
static void check_flags(int fd)
{
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void refuses(const char *name, int error)
{
    errno = 0;
    assert_int_equal(by_listen_unix(name), -1);
    assert_int_equal(errno, error);
}

static void only_the_user_may_connect_to_a_socket_file(void **state)
{
    mode_t mask = umask(0);
    struct stat status;
    int fd = by_listen_unix(path);

    (void)state;
    umask(mask);
    check_flags(fd);
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(connect_to(path), 0);
    close(fd);
    unlink(path);
}

static void a_socket_in_use_is_refused_and_one_left_behind_is_replaced(void **state)
{
    int fd = by_listen_unix(path), other;

    (void)state;
    assert_true(fd >= 0);
    refuses(path, EADDRINUSE);
    assert_int_equal(connect_to(path), 0); /* it is still there */
    close(fd);
    assert_int_equal(connect_to(path), -1); /* the file is left */
    other = by_listen_unix(path);
    check_flags(other);
    assert_int_equal(connect_to(path), 0);
    close(other);
    unlink(path);
}

static void other_files_stay(void **state)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    (void)state;
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    refuses(path, EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    refuses(folder, EEXIST);
}

static void paths_have_a_length(void **state)
{
    char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    size_t used = strlen(folder);
    int fd;

    (void)state;
    refuses("", EINVAL);
    memset(name, 'l', sizeof(name));
    memcpy(name, folder, used);
    name[used] = '/';
    name[sizeof(name) - 1] = 0; /* one character more than an address holds with its end */
    refuses(name, ENAMETOOLONG);
    name[sizeof(name) - 2] = 0;
    fd = by_listen_unix(name);
    assert_true(fd >= 0);
    assert_int_equal(connect_to(name), 0);
    close(fd);
    unlink(name);
    refuses("/nowhere/socket", ENOENT);
}

/* The address at which a listener listens. */
static struct sockaddr_in at(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t bytes = sizeof(address);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    assert_int_equal(address.sin_family, AF_INET);
    return address;
}

static void addresses_are_of_this_machine_alone_or_of_all(void **state)
{
    bool loopback = false;
    int fd = by_listen_tcp("127.0.0.1:0", &loopback), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    char text[40];

    (void)state;
    check_flags(fd);
    assert_true(loopback);
    address = at(fd);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(client);
    /* A port in use is refused. */
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
    errno = 0;
    assert_int_equal(by_listen_tcp(text, &loopback), -1);
    assert_int_equal(errno, EADDRINUSE);
    close(fd);
    fd = by_listen_tcp(text, &loopback); /* at once after it was closed */
    assert_true(fd >= 0);
    close(fd);
    fd = by_listen_tcp("0.0.0.0:0", &loopback);
    check_flags(fd);
    assert_false(loopback);
    assert_int_equal(at(fd).sin_addr.s_addr, htonl(INADDR_ANY));
    close(fd);
    loopback = true;
    fd = by_listen_tcp(":0", &loopback); /* every address, of either protocol */
    check_flags(fd);
    assert_false(loopback);
    close(fd);
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const texts[] = {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ":"};
    bool loopback;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        errno = 0;
        assert_int_equal(by_listen_tcp(texts[i], &loopback), -1);
        assert_int_equal(errno, EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_user_may_connect_to_a_socket_file),
        cmocka_unit_test(a_socket_in_use_is_refused_and_one_left_behind_is_replaced),
        cmocka_unit_test(other_files_stay),
        cmocka_unit_test(paths_have_a_length),
        cmocka_unit_test(addresses_are_of_this_machine_alone_or_of_all),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/socket", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
