# Unit tests of control/topology.
TESTS += topology-fraction topology-read topology-preset topology-vary
topology-fraction_SRC := tests/unit/control/topology/test_fraction.c
topology-read_SRC     := tests/unit/control/topology/test_read.c
topology-preset_SRC   := tests/unit/control/topology/test_preset.c
topology-vary_SRC     := tests/unit/control/topology/test_vary.c
topology-fraction_LIBS := control offload
topology-read_LIBS     := control offload
topology-preset_LIBS   := control offload
topology-fraction_LDLIBS := -lcmocka -ljansson -lgmp
topology-read_LDLIBS     := -lcmocka -ljansson -lgmp
topology-preset_LDLIBS   := -lcmocka -ljansson -lgmp
topology-vary_LIBS   := control offload
topology-vary_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += topology-json
topology-json_SRC    := tests/unit/control/topology/test_json.c
topology-json_LIBS   := control offload
topology-json_LDLIBS := -lcmocka -ljansson
