# arm64-dpdk: banyan-switchd on Linux, arm64, DPDK from Debian; cross-built elsewhere. ./run runs it also where the processor is another one.
BOARD_KIND   := linux
BOARD_ARCH   := aarch64
BOARD_CROSS  := aarch64-linux-gnu-
BOARD_DEBIAN := arm64
