/*
 * Admission: checks whether a job fits beside the others: slots and entries of every switch, its
 * ports and chunks, shares of links. A refusal names the limit, the jobs that hold it, and what
 * would fit. Pure. The worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_ADMIT_H
#define BY_SERVICE_DAEMON_ADMIT_H

#include "control/service/daemon/job.h"

/* Limits that a switch reports in Hello; all 0 while they are unknown, which admits everything. */
struct by_admit_limits {
    uint32_t ports, slots, entries, payload_max, shares;
};

/* The part of a job that admission uses. */
struct by_admit_job {
    const struct by_job_spec *spec;
    const struct by_job_tables *tables; /* uses `need`, `slot_base`, `plans` */
};

/* Checks the number of ports and the chunk size that the fabric requires of its switches. Returns 0
 * or BY_ELIMIT. */
int by_admit_fabric(const struct by_topology *topology, const struct by_lowering *lowering,
                    const struct by_admit_limits *limits, struct by_problem *problem);

/*
 * Allocates the job's slots at every node beside `others` (whose places stay) and writes
 * tables->slot_base. Returns 0, or BY_ELIMIT with `problem`; `*fits`: a smaller window that would
 * fit, or 0.
 */
int by_admit_slots(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   uint32_t *fits, struct by_problem *problem);

/* Smallest window of a job whose hosts did not ask for one (slots): workers of a switch need it. */
#define BY_ADMIT_WINDOW_LEAST 8u
/* Returns the window of a job that shall leave room for others like it: a sixteenth of the slots
 * that are free on the fullest switch, a power of two from BY_ADMIT_WINDOW_LEAST to
 * BY_LOWER_WINDOW. */
uint32_t by_admit_budget(const struct by_topology *topology, const struct by_admit_job *others,
                         uint32_t count, const struct by_admit_limits *limits);

/* Checks that every link has the job's share left and that every switch supports one more share.
 * Returns 0, or BY_ELIMIT or BY_ERANGE with `problem`. */
int by_admit_share(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   struct by_problem *problem);

#endif
