# size: code, memory and stack of the core, with limits.
TOOLS += ram
ram_SRC  := tests/size/ram.c
ram_LIBS := offload

.PHONY: size
size: $(B)/lib/liboffload.a $(B)/tools/ram ## compare code, memory and stack of the core with their limits
	$(Q)tests/size/size.sh "$(MAKE)" $(B)
