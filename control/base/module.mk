# base: memory, JSON, XML, fractions, clock, progress: what every other room of control may use.
control_SRC += \
	control/base/fraction.c \
	control/base/json.c \
	control/base/locate.c \
	control/base/problem.c \
	control/base/xml.c \
	offload/linux/output.c
