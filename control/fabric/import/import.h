/*
 * Fabrics from the files of others: NCCL's topology XML, ibnetdiscover, lldpctl's JSON, Graphviz
 * DOT. See docs/exchange.md for what is read and what is assumed. One thread for each call.
 */
#ifndef BY_FABRIC_IMPORT_IMPORT_H
#define BY_FABRIC_IMPORT_IMPORT_H

#include "control/fabric/build.h"

/* A file of these formats (bytes). */
#define BY_IMPORT_BYTES_MAX ((size_t)64 << 20)
/* Boxes like the one in an NCCL file (count). */
#define BY_IMPORT_COPIES_MAX 1024u

struct by_import_options {
    const char *name;          /* of the topology; NULL: the format's */
    struct by_fraction rate;   /* GB/s of links whose file does not say; num 0: such links are refused */
    struct by_fraction nvlink; /* NCCL: GB/s of one NVLink each way; num 0: as the GPU's generation has it */
    struct by_fraction cpu;    /* NCCL: GB/s between two CPUs of a host; num 0: BY_IMPORT_CPU_RATE */
    uint32_t copies;           /* NCCL: boxes like the one in the file; 0 is 1 */
    bool rails;                /* NCCL: network ports of equal number share a switch, else all ports do */
    bool hosts;                /* ibnetdiscover: the adapters of a host are one compute node */
    const char *switches;      /* names, or classes of names, that are switches whatever the file says */
    const char *compute;       /* the same for compute nodes */
    const char *capable;       /* as for presets; NULL: none */
};

/* Between CPUs where nobody says (GB/s): what an x86 host has at the least since 2017. */
#define BY_IMPORT_CPU_RATE 20

struct by_import_report {
    uint32_t left_out;      /* switches that lead nowhere, and adapters that are no compute nodes */
    char left_out_name[64]; /* one of them */
};

/*
 * Reads `count` files of a format ("nccl", "ibnetdiscover", "lldp", "dot"). 0 and a topology that
 * the caller frees; or a negative BY_E* with `problem` filled and `*file` the number of the file
 * that it is in.
 */
int by_import(const char *format, const char *const *paths, size_t count,
              const struct by_import_options *options, struct by_topology **topology,
              struct by_import_report *report, struct by_problem *problem, size_t *file);
/* "nccl, ibnetdiscover, lldp or dot". */
const char *by_import_formats(void);

#endif
