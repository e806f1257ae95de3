# boards: data only. BOARD= chooses the one whose limits are banyan-switchd's defaults.
BOARDS := $(patsubst boards/%/board.mk,%,$(wildcard boards/*/board.mk))
ifeq ($(filter $(BOARD),$(BOARDS)),)
$(error BOARD=$(BOARD): there is no such board; there are: $(BOARDS))
endif
include boards/$(BOARD)/board.mk
ifneq ($(filter-out $(ARCH),$(BOARD_ARCH)),)
$(error BOARD=$(BOARD) is for $(BOARD_ARCH), the compiler $(CC) makes $(ARCH))
endif
