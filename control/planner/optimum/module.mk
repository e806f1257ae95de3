# optimum: exact bottleneck cuts and other bounds.
control_SRC += \
	control/planner/optimum/fixed.c \
	control/planner/optimum/optimum.c \
	control/planner/optimum/oracle.c \
	control/planner/optimum/spanning.c \
	control/planner/optimum/strength.c
