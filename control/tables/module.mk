# lower: converts plans to table images, and predicts their performance.
control_SRC += \
	control/tables/able.c \
	control/tables/address.c \
	control/tables/balance.c \
	control/tables/balance_items.c \
	control/tables/balance_try.c \
	control/tables/cable.c \
	control/tables/dump.c \
	control/tables/dump_json.c \
	control/tables/book.c \
	control/tables/emit.c \
	control/tables/file.c \
	control/tables/group.c \
	control/tables/keyed.c \
	control/tables/lower.c \
	control/tables/path.c \
	control/tables/renew.c \
	control/tables/runs.c \
	control/tables/traffic.c \
	control/tables/tree.c
