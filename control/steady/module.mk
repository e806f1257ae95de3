# steady: the best throughput of series of scatters, gossips and reduces. A library of its own, since its programs are linked with Clp.
LIBS += steady
steady_SRC := \
	control/steady/colour.c \
	control/steady/platform.c \
	control/steady/program.c \
	control/steady/program_flows.c \
	control/steady/program_reduce.c \
	control/steady/reduction_tree.c \
	control/steady/room.c \
	control/steady/schedule.c \
	control/steady/steady.c
banyan_LIBS += steady
banyan_SRC += control/cli/steady.c control/cli/steady_print.c
