# Command line and boards of banyan-switchd.
TESTS += switchd_options_test
switchd_options_test_SRC := dataplane/driver.c tests/unit/firmware/linux/switchd_options_test.c firmware/linux/options.c firmware/linux/board.c dataplane/say.c offload/linux/options.c offload/linux/options_help.c offload/linux/options_value.c
switchd_options_test_LDLIBS := -lcmocka -ljansson
SRCFLAGS_tests/unit/firmware/linux/switchd_options_test.c := $(shell pkg-config --cflags libdpdk 2>/dev/null)
# --cores and --workers.
TESTS += cores_test
cores_test_SRC := tests/unit/firmware/linux/cores_test.c firmware/linux/cores.c dataplane/say.c
cores_test_LDLIBS := -lcmocka
# Carriers of ports.
TESTS += carrier_test
carrier_test_SRC := tests/unit/firmware/linux/carrier_test.c firmware/linux/carrier.c dataplane/say.c
carrier_test_LDLIBS := -lcmocka
# Tables saved for the next start.
TESTS += store_test
store_test_SRC := tests/unit/firmware/linux/store_test.c tests/unit/firmware/star.c firmware/linux/store.c firmware/agent/saved.c dataplane/say.c
store_test_LIBS := offload
store_test_LDLIBS := -lcmocka -lpthread -Wl,--wrap=fsync,--wrap=rename
# The watchdog of the loop.
TESTS += watchdog_test
watchdog_test_SRC := tests/unit/firmware/linux/watchdog_test.c firmware/linux/watchdog.c offload/linux/notify.c
watchdog_test_LDLIBS := -lcmocka -lpthread
