# reduce: one loop family, compiled for each instruction set; isa.c detects the instruction sets of
# the processor.
offload_SRC += \
	offload/reduce/isa.c \
	offload/reduce/kernels_scalar.c \
	offload/reduce/psum.c \
	offload/reduce/reduce.c

# Results must not depend on the instruction set: no fused multiply-add. -fno-trapping-math allows
# masks for comparisons and changes no value. -Wno-psabi: vectors are passed only within a file.
REDUCE_FLAGS := -O3 -ffp-contract=off -fno-trapping-math -falign-loops=64 -Wno-psabi
SRCFLAGS_offload/reduce/kernels_scalar.c := $(REDUCE_FLAGS)
ifeq ($(ARCH),x86_64)
offload_SRC += offload/reduce/kernels_avx2.c offload/reduce/kernels_avx512.c
SRCFLAGS_offload/reduce/kernels_avx2.c   := $(REDUCE_FLAGS) -mavx2 -mf16c
SRCFLAGS_offload/reduce/kernels_avx512.c := $(REDUCE_FLAGS) -mavx512f -mavx512bw -mavx512dq \
                                            -mavx512vl -mf16c -mprefer-vector-width=512
endif
ifeq ($(ARCH),aarch64)
offload_SRC += offload/reduce/kernels_neon.c
SRCFLAGS_offload/reduce/kernels_neon.c   := $(REDUCE_FLAGS)
endif
