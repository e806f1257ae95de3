/* --ranks: selects compute nodes by a list or a file of names. Single-threaded. */
#ifndef BY_CLI_RANKS_H
#define BY_CLI_RANKS_H

#include "control/fabric/topology.h"

/*
 * Parses `text`, which is A,B,C or @FILE. Returns -1 and `*member` (by node; the caller frees it),
 * or an exit status after it printed an error. If `text` is NULL it does nothing.
 */
int by_cli_ranks(const char *text, const struct by_topology *topology, bool **member);

#endif
