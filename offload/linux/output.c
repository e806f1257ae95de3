#include "offload/linux/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Flushes. Returns 0, or -1 with errno. The cause of an earlier failed write is lost, so one more
 * byte is written to meet it again; that succeeds only if space has become free. */
static int flush(FILE *stream)
{
    if (fflush(stream) != 0)
        return -1;
    if (!ferror(stream))
        return 0;
    if (fputc('\n', stream) != EOF && fflush(stream) == 0)
        errno = EIO;
    return -1;
}

int by_output_end(int status)
{
    if (flush(stdout) == 0)
        return status;
    fprintf(stderr, "%s: cannot write standard output: %s\n", program_invocation_short_name, strerror(errno));
    return status == 0 ? BY_OUTPUT_LOST : status;
}

/* Creates the file beside the path, with the permissions of an existing file. Returns its
 * descriptor, or -1. */
static int open_beside(struct by_output *output, mode_t mode, const struct stat *old)
{
    int fd;

    if (snprintf(output->made, sizeof(output->made), "%s.%ld.part", output->path, (long)getpid()) >=
        (int)sizeof(output->made)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink(output->made);
    fd = open(output->made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 && old != NULL && fchmod(fd, old->st_mode & mode) != 0) {
        close(fd);
        unlink(output->made);
        return -1;
    }
    return fd;
}

int by_output_open(struct by_output *output, const char *path, mode_t mode)
{
    struct stat old;
    bool exists;
    int fd;

    *output = (struct by_output){.stream = stdout};
    if (strcmp(path, "-") == 0)
        return 0;
    exists = stat(path, &old) == 0;
    /* For a symbolic link, replace the file it points to and keep the link. */
    if ((!exists || realpath(path, output->path) == NULL) &&
        snprintf(output->path, sizeof(output->path), "%s", path) >= (int)sizeof(output->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = exists && !S_ISREG(old.st_mode) ? open(path, O_WRONLY | O_CLOEXEC)
                                         : open_beside(output, mode, exists ? &old : NULL);
    if (fd < 0)
        return -1;
    output->stream = fdopen(fd, "w");
    if (output->stream != NULL)
        return 0;
    close(fd);
    if (output->made[0] != 0)
        unlink(output->made);
    return -1;
}

int by_output_close(struct by_output *output, bool right)
{
    int number = 0;

    if (output->stream == stdout)
        return 0;
    if (flush(output->stream) != 0)
        number = errno;
    if (fclose(output->stream) != 0 && number == 0)
        number = errno;
    if (number == 0 && !right)
        number = EIO;
    if (number == 0 && output->made[0] != 0 && rename(output->made, output->path) != 0)
        number = errno;
    if (number == 0)
        return 0;
    if (output->made[0] != 0)
        unlink(output->made);
    errno = number;
    return -1;
}
