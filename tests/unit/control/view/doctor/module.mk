# Unit tests of control/view/doctor, with artificial facts.
TESTS += unit-doctor
unit-doctor_SRC    := tests/unit/control/view/doctor/test_doctor.c tests/unit/control/view/doctor/test_report.c tests/unit/control/view/doctor/sound.c tests/unit/control/service/controller/fake.c offload/linux/device.c offload/linux/feature.c
unit-doctor_LIBS   := control agent secure offload
unit-doctor_LDLIBS := -lcmocka -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
