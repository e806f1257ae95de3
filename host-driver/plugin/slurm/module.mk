# The plugin for Slurm's srun, sbatch and salloc, and banyan-slurm, which slurmctld runs. `make
# slurm` builds them; the plugin requires the headers of Slurm, whose version it is for.
LIBS += slurm-record
slurm-record_SRC := host-driver/plugin/slurm/record.c

SLURM_DIR    := $(B)/lib/banyan/slurm
SLURM_PLUGIN := $(SLURM_DIR)/banyan.so
SLURM_OBJECT := $(B)/obj/slurm/plugin.o
-include $(SLURM_OBJECT:.o=.d)

$(SLURM_OBJECT): host-driver/plugin/slurm/plugin.c
	$(call say,CC,"$< for Slurm")
	$(Q)mkdir -p $(@D) && $(CC) $(BASE) $(PICFLAG) -D_GNU_SOURCE -MMD -MP $(CFLAGS) -c -o $@ $<
# The program that loads it has Slurm's functions.
$(SLURM_PLUGIN): $(SLURM_OBJECT) $(B)/lib/libslurm-record.a host-driver/plugin/slurm/plugin.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(LDSAN) -shared -o $@ -Wl,--version-script=host-driver/plugin/slurm/plugin.map $(SLURM_OBJECT) $(B)/lib/libslurm-record.a $(LDFLAGS)
$(SLURM_DIR)/banyan-slurm: host-driver/plugin/slurm/banyan-slurm
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

.PHONY: slurm slurm-deps slurm-build
slurm-deps:
	$(Q)tests/deps.sh base mpi slurm
slurm-build: mpi-build $(SLURM_PLUGIN) $(SLURM_DIR)/banyan-slurm
slurm: slurm-deps ## build the plugin for Slurm (srun --banyan); installs Slurm, and the packages of the MPI plugins
	$(Q)$(MAKE) --no-print-directory slurm-build

# Lint checks it if the headers are installed.
ifneq ($(wildcard /usr/include/slurm/spank.h),)
LINT_MORE += host-driver/plugin/slurm/plugin.c
endif
