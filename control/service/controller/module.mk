# controller: the client side of the control channel.
control_SRC += \
	control/service/controller/counters.c \
	control/service/controller/delta.c \
	control/service/controller/dial.c \
	control/service/controller/http.c \
	control/service/controller/keys.c \
	control/service/controller/message.c \
	control/service/controller/parallel.c \
	control/service/controller/psk_file.c \
	control/service/controller/push.c \
	control/service/controller/session.c \
	control/service/controller/stream.c \
	control/service/controller/target.c \
	$(GEN)/proto/control.pb.c
banyan_LIBS += secure
banyan_LDLIBS += -lprotobuf-nanopb -lssl -lcrypto -lpthread
