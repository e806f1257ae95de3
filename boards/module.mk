# boards: a folder each, and data only; docs/porting.md says what is in one. Their board.mk files are read here, so a new folder is all
# that a new board needs. BOARD= chooses one: that whose limits are banyan-switchd's defaults, and that of `make firmware`.
BOARDS := $(sort $(patsubst boards/%/board.mk,%,$(wildcard boards/*/board.mk)))
ifeq ($(filter $(BOARD),$(BOARDS)),)
$(error BOARD=$(BOARD): there is no such board; there are: $(BOARDS))
endif

# What a board.mk sets, kept as NAME_KIND and so on: KIND (linux, baremetal), ARCH (as `cc -dumpmachine` begins; empty: any), CROSS (prefix of
# the cross-compiler's programs), DEBIAN (Debian's name of the architecture), FLAGS (of the compiler).
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

# banyan-switchd's default limits must be a board's that it can run on.
BOARD_DEFAULT := $(if $(filter linux,$($(BOARD)_KIND)),$(if $(filter-out $(ARCH),$($(BOARD)_ARCH)),lab-veth,$(BOARD)),lab-veth)

# What `make firmware BOARD=NAME` makes.
firmware_of = $(O)/boards/$(1)/$(if $(filter baremetal,$($(1)_KIND)),banyan.elf,banyan-switchd)

.PHONY: firmware boards
firmware: $(call firmware_of,$(BOARD)) ## build what BOARD= runs, into build/boards/BOARD, and report its size

boards: $(foreach b,$(BOARDS),$(call firmware_of,$(b))) ## build what every board runs
	@printf '  %-18s %-10s %-8s %s\n' board kind arch file
	@$(foreach b,$(BOARDS),printf '  %-18s %-10s %-8s %s\n' '$(b)' '$($(b)_KIND)' '$(or $($(b)_ARCH),any)' '$(call firmware_of,$(b))';)
