# The plugin for NCCL's network interface and its CollNet, over the shared library. NCCL loads it by
# name: NCCL_NET_PLUGIN=banyan.
LIBS += nccl-plugin
nccl-plugin_SRC := \
	host-driver/plugin/nccl/admit.c \
	host-driver/plugin/nccl/coll.c \
	host-driver/plugin/nccl/coll_versions.c \
	host-driver/plugin/nccl/core.c \
	host-driver/plugin/nccl/device.c \
	host-driver/plugin/nccl/meet.c \
	host-driver/plugin/nccl/net.c \
	host-driver/plugin/nccl/net_versions.c \
	host-driver/plugin/nccl/table.c \
	host-driver/plugin/nccl/tuner.c \
	host-driver/plugin/nccl/versions.c
NCCL_PLUGIN := $(B)/lib/libnccl-net-banyan.so
ALL_TARGETS += $(NCCL_PLUGIN)

$(NCCL_PLUGIN): $(B)/lib/libnccl-plugin.a $(LIBBANYAN_SO) host-driver/plugin/nccl/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDSAN) -shared -o $@ -Wl,-soname,$(@F) -Wl,--version-script=host-driver/plugin/nccl/plugin.map $(if $(LDSAN),,-Wl,--no-undefined) \
		-Wl,--whole-archive $(B)/lib/libnccl-plugin.a -Wl,--no-whole-archive $(LIBBANYAN_SO) -Wl,-rpath,'$$ORIGIN' -lpthread $(LDFLAGS)
