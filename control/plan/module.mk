# plan: the planner, and the commands that make topologies and plans.
control_SRC += \
	control/plan/allreduce.c \
	control/plan/arbor.c \
	control/plan/arborescence.c \
	control/plan/budget.c \
	control/plan/certificate.c \
	control/plan/cluster.c \
	control/plan/file.c \
	control/plan/file_read.c \
	control/plan/fill.c \
	control/plan/fixed.c \
	control/plan/forest.c \
	control/plan/graph.c \
	control/plan/grow.c \
	control/plan/mend.c \
	control/plan/interval.c \
	control/plan/merge.c \
	control/plan/nest.c \
	control/plan/optimum.c \
	control/plan/oracle.c \
	control/plan/ordered.c \
	control/plan/pack.c \
	control/plan/pack_grow.c \
	control/plan/pack_order.c \
	control/plan/pack_repair.c \
	control/plan/pack_write.c \
	control/plan/packing.c \
	control/plan/pairs.c \
	control/plan/paths.c \
	control/plan/phases.c \
	control/plan/plan.c \
	control/plan/replan.c \
	control/plan/replan_read.c \
	control/plan/shallow.c \
	control/plan/shares.c \
	control/plan/simplex.c \
	control/plan/spanning.c \
	control/plan/split_even.c \
	control/plan/split_exact.c \
	control/plan/steiner.c \
	control/plan/strand.c \
	control/plan/strength.c \
	control/plan/tight.c \
	control/plan/tighten.c \
	control/plan/tree.c \
	control/plan/tree_list.c
banyan_SRC += control/cli/topo.c control/cli/plan.c control/cli/plan_allreduce.c control/cli/replan.c control/cli/plan_whatif.c
