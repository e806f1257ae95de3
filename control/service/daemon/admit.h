/*
 * Whether a job fits beside the others: slots and entries of every switch, its ports and chunks,
 * shares of links. A refusal says which limit, who holds what of it, and what would fit. Pure; the
 * worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_ADMIT_H
#define BY_SERVICE_DAEMON_ADMIT_H

#include "control/service/daemon/job.h"

/* What a switch says of itself in Hello; all 0 while nothing is known, which refuses nothing. */
struct by_admit_limits {
    uint32_t ports, slots, entries, payload_max, shares;
};

/* A job as far as admission goes. */
struct by_admit_job {
    const struct by_job_spec *spec;
    const struct by_job_tables *tables; /* `need`, `slot_base`, `plans` are looked at */
};

/* The highest `payload_max` of a chunk and ports that the fabric asks of its switches. 0, or
 * BY_ELIMIT. */
int by_admit_fabric(const struct by_topology *topology, const struct by_lowering *lowering,
                    const struct by_admit_limits *limits, struct by_problem *problem);

/*
 * Finds the job room for its slots at every node, beside `others` (whose places stay), and writes
 * tables->slot_base. BY_ELIMIT with `problem`; `*fits`: a smaller window that would, or 0.
 */
int by_admit_slots(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   uint32_t *fits, struct by_problem *problem);

/* Whether the job's share of every link is left, and every switch keeps one more. BY_ELIMIT with
 * `problem`, BY_ERANGE. */
int by_admit_share(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   struct by_problem *problem);

#endif
