# Unit tests of what Linux gives to both kinds of nodes.
TESTS += test_ring
test_ring_SRC    := tests/unit/ring/test_ring.c ring/program.c ring/ring.c ring/feature.c
test_ring_LDLIBS := -lcmocka
