# Unit tests of control/flow.
TESTS += flow
flow_SRC    := tests/unit/control/flow/test_flow.c
flow_LIBS   := control offload
flow_LDLIBS := -lcmocka -ljansson -lgmp
