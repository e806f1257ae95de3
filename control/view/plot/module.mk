# plot: pictures of fabrics and plans.
control_SRC += \
	control/view/plot/classes.c \
	control/view/plot/clique.c \
	control/view/plot/color.c \
	control/view/plot/course.c \
	control/view/plot/crown.c \
	control/view/plot/dot.c \
	control/view/plot/fabric.c \
	control/view/plot/gantt.c \
	control/view/plot/layers.c \
	control/view/plot/layout.c \
	control/view/plot/panel.c \
	control/view/plot/legend.c \
	control/view/plot/picture.c \
	control/view/plot/ring.c \
	control/view/plot/shade.c \
	control/view/plot/strips.c \
	control/view/plot/summary.c \
	control/view/plot/summary_draw.c \
	control/view/plot/summary_picture.c \
	control/view/plot/summary_place.c \
	control/view/plot/svg.c
banyan_SRC += control/cli/plot.c
banyan_LDLIBS += -lm
banyan_SRC += control/cli/info.c
