# export: plans as schedules in formats of other programs, and a checker that executes them.
control_SRC += \
	control/study/export/check.c \
	control/study/export/chunks.c \
	control/study/export/execute.c \
	control/study/export/forestcoll.c \
	control/study/export/forestcoll_check.c \
	control/study/export/happens.c \
	control/study/export/moves.c \
	control/study/export/moves_read.c \
	control/study/export/msccl.c \
	control/study/export/msccl_read.c \
	control/study/export/stuck.c \
	control/study/export/value.c
banyan_SRC += control/cli/export.c control/cli/export_moves.c
banyan_LDLIBS += -lexpat
