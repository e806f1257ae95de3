# world: a deterministic simulation with real engines and endpoints. Used by banyan-sim and by
# tests.
LIBS += world
world_SRC := \
	host-driver/sim/cable.c \
	host-driver/sim/heap.c \
	host-driver/sim/node.c \
	host-driver/sim/resume.c \
	host-driver/sim/standby.c \
	host-driver/sim/stream.c \
	host-driver/sim/view.c \
	host-driver/sim/world.c

PROGS += banyan-sim
banyan-sim_SRC := \
	host-driver/tools/sim/check.c \
	host-driver/tools/sim/chunks.c \
	host-driver/tools/sim/main.c \
	host-driver/tools/sim/run.c \
	host-driver/tools/sim/work.c \
	offload/linux/options.c \
	offload/linux/options_help.c \
	offload/linux/options_value.c \
	offload/linux/output.c
banyan-sim_LIBS := world host-driver offload
