# Schedules of banyan steady, executed by libbanyan; each rank a process on the loopback interface.
TESTS += test_host_schedule
test_host_schedule_SRC    := tests/unit/host-driver/schedule/test_schedule.c tests/unit/host-driver/schedule/made.c \
                             tests/unit/host-driver/fallback/team.c tests/unit/control/study/steady/rig.c
test_host_schedule_LIBS   := host-driver steady lp control offload
test_host_schedule_LDLIBS = -lcmocka -lgmp -lClp $(host-driver_LDLIBS)
