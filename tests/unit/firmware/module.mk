# switch-probe: the star fabric of the unit tests as a program, for tests/lab/switchd.sh and
# tests/bench/switchd.sh.
TOOLS += switch-probe
switch-probe_SRC := tests/lab/probe.c tests/lab/probe_burden.c tests/lab/probe_control.c tests/lab/probe_flood.c tests/lab/probe_link.c tests/lab/probe_packet.c tests/lab/probe_replicate.c tests/unit/firmware/client.c tests/unit/firmware/star.c
switch-probe_LIBS := agent offload
switch-probe_LDLIBS := -lprotobuf-nanopb
$(patsubst %.c,$(B)/obj/%.o,$(switch-probe_SRC)): | $(GEN)/proto/control.pb.h
