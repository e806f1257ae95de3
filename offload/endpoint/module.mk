# endpoint: the host's side of the protocol.
offload_SRC += \
	offload/endpoint/able.c \
	offload/endpoint/accept.c \
	offload/endpoint/call.c \
	offload/endpoint/resume_copy.c \
	offload/endpoint/cursor.c \
	offload/endpoint/done.c \
	offload/endpoint/endpoint.c \
	offload/endpoint/exact.c \
	offload/endpoint/guess.c \
	offload/endpoint/retain.c \
	offload/endpoint/pace.c \
	offload/endpoint/resume.c \
	offload/endpoint/rounds.c \
	offload/endpoint/send.c \
	offload/endpoint/session.c \
	offload/endpoint/share.c \
	offload/endpoint/standby.c \
	offload/endpoint/suspect.c \
	offload/endpoint/timer.c
