# plot: pictures of fabrics and plans.
control_SRC += \
	control/plot/dot.c \
	control/plot/fabric.c \
	control/plot/layers.c \
	control/plot/layout.c \
	control/plot/panel.c \
	control/plot/picture.c \
	control/plot/svg.c
banyan_SRC += control/cli/plot.c
banyan_LDLIBS += -lm
banyan_SRC += control/cli/info.c
