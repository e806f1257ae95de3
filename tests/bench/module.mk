# bench: measurements, built only for a target that needs them.

TOOLS += bench-kernels
bench-kernels_SRC  := tests/bench/kernels.c
bench-kernels_LIBS := offload

TOOLS += bench-passes
bench-passes_SRC  := tests/bench/passes.c
bench-passes_LIBS := offload
SRCFLAGS_tests/bench/passes.c := -O3 -ffp-contract=off -fno-trapping-math $(if $(filter x86_64,$(ARCH)),-mavx2 -DBY_VECTOR_BYTES=32)

TOOLS += bench-engine
bench-engine_SRC  := tests/bench/engine.c
bench-engine_LIBS := offload

TOOLS += bench-circulant
bench-circulant_SRC  := tests/bench/circulant.c tests/unit/host-driver/circulant/naive.c \
                        host-driver/circulant/rounds.c host-driver/circulant/schedule.c

# Re-planning after losses, in one process.
TOOLS += bench-replan
bench-replan_SRC    := tests/bench/replan.c
bench-replan_LIBS   := control offload
bench-replan_LDLIBS := -ljansson -lgmp -lm

TOOLS += bench-cable
bench-cable_SRC := tests/bench/cable.c

# Load generator and reference for banyan-switchd, on DPDK ports.
TOOLS += bench-hosts bench-multicast bench-shell bench-workers
bench-workers_SRC      := tests/bench/workers.c tests/unit/dataplane/wires.c tests/unit/firmware/star.c
bench-workers_LIBS     := dataplane offload
bench-workers_LDLIBS    = $(shell pkg-config --libs libdpdk) -lxdp -lbpf -lpthread
bench-shell_SRC        := tests/bench/shell.c tests/unit/firmware/star.c
bench-shell_LIBS       := dataplane offload
bench-shell_LDLIBS      = $(shell pkg-config --libs libdpdk) -lxdp -lbpf -lpthread
bench-hosts_SRC        := tests/bench/hosts.c tests/unit/firmware/star.c
bench-multicast_SRC    := tests/bench/multicast.c tests/unit/firmware/star.c
bench-hosts_LIBS       := offload
bench-multicast_LIBS   := offload
bench-hosts_LDLIBS      = $(shell pkg-config --libs libdpdk) -lpthread
bench-multicast_LDLIBS  = $(bench-hosts_LDLIBS)
$(foreach s,hosts multicast shell workers,$(eval SRCFLAGS_tests/bench/$(s).c := $(shell pkg-config --cflags libdpdk 2>/dev/null) -Wno-pedantic))

TOOLS += bench-modes
bench-modes_SRC    := tests/bench/modes.c
bench-modes_LIBS   := host-driver offload
bench-modes_LDLIBS = $(host-driver_LDLIBS)

TOOLS += bench-push
bench-push_SRC    := tests/bench/push.c tests/unit/control/service/controller/fake.c
bench-push_LIBS   := control agent secure offload
bench-push_LDLIBS := -ljansson -lgmp -lprotobuf-nanopb -lssl -lcrypto -lpthread
$(B)/obj/tests/bench/push.o: | $(GEN)/proto/control.pb.h

# The cost of connecting controllers for the thread that moves packets.
TOOLS += bench-handshakes
bench-handshakes_SRC    := tests/bench/handshakes.c tests/unit/firmware/secure/keys.c firmware/linux/carrier.c firmware/linux/server.c dataplane/say.c tests/unit/firmware/agent/rig.c tests/unit/firmware/client.c \
                           tests/unit/firmware/star.c
bench-handshakes_LIBS   := control agent secure offload
bench-handshakes_LDLIBS := -lcmocka -ljansson -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
$(B)/obj/tests/bench/handshakes.o: | $(GEN)/proto/control.pb.h

.PHONY: bench
bench: all build-tools ## benchmark kernels, engine, modes, planner, switch and whole allreduces (PART=kernels|engine|modes|planner|sim|lossy|lab-lossy|push|instructions|workers|circulant|hosts|broadcast|alltoall|short|switchd|xdp|memory|python|torch|mpi|mpi-ranks|mpi-full)
	$(Q)tests/bench/bench.sh $(B) $(PART)

.PHONY: bounds-table
bounds-table: all ## measure the table of docs/bounds.md again
	$(Q)tests/bench/bounds.sh $(B)

.PHONY: growth
growth: all ## draw docs/pictures/planner-growth.svg again: planning time against size
	$(Q)tests/bench/planner.sh $(B) growth docs/pictures/planner-growth.svg

# A series of one collective between hosts, for schedules of banyan steady.
TOOLS += bench-series
bench-series_SRC    := tests/bench/series.c
bench-series_LIBS   := host-driver offload
bench-series_LDLIBS := $(host-driver_LDLIBS)
