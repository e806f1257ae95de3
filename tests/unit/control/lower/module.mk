# Unit tests of control/lower.
TESTS += unit-lower unit-traffic lower-ranks
lower-ranks_SRC    := tests/unit/control/lower/ranks.c tests/unit/control/lower/bench.c tests/unit/control/lower/walk.c
lower-ranks_LIBS   := control offload
lower-ranks_LDLIBS := -lcmocka -ljansson -lgmp
unit-lower_SRC   := tests/unit/control/lower/lower.c tests/unit/control/lower/bench.c tests/unit/control/lower/walk.c
unit-traffic_SRC := tests/unit/control/lower/traffic.c tests/unit/control/lower/bench.c tests/unit/control/lower/walk.c
unit-lower_LIBS   := control offload
unit-traffic_LIBS := control offload
unit-lower_LDLIBS   := -lcmocka -ljansson -lgmp
unit-traffic_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += lower-keyed
lower-keyed_SRC    := tests/unit/control/lower/keyed.c tests/unit/control/lower/bench.c tests/unit/control/lower/walk.c
lower-keyed_LIBS   := control offload
lower-keyed_LDLIBS := -lcmocka -ljansson -lgmp
