# tests/sim: the real engine and endpoint in a simulated fabric.
SIM_SRC := \
	tests/sim/cabling.c \
	tests/sim/draw.c \
	tests/sim/fabric.c \
	tests/sim/flip.c \
	tests/sim/image.c \
	tests/sim/oracle.c \
	tests/sim/scenario.c

TOOLS += sim
sim_SRC := tests/sim/main.c tests/sim/goodput.c $(SIM_SRC)
sim_LIBS := world offload

TESTS += test_sim_campaign test_sim_failure test_sim_again test_sim_modes test_sim_flips test_sim_fairness test_sim_resume
test_sim_campaign_SRC    := tests/sim/test_campaign.c tests/sim/goodput.c $(SIM_SRC)
test_sim_campaign_LIBS   := world offload
test_sim_campaign_LDLIBS := -lcmocka
test_sim_failure_SRC     := tests/sim/test_failure.c $(SIM_SRC)
test_sim_failure_LIBS    := world offload
test_sim_failure_LDLIBS  := -lcmocka
test_sim_again_SRC       := tests/sim/test_again.c $(SIM_SRC)
test_sim_again_LIBS      := world offload
test_sim_again_LDLIBS    := -lcmocka
test_sim_modes_SRC       := tests/sim/test_modes.c $(SIM_SRC)
test_sim_modes_LIBS      := world offload
test_sim_modes_LDLIBS    := -lcmocka
test_sim_flips_SRC       := tests/sim/test_flips.c $(SIM_SRC)
test_sim_flips_LIBS      := world offload
test_sim_flips_LDLIBS    := -lcmocka

test_sim_fairness_SRC    := tests/sim/test_fairness.c $(SIM_SRC)
test_sim_fairness_LIBS   := world offload
test_sim_fairness_LDLIBS := -lcmocka

TESTS += test_sim_shares
test_sim_shares_SRC    := tests/sim/test_shares.c $(SIM_SRC)
test_sim_shares_LIBS   := world offload
test_sim_shares_LDLIBS := -lcmocka

test_sim_resume_SRC    := tests/sim/test_resume.c $(SIM_SRC)
test_sim_resume_LIBS   := world offload
test_sim_resume_LDLIBS := -lcmocka

TESTS += test_sim_standby
test_sim_standby_SRC    := tests/sim/test_standby.c $(SIM_SRC)
test_sim_standby_LIBS   := world offload
test_sim_standby_LDLIBS := -lcmocka

TESTS += test_sim_standby_time
test_sim_standby_time_SRC    := tests/sim/test_standby_time.c $(SIM_SRC)
test_sim_standby_time_LIBS   := world offload
test_sim_standby_time_LDLIBS := -lcmocka

N ?= 1000
SEED ?= 1
.PHONY: sim
sim: $(B)/tools/sim ## run N= random scenarios of SEED= in the simulator
	$(Q)tests/sim/run.sh $(B)/tools/sim $(N) $(SEED)
