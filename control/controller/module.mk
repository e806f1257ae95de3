# controller: the client side of the control channel.
control_SRC += \
	control/controller/counters.c \
	control/controller/delta.c \
	control/controller/dial.c \
	control/controller/http.c \
	control/controller/keys.c \
	control/controller/message.c \
	control/controller/parallel.c \
	control/controller/psk_file.c \
	control/controller/push.c \
	control/controller/session.c \
	control/controller/stream.c \
	control/controller/target.c \
	$(GEN)/proto/control.pb.c
banyan_LIBS += secure
banyan_LDLIBS += -lprotobuf-nanopb -lssl -lcrypto -lpthread
