# banyan-switchd.
PROGS += banyan-switchd
banyan-switchd_SRC := \
	firmware/linux/board.c \
	firmware/linux/carrier.c \
	firmware/linux/cores.c \
	firmware/linux/main.c \
	firmware/linux/node.c \
	firmware/linux/options.c \
	firmware/linux/server.c \
	firmware/linux/store.c \
	firmware/linux/watchdog.c \
	offload/linux/notify.c \
	offload/linux/options.c \
	offload/linux/options_help.c \
	offload/linux/options_value.c \
	offload/linux/output.c
banyan-switchd_LIBS := dataplane agent secure offload
banyan-switchd_LDLIBS = $(shell pkg-config --libs libdpdk) -ljansson -lxdp -lbpf -lprotobuf-nanopb -lssl -lcrypto -lpthread
FLAGS_firmware += $(shell pkg-config --cflags libdpdk 2>/dev/null)
# All Linux boards are built in: the assembler includes their files.
BOARD_LIST := -DBY_BOARD_LIST='$(foreach b,$(BOARDS_linux),X($(subst -,_,$(b)), "$(b)"))'
SRCFLAGS_firmware/linux/board.c := -DBY_BOARD='"$(BOARD_DEFAULT)"' $(BOARD_LIST)
$(B)/obj/firmware/linux/board.o: $(wildcard boards/*/board.json)

# A Linux board for this compiler: the same objects, except the one that names the default board.
BOARDS_native := $(foreach b,$(BOARDS_linux),$(if $(filter-out $(ARCH),$($(b)_ARCH)),,$(b)))
define NATIVE_BOARD
$(O)/boards/$(1)/board.o: firmware/linux/board.c $(wildcard boards/*/board.json)
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$(Q)$$(CC) $$(BASE) $$(PICFLAG) $$(FLAGS_firmware) -DBY_BOARD='"$(1)"' $$(BOARD_LIST) $$(CFLAGS) -c -o $$@ $$<
$(O)/boards/$(1)/banyan-switchd: $(O)/boards/$(1)/board.o $(filter-out %/board.o,$(call obj,$(banyan-switchd_SRC))) $(foreach l,$(banyan-switchd_LIBS),$(B)/lib/lib$(l).a)
	$$(call say,LD,$$@)
	$(Q)$$(CC) $(LDSAN) -o $$@ $$^ $$(banyan-switchd_LDLIBS) $$(LDFLAGS)
endef
$(foreach b,$(BOARDS_native),$(eval $(call NATIVE_BOARD,$(b))))

# A board with another processor: a second run of this Makefile with the cross-compiler, into a
# separate folder. It links with Debian's libraries for that architecture, which are unpacked into a
# sysroot and not installed.
SYSROOT_PACKAGES := libdpdk-dev libxdp-dev libbpf-dev libjansson-dev libnanopb-dev libssl-dev
$(O)/sysroot/dpdk-%/.done: boards/sysroot.sh
	$(Q)boards/sysroot.sh --closure $* $(@D) $(SYSROOT_PACKAGES)

BOARDS_cross := $(foreach b,$(filter-out $(BOARDS_native),$(BOARDS_linux)),$(if $($(b)_CROSS),$(b)))
define CROSS_BOARD
$(O)/boards/$(1)/banyan-switchd: $(O)/sysroot/dpdk-$($(1)_DEBIAN)/.done $(wildcard boards/$(1)/run) FORCE
	$$(call say,CROSS,$$@)
	@mkdir -p $$(@D)
	$(Q)command -v $($(1)_CROSS)gcc >/dev/null || tests/deps.sh metal
	$(Q)sysroot=$$$$(realpath $$(<D)); lib=$$$$sysroot/usr/lib/$$$$($($(1)_CROSS)gcc -dumpmachine); \
	    PKG_CONFIG_SYSROOT_DIR=$$$$sysroot PKG_CONFIG_LIBDIR=$$$$lib/pkgconfig:$$$$sysroot/usr/share/pkgconfig \
	    $$(MAKE) --no-print-directory CC=$($(1)_CROSS)gcc O=$$(@D)/build BOARD=$(1) CFLAGS="--sysroot=$$$$sysroot $($(1)_FLAGS)" \
	    LDFLAGS="--sysroot=$$$$sysroot" $$(@D)/build/release/bin/banyan-switchd
	$(Q)install -m 755 $$(@D)/build/release/bin/banyan-switchd $$(filter %/run,$$^) $$(@D)/
endef
$(foreach b,$(BOARDS_cross),$(eval $(call CROSS_BOARD,$(b))))
.PHONY: FORCE
FORCE:
