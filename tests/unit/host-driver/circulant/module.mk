# Unit tests of the schedules between hosts, and a check of their range.
CIRCULANT_SRC := host-driver/circulant/rounds.c host-driver/circulant/schedule.c
TESTS += test_host_circulant
test_host_circulant_SRC    := tests/unit/host-driver/circulant/test_circulant.c tests/unit/host-driver/circulant/conditions.c \
                              tests/unit/host-driver/circulant/execute.c tests/unit/host-driver/circulant/naive.c $(CIRCULANT_SRC)
test_host_circulant_LDLIBS := -lcmocka

TOOLS += circulant-check
circulant-check_SRC := tests/unit/host-driver/circulant/check.c tests/unit/host-driver/circulant/conditions.c $(CIRCULANT_SRC)

.PHONY: circulant-check
circulant-check: $(B)/tools/circulant-check ## check schedules between hosts: every rank of every count up to 20,000, some of each up to 10^6
	$(Q)$(B)/tools/circulant-check
