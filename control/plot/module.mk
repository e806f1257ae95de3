# plot: pictures of fabrics and plans.
control_SRC += \
	control/plot/classes.c \
	control/plot/clique.c \
	control/plot/crown.c \
	control/plot/dot.c \
	control/plot/fabric.c \
	control/plot/gantt.c \
	control/plot/layers.c \
	control/plot/layout.c \
	control/plot/panel.c \
	control/plot/legend.c \
	control/plot/picture.c \
	control/plot/ring.c \
	control/plot/shade.c \
	control/plot/strips.c \
	control/plot/summary.c \
	control/plot/summary_draw.c \
	control/plot/summary_picture.c \
	control/plot/summary_place.c \
	control/plot/svg.c
banyan_SRC += control/cli/plot.c
banyan_LDLIBS += -lm
banyan_SRC += control/cli/info.c
