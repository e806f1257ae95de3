# Unit tests of control/study/bound.
TESTS += bound-rate
bound-rate_SRC    := tests/unit/control/study/bound/test_rate.c tests/unit/control/planner/rig.c
bound-rate_LIBS   := control lp offload
bound-rate_LDLIBS := -lcmocka -ljansson -lgmp -lClp
bound_compare_SRC := \
	tests/unit/control/study/bound/compare.c \
	tests/unit/control/study/bound/graphs.c \
	tests/unit/control/study/bound/oracle.c \
	tests/unit/control/campaign/cuts.c
TESTS += bound-small
bound-small_SRC    := tests/unit/control/study/bound/test_small.c $(bound_compare_SRC)
bound-small_LIBS   := control lp offload
bound-small_LDLIBS := -lcmocka -ljansson -lgmp -lClp
# All small fabrics: a tool for `make bound-check` (tests/oracle).
TOOLS += bound-exhaustive
bound-exhaustive_SRC    := tests/unit/control/study/bound/exhaustive.c $(bound_compare_SRC)
bound-exhaustive_LIBS   := control lp offload
bound-exhaustive_LDLIBS := -ljansson -lgmp -lClp
TESTS += bound-all
bound-all_SRC    := tests/unit/control/study/bound/test_bound.c tests/unit/control/planner/rig.c
bound-all_LIBS   := control lp offload
bound-all_LDLIBS := -lcmocka -ljansson -lgmp -lClp
TESTS += bound-columns
bound-columns_SRC := \
	tests/unit/control/study/bound/test_columns.c \
	tests/unit/control/campaign/fabric.c \
	tests/unit/control/planner/rig.c
bound-columns_LIBS   := control lp offload
bound-columns_LDLIBS := -lcmocka -ljansson -lgmp -lClp
