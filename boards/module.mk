# boards: one folder for each, with data only (docs/porting.md). This file includes all board.mk
# files, so a new board only requires a new folder. BOARD= selects the board that `make firmware`
# builds for and whose limits are the defaults of banyan-switchd.
BOARDS := $(sort $(patsubst boards/%/board.mk,%,$(wildcard boards/*/board.mk)))
ifeq ($(filter $(BOARD),$(BOARDS)),)
$(error BOARD=$(BOARD): no such board; available: $(BOARDS))
endif

# The variables of a board.mk, stored as NAME_KIND and so on: KIND (linux, baremetal), ARCH (first
# part of `cc -dumpmachine`; empty: any), CROSS (prefix of the cross-compiler's programs), DEBIAN
# (Debian's name of the architecture), FLAGS (of the compiler).
define BOARD_READ
BOARD_KIND :=
BOARD_ARCH :=
BOARD_CROSS :=
BOARD_DEBIAN :=
BOARD_FLAGS :=
include boards/$(1)/board.mk
$(1)_KIND := $$(BOARD_KIND)
$(1)_ARCH := $$(BOARD_ARCH)
$(1)_CROSS := $$(BOARD_CROSS)
$(1)_DEBIAN := $$(BOARD_DEBIAN)
$(1)_FLAGS := $$(BOARD_FLAGS)
endef
$(foreach b,$(BOARDS),$(eval $(call BOARD_READ,$(b))))
BOARDS_linux := $(foreach b,$(BOARDS),$(if $(filter linux,$($(b)_KIND)),$(b)))
BOARDS_baremetal := $(foreach b,$(BOARDS),$(if $(filter baremetal,$($(b)_KIND)),$(b)))

# The default limits of banyan-switchd must be those of a board on which it can run.
BOARD_DEFAULT := $(if $(filter linux,$($(BOARD)_KIND)),$(if $(filter-out $(ARCH),$($(BOARD)_ARCH)),lab-veth,$(BOARD)),lab-veth)

# The result of `make firmware BOARD=NAME`.
firmware_of = $(O)/boards/$(1)/$(if $(filter baremetal,$($(1)_KIND)),banyan.elf,banyan-switchd)

.PHONY: firmware boards
firmware: $(call firmware_of,$(BOARD)) ## build the program for BOARD= in build/boards/BOARD and report its size

boards: $(foreach b,$(BOARDS),$(call firmware_of,$(b))) ## build the programs for all boards
	@printf '  %-18s %-10s %-8s %s\n' board kind arch file
	@$(foreach b,$(BOARDS),printf '  %-18s %-10s %-8s %s\n' '$(b)' '$($(b)_KIND)' '$(or $($(b)_ARCH),any)' '$(call firmware_of,$(b))';)
