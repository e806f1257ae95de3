# Unit tests of offload/reduce.
TESTS += reduce-kernels reduce-half reduce-psum reduce-exact reduce-bounds reduce-isa reduce-once
reduce-kernels_SRC := tests/unit/offload/reduce/test_kernels.c tests/unit/offload/reduce/oracle.c
reduce-half_SRC    := tests/unit/offload/reduce/test_half.c tests/unit/offload/reduce/oracle.c
reduce-psum_SRC    := tests/unit/offload/reduce/test_psum.c tests/unit/offload/reduce/oracle.c
reduce-isa_SRC    := tests/unit/offload/reduce/test_isa.c
reduce-isa_LIBS   := offload
reduce-isa_LDLIBS := -lcmocka
reduce-kernels_LIBS := offload
reduce-half_LIBS    := offload
reduce-psum_LIBS    := offload
reduce-kernels_LDLIBS := -lcmocka -lm
reduce-half_LDLIBS    := -lcmocka -lm
reduce-psum_LDLIBS    := -lcmocka -lm
# The source that single-steps the kernels (step.h); emulators require others.
STEPPER := step_ptrace
reduce-once_SRC    := tests/unit/offload/reduce/test_once.c tests/unit/offload/reduce/oracle.c tests/unit/offload/reduce/$(STEPPER).c
reduce-once_LIBS   := offload
reduce-once_LDLIBS := -lcmocka -lm
reduce-exact_SRC    := tests/unit/offload/reduce/test_exact.c tests/unit/offload/reduce/oracle.c tests/unit/offload/reduce/wide.c
reduce-exact_LIBS   := offload
reduce-exact_LDLIBS := -lcmocka -lm
reduce-bounds_SRC    := tests/unit/offload/reduce/test_bounds.c tests/unit/offload/reduce/oracle.c tests/unit/offload/reduce/wide.c
reduce-bounds_LIBS   := offload
reduce-bounds_LDLIBS := -lcmocka -lm
