# firmware: the programs and images of banyan switches.
LIBS += agent
agent_SRC := \
	firmware/agent/agent.c \
	firmware/agent/channel.c \
	firmware/agent/guard.c \
	firmware/agent/interfaces.c \
	firmware/agent/journal.c \
	firmware/agent/limit.c \
	firmware/agent/look.c \
	firmware/agent/notice.c \
	firmware/agent/refuse.c \
	firmware/agent/saved.c \
	firmware/agent/text.c \
	firmware/agent/write.c \
	firmware/secure/psk.c \
	$(GEN)/proto/control.pb.c
include firmware/secure/module.mk firmware/linux/module.mk firmware/baremetal/module.mk
