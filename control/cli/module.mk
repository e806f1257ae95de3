# cli: the banyan command's subcommands that make, move and run tables.
banyan_SRC += \
	control/cli/number.c \
	control/cli/push.c \
	control/cli/show.c \
	control/cli/tables.c
