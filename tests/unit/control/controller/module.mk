# Unit tests of control/controller, against real agents.
TESTS += unit-controller
unit-controller_SRC    := tests/unit/control/controller/controller.c tests/unit/control/controller/fake.c tests/unit/control/lower/bench.c
unit-controller_LIBS   := control agent secure offload
unit-controller_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
