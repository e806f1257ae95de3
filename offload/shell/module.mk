# shell: the packet loop of a switch, for every platform.
offload_SRC += \
	offload/shell/batch.c \
	offload/shell/hold.c \
	offload/shell/neighbour.c
