# split: tight sets, switch removal and the paths behind logical capacity.
control_SRC += \
	control/planner/split/cluster.c \
	control/planner/split/relay.c \
	control/planner/split/laminar.c \
	control/planner/split/split_even.c \
	control/planner/split/split_exact.c \
	control/planner/split/flow_path.c \
	control/planner/split/tight.c \
	control/planner/split/tighten.c
