# Unit tests of control/study/steady, control/study/series and the check of schedules.
TESTS += steady-figures steady-random steady-check steady-plan
steady-figures_SRC := tests/unit/control/study/steady/test_figures.c tests/unit/control/study/steady/rig.c
steady-random_SRC  := tests/unit/control/study/steady/test_random.c tests/unit/control/study/steady/rig.c tests/unit/control/study/steady/oracle.c
steady-check_SRC   := tests/unit/control/study/steady/test_check.c tests/unit/control/study/steady/rig.c
steady-figures_LIBS := steady lp control offload
steady-random_LIBS  := steady lp control offload
steady-check_LIBS   := steady lp control offload
steady-figures_LDLIBS := -lcmocka -ljansson -lgmp -lClp -lm
steady-random_LDLIBS  := -lcmocka -ljansson -lgmp -lClp
steady-check_LDLIBS   := -lcmocka -ljansson -lgmp -lClp
steady-plan_SRC    := tests/unit/control/study/steady/test_plan.c tests/unit/control/study/steady/rig.c tests/unit/control/planner/rig.c
steady-plan_LIBS   := steady lp control offload
steady-plan_LDLIBS := -lcmocka -ljansson -lgmp -lClp

TESTS += steady-exchange
steady-exchange_SRC    := tests/unit/control/study/steady/test_exchange.c tests/unit/control/study/steady/rig.c
steady-exchange_LIBS   := steady lp control offload
steady-exchange_LDLIBS := -lcmocka -ljansson -lgmp -lClp

TESTS += steady-classes
steady-classes_SRC    := tests/unit/control/study/steady/test_classes.c tests/unit/control/study/steady/rig.c tests/unit/control/planner/rig.c
steady-classes_LIBS   := steady lp control offload
steady-classes_LDLIBS := -lcmocka -ljansson -lgmp -lClp

TESTS += steady-trees
steady-trees_SRC    := tests/unit/control/study/steady/test_trees.c tests/unit/control/study/steady/rig.c
steady-trees_LIBS   := steady lp control offload
steady-trees_LDLIBS := -lcmocka -ljansson -lgmp -lClp
