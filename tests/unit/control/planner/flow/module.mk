# Unit tests of control/planner/flow.
TESTS += flow
flow_SRC    := tests/unit/control/planner/flow/test_flow.c
flow_LIBS   := control offload
flow_LDLIBS := -lcmocka -ljansson -lgmp
