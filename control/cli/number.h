/* Numbers on the command line, with refusals that name the option and its limits. Single-threaded.
 */
#ifndef BY_CLI_NUMBER_H
#define BY_CLI_NUMBER_H

#include <stdint.h>

#include "control/tables/lower.h"

/* A decimal number in [low, high]. 0, or BY_EXIT_USAGE after an error was printed. */
int by_cli_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* The same with a binary suffix K, M or G. */
int by_cli_bytes(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* A window: a power of two up to BY_WINDOW_MAX. 0, or BY_EXIT_USAGE after an error was printed. */
int by_cli_window(const char *option, const char *text, uint32_t *window);
/* A part of the links, above 0 and up to 1. 0, or BY_EXIT_USAGE after an error was printed. */
int by_cli_share(const char *option, const char *text, struct by_fraction *share);
/* Refuses an option that is given a second time, with `text`. BY_EXIT_USAGE. */
int by_cli_repeated(const char *option, const char *text);
/*
 * `--keyed`, `--keyed=COVER` and `--key-seed HEX` of a command that lowers plans: by_cli_keyed()
 * when all options have been read, if either was given. 0, or an exit status after an error was
 * printed.
 */
struct by_cli_keys {
    int keyed;
    const char *cover, *seed;
};
int by_cli_keyed(const struct by_cli_keys *keys, struct by_lower_options *options);

/* A probability in [0, 1]: checked, and passed on as text. */
int by_cli_probability(const char *option, const char *text);

#endif
