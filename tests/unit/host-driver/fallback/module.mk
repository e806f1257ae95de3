# Collectives between hosts, each rank a process on the loopback interface.
TESTS += test_host_fallback
test_host_fallback_SRC    := tests/unit/host-driver/fallback/test_collectives.c tests/unit/host-driver/fallback/team.c
test_host_fallback_LIBS   := host-driver offload
test_host_fallback_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_fallback_ends
test_host_fallback_ends_SRC    := tests/unit/host-driver/fallback/test_ends.c tests/unit/host-driver/fallback/team.c \
                                  tests/unit/host-driver/rig.c tests/sim/fabric.c tests/sim/image.c
test_host_fallback_ends_LIBS   := host-driver offload
test_host_fallback_ends_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_fallback_divide
test_host_fallback_divide_SRC    := tests/unit/host-driver/fallback/test_divide.c tests/unit/host-driver/fallback/team.c \
                                    tests/unit/host-driver/rig.c tests/sim/fabric.c tests/sim/image.c
test_host_fallback_divide_LIBS   := host-driver offload
test_host_fallback_divide_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_exchange
test_host_exchange_SRC    := tests/unit/host-driver/fallback/test_exchange.c tests/unit/host-driver/fallback/team.c
test_host_exchange_LIBS   := host-driver offload
test_host_exchange_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_shares
test_host_shares_SRC    := tests/unit/host-driver/fallback/test_shares.c tests/unit/host-driver/fallback/team.c
test_host_shares_LIBS   := host-driver offload
test_host_shares_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_pipe
test_host_pipe_SRC    := tests/unit/host-driver/fallback/test_pipe.c
test_host_pipe_LIBS   := host-driver offload
test_host_pipe_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_links
test_host_links_SRC    := tests/unit/host-driver/fallback/test_links.c
test_host_links_LIBS   := host-driver offload
test_host_links_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_many
test_host_many_SRC    := tests/unit/host-driver/fallback/test_many.c tests/unit/host-driver/fallback/team.c
test_host_many_LIBS   := host-driver offload
test_host_many_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_groups
test_host_groups_SRC    := tests/unit/host-driver/fallback/test_groups.c tests/unit/host-driver/fallback/team.c
test_host_groups_LIBS   := host-driver offload
test_host_groups_LDLIBS = -lcmocka $(host-driver_LDLIBS)
