# The bootstrap of ranks, each a process on the loopback interface.
TESTS += test_host_bootstrap
test_host_bootstrap_SRC    := tests/unit/host-driver/bootstrap/test_bootstrap.c
test_host_bootstrap_LIBS   := host-driver offload
test_host_bootstrap_LDLIBS = -lcmocka $(host-driver_LDLIBS)
