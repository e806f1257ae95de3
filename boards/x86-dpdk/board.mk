# x86-dpdk: banyan-switchd on Linux, x86-64, DPDK from the distribution.
BOARD_KIND := linux
BOARD_ARCH := x86_64
