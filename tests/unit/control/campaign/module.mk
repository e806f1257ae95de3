# The planner on random fabrics: a tool for `make planner-check` (tests/oracle).
TOOLS += plan-campaign
plan-campaign_SRC := \
	tests/unit/control/campaign/campaign.c \
	tests/unit/control/campaign/cuts.c \
	tests/unit/control/campaign/fabric.c \
	tests/unit/control/campaign/program.c \
	tests/unit/control/campaign/ratio.c
plan-campaign_LIBS   := control offload
plan-campaign_LDLIBS := -ljansson -lgmp
