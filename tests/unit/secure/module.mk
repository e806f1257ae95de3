# The control channel's TLS, with keys as `banyan keys` makes them.
TESTS += unit-secure-tls
unit-secure-tls_SRC := tests/unit/secure/tls.c
unit-secure-tls_LIBS := control secure offload
unit-secure-tls_LDLIBS := -lcmocka -ljansson -lgmp -lssl -lcrypto -lm
