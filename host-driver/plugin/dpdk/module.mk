# The plugin for the transport dpdk, which libbanyan loads on demand: the port drivers of the switch.
# Only it links with DPDK.
LIBS += dpdk-plugin
dpdk-plugin_SRC := \
	host-driver/plugin/dpdk/device.c \
	host-driver/plugin/dpdk/transport.c
$(foreach s,$(dpdk-plugin_SRC),$(eval SRCFLAGS_$(s) = $$(FLAGS_dataplane)))
DPDK_PLUGIN := $(B)/lib/libbanyan-dpdk.so.0
DPDK_PARTS  := $(B)/lib/libdpdk-plugin.a $(B)/lib/libdataplane.a $(B)/lib/liboffload.a
ALL_TARGETS += $(DPDK_PLUGIN)

$(DPDK_PLUGIN): $(DPDK_PARTS) host-driver/plugin/dpdk/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDSAN) -shared -o $@ -Wl,-soname,$(@F) -Wl,--version-script=host-driver/plugin/dpdk/plugin.map -Wl,--no-undefined \
		-Wl,--whole-archive $(B)/lib/libdpdk-plugin.a -Wl,--no-whole-archive $(B)/lib/libdataplane.a $(B)/lib/liboffload.a \
		$(shell pkg-config --libs libdpdk 2>/dev/null) -lxdp -lbpf -lpthread $(LDFLAGS)
