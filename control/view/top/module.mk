# top: what runs on a fabric, live.
control_SRC += \
	control/view/top/draw.c \
	control/view/top/json.c \
	control/view/top/screen.c \
	control/view/top/source_status.c \
	control/view/top/source_switch.c \
	control/view/top/view.c
