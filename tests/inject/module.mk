# Faults of the machine: no memory, full disks, short writes (fail.c, preloaded by inject.py).
LINT_MORE += tests/inject/fail.c
-include $(B)/obj/tests/inject/fail.d
$(B)/lib/libfail.so: $(B)/obj/tests/inject/fail.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -o $@ $<

.PHONY: inject inject-smoke
inject: build-all $(B)/lib/libfail.so $(addprefix $(B)/tools/example-,in_process allreduce) ## make each allocation and write of the programs fail, one in a run; RUNS= of each kind, SEED=, ONLY=SCENARIO
	$(Q)tests/inject/inject.py --build $(B) --runs $(or $(RUNS),0) --seed $(or $(SEED),1) $(ONLY)

inject-smoke: build-all $(B)/lib/libfail.so $(addprefix $(B)/tools/example-,in_process allreduce)
	$(Q)tests/inject/inject.py --build $(B) --runs 3 --seed $(or $(SEED),1)
