# offload/xdp: programs for the kernel's eBPF virtual machine, built by clang and embedded in the
# programs that load them. Not part of liboffload.
XDP_CFLAGS := -target bpf -ffreestanding -O2 -g -I. -Wall -Wextra -Werror -idirafter $(patsubst %/asm/types.h,%,$(firstword $(wildcard /usr/include/*-linux-gnu/asm/types.h)))

$(GEN)/xdp/%.bpf.o: offload/xdp/%.bpf.c $(wildcard offload/base/*.h offload/wire/*.h offload/xdp/*.h)
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(XDP_CFLAGS) -c -o $@ $<
	$(Q)llvm-strip -g $@

# Compare-and-swap, since Linux 5.12.
$(GEN)/xdp/ring.bpf.o: XDP_CFLAGS += -mcpu=v3

# Objects embedded by sources of offload/linux.
SRCFLAGS_offload/linux/ring.c   := -DBY_RING_OBJECT='"$(GEN)/xdp/ring.bpf.o"'
SRCFLAGS_offload/linux/copies.c := -DBY_COPIES_OBJECT='"$(GEN)/xdp/copies.bpf.o"'
$(B)/obj/offload/linux/ring.o: $(GEN)/xdp/ring.bpf.o
$(B)/obj/offload/linux/copies.o: $(GEN)/xdp/copies.bpf.o
