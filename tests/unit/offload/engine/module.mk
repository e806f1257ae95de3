TESTS += unit-engine-machine
unit-engine-machine_SRC := tests/unit/offload/engine/machine.c tests/unit/offload/engine/rig.c
unit-engine-machine_LIBS := offload
unit-engine-machine_LDLIBS := -lcmocka
