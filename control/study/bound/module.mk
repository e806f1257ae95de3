# bound: upper bounds for all schedules, and the rates that trees reach.
control_SRC += \
	control/study/bound/bound.c \
	control/study/bound/columns.c \
	control/study/bound/columns_grow.c \
	control/study/bound/columns_low.c \
	control/study/bound/columns_task.c \
	control/study/bound/columns_weigh.c \
	control/study/bound/cuts.c \
	control/study/bound/model.c \
	control/study/bound/pack.c \
	control/study/bound/program.c \
	control/study/bound/rate.c \
	control/study/bound/separate.c \
	control/study/bound/trees.c \
	control/study/bound/witness.c
banyan_SRC += control/cli/bound.c control/cli/bound_print.c
