# secure: TLS and the key mode for control channels, at all of their ends. An agent needs the key mode alone, without OpenSSL.
LIBS += secure
secure_SRC := \
	firmware/secure/openssl.c \
	firmware/secure/acceptor.c \
	firmware/secure/hostport.c \
	firmware/secure/psk.c \
	firmware/secure/strangers.c \
	firmware/secure/tls.c
