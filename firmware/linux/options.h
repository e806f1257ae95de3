/* The command line of banyan-switchd. Start-up only. */
#ifndef BY_FIRMWARE_LINUX_OPTIONS_H
#define BY_FIRMWARE_LINUX_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/base/fault.h"

/* Maximum control addresses of one switch (count). */
#define BY_LISTENERS_MAX 4u

struct by_switchd_options {
    const char *name;
    const char *board;
    const char *table; /* file, or NULL */
    const char *state; /* folder for saved tables, or NULL */
    unsigned port_count;
    struct by_port_spec ports[BY_PORTS_MAX];
    unsigned driver; /* enum by_port_driver; 0: from the board */
    unsigned control_count;
    const char *control[BY_LISTENERS_MAX]; /* "unix:PATH", "tcp:ADDRESS:PORT" or "tls:..." */
    const char *keys;                      /* folder of keys for "tls:", or NULL */
    uint32_t slots;                        /* 0: from the board */
    uint32_t payload_max;                  /* 0: the largest that fits */
    struct by_fault fault;
    const char *cores; /* number or list, or NULL: all but one */
    uint32_t workers;  /* 0: one for each core */
    bool one_queue;
    bool no_huge;
    uint32_t watchdog_s; /* how long the loop may hang; 0: no limit */
    char **eal;          /* arguments after "--" */
    unsigned eal_count;
};

/* Parses the command line. Returns -1 to continue; else the exit status (0 after --help or
 * --version, 2 after an error that was reported). */
int by_switchd_options_parse(struct by_switchd_options *options, int argc, char **argv);

#endif
