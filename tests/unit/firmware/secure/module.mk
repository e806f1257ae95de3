# TLS of control channels, with keys of `banyan keys`.
TESTS += unit-secure-tls unit-secure-acceptor
unit-secure-tls_SRC := tests/unit/firmware/secure/tls.c tests/unit/firmware/secure/keys.c
unit-secure-tls_LIBS := control secure offload
unit-secure-tls_LDLIBS := -lcmocka -ljansson -lgmp -lssl -lcrypto -lm
unit-secure-acceptor_SRC := tests/unit/firmware/secure/acceptor.c tests/unit/firmware/secure/keys.c
unit-secure-acceptor_LIBS := control secure offload
unit-secure-acceptor_LDLIBS := -lcmocka -ljansson -lgmp -lssl -lcrypto -lm -lpthread
# OpenSSL at the end of a program.
TESTS += unit-secure-openssl
unit-secure-openssl_SRC := tests/unit/firmware/secure/openssl.c firmware/secure/openssl.c
unit-secure-openssl_LIBS := offload
unit-secure-openssl_LDLIBS := -lcmocka -lssl -lcrypto -lpthread
# Hosts and ports as text.
TESTS += unit-secure-hostport
unit-secure-hostport_SRC := tests/unit/firmware/secure/hostport.c firmware/secure/hostport.c
unit-secure-hostport_LIBS := offload
unit-secure-hostport_LDLIBS := -lcmocka
# Log lines about refused connections.
TESTS += unit-secure-strangers
unit-secure-strangers_SRC := tests/unit/firmware/secure/strangers.c firmware/secure/strangers.c
unit-secure-strangers_LIBS := offload
unit-secure-strangers_LDLIBS := -lcmocka
# The key mode of control channels.
TESTS += unit-secure-psk
unit-secure-psk_SRC := tests/unit/firmware/secure/psk.c firmware/secure/psk.c
unit-secure-psk_LIBS := offload
unit-secure-psk_LDLIBS := -lcmocka
