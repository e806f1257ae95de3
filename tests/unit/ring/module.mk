# Unit tests of what Linux gives to both kinds of nodes.
TESTS += test_ring
test_ring_SRC    := tests/unit/ring/test_ring.c ring/bpf.c ring/feature.c ring/program.c ring/ring.c
test_ring_LDLIBS := -lcmocka

TESTS += test_copies
test_copies_SRC    := tests/unit/ring/test_copies.c ring/bpf.c ring/copies.c ring/feature.c
test_copies_LIBS   := offload
test_copies_LDLIBS := -lcmocka
