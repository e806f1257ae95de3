/* What the files of the option reader share: one row of a table. See options.h. */
#ifndef BY_LINUX_OPTIONS_ROW_H
#define BY_LINUX_OPTIONS_ROW_H

#include <stdio.h>

#include "offload/linux/options.h"

/* -h, --help of every program, and --version. */
extern const struct by_option by_option_help_row, by_option_version_row;

/* Writes the limits of a row, such as "1 to 4096"; its words, such as "a, b or c". */
void by_option_limits(const struct by_option *row, char *text, size_t bytes);
void by_option_words(const struct by_option *row, char *text, size_t bytes);
/* Prints --help. */
void by_options_help(const struct by_options *options, FILE *stream);

#endif
