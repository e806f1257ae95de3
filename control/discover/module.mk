# discover: what the machines of a site report, and the cables between them.
control_SRC += \
	control/discover/cables.c \
	control/discover/collect.c \
	control/discover/facts.c \
	control/discover/facts_json.c \
	control/discover/hear.c \
	control/discover/local.c \
	control/discover/order.c \
	control/discover/write.c
