# Unit tests of control/plan.
TESTS += plan-figures plan-allreduce plan-random plan-options plan-parts
plan-figures_SRC   := tests/unit/control/plan/test_figures.c tests/unit/control/plan/rig.c
plan-allreduce_SRC := tests/unit/control/plan/test_allreduce.c tests/unit/control/plan/rig.c
plan-random_SRC    := tests/unit/control/plan/test_random.c tests/unit/control/plan/rig.c tests/unit/control/plan/exhaustive.c
plan-options_SRC   := tests/unit/control/plan/test_options.c tests/unit/control/plan/rig.c
plan-parts_SRC     := tests/unit/control/plan/test_parts.c
plan-figures_LIBS   := control offload
plan-allreduce_LIBS := control offload
plan-random_LIBS    := control offload
plan-options_LIBS   := control offload
plan-figures_LDLIBS   := -lcmocka -ljansson -lgmp
plan-allreduce_LDLIBS := -lcmocka -ljansson -lgmp
plan-random_LDLIBS    := -lcmocka -ljansson -lgmp
plan-options_LDLIBS   := -lcmocka -ljansson -lgmp
plan-parts_LIBS   := control offload
plan-parts_LDLIBS := -lcmocka -ljansson -lgmp
