/* Files with pre-shared keys. See psk_file.h. */
#include "control/service/controller/psk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/fabric/build.h"
#include "firmware/secure/psk.h"
#include "offload/base/errors.h"

#define PATH_BYTES 1200u

int by_psk_file_read(const char *path, struct by_siphash_key *key, struct by_problem *problem)
{
    char text[BY_PSK_DIGITS + 8] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    struct stat status = {0};
    int number = errno, error = 0;

    if (count < 0)
        error =
            by_problem_say(problem, number == ENOENT ? BY_ENOENT : BY_EIO,
                           "%.300s: %s: make a key with `banyan keys --psk FILE`", path, strerror(number));
    else if (fstat(fd, &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        error =
            by_problem_say(problem, BY_EPERM, "%.300s: other users may read this key: chmod 600 it", path);
    else if (by_psk_key_read(key, text) != 0)
        error = by_problem_say(problem, BY_EFORMAT,
                               "%.300s: a key has %u hexadecimal digits and nothing else: make one with "
                               "`banyan keys --psk FILE`",
                               path, BY_PSK_DIGITS);
    if (fd >= 0)
        close(fd);
    explicit_bzero(text, sizeof(text));
    return error;
}

/* Draws a random key: its digits and a newline. */
static bool draw(char text[BY_PSK_DIGITS + 2])
{
    uint8_t bytes[BY_SIPHASH_KEY_BYTES];
    bool drawn = getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes);

    for (unsigned i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 4, "%02x\n", bytes[i]);
    explicit_bzero(bytes, sizeof(bytes));
    return drawn;
}

int by_psk_file_make(const char *path, bool renew, struct by_problem *problem)
{
    char made[PATH_BYTES + 8], text[BY_PSK_DIGITS + 2];
    bool done;
    int fd, number;

    if (strlen(path) >= PATH_BYTES)
        return by_problem_say(problem, BY_EINVAL, "%.100s...: a path has at most %u characters", path,
                              PATH_BYTES - 1);
    if (!renew && access(path, F_OK) == 0)
        return by_problem_say(problem, BY_EEXIST, "%.300s: it exists already: --renew replaces it", path);
    snprintf(made, sizeof(made), "%s.new", path);
    unlink(made);
    fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    done = fd >= 0 && draw(text) && write(fd, text, BY_PSK_DIGITS + 1) == BY_PSK_DIGITS + 1 && fsync(fd) == 0;
    number = errno;
    explicit_bzero(text, sizeof(text));
    if (fd >= 0)
        close(fd);
    if (done && rename(made, path) == 0)
        return 0;
    by_problem_say(problem, BY_EIO, "%.300s: %s", path, strerror(done ? errno : number));
    unlink(made);
    return BY_EIO;
}
