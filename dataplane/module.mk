# dataplane: the DPDK shell.
LIBS += dataplane
dataplane_SRC := \
	dataplane/arp.c \
	dataplane/eal.c \
	dataplane/handoff.c \
	dataplane/hold.c \
	dataplane/idle.c \
	dataplane/interface.c \
	dataplane/link.c \
	dataplane/link_host.c \
	dataplane/loop.c \
	dataplane/pool.c \
	dataplane/port.c \
	dataplane/replicate.c \
	dataplane/say.c \
	dataplane/shell.c \
	dataplane/telemetry.c \
	dataplane/train.c \
	ring/feature.c \
	ring/ring.c
