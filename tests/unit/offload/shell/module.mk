TESTS += hold_test batch_test
hold_test_SRC := tests/unit/offload/shell/hold_test.c
hold_test_LIBS := offload
hold_test_LDLIBS := -lcmocka
batch_test_SRC := tests/unit/offload/shell/batch_test.c tests/unit/firmware/star.c
batch_test_LIBS := offload
batch_test_LDLIBS := -lcmocka
