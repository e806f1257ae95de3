# bench: measurements, built when a target asks.

TOOLS += bench-kernels
bench-kernels_SRC  := tests/bench/kernels.c
bench-kernels_LIBS := offload

TOOLS += bench-engine
bench-engine_SRC  := tests/bench/engine.c
bench-engine_LIBS := offload

.PHONY: bench
bench: all build-tools ## kernels, engine, switch and whole allreduces, as ratios taken in one run (PART=kernels|engine|switchd|mpi)
	$(Q)tests/bench/bench.sh $(B) $(PART)
