/*
 * A pre-shared key in a file: 32 hexadecimal digits and a newline, readable by its owner only.
 * `banyan keys --psk` creates it, the controller reads it, and a board gets the same file
 * (docs/porting.md). Single-threaded.
 */
#ifndef BY_SERVICE_CONTROLLER_PSK_FILE_H
#define BY_SERVICE_CONTROLLER_PSK_FILE_H

#include <stdbool.h>

#include "control/fabric/topology.h"
#include "offload/base/siphash.h"

/* Returns 0, BY_ENOENT, BY_EIO (the file cannot be read), BY_EPERM (group or others have access to
 * it) or BY_EFORMAT with `problem`. */
int by_psk_file_read(const char *path, struct by_siphash_key *key, struct by_problem *problem);
/* Draws a random key and writes it atomically. Returns BY_EEXIST when the file exists, unless
 * `renew`; BY_EIO. */
int by_psk_file_make(const char *path, bool renew, struct by_problem *problem);

#endif
