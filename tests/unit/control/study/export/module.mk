# Unit tests of control/study/export.
TESTS += export-write export-check
export-write_SRC := tests/unit/control/study/export/test_write.c tests/unit/control/study/export/make.c tests/unit/control/planner/rig.c
export-check_SRC := tests/unit/control/study/export/test_check.c tests/unit/control/study/export/make.c tests/unit/control/planner/rig.c
export-write_LIBS := control offload
export-check_LIBS := control offload
export-write_LDLIBS := -lcmocka -ljansson -lgmp -lexpat
export-check_LDLIBS := -lcmocka -ljansson -lgmp -lexpat
