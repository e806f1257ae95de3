# banyan-run: starts an MPI program with the plugin for its MPI.
PROGS += banyan-run
banyan-run_SRC := host-driver/tools/run/main.c host-driver/tools/run/find.c offload/linux/options.c offload/linux/options_help.c offload/linux/options_value.c offload/linux/output.c
banyan-run_LDLIBS := -lelf
