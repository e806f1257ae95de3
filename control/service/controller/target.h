/* A switch and where it is reached, as --to of banyand and of the commands has them: NAME=ADDR.
 * Pure. */
#ifndef BY_SERVICE_CONTROLLER_TARGET_H
#define BY_SERVICE_CONTROLLER_TARGET_H

#include <stddef.h>

#include "control/base/problem.h"

/* What is told when it is none. */
#define BY_TARGET_FORM "write NAME=ADDR, such as leaf0=unix:/run/banyan/leaf0.sock"

/* The length of the name in front, with *address behind the sign; 0 when there is no name, or no
 * sign. */
size_t by_target_split(const char *text, const char **address);
/* Checks the form of an address of a switch's control channel, before anything is connected. 0, or
 * BY_EINVAL with `problem`. */
int by_target_check(const char *address, struct by_problem *problem);

#endif
