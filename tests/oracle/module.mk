# oracle: compares the planner with independent solvers. oracle-flow is C++ with LEMON and links no
# code of this tree; without LEMON the check reports that and continues.
CXX ?= g++
ORACLE_LEMON := $(wildcard /usr/include/lemon/preflow.h)
ORACLE_FLOW  := $(if $(ORACLE_LEMON),$(B)/tools/oracle-flow)

# Built without sanitizers: it only checks the planner's output.
$(B)/tools/oracle-flow: tests/oracle/flow.cc
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -Wall -Wextra -Werror -Wno-maybe-uninitialized -o $@ $<

# N has a separate default here; the simulator sets another one.
PLANNER_N = $(if $(filter command override environment,$(firstword $(origin N))),$(N),2000)

.PHONY: planner-check
planner-check: $(B)/tools/plan-campaign $(B)/tools/run-campaign $(B)/bin/banyan $(B)/bin/banyan-sim $(ORACLE_FLOW) ## plan N= random fabrics of SEED= and compare with every cut, the verifier, LEMON and glpsol
	$(Q)tests/oracle/planner.sh $(B)/tools $(B)/bin/banyan $(PLANNER_N) $(SEED)

.PHONY: planner-gap
planner-gap: $(B)/tools/plan-gap ## plan N= fabrics of each family with mixed switches and print how near allreduce is to its bound
	$(Q)$(B)/tools/plan-gap $(if $(N),$(N),20) $(if $(SEED),$(SEED),1)

.PHONY: bound-check
bound-check: $(B)/tools/bound-exhaustive ## compare bounds and rates of all connected graphs of up to 6 nodes with every cut, partition and tree, and glpsol
	$(Q)tests/oracle/bound.sh $(B)/tools

RUNS_N ?= 10000
RUNS_SIM ?= 400
RUNS_LAB ?= 8
.PHONY: run-campaign
run-campaign: all $(B)/tools/run-campaign ## plan RUNS_N= random fabrics of mixed capabilities from SEED= on, compile all plans, simulate RUNS_SIM= and run RUNS_LAB= of them
	$(Q)tests/oracle/runs.sh $(B)/tools $(B)/bin/banyan $(RUNS_N) $(SEED) $(RUNS_SIM) $(RUNS_LAB)
