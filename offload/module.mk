# offload: the pure core.
LIBS += offload
offload_SRC := \
	offload/base/bytes.c \
	offload/base/crc32c.c \
	offload/base/errors.c \
	offload/base/park.c \
	offload/base/rate.c \
	offload/base/siphash.c \
	offload/wire/discovery.c \
	offload/wire/fold.c \
	offload/wire/frame.c \
	offload/wire/ipv6.c \
	offload/wire/lldp.c \
	offload/wire/latency.c \
	offload/wire/member.c \
	offload/wire/seal.c \
	offload/wire/types.c \
	offload/wire/wire.c
include $(wildcard offload/*/module.mk)
