# secure: TLS for control channels, at all of their ends.
LIBS += secure
secure_SRC := \
	secure/openssl.c \
	secure/greeter.c \
	secure/tls.c
