# Unit tests of control/verify.
TESTS += verify
verify_SRC    := tests/unit/control/verify/test_verify.c tests/unit/control/planner/rig.c
verify_LIBS   := control offload
verify_LDLIBS := -lcmocka -ljansson -lgmp
