# bench: measurements, built when a target asks.

TOOLS += bench-kernels
bench-kernels_SRC  := tests/bench/kernels.c
bench-kernels_LIBS := offload
