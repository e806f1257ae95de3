# engine: the node's side of the protocol.
offload_SRC += \
	offload/engine/contrib.c \
	offload/engine/engine.c \
	offload/engine/gap.c \
	offload/engine/load.c \
	offload/engine/meter.c \
	offload/engine/pairs.c \
	offload/engine/place.c \
	offload/engine/repair.c \
	offload/engine/result.c \
	offload/engine/send.c \
	offload/engine/sets.c \
	offload/engine/spare.c \
	offload/engine/verify.c \
	offload/engine/view.c \
	offload/engine/worker.c
