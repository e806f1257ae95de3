# banyan-switchd.
PROGS += banyan-switchd
banyan-switchd_SRC := \
	firmware/linux/board.c \
	firmware/linux/main.c \
	firmware/linux/node.c \
	firmware/linux/notify.c \
	firmware/linux/options.c \
	firmware/linux/server.c
banyan-switchd_LIBS := dataplane agent offload
banyan-switchd_LDLIBS = $(shell pkg-config --libs libdpdk) -ljansson -lxdp -lbpf -lprotobuf-nanopb -lpthread
FLAGS_firmware += $(shell pkg-config --cflags libdpdk 2>/dev/null)
# Every Linux board is built in: the assembler includes the boards' files.
BOARD_LIST := -DBY_BOARD_LIST='$(foreach b,$(BOARDS_linux),X($(subst -,_,$(b)), "$(b)"))'
SRCFLAGS_firmware/linux/board.c := -DBY_BOARD='"$(BOARD_DEFAULT)"' $(BOARD_LIST)
$(B)/obj/firmware/linux/board.o: $(wildcard boards/*/board.json)

# A Linux board that this compiler builds for: the same objects, but for the one that names the default board.
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
