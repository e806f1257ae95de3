/*
 * A pre-shared key in a file: 32 hexadecimal digits and a newline, readable by its owner alone.
 * `banyan keys
 * --psk` makes it, the controller reads it, and a board gets the same file (docs/porting.md).
 * Single-threaded.
 */
#ifndef BY_SERVICE_CONTROLLER_PSK_FILE_H
#define BY_SERVICE_CONTROLLER_PSK_FILE_H

#include <stdbool.h>

#include "control/fabric/topology.h"
#include "offload/base/siphash.h"

/* 0; BY_ENOENT, BY_EIO (it cannot be read), BY_EPERM (others may read it), BY_EFORMAT with
 * `problem`. */
int by_psk_file_read(const char *path, struct by_siphash_key *key, struct by_problem *problem);
/* Draws a key and writes it, whole or not at all. BY_EEXIST when there is such a file, unless
 * `renew`; BY_EIO. */
int by_psk_file_make(const char *path, bool renew, struct by_problem *problem);

#endif
