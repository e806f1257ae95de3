# tests: unit programs, simulation, lab runs, lint, benches. Each sub-room appends its own.
include $(wildcard tests/*/module.mk tests/unit/*/module.mk tests/unit/*/*/module.mk)

.PHONY: unit
unit: $(foreach t,$(TESTS),$(B)/tests/$(t)) ## build and run the unit tests
	$(Q)tests/run.sh $(B)/tests $(TESTS)
