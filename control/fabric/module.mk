# fabric: the model of a fabric and its file.
control_SRC += \
	control/fabric/build.c \
	control/fabric/links.c \
	control/fabric/members.c \
	control/fabric/names.c \
	control/fabric/read.c \
	control/fabric/site.c \
	control/fabric/topology.c \
	control/fabric/unit.c \
	control/fabric/vary.c
