# host-driver: libbanyan (shared and static) and banyan-perf.
LIBS += host-driver
host-driver_SRC := \
	host-driver/afxdp.c \
	host-driver/arena.c \
	host-driver/blocking.c \
	host-driver/bootstrap/bootstrap.c \
	host-driver/bootstrap/gather.c \
	host-driver/bootstrap/place.c \
	host-driver/bootstrap/pmi.c \
	host-driver/bootstrap/pmi_line.c \
	host-driver/bootstrap/pmix.c \
	host-driver/buffers.c \
	host-driver/circulant/rounds.c \
	host-driver/circulant/schedule.c \
	host-driver/comm.c \
	host-driver/comm_open.c \
	host-driver/context.c \
	host-driver/describe.c \
	host-driver/dpdk.c \
	host-driver/error.c \
	host-driver/exchange.c \
	host-driver/fabric.c \
	host-driver/fallback/door.c \
	host-driver/fallback/exchange.c \
	host-driver/fallback/fallback.c \
	host-driver/fallback/links.c \
	host-driver/fallback/measure.c \
	host-driver/fallback/memory.c \
	host-driver/fallback/mesh.c \
	host-driver/fallback/moves.c \
	host-driver/fallback/notice.c \
	host-driver/fallback/peers.c \
	host-driver/fallback/pipe.c \
	host-driver/fallback/reason.c \
	host-driver/fallback/socket.c \
	host-driver/fallback/team.c \
	host-driver/fallback/work.c \
	host-driver/faults.c \
	host-driver/gpu/driver.c \
	host-driver/gpu/staged.c \
	host-driver/group.c \
	host-driver/hosts.c \
	host-driver/hosts_measure.c \
	host-driver/address.c \
	host-driver/image_file.c \
	host-driver/isa.c \
	host-driver/line.c \
	host-driver/local/calls.c \
	host-driver/local/local.c \
	host-driver/local/mates.c \
	host-driver/local/seats.c \
	host-driver/local/single.c \
	host-driver/local/slices.c \
	host-driver/local/sum.c \
	host-driver/member.c \
	host-driver/memory.c \
	host-driver/openssl.c \
	host-driver/neighbour.c \
	host-driver/operation.c \
	host-driver/progress.c \
	host-driver/query.c \
	host-driver/ranks.c \
	host-driver/register.c \
	host-driver/request.c \
	host-driver/schedule/combine.c \
	host-driver/schedule/run.c \
	host-driver/schedule/schedule.c \
	host-driver/schedule/connect.c \
	host-driver/schedule/connection.c \
	host-driver/schedule/program.c \
	host-driver/segments.c \
	host-driver/settings.c \
	host-driver/shm.c \
	host-driver/sole.c \
	host-driver/standby.c \
	host-driver/survive.c \
	host-driver/transport.c \
	host-driver/udp.c \
	host-driver/xdp_program.c \
	offload/linux/feature.c \
	offload/linux/object.c \
	offload/linux/ring.c \
	offload/linux/xdp_socket.c \
	firmware/secure/hostport.c \
	firmware/secure/tls.c
host-driver_LDLIBS := -lxdp -lbpf -lelf -lz -ljansson -lm

# The object of the XDP program is embedded.
XDP_OBJECT := $(GEN)/xdp/steer.bpf.o
SRCFLAGS_host-driver/xdp_program.c := -DBY_XDP_OBJECT='"$(XDP_OBJECT)"'
$(B)/obj/host-driver/xdp_program.o: $(XDP_OBJECT)

PROGS += banyan-perf
banyan-perf_SRC := \
	host-driver/tools/perf/explain.c \
	host-driver/tools/perf/main.c \
	host-driver/tools/perf/options.c \
	host-driver/tools/perf/oracle.c \
	host-driver/tools/perf/report.c \
	host-driver/tools/perf/run.c \
	host-driver/tools/perf/world.c \
	offload/linux/options.c \
	offload/linux/options_help.c \
	offload/linux/options_value.c \
	offload/linux/output.c
banyan-perf_LIBS := host-driver offload
banyan-perf_LDLIBS := $(host-driver_LDLIBS)

# The installed libraries export only banyan_*: the shared one through a version script, the static
# one because it is a single object whose other symbols are local.
LIBBANYAN_SO := $(B)/lib/libbanyan.so.0
LIBBANYAN_A  := $(B)/lib/libbanyan.a
ALL_TARGETS  += $(LIBBANYAN_SO) $(LIBBANYAN_A) $(B)/lib/banyan.pc

$(LIBBANYAN_SO): $(B)/lib/libhost-driver.a $(B)/lib/liboffload.a host-driver/libbanyan.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDSAN) -shared -o $@ -Wl,-soname,libbanyan.so.0 -Wl,--version-script=host-driver/libbanyan.map -Wl,--no-undefined \
		-Wl,--whole-archive $(B)/lib/libhost-driver.a -Wl,--no-whole-archive $(B)/lib/liboffload.a $(host-driver_LDLIBS) $(LDFLAGS)
	$(Q)ln -sf libbanyan.so.0 $(B)/lib/libbanyan.so

$(LIBBANYAN_A): $(B)/lib/libhost-driver.a $(B)/lib/liboffload.a
	$(call say,AR,$@)
	$(Q)rm -f $@ $(B)/lib/libbanyan.o
	$(Q)$(LD) -r -o $(B)/lib/libbanyan.o --whole-archive $(B)/lib/libhost-driver.a --no-whole-archive $(B)/lib/liboffload.a
	$(Q)objcopy --wildcard --keep-global-symbol='banyan_*' $(B)/lib/libbanyan.o
	$(Q)ar crs $@ $(B)/lib/libbanyan.o && rm -f $(B)/lib/libbanyan.o

# Folders below PREFIX are written relative to it, so that pkg-config can move them.
PC_EDIT = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(host-driver_LDLIBS)|'
$(B)/lib/banyan.pc: host-driver/banyan.pc.in
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(PC_EDIT) $< >$@

include $(wildcard host-driver/*/module.mk host-driver/*/*/module.mk)
