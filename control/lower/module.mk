# lower: plans to table images, and what they predict.
control_SRC += \
	control/lower/able.c \
	control/lower/address.c \
	control/lower/dump.c \
	control/lower/dump_json.c \
	control/lower/emit.c \
	control/lower/file.c \
	control/lower/group.c \
	control/lower/keyed.c \
	control/lower/lower.c \
	control/lower/path.c \
	control/lower/renew.c \
	control/lower/traffic.c \
	control/lower/tree.c
