/*
 * The remaining part of a fabric, and the plans of a job on it. Trees avoid lost parts, but names,
 * ports, addresses and ranks stay those of the whole fabric: a plan is made on the remaining part,
 * checked there by the independent verifier, and converted to the whole. Pure, except that it
 * allocates memory. The worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_FABRIC_H
#define BY_SERVICE_DAEMON_FABRIC_H

#include "control/service/daemon/apart.h"
#include "control/service/daemon/job.h"

/* The lost parts of the whole fabric. Links of a lost node need not be marked. */
struct by_fabric_loss {
    bool *nodes; /* by node */
    bool *links; /* by link */
};

void by_fabric_loss_init(struct by_fabric_loss *loss, const struct by_topology *topology);
/* Copies a loss and marks the links of lost nodes as well. */
void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology);
void by_fabric_loss_free(struct by_fabric_loss *loss);

/*
 * Makes the part of the fabric that a job can use: without lost parts, and without parts that they
 * cut off from its ranks. If there is no path between all ranks, it returns BY_ENOENT, and
 * `problem` names the separated ranks and the lost parts between them.
 */
int by_fabric_part(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, struct by_topology **part, struct by_problem *problem);

/* The text of a plan on the remaining part, in the format of plan files. */
struct by_fabric_text {
    char *text;
    size_t bytes;
};

/*
 * Makes all plans of the job on the remaining fabric: repaired from the tables `from` if these are
 * given and it is possible, else anew. On success it fills tables->plans, and tables->note with a
 * note for the user. Each plan is made in a separate process with the limits of `apart`; `made`
 * (by want, for this loss; NULL: none) are plans that were made before, and are verified now.
 * Returns BY_ENOENT as above, BY_ETIMEDOUT, BY_EABORTED, or an error of the planner.
 */
int by_fabric_plan(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, const struct by_job_tables *from,
                   const struct by_fabric_text *made, const struct by_apart *apart,
                   struct by_job_tables *tables, struct by_problem *problem);
/*
 * Makes the same plans in this process, not verified: fills `texts` (by want; the caller frees the
 * texts, also after an error). Each plan ends after `limit_ms` with the best so far.
 */
int by_fabric_texts(const struct by_topology *topology, const struct by_job_spec *spec,
                    const struct by_fabric_loss *loss, const struct by_job_tables *from, uint32_t limit_ms,
                    struct by_fabric_text *texts, struct by_problem *problem);

/*
 * Lowers the tables' plans, for this job alone; the images of hosts come from the result. A window
 * of 0 becomes the one that fits an empty node. Slots begin at 0 until admission places them. May
 * be called again with another window. Returns 0 or an error of by_lower.
 */
int by_fabric_lower(const struct by_topology *topology, uint16_t job, const struct by_lower_options *options,
                    struct by_job_tables *tables, struct by_problem *problem);

/* Whether a tree of the tables uses a lost part. */
bool by_fabric_is_hit(const struct by_topology *topology, const struct by_job_tables *tables,
                      const struct by_fabric_loss *loss);

#endif
