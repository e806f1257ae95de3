# firmware: what makes a box a banyan switch.
LIBS += agent
agent_SRC := \
	firmware/agent/agent.c \
	firmware/agent/channel.c \
	firmware/agent/journal.c \
	firmware/agent/limit.c \
	firmware/agent/look.c \
	firmware/agent/rate.c \
	firmware/agent/refuse.c \
	firmware/agent/text.c \
	firmware/agent/write.c \
	$(GEN)/proto/control.pb.c
# secure: TLS for the control channel, at both of its ends.
LIBS += secure
secure_SRC := firmware/secure/tls.c
include firmware/linux/module.mk firmware/baremetal/module.mk
