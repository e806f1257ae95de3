# secure: TLS and the key mode for control channels, at both ends. An agent requires only the key
# mode, without OpenSSL.
LIBS += secure
secure_SRC := \
	firmware/secure/openssl.c \
	firmware/secure/acceptor.c \
	firmware/secure/hostport.c \
	firmware/secure/psk.c \
	firmware/secure/strangers.c \
	firmware/secure/tls.c
