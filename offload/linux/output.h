/*
 * Output of programs: the check of standard output at a program's end, and files that appear
 * complete or not at all. Linux only; one thread.
 */
#ifndef BY_LINUX_OUTPUT_H
#define BY_LINUX_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit status of a program whose output is lost. */
#define BY_OUTPUT_LOST 3

/* Flushes standard output: the last call of every main. Returns `status`. If output was lost,
 * prints one line to stderr that gives the reason, and returns BY_OUTPUT_LOST in place of 0. */
int by_output_end(int status);

/* A file that is being written. */
struct by_output {
    FILE *stream;
    char path[PATH_MAX];
    char made[PATH_MAX]; /* the temporary file beside `path`; empty: `path` itself */
};

/* Opens `path` for writing, with these permissions minus the umask. A regular file is written
 * beside its path; by_output_close renames it. A device or a pipe is written in place. "-" is
 * standard output. Returns 0, or -1 with errno. */
int by_output_open(struct by_output *output, const char *path, mode_t mode);
/* Closes the file. If everything was written and `right` is true, renames it to its path; otherwise
 * removes it and leaves an existing file unchanged. Returns 0, or -1 with errno; 0 for standard
 * output, which by_output_end checks. */
int by_output_close(struct by_output *output, bool right);

#endif
