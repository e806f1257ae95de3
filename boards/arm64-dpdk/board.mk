# arm64-dpdk: banyan-switchd on Linux, arm64, DPDK from Debian; cross-compiled on other machines.
# ./run also runs it on other processors, under emulation.
BOARD_KIND   := linux
BOARD_ARCH   := aarch64
BOARD_CROSS  := aarch64-linux-gnu-
BOARD_DEBIAN := arm64
