/*
 * Options that give switches by name and address: --to NAME=ADDR, --sockets DIR and --site FILE.
 * Single-threaded.
 */
#ifndef BY_CLI_TARGET_H
#define BY_CLI_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/* Receives a switch: `length` characters of `name`, and its address. */
typedef void by_cli_target_fn(void *context, const char *name, size_t length, const char *address);

/* Parses "NAME=ADDR". Returns 0, or BY_EXIT_USAGE after it printed an error. */
int by_cli_target(const char *text, by_cli_target_fn *add, void *context);
/*
 * Calls `add` for every NAME.sock of a folder, sorted by name. Returns 0, or BY_EXIT_USAGE after it
 * printed an error: no such folder, or no socket in it.
 */
int by_cli_target_folder(const char *folder, by_cli_target_fn *add, void *context);

/*
 * Calls `add` for every node of the site file `path` that has a control channel, in the order of
 * the file. Returns 0, or BY_EXIT_USAGE after it printed an error: the file, no such node although
 * one is `needed`, or an address of a wrong form.
 */
int by_cli_target_site(const char *path, bool needed, by_cli_target_fn *add, void *context);

#endif
