/* The command `banyan topo import`. Single-threaded. */
#ifndef BY_CLI_IMPORT_H
#define BY_CLI_IMPORT_H

/* Runs the command; argv[0] is "import". Returns an enum by_exit. */
int by_cli_import(int argc, char **argv);

#endif
