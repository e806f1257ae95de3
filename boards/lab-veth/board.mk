# lab-veth: banyan-switchd in network namespaces; any Linux machine.
BOARD_KIND := linux
BOARD_ARCH :=
