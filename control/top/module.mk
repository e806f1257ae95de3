# top: what runs on a fabric, live.
control_SRC += \
	control/top/draw.c \
	control/top/json.c \
	control/top/screen.c \
	control/top/source_status.c \
	control/top/source_switch.c \
	control/top/view.c
