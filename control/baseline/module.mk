# baseline: other people's algorithms on the same fabrics, for comparison.
control_SRC += \
	control/baseline/baseline.c \
	control/baseline/binary.c \
	control/baseline/box.c \
	control/baseline/cycle.c \
	control/baseline/multitree.c \
	control/baseline/net.c \
	control/baseline/planned.c \
	control/baseline/recursive.c \
	control/baseline/ring.c \
	control/baseline/rounds.c \
	control/baseline/rounds_file.c \
	control/baseline/sketch.c
banyan_SRC += control/cli/baseline.c control/cli/compare.c
