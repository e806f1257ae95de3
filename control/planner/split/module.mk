# split: tight sets, switch removal and the paths behind logical capacity.
control_SRC += \
	control/planner/split/cluster.c \
	control/planner/split/nest.c \
	control/planner/split/split_even.c \
	control/planner/split/split_exact.c \
	control/planner/split/strand.c \
	control/planner/split/tight.c \
	control/planner/split/tighten.c
