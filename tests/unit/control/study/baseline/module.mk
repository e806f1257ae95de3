# Unit tests of control/study/baseline.
TESTS += baseline-trees baseline-rounds
baseline-trees_SRC  := tests/unit/control/study/baseline/test_trees.c tests/unit/control/planner/rig.c
baseline-rounds_SRC := tests/unit/control/study/baseline/test_rounds.c tests/unit/control/planner/rig.c
baseline-trees_LIBS  := control lp offload
baseline-rounds_LIBS := control offload
baseline-trees_LDLIBS  := -lcmocka -ljansson -lgmp -lClp
baseline-rounds_LDLIBS := -lcmocka -ljansson -lgmp
