# plan: the record of a plan and its file.
control_SRC += \
	control/plan/certificate.c \
	control/plan/file.c \
	control/plan/file_read.c \
	control/plan/merge.c \
	control/plan/paths.c \
	control/plan/plan.c \
	control/plan/rotations.c \
	control/plan/shares.c \
	control/plan/tree_list.c
