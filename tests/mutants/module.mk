# Mutation testing of a room: `make mutants ROOM=offload/engine SAMPLE=200 SEED=1`. The world test, which runs forty
# scenarios without arguments, is one of the tests.
.PHONY: mutants
mutants: build-tests $(B)/tools/world-test ## change the code of ROOM= one place at a time and verify that a unit test fails (SAMPLE=, SEED=, LEAST=, MOST=, SLOWEST=, AGAIN=)
	$(if $(ROOM),,$(error ROOM= is missing: make mutants ROOM=offload/engine))
	$(shell mkdir -p $(B)/mutants)$(file >$(B)/mutants/tests,$(foreach t,$(TESTS) world-test,$(mutants_line)))
	$(Q)sed -i 's/ *@ */\n/g; s/^ *//' $(B)/mutants/tests && sed -i '/^$$/d; s/ *% */\t/g' $(B)/mutants/tests
	$(file >$(B)/mutants/flags,$(foreach v,$(filter SRCFLAGS_%,$(.VARIABLES)),$(v:SRCFLAGS_%=%)%$($(v))@))
	$(Q)sed -i 's/ *@ */\n/g' $(B)/mutants/flags && sed -i '/^$$/d; s/ *% */\t/' $(B)/mutants/flags
	$(Q)tests/mutants/mutants.py $(ROOM) --build $(B) --tests $(B)/mutants/tests --flags $(B)/mutants/flags --compile '$(subst ','\'',$(CC) $(BASE) $(PICFLAG) $(FLAGS_$(call room,$(ROOM)/x.c)) $(CFLAGS))' \
		--link '$(CC) $(LDSAN)' --seed $(or $(SEED),1) --sample $(or $(SAMPLE),0) --least $(or $(LEAST),95) \
		--sanitizers $(SANITIZERS) $(if $(MOST),--most $(MOST)) $(if $(SLOWEST),--slowest $(SLOWEST)) $(if $(AGAIN),--again $(AGAIN))
mutants_line = $(t)%$(call obj,$($(t)_SRC))%$(foreach l,$($(t)_LIBS),$(B)/lib/lib$(l).a)%$($(t)_LDLIBS) $(LDFLAGS)@
