# steady: the maximum throughput of series of scatters, gossips and reduces. A separate library,
# since its programs link with Clp.
LIBS += steady
steady_SRC := \
	control/study/steady/colour.c \
	control/study/steady/flow_classes.c \
	control/study/steady/matrix.c \
	control/study/steady/partials.c \
	control/study/steady/platform.c \
	control/study/steady/program.c \
	control/study/steady/program_flows.c \
	control/study/steady/program_reduce.c \
	control/study/steady/reduction_tree.c \
	control/study/steady/room.c \
	control/study/steady/schedule.c \
	control/study/steady/steady.c \
	control/study/steady/tree_pricing.c \
	control/study/steady/tree_program.c
banyan_LIBS += steady
banyan_SRC += control/cli/exchange.c control/cli/steady.c control/cli/steady_print.c
