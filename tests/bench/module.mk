# bench: measurements, built when a target asks.

TOOLS += bench-kernels
bench-kernels_SRC  := tests/bench/kernels.c
bench-kernels_LIBS := offload

TOOLS += bench-engine
bench-engine_SRC  := tests/bench/engine.c
bench-engine_LIBS := offload

TOOLS += bench-circulant
bench-circulant_SRC  := tests/bench/circulant.c tests/unit/host-driver/circulant/naive.c \
                        host-driver/circulant/rounds.c host-driver/circulant/schedule.c

.PHONY: bench
bench: all build-tools ## kernels, engine, planner, switch and whole allreduces (PART=kernels|engine|planner|circulant|switchd|mpi)
	$(Q)tests/bench/bench.sh $(B) $(PART)
