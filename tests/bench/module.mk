# bench: measurements, built when a target asks.

TOOLS += bench-kernels
bench-kernels_SRC  := tests/bench/kernels.c
bench-kernels_LIBS := offload

TOOLS += bench-engine
bench-engine_SRC  := tests/bench/engine.c
bench-engine_LIBS := offload

.PHONY: bench
bench: all build-tools ## kernels, engine, planner, switch and whole allreduces (PART=kernels|engine|planner|switchd|mpi)
	$(Q)tests/bench/bench.sh $(B) $(PART)
