/*
 * Facts that a switch reports over the control channel, for the doctor. One visit reads them and
 * changes nothing. Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_SWITCHES_H
#define BY_VIEW_DOCTOR_SWITCHES_H

#include <stdint.h>

#include "control/service/controller/session.h"

struct by_switch_facts {
    char *name; /* as given by the user */
    char *address;
    int error; /* error of the visit; if not 0, only `problem` is valid */
    struct by_problem problem;
    uint64_t round_ns; /* duration of the first request */
    int64_t ahead_ns;  /* difference of its clock to ours; INT64_MIN: it has no clock */
    by_HelloReply hello;
    by_CountersReply counters;
    by_PortsReply ports; /* the first; empty if the switch does not describe its ports */
    char *path;          /* path of the file with its table, or NULL */
    uint8_t *image;      /* contents of that file */
    size_t bytes;
    /*
     * Collectives of its entries, according to the hosts' tables in the same folder: bits of enum
     * by_collective.
     */
    uint32_t collectives;
};

/* Visits the switch at facts->address and fills in the facts. */
void by_switch_facts_read(struct by_switch_facts *facts, const struct by_session_options *access);
void by_switch_facts_free(struct by_switch_facts *facts);

#endif
