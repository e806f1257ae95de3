/* Table image files. Neighbours: `tables` writes them; `push`, `show` and `diff` read them. Any
 * thread. */
#include "control/tables/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/tables/tree.h"
#include "offload/base/errors.h"
#include "offload/linux/output.h"
#include "offload/table/image.h"

int by_image_explain(const uint8_t *bytes, size_t size, struct by_problem *problem)
{
    struct by_image_fault fault = {.section = "header", .what = ""};
    int error = by_image_check(bytes, size, NULL, &fault);

    if (error == 0)
        error = by_image_addresses_check(bytes, &fault);
    if (error == 0)
        return 0;
    return by_problem_say(problem, error,
                          "table image refused: %s %u: %s (%llu); make it again with `banyan tables`",
                          fault.section, fault.index, fault.what, (unsigned long long)fault.value);
}

static int read_all(FILE *stream, const char *path, uint8_t **bytes, size_t *size, struct by_problem *problem)
{
    struct stat status;

    if (fstat(fileno(stream), &status) != 0 || !S_ISREG(status.st_mode))
        return by_problem_say(problem, BY_EIO, "not a regular file");
    if (status.st_size > (off_t)BY_IMAGE_BYTES_MAX)
        return by_problem_say(problem, BY_ELIMIT, "%lld bytes; a table image has at most %u",
                              (long long)status.st_size, BY_IMAGE_BYTES_MAX);
    *size = (size_t)status.st_size;
    *bytes = by_alloc(*size, 1);
    if (fread(*bytes, 1, *size, stream) != *size) {
        free(*bytes);
        *bytes = NULL;
        return by_problem_say(problem, BY_EIO, "cannot read %s: it ended early", path);
    }
    return 0;
}

int by_image_file_read(const char *path, uint8_t **bytes, size_t *size, struct by_problem *problem)
{
    FILE *stream = fopen(path, "rb");
    int error;

    *bytes = NULL;
    if (stream == NULL)
        return by_problem_say(problem, errno == ENOENT ? BY_ENOENT : BY_EIO, "cannot open: %s",
                              strerror(errno));
    error = read_all(stream, path, bytes, size, problem);
    fclose(stream);
    if (error != 0)
        return error;
    error = by_image_explain(*bytes, *size, problem);
    if (error != 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return error;
}

int by_image_file_write(const char *path, const uint8_t *bytes, size_t size, struct by_problem *problem)
{
    struct by_image_header header;
    struct by_output output;
    bool right;

    by_image_header(bytes, &header);
    if (by_output_open(&output, path, header.count[BY_SECTION_KEY] > 0 ? 0600 : 0666) != 0)
        return by_problem_say(problem, BY_EIO, "cannot create: %s", strerror(errno));
    right = fwrite(bytes, 1, size, output.stream) == size;
    if (by_output_close(&output, right) != 0)
        return by_problem_say(problem, BY_EIO, "cannot write: %s", strerror(errno));
    return 0;
}
