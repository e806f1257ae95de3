# verify: an independent checker of plan files; includes nothing of planner/.
control_SRC += \
	control/verify/budget.c \
	control/verify/claim.c \
	control/verify/claim_proof.c \
	control/verify/claim_rotation.c \
	control/verify/cut.c \
	control/verify/few.c \
	control/verify/load.c \
	control/verify/order.c \
	control/verify/price.c \
	control/verify/proof.c \
	control/verify/rotation.c \
	control/verify/series.c \
	control/verify/series_bound.c \
	control/verify/series_reduction.c \
	control/verify/series_sets.c \
	control/verify/shape.c \
	control/verify/share.c \
	control/verify/verify.c \
	control/verify/view.c
banyan_SRC += control/cli/check.c control/cli/verify.c
