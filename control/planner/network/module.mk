# network: trees that branch in switches, found with exact linear programs or by growing trees.
control_SRC += \
	control/planner/network/allreduce.c \
	control/planner/network/tree_pair.c \
	control/planner/network/arborescence.c \
	control/planner/network/blocks.c \
	control/planner/network/budget.c \
	control/planner/network/few.c \
	control/planner/network/fill.c \
	control/planner/network/first.c \
	control/planner/network/grow.c \
	control/planner/network/interval.c \
	control/planner/network/joint.c \
	control/planner/network/low.c \
	control/planner/network/ordered.c \
	control/planner/network/packing.c \
	control/planner/network/pairs.c \
	control/planner/network/parts.c \
	control/planner/network/phases.c \
	control/planner/network/shallow.c \
	control/planner/network/simplex.c \
	control/planner/network/steiner.c
