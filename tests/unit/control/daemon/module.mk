# Unit tests of banyand's parts that need no fabric.
TESTS += daemon-recover
daemon-recover_SRC    := tests/unit/control/daemon/test_recover.c control/daemon/recover.c
daemon-recover_LIBS   := offload
daemon-recover_LDLIBS := -lcmocka
