# tests/model: explores all reachable states of the real engine and endpoint in small fabrics
# (docs/model.md).
MODEL_SRC := \
	tests/model/canon.c \
	tests/model/component.c \
	tests/model/config.c \
	tests/model/explore.c \
	tests/model/host.c \
	tests/model/live.c \
	tests/model/message.c \
	tests/model/node.c \
	tests/model/oracle.c \
	tests/model/plan.c \
	tests/model/resume.c \
	tests/model/rounds.c \
	tests/model/run.c \
	tests/model/trace.c \
	tests/model/world.c \
	tests/sim/fabric.c \
	tests/sim/image.c

TOOLS += model
model_SRC  := tests/model/main.c $(MODEL_SRC)
model_LIBS := offload
# The calls of a tree of rounds pass through rounds.c.
MODEL_WRAP := -Wl,--wrap=by_endpoint_post -Wl,--wrap=by_endpoint_test
model_LDLIBS := $(MODEL_WRAP)

TESTS += test_model
test_model_SRC    := tests/model/test_model.c $(MODEL_SRC)
test_model_LIBS   := offload
test_model_LDLIBS := -lcmocka $(MODEL_WRAP)

.PHONY: model model-smoke model-mutations
model: $(B)/tools/model $(B)/tests/test_model ## explore all states of the protocol's real code in small fabrics
	$(Q)$(B)/tools/model --jobs $(shell nproc)
	$(Q)MODEL_FULL=1 $(B)/tests/test_model

MUTATION_TESTS := unit-engine-flips unit-engine-gap unit-engine-keyed unit-engine-packets unit-engine-poison unit-engine-runs \
	test_endpoint_accept test_endpoint_keyed test_endpoint_rounds test_endpoint_send test_endpoint_session test_endpoint_standby test_endpoint_timer \
	test_sim_again test_sim_fairness test_sim_resume test_sim_standby
MUTATIONS = MODEL_WRAP="$(MODEL_WRAP)" $(foreach t,$(MUTATION_TESTS),OBJECTS_$(subst -,_,$(t))="$(call obj,$($(t)_SRC))") tests/model/mutations.sh $(B) "$(CC) $(BASE) $(PICFLAG) $(FLAGS_offload)" "$(CC) $(LDSAN)" "$(call obj,$(model_SRC))"

model-smoke: $(B)/tools/model $(foreach t,$(MUTATION_TESTS),$(B)/tests/$(t))
	$(Q)$(MUTATIONS) --apply one-bank no-second-sum seal-is-ignored held-is-ignored \
		forged-err-at-node forged-wait-at-host err-outside-tag err-takes-waiting-bank

model-mutations: $(B)/tools/model $(foreach t,$(MUTATION_TESTS),$(B)/tests/$(t)) ## remove the rules of the protocol's code one by one and verify that the exploration detects each
	$(Q)$(MUTATIONS)
