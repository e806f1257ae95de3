/*
 * What is left of a fabric, and a job's plans on it. Trees avoid what is lost, but names, ports,
 * addresses and ranks stay those of the whole fabric: a plan is made on the part that is left, held
 * against the independent verifier there, and read back onto the whole. Pure but for memory; the
 * worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_FABRIC_H
#define BY_SERVICE_DAEMON_FABRIC_H

#include "control/service/daemon/apart.h"
#include "control/service/daemon/job.h"

/* What is lost of the whole fabric. The links of a lost node need not be marked. */
struct by_fabric_loss {
    bool *nodes; /* by node */
    bool *links; /* by link */
};

void by_fabric_loss_init(struct by_fabric_loss *loss, const struct by_topology *topology);
/* A copy in which the links of lost nodes are lost as well. */
void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology);
void by_fabric_loss_free(struct by_fabric_loss *loss);

/*
 * The part of the fabric that a job has: without what is lost, and without what that cuts off from
 * its ranks. BY_ENOENT with `problem` naming the ranks that are apart, and what would have joined
 * them, when there is no path between all of them.
 */
int by_fabric_part(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, struct by_topology **part, struct by_problem *problem);

/*
 * Plans every want of the job on what is left: mended from `from`, the tables that it had, where
 * that is given and can be; else anew. On success tables->plans are there, and tables->note says
 * what a user should know. Each plan is made in a process of its own: `apart` says for how long at
 * most. BY_ENOENT as above; BY_ETIMEDOUT, BY_EABORTED, or what the planner says.
 */
int by_fabric_plan(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, const struct by_job_tables *from,
                   const struct by_apart *apart, struct by_job_tables *tables, struct by_problem *problem);

/*
 * Lowers the tables' plans, for this job alone: hosts' images come from here. A window of 0 becomes
 * one that suits a node with nothing else on it; slots begin at 0 until admission says where. May
 * be called again with another window. 0, or what by_lower says.
 */
int by_fabric_lower(const struct by_topology *topology, uint16_t job, const struct by_lower_options *options,
                    struct by_job_tables *tables, struct by_problem *problem);

/* Whether a tree of the tables passes something that is lost. */
bool by_fabric_is_hit(const struct by_topology *topology, const struct by_job_tables *tables,
                      const struct by_fabric_loss *loss);

#endif
