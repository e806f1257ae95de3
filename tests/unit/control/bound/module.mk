# Unit tests of control/bound.
TESTS += bound-rate
bound-rate_SRC    := tests/unit/control/bound/test_rate.c tests/unit/control/plan/rig.c
bound-rate_LIBS   := control lp offload
bound-rate_LDLIBS := -lcmocka -ljansson -lgmp -lClp
