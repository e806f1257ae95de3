# Buffers in GPU memory, with a fake driver library in place of CUDA's.
TESTS += test_host_gpu
test_host_gpu_SRC    := tests/unit/host-driver/gpu/test_gpu.c tests/unit/host-driver/fallback/team.c tests/unit/host-driver/rig.c tests/sim/fabric.c tests/sim/image.c
test_host_gpu_LIBS   := host-driver offload
test_host_gpu_LDLIBS = -lcmocka $(host-driver_LDLIBS)
TESTS += test_host_gpu_find
test_host_gpu_find_SRC    := tests/unit/host-driver/gpu/test_gpu_find.c host-driver/gpu/driver.c host-driver/error.c
test_host_gpu_find_LIBS   := offload
test_host_gpu_find_LDLIBS := -lcmocka
LINT_MORE += tests/unit/host-driver/gpu/fake_cuda.c

$(B)/lib/libfake-cuda.so: $(B)/obj/tests/unit/host-driver/gpu/fake_cuda.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDSAN) -shared -o $@ $<
$(B)/tests/test_host_gpu $(B)/tests/test_host_gpu_find: | $(B)/lib/libfake-cuda.so
