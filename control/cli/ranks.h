/* --ranks: some of the compute nodes, by a list or a file of names. Single-threaded. */
#ifndef BY_CLI_RANKS_H
#define BY_CLI_RANKS_H

#include "control/fabric/topology.h"

/* `text` is A,B,C or @FILE. -1 and `*member` (by node; the caller frees), or an exit status after
 * an error was printed. Without a text nothing is done. */
int by_cli_ranks(const char *text, const struct by_topology *topology, bool **member);

#endif
