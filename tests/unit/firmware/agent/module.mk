# The agent over a real engine, without sockets.
TESTS += agent_test
agent_test_SRC := tests/unit/firmware/agent/agent_test.c tests/unit/firmware/client.c tests/unit/firmware/star.c
agent_test_LIBS := agent offload
agent_test_LDLIBS := -lcmocka -lprotobuf-nanopb
$(patsubst %.c,$(B)/obj/%.o,$(agent_test_SRC)): | $(GEN)/proto/control.pb.h
