# Unit tests of the host driver.
HOST_RIG  := tests/unit/host-driver/rig.c tests/sim/fabric.c tests/sim/image.c
HOST_LIBS := host-driver offload
TESTS += test_host_settings test_host_faults test_host_oracle test_host_api test_host_fabric
test_host_settings_SRC    := tests/unit/host-driver/test_settings.c $(HOST_RIG)
test_host_faults_SRC      := tests/unit/host-driver/test_faults.c
test_host_oracle_SRC      := tests/unit/host-driver/test_oracle.c host-driver/tools/perf/oracle.c
test_host_api_SRC         := tests/unit/host-driver/test_api.c $(HOST_RIG)
test_host_fabric_SRC      := tests/unit/host-driver/test_fabric.c $(HOST_RIG) host-driver/tools/perf/run.c \
                             host-driver/tools/perf/world.c host-driver/tools/perf/oracle.c
test_host_settings_LIBS   := $(HOST_LIBS)
test_host_faults_LIBS     := $(HOST_LIBS)
test_host_oracle_LIBS     := offload
test_host_api_LIBS        := $(HOST_LIBS)
test_host_fabric_LIBS     := $(HOST_LIBS)
test_host_settings_LDLIBS = -lcmocka $(host-driver_LDLIBS)
$(B)/tests/test_host_settings: | $(B)/bin/banyan-perf
test_host_faults_LDLIBS   = -lcmocka $(host-driver_LDLIBS)
test_host_oracle_LDLIBS   := -lcmocka -lm
test_host_api_LDLIBS      = -lcmocka $(host-driver_LDLIBS)
test_host_fabric_LDLIBS   = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_examples
test_host_examples_SRC    := tests/unit/host-driver/test_examples.c $(HOST_RIG)
test_host_examples_LIBS   := $(HOST_LIBS)
test_host_examples_LDLIBS = -lcmocka $(host-driver_LDLIBS)
$(B)/tests/test_host_examples: | $(addprefix $(B)/tools/example-,$(EXAMPLES))

TESTS += test_host_afxdp
test_host_afxdp_SRC    := tests/unit/host-driver/test_afxdp.c $(HOST_RIG)
test_host_afxdp_LIBS   := $(HOST_LIBS)
test_host_afxdp_LDLIBS = -lcmocka $(host-driver_LDLIBS)
$(B)/tests/test_host_afxdp: | $(B)/bin/banyan-perf

TESTS += test_host_arena
test_host_arena_SRC    := tests/unit/host-driver/test_arena.c
test_host_arena_LIBS   := $(HOST_LIBS)
test_host_arena_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_options
test_host_options_SRC    := tests/unit/host-driver/test_options.c host-driver/tools/perf/options.c offload/linux/options.c offload/linux/options_help.c offload/linux/options_value.c
test_host_options_LIBS   := offload
test_host_options_LDLIBS := -lcmocka

TESTS += test_host_unequal
test_host_unequal_SRC    := tests/unit/host-driver/test_unequal.c $(HOST_RIG) host-driver/tools/perf/run.c \
                            host-driver/tools/perf/world.c host-driver/tools/perf/oracle.c
test_host_unequal_LIBS   := $(HOST_LIBS)
test_host_unequal_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_query
test_host_query_SRC    := tests/unit/host-driver/test_query.c $(HOST_RIG)
test_host_query_LIBS   := $(HOST_LIBS)
test_host_query_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_ends
test_host_ends_SRC    := tests/unit/host-driver/test_ends.c $(HOST_RIG)
test_host_ends_LIBS   := $(HOST_LIBS)
test_host_ends_LDLIBS = -lcmocka -lpthread $(host-driver_LDLIBS)

TESTS += test_mpi_core
test_mpi_core_SRC    := tests/unit/host-driver/test_mpi_core.c $(HOST_RIG)
test_mpi_core_LIBS   := mpi-core $(HOST_LIBS)
test_mpi_core_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_mpi_flight
test_mpi_flight_SRC    := tests/unit/host-driver/test_mpi_flight.c host-driver/plugin/mpi/flight.c host-driver/plugin/mpi/kept.c
test_mpi_flight_LDLIBS := -lcmocka -lpthread

TESTS += test_mpi_kept
test_mpi_kept_SRC    := tests/unit/host-driver/test_mpi_kept.c host-driver/plugin/mpi/kept.c
test_mpi_kept_LDLIBS := -lcmocka

