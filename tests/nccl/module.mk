# The harness of the NCCL plugin: loads it as NCCL does, and plays NCCL's part.
NCCL_TESTS := nccl_net_test nccl_faults_test nccl_messages_test nccl_coll_test nccl_tuner_test
TESTS += $(NCCL_TESTS)
nccl_net_test_SRC         := tests/nccl/test_net.c tests/nccl/pair.c tests/nccl/driver.c
nccl_net_test_LDLIBS      := -lcmocka -ldl -lpthread
nccl_faults_test_SRC      := tests/nccl/test_faults.c tests/nccl/pair.c tests/nccl/driver.c
nccl_faults_test_LDLIBS   := -lcmocka -ldl -lpthread
nccl_coll_test_SRC        := tests/nccl/test_coll.c tests/nccl/work.c tests/nccl/coll.c tests/nccl/driver.c
nccl_coll_test_LDLIBS     := -lcmocka -ldl -lpthread
nccl_tuner_test_SRC       := tests/nccl/test_tuner.c tests/nccl/driver.c
nccl_tuner_test_LDLIBS    := -lcmocka -ldl -lpthread
# Without arguments: the short run of `make test`.
nccl_messages_test_SRC    := tests/nccl/campaign.c tests/nccl/driver.c
nccl_messages_test_LDLIBS := -ldl -lpthread
$(addprefix $(B)/tests/,$(NCCL_TESTS)): | $(NCCL_PLUGIN)

.PHONY: nccl-campaign nccl-sanitizers
nccl-campaign: build-all $(addprefix $(B)/tests/,$(NCCL_TESTS)) ## test the NCCL plugin: N= random messages (default 100000) in all versions, SEED=; then messages of up to 1 GiB
	$(Q)for test in $(filter-out nccl_messages_test,$(NCCL_TESTS)); do $(B)/tests/$$test || exit 1; done
	$(Q)$(B)/tests/nccl_messages_test $(or $(N),100000) $(or $(SEED),1)
	$(Q)$(B)/tests/nccl_messages_test 300 $(or $(SEED),1) 12 1073741824

nccl_sanitized = $(addprefix $(O)/$(1)/tests/,$(NCCL_TESTS))
nccl-sanitizers: ## test the NCCL plugin under ThreadSanitizer, then with addresses and undefined behaviour checked
	$(Q)$(MAKE) --no-print-directory SANITIZE=thread $(call nccl_sanitized,thread)
	$(Q)for test in $(call nccl_sanitized,thread); do TSAN_OPTIONS=exitcode=66 $$test || exit 1; done
	$(Q)$(MAKE) --no-print-directory SANITIZE=$(SANITIZERS) $(call nccl_sanitized,address-undefined)
	$(Q)for test in $(call nccl_sanitized,address-undefined); do $$test || exit 1; done

# A rank on a host of a lab, for lab-nccl.sh.
TOOLS += nccl-rank
nccl-rank_SRC    := tests/nccl/rank.c tests/nccl/work.c tests/nccl/coll.c tests/nccl/driver.c
nccl-rank_LDLIBS := -ldl -lpthread
$(B)/tools/nccl-rank: | $(NCCL_PLUGIN)
