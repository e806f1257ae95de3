/* What `banyan discover` and `banyan doctor` share: naming the nodes to ask. Single-threaded. */
#ifndef BY_CLI_DISCOVER_H
#define BY_CLI_DISCOVER_H

#include "control/discover/collect.h"

/* The name of this machine: its host name without the domain. Returns `name`. */
const char *by_cli_node_name(char name[BY_NAME_MAX + 1]);
/* Adds a host, "NAME" or "NAME=COMMAND", which listens for `seconds`. Returns 0, or
 * BY_EXIT_USAGE after it printed an error. */
int by_cli_collect_host(struct by_collect *collect, const char *text, uint32_t seconds);

#endif
