# Faults of the machine: no memory, full disks, short writes (fail.c, preloaded by inject.py). The
# plugins for MPI are tested if they are built (`make mpi`).
LINT_MORE += tests/inject/fail.c
-include $(B)/obj/tests/inject/fail.d
$(B)/lib/libfail.so: $(B)/obj/tests/inject/fail.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@ $<
INJECT_NEEDS := build-all $(B)/lib/libfail.so $(addprefix $(B)/tools/,example-in_process example-allreduce nccl-rank)

.PHONY: inject inject-smoke
inject: $(INJECT_NEEDS) ## make each allocation and write of the programs fail, one in a run; RUNS= of each kind, SEED=, ONLY=SCENARIO, STACKS=1: of calls with the same stack the first
	$(Q)tests/inject/inject.py --build $(B) --runs $(or $(RUNS),0) --seed $(or $(SEED),1) $(if $(STACKS),--stacks) $(ONLY)

# The writes of banyand are the same for each error; OpenSSL's allocations take long to count.
inject-smoke: $(INJECT_NEEDS)
	$(Q)tests/inject/inject.py --build $(B) --runs 3 --seed $(or $(SEED),1) \
	    $(addprefix --without ,banyand_serves:enospc banyand_serves:short banyand_tls:memory)
