# Buffers of a GPU: in `make test` with the driver library of the tests, in `make gpu` with CUDA's.
TESTS += gpu_staging_test
gpu_staging_test_SRC    := tests/gpu/staging.c
gpu_staging_test_LIBS   := host-driver offload
gpu_staging_test_LDLIBS  = $(host-driver_LDLIBS)
$(B)/tests/gpu_staging_test: | $(B)/lib/libfake-cuda.so

.PHONY: gpu
gpu: build-all $(B)/tests/gpu_staging_test ## on a machine with an NVIDIA GPU: staging, streams, torch and NCCL with the plugin (docs/gpu.md); without one: a line, and status 77 of tests/gpu/gpu.sh
	$(Q)tests/gpu/gpu.sh $(B)
