# The agent with a real engine, without sockets.
AGENT_RIG := tests/unit/firmware/agent/rig.c tests/unit/firmware/client.c tests/unit/firmware/star.c
TESTS += agent_test agent_answer_test agent_bare_test agent_guard_test agent_life_test agent_limit_test agent_record_test
agent_test_SRC := tests/unit/firmware/agent/agent_test.c $(AGENT_RIG)
agent_test_LIBS := agent offload
agent_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_answer_test_SRC := tests/unit/firmware/agent/answer_test.c $(AGENT_RIG)
agent_answer_test_LIBS := agent offload
agent_answer_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_bare_test_SRC := tests/unit/firmware/agent/bare_test.c $(AGENT_RIG)
agent_bare_test_LIBS := agent offload
agent_bare_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_guard_test_SRC := tests/unit/firmware/agent/guard_test.c $(AGENT_RIG)
agent_guard_test_LIBS := agent offload
agent_guard_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_life_test_SRC := tests/unit/firmware/agent/life_test.c $(AGENT_RIG)
agent_life_test_LIBS := agent offload
agent_life_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_limit_test_SRC := tests/unit/firmware/agent/limit_test.c $(AGENT_RIG)
agent_limit_test_LIBS := agent offload
agent_limit_test_LDLIBS := -lcmocka -lprotobuf-nanopb
agent_record_test_SRC := tests/unit/firmware/agent/record_test.c $(AGENT_RIG)
agent_record_test_LIBS := agent offload
agent_record_test_LDLIBS := -lcmocka -lprotobuf-nanopb
$(patsubst %.c,$(B)/obj/%.o,$(agent_test_SRC) $(agent_answer_test_SRC) $(agent_bare_test_SRC) $(agent_guard_test_SRC) $(agent_life_test_SRC) $(agent_limit_test_SRC) $(agent_record_test_SRC)): | $(GEN)/proto/control.pb.h
