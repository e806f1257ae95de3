# control: topology, planner, verifier, lowering, and the banyan command.
LIBS += control
control_SRC :=
PROGS += banyan
banyan_SRC := control/cli/main.c control/cli/cli.c
banyan_LIBS := control offload
banyan_LDLIBS := -ljansson -lgmp -lm
include $(wildcard control/*/module.mk control/*/*/module.mk)
