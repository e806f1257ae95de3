# base: memory, JSON, XML, fractions, clock, progress, findings, for all other rooms of control.
control_SRC += \
	control/base/alloc.c \
	control/base/clock.c \
	control/base/fraction.c \
	control/base/json.c \
	control/base/problem.c \
	control/base/report.c \
	control/base/xml.c \
	offload/linux/notify.c \
	offload/linux/options.c \
	offload/linux/options_help.c \
	offload/linux/options_value.c \
	offload/linux/output.c
