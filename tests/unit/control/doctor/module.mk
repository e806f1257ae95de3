# Unit tests of control/doctor: facts that are made up, and what is found in them.
TESTS += unit-doctor
unit-doctor_SRC    := tests/unit/control/doctor/test_doctor.c tests/unit/control/doctor/test_report.c tests/unit/control/doctor/sound.c tests/unit/control/service/controller/fake.c ring/feature.c
unit-doctor_LIBS   := control agent secure offload
unit-doctor_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
