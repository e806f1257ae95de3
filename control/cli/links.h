/* Links that an option names by their two nodes, "A,B". Single-threaded. */
#ifndef BY_CLI_LINKS_H
#define BY_CLI_LINKS_H

#include <stdbool.h>

#include "control/fabric/topology.h"

/*
 * Sets marked[i] for each link i between the two nodes in `text`, the value of `option`. `path` is
 * the topology's file, for error texts. Returns -1; or, after an error, the exit status.
 */
int by_cli_mark_links(const struct by_topology *topology, const char *path, const char *option,
                      const char *text, bool *marked);

#endif
