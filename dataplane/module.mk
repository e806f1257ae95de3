# dataplane: the DPDK shell.
LIBS += dataplane
dataplane_SRC := \
	dataplane/driver.c \
	dataplane/eal.c \
	dataplane/facts.c \
	dataplane/group.c \
	dataplane/handoff.c \
	dataplane/idle.c \
	dataplane/interface.c \
	dataplane/link.c \
	dataplane/link_host.c \
	dataplane/loop.c \
	dataplane/pci.c \
	dataplane/pool.c \
	dataplane/port.c \
	dataplane/port_dpdk.c \
	dataplane/port_gso.c \
	dataplane/port_hand.c \
	dataplane/port_link.c \
	dataplane/port_steer.c \
	dataplane/port_way.c \
	dataplane/port_xdp.c \
	dataplane/replicate.c \
	dataplane/say.c \
	dataplane/shell.c \
	dataplane/shell_table.c \
	dataplane/telemetry.c \
	dataplane/gso.c \
	dataplane/workers.c \
	dataplane/workers_open.c \
	dataplane/wrap.c \
	dataplane/xdp.c \
	dataplane/xdp_cable.c \
	dataplane/xdp_port.c \
	dataplane/xdp_ready.c \
	dataplane/xdp_table.c \
	offload/linux/copies.c \
	offload/linux/device.c \
	offload/linux/feature.c \
	offload/linux/object.c \
	offload/linux/ring.c \
	offload/linux/xdp_socket.c

# The object of the programs is embedded.
SWITCH_XDP_OBJECT := $(GEN)/xdp/switch.bpf.o
SRCFLAGS_dataplane/xdp.c := -DBY_XDP_OBJECT='"$(SWITCH_XDP_OBJECT)"'
$(B)/obj/dataplane/xdp.o: $(SWITCH_XDP_OBJECT)
