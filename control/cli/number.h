/* Numbers on the command line, with refusals that name the option and its limits. Single-threaded. */
#ifndef BY_CLI_NUMBER_H
#define BY_CLI_NUMBER_H

#include <stdint.h>

/* A decimal number in [low, high]. 0, or BY_EXIT_USAGE after an error was printed. */
int by_cli_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* The same with a binary suffix K, M or G. */
int by_cli_bytes(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* A probability in [0, 1]: checked, and passed on as text. */
int by_cli_probability(const char *option, const char *text);

#endif