TESTS += test_mpi_origin
test_mpi_origin_SRC    := tests/unit/host-driver/test_mpi_origin.c host-driver/plugin/mpi/origin.c
test_mpi_origin_LDLIBS := -lcmocka

TESTS += test_mpi_sequencer
test_mpi_sequencer_SRC    := tests/unit/host-driver/test_mpi_sequencer.c
test_mpi_sequencer_LIBS   := mpi-core $(HOST_LIBS)
test_mpi_sequencer_LDLIBS = -lcmocka -lpthread $(host-driver_LDLIBS)

TESTS += test_slurm_record
test_slurm_record_SRC    := tests/unit/host-driver/test_slurm_record.c
test_slurm_record_LIBS   := slurm-record
test_slurm_record_LDLIBS := -lcmocka

TESTS += test_mpi_convert
test_mpi_convert_SRC    := tests/unit/host-driver/test_mpi_convert.c
test_mpi_convert_LIBS   := mpi-core $(HOST_LIBS)
test_mpi_convert_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_modes
test_host_modes_SRC    := tests/unit/host-driver/test_modes.c $(HOST_RIG)
test_host_modes_LIBS   := $(HOST_LIBS)
test_host_modes_LDLIBS = -lcmocka $(host-driver_LDLIBS)

HOST_HUB := tests/unit/host-driver/hub.c tests/unit/host-driver/hub_calls.c $(HOST_RIG)
TESTS += test_host_survive test_host_standby
test_host_standby_SRC    := tests/unit/host-driver/test_standby.c $(HOST_HUB)
test_host_standby_LIBS   := $(HOST_LIBS)
test_host_standby_LDLIBS = -lcmocka $(host-driver_LDLIBS)
test_host_survive_SRC    := tests/unit/host-driver/test_survive.c $(HOST_HUB)
test_host_survive_LIBS   := $(HOST_LIBS)
test_host_survive_LDLIBS = -lcmocka -lpthread $(host-driver_LDLIBS)

TESTS += test_host_line
test_host_line_SRC    := tests/unit/host-driver/test_line.c
test_host_line_LIBS   := $(HOST_LIBS)
test_host_line_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_sole
test_host_sole_SRC    := tests/unit/host-driver/test_sole.c
test_host_sole_LIBS   := $(HOST_LIBS)
test_host_sole_LDLIBS = -lcmocka $(host-driver_LDLIBS)

TESTS += test_host_shm
test_host_shm_SRC    := tests/unit/host-driver/test_shm.c $(HOST_RIG)
test_host_shm_LIBS   := $(HOST_LIBS)
test_host_shm_LDLIBS = -lcmocka -lpthread $(host-driver_LDLIBS)

TESTS += test_host_dpdk test_host_dpdk_device
test_host_dpdk_SRC    := tests/unit/host-driver/test_dpdk.c $(HOST_RIG)
test_host_dpdk_LIBS   := $(HOST_LIBS)
test_host_dpdk_LDLIBS = -lcmocka $(host-driver_LDLIBS)
test_host_dpdk_device_SRC    := tests/unit/host-driver/test_dpdk_device.c host-driver/plugin/dpdk/device.c
test_host_dpdk_device_LDLIBS := -lcmocka
SRCFLAGS_tests/unit/host-driver/test_dpdk_device.c = $(FLAGS_dataplane)
# A plugin of another version.
LINT_MORE += tests/unit/host-driver/fake_dpdk.c
-include $(B)/obj/tests/unit/host-driver/fake_dpdk.d
$(B)/lib/libfake-dpdk.so: $(B)/obj/tests/unit/host-driver/fake_dpdk.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDSAN) -shared -o $@ $<
$(B)/tests/test_host_dpdk: | $(B)/lib/libfake-dpdk.so $(DPDK_PLUGIN)

# Each rank is a process.
TESTS += test_host_ranks
test_host_ranks_SRC    := tests/unit/host-driver/test_ranks.c tests/unit/host-driver/fallback/team.c $(HOST_RIG)
test_host_ranks_LIBS   := $(HOST_LIBS)
test_host_ranks_LDLIBS = -lcmocka $(host-driver_LDLIBS) -Wl,--wrap=by_isa_best
