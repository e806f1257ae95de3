/* Switches by name and address, as options give them: --to NAME=ADDR and --sockets DIR.
 * Single-threaded. */
#ifndef BY_CLI_TARGET_H
#define BY_CLI_TARGET_H

#include <stddef.h>

/* Takes a switch: `length` characters of `name`, and its address. */
typedef void by_cli_target_fn(void *context, const char *name, size_t length, const char *address);

/* "NAME=ADDR". 0 or BY_EXIT_USAGE, said aloud. */
int by_cli_target(const char *text, by_cli_target_fn *add, void *context);
/* Every NAME.sock of a folder, by name. 0 or BY_EXIT_USAGE, said aloud: there is no such folder, or
 * no socket in it. */
int by_cli_target_folder(const char *folder, by_cli_target_fn *add, void *context);

#endif
