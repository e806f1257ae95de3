# The MPI plugins: the same shim compiled for each MPI, with libbanyan inside. `make mpi` builds
# them; it requires the headers of the MPIs.
MPI_CORE    := host-driver/plugin/mpi/core.c host-driver/plugin/mpi/flight.c host-driver/plugin/mpi/kept.c host-driver/plugin/mpi/convert.c host-driver/plugin/mpi/sequencer.c host-driver/plugin/mpi/opening.c host-driver/plugin/mpi/origin.c
MPI_SHIM    := host-driver/plugin/mpi/comms.c host-driver/plugin/mpi/near.c host-driver/plugin/mpi/requested.c host-driver/plugin/mpi/served.c host-driver/plugin/mpi/shares.c host-driver/plugin/mpi/shim.c host-driver/plugin/mpi/timing.c host-driver/plugin/mpi/types.c host-driver/plugin/mpi/work.c
MPI_LIB     := $(B)/lib/banyan
MPI_PRELOAD := $(MPI_LIB)/libbanyan-mpich.so
MPI_COLL    := $(MPI_LIB)/openmpi/mca_coll_banyan.so
MPI_HOOK    := $(MPI_LIB)/openmpi/mca_hook_banyan.so

LIBS += mpi-core
mpi-core_SRC := $(MPI_CORE)

# Only symbols of banyan are exported. The preload does not link with MPI: processes that load it have
# it. The component does, since a program may load Open MPI without making its symbols global (Python).
mpi_compile = $(Q)mkdir -p $(@D) && $(1) $(BASE) $(PICFLAG) -D_GNU_SOURCE -Ihost-driver/include -fvisibility=hidden -MMD -MP $(CFLAGS) -c -o $@ $<
mpi_headers = $(patsubst -I%,-isystem %,$(filter -I%,$(shell mpicc.$(1) -show)))
mpi_objects = $(patsubst host-driver/plugin/mpi/%.c,$(B)/obj/mpi/$(1)/%.o,$(MPI_SHIM) $(2))
MPI_OPENMPI := $(call mpi_objects,openmpi,host-driver/plugin/mpi/coll.c)
MPI_LOADED  := host-driver/plugin/mpi/preload.c host-driver/plugin/mpi/preload_checks.c host-driver/plugin/mpi/preload_requests.c
MPI_MPICH   := $(call mpi_objects,mpich,$(MPI_LOADED))
-include $(patsubst %.o,%.d,$(MPI_OPENMPI) $(MPI_MPICH))

$(MPI_OPENMPI): $(B)/obj/mpi/openmpi/%.o: host-driver/plugin/mpi/%.c
	$(call say,CC,"$< for Open MPI")
	$(call mpi_compile,$(CC) $(call mpi_headers,openmpi))
$(MPI_MPICH): $(B)/obj/mpi/mpich/%.o: host-driver/plugin/mpi/%.c
	$(call say,CC,"$< for MPICH")
	$(call mpi_compile,$(CC) $(call mpi_headers,mpich))

MPI_PARTS := $(B)/lib/libmpi-core.a $(B)/lib/libhost-driver.a $(B)/lib/liboffload.a
mpi_link = $(Q)mkdir -p $(@D) && $(CC) $(LDSAN) -shared -o $@ $(filter %.o,$^) $(MPI_PARTS) -Wl,--exclude-libs,ALL $(host-driver_LDLIBS) $(LDFLAGS)
$(MPI_PRELOAD): $(MPI_MPICH) $(MPI_PARTS)
	$(call say,LD,$@)
	$(mpi_link)
$(MPI_COLL): $(MPI_OPENMPI) $(MPI_PARTS)
	$(call say,LD,$@)
	$(mpi_link) $(filter -L% -l%,$(shell mpicc.openmpi -show))
# One library, two components of Open MPI, which looks for each by a name of its own.
$(MPI_HOOK): $(MPI_COLL)
	$(Q)ln -sf $(<F) $@

.PHONY: mpi mpi-deps mpi-build
mpi-deps:
	$(Q)tests/deps.sh base mpi
mpi-build: build-all $(MPI_PRELOAD) $(MPI_COLL) $(MPI_HOOK)
mpi: mpi-deps ## build the plugins for Open MPI and MPICH (banyan-run); installs their packages
	$(Q)$(MAKE) --no-print-directory mpi-build

# Lint checks them if the headers are installed.
ifneq ($(shell command -v mpicc.openmpi && command -v mpicc.mpich),)
LINT_MORE += $(MPI_SHIM) $(MPI_LOADED) host-driver/plugin/mpi/coll.c
$(foreach s,$(MPI_SHIM) $(MPI_LOADED),$(eval SRCFLAGS_$(s) = $$(call mpi_headers,mpich)))
SRCFLAGS_host-driver/plugin/mpi/coll.c = $(call mpi_headers,openmpi)
endif
