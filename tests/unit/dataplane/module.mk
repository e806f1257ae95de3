# The shell on memory ports: DPDK without hugepages, devices or root.
DPDK_TEST_CFLAGS := $(shell pkg-config --cflags libdpdk 2>/dev/null) -Wno-pedantic
dataplane_test_LDLIBS := -lcmocka $(shell pkg-config --libs libdpdk 2>/dev/null) -lxdp -lbpf -lpthread
dataplane_test_COMMON := tests/unit/dataplane/memory.c tests/unit/firmware/star.c

TESTS += replicate_test mark_test lend_test steer_test workers_test commits_test handoff_test link_test pci_test
replicate_test_SRC := tests/unit/dataplane/replicate_test.c $(dataplane_test_COMMON)
replicate_test_LIBS := dataplane offload
replicate_test_LDLIBS := $(dataplane_test_LDLIBS)
mark_test_SRC := tests/unit/dataplane/mark_test.c $(dataplane_test_COMMON)
mark_test_LIBS := dataplane offload
mark_test_LDLIBS := $(dataplane_test_LDLIBS)
lend_test_SRC := tests/unit/dataplane/lend_test.c $(dataplane_test_COMMON)
lend_test_LIBS := dataplane offload
lend_test_LDLIBS := $(dataplane_test_LDLIBS)
steer_test_SRC := tests/unit/dataplane/steer_test.c $(dataplane_test_COMMON)
steer_test_LIBS := dataplane offload
steer_test_LDLIBS := $(dataplane_test_LDLIBS)
workers_test_SRC := tests/unit/dataplane/workers_test.c tests/unit/dataplane/wires.c $(dataplane_test_COMMON)
workers_test_LIBS := dataplane offload
workers_test_LDLIBS := $(dataplane_test_LDLIBS)
commits_test_SRC := tests/unit/dataplane/commits_test.c tests/unit/dataplane/wires.c $(dataplane_test_COMMON)
commits_test_LIBS := dataplane offload
commits_test_LDLIBS := $(dataplane_test_LDLIBS)
link_test_SRC := tests/unit/dataplane/link_test.c tests/unit/dataplane/link_rig.c $(dataplane_test_COMMON)
link_test_LIBS := dataplane offload
link_test_LDLIBS := $(dataplane_test_LDLIBS)
handoff_test_SRC := tests/unit/dataplane/handoff_test.c
handoff_test_LIBS := dataplane offload
handoff_test_LDLIBS := $(dataplane_test_LDLIBS)
pci_test_SRC := tests/unit/dataplane/pci_test.c
pci_test_LIBS := dataplane offload
pci_test_LDLIBS := $(dataplane_test_LDLIBS) -Wl,--wrap=open
$(foreach s,memory wires replicate_test mark_test lend_test steer_test workers_test commits_test handoff_test link_test link_rig,$(eval SRCFLAGS_tests/unit/dataplane/$(s).c := $$(DPDK_TEST_CFLAGS)))
