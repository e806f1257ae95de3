# tests: unit programs, simulation, lab runs, lint, benches. Each subfolder appends its own.
include $(wildcard tests/*/module.mk tests/unit/*/module.mk tests/unit/*/*/module.mk tests/unit/*/*/*/module.mk)

SANITIZERS := address,undefined

.PHONY: workers-tsan check once once-emulated repeat-check test test-neon test-avx512 unit sanitizers sanitizers-build install-check build-tests build-tools
test: deps ## run all tests: unit, golden, simulation, sanitizers, fuzz smoke, lint, lab; ends with `N passed, N failed`; ONLY=PART runs one part
	$(Q)ONLY="$(ONLY)" tests/test.sh "$(MAKE)"

check: deps ## run the checks before a commit: build, unit tests, short simulation, lint of changed files (BASE_COMMIT=); three minutes
	$(Q)tests/check.sh "$(MAKE)" $(BASE_COMMIT)

once: ## check that the kernels read each input byte once: gcc and clang at -O1, -O2 and -O3, single-stepped
	$(Q)tests/once.sh "$(MAKE)" $(O)

once-emulated: ## the same as once, on emulated processors with AVX-512 and NEON; installs bochs, qemu-user and a cross-compiler
	$(Q)tests/avx512/avx512.sh "$(MAKE)" $(O) reduce-once
	$(Q)tests/neon.sh "$(MAKE)" $(O) reduce-once

test-neon: ## run the kernels' tests for aarch64, in emulation; installs a cross-compiler and qemu-user
	$(Q)tests/neon.sh "$(MAKE)" $(O)

test-avx512: ## run the kernels' tests on an emulated processor with AVX-512; three minutes; installs bochs
	$(Q)tests/avx512/avx512.sh "$(MAKE)" $(O)

build-tests: $(foreach t,$(TESTS),$(B)/tests/$(t))

build-tools: $(foreach t,$(TOOLS),$(B)/tools/$(t))

# Tests that take long start first.
LONG_TESTS := test_model test_host_fallback% test_sim_% plan-%
unit_tests = $(filter-out $(WITHOUT),$(TESTS))
unit: build-tests ## build and run the unit tests
	$(Q)tests/run.sh $(B)/tests $(filter $(LONG_TESTS),$(unit_tests)) $(filter-out $(LONG_TESTS),$(unit_tests))

repeat-check: ## verify that a test that fails once counts as failed even if its repetition passes
	$(Q)tests/repeat.sh

install-check: build-all
	$(Q)tests/install.sh "$(MAKE)"

sanitizers-build:
	$(Q)$(MAKE) --no-print-directory SANITIZE=$(SANITIZERS) build-tests

workers-tsan: ## run the switch with 1, 2, 4 and 8 workers under ThreadSanitizer; a minute, and two to build
	$(Q)$(MAKE) --no-print-directory SANITIZE=thread $(O)/thread/tests/workers_test $(O)/thread/tests/commits_test
	$(Q)TSAN_OPTIONS="suppressions=tests/unit/dataplane/tsan.txt history_size=7 halt_on_error=0 exitcode=66 $$TSAN_OPTIONS" $(O)/thread/tests/workers_test
	$(Q)COMMITS=40 TSAN_OPTIONS="suppressions=tests/unit/dataplane/tsan.txt history_size=7 halt_on_error=0 exitcode=66 $$TSAN_OPTIONS" $(O)/thread/tests/commits_test

.PHONY: commit-campaign
commit-campaign: $(B)/tests/commits_test ## commit tables 1,000 times under load with 1, 2 and 4 workers; prints for how long the workers stood still
	$(Q)COMMITS=$(or $(N),1000) $(B)/tests/commits_test

# Engine and endpoint run in `sim`. `make SANITIZE=address,undefined unit` includes the model and the
# campaigns, which then take ten minutes.
sanitizers: ## run unit tests and simulation in a build with sanitizers
	$(Q)TEST_TIMEOUT=$${TEST_TIMEOUT:-600} $(MAKE) --no-print-directory SANITIZE=$(SANITIZERS) \
	    WITHOUT="test_model test_sim_campaign test_sim_fairness test_sim_shares" unit sim N=60
