# Branch coverage of the core and of the agent by their unit tests and the simulation, built by clang
# into a separate folder. Of offload/linux less is required: in many branches a call of the kernel
# fails. The programs of offload/xdp run in the kernel, which counts no branches.
COVERAGE      := $(O)/coverage
coverage_rooms := offload firmware/agent offload/linux=$(or $(LEAST),75)
# Tests of other folders take these branches too, but assert other things. reduce-once traces itself.
coverage_tests = $(filter-out reduce-once,$(foreach t,$(TESTS),$(if $(filter tests/unit/offload/% tests/unit/firmware/agent/% tests/sim/%,$(firstword $($(t)_SRC))),$(t))))
coverage_objects = $(patsubst $(B)/%,$(COVERAGE)/$(VARIANT)/%,$(call obj,$(filter offload/% firmware/agent/%,$(offload_SRC) $(agent_SRC)) $(wildcard offload/linux/*.c)))

.PHONY: coverage
coverage: ## branches of offload/ and firmware/agent taken by their tests; fails below LEAST= (95) percent; MISSING=1 lists the others
	$(Q)LLVM_PROFILE_FILE=/dev/null $(MAKE) --no-print-directory CC=clang O=$(COVERAGE) \
		CFLAGS='-fprofile-instr-generate -fcoverage-mapping' LDFLAGS=-fprofile-instr-generate \
		$(addprefix $(COVERAGE)/$(VARIANT)/tests/,$(coverage_tests)) $(coverage_objects)
	$(Q)rm -rf $(COVERAGE)/raw && mkdir -p $(COVERAGE)/raw
	$(Q)BY_TEST_SEED=1 LLVM_PROFILE_FILE=$(abspath $(COVERAGE))/raw/%p-%m.profraw tests/run.sh $(COVERAGE)/$(VARIANT)/tests \
		$(filter $(LONG_TESTS),$(coverage_tests)) $(filter-out $(LONG_TESTS),$(coverage_tests))
	$(Q)llvm-profdata merge -sparse $(COVERAGE)/raw/*.profraw -o $(COVERAGE)/taken.profdata
	$(Q)tests/coverage/coverage.py --profile $(COVERAGE)/taken.profdata --objects $(coverage_objects) --rooms $(coverage_rooms) \
		--least $(or $(LEAST),95) $(if $(MISSING),--missing)
