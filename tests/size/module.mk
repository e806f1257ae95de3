# size: what the core costs where memory is counted, with limits.
TOOLS += ram
ram_SRC  := tests/size/ram.c
ram_LIBS := offload

.PHONY: size
size: $(B)/lib/liboffload.a $(B)/tools/ram ## code, memory and stack of the core against their limits
	$(Q)tests/size/size.sh "$(MAKE)" $(B)
