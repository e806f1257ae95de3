# oracle: other people's solvers against the planner. oracle-flow is C++ over LEMON and links nothing of ours; where LEMON is missing the
# check says so and goes on.
CXX ?= g++
ORACLE_LEMON := $(wildcard /usr/include/lemon/preflow.h)
ORACLE_FLOW  := $(if $(ORACLE_LEMON),$(B)/tools/oracle-flow)

# Not instrumented: what it checks is the planner's output.
$(B)/tools/oracle-flow: tests/oracle/flow.cc
	$(call say,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -Wall -Wextra -Werror -Wno-maybe-uninitialized -o $@ $<

# N has a default of its own here; the simulator sets another.
PLANNER_N = $(if $(filter command override environment,$(firstword $(origin N))),$(N),2000)

.PHONY: planner-check
planner-check: $(B)/tools/plan-campaign $(B)/bin/banyan $(ORACLE_FLOW) ## N= random fabrics of SEED= planned, against every cut, the verifier, LEMON and glpsol
	$(Q)tests/oracle/planner.sh $(B)/tools $(B)/bin/banyan $(PLANNER_N) $(SEED)

.PHONY: bound-check
bound-check: $(B)/tools/bound-exhaustive ## bounds and rates of all connected graphs of up to 6 nodes, against every cut, partition and tree, and glpsol
	$(Q)tests/oracle/bound.sh $(B)/tools
