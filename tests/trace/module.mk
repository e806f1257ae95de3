# trace: sends one trace of frames to all shells of the engine. The unit test covers the engine
# alone, the DPDK shell and the simulator; `make trace` adds the bare-metal image
# (tests/lab/trace.sh).
TESTS += trace_test
TOOLS += switch-trace
trace_test_SRC := tests/trace/dpdk.c tests/trace/kernel.c tests/trace/main.c tests/trace/metal.c tests/trace/plain.c tests/trace/sim.c tests/trace/trace.c tests/unit/dataplane/memory.c tests/unit/firmware/star.c
trace_test_LIBS := dataplane world offload
trace_test_LDLIBS = $(dataplane_test_LDLIBS)
switch-trace_SRC := $(trace_test_SRC)
switch-trace_LIBS := $(trace_test_LIBS)
switch-trace_LDLIBS = $(trace_test_LDLIBS)
SRCFLAGS_tests/trace/dpdk.c = $(DPDK_TEST_CFLAGS)
SRCFLAGS_tests/trace/kernel.c = $(DPDK_TEST_CFLAGS)
