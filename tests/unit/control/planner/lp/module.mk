# Unit tests of control/planner/lp.
TESTS += lp-solve
lp-solve_SRC    := tests/unit/control/planner/lp/test_lp.c
lp-solve_LIBS   := lp control offload
lp-solve_LDLIBS := -lcmocka -ljansson -lgmp -lClp
