# What machines report, and what is made of it.
TESTS += unit-discover unit-discover-compare
unit-discover_SRC    := tests/unit/control/discover/test_discover.c tests/unit/control/discover/bench.c offload/linux/device.c offload/linux/feature.c
unit-discover_LIBS   := control secure offload
unit-discover_LDLIBS := -lcmocka -ljansson -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
unit-discover-compare_SRC    := tests/unit/control/discover/test_compare.c tests/unit/control/discover/bench.c offload/linux/device.c offload/linux/feature.c
unit-discover-compare_LIBS   := control secure offload
unit-discover-compare_LDLIBS := -lcmocka -ljansson -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
