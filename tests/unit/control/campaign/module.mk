# The planner on random fabrics: a tool for `make planner-check` (tests/oracle).
TOOLS += plan-campaign
plan-campaign_SRC := \
	tests/unit/control/campaign/campaign.c \
	tests/unit/control/campaign/cuts.c \
	tests/unit/control/campaign/fabric.c \
	tests/unit/control/campaign/program.c \
	tests/unit/control/campaign/ratio.c
plan-campaign_LIBS   := control lp offload
plan-campaign_LDLIBS := -ljansson -lgmp -lClp

TOOLS += run-campaign
run-campaign_SRC := \
	tests/unit/control/campaign/mixed.c \
	tests/unit/control/campaign/runs.c
run-campaign_LIBS   := control lp control offload
run-campaign_LDLIBS := -ljansson -lgmp -lClp -lCoinUtils

# The gap between allreduce plans and their bounds, by family: `make planner-gap`.
TOOLS += plan-gap
plan-gap_SRC    := tests/unit/control/campaign/gap.c tests/unit/control/campaign/fabric.c
plan-gap_LIBS   := control lp offload
plan-gap_LDLIBS := -ljansson -lgmp -lClp
