/* Files that appear complete or not at all, lost standard output, and notifications of systemd. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/linux/notify.h"
#include "offload/linux/output.h"

static char folder[] = "/tmp/by-test-output-XXXXXX";
static char file[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof(file), "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder); /* fails if a temporary file is left */
}

static void write_file(const char *text, mode_t mode, bool right)
{
    struct by_output output;

    assert_int_equal(by_output_open(&output, file, mode), 0);
    assert_true(fputs(text, output.stream) >= 0);
    errno = 0;
    assert_int_equal(by_output_close(&output, right), right ? 0 : -1);
    assert_int_equal(errno, right ? 0 : EIO);
}

static void expect_file(const char *text, unsigned mode)
{
    char bytes[64] = "";
    FILE *stream = fopen(file, "r");
    struct stat status;

    assert_non_null(stream);
    assert_true(fread(bytes, 1, sizeof(bytes) - 1, stream) == strlen(text));
    fclose(stream);
    assert_string_equal(bytes, text);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, mode);
}

static void a_file_is_replaced_when_it_is_right_and_keeps_its_permissions(void **state)
{
    mode_t before = umask(0022);

    (void)state;
    write_file("one", 0666, true);
    expect_file("one", 0644);
    write_file("two", 0666, false);
    expect_file("one", 0644);
    assert_int_equal(chmod(file, 0600), 0);
    write_file("three", 0666, true);
    expect_file("three", 0600);
    umask(before);
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
    char link[64];
    struct by_output output;
    struct stat status;

    (void)state;
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(by_output_open(&output, link, 0600), 0);
    assert_true(fputs("four", output.stream) >= 0);
    assert_int_equal(by_output_close(&output, true), 0);
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    expect_file("four", 0600);
    unlink(link);
}

static void what_cannot_be_written_is_reported(void **state)
{
    static char path[PATH_MAX + 10];
    struct by_output output;

    (void)state;
    assert_int_equal(by_output_open(&output, "/dev/full", 0600), 0); /* in place */
    assert_true(fputs("text", output.stream) >= 0);
    assert_int_equal(by_output_close(&output, true), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(by_output_open(&output, "/dev/full", 0600), 0);
    setvbuf(output.stream, NULL, _IONBF, 0); /* the write fails before the close */
    assert_int_equal(fputs("text", output.stream), EOF);
    assert_int_equal(by_output_close(&output, true), -1);
    assert_int_equal(errno, ENOSPC);
    snprintf(path, sizeof(path), "%s/none/file", folder);
    assert_int_equal(by_output_open(&output, path, 0600), -1);
    assert_int_equal(errno, ENOENT);
    for (size_t length = PATH_MAX - 3; length < PATH_MAX + 9; length += 8) { /* without, with the suffix */
        memset(path, 'a', length);
        path[length] = 0;
        assert_int_equal(by_output_open(&output, path, 0600), -1);
        assert_int_equal(errno, ENAMETOOLONG);
    }
}

/* A file whose path has become a folder meanwhile. */
static void a_file_that_cannot_be_renamed_leaves_nothing(void **state)
{
    struct by_output output;
    char inner[80];

    (void)state;
    unlink(file);
    assert_int_equal(by_output_open(&output, file, 0600), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    snprintf(inner, sizeof(inner), "%s/inner", file);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(by_output_close(&output, true), -1);
    assert_true(errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST);
    assert_int_equal(access(output.made, F_OK), -1);
    rmdir(inner);
    rmdir(file);
}

/* Runs by_output_end(status) in a process whose standard output is this file; returns its exit
 * status. */
static int end_with(const char *path, int status)
{
    int result;
    pid_t process = fork();

    if (process == 0) {
        struct by_output output;

        if (freopen(path, "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL ||
            by_output_open(&output, "-", 0600) != 0 || output.stream != stdout)
            _exit(99);
        fputs("text", output.stream);
        if (by_output_close(&output, true) != 0)
            _exit(98);
        _exit(by_output_end(status));
    }
    assert_true(process > 0);
    assert_true(waitpid(process, &result, 0) == process && WIFEXITED(result));
    return WEXITSTATUS(result);
}

static void a_program_whose_output_is_lost_does_not_succeed(void **state)
{
    (void)state;
    assert_int_equal(end_with("/dev/null", 0), 0);
    assert_int_equal(end_with("/dev/null", 1), 1);
    assert_int_equal(end_with("/dev/full", 0), BY_OUTPUT_LOST);
    assert_int_equal(end_with("/dev/full", 1), 1);
}

static void systemd_is_notified_by_a_path_or_an_abstract_name(void **state)
{
    (void)state;
    for (unsigned abstract = 0; abstract < 2; abstract++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char text[16] = "";
        socklen_t bytes;
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s%s/notify", abstract ? "@" : "", folder);
        bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address.sun_path));
        setenv("NOTIFY_SOCKET", address.sun_path, 1);
        by_notify("READY=0"); /* no process listens */
        if (abstract)
            address.sun_path[0] = 0;
        assert_int_equal(bind(fd, (const struct sockaddr *)&address, bytes), 0);
        by_notify("READY=1");
        assert_true(recv(fd, text, sizeof(text), 0) == 7);
        assert_memory_equal(text, "READY=1", 7);
        setenv("NOTIFY_SOCKET", "relative", 1);
        by_notify("READY=2");
        unsetenv("NOTIFY_SOCKET");
        by_notify("READY=3");
        assert_true(recv(fd, text, sizeof(text), 0) < 0 && errno == EAGAIN);
        close(fd);
        if (!abstract)
            unlink(address.sun_path);
    }
}

static void the_watchdog_is_of_this_process_only(void **state)
{
    char own[16];

    (void)state;
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(by_notify_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "2500999", 1);
    assert_int_equal(by_notify_watchdog_ms(), 2500);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(by_notify_watchdog_ms(), 0);
    snprintf(own, sizeof(own), "%ld", (long)getpid());
    setenv("WATCHDOG_PID", own, 1);
    assert_int_equal(by_notify_watchdog_ms(), 2500);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_when_it_is_right_and_keeps_its_permissions),
        cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
        cmocka_unit_test(what_cannot_be_written_is_reported),
        cmocka_unit_test(a_file_that_cannot_be_renamed_leaves_nothing),
        cmocka_unit_test(a_program_whose_output_is_lost_does_not_succeed),
        cmocka_unit_test(systemd_is_notified_by_a_path_or_an_abstract_name),
        cmocka_unit_test(the_watchdog_is_of_this_process_only),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
