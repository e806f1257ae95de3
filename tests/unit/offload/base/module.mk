TESTS += unit-base
unit-base_SRC := tests/unit/offload/base/base.c
unit-base_LIBS := offload
unit-base_LDLIBS := -lcmocka
