# secure: TLS and the key mode for control channels, at all of their ends. An agent needs the key mode alone, without OpenSSL.
LIBS += secure
secure_SRC := \
	secure/openssl.c \
	secure/greeter.c \
	secure/hostport.c \
	secure/psk.c \
	secure/strangers.c \
	secure/tls.c
