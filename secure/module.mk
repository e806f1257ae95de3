# secure: TLS for control channels, at all of their ends.
LIBS += secure
secure_SRC := \
	secure/tls.c
