# The image for boards without an operating system: the core, the agent, nanopb and this folder,
# built freestanding by the board's cross-compiler. Objects, image and map are in build/boards/NAME;
# `make all` does not build them.
baremetal_SRC := \
	firmware/baremetal/cache.c \
	firmware/baremetal/clock.c \
	firmware/baremetal/console.c \
	firmware/baremetal/fault.c \
	firmware/baremetal/flash.c \
	firmware/baremetal/interrupt.c \
	firmware/baremetal/line.c \
	firmware/baremetal/log.c \
	firmware/baremetal/loop.c \
	firmware/baremetal/main.c \
	firmware/baremetal/memory.c \
	firmware/baremetal/mmu.c \
	firmware/baremetal/net.c \
	firmware/baremetal/node.c \
	firmware/baremetal/note.c \
	firmware/baremetal/pool.c \
	firmware/baremetal/random.c \
	firmware/baremetal/reset.c \
	firmware/baremetal/send.c \
	firmware/baremetal/settings.c \
	firmware/baremetal/store.c \
	firmware/baremetal/string.c \
	firmware/baremetal/virtio.c \
	firmware/baremetal/watchdog.c
# The core as on all machines of that architecture, without the host's side.
BAREMETAL_CORE = $(filter-out offload/endpoint/% offload/reduce/kernels_avx%,$(offload_SRC)) $(baremetal_KERNELS_$(1))
baremetal_KERNELS_aarch64 := offload/reduce/kernels_neon.c

METALFLAGS_offload/reduce/kernels_scalar.c := $(REDUCE_FLAGS)
METALFLAGS_offload/reduce/kernels_neon.c   := $(REDUCE_FLAGS)
# Code that runs in the interrupt handler must not change the floating-point registers.
METALFLAGS_firmware/baremetal/interrupt.c  := -mgeneral-regs-only
METALFLAGS_firmware/baremetal/watchdog.c   := -mgeneral-regs-only
METALFLAGS_firmware/baremetal/mmu.c        := -mstrict-align -mgeneral-regs-only # runs before the MMU

# nanopb from Debian's package for that architecture; it need not be installed on this machine.
$(O)/sysroot/nanopb-%/.done: boards/sysroot.sh
	$(Q)boards/sysroot.sh $* $(@D) libnanopb-dev

# Includes without a C library: the compiler's, string.h of this tree, and nanopb's.
metal_flags = -DBY_BATCH_MAX=128u -DBY_BATCH_BURST=32u -std=gnu11 -O2 -g -fno-strict-overflow -fno-common -ffreestanding -nostdinc -isystem firmware/baremetal/include \
	-isystem $(shell $($(1)_CROSS)gcc -print-file-name=include 2>/dev/null) -isystem $(O)/boards/$(1)/include -fno-stack-protector $(NOLOOPS) -fno-pic -ffunction-sections -fdata-sections \
	-fno-asynchronous-unwind-tables -mno-outline-atomics -Wframe-larger-than=16384 -I. -I$(GEN) -DBY_VERSION='"$(VERSION)"' $(BASELINE_$($(1)_ARCH)) $($(1)_FLAGS) $(WARN)
# The limits in a board.json become -DBOARD_ports=16u and so on.
board_limits = $(foreach k,ports slots payload_max entries relays image_bytes,$(or \
	$(shell sed -n 's/^ *"$k": *\([1-9][0-9]*\),\{0,1\}$$/-DBOARD_$k=\1u/p' boards/$(1)/board.json), \
	$(error boards/$(1)/board.json: "$k": give a whole number above 0, on a line of its own)))
metal_obj = $(patsubst %,$(O)/boards/$(1)/obj/%.o,$(basename $(patsubst $(GEN)/%,gen/%,$(2))))
metal_sources = $(call BAREMETAL_CORE,$($(1)_ARCH)) $(agent_SRC) $(baremetal_SRC) boards/$(1)/board.c firmware/baremetal/start.S

define METAL_BOARD
$(O)/boards/$(1)/.tools:
	@mkdir -p $$(@D)
	$(Q)command -v $($(1)_CROSS)gcc >/dev/null || tests/deps.sh metal
	@touch $$@
$(O)/boards/$(1)/include/pb.h: $(O)/sysroot/nanopb-$($(1)_DEBIAN)/.done
	@mkdir -p $$(@D)
	$(Q)cp $$(<D)/usr/include/pb*.h $$(@D)/ && touch $$(@D)/pb.h
$(O)/boards/$(1)/obj/%.o: %.c | $(O)/boards/$(1)/.tools $(O)/boards/$(1)/include/pb.h $(GEN)/proto/control.pb.h
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$(Q)$($(1)_CROSS)gcc $$(call metal_flags,$(1)) $$(METALFLAGS_$$<) $$(if $$(filter boards/%,$$<),$$(call board_limits,$(1))) -MMD -MP $$(CFLAGS) -c -o $$@ $$<
$(O)/boards/$(1)/obj/%.o: %.S | $(O)/boards/$(1)/.tools
	$$(call say,AS,$$@)
	@mkdir -p $$(@D)
	$(Q)$($(1)_CROSS)gcc $($(1)_FLAGS) -c -o $$@ $$<
$(O)/boards/$(1)/obj/gen/%.o: $(GEN)/%.c | $(O)/boards/$(1)/.tools $(O)/boards/$(1)/include/pb.h
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$(Q)$($(1)_CROSS)gcc $$(call metal_flags,$(1)) -MMD -MP $$(CFLAGS) -c -o $$@ $$<
$(O)/boards/$(1)/obj/boards/$(1)/board.o: boards/$(1)/board.json
$(O)/boards/$(1)/banyan.elf: $(call metal_obj,$(1),$(call metal_sources,$(1))) boards/$(1)/link.ld firmware/baremetal/size.sh $(wildcard boards/$(1)/run boards/$(1)/lines) boards/bridge.sh
	$$(call say,LD,$$@)
	$(Q)$($(1)_CROSS)gcc -nostdlib -static -no-pie -Wl,--gc-sections -Wl,--no-warn-rwx-segments -Wl,-z,noexecstack -Wl,--build-id=none -Wl,-Map=$$(@D)/banyan.map \
	    -T boards/$(1)/link.ld -o $$@ $$(filter %.o,$$^) $(O)/sysroot/nanopb-$($(1)_DEBIAN)/usr/lib/*/libprotobuf-nanopb.a
	$(Q)$$(if $$(filter %/run,$$^),install -m 755 $$(filter %/run %/lines %/bridge.sh,$$^) $$(@D)/)
	$(Q)firmware/baremetal/size.sh $$(@D)/banyan.map boards/$(1)/board.json $($(1)_CROSS)
-include $(patsubst %.o,%.d,$(call metal_obj,$(1),$(call metal_sources,$(1))))
endef
$(foreach b,$(BOARDS_baremetal),$(eval $(call METAL_BOARD,$(b))))
