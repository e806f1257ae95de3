# baseline: published algorithms on the same fabrics, for comparison.
control_SRC += \
	control/study/baseline/baseline.c \
	control/study/baseline/bfb.c \
	control/study/baseline/binary.c \
	control/study/baseline/bine.c \
	control/study/baseline/box.c \
	control/study/baseline/cycle.c \
	control/study/baseline/multitree.c \
	control/study/baseline/net.c \
	control/study/baseline/planned.c \
	control/study/baseline/recursive.c \
	control/study/baseline/ring.c \
	control/study/baseline/rounds.c \
	control/study/baseline/rounds_file.c \
	control/study/baseline/sketch.c \
	control/study/baseline/tacos.c
banyan_SRC += control/cli/baseline.c control/cli/compare.c control/cli/compare_import.c control/cli/crossover.c
