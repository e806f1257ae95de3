/* Parses numbers on the command line. Errors name the option and its limits. Single-threaded. */
#ifndef BY_CLI_NUMBER_H
#define BY_CLI_NUMBER_H

#include <stdint.h>

#include "control/tables/lower.h"

/* Parses a decimal number in [low, high]. Returns 0, or BY_EXIT_USAGE after it printed an error. */
int by_cli_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* As by_cli_number, with an optional binary suffix K, M or G. */
int by_cli_bytes(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/*
 * Parses a window: a power of two up to BY_WINDOW_MAX. Returns 0, or BY_EXIT_USAGE after it printed
 * an error.
 */
int by_cli_window(const char *option, const char *text, uint32_t *window);
/*
 * Parses a share of the links, above 0 and up to 1. Returns 0, or BY_EXIT_USAGE after it printed an
 * error.
 */
int by_cli_share(const char *option, const char *text, struct by_fraction *share);
/* Refuses an option that is given twice, with `text`. Returns BY_EXIT_USAGE. */
int by_cli_repeated(const char *option, const char *text);
/*
 * `--keyed`, `--keyed=COVER` and `--key-seed HEX` of a command that lowers plans. If either option
 * was given, by_cli_keyed() applies them after all options are parsed. It returns 0, or an exit
 * status after it printed an error.
 */
struct by_cli_keys {
    int keyed;
    const char *cover, *seed;
};
int by_cli_keyed(const struct by_cli_keys *keys, struct by_lower_options *options);

/* Checks a probability in [0, 1]. The caller uses its text. */
int by_cli_probability(const char *option, const char *text);

#endif
