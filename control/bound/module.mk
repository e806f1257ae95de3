# bound: what no schedule can beat, and the rates that trees reach.
control_SRC += \
	control/bound/model.c \
	control/bound/program.c \
	control/bound/rate.c \
	control/bound/separate.c \
	control/bound/trees.c
