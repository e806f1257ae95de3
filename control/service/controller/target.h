/* The address of a switch as in option --to of banyand and the commands: NAME=ADDR. Pure. */
#ifndef BY_SERVICE_CONTROLLER_TARGET_H
#define BY_SERVICE_CONTROLLER_TARGET_H

#include <stddef.h>

#include "control/base/problem.h"

/* For the error text when the form is wrong. */
#define BY_TARGET_FORM "write NAME=ADDR, such as leaf0=unix:/run/banyan/leaf0.sock"

/* Returns the length of the name, with *address after the '='; 0 without a name or a '='. */
size_t by_target_split(const char *text, const char **address);
/* Checks the form of the address of a control channel before anything connects. Returns 0, or
 * BY_EINVAL with `problem`. */
int by_target_check(const char *address, struct by_problem *problem);

#endif
