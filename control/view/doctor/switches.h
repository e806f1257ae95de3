/* What a switch tells of itself over the control channel: facts for the doctor, read in one visit
 * that changes nothing. Single-threaded. */
#ifndef BY_VIEW_DOCTOR_SWITCHES_H
#define BY_VIEW_DOCTOR_SWITCHES_H

#include <stdint.h>

#include "control/service/controller/session.h"

struct by_switch_facts {
    char *name; /* as it was asked for */
    char *address;
    int error; /* of the visit; then only `problem` is of use */
    struct by_problem problem;
    uint64_t round_ns; /* the first question took */
    int64_t ahead_ns;  /* its clock is ahead of ours; INT64_MIN: it has none */
    by_HelloReply hello;
    by_CountersReply counters;
    char *path;     /* of the file with its table, or NULL */
    uint8_t *image; /* that file */
    size_t bytes;
    uint32_t collectives; /* what its entries are for, by the hosts' tables beside that file: bits of enum
                             by_collective */
};

/* Visits the switch at facts->address. */
void by_switch_facts_read(struct by_switch_facts *facts, const struct by_session_options *access);
void by_switch_facts_free(struct by_switch_facts *facts);

#endif
