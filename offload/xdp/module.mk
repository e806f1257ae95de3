# offload/xdp: programs for the kernel's own virtual machine, built by clang and embedded where they are loaded. No part of liboffload.
XDP_CFLAGS := -target bpf -O2 -g -I. -Wall -Wextra -Werror -idirafter $(patsubst %/asm/types.h,%,$(firstword $(wildcard /usr/include/*-linux-gnu/asm/types.h)))

$(GEN)/xdp/%.bpf.o: offload/xdp/%.bpf.c offload/xdp/switch.h
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(XDP_CFLAGS) -c -o $@ $<
	$(Q)llvm-strip -g $@
