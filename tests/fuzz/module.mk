# fuzz: libFuzzer targets, built by clang in a separate variant (FUZZ=1). `make fuzz TIME=60` runs
# each for 60 seconds.
FUZZERS := fuzz-wire fuzz-image fuzz-engine fuzz-endpoint fuzz-cluster fuzz-agent fuzz-message fuzz-topology fuzz-plan \
           fuzz-nccl fuzz-ibnetdiscover fuzz-lldp fuzz-dot fuzz-shares fuzz-pmi fuzz-series fuzz-member fuzz-schedule
TIME    ?= 60

ifeq ($(FUZZ),1)
TOOLS += $(FUZZERS)
FUZZ_FABRIC := tests/fuzz/input.c tests/sim/fabric.c tests/sim/image.c
fuzz-wire_SRC     := tests/fuzz/wire.c $(FUZZ_FABRIC)
fuzz-member_SRC   := tests/fuzz/member.c
fuzz-image_SRC    := tests/fuzz/image.c tests/unit/offload/table/sample.c
fuzz-engine_SRC   := tests/fuzz/engine.c $(FUZZ_FABRIC)
fuzz-endpoint_SRC := tests/fuzz/endpoint.c $(FUZZ_FABRIC)
fuzz-cluster_SRC  := tests/fuzz/cluster.c tests/sim/flip.c $(FUZZ_FABRIC)
fuzz-agent_SRC    := tests/fuzz/agent.c
fuzz-message_SRC  := tests/fuzz/message.c control/service/controller/message.c $(GEN)/proto/control.pb.c
$(B)/obj/tests/fuzz/message.o: | $(GEN)/proto/control.pb.h
fuzz-topology_SRC := tests/fuzz/topology.c
fuzz-plan_SRC     := tests/fuzz/plan.c
fuzz-wire_LIBS     := offload
fuzz-member_LIBS   := offload
fuzz-image_LIBS    := offload
fuzz-engine_LIBS   := offload
fuzz-endpoint_LIBS := offload
fuzz-cluster_LIBS  := offload
fuzz-agent_LIBS    := agent offload
fuzz-message_LIBS  := offload
fuzz-topology_LIBS := control offload
fuzz-plan_LIBS     := control offload
fuzz-wire_LDLIBS     := -fsanitize=fuzzer
fuzz-member_LDLIBS   := -fsanitize=fuzzer
fuzz-image_LDLIBS    := -fsanitize=fuzzer
fuzz-engine_LDLIBS   := -fsanitize=fuzzer
fuzz-endpoint_LDLIBS := -fsanitize=fuzzer
fuzz-cluster_LDLIBS  := -fsanitize=fuzzer
fuzz-agent_LDLIBS    := -fsanitize=fuzzer -lprotobuf-nanopb
fuzz-message_LDLIBS  := -fsanitize=fuzzer -lprotobuf-nanopb
fuzz-topology_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lm
fuzz-plan_LDLIBS     := -fsanitize=fuzzer -ljansson -lgmp -lm
fuzz-schedule_SRC    := tests/fuzz/schedule.c
fuzz-schedule_LIBS   := control offload
fuzz-schedule_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-nccl_SRC    := tests/fuzz/import_nccl.c tests/fuzz/import.c
fuzz-nccl_LIBS   := control offload
fuzz-nccl_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-ibnetdiscover_SRC    := tests/fuzz/import_ibnetdiscover.c tests/fuzz/import.c
fuzz-ibnetdiscover_LIBS   := control offload
fuzz-ibnetdiscover_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-lldp_SRC    := tests/fuzz/import_lldp.c tests/fuzz/import.c
fuzz-lldp_LIBS   := control offload
fuzz-lldp_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-dot_SRC    := tests/fuzz/import_dot.c tests/fuzz/import.c
fuzz-dot_LIBS   := control offload
fuzz-dot_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-shares_SRC    := tests/fuzz/shares.c
fuzz-shares_LIBS   := control offload
fuzz-shares_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lm
fuzz-series_SRC    := tests/fuzz/series.c
fuzz-series_LIBS   := control offload
fuzz-series_LDLIBS := -fsanitize=fuzzer -ljansson -lgmp -lexpat -lm
fuzz-pmi_SRC    := tests/fuzz/pmi.c
fuzz-pmi_LIBS   := host-driver offload
fuzz-pmi_LDLIBS = -fsanitize=fuzzer $(host-driver_LDLIBS)
endif

FUZZ_MAKE = $(MAKE) --no-print-directory CC=$(CLANG) FUZZ=1 SANITIZE=$(SANITIZERS),fuzzer-no-link

.PHONY: fuzz fuzz-smoke fuzz-build fuzz-built fuzz-run fuzz-campaign fuzz-campaign-run
fuzz: ## run every fuzz target for TIME= seconds (default 60), with address and undefined behaviour sanitizers
	+$(Q)$(FUZZ_MAKE) fuzz-run TIME=$(TIME)

fuzz-built: $(foreach f,$(FUZZERS),$(B)/tools/$(f))
fuzz-build:
	+$(Q)$(FUZZ_MAKE) fuzz-built

fuzz-smoke:
	+$(Q)$(FUZZ_MAKE) fuzz-run TIME=3

fuzz-campaign: ## fuzz with millions of packets and control messages, counted, with and without keys: 13 runs of TIME= seconds
	+$(Q)$(FUZZ_MAKE) fuzz-campaign-run TIME=$(TIME)

FUZZ_CAMPAIGN := fuzz-wire fuzz-engine fuzz-endpoint fuzz-cluster fuzz-agent fuzz-message fuzz-member
fuzz-campaign-run: $(foreach f,$(FUZZ_CAMPAIGN),$(B)/tools/$(f))
	$(Q)tests/fuzz/campaign.sh $(B)/tools $(TIME)

fuzz-run: fuzz-built
	$(Q)tests/fuzz/run.sh $(B)/tools $(TIME) $(FUZZERS)
