# export: plans as schedules in the formats of others, and a checker that executes such schedules.
control_SRC += \
	control/export/check.c \
	control/export/chunks.c \
	control/export/execute.c \
	control/export/forestcoll.c \
	control/export/forestcoll_check.c \
	control/export/happens.c \
	control/export/moves.c \
	control/export/moves_read.c \
	control/export/msccl.c \
	control/export/msccl_read.c \
	control/export/stuck.c \
	control/export/value.c
banyan_SRC += control/cli/export.c control/cli/export_moves.c
banyan_LDLIBS += -lexpat
