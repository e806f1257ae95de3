# pack: arborescences packed into logical capacity, and reduced in height.
control_SRC += \
	control/planner/pack/forest.c \
	control/planner/pack/height.c \
	control/planner/pack/height_move.c \
	control/planner/pack/merge.c \
	control/planner/pack/pack.c \
	control/planner/pack/pack_grow.c \
	control/planner/pack/pack_order.c \
	control/planner/pack/pack_relay.c \
	control/planner/pack/pack_repair.c \
	control/planner/pack/pack_write.c \
	control/planner/pack/tree.c
