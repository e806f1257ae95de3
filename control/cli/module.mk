# cli: subcommands of banyan that make, push and run tables.
banyan_SRC += \
	control/cli/circulant.c \
	host-driver/circulant/rounds.c \
	host-driver/circulant/schedule.c \
	control/lab/lab.c \
	control/lab/controller.c \
	control/lab/host.c \
	control/lab/net.c \
	control/lab/outside.c \
	offload/linux/device.c \
	offload/linux/feature.c \
	control/lab/options.c \
	control/lab/plan.c \
	control/lab/process.c \
	control/lab/report.c \
	control/lab/routes.c \
	control/lab/run.c \
	control/lab/series.c \
	control/lab/state.c \
	control/lab/switch.c \
	control/lab/wire.c \
	control/cli/lowering.c \
	control/cli/discover.c \
	control/cli/doctor.c \
	control/cli/http.c \
	control/cli/job.c \
	control/cli/keys.c \
	control/cli/explain.c \
	control/cli/push.c \
	control/cli/runs.c \
	control/cli/show.c \
	control/cli/sim.c \
	control/cli/sim_choose.c \
	control/cli/sim_options.c \
	control/cli/sim_report.c \
	control/cli/sim_series.c \
	control/cli/sim_sweep.c \
	control/cli/sim_work.c \
	control/cli/target.c \
	control/cli/tables.c \
	control/cli/top.c
banyan_SRC += control/cli/import.c
banyan_SRC += control/cli/topo.c control/cli/plan.c control/cli/plan_allreduce.c control/cli/plan_protect.c control/cli/replan.c control/cli/links.c control/cli/plan_whatif.c control/cli/progress.c control/cli/ranks.c
