# Unit tests of the parts of banyand that require no fabric.
TESTS += daemon-recover daemon-recover-part daemon-recover-orders
RECOVER_RIG := tests/unit/control/service/daemon/world.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recover_SRC           := tests/unit/control/service/daemon/test_recover.c $(RECOVER_RIG)
daemon-recover_LIBS          := offload
daemon-recover_LDLIBS        := -lcmocka
daemon-recover-part_SRC      := tests/unit/control/service/daemon/test_recover_part.c $(RECOVER_RIG)
daemon-recover-part_LIBS     := offload
daemon-recover-part_LDLIBS   := -lcmocka
daemon-recover-orders_SRC    := tests/unit/control/service/daemon/test_recover_orders.c $(RECOVER_RIG)
daemon-recover-orders_LIBS   := offload
daemon-recover-orders_LDLIBS := -lcmocka
TESTS += daemon-swallow
daemon-swallow_SRC    := tests/unit/control/service/daemon/test_blackhole.c control/service/daemon/blackhole.c
daemon-swallow_LIBS   := offload
daemon-swallow_LDLIBS := -lcmocka
TESTS += daemon-apart
daemon-apart_SRC    := tests/unit/control/service/daemon/test_apart.c control/service/daemon/apart.c
daemon-apart_LIBS   := control offload
daemon-apart_LDLIBS := -lcmocka -ljansson -lgmp

# The whole daemon, and its parts for planning, admission and persistence.
DAEMON_RIG := tests/unit/control/service/daemon/rig.c tests/unit/control/service/controller/fake.c tests/unit/control/tables/bench.c
DAEMON_LDLIBS := -lcmocka -lsqlite3 -lmicrohttpd -lcurl -ljansson -lexpat -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
TESTS += daemon-whole
daemon-whole_SRC    := tests/unit/control/service/daemon/test_daemon.c $(DAEMON_RIG)
daemon-whole_LIBS   := daemon control agent secure offload
daemon-whole_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-stored
daemon-stored_SRC    := tests/unit/control/service/daemon/test_stored.c $(DAEMON_RIG)
daemon-stored_LIBS   := daemon control agent secure offload
daemon-stored_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-pushes
daemon-pushes_SRC    := tests/unit/control/service/daemon/test_pushes.c $(DAEMON_RIG)
daemon-pushes_LIBS   := daemon control agent secure offload
daemon-pushes_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-etcd
daemon-etcd_SRC    := tests/unit/control/service/daemon/test_etcd.c $(DAEMON_RIG)
daemon-etcd_LIBS   := daemon control agent secure offload
daemon-etcd_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-groups
daemon-groups_SRC    := tests/unit/control/service/daemon/test_groups.c $(DAEMON_RIG)
daemon-groups_LIBS   := daemon control agent secure offload
daemon-groups_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-tables
daemon-tables_SRC    := tests/unit/control/service/daemon/test_tables.c tests/unit/control/tables/bench.c
daemon-tables_LIBS   := daemon control secure offload
daemon-tables_LDLIBS := $(DAEMON_LDLIBS)

TESTS += daemon-latency
daemon-latency_SRC    := tests/unit/control/service/daemon/test_latency.c
daemon-latency_LIBS   := daemon control secure offload
daemon-latency_LDLIBS := $(DAEMON_LDLIBS)

# The live page.
TESTS += daemon-rates daemon-live daemon-http
daemon-rates_SRC    := tests/unit/control/service/daemon/test_rates.c control/service/daemon/rates.c
daemon-rates_LIBS   := offload
daemon-rates_LDLIBS := -lcmocka
daemon-live_SRC     := tests/unit/control/service/daemon/test_live.c
daemon-live_LIBS    := daemon control secure offload
daemon-live_LDLIBS  := $(DAEMON_LDLIBS)
daemon-http_SRC     := tests/unit/control/service/daemon/test_http.c $(DAEMON_RIG)
daemon-http_LIBS    := daemon control agent secure offload
daemon-http_LDLIBS  := $(DAEMON_LDLIBS)

# The server of hosts; over TLS with the client of libbanyan.
TESTS += daemon-members daemon-members-tls
MEMBERS_RIG := tests/unit/control/service/daemon/loop.c tests/unit/control/tables/bench.c
daemon-members_SRC        := tests/unit/control/service/daemon/test_members.c $(MEMBERS_RIG)
daemon-members_LIBS       := $(banyand_LIBS)
daemon-members_LDLIBS      = -lcmocka $(banyand_LDLIBS)
daemon-members-tls_SRC    := tests/unit/control/service/daemon/test_members_tls.c tests/unit/firmware/secure/keys.c host-driver/line.c $(MEMBERS_RIG)
daemon-members-tls_LIBS   := $(banyand_LIBS)
daemon-members-tls_LDLIBS  = -lcmocka $(banyand_LDLIBS)
TESTS += daemon-ahead
daemon-ahead_SRC    := tests/unit/control/service/daemon/test_ahead.c tests/unit/control/tables/bench.c
daemon-ahead_LIBS   := daemon control secure offload
daemon-ahead_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-options daemon-queue
daemon-options_SRC    := tests/unit/control/service/daemon/test_options.c
daemon-options_LIBS   := daemon control secure offload
daemon-options_LDLIBS := $(DAEMON_LDLIBS)
daemon-queue_SRC      := tests/unit/control/service/daemon/test_queue.c
daemon-queue_LIBS     := daemon control secure offload
daemon-queue_LDLIBS   := $(DAEMON_LDLIBS)
