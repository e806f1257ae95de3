# xdp-host: banyan-switchd on interfaces with XDP drivers; any Linux machine (6.3 or later).
BOARD_KIND := linux
BOARD_ARCH :=
