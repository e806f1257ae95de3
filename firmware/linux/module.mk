# banyan-switchd.
PROGS += banyan-switchd
banyan-switchd_SRC := \
	firmware/linux/board.c \
	firmware/linux/main.c \
	firmware/linux/node.c \
	firmware/linux/notify.c \
	firmware/linux/options.c \
	firmware/linux/server.c
banyan-switchd_LIBS := dataplane agent offload
banyan-switchd_LDLIBS = $(shell pkg-config --libs libdpdk) -ljansson -lxdp -lbpf -lprotobuf-nanopb -lpthread
FLAGS_firmware += $(shell pkg-config --cflags libdpdk 2>/dev/null)
SRCFLAGS_firmware/linux/board.c := -DBY_BOARD='"$(BOARD)"'
# The assembler includes the boards' files.
$(B)/obj/firmware/linux/board.o: $(wildcard boards/*/board.json)
