# planner: makes plans.
control_SRC += \
	control/planner/graph.c \
	control/planner/partial.c \
	control/planner/planner.c
