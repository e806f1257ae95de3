/*
 * What programs write: the check of standard output at a program's end, and files that appear whole
 * or not at all. Linux alone; one thread.
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

/* A file while it is written. */
struct by_output {
    FILE *stream;
    char path[PATH_MAX];
    char made[PATH_MAX]; /* the file beside `path` that receives the bytes; empty: `path` itself */
};

/* Opens `path` for writing, with these permissions less the umask. A regular file is written beside
 * its path; by_output_close renames it. A device or a pipe is written in place. "-" is standard
 * output. 0, or -1 with errno. */
int by_output_open(struct by_output *output, const char *path, mode_t mode);
/* Closes the file, and gives it its name if all was written and `right`; else removes it, and
 * leaves a file that had the name as it was. 0, or -1 with errno. Standard output is left to
 * by_output_end: 0. */
int by_output_close(struct by_output *output, bool right);

#endif
