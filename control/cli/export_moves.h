/*
 * Exports schedules of `banyan steady` as moves of hosts, and checks such files. Neighbour:
 * export.c. Single-threaded.
 */
#ifndef BY_CLI_EXPORT_MOVES_H
#define BY_CLI_EXPORT_MOVES_H

#include "control/cli/cli.h"

/* Exports the schedule in `path` as moves to `output`. Returns the exit status. */
int by_cli_export_moves(const struct by_topology *topology, const char *path, const char *output, bool json);
/* Checks a file of moves. Returns the exit status, or -1 if the file has another format. */
int by_cli_check_moves(const char *path, bool json);

#endif
