# bound: what no schedule can beat, and the rates that trees reach.
control_SRC += \
	control/bound/bound.c \
	control/bound/cuts.c \
	control/bound/model.c \
	control/bound/pack.c \
	control/bound/program.c \
	control/bound/rate.c \
	control/bound/separate.c \
	control/bound/trees.c
banyan_SRC += control/cli/bound.c control/cli/bound_print.c
