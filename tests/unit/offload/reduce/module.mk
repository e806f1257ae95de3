# Unit tests of offload/reduce.
TESTS += reduce-kernels reduce-half reduce-psum reduce-exact
reduce-kernels_SRC := tests/unit/offload/reduce/test_kernels.c tests/unit/offload/reduce/oracle.c
reduce-half_SRC    := tests/unit/offload/reduce/test_half.c tests/unit/offload/reduce/oracle.c
reduce-psum_SRC    := tests/unit/offload/reduce/test_psum.c tests/unit/offload/reduce/oracle.c
reduce-kernels_LIBS := offload
reduce-half_LIBS    := offload
reduce-psum_LIBS    := offload
reduce-kernels_LDLIBS := -lcmocka -lm
reduce-half_LDLIBS    := -lcmocka -lm
reduce-psum_LDLIBS    := -lcmocka -lm
reduce-exact_SRC    := tests/unit/offload/reduce/test_exact.c tests/unit/offload/reduce/oracle.c
reduce-exact_LIBS   := offload
reduce-exact_LDLIBS := -lcmocka -lm
