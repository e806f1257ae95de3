/* The command line of banyan-switchd. Start-up only. */
#ifndef BY_FIRMWARE_LINUX_OPTIONS_H
#define BY_FIRMWARE_LINUX_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/base/fault.h"

/* Control addresses of one switch (count). */
#define BY_LISTENERS_MAX 4u

struct by_switchd_options {
    const char *name;
    const char *board;
    const char *table; /* file, or NULL */
    const char *state; /* folder that keeps committed tables, or NULL */
    unsigned port_count;
    struct by_port_spec ports[BY_PORTS_MAX];
    unsigned driver; /* enum by_port_driver; 0: the board's */
    unsigned control_count;
    const char *control[BY_LISTENERS_MAX]; /* "unix:PATH", "tcp:ADDRESS:PORT" or "tls:..." */
    const char *keys;                      /* folder for "tls:", or NULL */
    uint32_t slots;                        /* 0: the board's */
    uint32_t payload_max;                  /* 0: what fits */
    struct by_fault fault;
    bool no_huge;
    uint32_t watchdog_s; /* the loop may stand still so long; 0: for ever */
    char **eal;          /* what follows "--" */
    unsigned eal_count;
};

/* Parses the command line. -1: go on; else the status to exit with (0 after --help or --version, 2
 * after an error, reported). */
int by_switchd_options_parse(struct by_switchd_options *options, int argc, char **argv);

#endif
