# One program for each file, all with the rig (rig.h).
ENGINE_TESTS := collectives det flips gap keyed load machine packets parts place poison repair runs share standby wide worker
TESTS += $(ENGINE_TESTS:%=unit-engine-%)
$(foreach test,$(ENGINE_TESTS),\
  $(eval unit-engine-$(test)_SRC := tests/unit/offload/engine/$(test).c tests/unit/offload/engine/rig.c)\
  $(eval unit-engine-$(test)_LIBS := offload)\
  $(eval unit-engine-$(test)_LDLIBS := -lcmocka))
unit-engine-det_LDLIBS += -lm
unit-engine-worker_LDLIBS += -lm
