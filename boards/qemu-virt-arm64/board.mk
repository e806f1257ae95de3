# qemu-virt-arm64: no operating system; QEMU's machine "virt" with a Cortex-A53 or later. ./run starts it.
BOARD_KIND  := baremetal
BOARD_ARCH  := aarch64
BOARD_CROSS := aarch64-linux-gnu-
BOARD_DEBIAN := arm64
BOARD_FLAGS := -mcpu=cortex-a53+crc
