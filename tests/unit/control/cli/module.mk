# Unit tests of control/cli.
TESTS += cli-crossover
cli-crossover_SRC    := tests/unit/control/cli/test_crossover.c control/cli/crossover.c
cli-crossover_LIBS   := control offload
cli-crossover_LDLIBS := -lcmocka -ljansson -lgmp
