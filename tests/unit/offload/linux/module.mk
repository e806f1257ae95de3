# Unit tests of the Linux code for hosts and switches.
TESTS += test_ring
test_ring_SRC    := tests/unit/offload/linux/test_ring.c offload/linux/feature.c offload/linux/object.c offload/linux/ring.c
test_ring_LDLIBS := -lcmocka -lbpf

TESTS += test_copies
test_copies_SRC    := tests/unit/offload/linux/test_copies.c offload/linux/copies.c offload/linux/feature.c offload/linux/object.c
test_copies_LIBS   := offload
test_copies_LDLIBS := -lcmocka -lbpf

TESTS += test_xdp_socket
test_xdp_socket_SRC    := tests/unit/offload/linux/test_xdp_socket.c offload/linux/xdp_socket.c
test_xdp_socket_LDLIBS := -lcmocka -lxdp -lbpf -lpthread

TESTS += test_option_table
test_option_table_SRC    := tests/unit/offload/linux/test_options.c offload/linux/options.c offload/linux/options_help.c offload/linux/options_value.c
test_option_table_LDLIBS := -lcmocka

TESTS += test_output
test_output_SRC    := tests/unit/offload/linux/test_output.c offload/linux/notify.c offload/linux/output.c
test_output_LDLIBS := -lcmocka

TESTS += test_device
test_device_SRC    := tests/unit/offload/linux/test_device.c offload/linux/device.c offload/linux/feature.c
test_device_LDLIBS := -lcmocka
