# Unit tests of control/service/controller, against real agents.
TESTS += unit-controller
unit-controller_SRC    := tests/unit/control/service/controller/controller.c tests/unit/control/service/controller/setup.c tests/unit/control/service/controller/fake.c tests/unit/control/tables/bench.c
unit-controller_LIBS   := control agent secure offload
unit-controller_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
TESTS += unit-controller-session
unit-controller-session_SRC    := tests/unit/control/service/controller/session.c tests/unit/control/service/controller/setup.c tests/unit/control/service/controller/fake.c tests/unit/control/tables/bench.c
unit-controller-session_LIBS   := control agent secure offload
unit-controller-session_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
TESTS += unit-controller-message
unit-controller-message_SRC    := tests/unit/control/service/controller/message.c
unit-controller-message_LIBS   := control offload
unit-controller-message_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
# The same with a pre-shared key.
TESTS += unit-controller-psk
unit-controller-psk_SRC    := tests/unit/control/service/controller/psk.c tests/unit/control/service/controller/fake.c
unit-controller-psk_LIBS   := control agent secure offload
unit-controller-psk_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
