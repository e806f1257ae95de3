# top: a live view of the jobs on a fabric.
control_SRC += \
	control/view/top/draw.c \
	control/view/top/json.c \
	control/view/top/screen.c \
	control/view/top/source_status.c \
	control/view/top/source_switch.c \
	control/view/top/view.c
