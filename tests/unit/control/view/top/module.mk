# Unit tests of control/view/top, with artificial statuses.
TESTS += unit-top
unit-top_SRC    := tests/unit/control/view/top/test_top.c tests/unit/firmware/star.c
unit-top_LIBS   := control secure offload
unit-top_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
$(patsubst %.c,$(B)/obj/%.o,$(unit-top_SRC)): | $(GEN)/proto/control.pb.h
