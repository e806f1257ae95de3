# Unit tests of control/export.
TESTS += export-write export-check
export-write_SRC := tests/unit/control/export/test_write.c tests/unit/control/export/make.c tests/unit/control/planner/rig.c
export-check_SRC := tests/unit/control/export/test_check.c tests/unit/control/export/make.c tests/unit/control/planner/rig.c
export-write_LIBS := control offload
export-check_LIBS := control offload
export-write_LDLIBS := -lcmocka -ljansson -lgmp -lexpat
export-check_LDLIBS := -lcmocka -ljansson -lgmp -lexpat
