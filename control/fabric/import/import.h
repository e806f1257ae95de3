/*
 * Imports fabrics from foreign formats: NCCL's topology XML, ibnetdiscover, lldpctl's JSON,
 * Graphviz DOT. docs/exchange.md describes what is read and assumed. Each call runs in one thread.
 */
#ifndef BY_FABRIC_IMPORT_IMPORT_H
#define BY_FABRIC_IMPORT_IMPORT_H

#include "control/fabric/build.h"

/* Maximum size of a file (bytes). */
#define BY_IMPORT_BYTES_MAX ((size_t)64 << 20)
/* Maximum of copies of the box in an NCCL file (count). */
#define BY_IMPORT_COPIES_MAX 1024u

struct by_import_options {
    const char *name;        /* name of the topology; NULL: the format's */
    struct by_fraction rate; /* GB/s of links without a rate in the file; num 0: such links are refused */
    /* NCCL: GB/s of one NVLink per direction; num 0: by the GPU's generation */
    struct by_fraction nvlink;
    struct by_fraction cpu; /* NCCL: GB/s between two CPUs of a host; num 0: BY_IMPORT_CPU_RATE */
    uint32_t copies;        /* NCCL: number of copies of the box in the file; 0 is 1 */
    bool rails;             /* NCCL: network ports of equal number share a switch, else all ports do */
    bool hosts;             /* ibnetdiscover: all adapters of a host form one compute node */
    const char *switches;   /* names, or classes of names, that are switches; overrides the file */
    const char *compute;    /* the same for compute nodes */
    const char *capable;    /* as for presets; NULL: none */
};

/* GB/s between CPUs if no rate is given: the minimum of x86 hosts since 2017. */
#define BY_IMPORT_CPU_RATE 20

struct by_import_report {
    uint32_t left_out;      /* switches that lead nowhere, and adapters that are not compute nodes */
    char left_out_name[64]; /* one of them */
};

/*
 * Reads `count` files of a format ("nccl", "ibnetdiscover", "lldp", "dot"). Returns 0 and a
 * topology that the caller frees; or a negative BY_E* with `problem` filled and `*file` set to the
 * number of the file with the problem.
 */
int by_import(const char *format, const char *const *paths, size_t count,
              const struct by_import_options *options, struct by_topology **topology,
              struct by_import_report *report, struct by_problem *problem, size_t *file);
/* "nccl, ibnetdiscover, lldp or dot". */
const char *by_import_formats(void);

#endif
