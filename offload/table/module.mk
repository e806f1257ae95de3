# table: the format of the tables that a controller writes and a node loads.
offload_SRC += \
	offload/table/addresses.c \
	offload/table/check.c \
	offload/table/check_job.c \
	offload/table/image.c \
	offload/table/keyed.c
