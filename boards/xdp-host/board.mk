# xdp-host: banyan-switchd on interfaces whose drivers take XDP programs; any Linux machine (6.3 or later).
BOARD_KIND := linux
BOARD_ARCH :=
